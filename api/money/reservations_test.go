package money_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestWhatIsHeldIsShownAndWrittenOff(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	agent := h.Call("POST", "/api/companies/"+string(of)+"/agents",
		`{"name":"Ada","role":"engineer","adapterType":"process","adapterConfig":{"command":"true"},`+
			`"budgetMonthlyCents":100}`).
		Want(t, 201, "").Field(t, "id")
	self := string(h.Node.Keys.ID())
	node, own := ledger.Actor{Type: "node", ID: self}, ledger.Credential{Kind: "node", ID: self}
	id := api.NewID()
	h.SubmitAs(node, own, "budget.reserve", of, money.Reserve{ID: id, Agent: agent, Want: core.Cents(40),
		Slice: core.Cents(60), Until: core.TimeOf(h.Node.Wall().Add(time.Minute))})

	base := "/api/companies/" + string(of)
	var rows []struct {
		ID, NodeName, Status   string
		Amount, Spent, Held    int64
		Slice, Lost, Uncertain bool
		CompanyID              ledger.CompanyID
		AgentID, Node          string
	}
	list := func(query string) int {
		t.Helper()
		rows = nil
		if err := json.Unmarshal(h.Call("GET", base+"/budgets/reservations"+query, "").Want(t, 200, "").Body,
			&rows); err != nil {
			t.Fatal(err)
		}
		return len(rows)
	}
	if list("") != 1 || rows[0].ID != id || rows[0].Held != 40 || rows[0].NodeName != "solo" || !rows[0].Slice ||
		rows[0].Lost {
		t.Fatalf("listed: %+v", rows)
	}
	h.Call("GET", base+"/budgets/overview", "").Want(t, 200, `"heldAmount":40`).Want(t, 200, `"reservationCount":1`)
	h.Call("GET", base, "").Want(t, 200, `"heldCents":40`)
	h.Call("GET", "/api/agents/"+agent, "").Want(t, 200, `"heldCents":40`)
	h.Call("GET", base+"/dashboard", "").Want(t, 200, `"heldCents":40`)

	off := base + "/budgets/reservations/" + id + "/write-off"
	h.Call("POST", off, `{}`).Want(t, 409, "Its node is there")
	h.Call("POST", off, `{"spentCents":-1}`).Want(t, 400, "spentCents")
	h.Call("POST", base+"/budgets/reservations/"+api.NewID()+"/write-off", `{}`).Want(t, 404, "Reservation not found")
	if list("?lost=true") != 0 {
		t.Errorf("lost: %+v", rows)
	}
	// The node begins another session without having told.
	h.Node.Sess = h.Node.Apply(0, 0, ledger.Command{Kind: ledger.KindSessionOpen, Actor: node, Credential: own,
		Payload: ledger.Marshal(ledger.SessionOpen{Incarnation: "life-2", Nonce: "second"})}).Height
	h.Node.Seq = 0
	if list("?lost=true") != 1 || !rows[0].Lost {
		t.Errorf("lost: %+v", rows)
	}
	h.Call("POST", off, `{"spentCents":41}`).Want(t, 422, "At most what is held")
	h.Call("POST", off, `{"spentCents":10,"note":"the provider's bill says so"}`).Want(t, 200, `"status":"written_off"`)
	h.Call("POST", off, `{}`).Want(t, 409, "written_off already")
	h.Call("GET", base+"/costs/summary", "").Want(t, 200, `"spendCents":10`)
	if body := string(h.Call("GET", base+"/activity", "").Want(t, 200, "budget.written_off").Body); !strings.Contains(body,
		"the provider's bill") {
		t.Errorf("the note is lost: %s", body)
	}
	if list("") != 0 {
		t.Errorf("left: %+v", rows)
	}
}
