package mcp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// A spec is one of the contract's tools. args lists its arguments as "name:kind", with
// "!" after required ones. A kind is in [kinds], or "a|b|c" for one of several words.
// Arguments named in the path go there; the others go into the query of a GET, else into
// the body.
type spec struct {
	name, method, path string
	args               string
	about              string
	fixed              map[string]any
	run                runner
	group              string // for tools whose arguments choose the route
}

// kinds of arguments. o accepts any object, described by the route's body.
var kinds = map[string]string{
	"text":   `{"type":"string"}`,
	"uuid":   `{"type":["string","null"],"format":"uuid"}`,
	"uuids":  `{"type":"array","items":{"type":"string","format":"uuid"}}`,
	"null":   `{"type":["string","null"]}`,
	"int":    `{"type":"integer","minimum":0}`,
	"flag":   `{"type":"boolean"}`,
	"object": `{"type":["object","null"]}`,
	"time":   `{"type":["string","null"],"format":"date-time"}`,
}

const (
	// workArgs are the fields of an issue that can be set and changed.
	workArgs = " projectId:uuid projectWorkspaceId:uuid goalId:uuid parentId:uuid blockedByIssueIds:uuids " +
		"unblockDescriptor:object" +
		" inheritExecutionWorkspaceFromIssueId:uuid description:null status:" + statusWords +
		" workMode:standard|ask|planning|skill_test" +
		" harnessKind:null priority:critical|high|medium|low reviewPolicy:null assigneeAgentId:null assigneeUserId:null " +
		"requestDepth:int" +
		" billingCode:null assigneeAdapterOverrides:object executionPolicy:object executionWorkspaceId:uuid " +
		"executionWorkspacePreference:null" +
		" executionWorkspaceSettings:object labelIds:uuids watchdogDiscovery:object"
	statusWords = "backlog|todo|in_progress|in_review|done|blocked|cancelled"
	askArgs     = "issueId:text! idempotencyKey:null sourceCommentId:uuid sourceRunId:uuid title:null summary:null" +
		" continuationPolicy:none|wake_assignee|wake_assignee_on_accept payload:object!"
	talkArgs = " onBehalfOfUserId:null reopen:flag resume:flag interrupt:flag"

	ofCompany = "/api/companies/{companyId}"
	ofIssue   = "/api/issues/{issueId}"
	ofOne     = "/api/approvals/{approvalId}"
)

// contract is the list of the contract's tools with their arguments.
var contract = []spec{
	{name: "Me", method: "GET", path: "/api/agents/me",
		about: "Say which agent you are: your role, company, manager, budget and permissions."},
	{name: "InboxLite", method: "GET", path: "/api/agents/me/inbox-lite",
		about: "List the work that waits for you, in a few fields each. Start here."},
	{name: "ListAgents", method: "GET", path: ofCompany + "/agents", args: "companyId:uuid",
		about: "List the agents of a company."},
	{name: "GetAgent", method: "GET", path: "/api/agents/{agentId}", args: "agentId:text! companyId:uuid",
		about: "Read an agent by ID, or by its short name within a company."},
	{name: "ListIssues", method: "GET", path: ofCompany + "/issues",
		args: "companyId:uuid status:text projectId:uuid assigneeAgentId:uuid participantAgentId:uuid" +
			" assigneeUserId:text touchedByUserId:text inboxArchivedByUserId:text unreadForUserId:text labelId:uuid " +
			"executionWorkspaceId:uuid originKind:text originId:text" +
			" includeRoutineExecutions:flag includeLiveDescendantSummary:flag q:text",
		about: "List the issues of a company; every filter narrows the list. status takes several, separated by commas."},
	{name: "GetIssue", method: "GET", path: ofIssue, args: "issueId:text!",
		about: "Read an issue by ID or identifier, with its goals, relations and documents."},
	{name: "GetHeartbeatContext", method: "GET", path: ofIssue + "/heartbeat-context",
		args: "issueId:text! wakeCommentId:uuid",
		about: "Read what you need to work on an issue in one small answer: the issue, its ancestors, goal, project and " +
			"where the comments stand."},
	{name: "ListComments", method: "GET", path: ofIssue + "/comments",
		args:  "issueId:text! after:uuid order:asc|desc limit:int",
		about: "List the comments of an issue; after reads on behind a comment that you know."},
	{name: "GetComment", method: "GET", path: ofIssue + "/comments/{commentId}", args: "issueId:text! commentId:uuid!",
		about: "Read one comment of an issue."},
	{name: "ListIssueApprovals", method: "GET", path: ofIssue + "/approvals", args: "issueId:text!",
		about: "List the approvals that belong to an issue."},
	{name: "ListDocuments", method: "GET", path: ofIssue + "/documents", args: "issueId:text!",
		about: "List the documents of an issue."},
	{name: "GetDocument", method: "GET", path: ofIssue + "/documents/{key}", args: "issueId:text! key:text!",
		about: "Read a document of an issue by its key, such as plan."},
	{name: "ListDocumentRevisions", method: "GET", path: ofIssue + "/documents/{key}/revisions",
		args: "issueId:text! key:text!", about: "List the revisions of a document, newest first."},
	{name: "ListProjects", method: "GET", path: ofCompany + "/projects", args: "companyId:uuid",
		about: "List the projects of a company."},
	{name: "GetProject", method: "GET", path: "/api/projects/{projectId}", args: "projectId:text! companyId:uuid",
		about: "Read a project by ID, or by its short name within a company."},
	{name: "GetIssueWorkspaceRuntime", method: "GET", path: ofIssue + "/heartbeat-context", args: "issueId:text!",
		run:   workspaceRuntime,
		about: "Read the workspace in which an issue is worked on, and the services that run there with their URLs."},
	{name: "ControlIssueWorkspaceServices", method: "POST",
		path: "/api/execution-workspaces/{id}/runtime-services/{action}", run: controlServices,
		args:  "issueId:text! action:start|stop|restart! workspaceCommandId:null runtimeServiceId:uuid serviceIndex:int",
		about: "Start, stop or restart the services of an issue's workspace; all of them unless one is named."},
	{name: "WaitForIssueWorkspaceService", method: "GET", path: ofIssue + "/heartbeat-context", run: waitForService,
		args:  "issueId:text! runtimeServiceId:uuid serviceName:null timeoutSeconds:int",
		about: "Wait until a service of an issue's workspace runs, for at most timeoutSeconds (60; at most 300)."},
	{name: "ListGoals", method: "GET", path: ofCompany + "/goals", args: "companyId:uuid",
		about: "List the goals of a company."},
	{name: "GetGoal", method: "GET", path: "/api/goals/{goalId}", args: "goalId:uuid!", about: "Read a goal."},
	{name: "ListApprovals", method: "GET", path: ofCompany + "/approvals", args: "companyId:uuid status:text",
		about: "List the approvals of a company, of one status if you like."},
	{name: "CreateApproval", method: "POST", path: ofCompany + "/approvals",
		args: "companyId:uuid type:hire_agent|approve_ceo_strategy|budget_override_required|request_board_approval! " +
			"requestedByAgentId:uuid payload:object! issueIds:uuids",
		about: "Ask the board to decide. Approving runs what payload describes."},
	{name: "GetApproval", method: "GET", path: ofOne, args: "approvalId:uuid!", about: "Read an approval."},
	{name: "GetApprovalIssues", method: "GET", path: ofOne + "/issues", args: "approvalId:uuid!",
		about: "List the issues that an approval belongs to."},
	{name: "ListApprovalComments", method: "GET", path: ofOne + "/comments", args: "approvalId:uuid!",
		about: "List the comments on an approval."},
	{name: "CreateIssue", method: "POST", path: ofCompany + "/issues", args: "companyId:uuid title:text!" + workArgs +
		" createdByUserId:null responsibleUserId:null watchdog:object idempotencyKey:null allowDuplicate:flag",
		about: "Make an issue. Give parentId to delegate a part of your own; with the same idempotencyKey you get the " +
			"first one again."},
	{name: "UpdateIssue", method: "PATCH", path: ofIssue, args: "issueId:text! title:text" + workArgs + " comment:text" +
		talkArgs + " reviewInteractionId:uuid reviewRequest:object hiddenAt:time",
		about: "Change an issue, with a comment if you like. Say what you did when you set it to done, in_review or " +
			"blocked. resume and interrupt belong to a comment, as in paperclipAddComment."},
	{name: "CheckoutIssue", method: "POST", path: ofIssue + "/checkout",
		args: "issueId:text! agentId:uuid expectedStatuses:statuses", run: checkout,
		about: "Take an issue before you work on it. A conflict means that another agent has it: do something else, do " +
			"not try again."},
	{name: "ReleaseIssue", method: "POST", path: ofIssue + "/release", args: "issueId:text!",
		about: "Give an issue back that you took and will not finish."},
	{name: "AddComment", method: "POST", path: ofIssue + "/comments",
		args: "issueId:text! body:text! authorType:user|agent|system presentation:object metadata:object" + talkArgs,
		about: "Add a comment to an issue. resume says that the work is to go on: what was blocked is to do again, and " +
			"for the board also what was closed. interrupt, for the board, ends the run at work."},
	{name: "SuggestTasks", method: "POST", path: ofIssue + "/interactions", args: askArgs,
		fixed: map[string]any{"kind": "suggest_tasks", "continuationPolicy": "wake_assignee"},
		about: "Offer a list of tasks that a person may accept, in part or as a whole: payload {version: 1, tasks: " +
			"[{clientKey, title, …}]}."},
	{name: "AskUserQuestions", method: "POST", path: ofIssue + "/interactions", args: askArgs,
		fixed: map[string]any{"kind": "ask_user_questions", "continuationPolicy": "wake_assignee"},
		about: "Ask a person up to ten questions with options: payload {version: 1, questions: [{id, prompt, " +
			"selectionMode, options: [{id, label}]}]}."},
	{name: "RequestConfirmation", method: "POST", path: ofIssue + "/interactions", args: askArgs,
		fixed: map[string]any{"kind": "request_confirmation", "continuationPolicy": "none"},
		about: "Ask a person for a yes or no: payload {version: 1, prompt, …}."},
	{name: "RequestCheckboxConfirmation", method: "POST", path: ofIssue + "/interactions", args: askArgs,
		fixed: map[string]any{"kind": "request_checkbox_confirmation", "continuationPolicy": "wake_assignee"},
		about: "Ask a person to tick what is wanted: payload {version: 1, prompt, options: [{id, label}], …}."},
	{name: "UpsertIssueDocument", method: "PUT", path: ofIssue + "/documents/{key}",
		args:  "issueId:text! key:text! title:null format:markdown body:text! changeSummary:null baseRevisionId:uuid",
		fixed: map[string]any{"format": "markdown"},
		about: "Write a document of an issue. To change one that there is, give the baseRevisionId that you read."},
	{name: "RestoreIssueDocumentRevision", method: "POST", path: ofIssue +
		"/documents/{key}/revisions/{revisionId}/restore", args: "issueId:text! key:text! revisionId:uuid!",
		about: "Make an old revision of a document the newest."},
	{name: "LinkIssueApproval", method: "POST", path: ofIssue + "/approvals", args: "issueId:text! approvalId:uuid!",
		about: "Say that an approval belongs to an issue."},
	{name: "UnlinkIssueApproval", method: "DELETE", path: ofIssue + "/approvals/{approvalId}",
		args: "issueId:text! approvalId:uuid!", about: "Say that an approval does not belong to an issue any more."},
	{name: "ApprovalDecision", method: "POST", path: ofOne + "/{action}",
		args: "approvalId:uuid! action:approve|reject|requestRevision|resubmit! decisionNote:text payloadJson:text",
		run:  decide, group: "approvals",
		about: "Approve, reject or send back an approval (the board), or hand it in again with a changed payload, as JSON " +
			"text (who asked)."},
	{name: "AddApprovalComment", method: "POST", path: ofOne + "/comments", args: "approvalId:uuid! body:text!",
		about: "Add a comment to an approval."},
	{name: "ApiRequest", args: "method:GET|POST|PUT|PATCH|DELETE! path:text! jsonBody:text", run: apiRequest,
		about: "Make any JSON request to the API when no other tool fits. path is below /api, such as /companies; " +
			"jsonBody is JSON text."},
}

func (s spec) tool(d *Description) (*Tool, error) {
	t := &Tool{Name: ofContract + s.name, Description: s.about, Method: s.method, Path: s.path,
		ReadOnly: s.method == "GET", run: s.run, fixed: s.fixed}
	o, known := d.Find(s.method, s.path)
	t.Group = cmp.Or(o.Group, s.group)
	properties := map[string]json.RawMessage{}
	for word := range strings.FieldsSeq(s.args) {
		name, kind, ok := strings.Cut(word, ":")
		if !ok {
			return nil, fmt.Errorf("mcp: argument %q of %s", word, t.Name)
		}
		kind, must := strings.CutSuffix(kind, "!")
		a := Arg{Name: name, Required: must, In: "body"}
		switch {
		case strings.Contains(s.path, "{"+name+"}"):
			a.In = "path"
		case s.method == "GET":
			a.In = "query"
		}
		properties[name] = argSchema(name, kind)
		if known && o.Body != nil && a.In == "body" {
			if better, ok := o.Body.Properties[name]; ok {
				properties[name] = better
			}
		}
		t.Args = append(t.Args, a)
	}
	return t, t.seal(d, properties)
}

// argDocs describe arguments of several tools.
var argDocs = map[string]string{
	"companyId":        "The company; yours unless you name another.",
	"issueId":          "The issue's ID or its identifier, such as ACM-1.",
	"agentId":          "The agent's ID or short name.",
	"projectId":        "The project's ID or short name.",
	"key":              "The document's key, such as plan.",
	"wakeCommentId":    "The comment that woke you.",
	"after":            "Only comments behind this one.",
	"q":                "Text to look for.",
	"payload":          "What is asked for; its shape depends on the kind.",
	"timeoutSeconds":   "How long to wait.",
	"payloadJson":      "For resubmit: the new payload as JSON text.",
	"path":             "Relative to /api, or beginning with it.",
	"jsonBody":         "The body as JSON text.",
	"baseRevisionId":   "The revision that you changed; a newer one is a conflict.",
	"idempotencyKey":   "The same key gives the same result again.",
	"expectedStatuses": "Take the issue only if it has one of these statuses.",
}

func argSchema(name, kind string) json.RawMessage {
	schema := map[string]any{}
	switch text, known := kinds[kind]; {
	case known:
		if err := json.Unmarshal([]byte(text), &schema); err != nil {
			panic("mcp: kind " + kind + ": " + err.Error())
		}
	case kind == "statuses":
		schema = map[string]any{"type": "array", "minItems": 1, "items": map[string]any{"type": "string",
			"enum": strings.Split(statusWords, "|")}}
	default:
		schema = map[string]any{"type": "string", "enum": strings.Split(kind, "|")}
	}
	if doc, ok := argDocs[name]; ok {
		schema["description"] = doc
	}
	return encode(schema)
}
