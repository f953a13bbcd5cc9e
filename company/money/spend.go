package money

import (
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// What the model gateway and the purse of a node say to each other stands
// here, below both: the gateway asks before a metered call leaves and tells
// afterwards what it came to; the purse sees to it that the money is there.

// A SpendAsk asks for the money of one call.
type SpendAsk struct {
	Company ledger.CompanyID
	Agent   string
	// What the call is for, "" for none. Project follows from Issue when it is
	// empty; a Run must be running on this node.
	Project, Issue, Goal, Run, BillingCode string
	// Allowance follows from Run.
	Allowance string
	// Want is the worst case of the call at the price of now. At 0 the call has
	// no price; it is asked for all the same, since a stopped agent makes none.
	Want core.Money
	// Least is the smallest amount that is of use; 0 means Want.
	Least core.Money
	// Provider and Model are what the call is booked under when nobody tells
	// what it came to; "" for unknown.
	Provider, Model string
}

// A SpendGrant is money that was set aside for one call.
type SpendGrant struct {
	ID          string // of the call and of its cost event
	Reservation string
	Amount      core.Money // Least to Want; the call may not cost more
	Until       time.Time  // no call begins under the grant from here on
	Ask         SpendAsk   // with what follows from it filled in
}

// A SpendUse is what a call came to.
type SpendUse struct {
	Provider, Model     string
	Biller, BillingType string // "": the provider, metered_api
	InputTokens         int64
	CachedInputTokens   int64
	OutputTokens        int64
	// Cost is by the price table, or by the bill of the upstream. What is beyond the grant, because an upstream
	// did more than it was asked for, is booked as reported, not as metered.
	Cost       core.Money
	Unsent     bool      // the call never left; all of the grant is given back
	OccurredAt time.Time // zero: now
}
