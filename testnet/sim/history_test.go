package sim

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/ledger"
)

// What the clients do to one issue, as Porcupine sees it: a register that holds
// who has the issue.
type (
	input struct {
		issue string
		kind  string // "checkout", "release" or "read"
		agent string
	}
	output struct {
		kind  string // "ok", "conflict" or "unknown"
		owner string // of a conflict or a read
	}
)

var lockModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byIssue := map[string][]porcupine.Operation{}
		var order []string
		for _, op := range history {
			k := op.Input.(input).issue
			if byIssue[k] == nil {
				order = append(order, k)
			}
			byIssue[k] = append(byIssue[k], op)
		}
		var out [][]porcupine.Operation
		for _, k := range order {
			out = append(out, byIssue[k])
		}
		return out
	},
	Init: func() any { return "" },
	Step: func(state, in, out any) (bool, any) {
		owner, i, o := state.(string), in.(input), out.(output)
		switch i.kind {
		case "read":
			return o.kind == "unknown" || o.owner == owner, owner
		case "checkout":
			switch o.kind {
			case "ok":
				return owner == "" || owner == i.agent, i.agent
			case "conflict":
				return owner != "" && owner != i.agent && owner == o.owner, owner
			}
			if owner == "" { // unknown: it may have taken effect
				return true, i.agent
			}
			return true, owner
		case "release":
			return true, ""
		}
		return false, owner
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string {
		i, o := in.(input), out.(output)
		return fmt.Sprintf("%s %s by %s: %s %s", i.kind, i.issue[:4], i.agent, o.kind, o.owner)
	},
}

// A world is the company that the clients work in, and what they did.
type world struct {
	m       *Mesh
	company string
	agents  []string
	issues  []string

	mu      sync.Mutex
	history []porcupine.Operation
	start   time.Time
	acked   map[uint64]ledger.Command // height of the entry → what was acknowledged
	unknown int
}

func newWorld(ctx context.Context, m *Mesh, agents, issues int) (*world, error) {
	w := &world{m: m, company: uuid.NewString(), acked: map[uint64]ledger.Command{}, start: time.Now()}
	if err := w.must(ctx, "company.create", company.CreateCompany{ID: w.company, Name: "Sim"}); err != nil {
		return nil, err
	}
	for i := range agents {
		id := uuid.NewString()
		if err := w.must(ctx, "agent.create", company.CreateAgent{ID: id, Name: fmt.Sprint("Agent ", i), Role: "engineer", AdapterType: "process"}); err != nil {
			return nil, err
		}
		w.agents = append(w.agents, id)
	}
	for i := range issues {
		id := uuid.NewString()
		if err := w.must(ctx, "issue.create", company.CreateIssue{ID: id, Title: fmt.Sprint("Issue ", i), Status: "todo"}); err != nil {
			return nil, err
		}
		w.issues = append(w.issues, id)
	}
	return w, nil
}

func (w *world) command(kind string, payload any) ledger.Command {
	c := ledger.Command{Kind: kind, Company: w.company, Payload: ledger.Marshal(payload),
		Actor: ledger.Actor{Type: "user", ID: "local-board"}, Credential: ledger.Credential{Kind: "local"}}
	rand.Read(c.Salt[:])
	return c
}

func (w *world) must(ctx context.Context, kind string, payload any) error {
	r, err := w.m.Peers[0].Node.Submit(ctx, w.command(kind, payload))
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return nil
}

// client does n operations at random issues through random nodes.
func (w *world) client(ctx context.Context, id int, rng *mrand.Rand, n int) {
	for range n {
		if ctx.Err() != nil {
			return
		}
		p := w.m.Peers[rng.IntN(len(w.m.Peers))]
		node := p.Node
		if node == nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		in := input{issue: w.issues[rng.IntN(len(w.issues))], agent: w.agents[rng.IntN(len(w.agents))]}
		call := time.Since(w.start)
		var out output
		opCtx, cancel := context.WithTimeout(ctx, 3*time.Second)
		switch rng.IntN(5) {
		case 0, 1:
			in.kind = "checkout"
			out = w.submit(opCtx, node, "issue.checkout", company.CheckOutIssue{Issue: in.issue, Agent: in.agent,
				Expected: []company.IssueStatus{"todo", "backlog", "blocked", "in_review"}})
		case 2, 3:
			in.kind = "release"
			out = w.submit(opCtx, node, "issue.release", company.ReleaseIssue{Issue: in.issue})
		case 4:
			in.kind = "read"
			_, err := node.View(opCtx, ledger.Read{Mode: ledger.ReadStrong}, func(tx *ledger.Tx) error {
				i, ok := company.IssueByID(tx, w.company, in.issue)
				if !ok {
					return errors.New("issue is gone")
				}
				out = output{"ok", i.Assignee}
				return nil
			})
			if err != nil {
				out = output{kind: "unknown"}
			}
		}
		cancel()
		w.record(id, in, out, call)
		time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond)
	}
}

// submit carries out a command and sorts its outcome: an outcome that the
// client did not learn stays open.
func (w *world) submit(ctx context.Context, n interface {
	Submit(context.Context, ledger.Command) (ledger.Receipt, error)
}, kind string, payload any) output {
	cmd := w.command(kind, payload)
	r, err := n.Submit(ctx, cmd)
	if err != nil {
		w.mu.Lock()
		w.unknown++
		w.mu.Unlock()
		return output{kind: "unknown"}
	}
	if r.Refusal == nil {
		if r.Height > 0 {
			w.mu.Lock()
			w.acked[r.Height] = cmd
			w.mu.Unlock()
		}
		return output{kind: "ok"}
	}
	return output{kind: "conflict", owner: ownerIn(r.Refusal.Detail)}
}

func (w *world) record(client int, in input, out output, call time.Duration) {
	ret := time.Since(w.start)
	if out.kind == "unknown" {
		if in.kind == "read" {
			return // told nothing, changed nothing
		}
		ret = 1 << 60 // open: it may still take effect
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: int64(call), Return: int64(ret)})
}

// acknowledged is how many operations had an outcome that their client learned.
func (w *world) acknowledged() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, op := range w.history {
		if op.Output.(output).kind != "unknown" {
			n++
		}
	}
	return n
}

// check finds out whether what the clients saw, and what the nodes have, fits.
func (w *world) check(ctx context.Context, t *testing.T) error {
	t.Helper()
	if err := w.converge(ctx); err != nil {
		return err
	}
	if err := w.chains(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !porcupine.CheckOperations(lockModel, w.history) {
		return errors.New("what the clients saw is not linearizable")
	}
	return nil
}

// converge waits until all nodes have the same head and digest.
func (w *world) converge(ctx context.Context) error {
	var seen []string
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		seen = seen[:0]
		same := true
		for _, p := range w.m.Peers {
			pos := p.Node.Ledger().Position()
			seen = append(seen, fmt.Sprintf("%s: index %d, height %d, head %x, digest %x", p.Name, pos.Applied, pos.Height, pos.Head[:4], pos.Digest[:4]))
			first := w.m.Peers[0].Node.Ledger().Position()
			same = same && pos.Applied == first.Applied && pos.Head == first.Head && pos.Digest == first.Digest
		}
		if same {
			return nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return fmt.Errorf("the nodes do not agree: %q", seen)
}

// chains checks on every node that each acknowledged command is in the chain
// once, at the height of its receipt, and that no issue ever had two holders.
func (w *world) chains(ctx context.Context) error {
	for _, p := range w.m.Peers {
		head, _ := p.Node.Ledger().Head()
		times := map[ledger.Hash]uint64{}
		for e, err := range p.Node.Entries(ctx, 0) {
			if err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			if at := times[e.PayloadHash]; at != 0 {
				return fmt.Errorf("%s has one command at heights %d and %d", p.Name, at, e.Height)
			}
			times[e.PayloadHash] = e.Height
			if e.Height == head {
				break
			}
		}
		for height, cmd := range w.acked {
			if got := times[ledger.PayloadHash(cmd.Salt, cmd.Payload)]; got != height {
				return fmt.Errorf("%s has the command acknowledged at height %d at %d", p.Name, height, got)
			}
		}
	}
	return nil
}
