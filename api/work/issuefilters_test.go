package work_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
)

// A person's inbox holds the issues that they created, are assigned, or commented on,
// except those that they archived. It marks what is unread.
func TestListsOfIssuesAreNarrowed(t *testing.T) {
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	in := "/api/companies/" + string(of)
	h.Call("PATCH", in, `{"requireBoardApprovalForCeoStrategy":false}`).Want(t, 200, "")
	ada := h.Call("POST", in+"/agents", `{"name":"Ada","adapterType":"process","adapterConfig":{"command":"/bin/true"}}`).
		Want(t, 201, "").Field(t, "id")
	key := "Authorization: Bearer " + h.Call("POST", "/api/agents/"+ada+"/keys", `{"name":"k"}`).Want(t, 201, "").
		Field(t, "token")
	issue := func(body string) string { return h.Call("POST", in+"/issues", body).Want(t, 201, "").Field(t, "id") }
	mine := issue(`{"title":"Mine"}`)
	child := issue(`{"title":"Child","parentId":"` + mine + `"}`)
	grandchild := issue(`{"title":"Grandchild","parentId":"` + child + `","originKind":"plugin:x","originId":"7"}`)
	theirs := issue(`{"title":"Theirs","assigneeAgentId":"` + ada + `","status":"todo"}`)
	run := "X-Paperclip-Run-Id: " + h.Start(of, apitest.FirstOf(t, h.Call("GET", in+"/heartbeat-runs", "")))
	made := h.Call("POST", in+"/issues", `{"title":"Made by Ada"}`, key, run).Want(t, 201, "").Field(t, "id")

	list := func(query string, headers ...string) (titles []string) {
		t.Helper()
		for _, row := range h.Call("GET", in+"/issues?sortField=title&"+query, "", headers...).Want(t, 200, "").
			Decode(t).([]any) {
			titles = append(titles, row.(map[string]any)["title"].(string))
		}
		return titles
	}
	for query, want := range map[string]string{
		"touchedByUserId=me":                     "Child Grandchild Mine Theirs",
		"touchedByUserId=nobody":                 "",
		"participantAgentId=" + ada:              "Made by Ada Theirs",
		"descendantOf=" + mine:                   "Child Grandchild",
		"parentIssueId=" + mine:                  "Child",
		"originKind=plugin:x":                    "Grandchild",
		"originKindPrefix=plugin&originId=7":     "Grandchild",
		"originKindPrefix=plugin&originId=8":     "",
		"workMode=planning":                      "",
		"descendantOf=" + child + "&status=done": "",
	} {
		if got := strings.Join(list(query), " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	// Comments of others are unread until the person reads the issue or answers.
	h.Call("POST", "/api/issues/"+theirs+"/comments", `{"body":"Look at this"}`, key, run).Want(t, 201, "")
	unread := func() string { return strings.Join(list("unreadForUserId=me"), " ") }
	if got := unread(); got != "Theirs" {
		t.Errorf("unread: %s", got)
	}
	h.Call("GET", in+"/issues?touchedByUserId=me", "").Want(t, 200, `"isUnreadForMe":true`)
	h.Call("POST", "/api/issues/"+theirs+"/read", `{}`).Want(t, 200, "")
	if got := unread(); got != "" {
		t.Errorf("unread after reading: %s", got)
	}
	// A comment puts the issue into the author's inbox; archiving it holds until the issue
	// changes.
	h.Call("POST", "/api/issues/"+made+"/comments", `{"body":"Thanks"}`).Want(t, 201, "")
	if got := list("touchedByUserId=me"); !slices.Contains(got, "Made by Ada") {
		t.Errorf("after a comment: %v", got)
	}
	h.Call("POST", "/api/issues/"+grandchild+"/inbox-archive", `{}`).Want(t, 200, "")
	const inbox = "touchedByUserId=me&inboxArchivedByUserId=me"
	if got := list(inbox); slices.Contains(got, "Grandchild") || len(got) != 4 {
		t.Errorf("inbox: %v", got)
	}
	h.Call("GET", "/api/agents/me/inbox/mine?userId=local-board", "", key).Want(t, 200, `"title":"Mine"`)
	priority := "low"
	apitest.Patient.Until(t, "the issue is newer",
		func() bool { // both may fall into one millisecond, and an equal value changes nothing
			priority = map[string]string{"low": "high", "high": "low"}[priority]
			h.Call("PATCH", "/api/issues/"+grandchild, `{"priority":"`+priority+`"}`).Want(t, 200, "")
			return slices.Contains(list(inbox), "Grandchild")
		})
	h.Call("GET", in+"/issues?touchedByUserId=me", "", key).
		Want(t, 403, "touchedByUserId=me requires board authentication")
	h.Call("GET", in+"/issues?descendantOf=x", "").Want(t, 400, "descendantOf")
	h.Call("GET", "/api/agents/me/inbox/mine", "", key).Want(t, 400, "userId")
	h.Call("GET", "/api/agents/me/inbox/mine?userId=x", "").Want(t, 401, "Agent authentication required")
}
