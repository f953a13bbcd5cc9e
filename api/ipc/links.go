package ipc

import (
	"net/http"

	"github.com/selvage-mesh/selvage/adapter/courier"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
)

// LinkRoutes are the rows of links and monitors, by which a process learns of the end of another.
func LinkRoutes() []api.Route {
	const root = at + "/ipc"
	of := []api.Param{{Name: "process", Type: "integer",
		Doc: "PID on this node, of an administrator's request: as this process"}}
	return []api.Route{
		{Method: "GET", Path: root + "/links", Tag: tag, Kernel: true, Processes: true, NoTool: true,
			Summary: "List what a process is linked to, and what it monitors", Out: watches{}, Query: of, Handle: listLinks},
		{Method: "POST", Path: root + "/links", Tag: tag, Kernel: true, Processes: true, Once: true,
			Summary: "Link a process to another: when one crashes, or its node is lost, the other is told and ended",
			In:      watching{}, Out: watches{}, Status: http.StatusCreated, Query: of, Handle: link},
		{Method: "DELETE", Path: root + "/links/{link}", Tag: tag, Kernel: true, Processes: true, Once: true, NoTool: true,
			Summary: "End a link to a process, by its PID or NODE:PID", Out: watches{}, Query: of, Handle: unlink},
		{Method: "POST", Path: root + "/monitors", Tag: tag, Kernel: true, Processes: true, Once: true,
			Summary: "Have a process told, by a signal, when another ends, or its node is lost", In: watching{},
			Out: monitored{}, Status: http.StatusCreated, Query: of, Handle: monitor},
		{Method: "DELETE", Path: root + "/monitors/{monitor}", Tag: tag, Kernel: true, Processes: true, Once: true,
			NoTool: true, Summary: "End a monitor", Out: messageDone{}, Query: of, Handle: demonitor},
	}
}

type (
	watching struct {
		To string `json:"to" minLength:"1" maxLength:"200" maxBytes:"200" doc:"PID of a process of the same node, or NODE:PID"`
	}
	watches struct {
		Links    []uint64       `json:"links"`
		Monitors []kernel.Watch `json:"monitors"`
		Far      []farWatch     `json:"far"` // with processes of other nodes
	}
)

// farWatch is a link or a monitor of a process of another node.
type farWatch struct {
	Ref     string `json:"ref"` // of a monitor; empty: it is a link
	Process string `json:"process" doc:"NODE:PID"`
}

// monitored is a monitor that was made.
type monitored struct {
	Ref     string     `json:"ref"`
	Process kernel.PID `json:"process"`
	Node    string     `json:"node" doc:"of the process, if it is another one"`
}

// watcher returns as whom a request acts, and whom it names.
func watcher(rc *api.Request) (c *courier.Courier, pid kernel.PID, to post.Target, err error) {
	in, err := api.Body[watching](rc)
	if err == nil {
		to, err = post.ParseTarget(in.To)
	}
	if err != nil {
		return nil, 0, to, refused(err)
	}
	c, pid, err = caller(rc)
	return c, pid, to, err
}

func shownWatches(c *courier.Courier, pid kernel.PID) watches {
	w := c.Table().Watches(pid)
	out := watches{Links: []uint64{}, Monitors: append([]kernel.Watch{}, w.Monitors...), Far: []farWatch{}}
	for _, l := range w.Links {
		out.Links = append(out.Links, uint64(l))
	}
	for _, f := range c.Far(pid) {
		out.Far = append(out.Far, farWatch{f.Ref, c.AddressOf(f.Of)})
	}
	return out
}

func listLinks(rc *api.Request) (api.Response, error) {
	c, pid, err := caller(rc)
	if err != nil {
		return api.Response{}, err
	}
	return api.OK(shownWatches(c, pid)), nil
}

func link(rc *api.Request) (api.Response, error) {
	c, pid, to, err := watcher(rc)
	if err != nil {
		return api.Response{}, err
	}
	by := pid
	if rc.Credential.Kind != "process" && !rc.IsAgent() {
		by = kernel.KernelPID
	}
	if err := c.Link(pid, to, by); err != nil {
		return api.Response{}, refused(err)
	}
	return api.OK(shownWatches(c, pid)), nil
}

func unlink(rc *api.Request) (api.Response, error) {
	to, err := post.ParseTarget(rc.Path("link"))
	if err != nil {
		return api.Response{}, refused(err)
	}
	c, pid, err := caller(rc)
	if err == nil {
		err = refused(c.Unlink(pid, to))
	}
	if err != nil {
		return api.Response{}, err
	}
	return api.OK(shownWatches(c, pid)), nil
}

func monitor(rc *api.Request) (api.Response, error) {
	c, pid, to, err := watcher(rc)
	if err != nil {
		return api.Response{}, err
	}
	ref, err := c.Monitor(pid, to)
	if err != nil {
		return api.Response{}, refused(err)
	}
	return api.OK(monitored{ref, to.PID, to.Node}), nil
}

func demonitor(rc *api.Request) (api.Response, error) {
	c, pid, err := caller(rc)
	if err == nil {
		err = refused(c.Demonitor(pid, rc.Path("monitor")))
	}
	return api.OK(messageDone{true}), err
}
