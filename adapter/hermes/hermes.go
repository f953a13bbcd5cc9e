// Package hermes runs agents with Hermes Agent, the command line of Nous Research
// (the hermes_local adapter).
//
// It is started as `hermes chat -Q -q PROMPT` and prints its answer as text, with
// the session in a separate line. Its state is in .hermes in the agent's folder. The model
// gateway is configured as its custom endpoint, whose key is the run's token; the
// configuration file refers to an environment variable for it.
package hermes

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/adapter/cli"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/company/entity"
)

// maxPrompt bounds the prompt, in bytes. It is an argument, and Linux allows 128 KiB for one.
const maxPrompt = 120 << 10

// Tool is Hermes Agent.
type Tool struct{}

// Program returns "hermes".
func (Tool) Program() string { return "hermes" }

// Options are the members of adapterConfig besides [cli.Options].
type Options struct {
	Provider string `json:"provider"`
	Toolsets string `json:"toolsets"`
}

// Call returns how Hermes Agent is started for a run.
func (Tool) Call(r *cli.Run) (cli.Call, error) {
	var more Options
	if err := r.Set(&more); err != nil {
		return cli.Call{}, err
	}
	home, err := r.Folder(".hermes")
	if err == nil {
		err = r.KeepSkills(filepath.Join(home, "skills"))
	}
	if err != nil {
		return cli.Call{}, err
	}
	prompt := r.Told()
	if len(prompt) > maxPrompt {
		return cli.Call{}, process.Refuse("configuration_incomplete",
			"What Hermes is to be told has %d bytes; %d are possible", len(prompt), maxPrompt)
	}
	c := cli.Call{Env: map[string]string{"HERMES_HOME": home}, Args: []string{"chat", "-Q", "-q", prompt}}
	add := func(args ...string) { c.Args = append(c.Args, args...) }
	if r.Gateway {
		if r.Model == "" {
			return cli.Call{}, process.Refuse("configuration_incomplete",
				"The agent's adapterConfig has no model, which Hermes has to be told")
		}
		more.Provider = "custom"
		// JSON is YAML. Tirith is a scanner that Hermes Agent would download; if it can not, it
		// complains in its output.
		b, err := json.Marshal(map[string]any{"security": map[string]bool{"tirith_enabled": false},
			"model": map[string]string{"default": r.Model, "provider": "custom", "base_url": r.LLM() + "/v1",
				"api_key": "${PAPERCLIP_API_KEY}"}})
		if err == nil {
			err = os.WriteFile(filepath.Join(home, "config.yaml"), append(b, '\n'), 0o600)
		}
		if err != nil {
			return cli.Call{}, err
		}
		c.Env["OPENAI_BASE_URL"], c.Env["OPENAI_API_KEY"] = r.LLM()+"/v1", r.Token
		cli.NoKeys(c.Env)
	}
	if r.Model != "" {
		add("-m", r.Model)
	}
	if more.Provider != "" {
		add("--provider", more.Provider)
	}
	if more.Toolsets != "" {
		add("-t", more.Toolsets)
	}
	if r.MaxTurns > 0 {
		add("--max-turns", strconv.Itoa(r.MaxTurns))
	}
	if r.Skip {
		add("--yolo")
	}
	if r.Session != "" {
		add("--resume", r.Session)
	}
	return c, nil
}

// Read returns a reader of its output.
func (Tool) Read() cli.Reader { return &reader{} }

// Lines about the run, on either output.
var (
	sessionLine = regexp.MustCompile(`^(?:session_id|session saved):\s*(\S+)$`)
	tokensLine  = regexp.MustCompile(`^tokens:\s*(\d+)\s*in(?:put)?,\s*(\d+)\s*out(?:put)?`)
)

type reader struct {
	r    cli.Result
	said strings.Builder
}

// mark handles a line about the run, and reports whether the line is one.
func (r *reader) mark(line string) bool {
	if m := sessionLine.FindStringSubmatch(line); m != nil {
		r.r.Session = m[1]
		return true
	}
	if m := tokensLine.FindStringSubmatch(line); m != nil {
		in, inErr := strconv.ParseInt(m[1], 10, 64)
		out, outErr := strconv.ParseInt(m[2], 10, 64)
		if inErr == nil && outErr == nil {
			r.r.Usage = &entity.Usage{InputTokens: in, OutputTokens: out}
		}
		return true
	}
	return false
}

// Line handles one line of text.
func (r *reader) Line(line []byte) {
	if s := string(line); !r.mark(s) && r.said.Len() < maxPrompt {
		r.said.WriteString(s + "\n")
	}
}

// Result returns the agent's text. Without any, the run has failed.
func (r *reader) Result(stderr string) cli.Result {
	for line := range strings.Lines(stderr) {
		r.mark(strings.TrimSpace(line))
	}
	r.r.Summary = strings.TrimSpace(r.said.String())
	r.r.Failed = r.r.Summary == ""
	said := strings.ToLower(r.r.Summary + stderr)
	r.r.Lost = r.r.Session == "" && strings.Contains(said, "session") && (strings.Contains(said, "not found") ||
		strings.Contains(said, "unknown"))
	return r.r
}
