package work

import (
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/ledger"
)

func DismissalRoutes() []api.Route {
	const of = "/api/companies/{companyId}/inbox-dismissals"
	return []api.Route{
		api.Read(api.Route{Path: of, Tag: "inbox", Summary: "List what the user put aside", Who: api.Board},
			func(tx *ledger.Tx, rc *api.Request) ([]inbox.Dismissal, error) {
				row, err := api.CompanyIn(tx, rc)
				return inbox.DismissalsOf(tx, row.ID, rc.Actor.ID), err
			}),
		{Method: "POST", Path: of, Tag: "inbox", Summary: "Put an item of the inbox aside, for good or for a while",
			Who: api.Board, In: dismissBody{}, Out: inbox.Dismissal{}, Handle: dismiss},
		api.Tell(api.Route{Path: of + "/{itemKey}", Tag: "inbox", Summary: "Bring an item back into the inbox",
			Who: api.Board}, inbox.KindInboxRestore, api.InPath("itemKey"), func(rc *api.Request, _ string) inbox.Dismiss {
			return inbox.Dismiss{Key: rc.Path("itemKey")}
		}),
	}
}

// dismissBody is the body that dismisses an item.
type dismissBody struct {
	Key   string          `json:"itemKey" minLength:"5" maxLength:"200" pattern:"^(approval|join|run|attention):.+$"`
	Kind  string          `json:"kind,omitempty" enum:"dismiss,snooze"`
	Until api.Opt[string] `json:"snoozedUntil" format:"date-time"`
}

// aside returns the dismissals of a user by the key of the item.
func aside(tx *ledger.Tx, of ledger.CompanyID, user string) map[string]inbox.Dismissal {
	out := map[string]inbox.Dismissal{}
	for _, d := range inbox.DismissalsOf(tx, of, user) {
		out[d.Key] = d
	}
	return out
}

func dismiss(rc *api.Request) (api.Response, error) {
	in, err := api.Body[dismissBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	p := inbox.Dismiss{Key: in.Key}
	if in.Kind == "snooze" {
		if p.Until, err = inbox.ParseTime(in.Until.Or("")); err != nil {
			return api.Response{}, api.Invalid("snoozedUntil is needed to snooze")
		}
	}
	d, err := api.Do[inbox.Dismissal](rc, inbox.KindInboxDismiss, api.CompanyID(rc), p)
	return api.OK(d), err
}

// recoveries adds stuck issues and the decision that each needs.
func (d *attentionDesk) recoveries() {
	for _, i := range inbox.ListIssues(d.tx, d.row.ID,
		inbox.IssueQuery{Statuses: []entity.IssueStatus{entity.IssueBlocked}, Sort: inbox.SortUpdated, Descending: true,
			Limit: maxAttentionBlocked}) {
		a, ok := care.ActiveRecovery(d.tx, i)
		if !ok {
			continue
		}
		d.add(attentionItem{SourceKind: "recovery_action", Severity: "high", ActivityAt: a.UpdatedAt, CreatedAt: a.CreatedAt,
			UpdatedAt: a.UpdatedAt, DedupKey: "recovery:" + a.ID,
			Subject: d.issue(i), RelatedIssue: new(d.issue(i)), WhyNow: a.NextAction, EntryRule: "A recovery action is active.",
			ExitRule: "It is resolved, or the issue is not blocked any more.",
			Verbs: []attentionVerb{{"resolve", "Resolve", a.NextAction},
				{"reassign", "Reassign", "Give the issue to somebody else."}},
			Detail: attentionDetail{"kind": "recovery", "recoveryKind": a.Kind, "attemptCount": a.Attempts,
				"images": []string{}}})
	}
}
