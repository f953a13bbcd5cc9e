package apitest

import (
	"fmt"

	"github.com/selvage-mesh/selvage/ledger"
)

// NewAgent makes an agent that runs a shell script, and returns its ID.
func (h *Harness) NewAgent(of ledger.CompanyID, name, script string) string {
	h.T.Helper()
	return h.Call("POST", "/api/companies/"+string(of)+"/agents",
		fmt.Sprintf(`{"name":%q,"role":"engineer","adapterType":"process","adapterConfig":{"command":"/bin/sh",`+
			`"args":["-c",%q],"timeoutSec":120,"graceSec":1}}`, name, script)).Want(h.T, 201, "").Field(h.T, "id")
}

// Assign makes an issue for an agent, and returns its ID.
func (h *Harness) Assign(of ledger.CompanyID, agent, title string) string {
	h.T.Helper()
	return h.Call("POST", "/api/companies/"+string(of)+"/issues",
		fmt.Sprintf(`{"title":%q,"status":"todo","assigneeAgentId":%q}`, title, agent)).
		Want(h.T, 201, "").Field(h.T, "id")
}
