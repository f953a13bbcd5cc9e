package kernel

import (
	"encoding/json"
	"slices"
	"strings"
)

// A ScopeKind is whom a process may send messages to.
type ScopeKind string

// The kinds of scopes.
const (
	ScopeAll        ScopeKind = "all"
	ScopeParentOnly ScopeKind = "parent_only"
	ScopeRestricted ScopeKind = "restricted" // to the listed PIDs
	ScopeTopic      ScopeKind = "topic"      // to the listed topics
	ScopeNone       ScopeKind = "none"
)

// A Scope bounds the messages of a process. As JSON it is "all", "parent_only", "none",
// {"restricted":[1,2]} or {"topic":["a","b"]}.
type Scope struct {
	Kind   ScopeKind
	PIDs   []PID    // of ScopeRestricted
	Topics []string // of ScopeTopic
}

// MarshalJSON writes a scope.
func (s Scope) MarshalJSON() ([]byte, error) {
	switch s.Kind {
	case ScopeRestricted:
		return json.Marshal(map[ScopeKind][]PID{s.Kind: append([]PID{}, s.PIDs...)})
	case ScopeTopic:
		return json.Marshal(map[ScopeKind][]string{s.Kind: append([]string{}, s.Topics...)})
	case "":
		return json.Marshal(ScopeAll)
	}
	return json.Marshal(s.Kind)
}

// UnmarshalJSON reads a scope.
func (s *Scope) UnmarshalJSON(b []byte) error {
	const shape = `ipc_scope: give "all", "parent_only", "none", {"restricted":[PID]} or {"topic":["NAME"]}`
	var kind ScopeKind
	if json.Unmarshal(b, &kind) == nil {
		switch kind {
		case ScopeAll, ScopeParentOnly, ScopeNone:
			*s = Scope{Kind: kind}
			return nil
		}
		return errorf(BadRequest, shape)
	}
	var lists struct {
		Restricted *[]PID    `json:"restricted"`
		Topic      *[]string `json:"topic"`
	}
	if err := json.Unmarshal(b, &lists); err != nil || (lists.Restricted == nil) == (lists.Topic == nil) {
		return errorf(BadRequest, shape)
	}
	if lists.Restricted != nil {
		*s = Scope{Kind: ScopeRestricted, PIDs: *lists.Restricted}
	} else {
		*s = Scope{Kind: ScopeTopic, Topics: *lists.Topic}
	}
	return nil
}

// Capabilities say what a process may do.
type Capabilities struct {
	CanSpawn     bool   `json:"can_spawn"`
	CanIPC       bool   `json:"can_ipc"`
	CanExecTools bool   `json:"can_exec_tools"`
	CanNetwork   bool   `json:"can_network"`
	Scope        Scope  `json:"ipc_scope"`
	Limits       Limits `json:"resource_limits"`
}

// DefaultCapabilities are those of a process that names none.
func DefaultCapabilities() Capabilities {
	return Capabilities{CanSpawn: true, CanIPC: true, CanExecTools: true, Scope: Scope{Kind: ScopeAll},
		Limits: DefaultLimits()}
}

// aliases are the second spellings of the fields of Capabilities and Limits.
var aliases = map[string]string{
	"canSpawn": "can_spawn", "canIpc": "can_ipc", "canExecTools": "can_exec_tools", "canNetwork": "can_network",
	"ipcScope": "ipc_scope", "resourceLimits": "resource_limits",
	"maxMemoryBytes": "max_memory_bytes", "maxCpuTimeMs": "max_cpu_time_ms", "maxToolCalls": "max_tool_calls",
	"maxMessages": "max_messages", "maxDiskBytes": "max_disk_bytes", "maxCostCents": "max_cost_cents",
}

// UnmarshalJSON reads capabilities; a field that is absent has its default. Fields may be
// spelled canSpawn too.
func (c *Capabilities) UnmarshalJSON(b []byte) error {
	type plain Capabilities
	out := plain(DefaultCapabilities())
	if err := unmarshalAliased(b, &out); err != nil {
		return err
	}
	*c = Capabilities(out)
	return nil
}

// UnmarshalJSON reads limits into l; a field that is absent keeps its value.
func (l *Limits) UnmarshalJSON(b []byte) error {
	type plain Limits
	out := plain(*l)
	if err := unmarshalAliased(b, &out); err != nil {
		return err
	}
	*l = Limits(out)
	return nil
}

func unmarshalAliased(b []byte, into any) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	for alias, name := range aliases {
		v, ok := fields[alias]
		if !ok {
			continue
		}
		if _, twice := fields[name]; twice {
			return errorf(BadRequest, "%s and %s are one field: give one of them", name, alias)
		}
		fields[name] = v
		delete(fields, alias)
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// Within refuses with CapabilityDenied if c allows something that ceiling does not.
func (c Capabilities) Within(ceiling Capabilities) error {
	var over []string
	for _, f := range []struct {
		name       string
		own, bound bool
	}{
		{"can_spawn", c.CanSpawn, ceiling.CanSpawn},
		{"can_ipc", c.CanIPC, ceiling.CanIPC},
		{"can_exec_tools", c.CanExecTools, ceiling.CanExecTools},
		{"can_network", c.CanNetwork, ceiling.CanNetwork},
		{"ipc_scope", !c.Scope.within(ceiling.Scope), false},
	} {
		if f.own && !f.bound {
			over = append(over, f.name)
		}
	}
	if r, ok := c.Limits.Within(ceiling.Limits); !ok {
		over = append(over, "limit of "+string(r))
	}
	if len(over) > 0 {
		return errorf(CapabilityDenied, "the ceiling does not allow: %s", strings.Join(over, ", "))
	}
	return nil
}

// Capped returns what both c and ceiling allow.
func (c Capabilities) Capped(ceiling Capabilities) Capabilities {
	c.CanSpawn = c.CanSpawn && ceiling.CanSpawn
	c.CanIPC = c.CanIPC && ceiling.CanIPC
	c.CanExecTools = c.CanExecTools && ceiling.CanExecTools
	c.CanNetwork = c.CanNetwork && ceiling.CanNetwork
	if !c.Scope.within(ceiling.Scope) {
		c.Scope = ceiling.Scope
	}
	c.Limits = c.Limits.Capped(ceiling.Limits)
	return c
}

// within reports whether every target of s is one of most.
func (s Scope) within(most Scope) bool {
	switch {
	case most.Kind == "" || most.Kind == ScopeAll || s.Kind == ScopeNone:
		return true
	case s.Kind != most.Kind:
		return s.Kind == ScopeRestricted && len(s.PIDs) == 0
	case s.Kind == ScopeRestricted:
		return !slices.ContainsFunc(s.PIDs, func(p PID) bool { return !slices.Contains(most.PIDs, p) })
	case s.Kind == ScopeTopic:
		return !slices.ContainsFunc(s.Topics, func(t string) bool { return !slices.Contains(most.Topics, t) })
	}
	return true
}

// MaySend refuses if a process may not send to another, of its own node; parent is its
// own parent.
func (c Capabilities) MaySend(parent, to PID) error {
	ok := c.CanIPC
	switch c.Scope.Kind {
	case ScopeParentOnly:
		ok = ok && to == parent
	case ScopeRestricted:
		ok = ok && slices.Contains(c.Scope.PIDs, to)
	case ScopeTopic, ScopeNone:
		ok = false
	}
	if !ok {
		return errorf(CapabilityDenied, "this process may not send to process %s: its ipc_scope is %s", to, c.scopeName())
	}
	return nil
}

// MayPublish refuses if a process may not use a topic.
func (c Capabilities) MayPublish(topic string) error {
	ok := c.CanIPC
	switch c.Scope.Kind {
	case ScopeTopic:
		ok = ok && slices.Contains(c.Scope.Topics, topic)
	case ScopeParentOnly, ScopeRestricted, ScopeNone:
		ok = false
	}
	if !ok {
		return errorf(CapabilityDenied, "this process may not use topic %q: its ipc_scope is %s", topic, c.scopeName())
	}
	return nil
}

func (c Capabilities) scopeName() string {
	if !c.CanIPC {
		return "without effect, can_ipc is false"
	}
	b, _ := c.Scope.MarshalJSON()
	return string(b)
}

// Permissions list what tools and services a process may use. Deny goes before allow; an
// empty list allows all.
type Permissions struct {
	Allow    []string `json:"allow,omitempty"`
	Deny     []string `json:"deny,omitempty"`
	Services []string `json:"service_access,omitempty"`
}

// A SandboxPolicy bounds what tools do to the machine.
type SandboxPolicy struct {
	AllowShell   bool     `json:"allow_shell,omitempty"`
	AllowNetwork bool     `json:"allow_network,omitempty"`
	AllowedPaths []string `json:"allowed_paths,omitempty"`
	DeniedPaths  []string `json:"denied_paths,omitempty"`
}

// shells are the names of tools that run any command.
var shells = []string{"shell_exec", "exec_shell", "bash", "command", "run_command"}

// MayCall refuses if a process may not call a tool. It checks in this order: can_exec_tools,
// the list deny, the list allow, and allow_shell for a tool that runs any command. A nil
// list allows all, a nil policy allows shells.
func (c Capabilities) MayCall(tool string, p *Permissions, s *SandboxPolicy) error {
	switch {
	case !c.CanExecTools:
		return errorf(CapabilityDenied, "tool %s: this process may not call tools", tool)
	case p != nil && slices.Contains(p.Deny, tool):
		return errorf(CapabilityDenied, "tool %s: it is denied to this process", tool)
	case p != nil && len(p.Allow) > 0 && !slices.Contains(p.Allow, tool):
		return errorf(CapabilityDenied, "tool %s: it is not among the tools that this process may call", tool)
	case s != nil && !s.AllowShell && slices.Contains(shells, tool):
		return errorf(CapabilityDenied, "tool %s: the sandbox of this process allows no shell", tool)
	}
	return nil
}

// MayUse refuses if a process may not call a service.
func (p Permissions) MayUse(service string) error {
	if len(p.Services) > 0 && !slices.Contains(p.Services, service) {
		return errorf(CapabilityDenied, "service %s: it is not among the services that this process may call", service)
	}
	return nil
}
