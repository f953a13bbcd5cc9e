// Package codex runs agents with Codex, the command line of OpenAI (the
// codex_local adapter).
//
// It is started as `codex exec --json … -`, or `codex exec resume … ID -`, with
// the prompt on its standard input and writes events as lines of JSON. Its
// configuration, sessions and skills are in .codex in the agent's folder. Arguments configure
// the model gateway as a custom provider, whose key is the run's token.
package codex

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/adapter/cli"
	"github.com/selvage-mesh/selvage/company/entity"
)

// Tool is Codex.
type Tool struct{}

// Program returns "codex".
func (Tool) Program() string { return "codex" }

// provider is the gateway's name in Codex's configuration.
const provider = "selvage"

// Options are the members of adapterConfig besides [cli.Options].
type Options struct {
	Effort string `json:"modelReasoningEffort"`
	Bypass *bool  `json:"dangerouslyBypassApprovalsAndSandbox"`
	Search bool   `json:"search"`
}

// Call returns how Codex is started for a run.
func (Tool) Call(r *cli.Run) (cli.Call, error) {
	var more Options
	if err := r.Set(&more); err != nil {
		return cli.Call{}, err
	}
	c := cli.Call{Input: r.Told(), Env: map[string]string{}, Args: []string{"exec"}}
	if r.Session != "" {
		c.Args = append(c.Args, "resume")
	}
	c.Args = append(c.Args, "--json", "--skip-git-repo-check")
	set := func(key, value string) { set(&c, key, value) }
	if err := settle(r, &c); err != nil {
		return cli.Call{}, err
	}
	if err := r.KeepSkills(filepath.Join(c.Env["CODEX_HOME"], "skills")); err != nil {
		return cli.Call{}, err
	}
	if skip := r.Skip; more.Bypass != nil && *more.Bypass || more.Bypass == nil && skip {
		c.Args = append(c.Args, "--dangerously-bypass-approvals-and-sandbox")
	} else {
		set("sandbox_mode", `"workspace-write"`)
		set("approval_policy", `"never"`)
	}
	if r.Model != "" {
		set("model", quoted(r.Model))
	}
	if r.Effort != "" {
		more.Effort = r.Effort
	}
	if more.Effort != "" {
		set("model_reasoning_effort", quoted(more.Effort))
	}
	if more.Search {
		set("tools.web_search", "true")
	}
	if r.Gateway {
		lead(r, &c)
	}
	if r.Session != "" {
		c.Args = append(c.Args, r.Session)
	}
	// The prompt has to be the last argument.
	c.Args = append(append(append(c.Args, r.Extra...), r.Options.Args...), "-")
	r.Extra, r.Options.Args = nil, nil
	return c, nil
}

// set adds an argument that overrides the configuration.
func set(c *cli.Call, key, value string) { c.Args = append(c.Args, "-c", key+"="+value) }

// Lead configures another program of the same vendor with the same configuration, which [Tool]
// does not start, to use the node's gateway, and to keep its state in the agent's folder.
func Lead(r *cli.Run, c *cli.Call) error {
	if err := settle(r, c); err != nil {
		return err
	}
	if r.Skip { // the shim confines it; a second sandbox inside does not start on every machine
		set(c, "sandbox_mode", `"danger-full-access"`)
	}
	if r.Model != "" {
		set(c, "model", quoted(r.Model))
	}
	lead(r, c)
	return nil
}

// settle puts its state into the agent's folder and sets what applies to every run.
func settle(r *cli.Run, c *cli.Call) (err error) {
	c.Env["CODEX_HOME"], err = r.Folder(".codex")
	set(c, "check_for_update_on_startup", "false")
	set(c, "analytics.enabled", "false")
	// Its shell hides variables with KEY or TOKEN in the name; the agent needs the run's.
	set(c, "shell_environment_policy.ignore_default_excludes", "true")
	return err
}

// lead makes the gateway the provider and removes what would direct calls elsewhere.
func lead(r *cli.Run, c *cli.Call) {
	set(c, "model_provider", quoted(provider))
	set(c, "model_providers."+provider,
		`{name="Selvage",base_url=`+quoted(r.LLM()+"/v1")+`,env_key="PAPERCLIP_API_KEY",wire_api="responses"}`)
	for _, k := range []string{"OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORGANIZATION",
		"OPENAI_PROJECT"} {
		c.Env[k] = ""
	}
}

// quoted writes a TOML string; its escapes are those of JSON.
func quoted(s string) string { return strconv.Quote(strings.ToValidUTF8(s, "")) }

// Read returns a reader of Codex's events.
func (Tool) Read() cli.Reader { return &reader{} }

// reader handles events: thread.started with the session, item.completed with the agent's text
// and actions, turn.completed with the usage of the whole session, turn.failed and error.
type reader struct {
	r     cli.Result
	ended bool
}

// Line handles one event and ignores other lines.
func (r *reader) Line(line []byte) {
	var e struct {
		Type   string `json:"type"`
		Thread string `json:"thread_id"`
		Item   struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"item"`
		Usage *struct {
			Input  int64 `json:"input_tokens"`
			Cached int64 `json:"cached_input_tokens"`
			Output int64 `json:"output_tokens"`
		} `json:"usage"`
		Message string `json:"message"`
		Error   struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(line, &e) != nil {
		return
	}
	switch e.Type {
	case "thread.started":
		r.r.Session = e.Thread
	case "item.completed":
		if e.Item.Type == "agent_message" && e.Item.Text != "" {
			r.r.Summary = e.Item.Text
		}
	case "turn.completed":
		r.ended = true
		r.r.Turns++
		if u := e.Usage; u != nil {
			r.r.Usage = &entity.Usage{InputTokens: u.Input - min(u.Cached, u.Input), CachedInputTokens: u.Cached,
				OutputTokens: u.Output}
			r.r.Cumulative = true
		}
	case "turn.failed":
		r.ended = true
		r.fail(e.Error.Message)
	case "error":
		// Codex retries by itself; only the end of the turn counts.
		r.r.Error = e.Message
	}
}

func (r *reader) fail(message string) {
	r.r.Failed, r.r.Error = true, message
	said := strings.ToLower(message)
	switch {
	case strings.Contains(said, "402"):
		r.r.Code = "budget_refused"
	case strings.Contains(said, "401") || strings.Contains(said, "403"):
		r.r.Code = "auth_required"
	case strings.Contains(said, "429"), strings.Contains(said, "stream disconnected"),
		strings.Contains(said, "error sending request"),
		strings.Contains(said, "500"), strings.Contains(said, "502"), strings.Contains(said, "503"),
		strings.Contains(said, "504"):
		r.r.Code, r.r.Transient = "transient_upstream", true
	}
}

// Result returns the result of the events. If the session does not exist, there are none.
func (r *reader) Result(string) cli.Result {
	if !r.ended {
		r.r.Failed, r.r.Lost = true, r.r.Session == ""
	} else if !r.r.Failed {
		r.r.Error = ""
	}
	return r.r
}
