package ipc

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter/courier"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// messageBody bounds the body with a message: the largest payload in base64.
	messageBody = 23 << 20
	// requestTime bounds a request with its longest wait for the reply.
	requestTime = post.MaxWait + 10*time.Second
)

// MessageRoutes are the rows of messages between processes. A process asks them with its token, a
// run with its own, on the node that executes it; an administrator acts as the node.
func MessageRoutes() []api.Route {
	const root = at + "/ipc"
	of := api.Param{Name: "process", Type: "integer",
		Doc: "PID on this node, of an administrator's request: as this process; the node itself unless given"}
	node := api.Param{Name: "node", Doc: "name or ID of the node; the one that answers unless given"}
	return []api.Route{
		{Method: "POST", Path: root + "/send", Tag: tag, Kernel: true, Processes: true, Once: true,
			Summary: "Send a message to a process, a name, a group, a service, a topic or a node", In: courier.Order{},
			Out: messageSent{}, Status: http.StatusCreated,
			Query: []api.Param{of}, MaxBody: messageBody, Timeout: requestTime, Handle: send},
		{Method: "POST", Path: root + "/request", Tag: tag, Kernel: true, Processes: true, Once: true,
			Summary: "Send a request and answer with its reply", In: courier.Order{}, Out: courier.Shown{},
			Query: []api.Param{of}, MaxBody: messageBody, Timeout: requestTime, Handle: request},
		{Method: "POST", Path: root + "/receive", Tag: tag, Kernel: true, Processes: true, Once: true,
			Summary: "Receive the next messages, waiting for the first", In: courier.Reading{}, Out: messagesReceived{},
			Query: []api.Param{of}, Timeout: courier.MaxLongPoll + 10*time.Second, Handle: receive},
		{Method: "POST", Path: root + "/messages/{message}/ack", Tag: tag, Kernel: true, Processes: true, Once: true,
			Summary: "Acknowledge a reliable message: it is handled, and not sent again", Out: messageDone{},
			Query: []api.Param{of}, Handle: ack},
		{Method: "POST", Path: root + "/messages/{message}/reply", Tag: tag, Kernel: true, Processes: true, Once: true,
			Summary: "Reply to a request", In: courier.Answering{}, Out: messageDone{}, Query: []api.Param{of},
			MaxBody: messageBody, Handle: reply},
		{Method: "GET", Path: root + "/inbox/events", Tag: tag, Kernel: true, Processes: true, NoTool: true,
			Summary: "Receive messages as server-sent events; the event's ID is a number, after which this node " +
				"resumes the stream of the process",
			Out: courier.Shown{}, Media: []string{"text/event-stream"}, Query: []api.Param{of}, Handle: followInbox},
		{Method: "POST", Path: root + "/subscriptions", Tag: tag, Kernel: true, Processes: true, Once: true,
			Summary: "Subscribe the inbox of a process to the topics that a pattern selects; with a name it lasts",
			In:      subscribing{}, Out: courier.InboxSubscription{}, Status: http.StatusCreated,
			Query: []api.Param{of}, Handle: subscribeInbox},
		{Method: "GET", Path: root + "/subscriptions", Tag: tag, Kernel: true, Processes: true,
			Summary: "List what inboxes of this node are subscribed to, as this process or all", Out: inboxSubscriptions{},
			Query: []api.Param{of}, NoTool: true, Handle: listInboxSubscriptions},
		{Method: "DELETE", Path: root + "/subscriptions/{subscription}", Tag: tag, Kernel: true, Processes: true, Once: true,
			Summary: "End a subscription of an inbox; the position of a named one stays", Out: messageDone{},
			Query: []api.Param{of}, NoTool: true, Handle: unsubscribeInbox},
		{Method: "GET", Path: root + "/inboxes", Tag: tag, Kernel: true, Who: api.Admin,
			Summary: "Show how the inboxes of a node stand: what waits, and for how much there is room", Out: inboxRows{},
			Query: []api.Param{node, {Name: "from", Type: "integer", Doc: "lowest PID"}}, NoTool: true, Handle: listInboxes},
		{Method: "GET", Path: root + "/outbox", Tag: tag, Kernel: true, Who: api.Admin,
			Summary: "List the reliable messages of a node that were not acknowledged", Out: outboxRows{},
			Query: []api.Param{node}, NoTool: true, Handle: listOutbox},
		{Method: "GET", Path: root + "/dead-letters", Tag: tag, Kernel: true, Who: api.Admin,
			Summary: "List the messages that a node could not deliver, and why", Out: letterRows{},
			Query: []api.Param{node, {Name: "after", Type: "integer", Doc: "number of the last one seen"},
				{Name: "limit", Type: "integer", Doc: "1 to 100; 100 unless given"}}, Handle: listLetters},
		{Method: "POST", Path: root + "/dead-letters/replay", Tag: tag, Kernel: true, Once: true, Who: api.Admin,
			Summary: "Send dead letters of a node again", In: lettersAgain{}, Out: lettersReplayed{}, Query: []api.Param{node},
			NoTool: true, Handle: replay},
		{Method: "DELETE", Path: root + "/dead-letters", Tag: tag, Kernel: true, Once: true, Who: api.Admin,
			Summary: "Delete the dead letters of a node", Out: lettersPurged{}, Query: []api.Param{node}, NoTool: true,
			Handle: purge},
	}
}

type (
	messageSent struct {
		ID        string `json:"id"`
		State     string `json:"state" enum:"delivered,kept,acknowledged,published,signalled"`
		Receivers int    `json:"receivers"` // processes of this node that got it
		Nodes     int    `json:"nodes"`     // other nodes that got a message for many
	}
	messagesReceived struct {
		Messages []courier.Shown `json:"messages"` // the oldest first
	}
	subscribing struct {
		Pattern string `json:"pattern" minLength:"1" maxLength:"200" maxBytes:"200" doc:"a topic, where * is any one level and ** at the end all levels"`
		Name    string `json:"name,omitempty" maxLength:"100" maxBytes:"100" doc:"makes it last: messages are acknowledged, and who subscribes by this name next goes on after them"`
		From    *int64 `json:"from,omitempty" nullable:"false" minimum:"0" maximum:"9007199254740991" doc:"height of the first message; what is published next, or where the name has read to, unless given"`
	}
	inboxSubscriptions struct {
		Subscriptions []courier.InboxSubscription `json:"subscriptions"`
	}
	messageDone struct {
		Done bool `json:"done"`
	}
	inboxStanding struct {
		Process uint64 `json:"process"`
		Address string `json:"address"` // node:pid
		Queued  int    `json:"queued"`  // not read
		Taken   int    `json:"taken"`   // read, and not acknowledged or answered
		Waiting int    `json:"waiting"` // senders that wait for room
		Credits int    `json:"credits"` // messages for which there is room
		Bytes   int    `json:"bytes"`
	}
	inboxRows struct {
		Node    string          `json:"node"`
		Inboxes []inboxStanding `json:"inboxes"`
	}
	outboxRows struct {
		Node     string           `json:"node"`
		Messages []api.PostParcel `json:"messages"`
	}
	letterRows struct {
		Node    string           `json:"node"`
		Letters []api.PostLetter `json:"dead_letters"` // the oldest first
	}
	lettersAgain struct {
		Numbers []int64 `json:"numbers,omitempty" maxItems:"100" doc:"which; all unless given"`
		Reason  string  `json:"reason,omitempty" enum:"target_not_found,inbox_full,timeout,governance_denied,governance_deferred,agent_exited,node_unreachable,capability_denied" doc:"only those"`
		Limit   int64   `json:"limit,omitempty" minimum:"0" maximum:"100" doc:"at most so many; 100 unless given"`
	}
	lettersReplayed struct {
		Sent   int `json:"sent"`
		Failed int `json:"failed"` // dead letters again
	}
	lettersPurged struct {
		Deleted int `json:"deleted"`
	}
)

var errNoPost = api.Unavailable("This node carries no messages")

// caller returns what carries messages, and as which process a request acts.
func caller(rc *api.Request) (*courier.Courier, kernel.PID, error) {
	c := rc.Server.Cfg.Post
	ref, err := rc.QueryInt64("process", 0, 0, 1<<53-1)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case rc.Credential.Kind == "process" && c == nil:
		return nil, 0, errNoPost
	case rc.Credential.Kind == "process":
		own, err := strconv.ParseUint(rc.Credential.ID, 10, 64)
		if err != nil || ref != 0 && uint64(ref) != own {
			return nil, 0, api.Forbidden("process: a process acts as itself alone")
		}
		return c, kernel.PID(own), nil
	case rc.IsAgent():
		var e kernel.Entry
		ok := false
		if c != nil && rc.Run != "" {
			e, ok = c.OfRun(rc.Run)
		}
		if !ok || e.Agent != rc.Actor.ID {
			return nil, 0, &ledger.Refusal{Code: ledger.Conflict, ErrCode: "process_not_found",
				Message: "An agent sends and receives under its run, at the node that executes the run: ask with " +
					"the run's token at the URL that the run was told"}
		}
		return c, e.PID, nil
	}
	err = rc.View(func(tx *ledger.Tx) error {
		if !rc.Administers(tx) {
			return api.Forbidden("Messages are for processes and for administrators")
		}
		if c == nil {
			return errNoPost
		}
		return nil
	})
	return c, kernel.PID(ref), err
}

// statusOf says how the reasons of failures are answered.
var statusOf = map[post.Reason]ledger.Code{
	post.TargetNotFound: ledger.NotFound, post.InboxFull: ledger.TooMany, post.GovernanceDenied: ledger.Forbidden,
	post.Deferred: ledger.Forbidden, post.NotAllowed: ledger.Forbidden,
	post.Timeout: ledger.Conflict, post.AgentExited: ledger.Conflict, post.Unreachable: ledger.Conflict,
	post.LimitExceeded: ledger.Conflict, post.NotOpen: ledger.Conflict,
	post.Refused: ledger.Unprocessable, post.Broken: ledger.Unprocessable, post.CircuitOpen: ledger.TooMany,
}

// refused answers a failure of a message.
func refused(err error) error {
	if f, ok := errors.AsType[*post.Failure](err); ok {
		code, known := statusOf[f.Reason]
		if !known {
			code = ledger.Conflict
		}
		return &ledger.Refusal{Code: code, ErrCode: string(f.Reason), Message: upper(f.Detail)}
	}
	if kernel.KindOf(err) == kernel.BadRequest {
		return api.Invalid("%s", err.Error())
	}
	return err
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// ordered reads the message of a request.
func ordered(rc *api.Request) (*courier.Courier, kernel.PID, courier.Order, *post.Message, error) {
	in, err := api.Body[courier.Order](rc)
	if err != nil {
		return nil, 0, in, nil, err
	}
	m, err := in.Message(rc.Now())
	if err != nil {
		return nil, 0, in, nil, refused(err)
	}
	c, pid, err := caller(rc)
	return c, pid, in, m, err
}

func send(rc *api.Request) (api.Response, error) {
	c, pid, in, m, err := ordered(rc)
	if err != nil {
		return api.Response{}, err
	}
	ctx := rc.Context()
	if in.Await {
		wait := post.DefaultWait
		if in.WaitMs > 0 {
			wait = time.Duration(in.WaitMs) * time.Millisecond
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	out, err := c.Send(ctx, pid, m, in.Await)
	if err != nil {
		return api.Response{}, refused(err)
	}
	return api.OK(messageSent{out.ID, out.State, out.Receivers, out.Nodes}), nil
}

func request(rc *api.Request) (api.Response, error) {
	c, pid, in, m, err := ordered(rc)
	if err == nil && (in.Await || m.Reliable) {
		err = api.Invalid("reliable: a request is not reliable: whoever asks sees whether it was answered, and asks again")
	}
	if err != nil {
		return api.Response{}, err
	}
	answer, err := c.Request(rc.Context(), pid, m)
	if err != nil {
		return api.Response{}, refused(err)
	}
	return api.OK(c.Shown(answer)), nil
}

func receive(rc *api.Request) (api.Response, error) {
	in, err := api.Body[courier.Reading](rc)
	if err != nil {
		return api.Response{}, err
	}
	c, pid, err := caller(rc)
	if err != nil {
		return api.Response{}, err
	}
	if pid == kernel.KernelPID {
		return api.Response{}, api.Invalid("process: required for an administrator: the node reads its own messages itself")
	}
	all, err := c.Receive(rc.Context(), pid, int(in.Limit), time.Duration(in.WaitMs)*time.Millisecond)
	if err != nil {
		return api.Response{}, refused(err)
	}
	return api.OK(messagesReceived{c.ShownAll(all)}), nil
}

func ack(rc *api.Request) (api.Response, error) {
	c, pid, err := caller(rc)
	if err == nil {
		err = refused(c.Ack(pid, rc.Path("message")))
	}
	return api.OK(messageDone{true}), err
}

func reply(rc *api.Request) (api.Response, error) {
	in, err := api.Body[courier.Answering](rc)
	if err != nil {
		return api.Response{}, err
	}
	p, err := in.Said()
	if err != nil {
		return api.Response{}, refused(err)
	}
	c, pid, err := caller(rc)
	if err == nil {
		err = refused(c.Reply(pid, rc.Path("message"), p))
	}
	return api.OK(messageDone{true}), err
}

// asked asks the node of a request about its messages.
func asked(rc *api.Request, q api.PostAsk) (name string, out api.PostAnswer, err error) {
	var on identity.NodeID
	ref := rc.Query("node")
	err = rc.View(func(tx *ledger.Tx) error {
		found := 0
		for _, n := range ledger.Roster(tx) {
			switch {
			case !n.Member():
			case string(n.ID) == ref || ref == "" && n.ID == rc.Server.Cfg.NodeID:
				on, name, found = n.ID, n.Name, 1
				return nil
			case n.Name == ref || n.ID.Short() == ref:
				on, name = n.ID, n.Name
				found++
			}
		}
		switch found {
		case 0:
			return api.NotFound("Node not found")
		case 1:
			return nil
		}
		return api.Invalid("node %q: %d nodes have this name; give the ID", ref, found)
	})
	if err != nil {
		return name, out, err
	}
	if rc.Server.Cfg.PostOf == nil {
		return name, out, errNoPost
	}
	if out, err = rc.Server.Cfg.PostOf(rc.Context(), on, q); err != nil {
		return name, out, api.Unavailable("Node " + name + " does not answer; try again")
	}
	if out.Error != "" {
		err = api.Unavailable("Node " + name + ": " + out.Error)
	}
	return name, out, err
}

func listInboxes(rc *api.Request) (api.Response, error) {
	from, err := rc.QueryInt64("from", 0, 0, 1<<53-1)
	if err != nil {
		return api.Response{}, err
	}
	name, out, err := asked(rc, api.PostAsk{Op: api.PostInboxes, After: uint64(from)})
	rows := []inboxStanding{}
	for _, s := range out.Inboxes {
		rows = append(rows, inboxStanding{uint64(s.PID), kernel.Address{Node: name, PID: s.PID}.String(), s.Queued, s.Taken,
			s.Waiting, s.Credits, s.Bytes})
	}
	return api.OK(inboxRows{name, rows}), err
}

func listOutbox(rc *api.Request) (api.Response, error) {
	name, out, err := asked(rc, api.PostAsk{Op: api.PostOutbox})
	return api.OK(outboxRows{name, append([]api.PostParcel{}, out.Outbox...)}), err
}

func listLetters(rc *api.Request) (api.Response, error) {
	after, err := rc.QueryInt64("after", 0, 0, 1<<53-1)
	if err != nil {
		return api.Response{}, err
	}
	limit, err := rc.QueryInt("limit", api.PostPage, 1, api.PostPage)
	if err != nil {
		return api.Response{}, err
	}
	name, out, err := asked(rc, api.PostAsk{Op: api.PostLetters, After: uint64(after), Limit: limit})
	return api.OK(letterRows{name, append([]api.PostLetter{}, out.Letters...)}), err
}

func replay(rc *api.Request) (api.Response, error) {
	in, err := api.Body[lettersAgain](rc)
	if err != nil {
		return api.Response{}, err
	}
	q := api.PostAsk{Op: api.PostReplay, Reason: post.Reason(in.Reason), Limit: int(in.Limit)}
	for _, n := range in.Numbers {
		if n < 1 {
			return api.Response{}, api.Invalid("numbers: %d is the number of no dead letter", n)
		}
		q.Numbers = append(q.Numbers, uint64(n))
	}
	_, out, err := asked(rc, q)
	return api.OK(lettersReplayed{out.Done, out.Failed}), err
}

func purge(rc *api.Request) (api.Response, error) {
	_, out, err := asked(rc, api.PostAsk{Op: api.PostPurge})
	return api.OK(lettersPurged{out.Done}), err
}
