package cli

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
)

// vendors are the makers of models whose programs call only their own vendor.
var vendors = map[string]string{"claude": "anthropic", "codex": "openai", "gemini": "google", "cursor-agent": "cursor"}

// cost returns the cost of a run that bypassed the gateway, as its tool reports it; nil if
// the tool reports nothing. out has the usage of this run alone.
func (a *Adapter) cost(inv company.Invocation, out company.Outcome, res Result) *entity.RunCost {
	if out.Usage == nil && res.CostUSD == "" {
		return nil
	}
	var of struct {
		Model    string `json:"model"`
		Provider string `json:"provider"`
	}
	_ = json.Unmarshal(inv.Config, &of) // a value of another type counts as absent
	c := &entity.RunCost{Model: cmp.Or(res.Model, of.Model)}
	if c.Provider = vendors[a.tool.Program()]; c.Provider == "" {
		head, _, named := strings.Cut(c.Model, "/")
		if c.Provider = cmp.Or(of.Provider, a.tool.Program()); of.Provider == "" && named {
			c.Provider = head
		}
	}
	if out.Usage != nil {
		c.Usage = *out.Usage
	}
	switch {
	case res.Subscription:
		c.BillingType, c.Priced = "subscription_included", true
	default:
		c.BillingType = "metered_api"
		c.Cost, c.Priced = dollars(res.CostUSD)
	}
	return c
}

// dollars converts an amount that a tool reported to micro-cents, rounded up; ok is false if
// it is not an amount of money.
func dollars(s json.Number) (m core.Money, ok bool) {
	const perDollar = 1e8
	f, err := strconv.ParseFloat(string(s), 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > core.MaxEventCents/100 {
		return 0, false
	}
	return core.Money(math.Ceil(f*perDollar - 1e-3)), true // without the error of a binary fraction
}
