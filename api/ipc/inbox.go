package ipc

import (
	"context"
	"fmt"
	"strconv"

	"github.com/selvage-mesh/selvage/adapter/courier"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/kernel"
)

// followInbox writes the messages of a process as server-sent events:
//
//	id: 7
//	event: message
//	data: {"id":"ipc-…","from":"n1:12",…}
//
// One stream reads an inbox: the next one ends the one before, and begins with what that was sent
// above the ID of its last event.
func followInbox(rc *api.Request) (api.Response, error) {
	c, pid, err := caller(rc)
	if err != nil {
		return api.Response{}, err
	}
	if pid == kernel.KernelPID {
		return api.Response{}, api.Invalid("process: required for an administrator: the node reads its own messages itself")
	}
	var after *uint64
	if id := rc.HTTP.Header.Get("Last-Event-ID"); id != "" {
		n, err := strconv.ParseUint(id, 10, 63)
		if err != nil {
			return api.Response{}, api.Invalid("Invalid event ID to resume after: expected a number")
		}
		after = &n
	}
	if _, err := c.Office().Ready(pid); err != nil {
		return api.Response{}, refused(err)
	}
	return api.EventStream(rc, fmt.Sprintf("messages of process %s", pid),
		func(ctx context.Context, send func([]byte) bool) {
			err := c.Stream(ctx, pid, after, func(n courier.Numbered) bool {
				data, err := api.EncodeJSON(c.Shown(n.Message))
				return err == nil && send(fmt.Appendf(nil, "id: %d\nevent: message\ndata: %s\n\n", n.Number, data))
			})
			if err != nil && ctx.Err() == nil {
				rc.Server.Log.Debug("the stream of an inbox ended", "process", pid, "error", err)
			}
		}), nil
}

func subscribeInbox(rc *api.Request) (api.Response, error) {
	in, err := api.Body[subscribing](rc)
	if err != nil {
		return api.Response{}, err
	}
	c, pid, err := caller(rc)
	if err != nil {
		return api.Response{}, err
	}
	var from *uint64
	if in.From != nil {
		from = new(uint64(*in.From))
	}
	out, err := c.Subscribe(rc.Context(), pid, in.Pattern, in.Name, from)
	if err != nil {
		return api.Response{}, refused(err)
	}
	return api.OK(out), nil
}

func listInboxSubscriptions(rc *api.Request) (api.Response, error) {
	c, pid, err := caller(rc)
	if err != nil {
		return api.Response{}, err
	}
	return api.OK(inboxSubscriptions{c.Subscriptions(pid)}), nil
}

func unsubscribeInbox(rc *api.Request) (api.Response, error) {
	c, pid, err := caller(rc)
	if err == nil {
		err = refused(c.Unsubscribe(pid, rc.Path("subscription")))
	}
	return api.OK(messageDone{true}), err
}
