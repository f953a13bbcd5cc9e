package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/testnet/testkit"
)

// patience bounds a run, and is more than its own limit of ten minutes: the command
// lines take a second or two to start on a quiet machine, and two minutes where they
// were just installed and others use the disk.
const patience = 12 * time.Minute

// pause is between two reads of a run, which takes seconds: each is a strong one.
const pause = 250 * time.Millisecond

// canary is the upstream's key: what it shows up in has leaked it.
const canary = "sk-canary-00112233445566778899"

// The test binary is the run shim too, as the program is.
func TestMain(m *testing.M) { shimtest.Main(m) }

// programs is where the programs are; the PATH begins with it.
func programs(t *testing.T) (dir string) {
	t.Helper()
	dir = os.Getenv("SELVAGE_AGENTS")
	if dir == "" {
		dir, _ = filepath.Abs("../../.cache/agents")
	}
	dir = filepath.Join(dir, "bin")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return dir
}

// installed skips where a program is not.
func installed(t *testing.T, dir, program string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
		t.Skipf("%s is not installed; `make clients` does it (needs npm, pip and their registries)", program)
	}
}

// A vendor answers model calls: to a request without the result of a tool it asks
// for one, which runs look; with one it says what it thinks of it.
type vendor struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	keys   map[string]bool
	gate   chan struct{} // while not nil, answers stop halfway until it is closed
	held   chan struct{} // closed once an answer stands still
	gone   int           // askers who left while an answer stood still
}

// look is what the tool does: what the agent can see of its environment.
const look = "env; cat /proc/self/environ; echo seen-$PAPERCLIP_RUN_ID; echo issue=$PAPERCLIP_TASK_ID; echo " +
	"mine=$MINE; pwd; sleep 2"

// unread follows look where a tool has a terminal: Gemini CLI closes that a fifth of a second after
// the command has ended, and on a busy machine loses what it has not read by then. More is written
// than a terminal holds, so that what was before is read; none of it can be seen.
const unread = `; head -c 300000 /dev/zero | tr '\0' '\r'; sleep 2`

func newVendor(t *testing.T, answer func(path, body string) (head, tail string)) *vendor {
	v := &vendor{keys: map[string]bool{}}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.Method != "POST" { // which models there are
			http.NotFound(w, r)
			return
		}
		v.mu.Lock()
		v.bodies = append(v.bodies, string(b))
		v.keys[r.Header.Get("x-api-key")+r.Header.Get("x-goog-api-key")+strings.TrimPrefix(r.Header.Get("Authorization"),
			"Bearer ")] = true
		gate, held := v.gate, v.held
		v.mu.Unlock()
		head, tail := answer(r.URL.Path, string(b))
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, head)
		if gate != nil {
			w.(http.Flusher).Flush()
			v.mu.Lock()
			if v.held != nil {
				close(held)
				v.held = nil
			}
			v.mu.Unlock()
			select {
			case <-gate:
			case <-r.Context().Done():
				v.mu.Lock()
				v.gone++
				v.mu.Unlock()
			}
		}
		_, _ = io.WriteString(w, tail)
	}))
	t.Cleanup(func() { v.CloseClientConnections(); v.Close() })
	return v
}

// said returns all that the vendor was sent.
func (v *vendor) said() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return strings.Join(v.bodies, "\n")
}

func (v *vendor) asked() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.bodies)
}

// left counts the askers who did not wait for the end of an answer.
func (v *vendor) left() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.gone
}

// latest returns the last of all calls.
func (v *vendor) latest() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.bodies[len(v.bodies)-1]
}

// worked counts the calls that offer tools; others are for a title or the like.
func (v *vendor) worked() (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, b := range v.bodies {
		if works(b) {
			n++
		}
	}
	return n
}

// last returns the last of the calls that offer tools.
func (v *vendor) last() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, b := range slices.Backward(v.bodies) {
		if works(b) {
			return b
		}
	}
	return ""
}

func works(body string) bool {
	var q struct{ Tools []json.RawMessage }
	return json.Unmarshal([]byte(body), &q) == nil && len(q.Tools) > 0
}

// hold makes the next answers stand still; the channel is closed when one does.
func (v *vendor) hold() (held <-chan struct{}, release func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.gate, v.held = make(chan struct{}), make(chan struct{})
	gate := v.gate
	return v.held, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.gate, v.held = nil, nil
		close(gate)
	}
}

// events writes server-sent events, each a type and the other members of its data.
func events(list ...[2]string) string {
	var b strings.Builder
	for _, e := range list {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q%s}\n\n", e[0], e[0], e[1])
	}
	return b.String()
}

// anthropic answers as the Messages API does, with 100 tokens in and 10 out.
func anthropic(_, body string) (head, tail string) {
	var q struct {
		Model string
		Tools []struct{ Name string }
	}
	_ = json.Unmarshal([]byte(body), &q)
	start := [2]string{"message_start",
		`,"message":{"id":"msg_01","type":"message","role":"assistant","model":"` + q.Model +
			`","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,` +
			`"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}`}
	end := func(reason string) [2]string {
		return [2]string{"message_delta", `,"delta":{"stop_reason":"` + reason +
			`","stop_sequence":null},"usage":{"output_tokens":10}`}
	}
	if bytes.Contains([]byte(body), []byte(`"tool_result"`)) || len(q.Tools) == 0 {
		return events(start, [2]string{"content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`},
				[2]string{"content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"I have looked "}`}),
			events([2]string{"content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"around."}`},
				[2]string{"content_block_stop", `,"index":0`}, end("end_turn"), [2]string{"message_stop", ""})
	}
	input, _ := json.Marshal(map[string]string{"command": look, "description": "Looks around"})
	part, _ := json.Marshal(string(input))
	return events(start, [2]string{"content_block_start",
			`,"index":0,"content_block":{"type":"tool_use","id":"toolu_01","name":"Bash","input":{}}`}),
		events([2]string{"content_block_delta", `,"index":0,"delta":{"type":"input_json_delta","partial_json":` +
			string(part) + `}`},
			[2]string{"content_block_stop", `,"index":0`}, end("tool_use"), [2]string{"message_stop", ""})
}

// openai answers as the Responses API does, with the same tokens.
func openai(_, body string) (head, tail string) {
	item := `{"id":"msg_1","type":"message","role":"assistant","status":"completed",` +
		`"content":[{"type":"output_text","text":"I have looked around.","annotations":[]}]}`
	if !strings.Contains(body, `"function_call_output"`) {
		args := map[string]any{"cmd": look}
		name := "exec_command"
		if !strings.Contains(body, `"exec_command"`) {
			name, args = "shell", map[string]any{"command": []string{"bash", "-c", look}}
			if strings.Contains(body, `"shell_command"`) {
				name, args = "shell_command", map[string]any{"command": look}
			}
		}
		text, _ := json.Marshal(args)
		quoted, _ := json.Marshal(string(text))
		item = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"` + name +
			`","arguments":` + string(quoted) + `}`
	}
	return events([2]string{"response.created",
			`,"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}`}),
		events([2]string{"response.output_item.done", `,"output_index":0,"item":` + item},
			[2]string{"response.completed",
				`,"response":{"id":"resp_1","object":"response","status":"completed","output":[` + item +
					`],"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":0},"output_tokens":10,` +
					`"output_tokens_details":{"reasoning_tokens":0},"total_tokens":110}}`})
}

// chat answers as an upstream of chat completions does, which the gateway tells to
// Google's client in that one's own dialect; with the same tokens. tool is what the
// program calls the tool that runs commands. A request that offers no tools, such as
// one for a title, gets words.
func chat(tool string) func(path, body string) (head, tail string) {
	return func(_, body string) (head, tail string) {
		message := `{"role":"assistant","content":"I have looked around."}`
		finish := "stop"
		if !strings.Contains(body, `"role":"tool"`) && works(body) {
			command := look
			if tool == "run_shell_command" {
				command += unread
			}
			args, _ := json.Marshal(map[string]string{"command": command, "description": "Looks around"})
			quoted, _ := json.Marshal(string(args))
			message = `{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1",` +
				`"type":"function","function":{"name":"` + tool + `","arguments":` + string(quoted) + `}}]}`
			finish = "tool_calls"
		}
		used := `"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}`
		if !streams(body) {
			return `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":` + message +
				`,"finish_reason":"` + finish + `"}],` + used + `}`, ""
		}
		piece := func(delta, finish string) string {
			return `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` +
				delta + `,"finish_reason":` + finish + "}]}\n\n"
		}
		return piece(`{"role":"assistant","content":""}`, "null"),
			piece(message, "null") + piece("{}", `"`+finish+`"`) +
				`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],` + used +
				"}\n\ndata: [DONE]\n\n"
	}
}

// google answers as Gemini does, with the same tokens: thinking is counted by itself,
// and what it thought of a call is signed.
func google(path, body string) (head, tail string) {
	part := `{"text":"I have looked around."}`
	if !strings.Contains(body, `"functionResponse"`) && works(body) {
		args, _ := json.Marshal(map[string]string{"command": look, "description": "Looks around"})
		part = `{"functionCall":{"name":"run_shell_command","args":` + string(args) + `},"thoughtSignature":"` +
			signature + `"}`
	}
	piece := func(more string) string {
		return `{"candidates":[` + more + `,"modelVersion":"gemini-2.5-pro","responseId":"r"}`
	}
	used := `],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":4,"thoughtsTokenCount":6,` +
		`"totalTokenCount":110}`
	if !strings.HasSuffix(path, ":streamGenerateContent") {
		return piece(`{"content":{"role":"model","parts":[` + part + `]},"finishReason":"STOP","index":0}` + used), ""
	}
	return "data: " + piece(`{"content":{"role":"model","parts":[{"text":"I look","thought":true}]},"index":0}]`) + "\n\n",
		"data: " + piece(`{"content":{"role":"model","parts":[`+part+`]},"index":0}]`) + "\n\ndata: " +
			piece(`{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP","index":0}`+used) + "\n\n"
}

// signature is what Gemini signs its calls with.
const signature = "c2lnbmVkLWJ5LWdlbWluaQ=="

func streams(body string) bool {
	var q struct{ Stream bool }
	return json.Unmarshal([]byte(body), &q) == nil && q.Stream
}

// run is what is looked at of a run.
type run struct {
	ID, Status      string
	Error           string
	ErrorCode       string
	SessionIDBefore string
	SessionIDAfter  string
	ProcessPid      int
	ResultJSON      struct {
		Summary string
		Resumed bool
		Model   string
	}
	UsageJSON struct{ InputTokens, OutputTokens int64 }
}

// wake wakes an agent on a task and returns the run's ID.
func wake(b *testkit.Bed, agent, issue, reason string) string {
	var r struct{ ID string }
	b.Must(0, "POST", "/api/agents/"+agent+"/wakeup", map[string]any{"source": "on_demand", "reason": reason,
		"payload": map[string]any{"issueId": issue}}, &r, testkit.Strong...)
	return r.ID
}

func ended(t *testing.T, b *testkit.Bed, id string) (r run) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		b.Must(0, "GET", "/api/heartbeat-runs/"+id, nil, &r, testkit.Strong...)
		if !entity.RunStatus(r.Status).Live() {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("the run is %s after %s", r.Status, patience)
		}
	}
}

func logOf(b *testkit.Bed, id string) string {
	var log struct{ Content string }
	b.Must(0, "GET", "/api/heartbeat-runs/"+id+"/log?limitBytes=1000000", nil, &log)
	return log.Content
}

// An odd is in what a program is not like the others.
type odd struct {
	side     int  // calls that it may make beside those for the work, such as one for a title
	silent   bool // it does not tell what it used
	lastStep bool // it tells what the last call used, and not those before it
	signs    bool // it keeps what its model signed
}

// results begins what the model is told of the result of its tool, in each of the dialects.
var results = regexp.MustCompile(`"tool_result"|"function_call_output"|"functionResponse"|"role": ?"tool"`)

// Each of the command lines does its work through the gateway: it runs, goes on
// with its session, is paid for, can be stopped as a whole, and sees no key.
func TestRealAgentsWorkThroughTheGateway(t *testing.T) {
	bin, home := programs(t), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("ANTHROPIC_API_KEY", "sk-of-the-node") // stays with the node
	t.Setenv("OPENAI_API_KEY", "sk-of-the-node")
	for _, c := range []struct {
		adapter, program, kind, model, key string
		answer                             func(string, string) (string, string)
		config                             map[string]any
		odd                                odd
	}{
		{"claude_local", "claude", "anthropic", "claude-sonnet-4-5", "ANTHROPIC_API_KEY", anthropic,
			map[string]any{"maxTurnsPerRun": 8}, odd{}},
		{"opencode_local", "opencode", "openai_compatible", "qwen", "OPENAI_API_KEY", chat("bash"), nil, odd{side: 1}},
		{"pi_local", "pi", "openai_compatible", "qwen", "OPENAI_API_KEY", chat("bash"), nil, odd{}},
		{"hermes_local", "hermes", "openai_compatible", "qwen", "OPENAI_API_KEY", chat("terminal"), nil,
			odd{side: 1, silent: true}},
		{"gemini_local", "gemini", "gemini", "gemini-2.5-pro", "GEMINI_API_KEY", google, nil, odd{signs: true}},
		{"acp", "claude-agent-acp", "anthropic", "claude-sonnet-4-5", "ANTHROPIC_API_KEY", anthropic, nil, odd{side: 1}},
		{"acp", "codex-acp", "openai", "gpt-5", "OPENAI_API_KEY", openai, nil, odd{silent: true}},
		{"acp", "opencode", "openai_compatible", "qwen", "OPENAI_API_KEY", chat("bash"),
			map[string]any{"args": []string{"acp"}}, odd{side: 1, lastStep: true}},
		{"acp", "gemini", "openai_compatible", "gemini-2.5-pro", "GEMINI_API_KEY", chat("run_shell_command"),
			map[string]any{"args": []string{"--acp"}}, odd{silent: true}},
		{"codex_local", "codex", "openai", "gpt-5", "OPENAI_API_KEY", openai, map[string]any{"effort": "low"}, odd{}},
	} {
		name := c.adapter
		if name == "acp" {
			name += " " + c.program
		}
		t.Run(name, func(t *testing.T) {
			installed(t, bin, c.program)
			t.Parallel()
			up := newVendor(t, c.answer)
			dir := t.TempDir()
			b := testkit.Mesh(t, 1, func(_ int, conf *node.Config) {
				conf.Adapters, conf.Shim = nil, shimtest.Command
				conf.Dir = filepath.Join(dir, conf.Name)
			})
			of := b.Company("Acme")
			b.Must(0, "POST", "/api/companies/"+string(of)+"/model-providers", map[string]any{"name": "vendor", "kind": c.kind,
				"baseUrl": up.URL + map[bool]string{true: "/v1beta/openai", false: "/v1"}[c.kind == "gemini"],
				"apiKey":  canary, "models": []map[string]string{{"name": "*"}}}, nil)
			// Ten thousand micro-cents a token.
			b.Must(0, "PUT", "/api/companies/"+string(of)+"/model-prices", map[string]any{"model": "*", "input": 10_000_000_000,
				"output": 10_000_000_000}, nil)
			config := map[string]any{"model": c.model, "timeoutSec": 600, "graceSec": 2, "env": map[string]any{
				"MINE": "yes", c.key: "sk-of-the-agent", "PAPERCLIP_RUN_ID": "not this"}}
			for k, v := range c.config {
				config[k] = v
			}
			if c.adapter == "acp" {
				config["command"] = c.program
			}
			var agent struct{ ID string }
			b.Must(0, "POST", "/api/companies/"+string(of)+"/agents", map[string]any{"name": "Ada", "role": "engineer",
				"adapterType": c.adapter, "adapterConfig": config}, &agent, testkit.Strong...)
			b.Must(0, "PUT", "/api/agents/"+agent.ID+"/instructions-bundle/file", map[string]any{"path": "AGENTS.md",
				"content": "Always be marvellously brief."}, nil, testkit.Strong...)
			issue := b.Issue(0, of, "Look around")

			first := ended(t, b, wake(b, agent.ID, issue, "please look"))
			log := logOf(b, first.ID)
			if first.Status != "succeeded" || first.ResultJSON.Summary != "I have looked around." ||
				first.SessionIDAfter == "" || first.ResultJSON.Resumed {
				t.Fatalf("the first run came to %+v\n%s", first, log)
			}
			used := first.UsageJSON
			if want := int64(200); !c.odd.silent {
				if c.odd.lastStep {
					want = 100
				}
				if used.InputTokens != want || used.OutputTokens*10 != want {
					t.Errorf("the first run used %+v, want %d in and a tenth of it out", used, want)
				}
			}
			sent := up.said()
			for _, want := range []string{"please look", issue, "Always be marvellously brief.", "seen-" + first.ID, "issue=" +
				issue, "mine=yes", "paperclip"} {
				if !strings.Contains(sent, want) {
					t.Errorf("the model was not told %q", want)
				}
			}
			if c.odd.signs && !strings.Contains(up.last(), signature) {
				t.Error("what the model signed did not come back to it")
			}
			if t.Failed() {
				last, result := up.last(), ""
				if at := results.FindStringIndex(last); at != nil {
					result = last[max(0, at[0]-6000):]
				}
				t.Logf("the model was told last:\n%.2000s\n[...]\n%.12000s\n%s", last, result, log)
			}
			for _, leak := range []string{"sk-of-the-", canary} {
				if strings.Contains(sent, leak) {
					t.Errorf("the agent has seen the key %q", leak)
				}
			}

			second := ended(t, b, wake(b, agent.ID, issue, "once more"))
			// codex-acp warns of a model that it does not know before; the past is not told again.
			if said := second.ResultJSON.Summary; !strings.HasSuffix(said, "I have looked around.") ||
				strings.Count(said, "looked around") != 1 {
				t.Errorf("the second run says %q", second.ResultJSON.Summary)
			}
			if second.Status != "succeeded" || second.SessionIDBefore != first.SessionIDAfter ||
				second.SessionIDAfter != first.SessionIDAfter || !second.ResultJSON.Resumed {
				t.Errorf("the second run came to %+v\n%s", second, logOf(b, second.ID))
			}
			if last := up.last(); !strings.Contains(last, "please look") || !strings.Contains(last, "once more") {
				t.Error("the second run does not know of the first")
			}
			if !c.odd.silent && second.UsageJSON.InputTokens != 100 {
				t.Errorf("the second run used %+v, want 100 in: its own call alone", second.UsageJSON)
			}

			// Each call was paid, also one for a title: 110 tokens at 10,000 micro-cents.
			var costs []money.CostEvent
			b.Until("all calls are booked", func() bool {
				costs = costsOf(t, b, of, agent.ID)
				return len(costs) == up.asked()
			})
			t.Logf("%d calls, %d of them for the work", up.asked(), up.worked())
			for _, e := range costs {
				if e.InputTokens != 100 || e.OutputTokens != 10 || e.Model != c.model || e.Biller != "vendor" ||
					string(e.Issue) != issue || e.Cost != 110*10_000 {
					t.Errorf("a call was booked as %+v", e)
				}
			}
			if n := up.worked(); n != 3 || len(costs) > n+c.odd.side {
				t.Errorf("the vendor was asked %d times, %d of them for work, want 3 and at most %d others", len(costs),
					n, c.odd.side)
			}
			up.mu.Lock()
			if len(up.keys) != 1 || !up.keys[canary] {
				t.Errorf("the vendor was shown other keys: %d", len(up.keys))
			}
			up.mu.Unlock()

			// Stopped in the middle of an answer, nothing of the tree is left.
			held, release := up.hold()
			id := wake(b, agent.ID, b.Issue(0, of, "Look elsewhere"), "and again")
			select {
			case <-held:
			case <-time.After(patience):
				t.Fatal("the third run asks nothing\n" + logOf(b, id))
			}
			b.Must(0, "POST", "/api/heartbeat-runs/"+id+"/cancel", map[string]any{}, nil, testkit.Strong...)
			third := ended(t, b, id)
			release()
			if third.Status != "cancelled" {
				t.Errorf("the third run came to %+v", third)
			}
			b.Until("no process of the run is left", func() bool { return len(processesOf(third.ID)) == 0 })

			b.Until("the call that was cut off is booked", func() bool { return len(costsOf(t, b, of, agent.ID)) == up.asked() })
			wantNowhere(t, canary, dir, home)
			wantNowhere(t, "sk-of-the-node", dir, home)
			for i, l := range b.Logs {
				if strings.Contains(l.String(), canary) {
					t.Errorf("n%d logs the key", i+1)
				}
			}
		})
	}
}

func costsOf(t *testing.T, b *testkit.Bed, of ledger.CompanyID, agent string) (out []money.CostEvent) {
	t.Helper()
	if _, err := b.Nodes[0].View(t.Context(), ledger.Read{Mode: ledger.ReadStrong}, func(tx *ledger.Tx) error {
		for e := range money.CostsOfAgentSince(tx, of, agent, 0) {
			out = append(out, e)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// processesOf returns the processes that have a run's ID in their environment.
func processesOf(id string) (out []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte("PAPERCLIP_RUN_ID="+id)) {
			out = append(out, path)
		}
	}
	return out
}

// wantNowhere fails when a secret lies in a file below dirs.
func wantNowhere(t *testing.T, secret string, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil // it went away meanwhile
			}
			if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s holds the key", path)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
