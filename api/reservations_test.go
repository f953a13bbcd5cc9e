package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestWhatIsHeldIsShownAndWrittenOff(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := h.company("Acme")
	agent := h.call("POST", "/api/companies/"+of+"/agents", `{"name":"Ada","role":"engineer","adapterType":"process","adapterConfig":{"command":"true"},"budgetMonthlyCents":100}`).
		want(t, 201, "").field(t, "id")
	self := string(h.node.keys.ID())
	node, own := ledger.Actor{Type: "node", ID: self}, ledger.Credential{Kind: "node", ID: self}
	id := NewID()
	h.submitAs(node, own, "budget.reserve", of, money.Reserve{ID: id, Agent: agent, Want: core.Cents(40), Slice: core.Cents(60), Until: core.TimeOf(time.Now().Add(time.Minute))})

	base := "/api/companies/" + of
	var rows []struct {
		ID, NodeName, Status     string
		Amount, Spent, Held      int64
		Slice, Lost, Uncertain   bool
		CompanyID, AgentID, Node string
	}
	list := func(query string) int {
		t.Helper()
		rows = nil
		if err := json.Unmarshal(h.call("GET", base+"/budgets/reservations"+query, "").want(t, 200, "").body, &rows); err != nil {
			t.Fatal(err)
		}
		return len(rows)
	}
	if list("") != 1 || rows[0].ID != id || rows[0].Held != 40 || rows[0].NodeName != "solo" || !rows[0].Slice || rows[0].Lost {
		t.Fatalf("listed: %+v", rows)
	}
	h.call("GET", base+"/budgets/overview", "").want(t, 200, `"heldAmount":40`).want(t, 200, `"reservationCount":1`)
	h.call("GET", base, "").want(t, 200, `"heldCents":40`)
	h.call("GET", "/api/agents/"+agent, "").want(t, 200, `"heldCents":40`)
	h.call("GET", base+"/dashboard", "").want(t, 200, `"heldCents":40`)

	off := base + "/budgets/reservations/" + id + "/write-off"
	h.call("POST", off, `{}`).want(t, 409, "Its node is there")
	h.call("POST", off, `{"spentCents":-1}`).want(t, 400, "spentCents")
	h.call("POST", base+"/budgets/reservations/"+NewID()+"/write-off", `{}`).want(t, 404, "Reservation not found")
	if list("?lost=true") != 0 {
		t.Errorf("lost: %+v", rows)
	}
	// The node begins another session without having told.
	h.node.sess = h.node.apply(0, 0, ledger.Command{Kind: ledger.KindSessionOpen, Actor: node, Credential: own,
		Payload: ledger.Marshal(ledger.SessionOpen{Incarnation: "life-2", Nonce: "second"})}).Height
	h.node.seq = 0
	if list("?lost=true") != 1 || !rows[0].Lost {
		t.Errorf("lost: %+v", rows)
	}
	h.call("POST", off, `{"spentCents":41}`).want(t, 422, "At most what is held")
	h.call("POST", off, `{"spentCents":10,"note":"the provider's bill says so"}`).want(t, 200, `"status":"written_off"`)
	h.call("POST", off, `{}`).want(t, 409, "written_off already")
	h.call("GET", base+"/costs/summary", "").want(t, 200, `"spendCents":10`)
	if body := string(h.call("GET", base+"/activity", "").want(t, 200, "budget.written_off").body); !strings.Contains(body, "the provider's bill") {
		t.Errorf("the note is lost: %s", body)
	}
	if list("") != 0 {
		t.Errorf("left: %+v", rows)
	}
}
