package company

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/ledger"
)

// An Interaction is something that is asked on an issue and that somebody
// decides: tasks that are suggested, questions, a confirmation, a choice.
type Interaction struct {
	ID              string          `cbor:"1,keyasint" json:"id"`
	Company         string          `cbor:"2,keyasint" json:"companyId"`
	Issue           string          `cbor:"3,keyasint" json:"issueId"`
	Kind            string          `cbor:"4,keyasint" json:"kind"`
	Status          string          `cbor:"5,keyasint" json:"status"` // pending, accepted, rejected, answered, cancelled or expired
	Continuation    string          `cbor:"6,keyasint" json:"continuationPolicy"`
	Requested       string          `cbor:"7,keyasint" json:"requestedResolverPolicy"`
	Effective       string          `cbor:"8,keyasint" json:"effectiveResolverPolicy"`
	Provenance      string          `cbor:"9,keyasint" json:"resolverPolicyProvenance"` // inherited or explicit
	EffectiveSource string          `cbor:"10,keyasint" json:"effectiveResolverPolicySource"`
	IdempotencyKey  NullText        `cbor:"11,keyasint,omitempty" json:"idempotencyKey"`
	OriginComments  []string        `cbor:"12,keyasint,omitempty" json:"originCommentIds"`
	SourceComment   NullText        `cbor:"13,keyasint,omitempty" json:"sourceCommentId"`
	SourceIdentity  NullText        `cbor:"-" json:"sourceIdentityContextId"`
	SourceRun       NullText        `cbor:"14,keyasint,omitempty" json:"sourceRunId"`
	Title           NullText        `cbor:"15,keyasint,omitempty" json:"title"`
	Summary         NullText        `cbor:"16,keyasint,omitempty" json:"summary"`
	CreatedAgent    NullText        `cbor:"17,keyasint,omitempty" json:"createdByAgentId"`
	AddresseeAgent  NullText        `cbor:"18,keyasint,omitempty" json:"addresseeAgentId"`
	AddresseeUser   NullText        `cbor:"19,keyasint,omitempty" json:"addresseeUserId"`
	CreatedUser     NullText        `cbor:"20,keyasint,omitempty" json:"createdByUserId"`
	ResolvedAgent   NullText        `cbor:"21,keyasint,omitempty" json:"resolvedByAgentId"`
	ResolvedRun     NullText        `cbor:"22,keyasint,omitempty" json:"resolvedByRunId"`
	ResolvedUser    NullText        `cbor:"23,keyasint,omitempty" json:"resolvedByUserId"`
	Payload         json.RawMessage `cbor:"24,keyasint" json:"payload"`
	Result          json.RawMessage `cbor:"25,keyasint,omitempty" json:"result"`
	ResolvedAt      Time            `cbor:"26,keyasint,omitempty" json:"resolvedAt"`
	CreatedAt       Time            `cbor:"27,keyasint" json:"createdAt"`
	UpdatedAt       Time            `cbor:"28,keyasint" json:"updatedAt"`
	Seq             uint64          `cbor:"29,keyasint" json:"-"` // among the issue's, from 1
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

// Interactions lie together by issue, oldest first; one that is pending has a
// row of its own, as has the key of a request:
//
//	interaction/<issue>.<number>
//	interaction-pending/<issue>/<number>
//	interaction-request/<hash of issue and key>   <issue>.<number>
var (
	interactions        = ledger.NewTable[Interaction]("interaction")
	interactionsPending = ledger.NewIndex("interaction-pending")
)

func interactionRequestKey(company, issue, request string) []byte {
	return ledger.Key("c", company, "interaction-request", textKey(issue+"/"+request))
}

const (
	// MaxInteractions bounds the interactions of one issue, MaxPending those that
	// wait: lists show all, and a comment may end all that wait.
	MaxInteractions = 500
	MaxPending      = 50
	// MaxInteraction bounds the payload and the result of one, in bytes.
	MaxInteraction = 64 << 10
	// MaxSuggested bounds the tasks of one suggestion: accepting it makes them
	// all. MaxQuestions and MaxOptions bound the other kinds.
	MaxSuggested = 50
	MaxQuestions = 50
	MaxOptions   = 100
)

// A SuggestedTask is one task of a suggestion.
type SuggestedTask struct {
	ClientKey       string   `json:"clientKey"`
	ParentClientKey string   `json:"parentClientKey"`
	Parent          string   `json:"parentId"`
	Title           string   `json:"title"`
	Description     string   `json:"description"`
	Priority        Priority `json:"priority"`
	WorkMode        string   `json:"workMode"`
	Assignee        string   `json:"assigneeAgentId"`
	AssigneeUser    string   `json:"assigneeUserId"`
	Project         string   `json:"projectId"`
	Goal            string   `json:"goalId"`
	BillingCode     string   `json:"billingCode"`
	Labels          []string `json:"labels"` // names
}

// interactionPayload is what handlers read of a payload; the rest is for whoever
// shows it.
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
	Verdicts             []string              `json:"verdicts"` // allowed; none named: all
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
	Tasks   *[]string `cbor:"3,keyasint,omitempty"` // keys of the tasks to make; nil is all
	Options *[]string `cbor:"4,keyasint,omitempty"` // chosen of a checkbox confirmation; nil is what it proposes
	Answers []Answer  `cbor:"5,keyasint,omitempty"`
	Summary string    `cbor:"6,keyasint,omitempty"`
	Reason  string    `cbor:"7,keyasint,omitempty"`
	Judged  []Verdict `cbor:"8,keyasint,omitempty"`
}

func registerInteractions(m ledger.Mux) {
	ledger.Handle(m, "interaction.create", createInteraction)
	ledger.Handle(m, "interaction.accept", acceptInteraction)
	ledger.Handle(m, "interaction.answer", answerInteraction)
	ledger.Handle(m, "interaction.reject", rejectInteraction)
	ledger.Handle(m, "interaction.cancel", cancelInteraction)
	ledger.Handle(m, "interaction.judge", judgeItems)
	ledger.Handle(m, "interaction.withdraw", withdrawInteraction)
	ledger.Handle(m, "interaction.skip", skipInteraction)
}

func (in Interaction) rowKey() string { return in.Issue + "." + ledger.Order(in.Seq) }

// InteractionsOf returns the interactions of an issue, oldest first.
func InteractionsOf(tx *ledger.Tx, i Issue) []Interaction {
	out := []Interaction{}
	for _, v := range tx.Prefix(interactions.Key(i.Company, i.ID+".")) {
		out = append(out, decodeRow[Interaction](v))
	}
	return out
}

// InteractionOf returns one interaction of an issue.
func InteractionOf(tx *ledger.Tx, i Issue, id string) (Interaction, bool) {
	for _, in := range InteractionsOf(tx, i) {
		if in.ID == id {
			return in, true
		}
	}
	return Interaction{}, false
}

// pendingInteractions returns the interactions of an issue that wait.
func pendingInteractions(tx *ledger.Tx, i Issue) (out []Interaction) {
	for seq := range interactionsPending.IDs(tx, i.Company, i.ID, false) {
		if in, ok := interactions.Get(tx, i.Company, i.ID+"."+seq); ok {
			out = append(out, in)
		}
	}
	return out
}

// policies are the resolver policies, with the older names that mean the same.
var policies = map[string]string{"anyone": "anyone", "not_creator": "not_creator", "human_only": "human_only", "board_or_agents": "anyone", "board_only": "human_only"}

// PolicyAlias is the older name of a resolver policy.
func PolicyAlias(policy string) string {
	if policy == "human_only" {
		return "board_only"
	}
	return "board_or_agents"
}

// defaultContinuation says, by kind, who is woken when nothing else is said.
var defaultContinuation = map[string]string{SuggestTasks: "wake_assignee", AskQuestions: "wake_assignee", Confirmation: "none", CheckboxConfirm: "none",
	ItemVerdicts: "wake_assignee"}

func createInteraction(c *ledger.Context, p CreateInteraction) (any, error) {
	i, ok := issues.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, errNoIssue()
	}
	if err := mayComment(c, i); err != nil {
		return nil, err
	}
	if p.RequestKey != "" {
		if at, ok := c.Get(interactionRequestKey(i.Company, i.ID, p.RequestKey)); ok {
			if in, ok := interactions.Get(c.Tx, i.Company, string(at)); ok {
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
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "An issue can have at most %d interactions that wait", MaxPending)
	}
	if slices.ContainsFunc(list, func(o Interaction) bool { return o.ID == in.ID }) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "Interaction ID is taken")
	}
	in.Seq = uint64(len(list)) + 1
	interactions.Put(c.Tx, i.Company, in.rowKey(), in)
	interactionsPending.Add(c.Tx, i.Company, i.ID, ledger.Order(in.Seq))
	if p.RequestKey != "" {
		c.Set(interactionRequestKey(i.Company, i.ID, p.RequestKey), []byte(in.rowKey()))
	}
	touch(c, i)
	c.Record(ledger.Change{Action: "issue.thread_interaction_created", EntityType: "issue", EntityID: i.ID,
		Details: in.details().str("continuationPolicy", in.Continuation).null("addresseeAgentId", string(in.AddresseeAgent)).null("addresseeUserId", string(in.AddresseeUser)).close()})
	return in, nil
}

// touch notes that something on an issue changed.
func touch(c *ledger.Context, i Issue) {
	next := i
	next.UpdatedAt = TimeOf(c.Now)
	storeIssue(c.Tx, i, next)
}

func (in Interaction) details() jsonObject {
	return jsonObject{}.str("interactionId", in.ID).str("interactionKind", in.Kind).str("interactionStatus", in.Status).
		str("requestedResolverPolicy", in.Requested).str("effectiveResolverPolicy", in.Effective).
		str("resolverPolicyProvenance", in.Provenance).str("effectiveResolverPolicySource", in.EffectiveSource)
}

// check makes the row that p asks for, or refuses it.
func (p CreateInteraction) check(c *ledger.Context, i Issue) (in Interaction, err error) {
	invalid := func(format string, args ...any) (Interaction, error) {
		return in, ledger.Refuse(ledger.Invalid, nil, format, args...)
	}
	continuation := orText(p.Continuation, defaultContinuation[p.Kind])
	policy, known := policies[orText(p.Policy, "anyone")]
	switch {
	case !isID(p.ID):
		return invalid("malformed ID of an interaction")
	case defaultContinuation[p.Kind] == "":
		return invalid("Unknown interaction kind: %s", p.Kind)
	case !slices.Contains([]string{"none", "wake_assignee", "wake_assignee_on_accept"}, continuation):
		return invalid("Unknown continuation policy: %s", continuation)
	case !known:
		return invalid("Unknown resolver policy: %s", p.Policy)
	case len(p.Payload) > MaxInteraction || len(p.Title)+len(p.Summary) > MaxDescriptor || len(p.RequestKey) > MaxTitle:
		return in, ledger.Refuse(ledger.TooLarge, nil, "An interaction has at most %d bytes", MaxInteraction)
	case p.AddresseeAgent != "" && !agentExists(c.Tx, i.Company, p.AddresseeAgent):
		return in, ledger.Refuse(ledger.NotFound, nil, "Agent not found")
	case p.AddresseeAgent != "" && policy == "human_only":
		return in, ledger.Refuse(ledger.Unprocessable, nil, "An agent cannot be asked for what only people may decide")
	}
	if p.SourceComment != "" {
		if _, ok := CommentOf(c.Tx, i.Company, i.ID, p.SourceComment); !ok {
			return in, ledger.Refuse(ledger.NotFound, nil, "Source comment not found")
		}
	}
	if p.SourceRun != "" && !c.Has(runs.Key(i.Company, p.SourceRun)) {
		return in, ledger.Refuse(ledger.NotFound, nil, "Source run not found")
	}
	now := TimeOf(c.Now)
	in = Interaction{ID: p.ID, Company: i.Company, Issue: i.ID, Kind: p.Kind, Status: "pending", Continuation: continuation, Requested: policy, Effective: policy,
		Provenance: "inherited", EffectiveSource: "requested", IdempotencyKey: NullText(p.RequestKey), SourceComment: NullText(p.SourceComment),
		SourceRun: NullText(orText(p.SourceRun, c.Cmd.Run)), Title: NullText(p.Title), Summary: NullText(p.Summary),
		AddresseeAgent: NullText(p.AddresseeAgent), AddresseeUser: NullText(p.AddresseeUser), Payload: p.Payload, CreatedAt: now, UpdatedAt: now}
	if p.Policy != "" {
		in.Provenance = "explicit"
	}
	in.CreatedAgent, in.CreatedUser = actedBy(c)
	var body interactionPayload
	if json.Unmarshal(p.Payload, &body) != nil {
		return invalid("The payload of an interaction is not of its kind")
	}
	return in, body.check(c, i, p.Kind)
}

func (b interactionPayload) check(c *ledger.Context, i Issue, kind string) error {
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
func (b interactionPayload) checkTasks(c *ledger.Context, i Issue) error {
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
		case t.Title == "" || len(t.Title) > MaxTitle || len(t.Description) > MaxText:
			return ledger.Refuse(ledger.Invalid, nil, "A suggested task has a title, and at most %d bytes of text", MaxText)
		case t.Parent != "" && t.ParentClientKey != "":
			return ledger.Refuse(ledger.Invalid, nil, "A suggested task has either parentId or parentClientKey")
		}
		if _, err := b.labelIDs(c.Tx, i.Company, t.Labels); err != nil {
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

// labelIDs finds labels by their names, whatever their case.
func (b interactionPayload) labelIDs(tx *ledger.Tx, company string, names []string) (ids []string, err error) {
	for _, name := range names {
		n := len(ids)
		for id, l := range labels.All(tx, company) {
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

// ordered returns tasks with every parent before its children.
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
			return nil, ledger.Refuse(ledger.Invalid, nil, "Suggested tasks are each other's parents")
		}
	}
	return out, nil
}

// toResolve returns an interaction that the actor may decide now.
func toResolve(c *ledger.Context, p ResolveInteraction) (i Issue, in Interaction, body interactionPayload, err error) {
	i, ok := issues.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return i, in, body, errNoIssue()
	}
	if in, ok = InteractionOf(c.Tx, i, p.ID); !ok {
		return i, in, body, ledger.Refuse(ledger.NotFound, nil, "Interaction not found")
	}
	if err := mayComment(c, i); err != nil {
		return i, in, body, err
	}
	if err := in.mayResolve(c); err != nil {
		return i, in, body, err
	}
	if in.Status != "pending" {
		return i, in, body, ledger.Refuse(ledger.Conflict, jsonObject{}.str("interactionId", in.ID).str("status", in.Status).close(), "Interaction has already been resolved")
	}
	if json.Unmarshal(in.Payload, &body) != nil {
		return i, in, body, ledger.Refuse(ledger.Unprocessable, nil, "The payload of the interaction is not of its kind")
	}
	return i, in, body, nil
}

// mayResolve lets those decide whom the policy names: anybody of the company,
// all but who asked, or people; and of agents only the one that is asked, if one is.
func (in Interaction) mayResolve(c *ledger.Context) error {
	agent := isAgent(c)
	refuse := func(text string) error {
		return ledger.Refuse(ledger.Forbidden, jsonObject{}.str("interactionId", in.ID).str("effectiveResolverPolicy", in.Effective).close(), "%s", text)
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

// byActor reports whether the actor is who asked.
func (in Interaction) byActor(c *ledger.Context) bool {
	agent, user := actedBy(c)
	return agent != "" && agent == in.CreatedAgent || user != "" && user == in.CreatedUser
}

func wrongKind(in Interaction, verb string) error {
	return ledger.Refuse(ledger.Unprocessable, jsonObject{}.str("kind", in.Kind).close(), "An interaction of kind %s cannot be %s", in.Kind, verb)
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
		return resolve(c, i, in, "accepted", jsonObject{}.int("version", 1).str("outcome", "accepted").close(), nil)
	case CheckboxConfirm:
		chosen, err := body.chosen(in, p)
		if err != nil {
			return nil, err
		}
		return resolve(c, i, in, "accepted", jsonObject{}.int("version", 1).str("outcome", "accepted").list("selectedOptionIds", chosen).close(),
			func(o jsonObject) jsonObject { return o.int("selectedOptionCount", int64(len(chosen))) })
	}
	return nil, wrongKind(in, "accepted")
}

// staleTarget reports whether the document that a confirmation is about has
// another latest revision now.
func (b interactionPayload) staleTarget(c *ledger.Context, i Issue) (latest string, stale bool) {
	t := b.Target
	if t == nil || t.Type != "issue_document" {
		return "", false
	}
	of := i
	if t.Issue != "" && t.Issue != i.ID {
		of, _ = issues.Get(c.Tx, i.Company, t.Issue)
	}
	d, ok := DocumentOf(c.Tx, of, t.Key)
	return d.Latest, !ok || d.Latest != t.Revision
}

// chosen returns the options that were chosen, if they are as many as asked for.
func (b interactionPayload) chosen(in Interaction, p ResolveInteraction) ([]string, error) {
	var chosen []string
	if p.Options != nil {
		chosen = sortedSet(*p.Options)
	} else {
		var defaults struct {
			IDs []string `json:"defaultSelectedOptionIds"`
		}
		if err := json.Unmarshal(in.Payload, &defaults); err == nil {
			chosen = sortedSet(defaults.IDs)
		}
	}
	for _, id := range chosen {
		if !slices.ContainsFunc(b.Options, func(o interactionValue) bool { return o.ID == id }) {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "Unknown option: %s", id)
		}
	}
	if len(chosen) < b.MinSelected || b.MaxSelected != nil && len(chosen) > *b.MaxSelected {
		return nil, ledger.Refuse(ledger.Unprocessable, jsonObject{}.int("minSelected", int64(b.MinSelected)).int("selected", int64(len(chosen))).close(),
			"%d options are chosen, which is not as many as asked for", len(chosen))
	}
	return chosen, nil
}

// acceptTasks makes the tasks of a suggestion, all of those that are chosen or none.
func acceptTasks(c *ledger.Context, i Issue, in Interaction, body interactionPayload, p ResolveInteraction) (any, error) {
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
	made := map[string]Issue{}
	for _, t := range tasks {
		if !want[t.ClientKey] {
			skipped = append(skipped, t.ClientKey)
			continue
		}
		parent := orText(t.Parent, orText(body.DefaultParent, i.ID))
		if t.ParentClientKey != "" {
			above, ok := made[t.ParentClientKey]
			if !ok {
				return nil, ledger.Refuse(ledger.Unprocessable, nil, "Task %s is chosen without its parent %s", t.ClientKey, t.ParentClientKey)
			}
			parent = above.ID
		}
		ids, err := body.labelIDs(c.Tx, i.Company, t.Labels)
		if err != nil {
			return nil, err
		}
		v, err := createIssue(c, CreateIssue{ID: derivedID("suggested", in.ID, t.ClientKey), Title: t.Title, Description: t.Description, Priority: t.Priority,
			WorkMode: t.WorkMode, Assignee: t.Assignee, AssigneeUser: t.AssigneeUser, Project: t.Project, Goal: t.Goal, BillingCode: t.BillingCode,
			Labels: ids, Parent: parent, AllowDuplicate: true, many: true})
		if err != nil {
			return nil, err
		}
		task := v.(IssueResult).Issue
		made[t.ClientKey] = task
		above, _ := issues.Get(c.Tx, i.Company, task.Parent)
		created = append(created, jsonObject{}.str("clientKey", t.ClientKey).str("issueId", task.ID).str("identifier", task.Identifier).str("title", task.Title).
			str("parentIssueId", above.ID).str("parentIdentifier", above.Identifier).close())
	}
	o := jsonObject{}.int("version", 1).raw("createdTasks", formatList(created))
	if len(skipped) > 0 {
		o = o.list("skippedClientKeys", skipped)
	}
	i, _ = issues.Get(c.Tx, i.Company, i.ID)
	return resolve(c, i, in, "accepted", o.close(), func(o jsonObject) jsonObject {
		return o.int("createdTaskCount", int64(len(created))).int("skippedTaskCount", int64(len(skipped)))
	})
}

// formatList joins JSON values to an array.
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
		o := jsonObject{}.str("questionId", a.Question).list("optionIds", a.Options)
		if a.Other != "" {
			o = o.str("otherText", a.Other)
		}
		rows = append(rows, o.close())
	}
	for _, q := range body.Questions {
		if q.Required && !given[q.ID] {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "Question %s must be answered", q.ID)
		}
	}
	result := jsonObject{}.int("version", 1).raw("answers", formatList(rows)).null("summaryMarkdown", p.Summary).close()
	return resolve(c, i, in, "answered", result, func(o jsonObject) jsonObject { return o.int("answeredQuestionCount", int64(len(rows))) })
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
		return ledger.Refuse(ledger.Unprocessable, nil, "Question %s takes no text of one's own", a.Question)
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
	o := jsonObject{}.int("version", 1)
	if in.Kind == SuggestTasks {
		o = o.null("rejectionReason", p.Reason)
	} else {
		o = o.str("outcome", "rejected").null("reason", p.Reason)
	}
	return resolve(c, i, in, "rejected", o.close(), func(o jsonObject) jsonObject { return o.null("rejectionReason", snippet(p.Reason, 500)) })
}

// resolve ends an interaction and wakes whom that concerns.
func resolve(c *ledger.Context, i Issue, in Interaction, status string, result json.RawMessage, more func(jsonObject) jsonObject) (any, error) {
	if len(result) > MaxInteraction {
		return nil, ledger.Refuse(ledger.TooLarge, nil, "The result of an interaction has at most %d bytes", MaxInteraction)
	}
	now := TimeOf(c.Now)
	in.Status, in.Result, in.ResolvedAt, in.UpdatedAt = status, result, now, now
	in.ResolvedAgent, in.ResolvedUser = actedBy(c)
	in.ResolvedRun = NullText(c.Cmd.Run)
	interactions.Put(c.Tx, i.Company, in.rowKey(), in)
	interactionsPending.Remove(c.Tx, i.Company, i.ID, ledger.Order(in.Seq))
	touch(c, i)
	reason := "allow_board_actor"
	if isAgent(c) {
		reason = "allow_agent_run"
	}
	o := in.details().str("resolutionActorKind", c.Cmd.Actor.Type).str("resolverAuthorizationReason", reason)
	if more != nil {
		o = more(o)
	}
	recordLive(c, ledger.Change{Action: "issue.thread_interaction_" + status, EntityType: "issue", EntityID: i.ID, Details: o.close()})
	return in, wakeForInteraction(c, i, in)
}

// wakeForInteraction wakes the issue's assignee and the agent that asked, if
// the interaction says so, with what became of it. Nobody is woken by itself.
func wakeForInteraction(c *ledger.Context, i Issue, in Interaction) error {
	if in.Status == "cancelled" && !in.skipped() || in.Continuation == "none" ||
		in.Continuation == "wake_assignee_on_accept" && in.Status != "accepted" && in.Status != "answered" {
		return nil
	}
	at := ledger.Order(c.Height)
	for _, agent := range sortedSet([]string{i.Assignee, string(in.CreatedAgent)}) {
		if agent == "" || isAgent(c) && agent == c.Cmd.Actor.ID {
			continue
		}
		a, ok := wakeable(c.Tx, i.Company, agent)
		if !ok {
			continue
		}
		if _, err := wake(c, a, Wake{Agent: agent, Source: WakeAutomation, TriggerDetail: "system", Reason: "interaction_" + in.Status, Issue: i.ID,
			From: "issue.interaction", Responsible: i.ResponsibleUser, Interaction: in.ID, InteractionKind: in.Kind, InteractionStatus: in.Status,
			Payload: jsonObject{}.str("issueId", i.ID).str("mutation", "interaction").str("interactionId", in.ID).str("interactionKind", in.Kind).
				str("interactionStatus", in.Status).close(),
			Wakeup: derivedID("interaction-wake", in.ID, agent, at), Run: derivedID("interaction-run", in.ID, agent, at)}); err != nil {
			return err
		}
	}
	return nil
}

// supersede ends the interactions of i that a person's comment makes moot.
func supersede(c *ledger.Context, i Issue, cm Comment) {
	if !isBoard(c) {
		return
	}
	for _, in := range pendingInteractions(c.Tx, i) {
		var body struct {
			Supersede bool `json:"supersedeOnUserComment"`
		}
		if json.Unmarshal(in.Payload, &body) != nil || !body.Supersede {
			continue
		}
		now := TimeOf(c.Now)
		in.Status, in.ResolvedAt, in.UpdatedAt = "expired", now, now
		in.Result = jsonObject{}.int("version", 1).str("outcome", "superseded_by_comment").str("commentId", cm.ID).close()
		in.ResolvedAgent, in.ResolvedUser = actedBy(c)
		interactions.Put(c.Tx, i.Company, in.rowKey(), in)
		interactionsPending.Remove(c.Tx, i.Company, i.ID, ledger.Order(in.Seq))
		recordLive(c, ledger.Change{Action: "issue.thread_interaction_expired", EntityType: "issue", EntityID: i.ID,
			Details: in.details().str("outcome", "superseded_by_comment").str("commentId", cm.ID).close()})
	}
}
