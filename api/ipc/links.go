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
			Summary: "Link a process to another of its node: when one crashes, the other is told and ended", In: watching{},
			Out: watches{}, Status: http.StatusCreated, Query: of, Handle: link},
		{Method: "DELETE", Path: root + "/links/{link}", Tag: tag, Kernel: true, Processes: true, Once: true, NoTool: true,
			Summary: "End a link to a process, by its PID", Out: watches{}, Query: of, Handle: unlink},
		{Method: "POST", Path: root + "/monitors", Tag: tag, Kernel: true, Processes: true, Once: true,
			Summary: "Have a process told, by a signal, when another of its node ends", In: watching{},
			Out: kernel.Watch{}, Status: http.StatusCreated, Query: of, Handle: monitor},
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
	}
)

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
	out := watches{Links: []uint64{}, Monitors: append([]kernel.Watch{}, w.Monitors...)}
	for _, l := range w.Links {
		out.Links = append(out.Links, uint64(l))
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
	return api.OK(kernel.Watch{Ref: ref, Process: to.PID}), nil
}

func demonitor(rc *api.Request) (api.Response, error) {
	c, pid, err := caller(rc)
	if err == nil {
		err = refused(c.Demonitor(pid, rc.Path("monitor")))
	}
	return api.OK(messageDone{true}), err
}
