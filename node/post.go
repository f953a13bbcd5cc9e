package node

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter/courier"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/company/topic"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/transport"
)

// Post returns what carries the messages of this node's processes.
func (n *Node) Post() *courier.Courier { return n.work.post }

// openPost opens the messages of this node's processes.
func (n *Node) openPost(dir string) (*courier.Courier, error) {
	return courier.Open(courier.Config{
		Node: string(n.ID()), Dir: filepath.Join(dir, "messages"), Events: n.events, Wall: n.conf.Wall, Logger: n.log,
		Dial: func(ctx context.Context, node string) (net.Conn, error) {
			c, err := n.transport.Dial(ctx, identity.NodeID(node), transport.KindIPC)
			if err != nil {
				return nil, err
			}
			if err := transport.WriteFrame(c, ipcMessages, nil); err != nil {
				c.Close()
				return nil, err
			}
			return c, nil
		},
		Alive: func(node string) bool { return n.alive(identity.NodeID(node)) },
		Nodes: func() (out []string) {
			for _, m := range n.others() {
				if n.roster.isMember(m.Meta.Node) {
					out = append(out, string(m.Meta.Node))
				}
			}
			return out
		},
		Resolve: n.nodeNamed,
		Name: func(node string) string {
			m, _ := n.roster.node(identity.NodeID(node))
			return cmp.Or(m.Name, node)
		},
		Locate: func(ctx context.Context, node, name string) ([]kernel.Entry, error) {
			out, err := n.processes(ctx, identity.NodeID(node), api.ProcessAsk{Op: api.ProcessNamed, Name: name})
			if err == nil && out.Error != "" {
				err = errors.New(out.Error)
			}
			return out.Entries, err
		},
		Gone: func(node string) bool {
			open := true
			err := n.ledger.View(func(tx *ledger.Tx) error {
				_, open = ledger.SessionOf(tx, identity.NodeID(node))
				return nil
			})
			return err == nil && !open
		},
		Weigh: n.weighMessage, Publish: n.publishMessage, Services: registered{n}, Topics: topics{n},
		State: func() any {
			f := n.work.post.Office().Figures()
			return map[string]any{"node": n.Name(), "processes": len(n.work.host.Table().List(false)), "sent": f.Sent,
				"delivered": f.Delivered, "dropped": f.Dropped,
				"waiting": f.Waiting, "reliable": f.Pending, "requests": f.Calls, "dead_letters": f.Letters}
		},
	})
}

// weighMessage asks the constitution about a message. Decisions about agents are recorded; those
// about processes of no company are in the kernel's log and the dead letters.
func (n *Node) weighMessage(a courier.Act) error {
	l := govern.Local{Action: a.Action, Agent: a.Agent, Company: ledger.CompanyID(a.Company), Run: a.Run}
	if a.Tool != "" {
		l.Target = skill.TreePath(l.Company, a.Tool)
	}
	var err error
	if a.Company != "" && a.Agent != "" {
		err = n.Weigh(l)
	} else {
		defer n.gate.times.add(time.Now())
		if failed := n.ledger.View(func(tx *ledger.Tx) error {
			_, _, err = govern.WeighLocal(tx, l)
			return nil
		}); failed != nil {
			return failed
		}
	}
	no, ok := errors.AsType[*ledger.Refusal](err)
	if err == nil || !ok || no.Code != ledger.Forbidden {
		return err
	}
	reason := post.GovernanceDenied
	if bytes.Contains(no.Detail, []byte(`"decision":"escalate"`)) {
		reason = post.Deferred
	}
	n.events.Add(kernel.Event{Level: kernel.LevelWarn, Kind: "ipc.denied", Message: fmt.Sprintf("%s: %s", a.Action,
		no.Message)})
	return &post.Failure{Reason: reason, Detail: no.Message}
}

// publishMessage publishes what a process says to a topic.
func (n *Node) publishMessage(ctx context.Context, company, name string, p post.Payload) error {
	out := topic.Publish{Topic: name, Text: p.Text}
	if p.Kind != post.Text {
		b, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if out.JSON, out.Text = true, string(b); p.Kind == post.JSON {
			out.Text = string(p.JSON)
		}
	}
	return n.carryOut(ctx, n.command(topic.KindPublish, ledger.CompanyID(company), out))
}

// topics are those of the mesh, for the inboxes that subscribe to them.
type topics struct{ n *Node }

// Read returns messages of this node's state.
func (t topics) Read(company, pattern string, from uint64, most int) (out []courier.TopicMessage, err error) {
	err = t.n.ledger.View(func(tx *ledger.Tx) error {
		for _, m := range topic.Read(tx, ledger.CompanyID(company), pattern, from, most, core.TimeOf(t.n.conf.Wall())) {
			out = append(out, courier.TopicMessage{Topic: m.Topic, Height: m.Height, At: m.At.Std(), From: m.From,
				Text: m.Text, JSON: m.JSON})
		}
		return nil
	})
	return out, err
}

// Head returns the newest height of this node's state.
func (t topics) Head() uint64 { return t.n.ledger.Position().Height }

// News is closed when something is published.
func (t topics) News() <-chan struct{} { return t.n.topicNews.Next() }

// Subscribe makes or changes a named subscription.
func (t topics) Subscribe(ctx context.Context, company, name, pattern string,
	from *uint64) (position uint64, err error) {
	of := ledger.CompanyID(company)
	ctx, cancel := context.WithTimeout(ctx, submitTimeout)
	defer cancel()
	index, err := t.n.carriedOut(ctx, t.n.command(topic.KindSubscribe, of, topic.Subscribe{Name: name, Pattern: pattern,
		From: from}))
	if err == nil { // another node may lead, and have applied it first
		err = t.n.ledger.WaitApplied(ctx, index)
	}
	if err != nil {
		return 0, err
	}
	err = t.n.ledger.View(func(tx *ledger.Tx) error {
		s, _ := topic.SubscriptionOf(tx, of, name)
		position = s.Position
		return nil
	})
	return position, err
}

// Acknowledge tells how far a named subscription has read.
func (t topics) Acknowledge(ctx context.Context, company, name string, height uint64) error {
	return t.n.carryOut(ctx, t.n.command(topic.KindAcknowledge, ledger.CompanyID(company),
		topic.Acknowledge{Name: name, Height: height}))
}

// Holds reports whether this node subscribed by a name last.
func (t topics) Holds(company, name string) bool {
	holds := true // if the state can not be read it is as it was
	_ = t.n.ledger.View(func(tx *ledger.Tx) error {
		s, ok := topic.SubscriptionOf(tx, ledger.CompanyID(company), name)
		node, byNode := strings.CutPrefix(s.By, "node:")
		holds = ok && (!byNode || node == string(t.n.ID())) // people change the pattern and the position
		return nil
	})
	return holds
}

// publishes reports whether an entry published to a topic, or changed who reads it.
func publishes(e ledger.Entry) bool {
	return e.Kind == topic.KindSubscribe || e.Kind == topic.KindUnsubscribe ||
		slices.ContainsFunc(e.Changes, func(c ledger.Change) bool { return c.Action == topic.Told })
}

// postStats returns the figures of messages for /metrics.
func (n *Node) postStats() (out []api.Stat) {
	if n.work.post == nil {
		return nil
	}
	f := n.work.post.Office().Figures()
	add := func(counter bool, name, help string, v float64, labels ...string) {
		s := api.Stat{Name: kernelPrefix + name, Help: help, Value: v, Counter: counter, Labels: map[string]string{}}
		for i := 0; i+1 < len(labels); i += 2 {
			s.Labels[labels[i]] = labels[i+1]
		}
		out = append(out, s)
	}
	add(true, "messages_sent_total", "messages that processes of this node sent, replies and reliable ones included",
		float64(f.Sent))
	add(true, "messages_delivered_total", "messages and replies that processes of this node read", float64(f.Delivered))
	for _, r := range []post.Reason{post.TargetNotFound, post.InboxFull, post.Timeout, post.GovernanceDenied,
		post.Deferred, post.AgentExited, post.Unreachable, post.NotAllowed} {
		add(true, "messages_dropped_total", "messages that became dead letters at this node, by reason", float64(f.Dead[r]),
			"reason", string(r))
	}
	add(true, "messages_retried_total", "attempts of reliable messages after the first", float64(f.Retries))
	add(true, "messages_duplicate_total", "repetitions that this node recognized and did not deliver",
		float64(f.Duplicates))
	add(false, "messages_waiting", "messages in inboxes of this node that were not read", float64(f.Waiting))
	add(false, "messages_unacknowledged", "reliable messages of this node that were not acknowledged", float64(f.Pending))
	add(false, "requests_open", "requests of this node that wait for their replies", float64(f.Calls))
	add(false, "dead_letters", "dead letters that this node keeps", float64(f.Letters))
	return append(out,
		bucketStats("ipc_latency_ms", "time from sending a message to its reading", "readings", f.Latency[:],
			f.LatencySum)...)
}

// postOf asks a node about its messages.
func (n *Node) postOf(ctx context.Context, on identity.NodeID, ask api.PostAsk) (api.PostAnswer, error) {
	return n.postQuestion().put(ctx, n, on, ask)
}

func (n *Node) postQuestion() question[api.PostAsk, api.PostAnswer] {
	return question[api.PostAsk, api.PostAnswer]{ipcPost, ipcPosted, submitTimeout,
		func(ctx context.Context, ask api.PostAsk) api.PostAnswer {
			if n.work.post == nil {
				return api.PostAnswer{Error: "the node is booting"}
			}
			return api.AnswerPost(ctx, n.work.post, ask)
		}}
}
