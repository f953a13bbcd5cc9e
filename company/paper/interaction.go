package paper

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// An Interaction is a question on an issue that somebody decides: suggested tasks, questions,
// a confirmation, a choice.
type Interaction struct {
	ID      string           `cbor:"1,keyasint" json:"id"`
	Company ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Issue   string           `cbor:"3,keyasint" json:"issueId"`
	Kind    string           `cbor:"4,keyasint" json:"kind"`
	// pending, accepted, rejected, answered, cancelled or expired
	Status          string          `cbor:"5,keyasint" json:"status"`
	Continuation    string          `cbor:"6,keyasint" json:"continuationPolicy"`
	Requested       string          `cbor:"7,keyasint" json:"requestedResolverPolicy"`
	Effective       string          `cbor:"8,keyasint" json:"effectiveResolverPolicy"`
	Provenance      string          `cbor:"9,keyasint" json:"resolverPolicyProvenance"` // inherited or explicit
	EffectiveSource string          `cbor:"10,keyasint" json:"effectiveResolverPolicySource"`
	IdempotencyKey  core.NullText   `cbor:"11,keyasint,omitempty" json:"idempotencyKey"`
	OriginComments  []string        `cbor:"12,keyasint,omitempty" json:"originCommentIds"`
	SourceComment   core.NullText   `cbor:"13,keyasint,omitempty" json:"sourceCommentId"`
	SourceIdentity  core.NullText   `cbor:"-" json:"sourceIdentityContextId"`
	SourceRun       core.NullText   `cbor:"14,keyasint,omitempty" json:"sourceRunId"`
	Title           core.NullText   `cbor:"15,keyasint,omitempty" json:"title"`
	Summary         core.NullText   `cbor:"16,keyasint,omitempty" json:"summary"`
	CreatedAgent    core.NullText   `cbor:"17,keyasint,omitempty" json:"createdByAgentId"`
	AddresseeAgent  core.NullText   `cbor:"18,keyasint,omitempty" json:"addresseeAgentId"`
	AddresseeUser   core.NullText   `cbor:"19,keyasint,omitempty" json:"addresseeUserId"`
	CreatedUser     core.NullText   `cbor:"20,keyasint,omitempty" json:"createdByUserId"`
	ResolvedAgent   core.NullText   `cbor:"21,keyasint,omitempty" json:"resolvedByAgentId"`
	ResolvedRun     core.NullText   `cbor:"22,keyasint,omitempty" json:"resolvedByRunId"`
	ResolvedUser    core.NullText   `cbor:"23,keyasint,omitempty" json:"resolvedByUserId"`
	Payload         json.RawMessage `cbor:"24,keyasint" json:"payload"`
	Result          json.RawMessage `cbor:"25,keyasint,omitempty" json:"result"`
	ResolvedAt      core.Time       `cbor:"26,keyasint,omitempty" json:"resolvedAt"`
	CreatedAt       core.Time       `cbor:"27,keyasint" json:"createdAt"`
	UpdatedAt       core.Time       `cbor:"28,keyasint" json:"updatedAt"`
	Seq             uint64          `cbor:"29,keyasint" json:"-"` // number within the issue, from 1
}

// Clone returns a copy that shares nothing with in.
func (in Interaction) Clone() Interaction {
	in.OriginComments = slices.Clone(in.OriginComments)
	in.Payload, in.Result = slices.Clone(in.Payload), slices.Clone(in.Result)
	return in
}

// The kinds of interactions.
const (
	SuggestTasks    = "suggest_tasks"
	AskQuestions    = "ask_user_questions"
	Confirmation    = "request_confirmation"
	CheckboxConfirm = "request_checkbox_confirmation"
	ItemVerdicts    = "request_item_verdicts"
)

// Interactions are keyed by issue, oldest first. A pending one has a second row, and so has a
// request's key:
//
//	interaction/<issue>.<number>
//	interaction-pending/<issue>/<number>
//	interaction-request/<hash of issue and key>   <issue>.<number>
var (
	Interactions = ledger.NewTable[string, Interaction]("interaction").
			Beside(ledger.IndexedAs(interactionsPending, func(in *Interaction, _ string) (value, entry string) {
			if in.Status != "pending" {
				return "", ""
			}
			return in.Issue, ledger.Order(in.Seq)
		}))
	interactionsPending = ledger.NewIndex[string, string]("interaction-pending")
)

func InteractionRequestKey(company ledger.CompanyID, issue, request string) []byte {
	return ledger.Key("c", string(company), "interaction-request", core.TextKey(issue+"/"+request))
}

const (
	// MaxInteractions bounds the interactions of one issue, MaxPending the pending ones: lists
	// show all, and a comment may end all pending ones.
	MaxInteractions = 500
	MaxPending      = 50
	// MaxInteraction bounds the payload and the result of one, in bytes.
	MaxInteraction = 64 << 10
	// MaxSuggested bounds the tasks of one suggestion: accepting it creates all of them.
	// MaxQuestions and MaxOptions bound the other kinds.
	MaxSuggested = 50
	MaxQuestions = 50
	MaxOptions   = 100
)

// A SuggestedTask is one task of a suggestion.
type SuggestedTask struct {
	ClientKey       string          `json:"clientKey"`
	ParentClientKey string          `json:"parentClientKey"`
	Parent          string          `json:"parentId"`
	Title           string          `json:"title"`
	Description     string          `json:"description"`
	Priority        entity.Priority `json:"priority"`
	WorkMode        string          `json:"workMode"`
	Assignee        string          `json:"assigneeAgentId"`
	AssigneeUser    string          `json:"assigneeUserId"`
	Project         string          `json:"projectId"`
	Goal            string          `json:"goalId"`
	BillingCode     string          `json:"billingCode"`
	Labels          []string        `json:"labels"` // names
}

// interactionPayload has the members of a payload that handlers read; the others are only
// shown.
type interactionPayload struct {
	DefaultParent        string                `json:"defaultParentId"`
	Tasks                []SuggestedTask       `json:"tasks"`
	Questions            []interactionQuestion `json:"questions"`
	Options              []interactionValue    `json:"options"`
	MinSelected          int                   `json:"minSelected"`
	MaxSelected          *int                  `json:"maxSelected"`
	RejectRequiresReason bool                  `json:"rejectRequiresReason"`
	Supersede            bool                  `json:"supersedeOnUserComment"`
	Items                []interactionValue    `json:"items"`
	Verdicts             []string              `json:"verdicts"` // allowed ones; empty: all
	RequireReasonOn      []string              `json:"requireReasonOn"`
	Target               *struct {
		Type     string `json:"type"`
		Issue    string `json:"issueId"`
		Key      string `json:"key"`
		Revision string `json:"revisionId"`
	} `json:"target"`
}

type interactionQuestion struct {
	ID            string             `json:"id"`
	SelectionMode string             `json:"selectionMode"`
	Required      bool               `json:"required"`
	AllowOther    bool               `json:"allowOther"`
	Options       []interactionValue `json:"options"`
}

type interactionValue struct {
	ID       string `json:"id"`
	FreeText bool   `json:"freeText"`
}

// CreateInteraction is the payload of interaction.create.
type CreateInteraction struct {
	ID             string          `cbor:"1,keyasint"`
	Issue          string          `cbor:"2,keyasint"`
	Kind           string          `cbor:"3,keyasint"`
	Continuation   string          `cbor:"4,keyasint,omitempty"` // empty: the kind's
	Policy         string          `cbor:"5,keyasint,omitempty"` // empty: anyone
	AddresseeAgent string          `cbor:"6,keyasint,omitempty"`
	AddresseeUser  string          `cbor:"7,keyasint,omitempty"`
	RequestKey     string          `cbor:"8,keyasint,omitempty"`
	SourceComment  string          `cbor:"9,keyasint,omitempty"`
	SourceRun      string          `cbor:"10,keyasint,omitempty"`
	Title          string          `cbor:"11,keyasint,omitempty"`
	Summary        string          `cbor:"12,keyasint,omitempty"`
	Payload        json.RawMessage `cbor:"13,keyasint"`
}

// An Answer answers one question.
type Answer struct {
	Question string   `cbor:"1,keyasint" json:"questionId"`
	Options  []string `cbor:"2,keyasint,omitempty" json:"optionIds"`
	Other    string   `cbor:"3,keyasint,omitempty" json:"otherText,omitempty"`
}

// ResolveInteraction is the payload of interaction.accept, interaction.answer,
// interaction.judge, interaction.reject, interaction.cancel, interaction.withdraw
// and interaction.skip.
type ResolveInteraction struct {
	Issue   string    `cbor:"1,keyasint"`
	ID      string    `cbor:"2,keyasint"`
	Tasks   *[]string `cbor:"3,keyasint,omitempty"` // keys of the tasks to create; nil: all
	Options *[]string `cbor:"4,keyasint,omitempty"` // chosen options of a checkbox confirmation; nil: the proposed ones
	Answers []Answer  `cbor:"5,keyasint,omitempty"`
	Summary string    `cbor:"6,keyasint,omitempty"`
	Reason  string    `cbor:"7,keyasint,omitempty"`
	Judged  []Verdict `cbor:"8,keyasint,omitempty"`
}

const (
	KindInteractionCreate   = "interaction.create"
	KindInteractionAccept   = "interaction.accept"
	KindInteractionAnswer   = "interaction.answer"
	KindInteractionReject   = "interaction.reject"
	KindInteractionCancel   = "interaction.cancel"
	KindInteractionJudge    = "interaction.judge"
	KindInteractionWithdraw = "interaction.withdraw"
	KindInteractionSkip     = "interaction.skip"
)

var interactionKinds = []company.Kind{
	{Name: KindInteractionCreate, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Talk, Do: ledger.Typed(createInteraction)},
	{Name: KindInteractionAccept, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Talk, Do: ledger.Typed(acceptInteraction)},
	{Name: KindInteractionAnswer, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Talk, Do: ledger.Typed(answerInteraction)},
	{Name: KindInteractionReject, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Talk, Do: ledger.Typed(rejectInteraction)},
	{Name: KindInteractionCancel, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Talk, Do: ledger.Typed(cancelInteraction)},
	{Name: KindInteractionJudge, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Talk, Do: ledger.Typed(judgeItems)},
	{Name: KindInteractionWithdraw, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Talk, Do: ledger.Typed(withdrawInteraction)},
	{Name: KindInteractionSkip, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Talk, Do: ledger.Typed(skipInteraction)},
}

func (in Interaction) rowKey() string { return in.Issue + "." + ledger.Order(in.Seq) }

// InteractionsOf returns the interactions of an issue, oldest first.
func InteractionsOf(tx *ledger.Tx, i entity.Issue) []Interaction {
	out := []Interaction{}
	for _, v := range tx.Prefix(Interactions.Key(i.Company, i.ID+".")) {
		out = append(out, core.DecodeRow[Interaction](v))
	}
	return out
}

// InteractionOf returns one interaction of an issue.
func InteractionOf(tx *ledger.Tx, i entity.Issue, id string) (Interaction, bool) {
	for _, in := range InteractionsOf(tx, i) {
		if in.ID == id {
			return in, true
		}
	}
	return Interaction{}, false
}

// pendingInteractions returns the pending interactions of an issue.
func pendingInteractions(tx *ledger.Tx, i entity.Issue) (out []Interaction) {
	for seq := range interactionsPending.IDs(tx, i.Company, i.ID, false) {
		if in, ok := Interactions.Get(tx, i.Company, i.ID+"."+seq); ok {
			out = append(out, in)
		}
	}
	return out
}

// WaitingInteractions returns up to most pending interactions of a company that are not
// addressed to an agent, with their issues.
func WaitingInteractions(tx *ledger.Tx, of ledger.CompanyID, most int) (asked []Interaction, on []entity.Issue) {
	prefix := ledger.Key("c", string(of), "interaction-pending", "")
	for k := range tx.Prefix(prefix) {
		if len(asked) == most {
			break
		}
		issue, seq, _ := strings.Cut(string(k[len(prefix):]), "/")
		in, ok := Interactions.Get(tx, of, issue+"."+seq)
		i, there := entity.IssueOf(tx, of, issue)
		if ok && there && in.AddresseeAgent == "" {
			asked, on = append(asked, in), append(on, i)
		}
	}
	return asked, on
}

// policies are the resolver policies, including older names with the same meaning.
var policies = map[string]string{"anyone": "anyone", "not_creator": "not_creator", "human_only": "human_only",
	"board_or_agents": "anyone", "board_only": "human_only"}

// PolicyAlias returns the older name of a resolver policy.
func PolicyAlias(policy string) string {
	if policy == "human_only" {
		return "board_only"
	}
	return "board_or_agents"
}

// defaultContinuation says, by kind, whom a decision wakes by default.
var defaultContinuation = map[string]string{SuggestTasks: "wake_assignee", AskQuestions: "wake_assignee",
	Confirmation: "none", CheckboxConfirm: "none",
	ItemVerdicts: "wake_assignee"}

func createInteraction(c *ledger.Context, p CreateInteraction) (any, error) {
	i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, company.ErrNoIssue()
	}
	if err := company.MayComment(c, i); err != nil {
		return nil, err
	}
	if p.RequestKey != "" {
		if at, ok := c.Get(InteractionRequestKey(i.Company, i.ID, p.RequestKey)); ok {
			if in, ok := Interactions.Get(c.Tx, i.Company, string(at)); ok {
				return in, nil
			}
		}
	}
	in, err := p.check(c, i)
	if err != nil {
		return nil, err
	}
	list := InteractionsOf(c.Tx, i)
	if len(list) >= MaxInteractions {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "An issue can have at most %d interactions", MaxInteractions)
	}
	if len(pendingInteractions(c.Tx, i)) >= MaxPending {
		return nil, ledger.Refuse(ledger.Unprocessable, nil,
			"An issue can have at most %d interactions that wait", MaxPending)
	}
	if slices.ContainsFunc(list, func(o Interaction) bool { return o.ID == in.ID }) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "Interaction ID is taken")
	}
	in.Seq = uint64(len(list)) + 1
	Interactions.Put(c.Tx, i.Company, in.rowKey(), in)
	if p.RequestKey != "" {
		c.Set(InteractionRequestKey(i.Company, i.ID, p.RequestKey), []byte(in.rowKey()))
	}
	company.Touch(c, i)
	c.Record(ledger.Change{Action: "issue.thread_interaction_created", EntityType: "issue", EntityID: i.ID,
		Details: in.details().Str("continuationPolicy", in.Continuation).Null("addresseeAgentId", string(in.AddresseeAgent)).
			Null("addresseeUserId", string(in.AddresseeUser)).Close()})
	return in, nil
}

func (in Interaction) details() core.Object {
	return core.Object{}.Str("interactionId", in.ID).Str("interactionKind", in.Kind).Str("interactionStatus", in.Status).
		Str("requestedResolverPolicy", in.Requested).Str("effectiveResolverPolicy", in.Effective).
		Str("resolverPolicyProvenance", in.Provenance).Str("effectiveResolverPolicySource", in.EffectiveSource)
}

// check returns the row for p, or refuses it.
func (p CreateInteraction) check(c *ledger.Context, i entity.Issue) (in Interaction, err error) {
	invalid := func(format string, args ...any) (Interaction, error) {
		return in, ledger.Refuse(ledger.Invalid, nil, format, args...)
	}
	continuation := cmp.Or(p.Continuation, defaultContinuation[p.Kind])
	policy, known := policies[cmp.Or(p.Policy, "anyone")]
	switch {
	case !core.IsID(p.ID):
		return invalid("malformed ID of an interaction")
	case defaultContinuation[p.Kind] == "":
		return invalid("Unknown interaction kind: %s", p.Kind)
	case !slices.Contains([]string{"none", "wake_assignee", "wake_assignee_on_accept"}, continuation):
		return invalid("Unknown continuation policy: %s", continuation)
	case !known:
		return invalid("Unknown resolver policy: %s", p.Policy)
	case len(p.Payload) > MaxInteraction || len(p.Title)+len(p.Summary) > entity.MaxDescriptor ||
		len(p.RequestKey) > entity.MaxTitle:
		return in, ledger.Refuse(ledger.TooLarge, nil, "An interaction has at most %d bytes", MaxInteraction)
	case p.AddresseeAgent != "" && !entity.AgentExists(c.Tx, i.Company, p.AddresseeAgent):
		return in, ledger.Refuse(ledger.NotFound, nil, "Agent not found")
	case p.AddresseeAgent != "" && policy == "human_only":
		return in, ledger.Refuse(ledger.Unprocessable, nil, "An agent cannot be asked for what only people may decide")
	}
	if p.SourceComment != "" {
		if _, ok := entity.CommentOf(c.Tx, i.Company, i.ID, p.SourceComment); !ok {
			return in, ledger.Refuse(ledger.NotFound, nil, "Source comment not found")
		}
	}
	if p.SourceRun != "" && !c.Has(entity.RunTable.Key(i.Company, p.SourceRun)) {
		return in, ledger.Refuse(ledger.NotFound, nil, "Source run not found")
	}
	now := core.TimeOf(c.Now)
	in = Interaction{ID: p.ID, Company: i.Company, Issue: i.ID, Kind: p.Kind, Status: "pending",
		Continuation: continuation, Requested: policy, Effective: policy,
		Provenance: "inherited", EffectiveSource: "requested", IdempotencyKey: core.NullText(p.RequestKey),
		SourceComment: core.NullText(p.SourceComment),
		SourceRun:     core.NullText(cmp.Or(p.SourceRun, c.Cmd.Run)), Title: core.NullText(p.Title),
		Summary:        core.NullText(p.Summary),
		AddresseeAgent: core.NullText(p.AddresseeAgent), AddresseeUser: core.NullText(p.AddresseeUser), Payload: p.Payload,
		CreatedAt: now, UpdatedAt: now}
	if p.Policy != "" {
		in.Provenance = "explicit"
	}
	in.CreatedAgent, in.CreatedUser = core.ActedBy(c)
	var body interactionPayload
	if json.Unmarshal(p.Payload, &body) != nil {
		return invalid("The payload of an interaction is not of its kind")
	}
	if err := body.checkTarget(c.Tx, i); err != nil {
		return in, err
	}
	return in, body.check(c, i, p.Kind)
}

// checkTarget refuses a question about a document revision that does not exist: nobody could
// accept it.
func (b interactionPayload) checkTarget(tx *ledger.Tx, i entity.Issue) error {
	t := b.Target
	if t == nil || t.Type != "issue_document" {
		return nil
	}
	if t.Issue != "" && t.Issue != i.ID {
		of, ok := entity.IssueTable.Get(tx, i.Company, t.Issue)
		if !ok {
			return company.ErrNoIssue()
		}
		i = of
	}
	if t.Revision == "" {
		return nil
	}
	d, ok := DocumentOf(tx, i, t.Key)
	if ok {
		_, ok = RevisionOfDocument(tx, d, t.Revision)
	}
	if !ok {
		return ledger.Refuse(ledger.NotFound, nil, "Document revision not found")
	}
	return nil
}

func (b interactionPayload) check(c *ledger.Context, i entity.Issue, kind string) error {
	options := func(list []interactionValue) error {
		ids := map[string]bool{}
		for _, o := range list {
			if o.ID == "" || ids[o.ID] {
				return ledger.Refuse(ledger.Invalid, nil, "Option ids must be unique")
			}
			ids[o.ID] = true
		}
		if len(list) > MaxOptions {
			return ledger.Refuse(ledger.Invalid, nil, "There can be at most %d options", MaxOptions)
		}
		return nil
	}
	switch kind {
	case SuggestTasks:
		return b.checkTasks(c, i)
	case AskQuestions:
		if n := len(b.Questions); n == 0 || n > MaxQuestions {
			return ledger.Refuse(ledger.Invalid, nil, "There are between 1 and %d questions", MaxQuestions)
		}
		ids := map[string]bool{}
		for _, q := range b.Questions {
			if q.ID == "" || ids[q.ID] {
				return ledger.Refuse(ledger.Invalid, nil, "Question ids must be unique")
			}
			ids[q.ID] = true
			if err := options(q.Options); err != nil {
				return err
			}
		}
	case CheckboxConfirm:
		if len(b.Options) == 0 {
			return ledger.Refuse(ledger.Invalid, nil, "A checkbox confirmation needs options")
		}
		if b.MinSelected < 0 || b.MinSelected > len(b.Options) || b.MaxSelected != nil && *b.MaxSelected < b.MinSelected {
			return ledger.Refuse(ledger.Invalid, nil, "minSelected and maxSelected do not fit the options")
		}
		return options(b.Options)
	case ItemVerdicts:
		if len(b.Items) == 0 {
			return ledger.Refuse(ledger.Invalid, nil, "There are between 1 and %d items to judge", MaxOptions)
		}
		for _, v := range slices.Concat(b.Verdicts, b.RequireReasonOn) {
			if !slices.Contains(Verdicts, v) {
				return ledger.Refuse(ledger.Invalid, nil, "Unknown verdict: %s", v)
			}
		}
		return options(b.Items)
	}
	return nil
}

// checkTasks refuses a suggestion that could not be accepted as a whole.
func (b interactionPayload) checkTasks(c *ledger.Context, i entity.Issue) error {
	if n := len(b.Tasks); n == 0 || n > MaxSuggested {
		return ledger.Refuse(ledger.Invalid, nil, "A suggestion has between 1 and %d tasks", MaxSuggested)
	}
	keys := map[string]bool{}
	for _, t := range b.Tasks {
		if t.ClientKey == "" || keys[t.ClientKey] {
			return ledger.Refuse(ledger.Invalid, nil, "clientKey must be unique")
		}
		keys[t.ClientKey] = true
		switch {
		case t.Title == "" || len(t.Title) > entity.MaxTitle || len(t.Description) > entity.MaxText:
			return ledger.Refuse(ledger.Invalid, nil, "A suggested task has a title, and at most %d bytes of text",
				entity.MaxText)
		case t.Parent != "" && t.ParentClientKey != "":
			return ledger.Refuse(ledger.Invalid, nil, "A suggested task has either parentId or parentClientKey")
		}
		if _, err := b.labelIDs(c.Tx, i.Company, t.Labels); err != nil {
			return err
		}
		if err := t.checkNames(c.Tx, i.Company); err != nil {
			return err
		}
	}
	if parent := (SuggestedTask{ClientKey: "defaultParentId", Parent: b.DefaultParent}); parent.Parent != "" {
		if err := parent.checkNames(c.Tx, i.Company); err != nil {
			return err
		}
	}
	if _, err := ordered(b.Tasks); err != nil {
		return err
	}
	for _, t := range b.Tasks {
		if t.ParentClientKey != "" && !keys[t.ParentClientKey] {
			return ledger.Refuse(ledger.Invalid, nil, "parentClientKey names no task of the suggestion: %s", t.ParentClientKey)
		}
	}
	return nil
}

// checkNames refuses a task that refers to something that does not exist, or has an assignee
// who can not get tasks.
func (t SuggestedTask) checkNames(tx *ledger.Tx, of ledger.CompanyID) error {
	err := company.CheckReferences(tx, entity.Issue{Company: of}, entity.Issue{Company: of, Assignee: t.Assignee,
		AssigneeUser: t.AssigneeUser, Project: t.Project, Goal: t.Goal, Parent: t.Parent})
	if r, ok := errors.AsType[*ledger.Refusal](err); ok {
		return &ledger.Refusal{Code: r.Code, ErrCode: r.ErrCode, Detail: r.Detail, Message: "Task " +
			core.Snippet(t.ClientKey, 100) + ": " + r.Message}
	}
	return err
}

// labelIDs finds labels by name, ignoring case.
func (b interactionPayload) labelIDs(tx *ledger.Tx, of ledger.CompanyID, names []string) (ids []string, err error) {
	for _, name := range names {
		n := len(ids)
		for id, l := range entity.Labels.All(tx, of) {
			if strings.EqualFold(l.Name, name) {
				ids = append(ids, id)
				break
			}
		}
		if len(ids) == n {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "The company has no label %q", name)
		}
	}
	return ids, nil
}

// ordered sorts tasks so that parents come before their children.
func ordered(tasks []SuggestedTask) (out []SuggestedTask, err error) {
	placed, known := map[string]bool{}, map[string]bool{}
	for _, t := range tasks {
		known[t.ClientKey] = true
	}
	for len(out) < len(tasks) {
		before := len(out)
		for _, t := range tasks {
			if !placed[t.ClientKey] && (t.ParentClientKey == "" || placed[t.ParentClientKey] || !known[t.ParentClientKey]) {
				placed[t.ClientKey] = true
				out = append(out, t)
			}
		}
		if len(out) == before {
			return nil, ledger.Refuse(ledger.Invalid, nil, "Suggested tasks form a cycle of parents")
		}
	}
	return out, nil
}
