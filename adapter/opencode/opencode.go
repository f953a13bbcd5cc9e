// Package opencode runs agents with OpenCode (the opencode_local adapter).
//
// It is started as `opencode run --format json` with the prompt on its standard
// input. Its data, state and configuration are in .opencode in the agent's
// folder. An environment variable configures the model gateway as a custom provider, whose
// key is the run's token.
package opencode

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/adapter/cli"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/company/entity"
)

// Tool is OpenCode.
type Tool struct{}

// Program returns "opencode".
func (Tool) Program() string { return "opencode" }

// provider is the gateway's name in OpenCode's configuration.
const provider = "selvage"

// Options are the members of adapterConfig besides [cli.Options].
type Options struct {
	Variant string `json:"variant"`
}

// Call returns how OpenCode is started for a run.
func (Tool) Call(r *cli.Run) (cli.Call, error) {
	var more Options
	if err := r.Set(&more); err != nil {
		return cli.Call{}, err
	}
	c := cli.Call{Input: r.Told(), Args: []string{"run", "--format", "json"}, Env: map[string]string{}}
	if err := Lead(r, &c); err != nil {
		return cli.Call{}, err
	}
	model := r.Model
	if r.Gateway {
		model = provider + "/" + r.Model
	}
	if model != "" {
		c.Args = append(c.Args, "--model", model)
	}
	if r.Effort != "" {
		more.Variant = r.Effort
	}
	if more.Variant != "" {
		c.Args = append(c.Args, "--variant", more.Variant)
	}
	if r.Session != "" {
		c.Args = append(c.Args, "--session", r.Session)
	}
	return c, nil
}

// Lead configures OpenCode, when another adapter starts it, to use the node's gateway, if
// there is one, and to keep its state in the agent's folder.
func Lead(r *cli.Run, c *cli.Call) error {
	home, err := r.Folder(".opencode")
	if err == nil {
		err = r.KeepSkills(filepath.Join(home, "config", "opencode", "skills"))
	}
	if err != nil {
		return err
	}
	for k, v := range map[string]string{"OPENCODE_DISABLE_AUTOUPDATE": "1", "XDG_DATA_HOME": filepath.Join(home, "data"),
		"XDG_STATE_HOME":  filepath.Join(home, "state"),
		"XDG_CONFIG_HOME": filepath.Join(home, "config")} {
		c.Env[k] = v
	}
	config := map[string]any{"$schema": "https://opencode.ai/config.json", "autoupdate": false, "share": "disabled"}
	if r.Skip {
		config["permission"] = map[string]string{"*": "allow"}
	}
	if r.Gateway {
		if r.Model == "" {
			return process.Refuse("configuration_incomplete",
				"The agent's adapterConfig has no model, which OpenCode has to be told")
		}
		cli.NoKeys(c.Env)
		model := provider + "/" + r.Model
		config["model"], config["small_model"] = model, model
		config["enabled_providers"] = []string{provider}
		config["provider"] = map[string]any{provider: map[string]any{"npm": "@ai-sdk/openai-compatible", "name": "Selvage",
			"options": map[string]string{"baseURL": r.LLM() + "/v1", "apiKey": "{env:PAPERCLIP_API_KEY}"},
			"models":  map[string]any{r.Model: map[string]string{"name": r.Model}}}}
	}
	b, err := json.Marshal(config)
	if err != nil {
		return err
	}
	c.Env["OPENCODE_CONFIG_CONTENT"] = string(b)
	return nil
}

// Read returns a reader of OpenCode's events.
func (Tool) Read() cli.Reader { return &reader{} }

// reader handles events, each with the session: text, step_finish with the step's usage, and
// error.
type reader struct {
	r     cli.Result
	steps int
	cost  float64
	fault string
}

// Line handles one event and ignores other lines.
func (r *reader) Line(line []byte) {
	var e struct {
		Type    string `json:"type"`
		Session string `json:"sessionID"`
		Part    struct {
			Text   string  `json:"text"`
			Cost   float64 `json:"cost"`
			Tokens struct {
				Input     int64 `json:"input"`
				Output    int64 `json:"output"`
				Reasoning int64 `json:"reasoning"`
				Cache     struct {
					Read  int64 `json:"read"`
					Write int64 `json:"write"`
				} `json:"cache"`
			} `json:"tokens"`
		} `json:"part"`
		Error struct {
			Name    string `json:"name"`
			Message string `json:"message"`
			Data    struct {
				Message string `json:"message"`
			} `json:"data"`
		} `json:"error"`
	}
	if json.Unmarshal(line, &e) != nil {
		return
	}
	if e.Session != "" {
		r.r.Session = e.Session
	}
	switch e.Type {
	case "text":
		if s := strings.TrimSpace(e.Part.Text); s != "" {
			r.r.Summary = s
		}
	case "step_finish":
		if r.r.Usage == nil {
			r.r.Usage = &entity.Usage{}
		}
		t := e.Part.Tokens
		r.r.Usage.InputTokens += t.Input + t.Cache.Write
		r.r.Usage.CachedInputTokens += t.Cache.Read
		r.r.Usage.OutputTokens += t.Output + t.Reasoning
		r.steps++
		r.cost += e.Part.Cost
		r.fault = "" // it continued after the error
	case "error":
		r.fault = e.Error.Name
		for _, s := range []string{e.Error.Message, e.Error.Data.Message} {
			if s != "" {
				r.fault = s
			}
		}
	}
}

// Result returns the result of the events.
func (r *reader) Result(stderr string) cli.Result {
	r.r.Turns = r.steps
	if r.cost > 0 {
		r.r.CostUSD = json.Number(strconv.FormatFloat(r.cost, 'f', -1, 64))
	}
	if r.steps == 0 || r.fault != "" {
		r.r.Failed, r.r.Error = true, r.fault
		said := strings.ToLower(r.fault + stderr)
		r.r.Lost = r.steps == 0 && strings.Contains(said, "session") && strings.Contains(said, "not found")
	}
	return r.r
}
