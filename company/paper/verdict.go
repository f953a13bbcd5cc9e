package paper

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Verdicts lists all verdicts on an item, in the contract's order.
var Verdicts = []string{"approve", "reject", "defer"}

// A Verdict is the decision about one item.
type Verdict struct {
	Item    string `cbor:"1,keyasint" json:"id"`
	Verdict string `cbor:"2,keyasint" json:"verdict"` // approve, reject or defer
	Reason  string `cbor:"3,keyasint,omitempty" json:"reason"`
}

// judgeItems decides all items of a request at once, because the requester continues with the
// whole. Items without a verdict are deferred.
func judgeItems(c *ledger.Context, p ResolveInteraction) (any, error) {
	i, in, body, err := toResolve(c, p)
	if err != nil {
		return nil, err
	}
	if in.Kind != ItemVerdicts {
		return nil, wrongKind(in, "judged")
	}
	if latest, stale := body.staleTarget(c, i); stale {
		return expireStale(c, i, in, latest)
	}
	counts, rows := map[string]int64{}, []json.RawMessage{}
	judged := map[string]bool{}
	for _, v := range p.Judged {
		if err := body.checkVerdict(v, judged); err != nil {
			return nil, err
		}
		counts[v.Verdict]++
		rows = append(rows, core.Object{}.Str("id", v.Item).Str("verdict", v.Verdict).Null("reason", v.Reason).Close())
	}
	for _, item := range body.Items {
		if !judged[item.ID] {
			return nil, ledger.Refuse(ledger.Unprocessable, core.Object{}.Str("itemId", item.ID).Close(),
				"Item %s has no verdict; defer what is not decided yet", item.ID)
		}
	}
	sums := func(o core.Object) core.Object {
		return o.Int("approvedCount", counts["approve"]).Int("rejectedCount", counts["reject"]).Int("deferredCount",
			counts["defer"])
	}
	result := sums(core.Object{}.Int("version", 1).Str("outcome", "judged").Raw("verdicts", formatList(rows))).Close()
	return resolve(c, i, in, "answered", result, sums)
}

func (b interactionPayload) checkVerdict(v Verdict, judged map[string]bool) error {
	unprocessable := func(format string, args ...any) error {
		return ledger.Refuse(ledger.Unprocessable, core.Object{}.Str("itemId", v.Item).Close(), format, args...)
	}
	switch {
	case !slices.ContainsFunc(b.Items, func(o interactionValue) bool { return o.ID == v.Item }):
		return unprocessable("Unknown item: %s", v.Item)
	case judged[v.Item]:
		return unprocessable("Item %s is judged twice", v.Item)
	case !slices.Contains(Verdicts, v.Verdict) || len(b.Verdicts) > 0 && !slices.Contains(b.Verdicts, v.Verdict):
		return unprocessable("Verdict %s is not asked for", v.Verdict)
	case slices.Contains(b.RequireReasonOn, v.Verdict) && strings.TrimSpace(v.Reason) == "":
		return unprocessable("A reason is required to %s item %s", v.Verdict, v.Item)
	}
	judged[v.Item] = true
	return nil
}

// expireStale ends an interaction about a revision that is not the latest.
func expireStale(c *ledger.Context, i entity.Issue, in Interaction, latest string) (any, error) {
	result := core.Object{}.Int("version", 1).Str("outcome", "stale_target").Null("currentRevisionId", latest).Close()
	return resolve(c, i, in, "expired", result,
		func(o core.Object) core.Object { return o.Str("outcome", "stale_target") })
}

// cancelInteraction and withdrawInteraction retract a question; the board and the creator may
// do so. Nobody is woken.
func cancelInteraction(c *ledger.Context, p ResolveInteraction) (any, error) {
	return takeBack(c, p, "cancelled")
}

func withdrawInteraction(c *ledger.Context, p ResolveInteraction) (any, error) {
	return takeBack(c, p, "withdrawn")
}

func takeBack(c *ledger.Context, p ResolveInteraction, outcome string) (any, error) {
	i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, company.ErrNoIssue()
	}
	if err := company.MayComment(c, i); err != nil {
		return nil, err
	}
	in, ok := InteractionOf(c.Tx, i, p.ID)
	switch {
	case !ok:
		return nil, ledger.Refuse(ledger.NotFound, nil, "Interaction not found")
	case !core.IsBoard(c) && !in.byActor(c):
		return nil, ledger.Refuse(ledger.Forbidden, nil, "Only the board or who asked may take back an interaction")
	case in.Status != "pending":
		return nil, ledger.Refuse(ledger.Conflict, core.Object{}.Str("interactionId", in.ID).Str("status", in.Status).Close(),
			"Interaction has already been resolved")
	}
	return resolve(c, i, in, "cancelled", ended(outcome, p.Reason), nil)
}

// skipInteraction ends a question without a decision; whoever could decide may do so. The
// creator is woken to continue without one.
func skipInteraction(c *ledger.Context, p ResolveInteraction) (any, error) {
	i, in, _, err := toResolve(c, p)
	if err != nil {
		return nil, err
	}
	return resolve(c, i, in, "cancelled", ended("skipped", p.Reason),
		func(o core.Object) core.Object { return o.Str("outcome", "skipped") })
}

func ended(outcome, reason string) json.RawMessage {
	return core.Object{}.Int("version", 1).Str("outcome", outcome).Null("reason", reason).Close()
}

// skipped reports whether somebody who could decide ended in without a decision.
func (in Interaction) skipped() bool {
	var r struct {
		Outcome string `json:"outcome"`
	}
	return json.Unmarshal(in.Result, &r) == nil && r.Outcome == "skipped"
}
