package paper

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// toResolve returns an interaction that the actor may decide now.
func toResolve(c *ledger.Context, p ResolveInteraction) (i entity.Issue, in Interaction, body interactionPayload,
	err error) {
	i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return i, in, body, company.ErrNoIssue()
	}
	if in, ok = InteractionOf(c.Tx, i, p.ID); !ok {
		return i, in, body, ledger.Refuse(ledger.NotFound, nil, "Interaction not found")
	}
	if err := company.MayComment(c, i); err != nil {
		return i, in, body, err
	}
	if err := in.mayResolve(c); err != nil {
		return i, in, body, err
	}
	if err := in.mayReview(c, i); err != nil {
		return i, in, body, err
	}
	if in.Status != "pending" {
		return i, in, body, ledger.Refuse(ledger.Conflict, core.Object{}.Str("interactionId", in.ID).Str("status", in.Status).
			Close(), "Interaction has already been resolved")
	}
	if json.Unmarshal(in.Payload, &body) != nil {
		return i, in, body, ledger.Refuse(ledger.Unprocessable, nil, "The payload of the interaction is not of its kind")
	}
	return i, in, body, nil
}

// mayResolve admits the actors that the policy names: everybody in the company, everybody but
// the creator, or people; of agents only the addressed one, if there is one.
func (in Interaction) mayResolve(c *ledger.Context) error {
	agent := core.IsAgent(c)
	refuse := func(text string) error {
		return ledger.Refuse(ledger.Forbidden, core.Object{}.Str("interactionId", in.ID).Str("effectiveResolverPolicy",
			in.Effective).Close(), "%s", text)
	}
	switch {
	case in.Effective == "human_only" && agent:
		return refuse("Only people may decide this interaction")
	case in.Effective == "not_creator" && in.byActor(c):
		return refuse("Who asked may not decide this interaction")
	case agent && in.AddresseeAgent != "" && string(in.AddresseeAgent) != c.Cmd.Actor.ID:
		return refuse("Another agent is asked")
	case agent && in.AddresseeAgent == "" && in.AddresseeUser != "":
		return refuse("A person is asked")
	}
	return nil
}

// bindReview returns an issue in review with the confirmation that requests the review; ""
// keeps it. The creator of the confirmation binds it while it is pending. Until the issue
// leaves the review, its review policy decides who may resolve this confirmation, in addition
// to the confirmation's own policy. Other confirmations of the issue are not affected.
func bindReview(c *ledger.Context, i entity.Issue, id string) (entity.Issue, error) {
	if id == "" {
		return i, nil
	}
	in, ok := InteractionOf(c.Tx, i, id)
	switch {
	case !ok:
		return i, ledger.Refuse(ledger.NotFound, nil, "reviewInteractionId: the issue has no such interaction")
	case in.Kind != Confirmation && in.Kind != CheckboxConfirm:
		return i, ledger.Refuse(ledger.Unprocessable, core.Object{}.Str("interactionId", in.ID).Str("kind", in.Kind).Close(),
			"A review is asked for by a %s or a %s", Confirmation, CheckboxConfirm)
	case in.Status != "pending":
		return i, ledger.Refuse(ledger.Conflict, core.Object{}.Str("interactionId", in.ID).Str("status", in.Status).Close(),
			"Interaction has already been resolved")
	case !in.byActor(c):
		return i, ledger.Refuse(ledger.Forbidden, core.Object{}.Str("interactionId", in.ID).Close(),
			"Only who made the interaction asks for the review by it; make one of your own, or leave out reviewInteractionId")
	case i.Status != entity.IssueInReview:
		return i, ledger.Refuse(ledger.Unprocessable, core.StatusDetail("issueId", i.ID, i.Status),
			"reviewInteractionId goes with the status %s", entity.IssueInReview)
	}
	i.Review = in.ID
	return i, nil
}

// mayReview refuses actors whom the issue's review policy excludes.
func (in Interaction) mayReview(c *ledger.Context, i entity.Issue) error {
	if i.Review != in.ID {
		return nil
	}
	refuse := func(text string) error {
		return core.RefuseCode(ledger.Forbidden, "review_policy_denied", core.Object{}.Str("code", "review_policy_denied").
			Str("interactionId", in.ID).Str("policy", i.ReviewPolicy).Close(), "%s", text)
	}
	switch {
	case i.ReviewPolicy == "human_only" && core.IsAgent(c):
		return refuse("Only a person may decide the review of this issue; have one do so, or change reviewPolicy")
	case i.ReviewPolicy == "not_creator" && in.byActor(c):
		return refuse("Who asked for the review of this issue may not decide it; have somebody else do so, or change " +
			"reviewPolicy")
	}
	return nil
}

// byActor reports whether the actor created the interaction.
func (in Interaction) byActor(c *ledger.Context) bool {
	agent, user := core.ActedBy(c)
	return agent != "" && agent == in.CreatedAgent || user != "" && user == in.CreatedUser
}

func wrongKind(in Interaction, verb string) error {
	return ledger.Refuse(ledger.Unprocessable, core.Object{}.Str("kind", in.Kind).Close(),
		"An interaction of kind %s cannot be %s", in.Kind, verb)
}

func acceptInteraction(c *ledger.Context, p ResolveInteraction) (any, error) {
	i, in, body, err := toResolve(c, p)
	if err != nil {
		return nil, err
	}
	if latest, stale := body.staleTarget(c, i); stale {
		return expireStale(c, i, in, latest)
	}
	switch in.Kind {
	case SuggestTasks:
		return acceptTasks(c, i, in, body, p)
	case Confirmation:
		return resolve(c, i, in, "accepted", core.Object{}.Int("version", 1).Str("outcome", "accepted").Close(), nil)
	case CheckboxConfirm:
		chosen, err := body.chosen(in, p)
		if err != nil {
			return nil, err
		}
		return resolve(c, i, in, "accepted", core.Object{}.Int("version", 1).Str("outcome", "accepted").
			List("selectedOptionIds", chosen).Close(),
			func(o core.Object) core.Object { return o.Int("selectedOptionCount", int64(len(chosen))) })
	}
	return nil, wrongKind(in, "accepted")
}

// staleTarget reports whether the document of a confirmation has a newer revision now.
func (b interactionPayload) staleTarget(c *ledger.Context, i entity.Issue) (latest string, stale bool) {
	t := b.Target
	if t == nil || t.Type != "issue_document" {
		return "", false
	}
	of := i
	if t.Issue != "" && t.Issue != i.ID {
		of, _ = entity.IssueTable.Get(c.Tx, i.Company, t.Issue)
	}
	d, ok := DocumentOf(c.Tx, of, t.Key)
	return d.Latest, !ok || d.Latest != t.Revision
}

// chosen returns the chosen options, if their number is allowed.
func (b interactionPayload) chosen(in Interaction, p ResolveInteraction) ([]string, error) {
	var chosen []string
	if p.Options != nil {
		chosen = core.SortedSet(*p.Options)
	} else {
		var defaults struct {
			IDs []string `json:"defaultSelectedOptionIds"`
		}
		if err := json.Unmarshal(in.Payload, &defaults); err == nil {
			chosen = core.SortedSet(defaults.IDs)
		}
	}
	for _, id := range chosen {
		if !slices.ContainsFunc(b.Options, func(o interactionValue) bool { return o.ID == id }) {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "Unknown option: %s", id)
		}
	}
	if len(chosen) < b.MinSelected || b.MaxSelected != nil && len(chosen) > *b.MaxSelected {
		return nil, ledger.Refuse(ledger.Unprocessable, core.Object{}.Int("minSelected", int64(b.MinSelected)).
			Int("selected", int64(len(chosen))).Close(),
			"%d options are chosen, which is not as many as asked for", len(chosen))
	}
	return chosen, nil
}

// acceptTasks creates the chosen tasks of a suggestion, all or none.
func acceptTasks(c *ledger.Context, i entity.Issue, in Interaction, body interactionPayload,
	p ResolveInteraction) (any, error) {
	tasks, err := ordered(body.Tasks)
	if err != nil {
		return nil, err
	}
	want := map[string]bool{}
	for _, t := range tasks {
		want[t.ClientKey] = p.Tasks == nil
	}
	if p.Tasks != nil {
		for _, key := range *p.Tasks {
			if _, ok := want[key]; !ok {
				return nil, ledger.Refuse(ledger.Unprocessable, nil, "Unknown task: %s", key)
			}
			want[key] = true
		}
		if len(*p.Tasks) == 0 {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "No task is chosen; reject the suggestion instead")
		}
	}
	created, skipped := []json.RawMessage{}, []string{}
	made := map[string]entity.Issue{}
	for _, t := range tasks {
		if !want[t.ClientKey] {
			skipped = append(skipped, t.ClientKey)
			continue
		}
		parent := cmp.Or(t.Parent, cmp.Or(body.DefaultParent, i.ID))
		if t.ParentClientKey != "" {
			above, ok := made[t.ParentClientKey]
			if !ok {
				return nil, ledger.Refuse(ledger.Unprocessable, nil, "Task %s is chosen without its parent %s", t.ClientKey,
					t.ParentClientKey)
			}
			parent = above.ID
		}
		ids, err := body.labelIDs(c.Tx, i.Company, t.Labels)
		if err != nil {
			return nil, err
		}
		v, err := company.MakeIssue(c, company.CreateIssue{ID: core.DerivedID("suggested", in.ID, t.ClientKey),
			Title: t.Title, Description: t.Description, Priority: t.Priority,
			WorkMode: t.WorkMode, Assignee: t.Assignee, AssigneeUser: t.AssigneeUser, Project: t.Project, Goal: t.Goal,
			BillingCode: t.BillingCode,
			Labels:      ids, Parent: parent, AllowDuplicate: true, Many: true})
		if err != nil {
			return nil, err
		}
		task := v.(entity.IssueResult).Issue
		made[t.ClientKey] = task
		above, _ := entity.IssueTable.Get(c.Tx, i.Company, task.Parent)
		created = append(created, core.Object{}.Str("clientKey", t.ClientKey).Str("issueId", task.ID).Str("identifier",
			task.Identifier).Str("title", task.Title).
			Str("parentIssueId", above.ID).Str("parentIdentifier", above.Identifier).Close())
	}
	o := core.Object{}.Int("version", 1).Raw("createdTasks", formatList(created))
	if len(skipped) > 0 {
		o = o.List("skippedClientKeys", skipped)
	}
	i, _ = entity.IssueTable.Get(c.Tx, i.Company, i.ID)
	return resolve(c, i, in, "accepted", o.Close(), func(o core.Object) core.Object {
		return o.Int("createdTaskCount", int64(len(created))).Int("skippedTaskCount", int64(len(skipped)))
	})
}

// formatList joins JSON values into an array.
func formatList(rows []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for n, r := range rows {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(b, r...)
	}
	return append(b, ']')
}

func answerInteraction(c *ledger.Context, p ResolveInteraction) (any, error) {
	i, in, body, err := toResolve(c, p)
	if err != nil {
		return nil, err
	}
	if in.Kind != AskQuestions {
		return nil, wrongKind(in, "answered")
	}
	if len(p.Answers) > MaxQuestions || len(p.Summary) > MaxInteraction {
		return nil, ledger.Refuse(ledger.TooLarge, nil, "There are at most %d answers", MaxQuestions)
	}
	given := map[string]bool{}
	rows := []json.RawMessage{}
	for _, a := range p.Answers {
		if err := body.checkAnswer(a, given); err != nil {
			return nil, err
		}
		o := core.Object{}.Str("questionId", a.Question).List("optionIds", a.Options)
		if a.Other != "" {
			o = o.Str("otherText", a.Other)
		}
		rows = append(rows, o.Close())
	}
	for _, q := range body.Questions {
		if q.Required && !given[q.ID] {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "Question %s must be answered", q.ID)
		}
	}
	result := core.Object{}.Int("version", 1).Raw("answers", formatList(rows)).Null("summaryMarkdown", p.Summary).Close()
	return resolve(c, i, in, "answered", result, func(o core.Object) core.Object {
		return o.Int("answeredQuestionCount",
			int64(len(rows)))
	})
}

func (b interactionPayload) checkAnswer(a Answer, given map[string]bool) error {
	n := slices.IndexFunc(b.Questions, func(q interactionQuestion) bool { return q.ID == a.Question })
	if n < 0 {
		return ledger.Refuse(ledger.Unprocessable, nil, "Unknown question: %s", a.Question)
	}
	q := b.Questions[n]
	free := q.AllowOther || len(q.Options) == 0
	for _, id := range a.Options {
		k := slices.IndexFunc(q.Options, func(o interactionValue) bool { return o.ID == id })
		if k < 0 {
			return ledger.Refuse(ledger.Unprocessable, nil, "Question %s has no option %s", a.Question, id)
		}
		free = free || q.Options[k].FreeText
	}
	switch {
	case given[a.Question]:
		return ledger.Refuse(ledger.Unprocessable, nil, "Question %s is answered twice", a.Question)
	case q.SelectionMode == "single" && len(a.Options) > 1:
		return ledger.Refuse(ledger.Unprocessable, nil, "Question %s takes one option", a.Question)
	case a.Other != "" && !free:
		return ledger.Refuse(ledger.Unprocessable, nil, "Question %s does not accept free text", a.Question)
	}
	given[a.Question] = len(a.Options) > 0 || a.Other != ""
	return nil
}

func rejectInteraction(c *ledger.Context, p ResolveInteraction) (any, error) {
	i, in, body, err := toResolve(c, p)
	switch {
	case err != nil:
		return nil, err
	case in.Kind == AskQuestions || in.Kind == ItemVerdicts:
		return nil, wrongKind(in, "rejected")
	case body.RejectRequiresReason && strings.TrimSpace(p.Reason) == "":
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "A reason is required to reject this interaction")
	}
	o := core.Object{}.Int("version", 1)
	if in.Kind == SuggestTasks {
		o = o.Null("rejectionReason", p.Reason)
	} else {
		o = o.Str("outcome", "rejected").Null("reason", p.Reason)
	}
	return resolve(c, i, in, "rejected", o.Close(), func(o core.Object) core.Object {
		return o.Null("rejectionReason",
			core.Snippet(p.Reason, 500))
	})
}

// resolve ends an interaction and wakes the agents concerned.
func resolve(c *ledger.Context, i entity.Issue, in Interaction, status string, result json.RawMessage,
	more func(core.Object) core.Object) (any, error) {
	if len(result) > MaxInteraction {
		return nil, ledger.Refuse(ledger.TooLarge, nil, "The result of an interaction has at most %d bytes", MaxInteraction)
	}
	now := core.TimeOf(c.Now)
	in.Status, in.Result, in.ResolvedAt, in.UpdatedAt = status, result, now, now
	in.ResolvedAgent, in.ResolvedUser = core.ActedBy(c)
	in.ResolvedRun = core.NullText(c.Cmd.Run)
	Interactions.Put(c.Tx, i.Company, in.rowKey(), in)
	company.Touch(c, i)
	reason := "allow_board_actor"
	if core.IsAgent(c) {
		reason = "allow_agent_run"
	}
	o := in.details().Str("resolutionActorKind", c.Cmd.Actor.Type).Str("resolverAuthorizationReason", reason)
	if more != nil {
		o = more(o)
	}
	company.RecordLive(c, ledger.Change{Action: "issue.thread_interaction_" + status, EntityType: "issue", EntityID: i.ID,
		Details: o.Close()})
	return in, wakeForInteraction(c, i, in)
}

// wakeForInteraction wakes the issue's assignee and the agent that asked with the result, if
// the interaction says so. Nobody is woken by its own decision.
func wakeForInteraction(c *ledger.Context, i entity.Issue, in Interaction) error {
	if in.Status == "cancelled" && !in.skipped() || in.Continuation == "none" ||
		in.Continuation == "wake_assignee_on_accept" && in.Status != "accepted" && in.Status != "answered" {
		return nil
	}
	at := ledger.Order(c.Height)
	for _, agent := range core.SortedSet([]string{i.Assignee, string(in.CreatedAgent)}) {
		if agent == "" || core.IsAgent(c) && agent == c.Cmd.Actor.ID {
			continue
		}
		a, ok := entity.Wakeable(c.Tx, i.Company, agent)
		if !ok {
			continue
		}
		if _, err := company.WakeAgent(c, a, entity.Wake{Agent: agent, Source: entity.WakeAutomation, TriggerDetail: "system",
			Reason: "interaction_" + in.Status, Issue: i.ID,
			From: "issue.interaction", Responsible: i.ResponsibleUser, Interaction: in.ID, InteractionKind: in.Kind,
			InteractionStatus: in.Status,
			Payload: core.Object{}.Str("issueId", i.ID).Str("mutation", "interaction").Str("interactionId", in.ID).
				Str("interactionKind", in.Kind).
				Str("interactionStatus", in.Status).Close(),
			Wakeup: core.DerivedID("interaction-wake", in.ID, agent, at), Run: core.DerivedID("interaction-run", in.ID, agent,
				at)}); err != nil {
			return err
		}
	}
	return nil
}

// supersede ends the interactions of i that a person's comment supersedes.
func supersede(c *ledger.Context, i entity.Issue, cm entity.Comment) {
	if !core.IsBoard(c) {
		return
	}
	for _, in := range pendingInteractions(c.Tx, i) {
		var body struct {
			Supersede bool `json:"supersedeOnUserComment"`
		}
		if json.Unmarshal(in.Payload, &body) != nil || !body.Supersede {
			continue
		}
		now := core.TimeOf(c.Now)
		in.Status, in.ResolvedAt, in.UpdatedAt = "expired", now, now
		in.Result = core.Object{}.Int("version", 1).Str("outcome", "superseded_by_comment").Str("commentId", cm.ID).Close()
		in.ResolvedAgent, in.ResolvedUser = core.ActedBy(c)
		Interactions.Put(c.Tx, i.Company, in.rowKey(), in)
		company.RecordLive(c, ledger.Change{Action: "issue.thread_interaction_expired", EntityType: "issue", EntityID: i.ID,
			Details: in.details().Str("outcome", "superseded_by_comment").Str("commentId", cm.ID).Close()})
	}
}
