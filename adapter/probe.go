package adapter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter/process"
)

// A Finding is the result of one check.
type Finding struct {
	Code    string `json:"code"`
	Level   string `json:"level"` // info, warn or error
	Message string `json:"message"`
	Detail  string `json:"detail,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// Verdict returns pass, warn or fail, by the worst of the checks.
func Verdict(checks []Finding) string {
	worst := "pass"
	for _, c := range checks {
		switch {
		case c.Level == "error":
			return "fail"
		case c.Level == "warn":
			worst = "warn"
		}
	}
	return worst
}

// A Prober checks whether a node has what an adapter needs.
type Prober struct {
	// Has reports whether this node executes runs of a type.
	Has func(kind string) bool
	// Environ is the node's environment as "K=V".
	Environ []string
	// Run runs a program to get its version, and returns its output.
	Run func(ctx context.Context, path string, env map[string]string) (string, error)
}

// probeTime bounds running a program to get its version.
const probeTime = 20 * time.Second

// Probe makes the checks for a configuration. Its secrets are not resolved: a reference to a
// secret counts as a value.
func (p Prober) Probe(ctx context.Context, kind string, config json.RawMessage) (checks []Finding) {
	add := func(level, code, hint, format string, args ...any) {
		checks = append(checks, Finding{Code: code, Level: level, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	k, ok := Find(kind)
	if !ok || !p.Has(kind) {
		add("error", "adapter_missing", "", "This node has no adapter %s", kind)
		return checks
	}
	var c struct {
		Command string                     `json:"command"`
		Dir     string                     `json:"cwd"`
		URL     string                     `json:"url"`
		Base    string                     `json:"baseUrl"`
		BaseOld string                     `json:"base_url"`
		Agent   string                     `json:"agentId"`
		Module  string                     `json:"module"`
		Gateway *bool                      `json:"gateway"`
		Env     map[string]json.RawMessage `json:"env"`
	}
	if len(config) > 0 && string(config) != "null" {
		if err := json.Unmarshal(config, &c); err != nil {
			add("error", "config_malformed", "", "adapterConfig is malformed: %v", err)
			return checks
		}
	}
	if c.Dir != "" {
		switch st, err := os.Stat(c.Dir); {
		case !filepath.IsAbs(c.Dir):
			add("error", "cwd_not_absolute", "", "The working directory %s is not an absolute path", c.Dir)
		case err != nil || !st.IsDir():
			add("error", "cwd_missing", "make it on this node, or leave cwd out",
				"The working directory %s is not on this node", c.Dir)
		default:
			add("info", "cwd_found", "", "The working directory is there")
		}
	}
	switch {
	case k.Program != "" || slices.ContainsFunc(k.Fields, func(f ConfigField) bool { return f.Key == "command" }):
		checks = append(checks, p.program(ctx, k, c.Command, c.Dir, c.Env)...)
	case slices.ContainsFunc(k.Fields, func(f ConfigField) bool { return f.Key == "url" }):
		u, err := url.Parse(c.URL)
		scheme := "http"
		if kind == "openclaw_gateway" {
			scheme = "ws"
		}
		if err == nil && u.Host != "" && (u.Scheme == scheme || u.Scheme == scheme+"s") {
			add("info", "url_valid", "", "The URL is well formed")
		} else {
			add("error", "url_invalid", "", "url is not one of %s:// or %ss://", scheme, scheme)
		}
	case kind == "weftos":
		u, err := url.Parse(cmp.Or(c.Base, c.BaseOld))
		switch {
		case c.Base == "" && c.BaseOld == "" && c.Agent == "":
			add("error", "agent_missing", "set agentId, or baseUrl of another mesh", "No agent of this mesh is named")
		case c.Base == "" && c.BaseOld == "":
			add("info", "this_mesh", "", "The tasks go to an agent of this mesh")
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			add("error", "url_invalid", "", "baseUrl is not one of http:// or https://")
		default:
			add("info", "url_valid", "", "The URL is well formed")
		}
	case kind == "wasm":
		if _, err := os.Stat(c.Module); filepath.IsAbs(c.Module) && err != nil {
			add("error", "module_missing", "copy it there, or attach it to an issue",
				"The module %s is not on this node", c.Module)
		} else if c.Module == "" {
			add("info", "default_agent", "", "No module is configured: the default agent runs, which is part of Selvage")
		} else {
			add("info", "module_named", "", "The module is named")
		}
	}
	given := func(name string) bool { return len(c.Env[name]) > 0 }
	if len(k.Keys) > 0 && !slices.ContainsFunc(k.Keys, given) {
		add("warn", "key_missing", "set it among the agent's variables, as a reference to a secret",
			"No %s is among the agent's variables; only somebody who signed in on the node lets it work",
			strings.Join(k.Keys, " or "))
	}
	if k.Gateway && c.Gateway != nil && !*c.Gateway {
		add("warn", "gateway_off", "", "Calls do not go through the gateway: they are not paid in advance")
	}
	return checks
}

// program checks that the program exists and returns a version.
func (p Prober) program(ctx context.Context, k Kind, command, dir string, given map[string]json.RawMessage) []Finding {
	if command == "" {
		command = k.Program
	}
	if command == "" {
		return []Finding{{Code: "command_missing", Level: "error", Message: "No command is configured"}}
	}
	env := map[string]string{}
	for _, kv := range p.Environ {
		if name, v, ok := strings.Cut(kv, "="); ok {
			env[name] = v
		}
	}
	path := env["PATH"]
	var own string
	if json.Unmarshal(given["PATH"], &own) == nil && own != "" {
		path = own
	}
	at, ok := process.LookPath(command, dir, path)
	if !ok {
		hint := ""
		if command == k.Program {
			hint = k.Note
		}
		return []Finding{{Code: "command_not_found", Level: "error",
			Message: fmt.Sprintf("%s is not on the PATH of this node", command), Detail: path, Hint: hint}}
	}
	checks := []Finding{{Code: "command_found", Level: "info", Message: command + " is there", Detail: at}}
	if k.Program == "" || p.Run == nil {
		return checks // a program that we do not know is not started for a check
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	said, err := p.Run(ctx, at, map[string]string{"PATH": path, "HOME": env["HOME"]})
	said, _, _ = strings.Cut(strings.TrimSpace(said), "\n")
	if err != nil || said == "" {
		return append(checks, Finding{Code: "version_unknown", Level: "warn", Message: command + " does not tell its version",
			Detail: fmt.Sprint(err)})
	}
	return append(checks, Finding{Code: "version", Level: "info", Message: command + " " + said[:min(len(said), 200)]})
}
