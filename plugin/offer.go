package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/app"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/kernel"
)

const (
	// maxScript bounds a script of a service or a hook, which is a word of a command, maxReplicas the replicas of a
	// service, maxEnv the variables of a program.
	maxScript   = 30 << 10
	maxReplicas = 8
	maxEnv      = 32
	maxMethods  = 32
	// hookOutput is what the log of a hook's program keeps, in bytes.
	hookOutput = 256 << 10
	// mostMemory bounds what a program may ask for, in MiB.
	mostMemory = 4096
)

// A Tool can be called by the agents of the company, as APP/NAME: a module, or a method of a service of the app.
type Tool struct {
	Name       string         `toml:"name" json:"name"`
	About      string         `toml:"about" json:"about,omitempty"`
	Module     string         `toml:"module" json:"module,omitempty"`   // a file; its standard input is the arguments
	Service    string         `toml:"service" json:"service,omitempty"` // with Method, instead of Module
	Method     string         `toml:"method" json:"method,omitempty"`
	Parameters map[string]any `toml:"parameters" json:"parameters,omitempty"` // a JSON schema
	// risk, security, privacy, novelty, fairness: 0 to 1
	Effect map[string]float64 `toml:"effect" json:"effect,omitempty"`
}

// A Service is a program that runs as long as the app does, and answers the calls of its methods, as APP/NAME.
type Service struct {
	Name    string   `toml:"name" json:"name"`
	About   string   `toml:"about" json:"about,omitempty"`
	Version string   `toml:"version" json:"version,omitempty"` // of the contract; the app's unless given
	Methods []Method `toml:"methods" json:"methods"`
	Probe   string   `toml:"probe" json:"probe,omitempty"`
	Program
	Image    string `toml:"image" json:"image,omitempty"` // of a container, instead of a script or a module
	Replicas int64  `toml:"replicas" json:"replicas,omitempty"`
}

// A Method is what a service can be asked.
type Method struct {
	Name   string         `toml:"name" json:"name"`
	About  string         `toml:"about" json:"about,omitempty"`
	Params map[string]any `toml:"params" json:"params,omitempty"` // JSON schemas
	Result map[string]any `toml:"result" json:"result,omitempty"`
}

// A Program is what a node runs in its sandbox: a script under the limits of a process, or a module.
type Program struct {
	Script   string            `toml:"script" json:"script,omitempty"` // a file that /bin/sh runs
	Module   string            `toml:"module" json:"module,omitempty"` // a file of WebAssembly
	Args     []string          `toml:"args" json:"args,omitempty"`
	Env      map[string]string `toml:"env" json:"env,omitempty"`
	MemoryMB int64             `toml:"memory_mb" json:"memory_mb,omitempty"`
}

// Hooks are what happens at the events of an app. Their tasks are issues: those of on_install and on_start of an agent
// of the app, the others of the board, because the app's agents do not work any more. Their programs run on a node.
type Hooks struct {
	OnInstall *Hook `toml:"on_install" json:"on_install,omitempty"`
	OnStart   *Hook `toml:"on_start" json:"on_start,omitempty"`
	OnStop    *Hook `toml:"on_stop" json:"on_stop,omitempty"`
	OnUpgrade *Hook `toml:"on_upgrade" json:"on_upgrade,omitempty"`
	OnRemove  *Hook `toml:"on_remove" json:"on_remove,omitempty"`
	Health    *Hook `toml:"health" json:"health,omitempty"` // after an upgrade; its failure takes the upgrade back
}

// A Hook is a task, or a program, or both.
type Hook struct {
	Agent string `toml:"agent" json:"agent,omitempty"` // the first one unless given
	Title string `toml:"title" json:"title,omitempty"`
	Task  string `toml:"task" json:"task,omitempty"`
	Program
	Time string `toml:"time" json:"time,omitempty"` // that the program may take, such as "30s"; 1m unless given
}

// runs reports whether a hook has a program.
func (h *Hook) runs() bool { return h != nil && (h.Script != "" || h.Module != "") }

// all returns the hooks in the order of app.Events.
func (h Hooks) all() map[app.Event]*Hook {
	return map[app.Event]*Hook{app.OnInstall: h.OnInstall, app.OnStart: h.OnStart, app.OnStop: h.OnStop,
		app.OnUpgrade: h.OnUpgrade, app.OnRemove: h.OnRemove, app.OnHealth: h.Health}
}

// Programs returns the events whose hooks have programs.
func (h Hooks) Programs() (out []app.Event) {
	all := h.all()
	for _, e := range app.Events {
		if all[e].runs() {
			out = append(out, e)
		}
	}
	return out
}

var methodForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// program checks what a node is to run.
func (c *checker) program(at string, p Program, shell bool) {
	c.file(at+".script", p.Script, false)
	c.file(at+".module", p.Module, false)
	switch {
	case p.Script != "" && p.Module != "":
		c.add("%s: script or module, not both", at)
	case p.Script != "" && !shell:
		c.add("%s.script: it is a program of the node; set capabilities.shell", at)
	case p.Script != "" && len(c.files[p.Script]) > maxScript:
		c.add("%s.script: %s has %d bytes, at most %d", at, p.Script, len(c.files[p.Script]), maxScript)
	}
	if p.MemoryMB < 0 || p.MemoryMB > mostMemory {
		c.add("%s.memory_mb: 0 to %d", at, mostMemory)
	}
	if len(p.Env) > maxEnv || len(p.Args) > maxEnv {
		c.add("%s: at most %d variables and arguments", at, maxEnv)
	}
	for _, k := range slices.Sorted(maps.Keys(p.Env)) {
		if conceal.SecretName(k) {
			c.add("%s.env.%s: its name says that it is a secret, and what a program gets is stored readable", at, k)
		}
		c.text(at+".env."+k, p.Env[k], false, 2000)
	}
	for n, a := range p.Args {
		c.text(fmt.Sprintf("%s.args[%d]", at, n), a, false, 2000)
	}
}

// schema checks the size of a JSON schema; what it says is checked where schemas are held to.
func (c *checker) schema(at string, s map[string]any) {
	if s == nil {
		return
	}
	if b, err := json.Marshal(s); err != nil || len(b) > 16<<10 {
		c.add("%s: a JSON schema of at most %d bytes", at, 16<<10)
	}
}

// Schemas returns the JSON schemas of a manifest, by where they are.
func (m Manifest) Schemas() map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, s := range m.Services {
		for _, f := range s.Methods {
			at := "services." + s.Name + "." + f.Name
			out[at+".params"], out[at+".result"] = rawSchema(f.Params), rawSchema(f.Result)
		}
	}
	for _, t := range m.Tools {
		out["tools."+t.Name+".parameters"] = rawSchema(t.Parameters)
	}
	return out
}

// checkServices returns the methods of services by APP-internal name.
func (m Manifest) checkServices(c *checker) map[string]map[string]bool {
	seen, methods := map[string]bool{}, map[string]map[string]bool{}
	if len(m.Services) > app.MaxServices {
		c.add("services: at most %d", app.MaxServices)
	}
	for n, s := range m.Services {
		at := fmt.Sprintf("services[%d]", n)
		c.id(at+".name", s.Name, seen)
		c.text(at+".about", s.About, false, 500)
		c.text(at+".version", s.Version, false, 64)
		c.program(at, s.Program, m.Capabilities.Shell)
		switch {
		case s.Script == "" && s.Module == "" && s.Image == "":
			c.add("%s: a script, a module or an image is required", at)
		case s.Image != "" && (s.Script != "" || s.Module != ""):
			c.add("%s: an image, or a script or module, not both", at)
		case s.Image != "" && !m.Capabilities.Shell:
			c.add("%s.image: it is a program that a node runs; set capabilities.shell", at)
		}
		if s.Replicas < 0 || s.Replicas > maxReplicas {
			c.add("%s.replicas: 1 to %d", at, maxReplicas)
		}
		if len(s.Methods) == 0 || len(s.Methods) > maxMethods {
			c.add("%s.methods: 1 to %d", at, maxMethods)
		}
		of := map[string]bool{}
		for k, f := range s.Methods {
			at := fmt.Sprintf("%s.methods[%d]", at, k)
			if !methodForm.MatchString(f.Name) || of[f.Name] {
				c.add("%s.name: letters, digits, dots, - and _, at most 64, and each once", at)
			}
			of[f.Name] = true
			c.text(at+".about", f.About, false, 500)
			c.schema(at+".params", f.Params)
			c.schema(at+".result", f.Result)
		}
		if s.Probe != "" && !of[s.Probe] {
			c.add("%s.probe: %q is not one of its methods", at, s.Probe)
		}
		methods[s.Name] = of
	}
	return methods
}

var effects = []string{"risk", "security", "privacy", "novelty", "fairness"}

func (m Manifest) checkTools(c *checker, methods map[string]map[string]bool) {
	seen := map[string]bool{}
	if len(m.Tools) > app.MaxTools {
		c.add("tools: at most %d", app.MaxTools)
	}
	for n, t := range m.Tools {
		at := fmt.Sprintf("tools[%d]", n)
		c.id(at+".name", t.Name, seen)
		c.text(at+".about", t.About, false, 2000)
		c.file(at+".module", t.Module, false)
		c.schema(at+".parameters", t.Parameters)
		switch {
		case t.Module != "" && t.Service != "":
			c.add("%s: a module, or a service and its method, not both", at)
		case t.Module == "" && t.Service == "":
			c.add("%s: a module, or a service of the app and its method, is required", at)
		case t.Service != "" && !methods[t.Service][t.Method]:
			c.add("%s.method: the app has no service %s with a method %s", at, t.Service, t.Method)
		}
		for _, e := range slices.Sorted(maps.Keys(t.Effect)) {
			if v := t.Effect[e]; !slices.Contains(effects, e) || !(v >= 0 && v <= 1) {
				c.add("%s.effect.%s: one of risk, security, privacy, novelty and fairness, from 0 to 1", at, e)
			}
		}
	}
}

func (m Manifest) checkHooks(c *checker, agents map[string]bool) {
	all := m.Hooks.all()
	for _, e := range app.Events {
		h, at := all[e], "hooks."+string(e)
		if h == nil {
			continue
		}
		c.text(at+".title", h.Title, !h.runs(), maxName)
		c.text(at+".task", h.Task, false, maxText)
		c.program(at, h.Program, m.Capabilities.Shell)
		if (e == app.OnUpgrade || e == app.OnHealth) && (!h.runs() || h.Title != "") {
			c.add("%s: a script or a module, and no task", at)
		}
		if (e == app.OnInstall || e == app.OnStart) &&
			(h.Agent != "" && !agents[h.Agent] || h.Title != "" && len(m.Agents) == 0) {
			c.add("%s.agent: %q is not an agent of the app", at, h.Agent)
		}
		if d, err := time.ParseDuration(h.Time); h.Time != "" &&
			(err != nil || d < time.Millisecond || d.Milliseconds() > app.MaxHookTime || !h.runs()) {
			c.add("%s.time: of its program, such as 30s, at most %ds", at, app.MaxHookTime/1000)
		}
	}
}

// process returns a program as the mesh declares it. about are the variables that say what it is run for.
func (s Source) process(name string, p Program, image string, about map[string]string) (n company.NewProcess,
	spec kernel.Spec) {
	limits := kernel.DefaultLimits()
	if p.MemoryMB > 0 {
		limits.MemoryBytes = p.MemoryMB << 20
	}
	can := kernel.Capabilities{CanIPC: true, CanNetwork: len(s.Manifest.Capabilities.Network) > 0,
		Scope: kernel.Scope{Kind: kernel.ScopeRestricted}, Limits: limits} // it replies to who asks it
	if s.Manifest.Capabilities.IPC {
		can.Scope = kernel.Scope{Kind: kernel.ScopeAll}
	}
	spec = kernel.Spec{Name: s.Manifest.Name + "." + name, App: s.Manifest.Name, Role: kernel.RoleService,
		Restart: kernel.OneForOne, Env: about, Capabilities: &can, Image: image}
	spec.Name = spec.Name[:min(len(spec.Name), 64)]
	for k, v := range p.Env {
		spec.Env[k] = s.fill(v)
	}
	var args []string
	for _, a := range p.Args {
		args = append(args, s.fill(a))
	}
	spec.Command = args
	switch {
	case p.Script != "":
		spec.Command = append([]string{"/bin/sh", "-c", string(s.Archive.Files[p.Script]), "sh"}, args...)
	case p.Module != "":
		f := s.Stored[p.Module]
		spec.Module, spec.ModuleBytes = f.SHA256, f.Size
		n.Module, n.Size, n.Nodes = f.SHA256, f.Size, f.Nodes
	}
	n.Replicas = 1
	return n, spec
}

// sealed checks a specification and puts it into a process.
func sealed(n company.NewProcess, spec kernel.Spec) (company.NewProcess, error) {
	spec = spec.WithDefaults()
	if spec.Module == "" && spec.Backend == kernel.KindWasm {
		return n, fmt.Errorf("its module is not stored")
	}
	err := spec.Validate()
	if err == nil {
		n.Spec, err = json.Marshal(spec)
	}
	if err == nil {
		err = json.Unmarshal(n.Spec, &spec) // as its node will
	}
	return n, err
}

func (s Source) about(more ...string) map[string]string {
	env := map[string]string{"SELVAGE_APP": s.Manifest.Name, "SELVAGE_APP_VERSION": s.Manifest.Version,
		"SELVAGE_COMPANY_ID": string(s.Company)}
	for i := 0; i+1 < len(more); i += 2 {
		env[more[i]] = more[i+1]
	}
	return env
}

func rawSchema(s map[string]any) json.RawMessage {
	if s == nil {
		return nil
	}
	b, _ := json.Marshal(s) // it was checked
	return b
}

// service returns a service as it is stored.
func (s Source) service(v Service) (out app.Service, err error) {
	n, spec := s.process(v.Name, v.Program, v.Image, s.about("SELVAGE_SERVICE", s.Manifest.Name+"/"+v.Name))
	spec.Company, spec.Capabilities.Limits.CPUTimeMs = string(s.Company), 0 // it is to run on
	spec.Capabilities.Limits.Messages = 0
	n.Replicas = max(1, v.Replicas)
	if v.Module != "" && s.Stored[v.Module].SHA256 == "" {
		spec.Module = emptyHash // it is stored after this check
	}
	out = app.Service{Name: v.Name, Contract: company.NewService{Version: v.Version, Probe: v.Probe}}
	if out.Contract.Version == "" {
		out.Contract.Version = s.Manifest.Version
	}
	for _, m := range v.Methods {
		out.Contract.Methods = append(out.Contract.Methods, company.NewMethod{Name: m.Name, Doc: m.About,
			Params: rawSchema(m.Params), Result: rawSchema(m.Result)})
	}
	out.Process, err = sealed(n, spec)
	return out, err
}

var emptyHash = hex.EncodeToString(sha256.New().Sum(nil))

// offers puts the services, tools and programs of a source into its release.
func (s Source) offers(r *app.Release) error {
	for _, v := range s.Manifest.Services {
		out, err := s.service(v)
		if err != nil {
			return fmt.Errorf("service %s: %w", v.Name, err)
		}
		r.Services = append(r.Services, out)
	}
	for _, t := range s.Manifest.Tools {
		n := company.NewTool{Name: s.Manifest.Name + "/" + t.Name, About: t.About, Parameters: rawSchema(t.Parameters)}
		for i, e := range effects {
			n.Effect[i] = int64(t.Effect[e]*1000 + 0.5)
		}
		if t.Module != "" {
			f := s.Stored[t.Module]
			n.Hash, n.Size, n.Asset = f.SHA256, f.Size, s.Modules[t.Module]
		} else {
			n.Service, n.Method = s.Manifest.Name+"/"+t.Service, t.Method
			sum := sha256.Sum256([]byte(n.Service + "\x00" + n.Method))
			n.Hash = hex.EncodeToString(sum[:])
		}
		n.Version, n.Signature, n.Signer = s.Signed(n.Name, n.Hash, t.Module != "")
		r.Tools = append(r.Tools, n)
	}
	hooks := s.Manifest.Hooks.all()
	for _, e := range app.Events {
		h := hooks[e]
		if !h.runs() {
			continue
		}
		p := app.Program{Event: e, Time: app.DefaultHookTime}
		if d, err := time.ParseDuration(h.Time); err == nil {
			p.Time = core.Time(d.Milliseconds())
		}
		n, spec := s.process(string(e), h.Program, "", s.about("SELVAGE_HOOK", string(e)))
		spec.Company, spec.Role, spec.Restart = string(s.Company), kernel.RoleWorker, kernel.Permanent
		spec.TimeMs, spec.OutputBytes = int64(p.Time), hookOutput
		var err error
		if p.Process, err = sealed(n, spec); err != nil {
			return fmt.Errorf("hook %s: %w", e, err)
		}
		r.Programs = append(r.Programs, p)
	}
	return nil
}

// AllModules returns the paths of the modules of an app, each once.
func (m Manifest) AllModules() (out []string) {
	add := func(path string) {
		if path != "" && !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	for _, a := range m.Agents {
		add(a.Module)
	}
	for _, s := range m.Services {
		add(s.Module)
	}
	for _, t := range m.Tools {
		add(t.Module)
	}
	hooks := m.Hooks.all()
	for _, e := range app.Events {
		if hooks[e] != nil {
			add(hooks[e].Module)
		}
	}
	return out
}
