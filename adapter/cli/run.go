package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/company"
)

// A Run is what a tool needs to know about the run for which it is started.
type Run struct {
	Options
	company.Invocation
	process.Place
	Gateway bool // calls go through the node's gateway
	Skip    bool // no permissions are asked for
	Prompt  string
	// Instructions is the text of the agent's instructions, InstructionsFile its path; both
	// are "" if there is none.
	Instructions, InstructionsFile string
	Session                        string // to resume, "" for none
}

// LLM is the address of the node's model gateway for this run.
func (r *Run) LLM() string { return r.APIURL + "/llm" }

// prepare reads the configuration and returns the Run that a tool gets.
func prepare(inv company.Invocation, p process.Place, session string) (*Run, error) {
	r := &Run{Invocation: inv, Place: p, Session: session}
	if err := json.Unmarshal(inv.Config, &r.Options); err != nil {
		return nil, process.Refuse("configuration_incomplete", "The agent's adapterConfig is malformed: %v", err)
	}
	if len(r.Extra)+len(r.Options.Args) > maxArgs {
		return nil, process.Refuse("configuration_incomplete", "extraArgs has more than %d entries", maxArgs)
	}
	r.Raw = inv.Config
	r.Gateway = r.Options.Gateway == nil || *r.Options.Gateway
	r.Skip = r.Options.Skip == nil || *r.Options.Skip
	if err := r.readInstructions(); err != nil {
		return nil, err
	}
	r.Prompt = r.prompt()
	return r, nil
}

// readInstructions reads the agent's instructions: from the scratch directory if the mesh
// stores them, else from the configured file on the node.
func (r *Run) readInstructions() error {
	at := r.Place.Env["AGENT_INSTRUCTIONS_FILE"]
	if at == "" {
		if at = r.Options.Instructions; at == "" || strings.HasPrefix(at, "companies/") {
			return nil
		}
		if !filepath.IsAbs(at) {
			return process.Refuse("configuration_incomplete", "instructionsFilePath is not an absolute path")
		}
	}
	st, err := os.Stat(at)
	switch {
	case err != nil:
		return process.Refuse("configuration_incomplete", "The agent's instructions are not on this node: %s",
			filepath.Base(at))
	case !st.Mode().IsRegular() || st.Size() > maxInstructions:
		return process.Refuse("configuration_incomplete", "The agent's instructions are no file of at most %d bytes: %s",
			maxInstructions, filepath.Base(at))
	}
	b, err := os.ReadFile(at)
	if err != nil {
		return err
	}
	r.InstructionsFile, r.Instructions = at, strings.ToValidUTF8(string(b), "\uFFFD")
	return nil
}

// WriteSkills writes the run's skills into dir, one folder each, and returns their names. It
// does not touch other folders there.
func (r *Run) WriteSkills(dir string) (names []string, err error) {
	for _, s := range r.Skills {
		at := filepath.Join(dir, filepath.Base(s.Name))
		if err := os.MkdirAll(at, 0o700); err != nil {
			return nil, err
		}
		root, err := os.OpenRoot(at)
		if err != nil {
			return nil, err
		}
		for path, text := range s.Files {
			if err == nil {
				err = errors.Join(root.MkdirAll(filepath.Dir(path), 0o700), root.WriteFile(path, []byte(text), 0o600))
			}
		}
		if err := errors.Join(err, root.Close()); err != nil {
			return nil, err
		}
		names = append(names, s.Name)
	}
	return names, nil
}

// KeepSkills writes the run's skills into a permanent folder, and removes those that an
// earlier run wrote there and this run does not have.
func (r *Run) KeepSkills(dir string) error {
	names, err := r.WriteSkills(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	list := filepath.Join(dir, ".selvage-skills")
	old, _ := os.ReadFile(list) // a missing file counts as empty
	for name := range strings.Lines(string(old)) {
		if name = strings.TrimSpace(name); name != "" && name == filepath.Base(name) && !slices.Contains(names, name) {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(list, []byte(strings.Join(names, "\n")+"\n"), 0o600)
}

// Told returns the prompt after the agent's instructions, for tools that accept instructions
// nowhere else.
func (r *Run) Told() string {
	if strings.TrimSpace(r.Instructions) == "" {
		return r.Prompt
	}
	return "# Your instructions\n\n" + strings.TrimSpace(r.Instructions) + "\n\nOther files that they name lie in " +
		filepath.Dir(r.InstructionsFile) +
		"\n\n# This run\n\n" + r.Prompt
}

// Folder creates a folder below the agent's folder and returns its path.
func (r *Run) Folder(name string) (string, error) {
	dir := filepath.Join(r.Home, name)
	return dir, os.MkdirAll(dir, 0o700)
}

// Set decodes adapterConfig into a tool's own options.
func (r *Run) Set(v any) error {
	if err := json.Unmarshal(r.Raw, v); err != nil {
		return process.Refuse("configuration_incomplete", "The agent's adapterConfig is malformed: %v", err)
	}
	return nil
}

// state returns the tool's own folders in the user's home, in which it may write.
func (r *Run) state(names []string) (out []string) {
	home := r.Place.Env["HOME"]
	if !filepath.IsAbs(home) {
		return nil
	}
	for _, name := range names {
		at := filepath.Join(home, name)
		if err := os.MkdirAll(at, 0o700); err == nil { // on an error, the tool reports what it can not find
			out = append(out, at)
		}
	}
	return out
}

// keys are the variables from which vendors' clients read their keys. Tools that support
// many vendors use any that is set.
var keys = []string{"AI_GATEWAY_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN",
	"AZURE_OPENAI_API_KEY", "CEREBRAS_API_KEY", "DEEPSEEK_API_KEY",
	"FIREWORKS_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "GROQ_API_KEY", "HF_TOKEN",
	"KIMI_API_KEY", "MINIMAX_API_KEY", "MISTRAL_API_KEY",
	"MOONSHOT_API_KEY", "NOUS_API_KEY", "OPENAI_API_KEY", "OPENCODE_API_KEY", "OPENROUTER_API_KEY", "TOGETHER_API_KEY",
	"XAI_API_KEY", "ZAI_API_KEY"}

// NoKeys removes the keys of all vendors, except those that env sets itself.
func NoKeys(env map[string]string) {
	for _, k := range keys {
		if env[k] == "" {
			env[k] = ""
		}
	}
}

// direct excludes calls to the node from using a proxy.
func direct(have, set map[string]string) {
	for _, k := range []string{"NO_PROXY", "no_proxy"} {
		v := cmp.Or(set[k], have[k])
		if v != "" {
			v += ","
		}
		set[k] = v + "127.0.0.1,localhost,::1"
	}
}
