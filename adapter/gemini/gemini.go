// Package gemini runs agents with Gemini CLI, the command line of Google (the
// gemini_local adapter).
//
// It is started as `gemini --output-format stream-json` with the prompt on its
// standard input. Its configuration, sessions and skills lie in .gemini in the
// agent's folder. It asks the node's model gateway, which speaks its vendor's
// protocol too, with the run's token in place of a key; with gateway false it calls
// its vendor with a key from the agent's variables (GEMINI_API_KEY, best as a
// reference to a secret), and what it uses is told, not paid in advance.
package gemini

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter/cli"
	"github.com/selvage-mesh/selvage/company/entity"
)

// elsewhere are variables that would lead calls past the gateway.
var elsewhere = []string{"GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA", "GOOGLE_VERTEX_BASE_URL", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_ACCESS_TOKEN",
	"GOOGLE_APPLICATION_CREDENTIALS", "CODE_ASSIST_ENDPOINT", "GEMINI_CLI_CUSTOM_HEADERS", "GEMINI_API_KEY_AUTH_MECHANISM"}

// Tool is Gemini CLI.
type Tool struct{}

// Program is gemini.
func (Tool) Program() string { return "gemini" }

// Options are what adapterConfig may have beside [cli.Options].
type Options struct {
	Sandbox bool `json:"sandbox"`
}

// Call starts it for a run.
func (Tool) Call(r *cli.Run) (cli.Call, error) {
	var more Options
	if err := r.Set(&more); err != nil {
		return cli.Call{}, err
	}
	c := cli.Call{Input: r.Told(), Env: map[string]string{}, Args: []string{"--output-format", "stream-json", "--skip-trust"}}
	if err := settle(r, &c); err != nil {
		return cli.Call{}, err
	}
	if r.Gateway {
		lead(r, c.Env)
	}
	if r.Skip {
		c.Args = append(c.Args, "--approval-mode", "yolo")
	}
	if more.Sandbox {
		c.Args = append(c.Args, "--sandbox")
	}
	if r.Model != "" && r.Model != "auto" {
		c.Args = append(c.Args, "--model", r.Model)
	}
	if r.Session != "" {
		c.Args = append(c.Args, "--resume", r.Session)
	}
	return c, nil
}

// Lead leads it, where another adapter starts it, to the gateway of its node, with
// its state in the agent's folder.
func Lead(r *cli.Run, c *cli.Call) error {
	if err := settle(r, c); err != nil {
		return err
	}
	lead(r, c.Env)
	setAside(filepath.Join(r.Home, ".gemini"), r.Session)
	c.Args = append(c.Args, "--skip-trust")
	if r.Skip {
		c.Args = append(c.Args, "--approval-mode", "yolo")
	}
	if r.Model != "" && r.Model != "auto" {
		c.Args = append(c.Args, "--model", r.Model)
	}
	return nil
}

// setAside renames the files of a session that is to be loaded over the Agent Client
// Protocol. Gemini CLI 0.61.0 begins a file for it then, under a name made of the
// minute and the session, before it looks for the one that there is: within the minute
// in which the session began, that would be written over. It finds files by what is in
// them. What is not there, or can not be renamed, is left to it.
func setAside(home, session string) {
	if len(session) < 8 || strings.Trim(session, "0123456789abcdef-") != "" {
		return
	}
	files, _ := filepath.Glob(filepath.Join(home, "tmp", "*", "chats", "session-*-"+session[:8]+".jsonl"))
	for _, path := range files {
		dir, name := filepath.Split(path)
		minute := strings.TrimSuffix(strings.TrimPrefix(name, "session-"), "-"+session[:8]+".jsonl")
		if _, err := time.Parse("2006-01-02T15-04", minute); err != nil {
			continue // was set aside before
		}
		to := filepath.Join(dir, "session-"+minute+"-kept-"+session[:8]+".jsonl")
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			_ = os.Rename(path, to)
		}
	}
}

// settle makes its folder below the agent's.
func settle(r *cli.Run, c *cli.Call) error {
	home, err := r.Folder(".gemini")
	if err == nil {
		err = r.KeepSkills(filepath.Join(home, "skills"))
	}
	if err != nil {
		return err
	}
	c.Env["GEMINI_CLI_HOME"] = r.Home
	if !r.Gateway && r.Place.Env["GEMINI_API_KEY"] == "" {
		return nil
	}
	// Without a person it has to be told by which of its ways to sign in.
	f, err := os.OpenFile(filepath.Join(home, "settings.json"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		_, err = f.WriteString(`{"security":{"auth":{"selectedType":"gemini-api-key"}}}` + "\n")
		err = errors.Join(err, f.Close())
	}
	return err
}

// lead sets what leads model calls to the gateway, and takes away what would lead
// them elsewhere.
func lead(r *cli.Run, env map[string]string) {
	for _, k := range elsewhere {
		env[k] = ""
	}
	env["GOOGLE_GEMINI_BASE_URL"], env["GEMINI_API_KEY"] = r.LLM()+"/gemini", r.Token
}

// Read returns a reader of its events.
func (Tool) Read() cli.Reader { return &reader{} }

// reader takes events: init with the session, message with what is said, in
// pieces, error, and result with what the run used.
type reader struct {
	r           cli.Result
	said        strings.Builder
	ended, talk bool // talk: the last message was the agent's
}

// Line takes one event. What is none is passed over.
func (r *reader) Line(line []byte) {
	var e struct {
		Type    string `json:"type"`
		Session string `json:"session_id"`
		Model   string `json:"model"`
		Role    string `json:"role"`
		Content string `json:"content"`
		Delta   bool   `json:"delta"`
		Status  string `json:"status"`
		Message string `json:"message"`
		Error   struct {
			Message string `json:"message"`
		} `json:"error"`
		Stats *struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
			Cached int64 `json:"cached"`
			Total  int64 `json:"total_tokens"`
		} `json:"stats"`
	}
	if json.Unmarshal(line, &e) != nil {
		return
	}
	talk := e.Type == "message" && e.Role == "assistant"
	switch {
	case e.Type == "init":
		r.r.Session, r.r.Model = e.Session, e.Model
	case talk:
		if !e.Delta || !r.talk {
			r.said.Reset()
		}
		r.said.WriteString(e.Content)
	case e.Type == "error":
		r.r.Error = e.Message
	case e.Type == "result":
		r.ended = true
		if u := e.Stats; u != nil {
			r.r.Usage = &entity.Usage{InputTokens: max(u.Input-u.Cached, 0), CachedInputTokens: u.Cached, OutputTokens: max(u.Output, u.Total-u.Input)} // thinking is in the total alone
		}
		if e.Status != "success" {
			r.r.Failed = true
			if e.Error.Message != "" {
				r.r.Error = e.Error.Message
			}
		}
	}
	r.talk = talk
}

// Result is what the events came to. One that did not begin had no session to go
// on with.
func (r *reader) Result(string) cli.Result {
	r.r.Summary = r.said.String()
	if !r.ended {
		r.r.Failed, r.r.Lost = true, r.r.Session == ""
	} else if !r.r.Failed {
		r.r.Error = ""
	}
	return r.r
}
