package mesh

import (
	"slices"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// maxLooked bounds the nodes that are asked for one request, all at once.
const maxLooked = 64

// offersTimeout bounds one request; nodes give up sooner.
const offersTimeout = 28 * time.Second

// askOffers is the body that asks what nodes offer to agents.
type askOffers struct {
	Try  bool `json:"try,omitempty"` // request a short answer from each model server
	Port int  `json:"port,omitempty" minimum:"0" maximum:"65535"`
}

// nodeOffers is what one node offers to agents.
type nodeOffers struct {
	Node   string          `json:"nodeId"`
	Name   string          `json:"name"`
	Here   bool            `json:"here"` // this is the answering node
	Offers []adapter.Offer `json:"offers"`
	Error  string          `json:"error,omitempty"`
}

// OfferRoutes list what the nodes offer to agents.
func OfferRoutes() []api.Route {
	return []api.Route{{Method: "POST", Path: "/api/instance/offers", Once: true, Tag: "mesh", Who: api.Admin,
		In: askOffers{}, Out: []nodeOffers{}, Timeout: offersTimeout,
		Summary: "Look what each node offers to agents: model servers, programs, and the names of variables with keys",
		Handle:  listOffers}}
}

func listOffers(rc *api.Request) (api.Response, error) {
	s := rc.Server
	in, err := api.Body[askOffers](rc)
	if err != nil {
		return api.Response{}, err
	}
	if s.Cfg.Offers == nil {
		return api.Response{}, api.Unavailable("This node can not look what there is")
	}
	out := []nodeOffers{}
	err = rc.View(func(tx *ledger.Tx) error {
		for _, n := range ledger.Roster(tx) {
			here := n.ID == s.Cfg.NodeID
			if !n.Member() || !here && s.Cfg.Alive != nil && !s.Cfg.Alive(n.ID) || len(out) == maxLooked {
				continue
			}
			out = append(out, nodeOffers{Node: string(n.ID), Name: n.Name, Here: here, Offers: []adapter.Offer{}})
		}
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	var wg sync.WaitGroup
	for i := range out {
		wg.Go(func() {
			found, err := s.Cfg.Offers(rc.HTTP.Context(), identity.NodeID(out[i].Node), adapter.Look{Try: in.Try, Port: in.Port})
			if err != nil {
				out[i].Error = "The node does not answer"
				return
			}
			out[i].Offers = append(out[i].Offers, found...)
		})
	}
	wg.Wait()
	slices.SortStableFunc(out, func(a, b nodeOffers) int { // this node first
		switch {
		case a.Here == b.Here:
			return 0
		case a.Here:
			return -1
		}
		return 1
	})
	return api.OK(out), nil
}
