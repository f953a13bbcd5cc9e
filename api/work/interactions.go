package work

import (
	"encoding/json"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/ledger"
)

// interactionBody is the body that creates an interaction on an issue. P is the payload
// of its kind.
type interactionBody[P any] struct {
	Kind           string          `json:"kind" enum:"suggest_tasks,ask_user_questions,request_confirmation,request_checkbox_confirmation,request_item_verdicts"`
	Policy         string          `json:"resolverPolicy,omitempty" enum:"anyone,not_creator,human_only,board_or_agents,board_only"`
	AddresseeAgent api.Opt[string] `json:"addresseeAgentId" format:"uuid"`
	AddresseeUser  api.Opt[string] `json:"addresseeUserId" minLength:"1" maxLength:"200"`
	IdempotencyKey api.Opt[string] `json:"idempotencyKey" maxLength:"255"`
	SourceComment  api.Opt[string] `json:"sourceCommentId" format:"uuid"`
	SourceRun      api.Opt[string] `json:"sourceRunId" format:"uuid"`
	Title          api.Opt[string] `json:"title" maxLength:"240"`
	Summary        api.Opt[string] `json:"summary" maxLength:"1000"`
	Continuation   string          `json:"continuationPolicy,omitempty" enum:"none,wake_assignee,wake_assignee_on_accept"`
	Payload        P               `json:"payload"`
}

type tasksPayload struct {
	Version       int             `json:"version" minimum:"1" maximum:"1"`
	DefaultParent api.Opt[string] `json:"defaultParentId" format:"uuid"`
	Tasks         []suggestedTask `json:"tasks" minItems:"1" maxItems:"50"`
}

type suggestedTask struct {
	ClientKey       string          `json:"clientKey" minLength:"1" maxLength:"120"`
	ParentClientKey api.Opt[string] `json:"parentClientKey" minLength:"1" maxLength:"120"`
	Parent          api.Opt[string] `json:"parentId" format:"uuid"`
	Title           string          `json:"title" minLength:"1" maxLength:"240"`
	Description     api.Opt[string] `json:"description" maxLength:"50000"`
	Priority        api.Opt[string] `json:"priority" enum:"critical,high,medium,low"`
	WorkMode        api.Opt[string] `json:"workMode" enum:"standard,ask,planning,skill_test"`
	Assignee        api.Opt[string] `json:"assigneeAgentId" format:"uuid"`
	AssigneeUser    api.Opt[string] `json:"assigneeUserId" minLength:"1" maxLength:"200"`
	Project         api.Opt[string] `json:"projectId" format:"uuid"`
	Goal            api.Opt[string] `json:"goalId" format:"uuid"`
	BillingCode     api.Opt[string] `json:"billingCode" maxLength:"120"`
	Labels          []string        `json:"labels,omitempty" minLength:"1" maxLength:"48" maxItems:"50"`
	Hidden          bool            `json:"hiddenInPreview,omitempty"`
}

type questionsPayload struct {
	Version   int             `json:"version" minimum:"1" maximum:"1"`
	Title     api.Opt[string] `json:"title" maxLength:"240"`
	Submit    api.Opt[string] `json:"submitLabel" maxLength:"120"`
	Supersede *bool           `json:"supersedeOnUserComment,omitempty"`
	Questions []question      `json:"questions" minItems:"1" maxItems:"50"`
}

type question struct {
	ID            string           `json:"id" minLength:"1" maxLength:"160"`
	Prompt        string           `json:"prompt" minLength:"1" maxLength:"4000"`
	Help          api.Opt[string]  `json:"helpText" maxLength:"4000"`
	SelectionMode string           `json:"selectionMode" enum:"single,multi"`
	Required      bool             `json:"required,omitempty"`
	AllowOther    bool             `json:"allowOther,omitempty"`
	Options       []questionOption `json:"options" maxItems:"100"`
}

type questionOption struct {
	ID          string          `json:"id" minLength:"1" maxLength:"160"`
	Label       string          `json:"label" minLength:"1" maxLength:"1000"`
	Description api.Opt[string] `json:"description" maxLength:"4000"`
	FreeText    bool            `json:"freeText,omitempty"`
}

// confirmation holds the members that both kinds of confirmations have.
type confirmation struct {
	Version        int             `json:"version" minimum:"1" maximum:"1"`
	Prompt         string          `json:"prompt" minLength:"1" maxLength:"1000"`
	Accept         api.Opt[string] `json:"acceptLabel" minLength:"1" maxLength:"80"`
	Reject         api.Opt[string] `json:"rejectLabel" minLength:"1" maxLength:"80"`
	RequiresReason bool            `json:"rejectRequiresReason,omitempty"`
	ReasonLabel    api.Opt[string] `json:"rejectReasonLabel" minLength:"1" maxLength:"160"`
	AllowReason    *bool           `json:"allowDeclineReason,omitempty"`
	Placeholder    api.Opt[string] `json:"declineReasonPlaceholder" minLength:"1" maxLength:"240"`
	Details        api.Opt[string] `json:"detailsMarkdown" maxLength:"20000"`
	Supersede      *bool           `json:"supersedeOnUserComment,omitempty"`
	Target         *target         `json:"target,omitempty"`
}

type confirmationPayload struct {
	confirmation
}

type checkboxPayload struct {
	confirmation
	Options     []checkboxOption `json:"options" minItems:"1" maxItems:"100"`
	Defaults    []string         `json:"defaultSelectedOptionIds,omitempty" minLength:"1" maxLength:"120" maxItems:"100"`
	MinSelected int              `json:"minSelected,omitempty" minimum:"0"`
	MaxSelected *int             `json:"maxSelected,omitempty" minimum:"0"`
}

type checkboxOption struct {
	ID          string          `json:"id" minLength:"1" maxLength:"120"`
	Label       string          `json:"label" minLength:"1" maxLength:"120"`
	Description api.Opt[string] `json:"description" maxLength:"500"`
}

// verdictsPayload asks for a verdict on each of several items.
type verdictsPayload struct {
	Version         int             `json:"version" minimum:"1" maximum:"1"`
	Prompt          string          `json:"prompt" minLength:"1" maxLength:"1000"`
	Details         api.Opt[string] `json:"detailsMarkdown" maxLength:"20000"`
	Items           []verdictItem   `json:"items" minItems:"1" maxItems:"100"`
	Verdicts        []string        `json:"verdicts,omitempty" enum:"approve,reject,defer" maxItems:"3"`
	RequireReasonOn []string        `json:"requireReasonOn,omitempty" enum:"approve,reject,defer" maxItems:"3"`
	ReasonLabel     api.Opt[string] `json:"reasonLabel" minLength:"1" maxLength:"160"`
	BulkApprove     *bool           `json:"allowBulkApprove,omitempty"`
	Supersede       *bool           `json:"supersedeOnUserComment,omitempty"`
	Target          *target         `json:"target,omitempty"`
}

type verdictItem struct {
	ID          string          `json:"id" minLength:"1" maxLength:"120"`
	Label       string          `json:"label" minLength:"1" maxLength:"120"`
	Description api.Opt[string] `json:"description" maxLength:"500"`
	Preview     api.Opt[string] `json:"previewMarkdown" maxLength:"20000"`
	Href        api.Opt[string] `json:"href" minLength:"1" maxLength:"2000"`
	Attachment  api.Opt[string] `json:"attachmentId" format:"uuid"`
}

// target is the subject of a confirmation: a revision of a document, or something else
// with a key.
type target struct {
	Type     string          `json:"type" enum:"issue_document,custom"`
	Label    api.Opt[string] `json:"label" minLength:"1" maxLength:"120"`
	Href     api.Opt[string] `json:"href" minLength:"1" maxLength:"2000"`
	Issue    api.Opt[string] `json:"issueId" format:"uuid"`
	Document api.Opt[string] `json:"documentId" format:"uuid"`
	Key      string          `json:"key" minLength:"1" maxLength:"120"`
	Revision api.Opt[string] `json:"revisionId" minLength:"1" maxLength:"255"`
	Number   *int            `json:"revisionNumber,omitempty" minimum:"1"`
}

// The bodies that decide an interaction.
type (
	acceptInteraction struct {
		Tasks    *[]string `json:"selectedClientKeys,omitempty" minLength:"1" maxLength:"120" maxItems:"50"`
		Options  *[]string `json:"selectedOptionIds,omitempty" minLength:"1" maxLength:"120" maxItems:"100"`
		Remember bool      `json:"rememberAction,omitempty"`
	}
	answerInteraction struct {
		Answers []answerRow     `json:"answers" maxItems:"50"`
		Summary api.Opt[string] `json:"summaryMarkdown" maxLength:"20000"`
	}
	answerRow struct {
		Question string          `json:"questionId" minLength:"1" maxLength:"160"`
		Options  []string        `json:"optionIds" minLength:"1" maxLength:"160" maxItems:"100"`
		Other    api.Opt[string] `json:"otherText" maxLength:"4000"`
	}
	judgeItems struct {
		Verdicts []verdictRow `json:"verdicts" minItems:"1" maxItems:"100"`
	}
	verdictRow struct {
		Item    string          `json:"id" minLength:"1" maxLength:"120"`
		Verdict string          `json:"verdict" enum:"approve,reject,defer"`
		Reason  api.Opt[string] `json:"reason" maxLength:"4000"`
	}
	endInteraction struct {
		Reason string `json:"reason,omitempty" maxLength:"4000"`
	}
)

// chosen distinguishes an empty choice from none.
func chosen(list *[]string) *[]string {
	if list != nil && *list == nil {
		return &[]string{}
	}
	return list
}

// A shownInteraction is an interaction with the former names of its policies as well.
type shownInteraction struct {
	paper.Interaction
	Policy  string        `json:"resolverPolicy"`
	Aliases policyAliases `json:"legacyResolverPolicyAliases"`
}

type policyAliases struct {
	Requested string `json:"requested"`
	Effective string `json:"effective"`
}

func shown(in paper.Interaction) shownInteraction {
	if in.OriginComments == nil {
		in.OriginComments = []string{}
	}
	return shownInteraction{in, in.Effective, policyAliases{paper.PolicyAlias(in.Requested),
		paper.PolicyAlias(in.Effective)}}
}

func InteractionRoutes() []api.Route {
	const base = "/api/issues/{id}/interactions"
	return []api.Route{
		api.Show(api.Route{Path: base, Tag: "issues", Summary: "List what was asked on an issue"}, api.FindIssue,
			interactionsOf),
		{Method: "POST", Path: base, Tag: "issues", Summary: "Suggest tasks, ask, or request a confirmation",
			In: interactionBody[json.RawMessage]{}, Out: shownInteraction{}, Status: 201, Handle: newInteraction},
		{Method: "POST", Path: base + "/{interactionId}/accept", Tag: "issues", Summary: "Accept what was suggested",
			In: acceptInteraction{}, Out: shownInteraction{},
			Handle: decide(paper.KindInteractionAccept, func(b acceptInteraction, p *paper.ResolveInteraction) {
				p.Tasks, p.Options = chosen(b.Tasks), chosen(b.Options)
			})},
		{Method: "POST", Path: base + "/{interactionId}/respond", Tag: "issues", Summary: "Answer questions",
			In: answerInteraction{}, Out: shownInteraction{},
			Handle: decide(paper.KindInteractionAnswer, func(b answerInteraction, p *paper.ResolveInteraction) {
				p.Summary = b.Summary.Or("")
				for _, a := range b.Answers {
					p.Answers = append(p.Answers, paper.Answer{Question: a.Question, Options: a.Options, Other: a.Other.Or("")})
				}
			})},
		{Method: "POST", Path: base + "/{interactionId}/reject", Tag: "issues", Summary: "Reject what was suggested",
			In: endInteraction{}, Out: shownInteraction{},
			Handle: decide(paper.KindInteractionReject,
				func(b endInteraction, p *paper.ResolveInteraction) { p.Reason = b.Reason })},
		{Method: "POST", Path: base + "/{interactionId}/verdicts", Tag: "issues",
			Summary: "Say of each item what becomes of it", In: judgeItems{}, Out: shownInteraction{},
			Handle: decide(paper.KindInteractionJudge, func(b judgeItems, p *paper.ResolveInteraction) {
				for _, v := range b.Verdicts {
					p.Judged = append(p.Judged, paper.Verdict{Item: v.Item, Verdict: v.Verdict, Reason: v.Reason.Or("")})
				}
			})},
		{Method: "POST", Path: base + "/{interactionId}/withdraw", Tag: "issues", Summary: "Withdraw what one asked",
			In: endInteraction{}, Out: shownInteraction{},
			Handle: decide(paper.KindInteractionWithdraw,
				func(b endInteraction, p *paper.ResolveInteraction) { p.Reason = b.Reason })},
		{Method: "POST", Path: base + "/{interactionId}/skip", Tag: "issues",
			Summary: "End what was asked without deciding it", In: endInteraction{}, Out: shownInteraction{},
			Handle: decide(paper.KindInteractionSkip,
				func(b endInteraction, p *paper.ResolveInteraction) { p.Reason = b.Reason })},
		{Method: "POST", Path: base + "/{interactionId}/cancel", Tag: "issues", Summary: "Take back what was asked",
			In: endInteraction{}, Out: shownInteraction{},
			Handle: decide(paper.KindInteractionCancel,
				func(b endInteraction, p *paper.ResolveInteraction) { p.Reason = b.Reason })},
	}
}

func interactionsOf(tx *ledger.Tx, i entity.Issue) []shownInteraction {
	out := []shownInteraction{}
	for _, in := range paper.InteractionsOf(tx, i) {
		out = append(out, shown(in))
	}
	return out
}

func newInteraction(rc *api.Request) (api.Response, error) {
	in, err := api.Body[interactionBody[json.RawMessage]](rc)
	if err != nil {
		return api.Response{}, err
	}
	defaults := map[string]json.RawMessage{}
	yes := json.RawMessage("true")
	switch in.Kind {
	case paper.SuggestTasks:
		_, err = api.Body[interactionBody[tasksPayload]](rc)
	case paper.AskQuestions:
		_, err = api.Body[interactionBody[questionsPayload]](rc)
		defaults["supersedeOnUserComment"] = yes
	case paper.Confirmation:
		_, err = api.Body[interactionBody[confirmationPayload]](rc)
		defaults["allowDeclineReason"], defaults["supersedeOnUserComment"] = yes, yes
	case paper.CheckboxConfirm:
		_, err = api.Body[interactionBody[checkboxPayload]](rc)
		defaults["allowDeclineReason"], defaults["supersedeOnUserComment"] = yes, yes
	case paper.ItemVerdicts:
		_, err = api.Body[interactionBody[verdictsPayload]](rc)
		defaults["verdicts"], defaults["allowBulkApprove"], defaults["supersedeOnUserComment"] = json.RawMessage(
			`["approve","reject","defer"]`), yes, yes
	}
	if err != nil {
		return api.Response{}, err
	}
	payload, err := withDefaults(in.Payload, defaults)
	if err != nil {
		return api.Response{}, err
	}
	if len(payload) > paper.MaxInteraction {
		return api.Response{}, ledger.Refuse(ledger.TooLarge, nil, "An interaction has at most %d bytes",
			paper.MaxInteraction)
	}
	of, issue, err := api.LocateIssue(rc)
	if err != nil {
		return api.Response{}, err
	}
	row, err := api.Do[paper.Interaction](rc, paper.KindInteractionCreate, of, paper.CreateInteraction{ID: api.NewID(),
		Issue: issue, Kind: in.Kind, Continuation: in.Continuation,
		Policy: in.Policy, AddresseeAgent: api.BodyID(in.AddresseeAgent), AddresseeUser: in.AddresseeUser.Or(""),
		RequestKey:    in.IdempotencyKey.Or(""),
		SourceComment: api.BodyID(in.SourceComment), SourceRun: api.BodyID(in.SourceRun), Title: in.Title.Or(""),
		Summary: in.Summary.Or(""), Payload: payload})
	return api.OK(shown(row)), err
}

// withDefaults adds the members that a JSON object lacks.
func withDefaults(b json.RawMessage, defaults map[string]json.RawMessage) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &members); err != nil {
		return nil, api.Invalid("Invalid payload: expected an object")
	}
	for name, v := range defaults {
		if _, ok := members[name]; !ok {
			members[name] = v
		}
	}
	return json.Marshal(members)
}

// decide returns the handler of a route that resolves an interaction.
func decide[B any](kind string, fill func(B, *paper.ResolveInteraction)) func(*api.Request) (api.Response, error) {
	return func(rc *api.Request) (api.Response, error) {
		in, err := api.Body[B](rc)
		if err != nil {
			return api.Response{}, err
		}
		of, issue, err := api.LocateIssue(rc)
		if err != nil {
			return api.Response{}, err
		}
		p := paper.ResolveInteraction{Issue: issue, ID: strings.ToLower(rc.Path("interactionId"))}
		fill(in, &p)
		row, err := api.Do[paper.Interaction](rc, kind, of, p)
		return api.OK(shown(row)), err
	}
}
