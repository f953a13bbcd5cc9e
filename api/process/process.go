// Package process serves the processes of the mesh: list, start, signal, declare replicas,
// and the kernel's log of each node.
package process

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/adapter/runlog"
	"github.com/selvage-mesh/selvage/adapter/spawn"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/company/replica"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/sandbox"
)

const (
	// maxAsked bounds the nodes that are asked for one list, all at once, and maxPages the pages
	// of each.
	maxAsked = 64
	maxPages = 25
	// spawnWait bounds starting a process: a module is fetched, an image is pulled.
	spawnWait = 2*time.Minute + 20*time.Second
	// maxTail bounds the events of one answer.
	maxTail = kernel.EventLogSize
	// errorMost bounds the reason why a process was not started, in bytes.
	errorMost = 4 << 10
)

// Routes are those of processes.
func Routes() []api.Route {
	const tag, at, declaredAt = "kernel", "/api/v1/processes", "/api/v1/declared-processes"
	return []api.Route{
		{Method: "GET", Path: at, Kernel: true, Tag: tag, Summary: "List the processes of the whole mesh", Who: api.Admin,
			Out: []row{},
			Query: []api.Param{{Name: "all", Type: "boolean", Doc: "also those that ended lately"},
				{Name: "node", Doc: "only of this node, by name or ID"},
				{Name: "app", Doc: "only what is part of the app of this name: its runs, services, programs, " +
					"and what these spawned"}},
			Handle: listProcesses},
		{Method: "POST", Path: at, Kernel: true, Once: true, Tag: tag,
			Summary: "Start a process that is not declared: it ends with its node", Who: api.Admin, Status: 201,
			In: spawnBody{}, Out: row{}, Timeout: spawnWait, Handle: spawnProcess},
		{Method: "GET", Path: at + "/{id}", Kernel: true, Tag: tag,
			Summary: "Read a process, by node:pid, or by PID on this node", Who: api.Admin, Out: row{}, Handle: readProcess},
		{Method: "POST", Path: at + "/{id}/kill", Kernel: true, Once: true, Tag: tag,
			Summary: "Send a signal to a process; a run or a service is ended by its own rules", Who: api.Admin,
			In: killBody{}, Out: row{}, Handle: killProcess},
		{Method: "POST", Path: at + "/{id}/elevate", Kernel: true, Once: true, Tag: tag,
			Summary: "Give a process other capabilities, with a reason", Who: api.Admin,
			In: elevateBody{}, Out: row{}, Handle: elevateProcess},
		{Method: "GET", Path: at + "/{id}/log", Kernel: true, Tag: tag,
			Summary: "Read the output of a process that was started here", Who: api.Admin, Out: logPage{},
			Query: []api.Param{{Name: "offset", Type: "integer"}, {Name: "limitBytes", Type: "integer"}}, Handle: readLog},
		{Method: "POST", Path: "/api/v1/modules", Kernel: true, Tag: tag,
			Summary: "Store a WebAssembly module that processes are started from: a form with file", Who: api.Admin, Status: 201,
			Out: module{}, MaxBody: sandbox.DefaultModule + api.MultipartRoom, NoTool: true, Timeout: api.UploadTimeout,
			Handle: storeModule},
		{Method: "GET", Path: "/api/v1/dmesg", Kernel: true, Tag: tag,
			Summary: "Read the newest events of a node's kernel log", Who: api.Admin, Out: []kernel.Event{},
			Query: []api.Param{{Name: "node", Doc: "by name or ID; default: the answering one"}, {Name: "limit", Type: "integer",
				Doc: "at most so many"},
				{Name: "level", Doc: "only from this level up: debug, info, warn or error"}}, Handle: readEvents},
		api.Read(api.Route{Path: declaredAt, Kernel: true, Tag: tag,
			Summary: "List the declared processes, with where their replicas run", Who: api.Admin}, listDeclared),
		{Method: "PUT", Path: declaredAt + "/{name}", Kernel: true, Tag: tag,
			Summary: "Declare a process of which the mesh keeps replicas running, or change it", Who: api.Admin,
			In: declareBody{}, Out: declaration{}, Handle: declareProcess},
		{Method: "GET", Path: declaredAt + "/{name}", Kernel: true, Tag: tag, Summary: "Read a declared process",
			Who: api.Admin, Out: declaration{}, Handle: readDeclared},
		{Method: "DELETE", Path: declaredAt + "/{name}", Kernel: true, Tag: tag,
			Summary: "Remove a declared process and end its replicas", Who: api.Admin, Status: 204, Handle: removeDeclared},
	}
}

// A row is a process of the mesh. PID 0 of a node is the node itself; its state is unreachable
// when the node does not answer.
type row struct {
	Address      string               `json:"address"` // node:pid
	PID          uint64               `json:"pid"`
	Node         string               `json:"node"` // name
	NodeID       string               `json:"node_id"`
	State        string               `json:"state" enum:"starting,running,suspended,stopping,exited,unreachable"`
	Kind         string               `json:"kind"`
	Name         string               `json:"name"`
	Company      string               `json:"company"`
	App          string               `json:"app"` // name of the app that it is part of
	Agent        string               `json:"agent"`
	Run          string               `json:"run"`
	Adapter      string               `json:"adapter"`
	Declared     string               `json:"declared"` // ID of the declaration, or of the service
	Replica      int                  `json:"replica"`
	Parent       uint64               `json:"parent_pid"`
	Role         string               `json:"role"`
	Capabilities *kernel.Capabilities `json:"capabilities"`
	Use          kernel.Use           `json:"resource_usage"`
	Machine      int                  `json:"machine_pid"` // in the operating system; 0: it has none
	Restarts     int                  `json:"restarts"`
	StartedAt    *time.Time           `json:"started_at"`
	EndedAt      *time.Time           `json:"ended_at"`
	Age          int64                `json:"age_ms"`
	ExitCode     *int                 `json:"exit_code"`
	ExitReason   string               `json:"exit_reason"`
	Error        string               `json:"error"`
}

// A nodeRef is a node of the mesh.
type nodeRef struct {
	id   identity.NodeID
	name string
}

// rowOf describes an entry of a node.
func rowOf(n nodeRef, e kernel.Entry, now time.Time) row {
	r := row{Address: kernel.Address{Node: n.name, PID: e.PID}.String(), PID: uint64(e.PID), Node: n.name,
		NodeID: string(n.id), State: string(e.State), Kind: string(e.Kind), Name: e.Name,
		Company: e.Company, App: e.App, Agent: e.Agent, Run: e.Run, Adapter: e.Adapter,
		Declared: e.Declared, Replica: e.Replica,
		Parent: uint64(e.Parent), Role: string(e.Role),
		Capabilities: &e.Capabilities, Use: e.Use, Machine: e.Machine, Restarts: e.Restarts, StartedAt: &e.StartedAt}
	end := now
	if e.Exit != nil {
		r.EndedAt, r.ExitCode, r.ExitReason, r.Error = &e.EndedAt, &e.Exit.Code, string(e.Exit.Reason), e.Exit.Message
		end = e.EndedAt
	}
	r.Age = max(0, end.Sub(e.StartedAt).Milliseconds())
	return r
}

// nodes returns the members, by name.
func nodes(rc *api.Request) (out []nodeRef, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		for _, n := range ledger.Roster(tx) {
			if n.Member() {
				out = append(out, nodeRef{n.ID, n.Name})
			}
		}
		return nil
	})
	slices.SortFunc(out, func(a, b nodeRef) int { return strings.Compare(a.name+string(a.id), b.name+string(b.id)) })
	return out, err
}

// findNode finds a node by its name or ID; "" is the answering one.
func findNode(rc *api.Request, ref string) (nodeRef, error) {
	all, err := nodes(rc)
	if err != nil {
		return nodeRef{}, err
	}
	var found []nodeRef
	for _, n := range all {
		switch {
		case string(n.id) == ref, ref == "" && n.id == rc.Server.Cfg.NodeID:
			return n, nil
		case n.name == ref || n.id.Short() == ref:
			found = append(found, n)
		}
	}
	switch len(found) {
	case 0:
		return nodeRef{}, api.NotFound("Node not found")
	case 1:
		return found[0], nil
	}
	return nodeRef{}, api.Invalid("node %q: %d nodes have this name; give the ID", ref, len(found))
}

// statusOf says how the kinds of errors are answered.
var statusOf = map[kernel.ErrorKind]ledger.Code{
	kernel.ProcessNotFound: ledger.NotFound, kernel.InvalidStateTransition: ledger.Conflict,
	kernel.ProcessTableFull: ledger.TooMany,
	kernel.CapabilityDenied: ledger.Forbidden, kernel.GovernanceDenied: ledger.Forbidden,
	kernel.ResourceLimitExceeded: ledger.Conflict,
	kernel.SpawnFailed:           ledger.Unprocessable, kernel.BackendNotAvailable: ledger.Unprocessable,
	kernel.BadRequest: ledger.Invalid,
}

// refuse answers an error of a kind.
func refuse(kind kernel.ErrorKind, text string) error {
	code, known := statusOf[kind]
	if !known {
		code = ledger.Unprocessable
		kind = kernel.SpawnFailed
	}
	err := ledger.Refuse(code, nil, "%s", text[:min(len(text), errorMost)])
	if r, ok := errors.AsType[*ledger.Refusal](err); ok && kind != kernel.BadRequest {
		r.ErrCode = string(kind)
	}
	return err
}

// ask asks a node.
func ask(rc *api.Request, n nodeRef, a api.ProcessAsk) (api.ProcessAnswer, error) {
	if rc.Server.Cfg.Processes == nil {
		return api.ProcessAnswer{}, api.Unavailable("This node shows no processes")
	}
	out, err := rc.Server.Cfg.Processes(rc.Context(), n.id, a)
	if err != nil {
		return out, api.Unavailable("Node " + n.name + " does not answer; try again")
	}
	if out.Error != "" {
		return out, refuse(out.Kind, out.Error)
	}
	return out, nil
}

// one answers the only entry of an answer.
func one(rc *api.Request, n nodeRef, out api.ProcessAnswer, err error) (api.Response, error) {
	if err != nil {
		return api.Response{}, err
	}
	if len(out.Entries) != 1 {
		return api.Response{}, api.Unavailable("Node " + n.name + " did not say which process")
	}
	return api.OK(rowOf(n, out.Entries[0], rc.Now())), nil
}

func listProcesses(rc *api.Request) (api.Response, error) {
	all, err := rc.QueryBool("all")
	if err != nil {
		return api.Response{}, err
	}
	var of []nodeRef
	if ref := rc.Query("node"); ref != "" {
		n, err := findNode(rc, ref)
		if err != nil {
			return api.Response{}, err
		}
		of = []nodeRef{n}
	} else if of, err = nodes(rc); err != nil {
		return api.Response{}, err
	}
	of = of[:min(len(of), maxAsked)]
	pages := make([][]row, len(of))
	var wg sync.WaitGroup
	for i, n := range of {
		wg.Go(func() { pages[i] = processesOf(rc, n, all) })
	}
	wg.Wait()
	rows := append([]row{}, slices.Concat(pages...)...)
	if of := rc.Query("app"); of != "" { // a node that does not answer may have some of it
		rows = slices.DeleteFunc(rows, func(r row) bool { return r.App != of && r.State != "unreachable" })
	}
	return api.OK(rows), nil
}

// processesOf returns the processes of a node. One that does not answer has one row.
func processesOf(rc *api.Request, n nodeRef, all bool) (out []row) {
	silent := []row{{Address: kernel.Address{Node: n.name}.String(), Node: n.name, NodeID: string(n.id),
		Kind: string(kernel.KindKernel), Name: "kernel",
		State: "unreachable", Error: "the node does not answer"}}
	s := rc.Server
	if n.id != s.Cfg.NodeID && s.Cfg.Alive != nil && !s.Cfg.Alive(n.id) {
		return silent
	}
	q := api.ProcessAsk{Op: api.ProcessList, All: all}
	for range maxPages {
		page, err := ask(rc, n, q)
		if err != nil {
			return append(out, silent...)
		}
		for _, e := range page.Entries {
			out = append(out, rowOf(n, e, rc.Now()))
			q.PID = e.PID
		}
		if q.More = true; !page.More {
			break
		}
	}
	return out
}

// named finds the node of the process that the path names.
func named(rc *api.Request) (nodeRef, kernel.PID, error) {
	a, err := kernel.ParseAddress(rc.Path("id"))
	if err != nil {
		return nodeRef{}, 0, api.Invalid("%s", err.Error())
	}
	n, err := findNode(rc, a.Node)
	return n, a.PID, err
}

func readProcess(rc *api.Request) (api.Response, error) {
	n, pid, err := named(rc)
	if err != nil {
		return api.Response{}, err
	}
	out, err := ask(rc, n, api.ProcessAsk{Op: api.ProcessFind, PID: pid})
	return one(rc, n, out, err)
}

type killBody struct {
	Signal string `json:"signal,omitempty" maxLength:"16" doc:"TERM (default), KILL, STOP, CONT, INT, HUP, QUIT, USR1 or USR2"`
}

func killProcess(rc *api.Request) (api.Response, error) {
	in, err := api.Body[killBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	signal, err := spawn.ParseSignal(in.Signal)
	if err != nil {
		return api.Response{}, refuse(kernel.KindOf(err), err.Error())
	}
	n, pid, err := named(rc)
	if err != nil {
		return api.Response{}, err
	}
	out, err := ask(rc, n, api.ProcessAsk{Op: api.ProcessFind, PID: pid})
	if err != nil || len(out.Entries) != 1 {
		return one(rc, n, out, err)
	}
	e := out.Entries[0]
	if e.Kind != kernel.KindRun && e.Kind != kernel.KindService || !e.State.Live() {
		if err := order(rc, replica.KindKill, n, replica.Order{PID: uint64(pid), Name: e.Name, Backend: string(e.Kind),
			Signal: signal}); err != nil {
			return api.Response{}, err
		}
		out, err = ask(rc, n, api.ProcessAsk{Op: api.ProcessSignal, PID: pid, Signal: signal})
		return one(rc, n, out, err)
	}
	if signal != "TERM" && signal != "KILL" {
		return api.Response{}, refuse(kernel.InvalidStateTransition,
			"process "+pid.String()+" is a "+string(e.Kind)+": it takes TERM and KILL, which end it by its own rules")
	}
	if e.Kind == kernel.KindRun {
		_, err = rc.Submit(company.KindRunCancel, ledger.CompanyID(e.Company), company.Cancel{Run: e.Run})
	} else {
		err = stopService(rc, e.Declared)
	}
	if err != nil {
		return api.Response{}, err
	}
	return one(rc, n, out, nil)
}

// stopService has a service of a workspace stopped.
func stopService(rc *api.Request, id string) error {
	var s place.RuntimeService
	err := rc.View(func(tx *ledger.Tx) error {
		var ok bool
		if s, ok = place.ServiceByID(tx, id); !ok {
			return api.NotFound("Runtime service not found")
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = rc.Submit(place.KindRuntimeServiceControl, s.Company, place.ControlServices{Operation: rc.Ids()(),
		Workspace: s.Place, Action: "stop", Service: s.ID})
	return err
}

type elevateBody struct {
	Capabilities json.RawMessage `json:"capabilities" maxBytes:"16384" doc:"what the process may do and use from now on; what is absent has its default"`
	Seconds      int64           `json:"seconds,omitempty" minimum:"0" maximum:"86400" doc:"after which it has what it had before; 0: as long as it lives"`
	Reason       string          `json:"reason" minLength:"1" maxLength:"1000"`
}

func elevateProcess(rc *api.Request) (api.Response, error) {
	in, err := api.Body[elevateBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	n, pid, err := named(rc)
	if err != nil {
		return api.Response{}, err
	}
	var wanted kernel.Capabilities
	if err := read("capabilities", in.Capabilities, &wanted); err != nil {
		return api.Response{}, err
	}
	if err := order(rc, replica.KindElevate, n, replica.Order{PID: uint64(pid), Seconds: uint64(in.Seconds),
		Why: in.Reason}); err != nil {
		return api.Response{}, err
	}
	out, err := ask(rc, n, api.ProcessAsk{Op: api.ProcessElevate, PID: pid, Capabilities: &wanted, Seconds: in.Seconds})
	return one(rc, n, out, err)
}

// A logPage is a part of a process's output: lines of JSON.
type logPage struct {
	Content string `json:"content"`
	Next    *int64 `json:"nextOffset,omitempty"`
}

func readLog(rc *api.Request) (api.Response, error) {
	n, pid, err := named(rc)
	if err != nil {
		return api.Response{}, err
	}
	offset, err := rc.QueryInt64("offset", 0, 0, 1<<40)
	if err != nil {
		return api.Response{}, err
	}
	limit, err := rc.QueryInt64("limitBytes", runlog.MaxRead, 1, runlog.MaxRead)
	if err != nil {
		return api.Response{}, err
	}
	if rc.Server.Cfg.NodeLog == nil {
		return api.Response{}, api.Unavailable("This node reads no logs")
	}
	chunk, err := rc.Server.Cfg.NodeLog(rc.Context(), n.id, api.ProcessLogRef(pid), offset, limit)
	switch {
	case errors.Is(err, runlog.ErrNoLog):
		return api.Response{}, api.NotFound("The process has no log: it was not started by the kernel, or its log is gone")
	case err != nil:
		return api.Response{}, api.Unavailable("Node " + n.name + " does not answer; try again")
	}
	page := logPage{Content: string(chunk.Content)}
	if next := offset + int64(len(chunk.Content)); next < chunk.Size {
		page.Next = &next
	}
	return api.OK(page), nil
}

func readEvents(rc *api.Request) (api.Response, error) {
	n, err := findNode(rc, rc.Query("node"))
	if err != nil {
		return api.Response{}, err
	}
	tail, err := rc.QueryInt("limit", maxTail, 1, maxTail)
	if err != nil {
		return api.Response{}, err
	}
	level, err := kernel.ParseLevel(rc.Query("level"))
	if err != nil {
		return api.Response{}, refuse(kernel.BadRequest, err.Error())
	}
	out, err := ask(rc, n, api.ProcessAsk{Op: api.ProcessEvents, Tail: tail, Level: level})
	return api.OK(append([]kernel.Event{}, out.Events...)), err
}

// A module is one that the mesh stores.
type module struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// storeModule receives a module and has the sandbox check it. It is kept while a declaration
// names it; for a process that is started at once it is kept long enough.
func storeModule(rc *api.Request) (api.Response, error) {
	up, err := rc.Receive(sandbox.DefaultModule, api.TooManyBytes("Module", sandbox.DefaultModule))
	if err != nil {
		return api.Response{}, err
	}
	if _, err := rc.Spread(&up); err != nil {
		return api.Response{}, err
	}
	return api.Reply(http.StatusCreated, module{up.File.SHA256, up.File.Size}), nil
}
