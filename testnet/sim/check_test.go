package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/selvage-mesh/selvage/company/entity"
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
		kind  string // "ok", "conflict", "unknown", or "nothing" when it certainly did nothing
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
	// An unknown operation is open: that it never took effect is the same as
	// that it took effect after all others.
	Step: func(state, in, out any) (bool, any) {
		owner, i, o := state.(string), in.(input), out.(output)
		switch i.kind {
		case "read":
			return o.owner == owner, owner
		case "checkout":
			switch {
			case o.kind == "ok":
				return owner == "" || owner == i.agent, i.agent
			case o.kind == "conflict":
				return owner != "" && owner != i.agent && owner == o.owner, owner
			case owner == "":
				return true, i.agent
			}
			return true, owner
		case "release":
			return o.kind != "conflict", ""
		}
		return false, owner
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string {
		i, o := in.(input), out.(output)
		return fmt.Sprintf("%s %s by %.4s: %s %.4s", i.kind, i.issue[:4], i.agent, o.kind, o.owner)
	},
}

// checkTimeout bounds Porcupine's search, in real time: a history that it does
// not decide in that is a failure too.
const checkTimeout = time.Minute

// linearizable checks what the clients saw. It is called outside the bubble,
// where time passes while Porcupine thinks.
func (w *world) linearizable() error {
	switch porcupine.CheckOperationsTimeout(lockModel, w.history, checkTimeout) {
	case porcupine.Illegal:
		return errors.New("what the clients saw is not linearizable")
	case porcupine.Unknown:
		return fmt.Errorf("no verdict on what the clients saw within %s", checkTimeout)
	}
	return nil
}

// check finds out whether what the nodes have fits what was acknowledged, and
// the rules.
func (w *world) check(ctx context.Context) error {
	w.mu.Lock()
	landed := slices.Clone(w.landed) // runs may still be ending
	w.mu.Unlock()
	if err := w.current(ctx); err != nil {
		return err
	}
	if err := w.converge(ctx); err != nil {
		return err
	}
	for _, p := range w.m.Peers {
		if err := w.replay(ctx, p, landed); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		if err := w.locks(p); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		if err := p.Up().complaint(); err != nil {
			return err
		}
	}
	if _, err := w.m.Peers[0].Up().Ledger().Verify(ctx, nil); err != nil {
		return fmt.Errorf("the chain does not verify: %w", err)
	}
	return nil
}

// current waits until every node answers a strong read: then it has all that was
// acknowledged. Nodes that have all just started are equal, too, while none leads.
func (w *world) current(ctx context.Context) error {
	return w.m.until(ctx, "all nodes answer a strong read", func() bool {
		for _, p := range w.m.Peers {
			ctx, cancel := context.WithTimeout(ctx, patience)
			_, err := p.Up().View(ctx, ledger.Read{Mode: ledger.ReadStrong}, func(*ledger.Tx) error { return nil })
			cancel()
			if err != nil {
				return false
			}
		}
		return true
	})
}

// converge waits until all nodes have the same head and digest.
func (w *world) converge(ctx context.Context) error {
	var seen []string
	same := func() bool {
		seen = seen[:0]
		equal := true
		first := w.m.Peers[0].Up().Ledger().Position()
		for _, p := range w.m.Peers {
			pos := p.Up().Ledger().Position()
			seen = append(seen, fmt.Sprintf("%s: index %d, height %d, head %x, digest %x", p.Name, pos.Applied, pos.Height,
				pos.Head[:4], pos.Digest[:4]))
			equal = equal && pos.Applied == first.Applied && pos.Head == first.Head && pos.Digest == first.Digest
		}
		return equal
	}
	if err := w.m.until(ctx, "all nodes have the same", same); err != nil {
		return fmt.Errorf("%w: %q", err, seen)
	}
	return nil
}

// A holding is who has an issue.
type holding struct{ agent, run string }

// replay walks a node's chain from the first entry: no command may be there
// twice, what was acknowledged must be there at its height, no issue may have
// two owners, no lock may outlive its run, and nothing may be written under a
// run that is over or does not hold what it writes to.
func (w *world) replay(ctx context.Context, p *Peer, landed []receipt) error {
	var (
		heights = map[ledger.Hash]uint64{}
		rules   = rules{running: map[string]bool{}, held: map[string]holding{}}
		head, _ = p.Up().Ledger().Head()
	)
	for e, err := range p.Up().Entries(ctx, 0) {
		if err != nil {
			return err
		}
		// The opening of a session is outside of any session: when its outcome was
		// unknown it is entered again, and by its nonce opens nothing new.
		if at := heights[e.PayloadHash]; at != 0 && e.Kind != ledger.KindSessionOpen {
			return fmt.Errorf("one %s is at heights %d and %d", e.Kind, at, e.Height)
		}
		heights[e.PayloadHash] = e.Height
		if err := rules.entry(e); err != nil {
			return fmt.Errorf("height %d, %s: %w", e.Height, e.Kind, err)
		}
		if e.Height == head {
			break
		}
	}
	for _, r := range landed {
		switch at := heights[r.payload]; {
		case at == 0:
			return fmt.Errorf("%s, acknowledged %.1fs after the start at height %d, is lost", r.kind, r.at.Seconds(), r.Height)
		case at != r.Height:
			return fmt.Errorf("%s, acknowledged at height %d, is at %d", r.kind, r.Height, at)
		}
	}
	return nil
}

// rules is who runs and who holds what, as far as a chain was walked.
type rules struct {
	running map[string]bool
	held    map[string]holding // by issue
}

func (r rules) entry(e ledger.Entry) error {
	if e.Outcome != ledger.Applied {
		return nil
	}
	if e.Actor.Type == "agent" && !r.running[e.Run] {
		return fmt.Errorf("written under run %.8s, which is over", e.Run)
	}
	for _, c := range e.Changes {
		if err := r.change(e, c); err != nil {
			return err
		}
	}
	for issue, h := range r.held {
		if h.run != "" && !r.running[h.run] {
			return fmt.Errorf("issue %.8s is still held under run %.8s, which is over", issue, h.run)
		}
	}
	return nil
}

func (r rules) change(e ledger.Entry, c ledger.Change) error {
	var d struct {
		Agent  string `json:"agentId"`
		Status string `json:"status"`
	}
	h, isHeld := r.held[c.EntityID]
	switch c.Action {
	case "heartbeat.run.status":
		if err := json.Unmarshal(c.Details, &d); err != nil {
			return err
		}
		r.running[c.EntityID] = d.Status == string(entity.RunRunning)
	case "issue.checked_out":
		if err := json.Unmarshal(c.Details, &d); err != nil {
			return err
		}
		next := holding{d.Agent, e.Run}
		if isHeld && h != next {
			return fmt.Errorf("issue %.8s is held by %.8s (run %.8s) and given to %.8s (run %.8s)", c.EntityID, h.agent, h.run,
				d.Agent, e.Run)
		}
		r.held[c.EntityID] = next
	case "issue.updated":
		if isHeld && e.Actor.Type == "agent" && (h != holding{e.Actor.ID, e.Run}) {
			return fmt.Errorf("issue %.8s is held by %.8s (run %.8s) and written by %.8s (run %.8s)", c.EntityID, h.agent, h.run,
				e.Actor.ID, e.Run)
		}
	case "issue.released", "issue.lock_released", "issue.admin_force_release":
		delete(r.held, c.EntityID)
	}
	return nil
}

// locks checks, in a node's rows, that no issue is held under a run that is over.
func (w *world) locks(p *Peer) error {
	return p.Up().Ledger().View(func(tx *ledger.Tx) error {
		for _, id := range append(append([]string(nil), w.issues...), w.jobs...) {
			i, ok := entity.IssueOf(tx, w.company, id)
			if !ok {
				return fmt.Errorf("issue %s is gone", id)
			}
			if i.CheckoutRun == "" {
				continue
			}
			if r, ok := entity.RunOf(tx, w.company, i.CheckoutRun); !ok || r.Status != entity.RunRunning {
				return fmt.Errorf("issue %.8s is held under run %.8s, which is %q", id, i.CheckoutRun, r.Status)
			}
		}
		return nil
	})
}
