package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/examples/wasmkit"
)

// A tier is a grade of models, for tasks of a range of complexity.
type tier struct {
	name    string
	up      float64 // it is enough up to here
	context int     // tokens that are sent at most
}

var tiers = []tier{{"free", 0.3, 4096}, {"standard", 0.7, 16384}, {"premium", 0.9, 65536}, {"elite", 1, 131072}}

// A Route says which models are asked, in which order.
type Route struct {
	Tier        string   `json:"tier"`
	Models      []string `json:"models"`
	Reason      string   `json:"reason"`
	Escalated   bool     `json:"escalated"`
	Constrained bool     `json:"budget_constrained"`

	context int
}

// call asks the host; see wasmkit.Call.
type call func(method string, in, out any) error

// codeOf is the code of a refusal of the host, "" for other errors.
func codeOf(err error) string {
	var no *wasmkit.Error
	if errors.As(err, &no) {
		return no.Code
	}
	return ""
}

// maxFailover bounds the models that are tried for one call.
const maxFailover = 4

// route picks the tier that is enough, one higher where the last answers on such
// tasks were poor, and the models that stand for it.
func route(ask call, env func(string) string, p Profile, poor bool) Route {
	at := slices.IndexFunc(tiers, func(t tier) bool { return p.Complexity <= t.up })
	if at < 0 {
		at = len(tiers) - 1
	}
	r := Route{Reason: "complexity"}
	if poor && at < len(tiers)-1 {
		at, r.Escalated, r.Reason = at+1, true, "complexity, and earlier answers were poor"
	}
	r.Tier, r.context = tiers[at].name, tiers[at].context
	add := func(model string) {
		if model != "" && !slices.Contains(r.Models, model) && len(r.Models) < maxFailover {
			r.Models = append(r.Models, model)
		}
	}
	if m := env("AGENT_MODEL"); m != "" {
		add(m)
		r.Reason = "configured"
	}
	add(env("AGENT_MODEL_" + strings.ToUpper(r.Tier)))
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	_ = ask("model.list", nil, &list) // without a list what is configured is asked
	names := []string{}
	for _, m := range list.Data {
		if !strings.Contains(strings.ToLower(m.ID), "embed") { // which do not answer
			names = append(names, m.ID)
		}
	}
	// The tier itself, then lower ones, then higher ones, then whatever there is.
	for i := at; i >= 0; i-- {
		if name := "tier/" + tiers[i].name; slices.Contains(names, name) {
			add(name)
		}
	}
	for _, t := range tiers[at:] {
		if name := "tier/" + t.name; slices.Contains(names, name) {
			add(name)
		}
	}
	for _, name := range names {
		if !strings.ContainsAny(name, "*") {
			add(name)
		}
	}
	return r
}
