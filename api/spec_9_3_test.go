package api

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/people"
)

// TestSpec_9_3_PermissionMatrix asks every cell of the matrix, row by row: what
// the board may do and what an agent may, whoever the board is.
func TestSpec_9_3_PermissionMatrix(t *testing.T) {
	t.Run("the machine's user", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		permissionMatrix(t, h, h.company("Acme"), true, nil)
	})
	for _, admin := range []bool{true, false} {
		for _, key := range []bool{true, false} {
			who := map[bool]string{true: "an administrator", false: "an owner"}[admin] + map[bool]string{true: " by key", false: " by session"}[key]
			t.Run(who, func(t *testing.T) {
				t.Parallel()
				h := peopled(t)
				cookie := h.admin()
				of := h.call("POST", "/api/companies", `{"name":"Acme"}`, cookie, ownOrigin).want(t, 201, "").field(t, "id")
				outsider, _ := h.signUp("Out")
				viewer, _ := h.join(of, cookie, "View", people.RoleViewer)
				if !admin {
					cookie, _ = h.join(of, cookie, "Own", people.RoleOwner)
				}
				board := []string{cookie, ownOrigin}
				if key {
					board = []string{"Authorization: Bearer " + h.call("POST", "/api/board-api-keys", `{"name":"k"}`, board...).want(t, 201, "").field(t, "token")}
				}
				permissionMatrix(t, h, of, admin, board, []string{viewer, ownOrigin}, []string{outsider, ownOrigin})
			})
		}
	}
}

// permissionMatrix asks as the board, which shows some headers, as an agent, and
// as others, who may do nothing.
func permissionMatrix(t *testing.T, h *harness, of string, admin bool, board []string, others ...[]string) {
	asBoard := func(method, path, body string) answer { return h.call(method, path, body, board...) }
	in := "/api/companies/" + of
	asBoard("PATCH", in, `{"requireBoardApprovalForNewAgents":true,"requireBoardApprovalForCeoStrategy":false}`).want(t, 200, "")
	hire := func(body string) string {
		a := asBoard("POST", in+"/agent-hires", body).want(t, 201, "")
		approval := a.decode(t).(map[string]any)["approval"].(map[string]any)["id"].(string)
		asBoard("POST", "/api/approvals/"+approval+"/approve", `{}`).want(t, 200, "")
		return a.decode(t).(map[string]any)["agent"].(map[string]any)["id"].(string)
	}
	boss := hire(`{"name":"Boss","role":"ceo"}`)
	worker := hire(`{"name":"Worker","reportsTo":"` + boss + `"}`)
	peer := hire(`{"name":"Peer"}`)
	key := "Authorization: Bearer " + asBoard("POST", "/api/agents/"+boss+"/keys", `{"name":"k"}`).want(t, 201, "").field(t, "token")
	approval := asBoard("POST", in+"/approvals", `{"type":"request_board_approval","payload":{"title":"x"}}`).want(t, 201, "").field(t, "id")
	made := func(who string) string {
		return asBoard("POST", in+"/issues", `{"title":"Task of `+who+`"}`).want(t, 201, "").field(t, "id")
	}
	run := "X-Paperclip-Run-Id: " + h.running(of, boss, board...)
	const cost = `"provider":"p","model":"m","inputTokens":1,"outputTokens":1,"costCents":1,"occurredAt":"2026-11-21T03:00:00.000Z"}`
	for _, c := range []struct {
		row, method, path, body string
		board, agent            int
	}{
		{"Create company", "POST", "/api/companies", `{"name":"Other"}`, 201, 403},
		{"Hire: by request", "POST", in + "/agent-hires", `{"name":"New"}`, 201, 201},
		{"Create agent: directly", "PATCH", in, `{"requireBoardApprovalForNewAgents":false}`, 200, 403},
		{"Create agent: directly", "POST", in + "/agents", `{"name":"Direct"}`, 201, 403},
		{"Pause agent", "POST", "/api/agents/" + peer + "/pause", `{}`, 200, 403},
		{"Resume agent", "POST", "/api/agents/" + peer + "/resume", `{}`, 200, 403},
		{"Create task", "POST", in + "/issues", `{"title":"A task of WHO"}`, 201, 201},
		{"Update task", "PATCH", "/api/issues/" + made("the board"), `{"title":"Renamed"}`, 200, 200},
		{"Force reassign task: free it", "POST", "/api/issues/" + made("somebody") + "/admin/force-release", ``, 200, 403},
		{"Force reassign task: give one that nobody works on", "PATCH", "/api/issues/" + made("nobody"), `{"assigneeAgentId":"` + worker + `"}`, 200, 200},
		{"Approve requests", "POST", "/api/approvals/" + approval + "/approve", `{}`, 200, 403},
		{"Report cost", "POST", in + "/cost-events", `{"agentId":"` + boss + `",` + cost, 201, 201},
		{"Report cost of another", "POST", in + "/cost-events", `{"agentId":"` + peer + `",` + cost, 201, 403},
		{"Set company budget", "PATCH", in + "/budgets", `{"budgetMonthlyCents":100000}`, 200, 403},
		{"Set subordinate budget", "PATCH", "/api/agents/" + worker + "/budgets", `{"budgetMonthlyCents":1000}`, 200, 200},
		{"Set another's budget", "PATCH", "/api/agents/" + peer + "/budgets", `{"budgetMonthlyCents":1000}`, 200, 403},
	} {
		if a := h.call(c.method, c.path, strings.ReplaceAll(c.body, "WHO", "an agent"), key, run); a.status != c.agent {
			t.Errorf("%s by an agent: %d %.300s, want %d", c.row, a.status, a.body, c.agent)
		}
		for _, other := range others {
			if a := h.call(c.method, c.path, strings.ReplaceAll(c.body, "WHO", "nobody"), other...); a.status != 403 && a.status != 404 {
				t.Errorf("%s by %s: %d %.300s, want a refusal", c.row, other[0], a.status, a.body)
			}
		}
		if c.row == "Create company" && !admin {
			c.board = 403
		}
		if a := asBoard(c.method, c.path, strings.ReplaceAll(c.body, "WHO", "the board")); a.status != c.board {
			t.Errorf("%s by the board: %d %.300s, want %d", c.row, a.status, a.body, c.board)
		}
	}
	hired := h.call("POST", in+"/agent-hires", `{"name":"Asked"}`, key, run).want(t, 201, `"pending_approval"`)
	if hired.decode(t).(map[string]any)["approval"] == nil {
		t.Error("an agent's hire needs no approval")
	}
}
