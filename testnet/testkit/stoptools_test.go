package testkit

import (
	"bytes"
	"encoding/hex"
	"mime/multipart"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// forEver is a module that goes on for ever.
const forEver = "0061736d0100000001040160000003020100050401010101071302066d" +
	"656d6f72790200065f737461727400000a0901070003400c000b0b"

// deployEver gives a company the tool "ever", which never ends by itself, and returns
// its module.
func deployEver(t *testing.T, b *Bed, of ledger.CompanyID) []byte {
	t.Helper()
	module, err := hex.DecodeString(forEver)
	if err != nil {
		t.Fatal(err)
	}
	deployTool(t, b, of, "ever", module)
	return module
}

// deployTool gives a company a tool.
func deployTool(t *testing.T, b *Bed, of ledger.CompanyID, name string, module []byte) {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	_ = w.WriteField("name", name)
	part, _ := w.CreateFormFile("file", "tool.wasm")
	_, _ = part.Write(module)
	_ = w.Close()
	b.Must(0, "POST", "/api/companies/"+string(of)+"/tools", body.Bytes(), nil, "Content-Type", w.FormDataContentType())
}

// What acts besides runs ends with a stop as well: a tool in the sandbox and a
// service of a workspace. Neither begins while the stop stands, and the service,
// which is still wanted, comes back when it is over.
func TestAStopEndsToolsAndServices(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 1, working(t.TempDir()))
	of, folder := b.Company("Acme"), t.TempDir()
	module := deployEver(t, b, of)
	execute := func() (Answer, error) {
		return b.Call(0, "POST", "/api/companies/"+string(of)+"/tools/ever/execute", map[string]any{"input": map[string]any{},
			"fuel": 100_000_000_000, "timeoutMs": 300_000}, nil)
	}
	pids := filepath.Join(folder, "pids")
	var p struct {
		ID               string
		PrimaryWorkspace struct{ ID string }
	}
	b.Must(0, "POST", "/api/companies/"+string(of)+"/projects", map[string]any{"name": "Site",
		"workspace": map[string]any{"name": "main", "cwd": folder, "isPrimary": true,
			"runtimeConfig": map[string]any{"workspaceRuntime": map[string]any{"services": []any{
				map[string]any{"name": "Beat", "command": "echo $$ >>" + pids + "; exec sleep 300",
					"readiness": map[string]any{"type": "none"}}}}}}}, &p)
	b.Must(0, "POST", "/api/projects/"+p.ID+"/workspaces/"+p.PrimaryWorkspace.ID+"/runtime-services/start",
		map[string]any{}, nil, b.Seen()...)
	pid := readFile(b, pids)

	path := filepath.Join(folder, "ever.wasm")
	if err := os.WriteFile(path, module, 0o600); err != nil {
		t.Fatal(err)
	}
	var agent, at struct{ ID string }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/agents", map[string]any{"name": "Ever", "adapterType": "wasm",
		"adapterConfig": map[string]any{"module": path, "fuel": int64(1) << 50}}, &agent)
	b.Must(0, "POST", "/api/agents/"+agent.ID+"/wakeup", map[string]any{"source": "on_demand"}, &at)
	b.Until("the agent's module is at work",
		func() bool { return b.fields(0, "/api/heartbeat-runs/"+at.ID)["status"] == "running" })

	type ended struct {
		a    Answer
		err  error
		took time.Duration
	}
	over, began := make(chan ended, 1), time.Now()
	go func() {
		a, err := execute()
		over <- ended{a, err, time.Since(began)}
	}()
	time.Sleep(time.Second) // the tool goes on
	select {
	case e := <-over:
		t.Fatalf("the tool ended by itself: %d %s %v", e.a.Status, e.a.Body, e.err)
	default:
	}
	told := time.Now()
	b.Must(0, "POST", "/api/v1/mesh/stop", map[string]any{}, nil)
	select {
	case e := <-over:
		if !strings.Contains(string(e.a.Body), `"code":"GovernanceDenied"`) {
			t.Errorf("%s after the stop the tool ended with %d %s, %v", time.Since(told), e.a.Status, e.a.Body, e.err)
		}
	case <-time.After(settle):
		t.Error("the tool goes on after the stop")
	}
	b.Until("the service is gone", func() bool { _, err := os.Stat("/proc/" + pid); return os.IsNotExist(err) })
	// What an agent's module was at is over for the same reason, and its row says so.
	b.Until("the agent's run is over", func() bool {
		var r struct {
			Status     string
			ResultJSON struct{ SandboxError, DeniedBy string }
		}
		b.Must(0, "GET", "/api/heartbeat-runs/"+at.ID, nil, &r, Strong...)
		if r.Status != "running" && (r.Status != "cancelled" || r.ResultJSON.SandboxError != "GovernanceDenied" ||
			r.ResultJSON.DeniedBy != "mesh_stopped") {
			t.Fatalf("the agent's run came to %+v", r)
		}
		return r.Status == "cancelled"
	})
	b.Idle()
	if a, err := execute(); err != nil || a.Status != 409 || !strings.Contains(string(a.Body),
		`"code":"GovernanceDenied"`) {
		t.Errorf("a tool during the stop: %d %s, %v", a.Status, a.Body, err)
	}
	time.Sleep(1500 * time.Millisecond) // it would have come back by now
	if got := strings.Fields(readFile(b, pids)); len(got) != 1 {
		t.Errorf("the service began %d times during the stop", len(got)-1)
	}
	b.Must(0, "POST", "/api/v1/mesh/resume", map[string]any{}, nil)
	b.Until("the service is back", func() bool { return len(strings.Fields(readFile(b, pids))) == 2 })
}
