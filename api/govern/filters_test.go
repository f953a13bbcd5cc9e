package govern_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
)

// A company chooses the filters. What they decide is in the refusal, in decisions, in receipts, in explain and in what
// the gate answers when it is only asked; replay covers it.
func TestACompanyChoosesTheFilters(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of, other := h.Company("Acme"), h.Company("Other")
	agent := func(body string) string {
		return h.Call("POST", "/api/companies/"+of+"/agents", body).Want(t, 201, "").Field(t, "id")
	}
	cleo := agent(`{"name":"Cleo","adapterType":"process"}`)
	ada := agent(`{"name":"Ada","adapterType":"process","reportsTo":"` + cleo + `"}`)
	asAda := "Authorization: Bearer " + h.Call("POST", "/api/agents/"+ada+"/keys", `{"name":"k"}`).Want(t, 201, "").
		Field(t, "token")
	const at = "/api/v1/govern/filters"
	label := "/api/companies/" + of + "/labels"
	h.Call("GET", at+"?companyId="+of, "").Want(t, 200, `"on":false,"minCut":0.3`)
	h.Call("POST", "/api/agents/"+cleo+"/pause", `{}`).Want(t, 200, "")
	h.Call("POST", label, `{"name":"before","color":"#ff0000"}`, asAda).Want(t, 201, "")
	h.Call("PUT", at+"?companyId="+of, `{"on":true,"minCut":1.5}`).Want(t, 400, "minCut")
	h.Call("PUT", at+"?companyId="+of, `{"on":true}`, asAda).Want(t, 403, "Board access required")
	h.Call("PUT", at, `{"on":true}`).Want(t, 400, "companyId: required")
	h.Call("PUT", at+"?companyId="+of, `{"on":true,"minCut":0.5,"floor":"0.1"}`).Want(t, 200, `"on":true`)

	h.Call("POST", label, `{"name":"one","color":"#ff0000"}`, asAda).
		Want(t, 403, "Denied by the filter FILTER-STRUCTURE of the company: The authority that reaches the agent "+
			"from the board is 0.4")
	ask := `{"action":"label.create","agent_id":"` + ada + `","context":{"company_id":"` + of + `"}}`
	h.Call("POST", "/api/v1/govern", ask).Want(t, 200, `"spoken_rules":["FILTER-STRUCTURE"]`)
	h.Call("POST", "/api/v1/govern/explain", ask).
		Want(t, 200, `"filter":"FILTER-STRUCTURE","decision":"deny","value":0.4,"limit":0.5`)
	h.Call("GET", "/api/v1/govern/decisions?rule=FILTER-STRUCTURE", "").Want(t, 200, `"branch":"filters"`)
	h.Call("POST", "/api/agents/"+cleo+"/resume", `{}`).Want(t, 200, "")
	h.Call("POST", label, `{"name":"two","color":"#ff0000"}`, asAda).Want(t, 201, "")

	list := h.Call("GET", "/api/v1/govern/receipts?companyId="+of, "").Want(t, 200, `"newest":2`)
	if n := strings.Count(string(list.Body), `"wrong":null`); n != 2 {
		t.Errorf("%d receipts are right: %s", n, list.Body)
	}
	h.Call("GET", "/api/v1/govern/receipts?companyId="+of+"&from=2&limit=1", "").Want(t, 200, `"sequence":2`)
	h.Call("GET", "/api/v1/govern/receipts?companyId="+other, "").Want(t, 200, `"newest":0`)
	h.Call("POST", "/api/v1/govern/replay", `{}`).Want(t, 200, `"differ":0,"receipts":2,"faults":[]`)
	h.Call("POST", "/api/v1/govern/replay", `{"sequence":2}`).Want(t, 200, `"receipts":1`)
	h.Call("POST", at+"/forget?companyId="+of, `{"agentId":"`+cleo+`"}`).
		Want(t, 409, "the filters keep nothing of the agent")
	h.Call("POST", at+"/forget?companyId="+of, `{"agentId":"`+ada+`"}`).Want(t, 200, `"agents":[]`)
	h.Call("PUT", at+"?companyId="+of, `{"on":false}`).Want(t, 200, `"on":false`)
}
