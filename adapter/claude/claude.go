// Package claude runs agents with Claude Code, the command line of Anthropic
// (the claude_local adapter).
//
// It is started as `claude --print -` with the prompt on its standard input and
// writes events as lines of JSON. Its configuration and sessions are in .claude in
// the agent's folder, so that an agent sees neither those of other agents nor those
// of the user who runs the node.
package claude

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/adapter/cli"
	"github.com/selvage-mesh/selvage/company/entity"
)

// Tool is Claude Code.
type Tool struct{}

// Program returns "claude".
func (Tool) Program() string { return "claude" }

// asRoot are the tools that may be used without a question. As root, Claude Code refuses the
// flag that skips all questions.
const asRoot = "Bash,Edit,Write,NotebookEdit,Read,Glob,Grep,WebFetch,WebSearch,Task,TodoWrite,Skill"

// elsewhere are variables that would direct calls past the gateway.
var elsewhere = []string{"ANTHROPIC_API_KEY", "ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CODE_OAUTH_TOKEN",
	"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX",
	"CLAUDE_CODE_USE_FOUNDRY", "AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_VERTEX_BASE_URL",
	"ANTHROPIC_UNIX_SOCKET"}

// Options are the members of adapterConfig besides [cli.Options].
type Options struct {
	Chrome bool   `json:"chrome"`
	Tools  string `json:"allowedTools"`
}

// Call returns how Claude Code is started for a run.
func (Tool) Call(r *cli.Run) (cli.Call, error) {
	var more Options
	if err := r.Set(&more); err != nil {
		return cli.Call{}, err
	}
	c := cli.Call{Input: r.Prompt, Args: []string{"--print", "-", "--output-format", "stream-json", "--verbose"},
		Env: map[string]string{}}
	if err := settle(r, c.Env); err != nil {
		return cli.Call{}, err
	}
	add := func(args ...string) { c.Args = append(c.Args, args...) }
	if r.Session != "" {
		add("--resume", r.Session)
	}
	switch {
	case more.Tools != "":
		add("--allowedTools", more.Tools)
	case r.Skip && os.Geteuid() == 0:
		add("--permission-mode", "acceptEdits", "--allowedTools", asRoot)
	case r.Skip:
		add("--dangerously-skip-permissions")
	}
	if more.Chrome {
		add("--chrome")
	}
	if r.Model != "" {
		add("--model", r.Model)
	}
	if r.Effort != "" {
		add("--effort", r.Effort)
	}
	if r.MaxTurns > 0 {
		add("--max-turns", strconv.Itoa(r.MaxTurns))
	}
	if r.InstructionsFile != "" {
		add("--append-system-prompt-file", r.InstructionsFile)
	}
	skills := filepath.Join(r.Scratch, "skills")
	if names, err := r.WriteSkills(filepath.Join(skills, ".claude", "skills")); err != nil {
		return cli.Call{}, err
	} else if len(names) > 0 {
		add("--add-dir", skills)
	}
	if r.Gateway {
		lead(r, c.Env)
	}
	return c, nil
}

// Lead configures another program of the same vendor, which [Tool] does not start, to use the
// node's gateway, and to keep its state in the agent's folder.
func Lead(r *cli.Run, c *cli.Call) error {
	if err := settle(r, c.Env); err != nil {
		return err
	}
	lead(r, c.Env)
	if r.Model != "" {
		c.Env["ANTHROPIC_MODEL"] = r.Model
	}
	return nil
}

// settle puts its state into the agent's folder and its temporary files into the run's: it
// does not use $TMPDIR but a folder of /tmp. It also disables all traffic but model calls.
func settle(r *cli.Run, env map[string]string) (err error) {
	if r.Place.Env["CLAUDE_CODE_TMPDIR"] == "" {
		env["CLAUDE_CODE_TMPDIR"] = r.Place.Scratch
	}
	env["DISABLE_AUTOUPDATER"], env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1", "1"
	env["CLAUDE_CONFIG_DIR"], err = r.Folder(".claude")
	return err
}

// lead sets the variables that direct model calls to the gateway, and removes those that would
// direct them elsewhere.
func lead(r *cli.Run, env map[string]string) {
	for _, k := range elsewhere {
		env[k] = ""
	}
	env["ANTHROPIC_BASE_URL"], env["ANTHROPIC_AUTH_TOKEN"] = r.LLM()+"/anthropic", r.Token
	if !foreign(r.Model) {
		return
	}
	// For side tasks, such as naming a session, it uses small models of the vendor, which
	// this mesh may not have.
	for _, k := range []string{"ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL",
		"ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "CLAUDE_CODE_SUBAGENT_MODEL"} {
		if r.Place.Env[k] == "" {
			env[k] = r.Model
		}
	}
}

// foreign reports whether a model is not of this vendor.
func foreign(model string) bool {
	switch model {
	case "", "default", "sonnet", "opus", "haiku", "fable", "opusplan", "best":
		return false
	}
	return !strings.HasPrefix(model, "claude")
}

// Read returns a reader of Claude Code's events.
func (Tool) Read() cli.Reader { return &reader{} }

// reader handles events: {"type":"system","subtype":"init"} with the session and the model,
// "assistant" with the agent's text, and at the end "result".
type reader struct {
	r    cli.Result
	done bool
}

type event struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Session string `json:"session_id"`
	Model   string `json:"model"`
	Keys    string `json:"apiKeySource"` // "none" if it is signed in with a subscription
	Parent  string `json:"parent_tool_use_id"`
	Message struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	} `json:"message"`

	Error  bool        `json:"is_error"`
	Result string      `json:"result"`
	Errors []string    `json:"errors"`
	Status int         `json:"api_error_status"`
	Turns  int         `json:"num_turns"`
	Cost   json.Number `json:"total_cost_usd"`
	Usage  *struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
		Read   int64 `json:"cache_read_input_tokens"`
		Write  int64 `json:"cache_creation_input_tokens"`
	} `json:"usage"`
}

// Line handles one event and ignores other lines.
func (r *reader) Line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		return
	}
	switch e.Type {
	case "system":
		if e.Subtype == "init" {
			r.r.Session, r.r.Model, r.r.Subscription = e.Session, e.Model, e.Keys == "none"
		}
	case "assistant":
		for _, c := range e.Message.Content {
			if c.Type == "text" && c.Text != "" && e.Parent == "" {
				r.r.Summary = c.Text
			}
		}
	case "result":
		r.result(e)
	}
}

func (r *reader) result(e event) {
	r.done = true
	if e.Session != "" {
		r.r.Session = e.Session
	}
	if e.Result != "" {
		r.r.Summary = e.Result
	}
	r.r.Turns, r.r.CostUSD = e.Turns, e.Cost
	if u := e.Usage; u != nil {
		r.r.Usage = &entity.Usage{InputTokens: u.Input + u.Write, OutputTokens: u.Output, CachedInputTokens: u.Read}
	}
	if !e.Error && (e.Subtype == "" || e.Subtype == "success") {
		return
	}
	r.r.Failed, r.r.Error = true, strings.Join(append([]string{e.Result}, e.Errors...), "\n")
	said := strings.ToLower(r.r.Error)
	switch {
	case strings.Contains(said, "no conversation found"):
		r.r.Lost = true
	case e.Subtype == "error_max_turns":
		r.r.Code = "max_turns"
		if strings.TrimSpace(r.r.Error) == "" {
			r.r.Error = "The agent used all its turns"
		}
	case e.Status == 429 || e.Status >= 500 || strings.Contains(said, "overloaded"),
		strings.Contains(said, "unable to connect"):
		r.r.Code, r.r.Transient = "transient_upstream", true
	case e.Status == 402:
		r.r.Code = "budget_refused"
	case e.Status == 401 || e.Status == 403 || strings.Contains(said, "please run /login"):
		r.r.Code = "auth_required"
	}
	if strings.TrimSpace(r.r.Error) == "" {
		r.r.Error = "Claude Code ended with " + e.Subtype
	}
}

// Result returns the result of the events. Without a "result" event the run has failed.
func (r *reader) Result(string) cli.Result {
	if !r.done {
		r.r.Failed = true
	}
	return r.r
}
