// Package cursor runs agents with Cursor's command line (the cursor adapter).
//
// It is started as `cursor-agent --print --output-format stream-json` with the
// prompt on its standard input. Its models are available only from its vendor, with
// CURSOR_API_KEY from the agent's variables (best as a reference to a secret) or with the
// sign-in of the node's user. It does not use the model gateway.
package cursor

import (
	"encoding/json"
	"strings"

	"github.com/selvage-mesh/selvage/adapter/cli"
	"github.com/selvage-mesh/selvage/company/entity"
)

// Tool is Cursor's command line.
type Tool struct{}

// Program returns "cursor-agent".
func (Tool) Program() string { return "cursor-agent" }

// Options are the members of adapterConfig besides [cli.Options].
type Options struct {
	Mode string `json:"mode"` // plan or ask; neither changes anything
}

// Call returns how Cursor's command line is started for a run.
func (Tool) Call(r *cli.Run) (cli.Call, error) {
	var more Options
	if err := r.Set(&more); err != nil {
		return cli.Call{}, err
	}
	c := cli.Call{Input: r.Told(), State: []string{".cursor", ".config/cursor"},
		Args: []string{"--print", "--output-format", "stream-json", "--workspace", r.Place.Dir, "--trust"}}
	if r.Skip {
		c.Args = append(c.Args, "--force")
	}
	if more.Mode != "" {
		c.Args = append(c.Args, "--mode", more.Mode)
	}
	if r.Model != "" && r.Model != "auto" {
		c.Args = append(c.Args, "--model", r.Model)
	}
	if r.Session != "" {
		c.Args = append(c.Args, "--resume", r.Session)
	}
	return c, nil
}

// Read returns a reader of Cursor's events.
func (Tool) Read() cli.Reader { return &reader{} }

// reader handles events: system with the session and the model, assistant with the agent's
// text, error, and result.
type reader struct {
	r     cli.Result
	ended bool
}

// Line handles one event and ignores other lines.
func (r *reader) Line(line []byte) {
	var e struct {
		Type    string          `json:"type"`
		Subtype string          `json:"subtype"`
		Session string          `json:"session_id"`
		Model   string          `json:"model"`
		Message json.RawMessage `json:"message"`
		Error   bool            `json:"is_error"`
		Result  string          `json:"result"`
		Usage   *struct {
			Input  int64 `json:"inputTokens"`
			Output int64 `json:"outputTokens"`
			Read   int64 `json:"cacheReadTokens"`
			Write  int64 `json:"cacheWriteTokens"`
		} `json:"usage"`
	}
	if json.Unmarshal(line, &e) != nil {
		return
	}
	if e.Session != "" {
		r.r.Session = e.Session
	}
	switch e.Type {
	case "system":
		if e.Model != "" {
			r.r.Model = e.Model
		}
	case "assistant":
		var m struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		}
		_ = json.Unmarshal(e.Message, &m) // another type has no text
		for _, c := range m.Content {
			if s := strings.TrimSpace(c.Text); s != "" {
				r.r.Summary = s
			}
		}
	case "error":
		_ = json.Unmarshal(e.Message, &r.r.Error) // another type has no text
	case "result":
		r.ended = true
		if e.Result != "" {
			r.r.Summary = e.Result
		}
		if u := e.Usage; u != nil {
			r.r.Usage = &entity.Usage{InputTokens: u.Input + u.Write, CachedInputTokens: u.Read, OutputTokens: u.Output}
		}
		if r.r.Failed = e.Error || e.Subtype == "error"; r.r.Failed && e.Result != "" {
			r.r.Error = e.Result
		}
	}
}

// Result returns the result of the events. Without a system event there was no session to
// resume.
func (r *reader) Result(string) cli.Result {
	if !r.ended {
		r.r.Failed, r.r.Lost = true, r.r.Session == ""
	} else if !r.r.Failed {
		r.r.Error = ""
	}
	return r.r
}
