package process

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/app"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/replica"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/ledger"
)

// A specBody is what is to be started.
type specBody struct {
	Name         string            `json:"name,omitempty" maxLength:"64" doc:"default: after what is started"`
	Backend      string            `json:"backend,omitempty" enum:"native,wasm,container,remote" doc:"default: by what is given; remote: on another node, which is named"`
	Command      []string          `json:"command,omitempty" maxItems:"256" doc:"program and arguments; of a module or a container its arguments"`
	Module       string            `json:"module,omitempty" maxLength:"64" doc:"SHA-256 of a stored module"`
	ModuleBytes  int64             `json:"module_bytes,omitempty" minimum:"0" doc:"size of the module"`
	Image        string            `json:"image,omitempty" maxLength:"512" doc:"of a container"`
	Env          map[string]string `json:"env,omitempty"`
	Dir          string            `json:"dir,omitempty" maxLength:"4096" doc:"absolute; default: a folder of its own"`
	Role         string            `json:"role,omitempty" enum:"supervisor,service,worker,user,custom"`
	Agency       json.RawMessage   `json:"agency,omitempty" maxBytes:"16384" doc:"what it may give its children: max_children, allowed_roles, capability_ceiling"`
	Capabilities json.RawMessage   `json:"capabilities,omitempty" maxBytes:"16384" doc:"can_spawn, can_ipc, can_exec_tools, can_network, ipc_scope, resource_limits; what is absent has its default"`
	Restart      string            `json:"restart,omitempty" maxLength:"32" doc:"one_for_one (always), one_for_all, rest_for_one, transient (on-failure) or permanent (never)"`
	Group        string            `json:"group,omitempty" maxLength:"600" doc:"of the supervisor, such as app/web"`
	OnLimit      string            `json:"on_limit,omitempty" enum:"end,suspend" doc:"what happens at 100 % of a limit; default end"`
	Node         string            `json:"node,omitempty" maxLength:"128" doc:"name or ID of the only node that may run it"`
}

type spawnBody struct {
	specBody
	Parent uint64 `json:"parent_pid,omitempty" doc:"a process of the same node; default 0, the kernel"`
}

type declareBody struct {
	specBody
	Replicas int64    `json:"replicas" minimum:"1" maximum:"64"`
	Labels   []string `json:"labels,omitempty" maxItems:"16" doc:"labels that a node needs to run it"`
}

// read decodes a member of a body that the kernel reads itself; an absent one leaves into as it is.
func read(member string, from json.RawMessage, into any) error {
	if len(from) == 0 {
		return nil
	}
	if err := json.Unmarshal(from, into); err != nil {
		return api.Invalid("%s: %v", member, err)
	}
	return nil
}

// spec returns the specification, with defaults and checked. usual is the default strategy.
func (b specBody) spec(usual kernel.Strategy) (kernel.Spec, error) {
	s := kernel.Spec{Name: b.Name, Backend: kernel.Kind(b.Backend), Command: b.Command, Module: b.Module,
		ModuleBytes: b.ModuleBytes, Image: b.Image, Env: b.Env, Dir: b.Dir,
		Role: kernel.Role(b.Role), Restart: usual, Group: b.Group, OnLimit: kernel.OnLimit(b.OnLimit)}
	if err := cmp.Or(read("agency", b.Agency, &s.Agency), read("capabilities", b.Capabilities,
		&s.Capabilities)); err != nil {
		return s, err
	}
	if b.Backend == "remote" {
		if b.Node == "" {
			return s, api.Invalid("node: required for the backend remote")
		}
		s.Backend = ""
	}
	if b.Restart != "" {
		var err error
		if s.Restart, err = kernel.ParseStrategy(b.Restart); err != nil {
			return s, api.Invalid("%s", err.Error())
		}
	}
	s = s.WithDefaults()
	if err := s.Validate(); err != nil {
		return s, refuse(kernel.BadRequest, err.Error())
	}
	return s, nil
}

// order has the gate weigh what a node is to do, and the log remember it, before it is done.
func order(rc *api.Request, kind string, n nodeRef, o replica.Order) error {
	o.Node = string(n.id)
	_, err := rc.Submit(kind, "", o)
	return err
}

func spawnProcess(rc *api.Request) (api.Response, error) {
	in, err := api.Body[spawnBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	spec, err := in.spec(kernel.Permanent)
	if err != nil {
		return api.Response{}, err
	}
	spec.Parent = kernel.PID(in.Parent)
	if rc.IsBoard() {
		spec.By = rc.Actor.ID
	}
	n, err := findNode(rc, in.Node)
	if err != nil {
		return api.Response{}, err
	}
	if err := order(rc, replica.KindSpawn, n, replica.Order{Name: spec.Name, Backend: string(spec.Backend)}); err != nil {
		return api.Response{}, err
	}
	out, err := ask(rc, n, api.ProcessAsk{Op: api.ProcessSpawn, Spec: &spec})
	return one(rc, n, out, err)
}

// A declaration is a declared process with its replicas. Variables are shown by name.
type declaration struct {
	ID         string        `json:"id"`
	Name       string        `json:"name"`
	App        string        `json:"app"` // name of the app that it is part of
	Backend    string        `json:"backend"`
	Command    []string      `json:"command"`
	Module     string        `json:"module"`
	Image      string        `json:"image"`
	Env        []string      `json:"env"` // names
	Restart    string        `json:"restart"`
	Group      string        `json:"group"`
	OnLimit    string        `json:"on_limit"`
	Limits     kernel.Limits `json:"limits"`
	Labels     []string      `json:"labels"`
	Node       string        `json:"node_id"`
	Generation uint64        `json:"generation"`
	Wanted     int           `json:"replicas"`
	Running    int           `json:"running"`
	Replicas   []replicaRow  `json:"instances"`
	By         string        `json:"declared_by"`
	CreatedAt  core.Time     `json:"created_at"`
	UpdatedAt  core.Time     `json:"updated_at"`
}

type replicaRow struct {
	replica.Replica
	Name    string `json:"node"`
	Address string `json:"address"` // "" while it has no process
}

func declarationOf(tx *ledger.Tx, d replica.Declared) declaration {
	var s kernel.Spec
	_ = json.Unmarshal(d.Spec, &s) // it was checked when it was declared
	s = s.LongLived()
	of := cmp.Or(s.App, app.OfProcess(tx, ledger.CompanyID(s.Company), d.Name))
	out := declaration{ID: d.ID, Name: d.Name, App: of, Backend: string(s.Backend),
		Command: append([]string{}, s.Command...),
		Module:  s.Module, Image: s.Image, Restart: string(s.Restart),
		Env: slices.AppendSeq([]string{}, maps.Keys(s.Env)), Group: s.Group, OnLimit: string(s.OnLimit),
		Limits: s.Capabilities.Limits, Labels: append([]string{}, d.Labels...), Node: d.Node,
		Generation: d.Generation, Wanted: len(d.Replicas), Replicas: []replicaRow{}, By: d.By, CreatedAt: d.CreatedAt,
		UpdatedAt: d.UpdatedAt}
	slices.Sort(out.Env)
	for _, r := range d.Replicas {
		n, _ := ledger.FindNode(tx, identity.NodeID(r.Node))
		one := replicaRow{Replica: r, Name: n.Name}
		if r.PID != 0 {
			one.Address = kernel.Address{Node: n.Name, PID: kernel.PID(r.PID)}.String()
		}
		if r.State == replica.Running {
			out.Running++
		}
		out.Replicas = append(out.Replicas, one)
	}
	return out
}

func listDeclared(tx *ledger.Tx, rc *api.Request) ([]declaration, error) {
	out := []declaration{}
	for _, d := range replica.All(tx) {
		out = append(out, declarationOf(tx, d))
	}
	return out, nil
}

func findDeclared(tx *ledger.Tx, rc *api.Request) (replica.Declared, error) {
	d, ok := replica.Named(tx, rc.Path("name"))
	if !ok {
		return d, api.NotFound("No process is declared by this name")
	}
	return d, nil
}

func readDeclared(rc *api.Request) (api.Response, error) {
	return api.Viewed(rc, func(tx *ledger.Tx) (declaration, error) {
		d, err := findDeclared(tx, rc)
		return declarationOf(tx, d), err
	})
}

// longLived takes the default limit of processor time from a process that is to run on; one
// that was given stays.
func longLived(s *kernel.Spec, given json.RawMessage) {
	*s = s.LongLived()
	var said struct {
		Limits  map[string]json.RawMessage `json:"resource_limits"`
		Limits2 map[string]json.RawMessage `json:"resourceLimits"`
	}
	if len(given) == 0 || json.Unmarshal(given, &said) != nil {
		return // read refused what is malformed
	}
	for _, limits := range []map[string]json.RawMessage{said.Limits, said.Limits2} {
		if limits["max_cpu_time_ms"] != nil || limits["maxCpuTimeMs"] != nil {
			return
		}
	}
	s.Capabilities.Limits.CPUTimeMs = 0
}

func declareProcess(rc *api.Request) (api.Response, error) {
	in, err := api.Body[declareBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	in.Name = rc.Path("name")
	spec, err := in.spec(kernel.OneForOne)
	if err != nil {
		return api.Response{}, err
	}
	if err := noSecrets(spec); err != nil {
		return api.Response{}, err
	}
	longLived(&spec, in.Capabilities)
	p := replica.Declare{ID: rc.Ids()(), Name: in.Name, Replicas: in.Replicas, Labels: in.Labels, Module: spec.Module,
		Size: spec.ModuleBytes}
	if p.Spec, err = json.Marshal(spec); err != nil {
		return api.Response{}, err
	}
	if in.Node != "" {
		n, err := findNode(rc, in.Node)
		if err != nil {
			return api.Response{}, err
		}
		p.Node = string(n.id)
	}
	if _, err := rc.Submit(replica.KindDeclare, "", p); err != nil {
		return api.Response{}, err
	}
	return readDeclared(rc)
}

func removeDeclared(rc *api.Request) (api.Response, error) {
	var id string
	err := rc.View(func(tx *ledger.Tx) error {
		d, err := findDeclared(tx, rc)
		id = d.ID
		return err
	})
	if err != nil {
		return api.Response{}, err
	}
	_, err = rc.Submit(replica.KindRemove, "", replica.Remove{ID: id})
	return api.Response{}, err
}
