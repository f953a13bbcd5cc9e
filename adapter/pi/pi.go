// Package pi runs agents with pi, the coding agent (the pi_local adapter).
//
// It is started as `pi --mode json -p` with the prompt on its standard input.
// Sessions are in .pi in the agent's folder; its configuration is in the run's scratch
// directory, because it names the run's model. The model gateway is configured as a custom
// provider, whose key is the run's token.
package pi

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/adapter/cli"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/company/entity"
)

// Tool is pi.
type Tool struct{}

// Program returns "pi".
func (Tool) Program() string { return "pi" }

// provider is the gateway's name in pi's configuration.
const provider = "selvage"

// Options are the members of adapterConfig besides [cli.Options].
type Options struct {
	Provider string `json:"provider"`
	Thinking string `json:"thinking"`
}

// Call returns how pi is started for a run.
func (Tool) Call(r *cli.Run) (cli.Call, error) {
	var more Options
	if err := r.Set(&more); err != nil {
		return cli.Call{}, err
	}
	sessions, err := r.Folder(filepath.Join(".pi", "sessions"))
	if err != nil {
		return cli.Call{}, err
	}
	c := cli.Call{Input: r.Prompt, Env: map[string]string{"PI_TELEMETRY": "0"}, Args: []string{"--mode", "json", "-p",
		"--offline", "--session-dir", sessions}}
	add := func(args ...string) { c.Args = append(c.Args, args...) }
	if r.Gateway {
		if r.Model == "" {
			return cli.Call{}, process.Refuse("configuration_incomplete",
				"The agent's adapterConfig has no model, which pi has to be told")
		}
		more.Provider = provider
		dir := filepath.Join(r.Scratch, "pi")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return cli.Call{}, err
		}
		b, err := json.Marshal(map[string]any{"providers": map[string]any{provider: map[string]any{"baseUrl": r.LLM() + "/v1",
			"api":    "openai-completions",
			"apiKey": "PAPERCLIP_API_KEY", "models": []map[string]string{{"id": r.Model}}}}})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "models.json"), b, 0o600)
		}
		if err != nil {
			return cli.Call{}, err
		}
		c.Env["PI_CODING_AGENT_DIR"] = dir
		cli.NoKeys(c.Env)
	} else {
		c.State = []string{".pi"} // it stores its sign-in there
	}
	if more.Provider != "" {
		add("--provider", more.Provider)
	}
	if r.Model != "" {
		add("--model", r.Model)
	}
	if r.Effort != "" {
		more.Thinking = r.Effort
	}
	if more.Thinking != "" {
		add("--thinking", more.Thinking)
	}
	if r.InstructionsFile != "" {
		add("--append-system-prompt", r.InstructionsFile)
	}
	skills := filepath.Join(r.Scratch, "skills")
	if names, err := r.WriteSkills(skills); err != nil {
		return cli.Call{}, err
	} else if len(names) > 0 {
		add("--skill", skills)
	}
	if r.Session != "" {
		add("--session", r.Session)
	}
	return c, nil
}

// Read returns a reader of pi's events.
func (Tool) Read() cli.Reader { return &reader{} }

// reader handles events: session, message_end with the agent's text and usage, and agent_end.
type reader struct {
	r     cli.Result
	cost  float64
	ended bool
	fault string
}

// Line handles one event and ignores other lines.
func (r *reader) Line(line []byte) {
	var e struct {
		Type    string          `json:"type"`
		ID      string          `json:"id"`
		Message json.RawMessage `json:"message"`
	}
	if json.Unmarshal(line, &e) != nil {
		return
	}
	switch e.Type {
	case "session":
		r.r.Session = e.ID
	case "agent_end":
		r.ended = true
	case "message_end":
		r.message(e.Message)
	case "error":
		_ = json.Unmarshal(e.Message, &r.fault) // another type has no text
	}
}

func (r *reader) message(raw json.RawMessage) {
	var m struct {
		Role    string `json:"role"`
		Model   string `json:"model"`
		Stop    string `json:"stopReason"`
		Error   string `json:"errorMessage"`
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		Usage struct {
			Input      int64 `json:"input"`
			Output     int64 `json:"output"`
			CacheRead  int64 `json:"cacheRead"`
			CacheWrite int64 `json:"cacheWrite"`
			Cost       struct {
				Total float64 `json:"total"`
			} `json:"cost"`
		} `json:"usage"`
	}
	if json.Unmarshal(raw, &m) != nil || m.Role != "assistant" {
		return
	}
	var said []string
	for _, c := range m.Content {
		if s := strings.TrimSpace(c.Text); c.Type == "text" && s != "" {
			said = append(said, s)
		}
	}
	if len(said) > 0 {
		r.r.Summary = strings.Join(said, "\n\n")
	}
	if r.r.Usage == nil {
		r.r.Usage = &entity.Usage{}
	}
	r.r.Usage.InputTokens += m.Usage.Input + m.Usage.CacheWrite
	r.r.Usage.CachedInputTokens += m.Usage.CacheRead
	r.r.Usage.OutputTokens += m.Usage.Output
	r.cost += m.Usage.Cost.Total
	r.r.Model, r.fault = m.Model, ""
	r.r.Turns++
	if m.Stop == "error" || m.Stop == "aborted" {
		if r.fault = m.Error; r.fault == "" {
			r.fault = "The model's answer was " + m.Stop
		}
	}
}

// Result returns the result of the events. Without a session event there was no session to
// resume.
func (r *reader) Result(string) cli.Result {
	if r.cost > 0 {
		r.r.CostUSD = json.Number(strconv.FormatFloat(r.cost, 'f', -1, 64))
	}
	if !r.ended || r.fault != "" {
		r.r.Failed, r.r.Error, r.r.Lost = true, r.fault, r.r.Session == ""
	}
	return r.r
}
