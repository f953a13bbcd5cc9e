package testkit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/node"
)

// law brings one rule into force.
func (b *Bed) law(id, severity, on string) {
	b.t.Helper()
	var a struct{ ID string }
	b.Must(0, "POST", "/api/v1/govern/amendments", map[string]any{"rules": []any{map[string]any{"id": id,
		"branch": "executive", "severity": severity, "on": []string{on}, "when": `rank != "board"`,
		"reason": "{act} is against " + id}}}, &a)
	b.Must(0, "POST", "/api/v1/govern/amendments/"+a.ID+"/sign", map[string]any{}, nil)
	b.Must(0, "POST", "/api/v1/govern/amendments/"+a.ID+"/enact", nil, nil)
}

// pending lists the approvals of a company that wait, for an action.
func (b *Bed) pending(on int, of ledger.CompanyID, action string) (ids []string) {
	b.t.Helper()
	var rows []struct {
		ID      string
		Payload struct{ Action string }
	}
	b.Must(on, "GET", "/api/companies/"+string(of)+"/approvals?status=pending", nil, &rows, b.Seen()...)
	for _, r := range rows {
		if r.Payload.Action == action {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// approve has a person say yes to the one approval of an action, through a node.
func (b *Bed) approve(on int, of ledger.CompanyID, action string) (id string) {
	b.t.Helper()
	b.Until("an approval of "+action+" waits", func() bool { return len(b.pending(on, of, action)) == 1 })
	id = b.pending(on, of, action)[0]
	b.Must(on, "POST", "/api/approvals/"+id+"/approve", map[string]any{}, nil, b.Seen()...)
	return id
}

// A request of an agent to the network is put before a person. Approved through another node, the agent is woken, does
// it once, and has to ask again for the next time.
func TestAPersonPermitsARequest(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a guest")
	}
	module := filepath.Join(t.TempDir(), "guest.wasm")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", module, "../../adapter/wasm/testdata/guest")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the guest: %v\n%s", err, said)
	}
	var asked atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, "done")
	}))
	defer web.Close()
	work := working(t.TempDir())
	b := Mesh(t, 3, func(i int, c *node.Config) {
		work(i, c)
		c.Private = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	of := b.Company("Acme")
	b.law("T-1", "blocking", "network.egress")
	request, _ := json.Marshal(map[string]string{"method": "POST", "url": web.URL + "/order", "body": "one"})
	var ada struct{ ID string }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/agents", map[string]any{"name": "Ada", "adapterType": "wasm",
		"adapterConfig": map[string]any{"module": module, "args": []string{"ask", "http.fetch", string(request)},
			"fetchHosts": []string{strings.TrimPrefix(web.URL, "http://")}}}, &ada)
	ended := func(n int) func() bool {
		return func() bool {
			over := 0
			for _, r := range b.runsOf(0, of, ada.ID) {
				if r.Status == "succeeded" || r.Status == "failed" {
					over++
				}
			}
			return over >= n
		}
	}
	b.Must(0, "POST", "/api/agents/"+ada.ID+"/wakeup", map[string]any{"source": "on_demand"}, nil)
	b.Until("the run that has to ask is over", ended(1))
	if n := asked.Load(); n != 0 {
		t.Fatalf("%d requests before a person approved one", n)
	}
	id := b.approve(1, of, "network.egress")
	b.Until("the agent was woken and did it", func() bool { return asked.Load() == 1 })
	b.Until("its run is over", ended(2))
	if p := b.fields(1, "/api/v1/govern/permits/"+id); p["status"] != "used" {
		t.Errorf("the permit is %v", p)
	}
	b.Must(0, "POST", "/api/agents/"+ada.ID+"/wakeup", map[string]any{"source": "on_demand"}, nil)
	b.Until("it has to ask again", func() bool { return len(b.pending(0, of, "network.egress")) == 1 })
	b.Until("the third run is over", ended(3))
	if n := asked.Load(); n != 1 {
		t.Errorf("%d requests under a permit for one", n)
	}
	// What a critical rule or the access policy denies reaches nobody, and the agent is told why.
	denied := func(n int, by, told string) {
		t.Helper()
		b.Must(0, "POST", "/api/agents/"+ada.ID+"/wakeup", map[string]any{"source": "on_demand"}, nil)
		b.Until("the run that is denied is over", ended(n))
		id := b.runsOf(0, of, ada.ID)[0].ID
		var log struct{ Content string }
		b.Must(0, "GET", "/api/heartbeat-runs/"+id+"/log", nil, &log, b.Seen()...)
		if !strings.Contains(log.Content, told) {
			t.Errorf("the agent was told %q, want %q", log.Content, told)
		}
		b.Until("the denial is on the chain", func() bool { // rules that only warn may speak too
			chain, deny := strings.CutPrefix(b.decidedOf(of, id), "deny network.egress by ")
			return deny && !strings.Contains(chain, " ") && slices.Contains(strings.Split(chain, "+"), by)
		})
		if n := asked.Load(); n != 1 {
			t.Errorf("%d requests, one of them was denied", n)
		}
	}
	b.law("T-1", "critical", "network.egress")
	denied(4, "T-1", "Denied by rule T-1 of the constitution: ")
	const host = "/network/hosts/127.0.0.1"
	b.Must(0, "POST", "/api/v1/tree/grants", map[string]any{"path": host, "subject": "*", "deny": true}, nil)
	b.law("T-1", "critical", "tool.execute")
	denied(5, "ACCESS-POLICY", "Denied by the access policy of the resource tree: the agent may not use "+host)
}

// decidedOf says what the chain says that the gate decided in a run other than low-risk permits.
func (b *Bed) decidedOf(of ledger.CompanyID, run string) string {
	b.t.Helper()
	var page []struct {
		Decision, Action string
		Rules            []string `json:"spoken_rules"`
	}
	b.Must(0, "GET", "/api/v1/govern/decisions?companyId="+string(of)+"&runId="+run, nil, &page, b.Seen()...)
	var all []string
	for _, d := range page {
		all = append(all, d.Decision+" "+d.Action+" by "+strings.Join(d.Rules, "+"))
	}
	return strings.Join(all, ", ")
}

// A model call and the execution of a tool wait for a person and are done when they are given again over HTTP: the call
// with this body only, the tool once. What a person rejects, and what a critical rule denies, does not ask again.
func TestAPersonPermitsCalls(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w,
			`{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,`+
				`"message":{"role":"assistant","content":"on"},"finish_reason":"stop"}],`+
				`"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`)
	}))
	defer up.Close()
	b := Mesh(t, 1, working(t.TempDir()))
	of := b.Company("Acme")
	in := "/api/companies/" + string(of)
	b.Must(0, "POST", in+"/model-providers", map[string]any{"name": "up", "kind": "llamacpp", "baseUrl": up.URL,
		"models": []map[string]string{{"name": "m"}}}, nil)
	module, err := hex.DecodeString(
		"0061736d0100000001040160000003020100050401010101071302066d656d6f72790200065f737461727400000a040102000b")
	if err != nil {
		t.Fatal(err)
	}
	deployTool(t, b, of, "quick", module)
	ada, token := b.waits(of)
	want := func(what string, a Answer, status int, text string) {
		t.Helper()
		if a.Status != status || !strings.Contains(string(a.Body), text) {
			t.Fatalf("%s: %d %s, want %d with %q", what, a.Status, a.Body, status, text)
		}
	}
	call := func(words string) Answer {
		t.Helper()
		a, err := b.Ask(0, "POST", "/llm/v1/chat/completions", map[string]any{"model": "m", "max_tokens": 20,
			"messages": []any{map[string]any{"role": "user", "content": words}}}, nil, "Authorization", "Bearer "+token)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	want("a call before there is a rule", call("first?"), 200, `"on"`)
	b.law("T-1", "blocking", "model.call")
	b.law("T-2", "blocking", "tool.execute")
	want("a call", call("on?"), 403, "It waits for the board as approval")
	want("the same call", call("on?"), 403, "It waits for the board as approval")
	b.approve(0, of, "model.call")
	want("the approved call", call("on?"), 200, `"on"`)
	want("another call", call("off?"), 403, "It waits for the board as approval")
	other := b.pending(0, of, "model.call")
	b.Must(0, "POST", "/api/approvals/"+other[0]+"/reject", map[string]any{}, nil)
	want("the rejected call", call("off?"), 403, "A person has rejected it")
	if n := asked.Load(); n != 2 {
		t.Errorf("the model was called %d times, want twice", n)
	}
	execute := func() Answer {
		t.Helper()
		a, err := b.Ask(0, "POST", in+"/tools/quick/execute", map[string]any{"input": map[string]any{"n": 1}}, nil,
			ada.As()...)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	executed := func() (n int) {
		var page []struct{ Action string }
		b.Must(0, "GET", in+"/activity?action=tool.executed", nil, &page, b.Seen()...)
		for _, x := range page {
			if x.Action == "tool.executed" {
				n++
			}
		}
		return n
	}
	want("a tool", execute(), 409, "waits for the board as approval")
	b.approve(0, of, "tool.execute")
	if n := executed(); n != 0 {
		t.Errorf("the approval alone has executed it %d times", n)
	}
	want("the approved tool", execute(), 200, `"exitCode":0`)
	want("the tool once more", execute(), 409, "waits for the board as approval")
	if n := executed(); n != 1 {
		t.Errorf("it was executed %d times, want once", n)
	}
	b.law("T-2", "critical", "tool.execute")
	want("a tool under a critical rule", execute(), 403, "Denied by rule T-2")
	b.closedDecisions(t, ada.Run)
}

// closedDecisions ends a run whose node has permitted one model call without more, and compares its decision log with
// what the command that closed it says.
func (b *Bed) closedDecisions(t *testing.T, run string) {
	t.Helper()
	b.Must(0, "POST", "/api/heartbeat-runs/"+run+"/cancel", map[string]any{}, nil)
	var row struct {
		DecisionLog *struct {
			Permits, Lost uint64
			Bytes         int64
			SHA256        string
		}
	}
	b.Until("the run is closed with its decision log", func() bool {
		b.Must(0, "GET", "/api/heartbeat-runs/"+run, nil, &row, b.Seen()...)
		return row.DecisionLog != nil
	})
	var page struct{ Content string }
	b.Must(0, "GET", "/api/heartbeat-runs/"+run+"/log?decisions=true", nil, &page)
	sum, d := sha256.Sum256([]byte(page.Content)), row.DecisionLog
	if d.Permits != 1 || d.Lost != 0 || d.Bytes != int64(len(page.Content)) || d.SHA256 != hex.EncodeToString(sum[:]) ||
		!strings.Contains(page.Content, `"action":"model.call","decision":"permit"`) {
		t.Errorf("closed with %+v, the log is %q", d, page.Content)
	}
}

// waits hires Ada, whose run waits, and returns her with the run's token.
func (b *Bed) waits(of ledger.CompanyID) (ada Agent, token string) {
	b.t.Helper()
	out := b.t.TempDir()
	ada, err := b.Hire(0, of, "Ada", map[string]any{"command": "/bin/sh", "args": []string{"-c",
		`umask 077; printf %s "$PAPERCLIP_API_KEY" > $OUT/part; mv $OUT/part $OUT/token; sleep 900`},
		"env": map[string]any{"OUT": out}})
	if err == nil {
		err = b.Invoke(0, &ada)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return ada, readFile(b, filepath.Join(out, "token"))
}
