// Package gemini runs agents with Gemini CLI, the command line of Google (the
// gemini_local adapter).
//
// It is started as `gemini --output-format stream-json` with the prompt on its
// standard input. Its configuration, sessions and skills are in .gemini in the
// agent's folder. It calls the node's model gateway, which also speaks Google's protocol,
// with the run's token as the key. With gateway false it calls Google with a key from the
// agent's variables (GEMINI_API_KEY, best as a reference to a secret); then its usage is
// reported afterwards and not paid in advance.
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

// elsewhere are variables that would direct calls past the gateway.
var elsewhere = []string{"GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA",
	"GOOGLE_VERTEX_BASE_URL", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_ACCESS_TOKEN",
	"GOOGLE_APPLICATION_CREDENTIALS", "CODE_ASSIST_ENDPOINT", "GEMINI_CLI_CUSTOM_HEADERS", "GEMINI_API_KEY_AUTH_MECHANISM"}

// Tool is Gemini CLI.
type Tool struct{}

// Program returns "gemini".
func (Tool) Program() string { return "gemini" }

// Options are the members of adapterConfig besides [cli.Options].
type Options struct {
	Sandbox bool `json:"sandbox"`
}

// Call returns how Gemini CLI is started for a run.
func (Tool) Call(r *cli.Run) (cli.Call, error) {
	var more Options
	if err := r.Set(&more); err != nil {
		return cli.Call{}, err
	}
	c := cli.Call{Input: r.Told(), Env: map[string]string{}, Args: []string{"--output-format", "stream-json",
		"--skip-trust"}}
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

// Lead configures Gemini CLI, when another adapter starts it, to use the node's gateway, and
// to keep its state in the agent's folder.
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

// setAside renames the files of a session that is to be loaded over the Agent Client Protocol.
// Before Gemini CLI 0.61.0 looks for the existing file, it creates a file whose name is made
// of the minute and the session: within the minute in which the session began, it would
// overwrite the existing one. It finds files by their content, so the new name does not
// matter. Files that do not exist or can not be renamed are left alone.
func setAside(home, session string) {
	if len(session) < 8 || strings.Trim(session, "0123456789abcdef-") != "" {
		return
	}
	files, _ := filepath.Glob(filepath.Join(home, "tmp", "*", "chats", "session-*-"+session[:8]+".jsonl"))
	for _, path := range files {
		dir, name := filepath.Split(path)
		minute := strings.TrimSuffix(strings.TrimPrefix(name, "session-"), "-"+session[:8]+".jsonl")
		if _, err := time.Parse("2006-01-02T15-04", minute); err != nil {
			continue // already renamed
		}
		to := filepath.Join(dir, "session-"+minute+"-kept-"+session[:8]+".jsonl")
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			_ = os.Rename(path, to)
		}
	}
}

// settle creates its folder below the agent's.
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
	// Without a user it needs a setting that selects how to authenticate.
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

// lead sets the variables that direct model calls to the gateway, and removes those that would
// direct them elsewhere.
func lead(r *cli.Run, env map[string]string) {
	for _, k := range elsewhere {
		env[k] = ""
	}
	env["GOOGLE_GEMINI_BASE_URL"], env["GEMINI_API_KEY"] = r.LLM()+"/gemini", r.Token
}

// Read returns a reader of Gemini CLI's events.
func (Tool) Read() cli.Reader { return &reader{} }

// reader handles events: init with the session, message with pieces of the agent's text,
// error, and result with the run's usage.
type reader struct {
	r           cli.Result
	said        strings.Builder
	ended, talk bool // talk: the last message was the agent's
}

// Line handles one event and ignores other lines.
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
			r.r.Usage = &entity.Usage{InputTokens: max(u.Input-u.Cached, 0), CachedInputTokens: u.Cached,
				OutputTokens: max(u.Output, u.Total-u.Input)} // only the total includes thinking
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

// Result returns the result of the events. Without an init event there was no session to
// resume.
func (r *reader) Result(string) cli.Result {
	r.r.Summary = r.said.String()
	if !r.ended {
		r.r.Failed, r.r.Lost = true, r.r.Session == ""
	} else if !r.r.Failed {
		r.r.Error = ""
	}
	return r.r
}
