// Package acp runs any agent that speaks the Agent Client Protocol (the acp
// adapter): JSON-RPC 2.0, one message per line, on the agent's standard input and
// output.
//
// The adapter is the client. It sends initialize, session/new and session/prompt; instead of
// session/new, it sends session/load if the last run on the task left a session that the
// agent can load. It receives session/update, answers session/request_permission by policy,
// and reads and writes files for the agent within the run's own folders. The run is over
// when the prompt is answered. On a cancel it sends session/cancel and gives the agent its
// grace time.
//
// adapterConfig is that of a process (command, args, cwd, env, timeoutSec,
// graceSec), and
//
//	permissions     allow (default): allow everything; edits: allow only reading and
//	                editing files; deny: allow nothing
//	model           a model of the agent's, if the agent lets the client choose one
//	promptTemplate  as for command lines
//	gateway         false: no addresses of the model gateway in the environment
package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/selvage-mesh/selvage/adapter/claude"
	"github.com/selvage-mesh/selvage/adapter/cli"
	"github.com/selvage-mesh/selvage/adapter/codex"
	"github.com/selvage-mesh/selvage/adapter/gemini"
	"github.com/selvage-mesh/selvage/adapter/opencode"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/company/entity"
)

const (
	// protocolVersion is the version of the protocol.
	protocolVersion = 1
	// maxSaid bounds the agent's text that is kept; maxFile bounds a file that is read or
	// written for it. Both are in bytes.
	maxSaid = 16 << 10
	maxFile = 4 << 20
	// maxServed bounds the agent's requests that are served concurrently.
	maxServed = 16
	// maxPast bounds the wait for an agent to replay the past of a loaded session.
	maxPast = 10 * time.Second
	// settle is how long an agent may take to close its output after its answer.
	settle = 2 * time.Second
)

// Error codes of JSON-RPC.
const (
	noMethod  = -32601
	badParams = -32602
	internal  = -32603
	mustSign  = -32000 // the agent requires authentication first
)

// A message is a request, a notification or a response.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *rpcError) Error() string { return e.Message }

// Tool is an agent that speaks the protocol, for [cli.New].
type Tool struct {
	past time.Duration // 0: maxPast; for tests
}

// Program returns "": a command has to be configured.
func (Tool) Program() string { return "" }

// known are agents, by the names of their programs, for which an adapter exists: it configures
// the gateway and keeps their state in the agent's folder, and they get no keys. Other agents
// get environment variables, which they may use.
var known = map[string]func(*cli.Run, *cli.Call) error{
	"claude-agent-acp": claude.Lead,
	"claude-code-acp":  claude.Lead,
	"codex-acp":        codex.Lead,
	"gemini":           gemini.Lead,
	"opencode":         opencode.Lead,
}

// Options are the members of adapterConfig besides [cli.Options].
type Options struct {
	Permissions string `json:"permissions"`
}

// Call returns how the agent is started for a run.
func (t Tool) Call(r *cli.Run) (cli.Call, error) {
	var o Options
	if err := r.Set(&o); err != nil {
		return cli.Call{}, err
	}
	if r.Command == "" {
		return cli.Call{}, process.Refuse("configuration_incomplete", "The agent's adapterConfig has no command")
	}
	switch o.Permissions {
	case "", "allow", "edits", "deny":
	default:
		return cli.Call{}, process.Refuse("configuration_incomplete",
			"permissions of the adapterConfig is none of allow, edits and deny")
	}
	if !r.Skip && o.Permissions == "" {
		o.Permissions = "deny"
	}
	if o.Permissions == "edits" || o.Permissions == "deny" {
		r.Skip = false // requests for permission must be sent to the client
	}
	name := strings.TrimSuffix(filepath.Base(r.Command), filepath.Ext(r.Command))
	c := cli.Call{Env: map[string]string{}, State: []string{"." + name, ".config/" + name, ".local/share/" + name,
		".local/state/" + name}}
	if lead := known[name]; lead != nil && r.Gateway {
		if err := lead(r, &c); err != nil {
			return cli.Call{}, err
		}
	} else if r.Gateway {
		for k, v := range map[string]string{"ANTHROPIC_BASE_URL": r.LLM() + "/anthropic", "ANTHROPIC_AUTH_TOKEN": r.Token,
			"OPENAI_BASE_URL": r.LLM() + "/v1", "OPENAI_API_KEY": r.Token,
			"GOOGLE_GEMINI_BASE_URL": r.LLM() + "/gemini", "GEMINI_API_KEY": r.Token} {
			if r.Place.Env[k] == "" {
				c.Env[k] = v
			}
		}
		if r.Model != "" {
			c.Env["ANTHROPIC_MODEL"], c.Env["OPENAI_MODEL"] = r.Model, r.Model
		}
	}
	if _, err := r.WriteSkills(filepath.Join(r.Scratch, "skills")); err != nil {
		return cli.Call{}, err
	}
	has := func(name string) bool { // called after the call's variables are set
		v, set := c.Env[name]
		return v != "" || !set && r.Place.Env[name] != ""
	}
	x := &exchange{run: r, past: cmp.Or(t.past, maxPast), has: has, policy: o.Permissions,
		answers: map[string]chan message{}, closed: make(chan struct{}), over: make(chan struct{}),
		slots: make(chan struct{}, maxServed), log: r.Log,
		roots: []string{r.Place.Dir, r.Home, r.Scratch}}
	c.Talk, c.Over, c.Stop, c.Quiet, c.Reader = x.talk, x.over, x.stop, true, x
	return c, nil
}

// Read returns nil: each call has its own reader.
func (Tool) Read() cli.Reader { return nil }

// An exchange is the conversation of one run. The goroutine that reads the output calls Line;
// talk runs in its own goroutine.
type exchange struct {
	run    *cli.Run
	past   time.Duration
	policy string
	roots  []string
	has    func(variable string) bool // reports whether the agent has an environment variable
	log    func(stream, text string)

	out struct {
		sync.Mutex
		w    *os.File
		over bool
	}
	mu      sync.Mutex // guards the fields below
	next    int
	answers map[string]chan message
	session string
	heeds   bool // the prompt was sent: updates now belong to this run
	told    int  // number of updates received
	said    strings.Builder
	r       cli.Result
	done    bool

	once   sync.Once
	closed chan struct{} // closed at the end of the agent's output
	over   chan struct{} // closed when the prompt is answered, or can not be
	slots  chan struct{} // one token per request that is being served
}

// send writes one message.
func (x *exchange) send(m message) error {
	m.Version = "2.0"
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	x.out.Lock()
	defer x.out.Unlock()
	if x.out.w == nil || x.out.over {
		return errors.New("the agent's input is closed")
	}
	_, err = x.out.w.Write(append(b, '\n'))
	return err
}

// call sends a request and waits for its answer.
func (x *exchange) call(method string, params, result any) error {
	return x.callFor(0, method, params, result)
}

// errNoAnswer says that the agent did not answer a request in time.
var errNoAnswer = errors.New("the agent did not answer in time")

// callFor is call with a timeout; 0 means none.
func (x *exchange) callFor(wait time.Duration, method string, params, result any) error {
	var late <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		late = t.C
	}
	b, err := json.Marshal(params)
	if err != nil {
		return err
	}
	x.mu.Lock()
	x.next++
	id := strconv.Itoa(x.next)
	answer := make(chan message, 1)
	x.answers[id] = answer
	x.mu.Unlock()
	defer func() {
		x.mu.Lock()
		delete(x.answers, id)
		x.mu.Unlock()
	}()
	if err := x.send(message{ID: json.RawMessage(id), Method: method, Params: b}); errors.Is(err, syscall.EPIPE) {
		return errEnded
	} else if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return fmt.Errorf("%s: %w", method, m.Error)
		}
		if result == nil {
			return nil
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			return fmt.Errorf("%s: the answer is malformed: %w", method, err)
		}
		return nil
	case <-x.closed:
		return errEnded
	case <-late:
		return fmt.Errorf("%s: %w", method, errNoAnswer)
	}
}

// errEnded says that the agent has ended or closed its input.
var errEnded = errors.New("the agent ended without an answer")

// talk conducts the conversation. When it returns, the agent's input is closed.
func (x *exchange) talk(w *os.File) {
	x.out.Lock()
	x.out.w = w
	x.out.Unlock()
	err := x.converse()
	x.mu.Lock()
	if err != nil && !x.done {
		x.r.Failed = true
		if !errors.Is(err, errEnded) { // else its exit says more
			x.r.Error = err.Error()
		}
	}
	x.done = true
	x.mu.Unlock()
	x.out.Lock()
	x.out.over = true
	x.out.Unlock()
	close(x.over)
}

func (x *exchange) converse() error {
	var hello struct {
		Version      int `json:"protocolVersion"`
		Capabilities struct {
			Load bool `json:"loadSession"`
		} `json:"agentCapabilities"`
		Auth []way `json:"authMethods"`
	}
	err := x.call("initialize", map[string]any{"protocolVersion": protocolVersion,
		"clientInfo": map[string]string{"name": "selvage", "title": "Selvage", "version": "1"},
		"clientCapabilities": map[string]any{"fs": map[string]bool{"readTextFile": true, "writeTextFile": true},
			"terminal": false}}, &hello)
	if err != nil {
		return err
	}
	if hello.Version != protocolVersion {
		return fmt.Errorf("the agent speaks version %d of the protocol, not %d", hello.Version, protocolVersion)
	}
	if err := x.openSession(hello.Capabilities.Load, hello.Auth); err != nil {
		return err
	}
	if x.run.Model != "" {
		// Not all agents let the client choose the model; those keep their own.
		_ = x.call("session/set_model", map[string]string{"sessionId": x.sessionID(), "modelId": x.run.Model}, nil)
	}
	text := x.run.Told()
	if len(x.run.Skills) > 0 {
		var names []string
		for _, s := range x.run.Skills {
			names = append(names, s.Name)
		}
		text += "\nSkills, one folder each with a SKILL.md, lie in " + filepath.Join(x.run.Scratch, "skills") + ": " +
			strings.Join(names, ", ") + ".\n"
	}
	var end struct {
		Reason string `json:"stopReason"`
		Usage  *struct {
			Input  int64 `json:"inputTokens"`
			Output int64 `json:"outputTokens"`
			Cached int64 `json:"cachedReadTokens"`
		} `json:"usage"`
		Meta struct { // where Gemini CLI reports usage
			Quota struct {
				Tokens *struct {
					Input  int64 `json:"input_tokens"`
					Output int64 `json:"output_tokens"`
				} `json:"token_count"`
			} `json:"quota"`
		} `json:"_meta"`
	}
	x.mu.Lock()
	x.heeds = true
	x.mu.Unlock()
	if err := x.call("session/prompt", map[string]any{"sessionId": x.sessionID(),
		"prompt": []map[string]string{{"type": "text", "text": text}}}, &end); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.done = true
	if u := end.Usage; u != nil {
		x.r.Usage = &entity.Usage{InputTokens: u.Input, OutputTokens: u.Output, CachedInputTokens: u.Cached}
	} else if u := end.Meta.Quota.Tokens; u != nil {
		x.r.Usage = &entity.Usage{InputTokens: u.Input, OutputTokens: u.Output}
	}
	switch end.Reason {
	case "end_turn":
	case "max_tokens", "max_turn_requests":
		x.r.Failed, x.r.Code, x.r.Error = true, "max_turns", "The agent used all that one run may take ("+end.Reason+")"
	case "refusal":
		x.r.Failed, x.r.Code, x.r.Error = true, "model_refusal", "The agent refuses to go on"
	default:
		x.r.Failed, x.r.Error = true, "The agent stopped: "+end.Reason
	}
	return nil
}

// openSession resumes the session of the run, where the agent can load one, or begins a new one.
func (x *exchange) openSession(loads bool, auth []way) error {
	if x.run.Session != "" && loads {
		load := map[string]any{"sessionId": x.run.Session, "cwd": x.run.Place.Dir, "mcpServers": []any{}}
		err := x.begin("session/load", load, nil, auth)
		if err == nil {
			x.setSession(x.run.Session)
			return x.hearOut()
		}
		if errors.Is(err, errEnded) {
			return err
		}
		x.log("system", "[selvage] the session is gone; a new one is begun\n")
	}
	var made struct {
		ID string `json:"sessionId"`
	}
	place := map[string]any{"cwd": x.run.Place.Dir, "mcpServers": []any{}}
	if err := x.begin("session/new", place, &made, auth); err != nil {
		return err
	}
	if made.ID == "" {
		return errors.New("session/new: the agent gave no session")
	}
	x.setSession(made.ID)
	return nil
}

// hearOut waits until an agent that loaded a session has replayed its past: some agents
// answer session/load first and replay afterwards. An agent's output is in order, so each
// answer to a request, even an error, shows that everything before it has arrived. If nothing
// arrived between two answers, the replay is complete.
func (x *exchange) hearOut() error {
	heard := func() int {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.told
	}
	until := time.Now().Add(x.past)
	for before, quiet := heard(), 0; quiet < 2 && time.Now().Before(until); {
		if err := x.callFor(time.Until(until), "_selvage/hear_out", map[string]string{"sessionId": x.sessionID()},
			nil); errors.Is(err, errEnded) {
			return err
		}
		n := heard()
		if quiet++; n != before {
			before, quiet = n, 0
		}
	}
	return nil
}

// A way is an authentication method that an agent offers.
type way struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Vars []struct {
		Name string `json:"name"`
	} `json:"vars"`
}

// begin sends the request that starts a session. If the agent requires authentication first,
// begin selects a method that takes a key from the agent's environment.
func (x *exchange) begin(method string, params, result any, ways []way) error {
	err := x.call(method, params, result)
	if e, ok := errors.AsType[*rpcError](err); !ok || e.Code != mustSign {
		return err
	}
	for _, w := range ways {
		able := w.Type == "env_var" && len(w.Vars) > 0
		for _, v := range w.Vars {
			able = able && x.has(v.Name)
		}
		if able || w.Type == "" && strings.HasSuffix(w.ID, "api-key") {
			if x.call("authenticate", map[string]string{"methodId": w.ID}, nil) == nil {
				return x.call(method, params, result)
			}
		}
	}
	x.mu.Lock()
	x.r.Code = "auth_required"
	x.mu.Unlock()
	return err
}

func (x *exchange) setSession(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.session = id
}

func (x *exchange) sessionID() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.session
}

// stop asks the agent to end its turn, and returns how long it may take.
func (x *exchange) stop() time.Duration {
	id := x.sessionID()
	if id == "" {
		return 0
	}
	b, err := json.Marshal(map[string]string{"sessionId": id})
	if err != nil || x.send(message{Method: "session/cancel", Params: b}) != nil {
		return 0
	}
	return settle
}

// Line handles one message of the agent.
func (x *exchange) Line(line []byte) {
	var m message
	if json.Unmarshal(line, &m) != nil {
		x.log("stdout", string(line)+"\n") // not a message of the protocol
		return
	}
	switch {
	case m.Method == "" && len(m.ID) > 0:
		x.mu.Lock()
		answer := x.answers[strings.Trim(string(m.ID), `"`)]
		x.mu.Unlock()
		if answer != nil {
			select {
			case answer <- m:
			default: // a second answer
			}
		}
	case m.Method == "session/update":
		x.update(m.Params)
	case m.Method != "" && len(m.ID) > 0:
		// In its own goroutine: an agent that writes much before it reads would block on us
		// while we block on it.
		x.slots <- struct{}{}
		go func() {
			defer func() { <-x.slots }()
			x.answer(m)
		}()
	}
}

// answer serves a request of the agent.
func (x *exchange) answer(m message) {
	result, err := x.serve(m.Method, m.Params)
	answer := message{ID: m.ID, Error: err}
	if err == nil {
		b, bad := json.Marshal(result)
		if answer.Result = b; bad != nil {
			answer.Result, answer.Error = nil, &rpcError{Code: internal, Message: bad.Error()}
		}
	}
	_ = x.send(answer) // an agent that has ended needs no answer
}

// Result ends the conversation and returns its result.
func (x *exchange) Result(string) cli.Result {
	x.once.Do(func() { close(x.closed) })
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.done {
		x.r.Failed = true
	}
	x.r.Session, x.r.Summary = x.session, strings.TrimSpace(x.said.String())
	return x.r
}

// update handles a session/update notification.
func (x *exchange) update(params json.RawMessage) {
	var p struct {
		Session string `json:"sessionId"`
		Update  struct {
			Kind    string `json:"sessionUpdate"`
			Title   string `json:"title"`
			Status  string `json:"status"`
			Content json.RawMessage
		} `json:"update"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	x.mu.Lock()
	x.told++
	now := x.heeds && p.Session == x.session
	x.mu.Unlock()
	if !now {
		return // part of the past, replayed after session/load
	}
	var c struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	_ = json.Unmarshal(p.Update.Content, &c) // other kinds of content have no text
	switch p.Update.Kind {
	case "agent_message_chunk":
		x.log("stdout", c.Text)
		x.mu.Lock()
		if x.said.Len()+len(c.Text) <= maxSaid {
			x.said.WriteString(c.Text)
		}
		x.mu.Unlock()
	case "tool_call":
		x.log("stdout", "\n[tool] "+p.Update.Title+"\n")
		x.mu.Lock()
		x.said.Reset() // only text after the last tool call is the result
		x.mu.Unlock()
	case "tool_call_update":
		if p.Update.Status == "failed" {
			x.log("stdout", "[tool] failed\n")
		}
	}
}
