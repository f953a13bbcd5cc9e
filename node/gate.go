package node

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/selvage-mesh/selvage/adapter/runlog"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// recordEvery is how often a node records the decisions that it has made.
	recordEvery = time.Second
	// maxUnrecorded bounds the different decisions that wait for it: what comes beyond them is not recorded.
	maxUnrecorded = 200
)

// A localGate weighs acts at this node: tools, calls of models, requests to the network. They are no commands, so they
// do not pass the gate of the ledger. What is worth it is recorded, identical decisions together.
type localGate struct {
	mu      sync.Mutex
	waiting map[string]govern.Decision // guarded by mu
	lost    int                        // guarded by mu
	// unnoted counts, by run, the permits that are not in its decision log. Guarded by mu.
	unnoted map[string]uint64
	counter govern.Counter
	times   histogram // of acts that were weighed
}

// Weigh asks the constitution, as this node has it, about an act. The act may happen when the answer is nil. One that a
// rule lets wait is put before a person; when they have approved it, it may happen, with the arguments that it had.
func (n *Node) Weigh(l govern.Local) error {
	var j govern.Judgement
	began := time.Now()
	l.Counter, l.At, l.Adrift = &n.gate.counter, n.conf.Wall(), !n.work.worker.Holds()
	err := n.ledger.View(func(tx *ledger.Tx) error {
		j = govern.Judge(tx, l)
		return nil
	})
	n.gate.times.add(began)
	if err != nil {
		return errors.Join(errNotWeighed, err)
	}
	switch {
	case j.Ask:
		return n.askPerson(l, j)
	case j.Refusal == nil && j.Permit != nil && j.Permit.Once:
		// Two nodes may know of the permit. The mesh gives it to one of them.
		if err := n.usePermit(l, *j.Permit); err != nil {
			return err
		}
	}
	switch {
	case j.Worthy:
		n.gate.keep(j.Decision)
	case j.Refusal == nil && l.Run != "":
		n.noteDecision(l, j.Decision)
	}
	return j.Refusal
}

// A decisionLine is one permit in the decision log of a run.
type decisionLine struct {
	At           time.Time          `json:"ts"`
	Action       string             `json:"action"`
	Decision     string             `json:"decision"`
	Target       string             `json:"target,omitempty"`
	Effect       []governance.Level `json:"effect"`          // in thousandths: risk, fairness, privacy, novelty, security
	Rules        []string           `json:"evaluated_rules"` // that were asked
	Constitution uint64             `json:"constitution"`
	Arguments    string             `json:"arguments_sha256,omitempty"`
}

// noteDecision adds a permit to the decision log of its run.
func (n *Node) noteDecision(l govern.Local, d govern.Decision) {
	line, err := json.Marshal(decisionLine{At: l.At.UTC(), Action: l.Action, Decision: d.Said.Verdict.String(),
		Target: d.Act.Target, Effect: d.Said.Effect[:], Rules: d.Said.Asked, Constitution: d.Version, Arguments: l.Arguments})
	if err == nil {
		err = n.work.logs.Decided(runlog.DecisionsRef(l.Company, l.Agent, l.Run), line)
	}
	if err == nil {
		return
	}
	if errors.Is(err, runlog.ErrSealed) { // the run is over, so its log can not have it
		n.gate.keep(d)
		return
	}
	n.gate.mu.Lock()
	defer n.gate.mu.Unlock()
	if n.gate.unnoted == nil {
		n.gate.unnoted = map[string]uint64{}
	}
	if n.gate.unnoted[l.Run]++; n.gate.unnoted[l.Run] == 1 {
		n.log.Warn("the decision log of a run lacks permits from now on; they are counted", "run", l.Run, "error", err)
	}
}

// closeDecisions closes the decision log of a run.
func (n *Node) closeDecisions(run entity.Run) *entity.DecisionLog {
	d, err := n.work.logs.SealDecisions(runlog.DecisionsRef(run.Company, run.Agent, run.ID))
	n.gate.mu.Lock()
	d.Lost = n.gate.unnoted[run.ID]
	delete(n.gate.unnoted, run.ID)
	n.gate.mu.Unlock()
	if err != nil {
		n.log.Warn("the decision log of a run could not be closed", "run", run.ID, "error", err)
		return nil
	}
	return &d
}

// askPerson puts an act before a person, and returns what becomes of it. The command stores the decision.
func (n *Node) askPerson(l govern.Local, j govern.Judgement) error {
	known := l.Known
	known.Past = j.Decision.Act.Context.Past
	ctx, cancel := context.WithTimeout(context.Background(), submitTimeout)
	defer cancel()
	receipt, err := n.submit(ctx, n.command(govern.KindPermit, l.Company, govern.AskPermit{
		ID: uuid.Must(uuid.NewV7()).String(), Agent: l.Agent,
		Action: l.Action, Arguments: l.Arguments, Once: l.Once, Known: known, Run: l.Run, Detail: l.Detail,
		Target: l.Target}))
	if err == nil {
		err = receipt.Err()
	}
	var out govern.PermitAnswer
	if err == nil {
		err = ledger.Unmarshal(receipt.Value, &out)
	}
	if err != nil {
		n.log.Warn("a person could not be asked about an act", "action", l.Action, "agent", l.Agent, "error", err)
		n.gate.keep(j.Decision)
		return j.Refusal
	}
	if out.Status != govern.PermitGranted {
		return out.Refusal()
	}
	// By now a person has approved it, or the constitution has no objection any more.
	if l.Once {
		return n.usePermit(l, govern.Permit{ID: out.Permit})
	}
	return nil
}

// usePermit uses up a permit that holds once.
func (n *Node) usePermit(l govern.Local, p govern.Permit) error {
	err := n.carryOut(context.Background(), n.command(govern.KindPermitUse, l.Company, govern.UsePermit{Permit: p.ID,
		Agent: l.Agent, Action: l.Action, Arguments: l.Arguments}))
	if no, ok := errors.AsType[*ledger.Refusal](err); ok {
		return core.RefuseCode(ledger.Forbidden, company.GovernanceDenied, no.Detail, "%s", no.Message)
	}
	if err != nil {
		return errors.Join(errNotWeighed, err)
	}
	return nil
}

var errNotWeighed = errors.New("the act can not be weighed, so it does not happen")

func (g *localGate) keep(d govern.Decision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := strings.Join([]string{string(d.Company), d.Act.Agent, d.Run, d.Act.Action, d.Said.Verdict.String(),
		d.Said.Reason}, "\x00")
	if was, ok := g.waiting[key]; ok {
		was.Count++
		g.waiting[key] = was
		return
	}
	if len(g.waiting) >= maxUnrecorded {
		g.lost++
		return
	}
	if g.waiting == nil {
		g.waiting = map[string]govern.Decision{}
	}
	g.waiting[key] = d
}

// take returns what waits, by company, in a fixed order.
func (g *localGate) take() (by map[ledger.CompanyID][]govern.Decision, lost int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	by = map[ledger.CompanyID][]govern.Decision{}
	for _, key := range slices.Sorted(maps.Keys(g.waiting)) {
		d := g.waiting[key]
		by[d.Company] = append(by[d.Company], d)
	}
	lost, g.lost = g.lost, 0
	clear(g.waiting)
	return by, lost
}

// recordDecisions records what this node has decided, until ctx ends.
func (n *Node) recordDecisions(ctx context.Context) {
	every(ctx, recordEvery, func() {
		by, lost := n.gate.take()
		if lost > 0 {
			n.log.Warn("decisions of the gate were not recorded: too many at once", "decisions", lost)
		}
		for of, list := range by {
			for part := range slices.Chunk(list, govern.MaxRecorded) {
				if err := n.carryOut(ctx, n.command(govern.KindRecord, of, govern.Record{Decisions: part})); err != nil &&
					ctx.Err() == nil {
					n.log.Warn("record decisions of the gate", "company", of, "decisions", len(part), "error", err)
				}
			}
		}
	})
}
