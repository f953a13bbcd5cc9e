package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/selvage-mesh/selvage/company/app"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
)

// A Manifest says what an app is and brings. In TOML and in JSON its members have the same names; a member that it does
// not have is a problem, so that a typing error is found.
type Manifest struct {
	Name         string            `toml:"name" json:"name"`
	Version      string            `toml:"version" json:"version"`
	Description  string            `toml:"description" json:"description"`
	Author       string            `toml:"author" json:"author,omitempty"`
	License      string            `toml:"license" json:"license,omitempty"`
	Agents       []Agent           `toml:"agents" json:"agents,omitempty"`
	Skills       []Skill           `toml:"skills" json:"skills,omitempty"`
	Routines     []Routine         `toml:"routines" json:"routines,omitempty"`
	Tools        []Tool            `toml:"tools" json:"tools,omitempty"`
	Services     []Service         `toml:"services" json:"services,omitempty"`
	Settings     []Setting         `toml:"settings" json:"settings,omitempty"`
	Capabilities Capabilities      `toml:"capabilities" json:"capabilities"`
	Hooks        Hooks             `toml:"hooks" json:"hooks"`
	Dependencies map[string]string `toml:"dependencies" json:"dependencies,omitempty"` // app → range of versions
	Health       Health            `toml:"health" json:"health"`
}

// An Agent is hired as APP/ID.
type Agent struct {
	ID      string         `toml:"id" json:"id"`
	Role    string         `toml:"role" json:"role"`
	Title   string         `toml:"title" json:"title,omitempty"`
	About   string         `toml:"about" json:"about,omitempty"` // what it can do
	Adapter string         `toml:"adapter" json:"adapter"`
	Config  map[string]any `toml:"config" json:"config,omitempty"`   // its adapterConfig
	Runtime map[string]any `toml:"runtime" json:"runtime,omitempty"` // its runtimeConfig
	// of adapter process: a file that /bin/sh runs
	Script       string   `toml:"script" json:"script,omitempty"`
	Module       string   `toml:"module" json:"module,omitempty"`             // of adapter wasm: a file
	Instructions string   `toml:"instructions" json:"instructions,omitempty"` // a Markdown file
	Skills       []string `toml:"skills" json:"skills,omitempty"`             // IDs of the app's, or keys of others
	BudgetCents  int64    `toml:"budget_cents" json:"budget_cents,omitempty"` // per month
	// it works when the app does; true unless given
	AutoStart *bool `toml:"auto_start" json:"auto_start,omitempty"`
}

// A Skill is a Markdown file for agents.
type Skill struct {
	ID    string `toml:"id" json:"id"`
	Name  string `toml:"name" json:"name,omitempty"`
	About string `toml:"about" json:"about,omitempty"`
	File  string `toml:"file" json:"file"`
}

// A Routine makes an issue for an agent at the times of a cron expression.
type Routine struct {
	ID    string `toml:"id" json:"id"`
	Title string `toml:"title" json:"title"`
	Task  string `toml:"task" json:"task,omitempty"` // the description
	Agent string `toml:"agent" json:"agent"`
	Cron  string `toml:"cron" json:"cron"`
	Zone  string `toml:"zone" json:"zone,omitempty"` // UTC unless given
}

// A Setting is a value that is given when the app is installed. ${NAME} stands for it in texts and configurations; a
// secret one may only be the whole value of a member of an agent's config.env.
type Setting struct {
	Name     string  `toml:"name" json:"name"`
	About    string  `toml:"about" json:"about,omitempty"`
	Default  *string `toml:"default" json:"default,omitempty"` // without one it has to be given
	Secret   bool    `toml:"secret" json:"secret,omitempty"`
	Optional bool    `toml:"optional" json:"optional,omitempty"` // may stay empty
}

// Capabilities are what an app may do; all are shown and have to be granted.
type Capabilities struct {
	Network    []string `toml:"network" json:"network,omitempty"`       // hosts, or "*"; a host may be ${SETTING}
	Filesystem []string `toml:"filesystem" json:"filesystem,omitempty"` // paths
	Shell      bool     `toml:"shell" json:"shell,omitempty"`           // programs of the node
	IPC        bool     `toml:"ipc" json:"ipc,omitempty"`               // messages to others
}

// Health says for how long an upgrade is watched: a run that fails within it takes the upgrade back.
type Health struct {
	Within string `toml:"within" json:"within,omitempty"` // such as "10m"; 10m unless given, "0s" for not at all
}

const defaultWithin = 10 * time.Minute

// Words returns the capabilities as they are shown and granted.
func (c Capabilities) Words() (out []string) {
	for _, h := range c.Network {
		out = append(out, "network "+h)
	}
	for _, p := range c.Filesystem {
		out = append(out, "filesystem "+p)
	}
	if c.Shell {
		out = append(out, "shell")
	}
	if c.IPC {
		out = append(out, "ipc")
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// within returns for how long an upgrade is watched.
func (m Manifest) within() time.Duration {
	d, err := time.ParseDuration(m.Health.Within)
	if err != nil {
		return defaultWithin
	}
	return d
}

// Problems are all that is wrong with a manifest.
type Problems []string

func (p Problems) Error() string { return strings.Join(p, "\n") }

// Read reads the manifest of an app and checks it. The error is Problems when it was found and is wrong.
func Read(files Files) (m Manifest, err error) {
	var p Problems
	i := slices.IndexFunc(ManifestNames, func(name string) bool { return files[name] != nil })
	if i < 0 {
		return m, fmt.Errorf("no manifest: %s or %s is needed in the folder of the app", ManifestNames[0], ManifestNames[1])
	}
	b := files[ManifestNames[i]]
	switch {
	case len(b) > app.MaxManifest/2:
		return m, Problems{fmt.Sprintf("the manifest has %d bytes, at most %d are allowed", len(b), app.MaxManifest/2)}
	case i == 0:
		meta, err := toml.NewDecoder(bytes.NewReader(b)).Decode(&m)
		if err != nil {
			if at, ok := errors.AsType[toml.ParseError](err); ok {
				return m, Problems{fmt.Sprintf("line %d: %s", at.Position.Line, at.Message)}
			}
			return m, Problems{err.Error()}
		}
		for _, key := range meta.Undecoded() {
			if len(key) > 2 && key[0] == "agents" && (key[1] == "config" || key[1] == "runtime") {
				continue // the adapter's own
			}
			if slices.ContainsFunc(key[:len(key)-1],
				func(k string) bool { return k == "parameters" || k == "params" || k == "result" }) {
				continue // of a schema
			}
			p = append(p, key.String()+": unknown member")
		}
	default:
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if err := d.Decode(&m); err != nil {
			return m, Problems{strings.TrimPrefix(err.Error(), "json: ")}
		}
	}
	if p = append(p, m.check(files)...); len(p) > 0 {
		return m, p[:min(len(p), maxProblems)]
	}
	return m, nil
}

// A checker collects problems.
type checker struct {
	Problems
	files    Files
	settings map[string]Setting
}

func (c *checker) add(format string, args ...any) {
	c.Problems = append(c.Problems, fmt.Sprintf(format, args...))
}

func (c *checker) text(at, s string, required bool, most int) {
	switch {
	case required && strings.TrimSpace(s) == "":
		c.add("%s: required", at)
	case len(s) > most:
		c.add("%s: at most %d bytes", at, most)
	}
	c.holes(at, s, false)
}

// id checks a name, and that it is there once.
func (c *checker) id(at, id string, seen map[string]bool) {
	if !app.IsName(id) {
		c.add("%s: small letters, digits, - and _, at most 64", at)
	} else if seen[id] {
		c.add("%s: %s is there twice", at, id)
	}
	seen[id] = true
}

func (c *checker) file(at, name string, required bool) {
	switch {
	case name == "" && required:
		c.add("%s: required", at)
	case name == "":
	case path.IsAbs(name) || checkPath(name) != nil:
		c.add("%s: %q is not a path within the app", at, name)
	case c.files[name] == nil:
		c.add("%s: the app has no file %s", at, name)
	}
}

var hole = regexp.MustCompile(`\$\{([A-Za-z0-9_-]*)\}`)

// holes checks the settings that a text names. Only the value of a variable may be a secret.
func (c *checker) holes(at, s string, variable bool) {
	for _, h := range hole.FindAllStringSubmatch(s, -1) {
		set, ok := c.settings[h[1]]
		switch {
		case !ok:
			c.add("%s: ${%s} is not a setting; to write it as it is, use $%s", at, h[1], h[1])
		case set.Secret && (!variable || s != h[0]):
			c.add("%s: the secret setting %s may only be the whole value of a member of config.env", at, h[1])
		}
	}
}

// config checks the settings in a configuration.
func (c *checker) config(at string, v any, env bool) {
	switch v := v.(type) {
	case string:
		c.holes(at, v, env)
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			c.config(at+"."+k, v[k], k == "env" && strings.Count(at, ".") == 1 || env)
		}
	case []any:
		for n, v := range v {
			c.config(fmt.Sprintf("%s[%d]", at, n), v, false)
		}
	}
}

func (m Manifest) check(files Files) Problems {
	c := &checker{files: files, settings: map[string]Setting{}}
	if !app.IsName(m.Name) {
		c.add("name: required, small letters, digits, - and _, at most 64")
	}
	if _, ok := app.ParseVersion(m.Version); !ok {
		c.add("version: required, as MAJOR.MINOR.PATCH")
	}
	for n, s := range m.Settings {
		at := fmt.Sprintf("settings[%d]", n)
		if !regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`).MatchString(s.Name) || c.settings[s.Name].Name != "" {
			c.add("%s.name: letters, digits, - and _, and each once", at)
		}
		if s.Secret && s.Default != nil {
			c.add("%s.default: a secret has none", at)
		}
		c.settings[s.Name] = s
	}
	c.text("description", m.Description, true, 2000)
	c.text("author", m.Author, false, maxName)
	c.text("license", m.License, false, maxName)
	if len(m.Agents)+len(m.Skills)+len(m.Routines)+len(m.Settings) > maxList || len(m.Dependencies) > maxList {
		c.add("agents, skills, routines, settings and dependencies: at most %d", maxList)
	}
	if len(m.Agents)+len(m.Skills)+len(m.Tools)+len(m.Services) == 0 {
		c.add("agents: an app has at least one agent, skill, tool or service")
	}
	m.checkTools(c, m.checkServices(c))
	skills := map[string]bool{}
	for n, s := range m.Skills {
		at := fmt.Sprintf("skills[%d]", n)
		c.id(at+".id", s.ID, skills)
		c.file(at+".file", s.File, true)
		c.text(at+".name", s.Name, false, maxName)
		c.text(at+".about", s.About, false, 2000)
	}
	agents := m.checkAgents(c, skills)
	m.checkRoutines(c, agents)
	m.checkHooks(c, agents)
	for _, name := range slices.Sorted(maps.Keys(m.Dependencies)) {
		if _, err := app.Satisfies("0.0.0", m.Dependencies[name]); err != nil || !app.IsName(name) || name == m.Name {
			c.add("dependencies.%s: another app, and a range of versions: 1.2.3, >=1.2.3, ^1.2.3 or *", name)
		}
	}
	if d, err := time.ParseDuration(m.Health.Within); m.Health.Within != "" &&
		(err != nil || d < 0 || d.Milliseconds() > app.MaxWithin) {
		c.add("health.within: a time such as 10m, at most a day")
	}
	for n, p := range m.Capabilities.Filesystem {
		if !path.IsAbs(p) || p != path.Clean(p) {
			c.add("capabilities.filesystem[%d]: an absolute path", n)
		}
	}
	slices.Sort(c.Problems)
	return c.Problems
}

func (m Manifest) checkAgents(c *checker, skills map[string]bool) map[string]bool {
	agents := map[string]bool{}
	for n, a := range m.Agents {
		at := fmt.Sprintf("agents[%d]", n)
		c.id(at+".id", a.ID, agents)
		if !slices.Contains(entity.Roles, a.Role) {
			c.add("%s.role: one of %s", at, strings.Join(entity.Roles, ", "))
		}
		if !slices.Contains(entity.AdapterTypes, a.Adapter) {
			c.add("%s.adapter: one of %s", at, strings.Join(entity.AdapterTypes, ", "))
		}
		c.text(at+".title", a.Title, false, maxName)
		c.text(at+".about", a.About, false, 2000)
		c.file(at+".script", a.Script, false)
		c.file(at+".module", a.Module, false)
		c.file(at+".instructions", a.Instructions, false)
		if a.Script != "" && a.Adapter != "process" || a.Module != "" && a.Adapter != "wasm" {
			c.add("%s: script is for the adapter process, module for wasm", at)
		}
		switch a.Adapter {
		case "wasm":
			if hosts, ok := a.Config["fetchHosts"]; ok && !covers(m.Capabilities.Network, hosts) {
				c.add("%s.config.fetchHosts: capabilities.network does not have all of them", at)
			}
		case "http", "a2a", "openclaw_gateway":
			if len(m.Capabilities.Network) == 0 {
				c.add("%s.adapter: %s calls addresses; list their hosts in capabilities.network", at, a.Adapter)
			}
		default:
			if !m.Capabilities.Shell {
				c.add("%s.adapter: %s runs a program of the node; set capabilities.shell", at, a.Adapter)
			}
		}
		for _, s := range a.Skills {
			if !skills[s] && !strings.Contains(s, "/") {
				c.add("%s.skills: %s is not a skill of the app", at, s)
			}
		}
		if a.BudgetCents < 0 {
			c.add("%s.budget_cents: not below 0", at)
		}
		c.config(at+".config", map[string]any(a.Config), false)
		c.config(at+".runtime", map[string]any(a.Runtime), false)
	}
	return agents
}

func (m Manifest) checkRoutines(c *checker, agents map[string]bool) {
	seen := map[string]bool{}
	for n, r := range m.Routines {
		at := fmt.Sprintf("routines[%d]", n)
		c.id(at+".id", r.ID, seen)
		c.text(at+".title", r.Title, true, maxName)
		c.text(at+".task", r.Task, false, maxText)
		if !agents[r.Agent] {
			c.add("%s.agent: %q is not an agent of the app", at, r.Agent)
		}
		if hole.MatchString(r.Cron) {
			c.holes(at+".cron", r.Cron, false)
		} else if _, err := core.ParseCron(r.Cron); err != nil {
			c.add("%s.cron: %v", at, err)
		}
		if _, err := time.LoadLocation(r.Zone); err != nil && !hole.MatchString(r.Zone) {
			c.add("%s.zone: %q is not a time zone", at, r.Zone)
		}
	}
}

// covers reports whether the capability has all hosts of a configuration.
func covers(network []string, hosts any) bool {
	list, _ := hosts.([]any)
	for _, h := range list {
		s, _ := h.(string)
		if !slices.Contains(network, s) && !slices.Contains(network, "*") {
			return false
		}
	}
	return true
}
