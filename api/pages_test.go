package api_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Every call that the board's pages make, by page. {c} is a company, {a} an
// agent, {i} an issue, {p} a project, {g} a goal, {r} a run.
var pageCalls = map[string]string{
	"shell": `/api/health /api/auth/get-session /api/companies /api/adapters /api/instance/settings/general ` +
		`/api/instance/settings/experimental
		/api/plugins/ui-contributions /api/sidebar-preferences/me /api/announcements/current
		{c}/approvals {c}/dashboard {c}/heartbeat-runs {c}/inbox-dismissals {c}/issues {c}/join-requests ` +
		`{c}/live-runs {c}/projects
		{c}/resource-memberships/me {c}/routines {c}/sidebar-preferences/me {c}/skills`,
	"dashboard": `{c}/agents {c}/activity?limit=10 {c}/user-directory`,
	"issues":    `{c}/agents {c}/labels {c}/user-directory`,
	"issue": `{i} {i}/comments?order=desc&limit=50 {i}/interactions {i}/attachments {i}/work-products ` +
		`{i}/live-runs {i}/feedback-votes
		{i}/tree-control/state {i}/tree-holds {i}/runner-goal {i}/documents {i}/activity {i}/runs {i}/active-run
		{i}/accepted-plan-decompositions {i}/recovery-actions {i}/approvals {i}/heartbeat-context ` +
		`{i}/cost-summary /api/cli-auth/me
		/api/heartbeat-runs/{r}/log`,
	"agents": `{c}/agents /api/instance/settings`,
	"agent": `/api/cli-auth/me /api/agents/{a} /api/agents/{a}/runtime-state /api/agents/{a}/skills ` +
		`/api/agents/{a}/task-sessions /api/agents/{a}/configuration /api/agents/{a}/config-revisions /api/agents/{a}/keys`,
	"costs": `{c}/budgets/overview {c}/costs/summary {c}/costs/by-agent {c}/costs/by-project ` +
		`{c}/costs/by-agent-model {c}/costs/by-provider {c}/costs/by-biller {c}/costs/window-spend ` +
		`{c}/costs/quota-windows {c}/costs/finance-summary {c}/costs/finance-by-biller {c}/costs/finance-by-kind ` +
		`{c}/costs/finance-events`,
	"approvals": `{c}/agents {c}/approvals`,
	"activity":  `{c}/audit/agent-actions {c}/user-directory {c}/timeline`,
	"goals":     `{c}/goals /api/goals/{g}`,
	"routines":  `{c}/folders?kind=routine {c}/routines`,
	"skills":    `{c}/folders?kind=skill {c}/skills`,
	"companies": `/api/companies/stats`,
	"projects":  `/api/projects/{p} /api/projects/{p}/workspaces`,
	"inbox":     `{c}/attention {c}/sidebar-badges`,
	"settings": `/api/plugins {c}/sidebar-badges {c}/members {c}/invites {c}/secrets {c}/environments ` +
		`{c}/execution-workspaces /api/board-api-keys`,
	"cli reads": `/api/openapi.json {c}/org {c}/org.svg /api/heartbeat-runs/{r} /api/heartbeat-runs/{r}/events ` +
		`/api/heartbeat-runs/{r}/issues /api/agents/{a}/wakeups`,
	"plan pages": `{i}/documents/plan {i}/documents/plan/annotations {i}/documents/plan/revisions ` +
		`{i}/feedback-traces {c}/feedback-traces {i}/execution-decisions {c}/search?q=plan`,
}

func TestEveryCallOfThePagesAnswers(t *testing.T) {
	h := apitest.NewWorkingHarness(t)
	of := ledger.CompanyID(h.Company("Pages"))
	agent := h.NewAgent(of, "Ada", "echo hello")
	issue := h.Assign(of, agent, "A task")
	goal := h.Call("POST", "/api/companies/"+string(of)+"/goals", `{"title":"Be seen"}`).Want(t, 201, "").Field(t, "id")
	project := h.Call("POST", "/api/companies/"+string(of)+"/projects", `{"name":"Board"}`).Want(t, 201, "").Field(t, "id")
	h.Rest()
	run := ""
	h.Until("a run", func(tx *ledger.Tx) bool {
		for r := range entity.RunsOfIssue(tx, of, issue) {
			run = r.ID
		}
		return run != ""
	})
	// Something of everything, so that no list is empty by chance.
	first := h.Call("PUT", "/api/issues/"+issue+"/documents/plan", `{"format":"markdown","body":"# Plan of work"}`).
		Want(t, 201, "").Field(t, "latestRevisionId")
	h.Call("POST", "/api/issues/"+issue+"/documents/plan/annotations",
		`{"baseRevisionId":"`+first+`","baseRevisionNumber":1,"body":"Why?",
		"selector":{"quote":{"exact":"Plan"},"position":{"normalizedStart":0,"normalizedEnd":4,"markdownStart":2,`+
			`"markdownEnd":6}}}`).Want(t, 201, "")
	h.Call("POST", "/api/issues/"+issue+"/comments", `{"body":"Look"}`).Want(t, 201, "")
	h.Call("POST", "/api/issues/"+issue+"/interactions",
		`{"kind":"request_confirmation","payload":{"version":1,"prompt":"Go?"}}`).Want(t, 201, "")
	h.Call("POST", "/api/issues/"+issue+"/tree-holds", `{"mode":"pause"}`).Want(t, 200, "")
	h.Call("PUT", "/api/companies/"+string(of)+"/resource-memberships/me/agents/"+agent, `{"starred":true}`).
		Want(t, 200, `"starredIds":["`+agent+`"]`)
	h.Call("PUT", "/api/companies/"+string(of)+"/resource-memberships/me/projects/"+project, `{"state":"left"}`).
		Want(t, 200, `"projectMemberships":{"`+project+`":"left"}`)
	h.Call("PUT", "/api/companies/"+string(of)+"/resource-memberships/me/projects/"+api.NewID(), `{"state":"left"}`).
		Want(t, 404, "Resource not found")
	h.Call("PUT", "/api/companies/"+string(of)+"/resource-memberships/me/projects/"+project, `{}`).
		Want(t, 400, "state or starred is needed")
	fill := strings.NewReplacer("{c}", "/api/companies/"+string(of), "{i}", "/api/issues/"+issue, "{a}", agent, "{g}",
		goal, "{p}", project, "{r}", run)
	for page, calls := range pageCalls {
		for _, call := range strings.Fields(calls) {
			a := h.Call("GET", fill.Replace(call), "")
			if a.Status != 200 {
				t.Errorf("%s: GET %s answered %d %s", page, call, a.Status, api.Cut(string(a.Body), 200))
			}
			if a.Status == 200 && len(a.Body) == 0 {
				t.Errorf("%s: GET %s answered nothing", page, call)
			}
		}
	}
	h.Call("POST", "/api/issues/"+issue+"/read", `{}`).Want(t, 200, "")
}
