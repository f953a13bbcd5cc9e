package api

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	calls "github.com/selvage-mesh/selvage/adapter/service"
	"github.com/selvage-mesh/selvage/company/service"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/ledger"
)

// mostFault bounds what a caller reads of why a call has no result, in bytes.
const mostFault = 1000

// A ProviderRow is a process that provides a service.
type ProviderRow struct {
	calls.Standing
	Name    string `json:"node"`
	Address string `json:"address"`
}

// ProvidersOf returns the processes that provide a service now, with the names of their nodes.
func ProvidersOf(tx *ledger.Tx, s service.Service) (out []calls.Provider, nodes map[string]string) {
	nodes = map[string]string{}
	out = calls.ProvidersOf(tx, s)
	for _, p := range out {
		n, _ := ledger.FindNode(tx, identity.NodeID(p.Node))
		nodes[p.Node] = n.Name
	}
	return out, nodes
}

// Standings returns how providers stand as far as this node knows, and how they do together.
func Standings(rc *Request, providers []calls.Provider, nodes map[string]string) (rows []ProviderRow,
	health calls.Health) {
	rows = []ProviderRow{}
	r := rc.Server.Cfg.Services
	if r == nil {
		return rows, calls.Unknown
	}
	all := r.Standings(providers)
	for _, st := range all {
		rows = append(rows, ProviderRow{st, nodes[st.Node], kernel.Address{Node: nodes[st.Node],
			PID: kernel.PID(st.PID)}.String()})
	}
	return rows, calls.Overall(all)
}

// RefusedCall says to the caller why a call has no result.
func RefusedCall(err error) error {
	text := Cut(err.Error(), mostFault)
	switch {
	case errors.Is(err, calls.ErrNoMethod):
		return NotFound(text)
	case errors.Is(err, calls.ErrParams), errors.Is(err, calls.ErrRefused), errors.Is(err, calls.ErrTimeout),
		errors.Is(err, calls.ErrContract), errors.Is(err, calls.ErrLost):
		// Not 503: clients send that again by themselves, and a provider may have done it.
		return ledger.Refuse(ledger.Unprocessable, nil, "%s", text)
	}
	return Unavailable(text)
}

// CallService calls a method of a service at one of its providers, and returns the address of the one that answered.
func CallService(rc *Request, s service.Service, providers []calls.Provider, nodes map[string]string, method string,
	params json.RawMessage, timeout time.Duration) (a calls.Answer, by string, err error) {
	if a, err = rc.Server.Cfg.Services.Call(rc.Context(), s, providers, method, params, timeout); err != nil {
		return a, "", RefusedCall(err)
	}
	return a, kernel.Address{Node: nodes[a.By.Node], PID: kernel.PID(a.By.PID)}.String(), nil
}

// MethodsOf returns the methods of a service, with null for a schema that it does not have.
func MethodsOf(s service.Service) []service.Method {
	out := slices.Clone(s.Methods)
	for i := range out {
		for _, schema := range []*json.RawMessage{&out[i].Params, &out[i].Result} {
			if len(*schema) == 0 {
				*schema = json.RawMessage("null")
			}
		}
	}
	return out
}

// CallOffered calls a service of an app of the path's company.
// The caller has asked the rules.
func CallOffered(rc *Request, name, method string, params json.RawMessage,
	timeout time.Duration) (a calls.Answer, by string, err error) {
	if rc.Server.Cfg.Services == nil {
		return a, "", Unavailable("This node calls no services")
	}
	var s service.Service
	var providers []calls.Provider
	var nodes map[string]string
	err = rc.View(func(tx *ledger.Tx) error {
		var ok bool
		if s, ok = service.Of(tx, CompanyID(rc), name); !ok {
			return NotFound("Service not found")
		}
		providers, nodes = ProvidersOf(tx, s)
		return nil
	})
	if err != nil {
		return a, "", err
	}
	return CallService(rc, s, providers, nodes, method, params, timeout)
}
