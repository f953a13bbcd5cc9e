package a2a

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/push"
)

// A method is what both bindings call. ref is the agent of the path, or "". It returns its result, or an answer that
// is ready.
type method func(rc *api.Request, ref string, params json.RawMessage, b binding) (any, *api.Response, error)

// A binding is how events and errors of one request are sent.
type binding struct {
	// wrap makes of a result, or of an event, what is sent. The state is that of its task.
	wrap func(v any, s State) any
	old  bool // version 0.3
}

// oldNames are the names of version 0.3.
var oldNames = map[string]string{
	"message/send": "SendMessage", "message/stream": "SendStreamingMessage", "tasks/get": "GetTask",
	"tasks/list":   "ListTasks",
	"tasks/cancel": "CancelTask", "tasks/resubscribe": "SubscribeToTask",
	"tasks/pushNotificationConfig/set":    "CreateTaskPushNotificationConfig",
	"tasks/pushNotificationConfig/get":    "GetTaskPushNotificationConfig",
	"tasks/pushNotificationConfig/list":   "ListTaskPushNotificationConfigs",
	"tasks/pushNotificationConfig/delete": "DeleteTaskPushNotificationConfig",
	"agent/getAuthenticatedExtendedCard":  "GetExtendedAgentCard",
}

func methodOf(name string) (m method, old, ok bool) {
	if as, is := oldNames[name]; is {
		name, old = as, true
	}
	switch name {
	case "SendMessage":
		m = sendMessage
	case "SendStreamingMessage":
		m = sendStreaming
	case "GetTask":
		m = getTask
	case "ListTasks":
		m = listTasks
	case "CancelTask":
		m = cancelTask
	case "SubscribeToTask":
		m = subscribe
	case "CreateTaskPushNotificationConfig":
		m = createHook
	case "GetTaskPushNotificationConfig":
		m = getHook
	case "ListTaskPushNotificationConfigs":
		m = listHooks
	case "DeleteTaskPushNotificationConfig":
		m = deleteHook
	case "GetExtendedAgentCard":
		m = extendedCard
	}
	return m, old, m != nil
}

// decode reads parameters. Members that it does not know are ignored.
func decode[T any](params json.RawMessage) (v T, err error) {
	if len(params) == 0 {
		return v, nil
	}
	if err := json.Unmarshal(params, &v); err != nil {
		return v, badParams.as("params: %s", api.Cut(err.Error(), 300))
	}
	return v, nil
}

func historyOK(n *int) error {
	if n != nil && *n < 0 {
		return badParams.as("historyLength: not below 0")
	}
	return nil
}

// sent reads the parameters of a message and gives it to its task, whose ID it returns.
func sent(rc *api.Request, ref string, params json.RawMessage) (p sendParams, id string, err error) {
	if p, err = decode[sendParams](params); err != nil {
		return p, "", err
	}
	if err = historyOK(p.Config.History); err != nil {
		return p, "", err
	}
	id, err = send(rc, ref, &p)
	return p, id, err
}

func sendMessage(rc *api.Request, ref string, params json.RawMessage, b binding) (any, *api.Response, error) {
	p, id, err := sent(rc, ref, params)
	if err != nil {
		return nil, nil, err
	}
	var t Task
	if p.immediately() {
		t, err = show(rc, id, p.Config.History)
	} else {
		t, err = await(rc, id, p.Config.History)
	}
	return sendAnswer{&t}, nil, err
}

func sendStreaming(rc *api.Request, ref string, params json.RawMessage, b binding) (any, *api.Response, error) {
	p, id, err := sent(rc, ref, params)
	if err != nil {
		return nil, nil, err
	}
	r, err := stream(rc, id, p.Config.History, func(e event, s State) any { return b.wrap(e, s) })
	return nil, &r, err
}

func subscribe(rc *api.Request, _ string, params json.RawMessage, b binding) (any, *api.Response, error) {
	p, err := decode[taskParams](params)
	if err != nil {
		return nil, nil, err
	}
	t, err := show(rc, p.ID, new(0))
	switch {
	case err != nil:
		return nil, nil, err
	case t.Status.State.Terminal():
		return nil, nil, unsupported.as("The task is over; read it with GetTask")
	}
	r, err := stream(rc, p.ID, nil, func(e event, s State) any { return b.wrap(e, s) })
	return nil, &r, err
}

func getTask(rc *api.Request, _ string, params json.RawMessage, _ binding) (any, *api.Response, error) {
	p, err := decode[taskParams](params)
	if err == nil {
		err = historyOK(p.History)
	}
	if err != nil {
		return nil, nil, err
	}
	t, err := show(rc, p.ID, p.History)
	return &t, nil, err
}

func listTasks(rc *api.Request, ref string, params json.RawMessage, _ binding) (any, *api.Response, error) {
	p, err := decode[listParams](params)
	if err == nil {
		err = historyOK(p.History)
	}
	if err != nil {
		return nil, nil, err
	}
	page, err := list(rc, ref, p)
	return page, nil, err
}

func cancelTask(rc *api.Request, _ string, params json.RawMessage, _ binding) (any, *api.Response, error) {
	p, err := decode[taskParams](params)
	if err != nil {
		return nil, nil, err
	}
	t, err := cancel(rc, p.ID)
	return &t, nil, err
}

// hookRef returns the task and the name of a config that a request means, in both versions.
func hookRef(p hookParams) (task, name string) {
	if p.Task == "" { // version 0.3 has the task's ID as id
		return p.OldRef, p.OldID
	}
	return p.Task, p.OldRef
}

func createHook(rc *api.Request, _ string, params json.RawMessage, b binding) (any, *api.Response, error) {
	p, err := decode[hookParams](params)
	if err != nil {
		return nil, nil, err
	}
	h := p.Hook
	h.ID = p.OldRef
	if p.Old != nil {
		h = *p.Old
	}
	_, i, err := hooks(rc, cmp.Or(p.Task, p.OldRef))
	if err != nil {
		return nil, nil, err
	}
	out, err := setHook(rc, i, h)
	return out, nil, err
}

func getHook(rc *api.Request, _ string, params json.RawMessage, _ binding) (any, *api.Response, error) {
	p, err := decode[hookParams](params)
	if err != nil {
		return nil, nil, err
	}
	h, err := hookNamed(rc, first(hookRef(p)), second(hookRef(p)))
	return hookOf(h), nil, err
}

func listHooks(rc *api.Request, _ string, params json.RawMessage, _ binding) (any, *api.Response, error) {
	p, err := decode[hookParams](params)
	if err != nil {
		return nil, nil, err
	}
	all, _, err := hooks(rc, first(hookRef(p)))
	out := hookPage{Hooks: []Hook{}}
	for _, h := range all {
		out.Hooks = append(out.Hooks, hookOf(h))
	}
	return out, nil, err
}

func deleteHook(rc *api.Request, _ string, params json.RawMessage, _ binding) (any, *api.Response, error) {
	p, err := decode[hookParams](params)
	if err != nil {
		return nil, nil, err
	}
	task, name := hookRef(p)
	all, i, err := hooks(rc, task)
	if err != nil {
		return nil, nil, err
	}
	n := slices.IndexFunc(all, func(h push.Hook) bool { return h.Name == name })
	if n < 0 {
		return nil, nil, noHook
	}
	_, err = rc.Submit(push.KindDelete, i.Company, push.Delete{ID: all[n].ID})
	return nothing{}, nil, err
}

func extendedCard(rc *api.Request, ref string, params json.RawMessage, _ binding) (any, *api.Response, error) {
	p, err := decode[taskParams](params)
	if err != nil {
		return nil, nil, err
	}
	if ref = cmp.Or(ref, p.Tenant); ref != "" {
		c, err := cardOf(rc, ref)
		return c, nil, err
	}
	r, err := meshCard(rc)
	return r.Body, nil, err
}

func first(a, _ string) string  { return a }
func second(_, b string) string { return b }
