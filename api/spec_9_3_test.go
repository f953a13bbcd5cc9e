package api_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// TestSpec_9_3_PermissionMatrix asks every cell of the matrix, row by row: what
// the board may do and what an agent may, whoever the board is.
func TestSpec_9_3_PermissionMatrix(t *testing.T) {
	t.Run("the machine's user", func(t *testing.T) {
		t.Parallel()
		h := apitest.NewHarness(t)
		permissionMatrix(t, h, ledger.CompanyID(h.Company("Acme")), true, nil)
	})
	for _, admin := range []bool{true, false} {
		for _, key := range []bool{true, false} {
			who := map[bool]string{true: "an administrator", false: "an owner"}[admin] + map[bool]string{true: " by key",
				false: " by session"}[key]
			t.Run(who, func(t *testing.T) {
				t.Parallel()
				h := apitest.Peopled(t)
				cookie := h.Admin()
				of := ledger.CompanyID(h.Call("POST", "/api/companies", `{"name":"Acme"}`, cookie, apitest.OwnOrigin).
					Want(t, 201, "").Field(t, "id"))
				outsider, _ := h.SignUp("Out")
				viewer, _ := h.Join(of, cookie, "View", people.RoleViewer)
				if !admin {
					cookie, _ = h.Join(of, cookie, "Own", people.RoleOwner)
				}
				board := []string{cookie, apitest.OwnOrigin}
				if key {
					board = []string{"Authorization: Bearer " + h.Call("POST", "/api/board-api-keys", `{"name":"k"}`, board...).
						Want(t, 201, "").Field(t, "token")}
				}
				permissionMatrix(t, h, of, admin, board, []string{viewer, apitest.OwnOrigin}, []string{outsider, apitest.OwnOrigin})
			})
		}
	}
}

// permissionMatrix asks as the board, which shows some headers, as an agent, and
// as others, who may do nothing.
func permissionMatrix(t *testing.T, h *apitest.Harness, of ledger.CompanyID, admin bool, board []string,
	others ...[]string) {
	asBoard := func(method, path, body string) apitest.Answer { return h.Call(method, path, body, board...) }
	in := "/api/companies/" + string(of)
	asBoard("PATCH", in, `{"requireBoardApprovalForNewAgents":true,"requireBoardApprovalForCeoStrategy":false}`).
		Want(t, 200, "")
	hire := func(body string) string {
		a := asBoard("POST", in+"/agent-hires", body).Want(t, 201, "")
		approval := a.Decode(t).(map[string]any)["approval"].(map[string]any)["id"].(string)
		asBoard("POST", "/api/approvals/"+approval+"/approve", `{}`).Want(t, 200, "")
		return a.Decode(t).(map[string]any)["agent"].(map[string]any)["id"].(string)
	}
	boss := hire(`{"name":"Boss","role":"ceo"}`)
	worker := hire(`{"name":"Worker","reportsTo":"` + boss + `"}`)
	peer := hire(`{"name":"Peer"}`)
	key := "Authorization: Bearer " + asBoard("POST", "/api/agents/"+boss+"/keys", `{"name":"k"}`).Want(t, 201, "").
		Field(t, "token")
	approval := asBoard("POST", in+"/approvals", `{"type":"request_board_approval","payload":{"title":"x"}}`).
		Want(t, 201, "").Field(t, "id")
	made := func(who string) string {
		return asBoard("POST", in+"/issues", `{"title":"Task of `+who+`"}`).Want(t, 201, "").Field(t, "id")
	}
	run := "X-Paperclip-Run-Id: " + h.Running(of, boss, board...)
	const cost = `"provider":"p","model":"m","inputTokens":1,"outputTokens":1,"costCents":1,` +
		`"occurredAt":"2026-11-21T03:00:00.000Z"}`
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
		{"Force reassign task: give one that nobody works on", "PATCH", "/api/issues/" + made("nobody"),
			`{"assigneeAgentId":"` + worker + `"}`, 200, 200},
		{"Approve requests", "POST", "/api/approvals/" + approval + "/approve", `{}`, 200, 403},
		{"Report cost", "POST", in + "/cost-events", `{"agentId":"` + boss + `",` + cost, 201, 201},
		{"Report cost of another", "POST", in + "/cost-events", `{"agentId":"` + peer + `",` + cost, 201, 403},
		{"Set company budget", "PATCH", in + "/budgets", `{"budgetMonthlyCents":100000}`, 200, 403},
		{"Set subordinate budget", "PATCH", "/api/agents/" + worker + "/budgets", `{"budgetMonthlyCents":1000}`, 200, 200},
		{"Set another's budget", "PATCH", "/api/agents/" + peer + "/budgets", `{"budgetMonthlyCents":1000}`, 200, 403},
	} {
		if a := h.Call(c.method, c.path, strings.ReplaceAll(c.body, "WHO", "an agent"), key, run); a.Status != c.agent {
			t.Errorf("%s by an agent: %d %.300s, want %d", c.row, a.Status, a.Body, c.agent)
		}
		for _, other := range others {
			if a := h.Call(c.method, c.path, strings.ReplaceAll(c.body, "WHO", "nobody"), other...); a.Status != 403 &&
				a.Status != 404 {
				t.Errorf("%s by %s: %d %.300s, want a refusal", c.row, other[0], a.Status, a.Body)
			}
		}
		if c.row == "Create company" && !admin {
			c.board = 403
		}
		if a := asBoard(c.method, c.path, strings.ReplaceAll(c.body, "WHO", "the board")); a.Status != c.board {
			t.Errorf("%s by the board: %d %.300s, want %d", c.row, a.Status, a.Body, c.board)
		}
	}
	hired := h.Call("POST", in+"/agent-hires", `{"name":"Asked"}`, key, run).Want(t, 201, `"pending_approval"`)
	if hired.Decode(t).(map[string]any)["approval"] == nil {
		t.Error("an agent's hire needs no approval")
	}
}
