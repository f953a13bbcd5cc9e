package api

import (
	"slices"
	"strings"
	"testing"
)

// The inbox of a person is what they made, have or spoke on, without what they
// put away, and says what they have not seen.
func TestListsOfIssuesAreNarrowed(t *testing.T) {
	h := newHarness(t)
	of := h.company("Acme")
	in := "/api/companies/" + of
	h.call("PATCH", in, `{"requireBoardApprovalForCeoStrategy":false}`).want(t, 200, "")
	ada := h.call("POST", in+"/agents", `{"name":"Ada","adapterType":"process","adapterConfig":{"command":"/bin/true"}}`).want(t, 201, "").field(t, "id")
	key := "Authorization: Bearer " + h.call("POST", "/api/agents/"+ada+"/keys", `{"name":"k"}`).want(t, 201, "").field(t, "token")
	issue := func(body string) string { return h.call("POST", in+"/issues", body).want(t, 201, "").field(t, "id") }
	mine := issue(`{"title":"Mine"}`)
	child := issue(`{"title":"Child","parentId":"` + mine + `"}`)
	grandchild := issue(`{"title":"Grandchild","parentId":"` + child + `","originKind":"plugin:x","originId":"7"}`)
	theirs := issue(`{"title":"Theirs","assigneeAgentId":"` + ada + `","status":"todo"}`)
	run := "X-Paperclip-Run-Id: " + h.start(of, firstOf(t, h.call("GET", in+"/heartbeat-runs", "")))
	made := h.call("POST", in+"/issues", `{"title":"Made by Ada"}`, key, run).want(t, 201, "").field(t, "id")

	list := func(query string, headers ...string) (titles []string) {
		t.Helper()
		for _, row := range h.call("GET", in+"/issues?sortField=title&"+query, "", headers...).want(t, 200, "").decode(t).([]any) {
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
	// What is said by others is unread until somebody looks, or answers.
	h.call("POST", "/api/issues/"+theirs+"/comments", `{"body":"Look at this"}`, key, run).want(t, 201, "")
	unread := func() string { return strings.Join(list("unreadForUserId=me"), " ") }
	if got := unread(); got != "Theirs" {
		t.Errorf("unread: %s", got)
	}
	h.call("GET", in+"/issues?touchedByUserId=me", "").want(t, 200, `"isUnreadForMe":true`)
	h.call("POST", "/api/issues/"+theirs+"/read", `{}`).want(t, 200, "")
	if got := unread(); got != "" {
		t.Errorf("unread after reading: %s", got)
	}
	// Speaking makes an issue one's own; putting it away holds until it changes.
	h.call("POST", "/api/issues/"+made+"/comments", `{"body":"Thanks"}`).want(t, 201, "")
	if got := list("touchedByUserId=me"); !slices.Contains(got, "Made by Ada") {
		t.Errorf("after a comment: %v", got)
	}
	h.call("POST", "/api/issues/"+grandchild+"/inbox-archive", `{}`).want(t, 200, "")
	const inbox = "touchedByUserId=me&inboxArchivedByUserId=me"
	if got := list(inbox); slices.Contains(got, "Grandchild") || len(got) != 4 {
		t.Errorf("inbox: %v", got)
	}
	h.call("GET", "/api/agents/me/inbox/mine?userId=local-board", "", key).want(t, 200, `"title":"Mine"`)
	priority := "low"
	eventually(t, func() bool { // both may fall into one millisecond, and what says nothing new changes nothing
		priority = map[string]string{"low": "high", "high": "low"}[priority]
		h.call("PATCH", "/api/issues/"+grandchild, `{"priority":"`+priority+`"}`).want(t, 200, "")
		return slices.Contains(list(inbox), "Grandchild")
	})
	h.call("GET", in+"/issues?touchedByUserId=me", "", key).want(t, 403, "touchedByUserId=me requires board authentication")
	h.call("GET", in+"/issues?descendantOf=x", "").want(t, 400, "descendantOf")
	h.call("GET", "/api/agents/me/inbox/mine", "", key).want(t, 400, "userId")
	h.call("GET", "/api/agents/me/inbox/mine?userId=x", "").want(t, 401, "")
}
