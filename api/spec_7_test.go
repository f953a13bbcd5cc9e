package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
)

// TestSpec_7_FieldsAndDefaults makes a row of each noun with as little as it
// takes, and looks at each of the specification's fields: that it is there, and
// what it is when nobody said so. "*" is any value, "+" any but null. What an enum
// does not hold is refused with the field named.
func TestSpec_7_FieldsAndDefaults(t *testing.T) {
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	in := "/api/companies/" + of
	ids := map[string]string{"OF": of}
	fill := func(s string) string {
		for name, id := range ids {
			s = strings.ReplaceAll(s, name, id)
		}
		return s
	}
	look := func(t *testing.T, row map[string]any, fields string) {
		t.Helper()
		for _, f := range strings.Fields(fill(fields)) {
			name, want, ok := strings.Cut(f, "=")
			v, there := row[name]
			got, _ := json.Marshal(v)
			switch {
			case !there:
				t.Errorf("%s is missing", name)
			case !ok || want == "*" || want == "+" && v != nil:
			case string(got) != want:
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
	}
	for _, c := range []struct {
		noun, path, body, fields string
		enums                    string // field=a|b|c, all of which are taken by PATCH
		patch                    string
	}{
		{"7.1 company", "/api/companies", `{"name":"Two"}`,
			`id=+ createdAt=+ updatedAt=+ name="Two" description=null status="active" pauseReason=null ` +
				`pausedAt=null issuePrefix="TWO" issueCounter=0 budgetMonthlyCents=0
			spentMonthlyCents=0 attachmentMaxBytes=+ requireBoardApprovalForNewAgents=false ` +
				`feedbackDataSharingEnabled=false feedbackDataSharingConsentAt=null ` +
				`feedbackDataSharingConsentByUserId=null feedbackDataSharingTermsVersion=null brandColor=null`, ``, ``},
		{"7.2 agent", in + "/agents", `{"name":"Ada"}`,
			`id=+ createdAt=+ updatedAt=+ companyId="OF" name="Ada" role="general" title=null icon=null ` +
				`status="idle" reportsTo=null capabilities=null adapterType="process" adapterConfig={} runtimeConfig=+
			defaultEnvironmentId=null contextMode="thin" budgetMonthlyCents=0 spentMonthlyCents=0 ` +
				`pauseReason=null pausedAt=null permissions=+ lastHeartbeatAt=null metadata=null`,
			`contextMode=thin|fat`, "/api/agents/ID"},
		{"7.3 agent_api_key", "/api/agents/AGENT/keys", `{"name":"k"}`, `id=+ createdAt=+ name="k" token=+`, ``, ``},
		{"7.4 goal", in + "/goals", `{"title":"G"}`,
			`id=+ createdAt=+ updatedAt=+ companyId="OF" title="G" description=null level="task" parentId=null ` +
				`ownerAgentId=null status="planned"`,
			`level=company|team|agent|task status=planned|active|achieved|cancelled`, "/api/goals/ID"},
		{"7.5 project", in + "/projects", `{"name":"P"}`,
			`id=+ createdAt=+ updatedAt=+ companyId="OF" goalId=* name="P" description=null status="backlog" ` +
				`leadAgentId=null targetDate=null env=null`,
			`status=backlog|planned|in_progress|completed|cancelled`, "/api/projects/ID"},
		{"7.6 issue", in + "/issues", `{"title":"T"}`,
			`id=+ createdAt=+ updatedAt=+ companyId="OF" projectId=null projectWorkspaceId=null goalId=* ` +
				`parentId=null title="T" description=null status="backlog" priority="medium" ` +
				`assigneeAgentId=null assigneeUserId=null
			checkoutRunId=null executionRunId=null executionAgentNameKey=null executionLockedAt=null ` +
				`createdByAgentId=null createdByUserId="local-board" issueNumber=1 identifier="ACM-1" ` +
				`originKind="manual" originId=null originRunId=null originFingerprint="default"
			requestDepth=0 billingCode=null assigneeAdapterOverrides=null executionPolicy=null ` +
				`executionState=null executionWorkspaceId=null executionWorkspacePreference=null ` +
				`executionWorkspaceSettings=null startedAt=null completedAt=null cancelledAt=null hiddenAt=null`,
			`priority=critical|high|medium|low status=todo|backlog`, "/api/issues/ID"},
		{"7.7 comment", "/api/issues/ISSUE/comments", `{"body":"b"}`,
			`id=+ createdAt=+ updatedAt=+ companyId="OF" issueId="ISSUE" authorAgentId=null authorUserId="local-board" body="b"`,
			``, ``},
		{"7.9 cost_event", in + "/cost-events",
			`{"agentId":"AGENT","provider":"p","model":"m","costCents":1,"occurredAt":"2026-11-20T12:00:00Z"}`,
			`id=+ companyId="OF" agentId="AGENT" issueId=null projectId=null goalId=null billingCode=null provider="p" model="m"
			inputTokens=0 outputTokens=0 costCents=1 occurredAt="2026-11-20T12:00:00.000Z" createdAt=+`, ``, ``},
		{"7.10 approval", in + "/approvals", `{"type":"request_board_approval","payload":{"title":"x"}}`,
			`id=+ createdAt=+ updatedAt=+ companyId="OF" type="request_board_approval" requestedByAgentId=null ` +
				`requestedByUserId="local-board" status="pending" payload=+
			decisionNote=null decidedByUserId=null decidedAt=null`, ``, ``},
		{"7.12 secret", in + "/secrets", `{"name":"S","value":"v"}`,
			`id=+ createdAt=+ updatedAt=+ companyId="OF" name="S" provider="local_encrypted" latestVersion=1`, ``, ``},
		{"7.16 label", in + "/labels", `{"name":"l","color":"#ff0000"}`,
			`id=+ createdAt=+ updatedAt=+ companyId="OF" name="l" color="#ff0000"`, ``, ``},
		{"7.16 routine", in + "/routines", `{"title":"R","assigneeAgentId":"AGENT"}`,
			`id=+ createdAt=+ updatedAt=+ companyId="OF" title="R" description=null assigneeAgentId="AGENT" ` +
				`priority="medium" status="active" concurrencyPolicy="coalesce_if_active" catchUpPolicy="skip_missed"`,
			`status=active|paused priority=critical|high|medium|low ` +
				`concurrencyPolicy=coalesce_if_active|skip_if_active|always_enqueue ` +
				`catchUpPolicy=skip_missed|enqueue_missed_with_cap`, "/api/routines/ID"},
	} {
		t.Run(c.noun, func(t *testing.T) {
			row, ok := h.Call("POST", fill(c.path), fill(c.body)).Want(t, 201, "").Decode(t).(map[string]any)
			if !ok {
				t.Fatal("no row")
			}
			look(t, row, c.fields)
			for _, name := range []string{"name", "title"} { // white space alone is no name
				var body map[string]any
				if err := json.Unmarshal([]byte(fill(c.body)), &body); err != nil {
					t.Fatal(err)
				}
				if body[name] != nil {
					body[name] = " \t "
					blank, _ := json.Marshal(body)
					h.Call("POST", fill(c.path), string(blank)).Want(t, 400, `"path":["`+name+`"]`)
				}
			}
			id, _ := row["id"].(string)
			switch name := strings.Fields(c.noun)[1]; name {
			case "agent", "issue", "goal", "project":
				ids[strings.ToUpper(name)] = id
			}
			path := strings.ReplaceAll(c.patch, "ID", id)
			for _, f := range strings.Fields(c.enums) {
				name, values, _ := strings.Cut(f, "=")
				for _, v := range strings.Split(values, "|") {
					if got := h.Call("PATCH", path, `{"`+name+`":"`+v+`"}`).Want(t, 200, "").Field(t, name); got != v {
						t.Errorf("%s is %q after it was set to %q", name, got, v)
					}
				}
				h.Call("PATCH", path, `{"`+name+`":"sideways"}`).Want(t, 400, `"`+name+`"`)
			}
		})
	}
}

// TestSpec_7_NothingSentIsLost sends what fields may not be and what they may: it
// is refused, or it is there afterwards; it is never taken and forgotten.
func TestSpec_7_NothingSentIsLost(t *testing.T) {
	h := apitest.NewTeam(t)
	in := "/api/companies/" + string(h.Company)
	parent := h.Call("POST", in+"/issues", `{"title":"Parent","requestDepth":4}`).Want(t, 201, "").Field(t, "id")
	issue := "/api/issues/" + h.Call("POST", in+"/issues", `{"title":"Weld","parentId":"`+parent+`"}`).
		Want(t, 201, `"requestDepth":5`).Field(t, "id")
	product := "/api/work-products/" + h.Call("POST", issue+"/work-products",
		`{"type":"branch","provider":"git","title":"b"}`).Want(t, 201, "").Field(t, "id")
	agent := "/api/agents/" + h.Worker
	for _, c := range []struct {
		path, body string
		status     int
		text       string
	}{
		{issue, `{"title":null}`, 400, "expected string, received null"},
		{issue, `{"labelIds":null}`, 400, "expected array, received null"},
		{issue, `{"blockedByIssueIds":null}`, 400, "expected array, received null"},
		{issue, `{"requestDepth":9}`, 200, `"requestDepth":9`},
		{issue, `{"requestDepth":2}`, 200, `"requestDepth":5`}, // below its parent
		{issue, `{"requestDepth":65}`, 400, "Too big"},
		{product, `{"title":null}`, 400, "expected string, received null"},
		{product, `{"provider":null}`, 400, "expected string, received null"},
		{product, `{"type":null}`, 400, "expected one of"},
		{agent, `{"permissions":{"canCreateAgents":false}}`, 422, "are changed by PATCH /api/agents/" + h.Worker +
			"/permissions"},
		{agent, `{"permissions":null}`, 422, "are changed by"},
	} {
		h.Call("PATCH", c.path, c.body).Want(t, c.status, c.text)
	}
	h.Call("GET", issue, "").Want(t, 200, `"title":"Weld"`)

	h.Call("POST", issue+"/comments", `{"body":"see","attachmentIds":["`+parent+`"]}`).Want(t, 404, "Attachment not found")
	h.Call("PATCH", issue, `{"comment":"see","attachmentIds":["`+parent+`"]}`).Want(t, 404, "Attachment not found")
	h.Call("PATCH", issue, `{"attachmentIds":["`+parent+`"]}`).Want(t, 400, "belong to a comment")
	for query, body := range map[string]string{"": `{"clearAssignee":true}`, "?clearAssignee=true": ``} {
		held := "/api/issues/" + h.Call("POST", in+"/issues", `{"title":"Held`+query+`","status":"todo"}`).Want(t, 201, "").
			Field(t, "id")
		h.Call("POST", held+"/checkout", `{"agentId":"`+h.Worker+`","expectedStatuses":["todo"]}`).Want(t, 200, "")
		h.Call("POST", held+"/admin/force-release"+query, body).Want(t, 200, `"assigneeAgentId":null`)
	}
}
