package money

import (
	"cmp"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A reservation is money that a node has set aside, as it is shown.
type reservation struct {
	money.Reservation
	Held core.Money `json:"held"` // of amount, what is not spent
	Lost bool       `json:"lost"` // its node was lost or started anew, and has not told what it spent
	Node string     `json:"nodeName"`
}

// writeOff is the body that ends a reservation in its node's place.
type writeOff struct {
	SpentCents *int64          `json:"spentCents,omitempty" minimum:"0" maximum:"1000000000"`
	Note       api.Opt[string] `json:"note" maxLength:"2000"`
}

func ReservationRoutes() []api.Route {
	return []api.Route{{
		Method: "GET", Path: "/api/companies/{companyId}/budgets/reservations", Tag: "costs",
		Summary: "List the money that is set aside", Out: []reservation{}, Handle: listReservations,
		Query: []api.Param{{Name: "lost", Type: "boolean",
			Doc: "only that of nodes that are lost or do not know what they spent"}},
	}, {
		Method: "POST", Path: "/api/companies/{companyId}/budgets/reservations/{reservationId}/write-off", Tag: "costs",
		Who: api.Board,
		Summary: "End a reservation in the place of a node that is lost; without spentCents all that is held is booked as " +
			"spent", In: writeOff{}, Out: reservation{}, Handle: writeOffReservation,
	}}
}

func reservationShown(tx *ledger.Tx, r money.Reservation) reservation {
	out := reservation{Reservation: r, Held: r.Held(), Lost: money.ReservationLost(tx, r)}
	if n, ok := ledger.FindNode(tx, identity.NodeID(r.Node)); ok {
		out.Node = n.Name
	}
	return out
}

func listReservations(rc *api.Request) (r api.Response, err error) {
	only, err := rc.QueryBool("lost")
	if err != nil {
		return r, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		of, out := api.CompanyID(rc), []reservation{}
		if !entity.CompanyExists(tx, of) {
			return api.NotFound("Company not found")
		}
		for _, held := range money.OpenReservations(tx, of) {
			if shown := reservationShown(tx, held); !only || shown.Lost || held.Uncertain {
				out = append(out, shown)
			}
		}
		slices.SortStableFunc(out, func(a, b reservation) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
		r = api.OK(out)
		return nil
	})
	return r, err
}

func writeOffReservation(rc *api.Request) (api.Response, error) {
	in, err := api.Body[writeOff](rc)
	if err != nil {
		return api.Response{}, err
	}
	p := money.WriteOff{Reservation: strings.ToLower(rc.Path("reservationId")), Note: in.Note.Or("")}
	if in.SpentCents != nil {
		p.Spent = new(core.Cents(*in.SpentCents))
	}
	row, err := api.Do[money.Reservation](rc, money.KindBudgetWriteoff, api.CompanyID(rc), p)
	if err != nil {
		return api.Response{}, err
	}
	var r api.Response
	err = rc.View(func(tx *ledger.Tx) error {
		r = api.OK(reservationShown(tx, row))
		return nil
	})
	return r, err
}
