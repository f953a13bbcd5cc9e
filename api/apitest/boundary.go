package apitest

import (
	"crypto/sha256"
	"net/http"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/ledger"
)

// PlantPerson makes the server remember a board key of a user.
func (h *Harness) PlantPerson(user string) (bearer string) {
	token := api.BoardTokenPrefix + user
	h.Keys.Keep(sha256.Sum256([]byte(token)), api.Holder{Actor: ledger.Actor{Type: "user", ID: user},
		Cred: ledger.Credential{Kind: "board_key", ID: api.NewID()}},
		h.Keys.Generation(), 0, h.Node.Wall())
	return "Authorization: Bearer " + token
}

// Plant adds a route to the table of a harness.
func (h *Harness) Plant(route api.Route) {
	h.Table = append(h.Table, route)
	h.Mux.HandleFunc(route.Method+" "+route.Path,
		func(w http.ResponseWriter, r *http.Request) { h.Server.Serve(&route, w, r) })
}

// ForgetRates lets everybody ask as if for the first time.
func (h *Harness) ForgetRates() {
	h.Limits.Mu.Lock()
	defer h.Limits.Mu.Unlock()
	h.Limits.Buckets = nil
}
