package onboard

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/cmd/node/localmodel"
	"github.com/selvage-mesh/selvage/company/money"
)

// A way is how an agent can work here.
type way struct {
	name  string // by which it is chosen: claude_local, ollama, OPENAI_API_KEY, demo
	what  string // for people, with where it is
	known bool   // it may be taken without a question: nothing of the user's is stored for it
	// set makes ready what the way needs and tests it, and returns how an agent is to be configured.
	set func() (work, error)
}

// work is how an agent works.
type work struct {
	adapter string
	config  map[string]any
	labels  []string // that a node must have for its runs
	on      string   // for people
}

// maxListedModels bounds the models that are named of one server.
const maxListedModels = 3

// ways looks what there is to work with, the best first; the demo is always there.
func (o *onboarding) ways() (out []way, err error) {
	rows, err := localmodel.Offers(o.cmd.Context(), o.c, localmodel.Look{Port: localmodel.Port})
	if err != nil {
		return nil, err
	}
	out = append(out, o.programs(rows)...)
	upstreams, err := o.upstreams()
	if err != nil {
		return nil, err
	}
	out = append(out, upstreams...)
	for _, s := range localmodel.Servers(rows) {
		if !slices.ContainsFunc(out, func(w way) bool { return strings.Contains(w.what, s.Offer.BaseURL) }) {
			out = append(out, o.server(s))
		}
	}
	out = append(out, o.keys(rows)...)
	return append(out, way{name: demo, what: "a demo that needs no model: it reports what it sees", known: true,
		set: func() (work, error) {
			return work{adapter: "wasm", config: map[string]any{"env": map[string]any{"AGENT_DEMO": "1"}},
				on: "the demo, which needs no model"}, nil
		}}), nil
}

const demo = "demo"

// programs are the vendors' command lines that nodes have.
func (o *onboarding) programs(rows []localmodel.NodeOffers) (out []way) {
	for _, k := range adapter.Kinds() {
		var nodes []string
		for _, r := range rows {
			if slices.ContainsFunc(r.Offers, func(f adapter.Offer) bool { return f.Adapter == k.Type }) {
				nodes = append(nodes, r.Name)
			}
		}
		if len(nodes) > 0 {
			out = append(out, way{name: k.Type, known: true, what: k.Name + " on " + strings.Join(nodes, ", "),
				set: func() (work, error) { return o.program(k) }})
		}
	}
	return out
}

// program tests a command line on the nodes. It asks models through the gateway where that
// has an upstream of a vendor, and else with what it is signed in with: its first call alone, of
// 30,000 tokens, takes a small model of the nodes' own machines minutes, and its model has another name
// than theirs.
func (o *onboarding) program(k adapter.Kind) (work, error) {
	var report struct {
		Status string
		Checks []adapter.Finding
	}
	if err := o.call(http.MethodPost, "/api/companies/"+o.made.ID+"/adapters/"+k.Type+"/test-environment",
		map[string]any{}, &report); err != nil {
		return work{}, err
	}
	w := work{adapter: k.Type, config: map[string]any{}, on: k.Name}
	for _, c := range report.Checks {
		if c.Level == "error" {
			return work{}, fmt.Errorf("%s: %s", k.Name, c.Message)
		}
	}
	rows, err := o.listed()
	if err != nil {
		return work{}, err
	}
	if !slices.ContainsFunc(rows, func(u upstream) bool { return !money.ModelKind(u.Kind).Local() }) {
		w.config["gateway"] = false
		w.on += ", with what it is signed in with"
	}
	return w, nil
}

// An upstream is one of the model gateway.
type upstream struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	BaseURL  string `json:"baseUrl"`
	Disabled bool   `json:"disabled"`
	root     string
}

// listed are the upstreams that the company or the mesh has already.
func (o *onboarding) listed() (out []upstream, err error) {
	for _, root := range []string{"/api/companies/" + o.made.ID, "/api/instance"} {
		var rows []upstream
		if err := o.call(http.MethodGet, root+"/model-providers", nil, &rows); err != nil {
			return nil, err
		}
		for _, u := range rows {
			if u.root = root; !u.Disabled {
				out = append(out, u)
			}
		}
	}
	return out, nil
}

// upstreams are ways by those that are listed.
func (o *onboarding) upstreams() (out []way, err error) {
	rows, err := o.listed()
	for _, u := range rows {
		out = append(out, way{
			name: u.Name, what: "the upstream " + u.Name + " at " + u.BaseURL, known: true,
			set: func() (work, error) { return o.upstream(u) },
		})
	}
	return out, err
}

// preferred are models that the program knows the price of, the cheapest that is good
// for work of a kind of upstream first.
var preferred = map[string][]string{
	"anthropic": {"claude-haiku-4-5", "claude-sonnet-4-5"}, "openai": {"gpt-5-mini", "gpt-5"},
	"gemini": {"gemini-2.5-flash", "gemini-2.5-pro"},
}

// upstream asks an upstream once for what it has, and takes a model of it.
func (o *onboarding) upstream(u upstream) (work, error) {
	var check struct {
		OK      bool
		Message string
		Models  []string
	}
	if err := o.call(http.MethodPost, u.root+"/model-providers/"+u.ID+"/test", map[string]any{}, &check); err != nil {
		return work{}, err
	}
	if !check.OK {
		return work{}, fmt.Errorf("%s: %s", u.Name, check.Message)
	}
	model := adapter.Offer{Models: check.Models}.Answers()
	for _, name := range slices.Backward(preferred[u.Kind]) {
		if slices.ContainsFunc(check.Models, func(m string) bool { return m == name || strings.HasPrefix(m, name+"-20") }) {
			model = name
		}
	}
	if model == "" {
		return work{}, fmt.Errorf("%s has no model that answers in words", u.Name)
	}
	return o.thinks(u.Name+"/"+model, nil), nil
}

// thinks is the default agent with a model.
func (o *onboarding) thinks(model string, labels []string) work {
	env := map[string]any{"AGENT_MODEL": model, "AGENT_ANSWER_STATUS": "done"}
	if localmodel.Small(model) {
		env["AGENT_TOOLS"], env["AGENT_MAX_TOKENS"] = "none", "300"
	}
	return work{adapter: "wasm", config: map[string]any{"env": env}, labels: labels, on: model}
}

// server is a server of models on the machines of nodes.
func (o *onboarding) server(s localmodel.Served) way {
	models := s.Offer.Models[:min(len(s.Offer.Models), maxListedModels)]
	what := s.Offer.Name + " at " + s.Offer.BaseURL + " on " + strings.Join(s.Nodes, ", ")
	if len(models) > 0 {
		what += ", with " + strings.Join(models, ", ")
	}
	return way{name: strings.ReplaceAll(strings.ToLower(s.Offer.Name), " ", "-"), what: what, known: true,
		set: func() (work, error) {
			rows, err := localmodel.Offers(o.cmd.Context(), o.c, localmodel.Look{Try: true, Port: localmodel.Port})
			if err != nil {
				return work{}, err
			}
			for _, now := range localmodel.Servers(rows) {
				if now.Offer.BaseURL != s.Offer.BaseURL {
					continue
				}
				if now.Offer.Problem != "" {
					return work{}, fmt.Errorf("%s: %s", now.Offer.Name, now.Offer.Problem)
				}
				o.say("   %s answered in %.1f s", now.Offer.Name, float64(now.Offer.TookMs)/1000)
				name, err := localmodel.Register(o.cmd.Context(), o.c, now)
				var labels []string
				if len(now.Missing) > 0 {
					labels = []string{localmodel.Label(now)}
				}
				return o.thinks(name+"/"+now.Offer.Answers(), labels), err
			}
			return work{}, fmt.Errorf("%s does not answer any more", s.Offer.Name)
		}}
}

// keys are the variables with keys: of the node that answers, of other nodes, which
// are only told, and of the shell. A key is kept, sealed, when the user says so.
func (o *onboarding) keys(rows []localmodel.NodeOffers) (out []way) {
	here := map[string]bool{}
	for _, r := range rows {
		for _, f := range r.Offers {
			switch {
			case f.Kind != "key":
			case r.Here:
				here[f.Name] = true
				out = append(out, way{name: f.Name, what: "a key in the variable " + f.Name + " of node " + r.Name,
					set: func() (work, error) { return o.keep(adapter.KeyVariable{Name: f.Name, Provider: f.Provider}, "") }})
			default:
				o.say("   node %s has a key in its variable %s: to keep it, ask that node (--api)", r.Name, f.Name)
			}
		}
	}
	for _, k := range adapter.Keys(os.Environ()) {
		if !here[k.Name] {
			out = append(out, way{name: k.Name, what: "a key in the variable " + k.Name + " of your shell",
				set: func() (work, error) { return o.keep(k, os.Getenv(k.Name)) }})
		}
	}
	return out
}

// keep makes an upstream of a key: the node's own when value is "". The upstream is at the
// vendor's address, or where the same environment says.
func (o *onboarding) keep(k adapter.KeyVariable, value string) (work, error) {
	var u upstream
	var err error
	if u.root = "/api/instance"; value == "" {
		err = o.call(http.MethodPost, u.root+"/model-providers/from-environment", map[string]any{"variable": k.Name}, &u)
	} else {
		body := map[string]any{"name": k.Provider, "kind": k.Provider, "apiKey": value}
		if at := os.Getenv(k.Base); k.Base != "" && at != "" {
			body["baseUrl"] = at
		}
		err = o.call(http.MethodPost, u.root+"/model-providers", body, &u)
	}
	if err != nil {
		return work{}, err
	}
	w, err := o.upstream(u)
	if err != nil {
		if gone := o.call(http.MethodDelete, u.root+"/model-providers/"+u.ID, nil, nil); gone != nil {
			return work{}, errors.Join(err, fmt.Errorf("remove the upstream %s, which has this key: %w", u.Name, gone))
		}
		o.say("   the key of %s is not kept", k.Name)
		return work{}, err
	}
	o.say("   the key of %s is kept, sealed, as the upstream %s; selvage model provider remove %s --mesh takes it away",
		k.Name, u.Name, u.Name)
	return w, nil
}
