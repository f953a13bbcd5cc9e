package acp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/cli/clitest"
	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/company/entity"
)

// The test binary also plays the agent.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "acp-agent" {
		(&agent{mode: os.Args[2], in: bufio.NewScanner(os.Stdin)}).run()
		os.Exit(0)
	}
	shimtest.Main(m)
}

// An agent is the agent's side of the protocol.
type agent struct {
	mode   string
	in     *bufio.Scanner
	asks   int
	past   int // number of replayed messages that are left to send
	signed bool
}

func (a *agent) send(m map[string]any) {
	m["jsonrpc"] = "2.0"
	b, _ := json.Marshal(m)
	fmt.Println(string(b))
}

func (a *agent) read() (m message, ok bool) {
	if !a.in.Scan() {
		return m, false
	}
	return m, json.Unmarshal(a.in.Bytes(), &m) == nil
}

func (a *agent) update(session, kind string, more map[string]any) {
	more["sessionUpdate"] = kind
	a.send(map[string]any{"method": "session/update", "params": map[string]any{"sessionId": session, "update": more}})
}

func (a *agent) say(session, text string) {
	a.update(session, "agent_message_chunk", map[string]any{"content": map[string]string{"type": "text", "text": text}})
}

// ask sends a request to the client and returns the answer as text.
func (a *agent) ask(method string, params map[string]any) string {
	a.asks++
	a.send(map[string]any{"id": fmt.Sprint("a", a.asks), "method": method, "params": params})
	m, _ := a.read()
	if m.Error != nil {
		return m.Error.Message
	}
	return string(m.Result)
}

func (a *agent) run() {
	a.in.Buffer(nil, 8<<20)
	if a.mode == "garbage" {
		fmt.Println("Welcome!\n{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n[1]\nnull")
	}
	dir, _ := os.Getwd()
	for {
		m, ok := a.read()
		if !ok {
			if a.mode == "stay" {
				time.Sleep(time.Minute)
			}
			return
		}
		answer := func(result any) { a.send(map[string]any{"id": m.ID, "result": result}) }
		switch m.Method {
		case "initialize":
			version := 1
			if a.mode == "old" {
				version = 0
			}
			answer(map[string]any{"protocolVersion": version,
				"agentCapabilities": map[string]any{"loadSession": a.mode != "forgetful"}, "authMethods": []any{
					map[string]any{"id": "browser", "name": "In a browser"},
					map[string]any{"id": "other", "type": "env_var", "vars": []any{map[string]any{"name": "NOBODY_SET_THIS"}}},
					map[string]any{"id": "right", "type": "env_var", "vars": []any{map[string]any{"name": "OPENAI_API_KEY"}}}}})
		case "authenticate":
			if !strings.Contains(string(m.Params), `"right"`) || os.Getenv("OPENAI_API_KEY") == "" {
				a.send(map[string]any{"id": m.ID, "error": map[string]any{"code": -32602, "message": "not so"}})
				continue
			}
			a.signed = true
			answer(map[string]any{})
		case "session/new":
			if a.mode == "sign" && !a.signed {
				a.send(map[string]any{"id": m.ID, "error": map[string]any{"code": -32000, "message": "Authentication required"}})
				continue
			}
			answer(map[string]string{"sessionId": "sess-1"})
		case "session/load":
			if !strings.Contains(string(m.Params), `"sess-1"`) {
				a.send(map[string]any{"id": m.ID, "error": map[string]any{"code": -32002, "message": "no such session"}})
				continue
			}
			a.say("sess-1", "What was said before. ")
			answer(nil)
			a.say("sess-1", "What was said just before. ") // some agents continue after their answer
			a.past = 3
		case "session/prompt":
			a.prompt(m, dir, answer)
		case "session/cancel":
		default:
			if a.mode == "mute" {
				continue
			}
			a.send(map[string]any{"id": m.ID, "error": map[string]any{"code": -32601, "message": "unknown"}})
			if a.past--; a.past >= 0 {
				a.say("sess-1", "And before. ")
			}
		}
	}
}

func (a *agent) prompt(m message, dir string, answer func(any)) {
	const s = "sess-1"
	switch a.mode {
	case "die":
		fmt.Fprintln(os.Stderr, "out of luck")
		os.Exit(3)
	case "refuse":
		answer(map[string]string{"stopReason": "refusal"})
		return
	case "hang":
		a.say(s, "thinking")
		for {
			if n, ok := a.read(); !ok || n.Method == "session/cancel" {
				answer(map[string]string{"stopReason": "cancelled"})
				return
			}
		}
	}
	a.update(s, "tool_call", map[string]any{"toolCallId": "t1", "title": "Write a file", "kind": "edit"})
	permission := func(kind string) string {
		return a.ask("session/request_permission", map[string]any{"sessionId": s,
			"toolCall": map[string]string{"toolCallId": "t1", "title": "Do it", "kind": kind},
			"options": []map[string]string{{"optionId": "no", "kind": "reject_once", "name": "No"},
				{"optionId": "yes", "kind": "allow_once", "name": "Yes"}}})
	}
	a.say(s, "edit "+permission("edit")+" execute "+permission("execute"))
	a.say(s, " write "+a.ask("fs/write_text_file", map[string]any{"sessionId": s, "path": filepath.Join(dir, "a/b.txt"),
		"content": "one\ntwo\nthree\n"}))
	a.say(s, " read "+a.ask("fs/read_text_file", map[string]any{"sessionId": s, "path": filepath.Join(dir, "a/b.txt"),
		"line": 2, "limit": 1}))
	a.say(s, " outside "+a.ask("fs/read_text_file", map[string]any{"sessionId": s, "path": "/etc/passwd"}))
	_ = os.Symlink("/etc", filepath.Join(dir, "link"))
	a.say(s, " link "+a.ask("fs/read_text_file", map[string]any{"sessionId": s,
		"path": filepath.Join(dir, "link/passwd")}))
	a.say(s, " terminal "+a.ask("terminal/create", map[string]any{"sessionId": s, "command": "sh"}))
	if strings.Contains(string(m.Params), "task-1") {
		a.say(s, " told")
	}
	answer(map[string]any{"stopReason": "end_turn", "usage": map[string]int{"inputTokens": 11, "outputTokens": 3,
		"totalTokens": 14}})
}

func bed(t *testing.T, mode string, more map[string]any) *clitest.Bed {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	grace := 30 // a busy machine may take some time to answer
	if mode == "stay" {
		grace = 3
	}
	c := map[string]any{"command": self, "args": []string{"acp-agent", mode}, "graceSec": grace}
	for k, v := range more {
		c[k] = v
	}
	return clitest.New(t, Tool{}, c, "true")
}

func TestAnAgentWorksOverTheProtocol(t *testing.T) {
	t.Parallel()
	b := bed(t, "ok", nil)
	o := b.Invoke()
	want := `edit {"outcome":{"optionId":"yes","outcome":"selected"}} execute {"outcome":{"optionId":"yes",` +
		`"outcome":"selected"}} write null read {"content":"two\n"}` +
		` outside path is outside of the run's folders link `
	got := clitest.Summary(o)
	if o.Status != entity.RunSucceeded || o.SessionID != "sess-1" || !strings.HasPrefix(got, want) ||
		!strings.HasSuffix(got, " terminal there is no terminal/create here told") ||
		strings.Contains(got, "root:") || *o.Usage != (entity.Usage{InputTokens: 11, OutputTokens: 3}) {
		t.Fatalf("%+v\n%s", o, got)
	}
	if s, err := os.ReadFile(filepath.Join(b.Dir, "workspaces/agent-1/a/b.txt")); err != nil ||
		string(s) != "one\ntwo\nthree\n" {
		t.Errorf("the file is %q, %v", s, err)
	}
	if !strings.Contains(b.Log("stdout"), "[tool] Write a file") || !strings.Contains(b.Log("system"),
		"asked for permission, allowed: Do it") {
		t.Errorf("log %q %q", b.Log("stdout"), b.Log("system"))
	}
	// The next run resumes the session; the replayed past is not part of its result.
	o = b.Again(o)
	if o.Status != entity.RunSucceeded || strings.Contains(clitest.Summary(o), "before") ||
		!strings.Contains(string(o.Result), `"resumed":true`) {
		t.Errorf("%+v %s", o, o.Result)
	}
	o.SessionParams = []byte(strings.Replace(string(o.SessionParams), "sess-1", "sess-9", 1))
	if o = b.Again(o); o.Status != entity.RunSucceeded || o.SessionID != "sess-1" || strings.Contains(string(o.Result),
		`"resumed":true`) {
		t.Errorf("%+v %s", o, o.Result)
	}
}

// An agent that does not answer a request which it does not know does not block the run.
func TestAnAgentThatIsMuteIsToldAllTheSame(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := clitest.New(t, Tool{past: 50 * time.Millisecond}, map[string]any{"command": self,
		"args": []string{"acp-agent", "mute"}, "graceSec": 3}, "true")
	if o := b.Again(b.Invoke()); o.Status != entity.RunSucceeded || !strings.HasSuffix(clitest.Summary(o), " told") ||
		!strings.Contains(string(o.Result), `"resumed":true`) {
		t.Errorf("%+v %s", o, o.Result)
	}
}

func TestAnAgentThatWantsToBeSignedInTakesItsKey(t *testing.T) {
	t.Parallel()
	if o := bed(t, "sign", nil).Invoke(); o.Status != entity.RunSucceeded {
		t.Errorf("with the gateway's: %+v", o)
	}
	if o := bed(t, "sign", map[string]any{"gateway": false}).Invoke(); o.Status != entity.RunFailed ||
		o.ErrorCode != "auth_required" {
		t.Errorf("without any: %+v", o)
	}
}

// Agents that are known use the gateway by their own configuration, and get no key from the
// agent's variables.
func TestKnownAgentsAreLedToTheGateway(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"claude-agent-acp": {"ANTHROPIC_BASE_URL=http", "/llm/anthropic", "ANTHROPIC_MODEL=m1", "/.claude",
			"CLAUDE_CODE_TMPDIR=/"},
		"codex-acp": {"CODEX_HOME=", `model_provider="selvage"`, `model="m1"`, "/llm/v1"},
		"gemini":    {"GOOGLE_GEMINI_BASE_URL=http", "/llm/gemini", "GEMINI_CLI_HOME=", "--model m1"},
		"opencode":  {"OPENCODE_CONFIG_CONTENT=", `"model":"selvage/m1"`, "/.opencode/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(at, []byte("#!/bin/sh\necho \"$@\"\nenv\nexit 3\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			b := bed(t, "ok", map[string]any{"command": at, "model": "m1",
				"env": map[string]string{"ANTHROPIC_API_KEY": "sk-own", "OPENAI_API_KEY": "sk-own", "GEMINI_API_KEY": "sk-own"}})
			b.Invoke()
			own := map[string]string{"claude-agent-acp": "ANTHROPIC_API_KEY", "codex-acp": "OPENAI_API_KEY",
				"gemini": "GEMINI_API_KEY", "opencode": "ANTHROPIC_API_KEY"}[name]
			log := b.Log("stdout")
			for _, w := range want {
				if !strings.Contains(log, w) {
					t.Errorf("it was not told %q:\n%s", w, log)
				}
			}
			if strings.Contains(log, own+"=sk-own") {
				t.Errorf("it has %s", own)
			}
		})
	}
}

func TestPermissionsAreAnsweredByPolicy(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{
		"edits": `edit {"outcome":{"optionId":"yes","outcome":"selected"}} execute {"outcome":{"optionId":"no",` +
			`"outcome":"selected"}} write null`,
		"deny": `edit {"outcome":{"optionId":"no","outcome":"selected"}} execute {"outcome":{"optionId":"no",` +
			`"outcome":"selected"}} write the agent may not write`,
	} {
		if got := clitest.Summary(bed(t, "ok", map[string]any{"permissions": policy}).
			Invoke()); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", policy, got)
		}
	}
	if o := bed(t, "ok", map[string]any{"permissions": "maybe"}).Invoke(); o.ErrorCode != "configuration_incomplete" {
		t.Errorf("%+v", o)
	}
}

func TestHowItEnds(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]struct{ status, code, message string }{
		"garbage":   {"succeeded", "", ""},
		"forgetful": {"succeeded", "", ""},
		"stay":      {"succeeded", "", ""},
		"die":       {"failed", "adapter_failed", "Process exited with code 3: out of luck"},
		"refuse":    {"failed", "model_refusal", "The agent refuses to go on"},
		"old":       {"failed", "adapter_failed", "the agent speaks version 0 of the protocol, not 1"},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			o := bed(t, mode, nil).Invoke()
			if string(o.Status) != want.status || o.ErrorCode != want.code || o.Error != want.message {
				t.Errorf("%s %q %q", o.Status, o.ErrorCode, o.Error)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		b := bed(t, "hang", nil)
		go func() {
			for !strings.Contains(b.Log("stdout"), "thinking") {
				time.Sleep(5 * time.Millisecond)
			}
			b.Cancel("run-1", "")
		}()
		o := b.Invoke()
		if o.Status != entity.RunCancelled || o.SessionID != "sess-1" || o.Signal != "" {
			t.Errorf("%+v", o)
		}
	})
	if o := clitest.New(t, Tool{}, nil, "true").Invoke(); o.ErrorCode != "configuration_incomplete" {
		t.Errorf("without a command: %+v", o)
	}
}
