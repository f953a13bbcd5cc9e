package wasm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
)

var noteAgent = flag.Bool("agent.note", false, "note of which sources agent.wasm.gz is")

// The committed module was built from the committed sources.
func TestTheDefaultAgentIsOfItsSources(t *testing.T) {
	sum := sha256.New()
	for _, dir := range []string{"../../examples/agent", "../../examples/wasmkit"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", dir, err)
		}
		slices.Sort(files)
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(sum, "%s %d\n", filepath.Base(f), len(b))
			sum.Write(b)
		}
	}
	got := hex.EncodeToString(sum.Sum(nil)) + "\n"
	if *noteAgent {
		if err := os.WriteFile("agent.sum", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != agentSources {
		t.Error("examples/agent has changed since agent.wasm.gz was built: run `make agent`")
	}
}

// A town is a fake of the node's API and gateway: one issue, a skill, an earlier run, and a
// model that calls tools.
type town struct {
	mu      sync.Mutex // guards the fields below
	asked   []string
	prompts []string
	answers []string // of the model, in order
	status  string
	said    string
	kept    string
}

func (d *town) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	d.asked = append(d.asked, r.Method+" "+r.URL.Path)
	switch r.Method + " " + r.URL.Path {
	case "GET /api/issues/i1":
		fmt.Fprint(w, `{"id":"i1","identifier":"ACM-1","title":"Compare three databases","description":"Which `+
			`one fits us?","status":"todo"}`)
	case "GET /api/issues/i1/comments":
		fmt.Fprint(w, `[{"authorUserId":"u","body":"Think of costs"}]`)
	case "GET /api/companies/company-1/heartbeat-runs":
		fmt.Fprint(w, `[{"id":"r0","status":"succeeded"}]`)
	case "GET /api/heartbeat-runs/r0":
		fmt.Fprint(w, `{"resultJson":{"told":{"score":0.2,"profile":{"task_type":"Research"},"lesson":"Name the sources."}}}`)
	case "GET /api/agents/agent-1/skills":
		fmt.Fprint(w, `{"entries":[{"state":"available","path":"/api/companies/company-1/skills/s1/files"}]}`)
	case "GET /api/companies/company-1/skills/s1/files":
		json.NewEncoder(w).
			Encode(map[string]string{"content": "---\nname: databases\ndescription: how to compare databases\n" +
				"---\nLook at the licence first."})
	case "GET /api/agents/agent-1/memory":
		fmt.Fprint(w, `[{"key":"taste","value":"We like small ones."}]`)
	case "PUT /api/agents/agent-1/memory/fit":
		d.kept = string(body)
	case "GET /api/agents/agent-1/messages":
		fmt.Fprint(w, `[{"id":"m1","fromId":"agent-2","type":"note","payload":{"text":"Mind the licence"}}]`)
	case "GET /llm/v1/models":
		fmt.Fprint(w, `{"data":[{"id":"tier/standard"},{"id":"other"}]}`)
	case "POST /llm/v1/chat/completions":
		var in struct{ Model string }
		_ = json.Unmarshal(body, &in)
		d.prompts = append(d.prompts, string(body))
		if in.Model != "tier/standard" || len(d.answers) == 0 {
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, `{"error":{"message":"no upstream"}}`)
			return
		}
		fmt.Fprintf(w, `{"choices":[{"message":%s}],"usage":{"total_tokens":700}}`, d.answers[0])
		d.answers = d.answers[1:]
	case "POST /api/issues/i1/comments":
		var in struct{ Body string }
		_ = json.Unmarshal(body, &in)
		d.said = in.Body
	case "PATCH /api/issues/i1":
		var in struct{ Status string }
		_ = json.Unmarshal(body, &in)
		d.status = in.Status
	}
}

func toolCall(name, arguments string) string {
	b, _ := json.Marshal(map[string]any{"role": "assistant", "content": "",
		"tool_calls": []any{map[string]any{"id": "c1", "type": "function", "function": map[string]string{"name": name,
			"arguments": arguments}}}})
	return string(b)
}

func (d *town) run(t *testing.T, config string) company.Outcome {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles the default agent")
	}
	a := open(t, &desk{})
	a.cfg.API = func() http.Handler { return d }
	inv := (&desk{}).invocation(config)
	inv.Run.Context.TaskID = "i1"
	return a.Invoke(t.Context(), inv)
}

// The default agent does all steps of its issue in the sandbox. This test runs first, so that
// the next one finds the module compiled.
func TestTheDefaultAgentWorksOnItsIssue(t *testing.T) {
	d := &town{answers: []string{toolCall("fly", `{}`), toolCall("remember", `{"key":"fit","text":"Pebble"}`),
		toolCall("finish", `{"result":"Of the three databases, compare first: Pebble fits.","status":"done"}`)}}
	o := d.run(t, `{}`)
	if o.Status != entity.RunSucceeded || d.status != "done" ||
		d.said != "Of the three databases, compare first: Pebble fits." {
		t.Fatalf("%s %s; issue %q, said %q; stderr %q", o.Status, o.Error, d.status, d.said, *o.Stderr)
	}
	var result struct {
		Result string
		Score  float64
		Told   struct {
			Rounds, Tools int
			Failed        int `json:"toolsFailed"`
			Profile       struct {
				Type string `json:"task_type"`
			}
			Route struct{ Tier string }
		}
	}
	if err := json.Unmarshal(o.Result, &result); err != nil || result.Result != d.said || result.Score < 0.6 ||
		result.Score > 1 ||
		result.Told.Rounds != 3 || result.Told.Tools != 3 || result.Told.Failed != 1 ||
		result.Told.Profile.Type != "Research" || result.Told.Route.Tier != "standard" {
		t.Errorf("the result is %s, %v", o.Result, err)
	}
	for _, want := range []string{"Compare three databases", "Think of costs", "Look at the licence first.",
		"Name the sources.", "taste: We like small ones.", "message of agent-2 (note)", "Mind the licence",
		`"name":"finish"`} {
		if !strings.Contains(d.prompts[0], want) {
			t.Errorf("the model was not told %q: %s", want, d.prompts[0])
		}
	}
	if d.kept != `{"value":"Pebble"}` || !slices.Contains(d.asked, "POST /api/agents/agent-1/messages/take") {
		t.Errorf("it kept %q, and asked %q", d.kept, d.asked)
	}
	if !strings.Contains(d.prompts[1], "there is no tool") {
		t.Errorf("the model was not told that its tool is none: %s", d.prompts[1])
	}
}

// If no model answers, the run fails and says why; the agent invents no result.
func TestTheDefaultAgentWithoutAModel(t *testing.T) {
	t.Parallel()
	d := &town{}
	o := d.run(t, `{"env":{"AGENT_MODEL":"gone"}}`)
	if o.Status != entity.RunFailed || !strings.Contains(*o.Stderr, "no upstream") || d.said != "" || d.status != "" {
		t.Errorf("%+v, stderr %q, said %q, issue %q", o, *o.Stderr, d.said, d.status)
	}
}
