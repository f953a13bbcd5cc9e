package localmodel

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// Look is the request for nodes' offers.
type Look = adapter.Look

// NodeOffers is what one node offers.
type NodeOffers struct {
	Node   string          `json:"nodeId"`
	Name   string          `json:"name"`
	Here   bool            `json:"here"`
	Offers []adapter.Offer `json:"offers"`
	Error  string          `json:"error"`
}

// A Served is a model server and the nodes that find it on their own machine.
type Served struct {
	Offer   adapter.Offer
	Nodes   []string // names
	Missing []string // nodes that do not find it
}

// How often servers are tried that were only too slow: they may be loading their model. One that was
// started just now is waited for as long as a small board needs, some three minutes.
const (
	maxTries   = 3
	startTries = 9
)

// Offers asks the nodes for their offers, and retries while a server is only slow.
func Offers(ctx context.Context, c *cli.CLI, look Look) (rows []NodeOffers, err error) {
	return offers(ctx, c, look, maxTries)
}

func offers(ctx context.Context, c *cli.CLI, look Look, tries int) (rows []NodeOffers, err error) {
	for range tries {
		rows = nil
		if err := c.Call(ctx, http.MethodPost, "/api/instance/offers", look, &rows); err != nil {
			return nil, err
		}
		slow := slices.ContainsFunc(rows, func(r NodeOffers) bool {
			return slices.ContainsFunc(r.Offers, func(o adapter.Offer) bool {
				return strings.Contains(o.Problem, adapter.TooSlow)
			})
		})
		if !slow {
			break
		}
	}
	return rows, nil
}

func servers(ctx context.Context, c *cli.CLI, look Look, tries int) ([]Served, error) {
	rows, err := offers(ctx, c, look, tries)
	return Servers(rows), err
}

// Servers returns the servers in nodes' offers, each once.
func Servers(rows []NodeOffers) (out []Served) {
	for _, r := range rows {
		for _, o := range r.Offers {
			if o.Kind != "server" {
				continue
			}
			if n := slices.IndexFunc(out, func(s Served) bool { return s.Offer.BaseURL == o.BaseURL }); n >= 0 {
				out[n].Nodes = append(out[n].Nodes, r.Name)
				continue
			}
			out = append(out, Served{Offer: o, Nodes: []string{r.Name}})
		}
	}
	for n := range out {
		slices.Sort(out[n].Nodes)
		for _, r := range rows {
			if !slices.Contains(out[n].Nodes, r.Name) {
				out[n].Missing = append(out[n].Missing, r.Name)
			}
		}
	}
	return out
}

func find(served []Served, url string) *Served {
	if n := slices.IndexFunc(served, func(s Served) bool { return s.Offer.BaseURL == url }); n >= 0 {
		return &served[n]
	}
	return nil
}

// A provider is an upstream in the API's answers.
type provider struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	BaseURL string   `json:"baseUrl"`
	Labels  []string `json:"labels"`
}

// Register makes a server an upstream of the mesh, or keeps the existing one, and
// returns its name. If some nodes do not find the server, those that do get a label, and
// the upstream is restricted to them: its address is on each node's own machine.
func Register(ctx context.Context, c *cli.CLI, s Served) (name string, err error) {
	const all = "/api/instance/model-providers"
	var rows []provider
	if err := c.Call(ctx, http.MethodGet, all, nil, &rows); err != nil {
		return "", err
	}
	labels := []string{}
	if len(s.Missing) > 0 {
		labels = append(labels, Label(s))
		if err := label(ctx, c, s); err != nil {
			return "", err
		}
	}
	name = nameOf(s)
	for _, r := range rows {
		if r.BaseURL == s.Offer.BaseURL {
			return r.Name, c.Call(ctx, http.MethodPatch, all+"/"+r.ID, map[string]any{"labels": labels, "disabled": false}, nil)
		}
	}
	for taken := true; taken; {
		if taken = slices.ContainsFunc(rows, func(r provider) bool { return r.Name == name }); taken {
			name += "-2"
		}
	}
	body := map[string]any{"name": name, "kind": s.Offer.Provider, "baseUrl": s.Offer.BaseURL, "labels": labels,
		"free": true}
	if s.Offer.Provider == "openai_compatible" {
		models := []map[string]string{}
		for _, m := range s.Offer.Models {
			models = append(models, map[string]string{"name": m})
		}
		body["models"] = models
	}
	return name, c.Call(ctx, http.MethodPost, all, body, nil)
}

// unnamed matches characters that names of upstreams may not have.
var unnamed = regexp.MustCompile(`[^a-z0-9._-]+`)

func nameOf(s Served) string {
	if slices.Contains(s.Offer.Models, Name) {
		return "small"
	}
	return unnamed.ReplaceAllString(strings.ToLower(s.Offer.Name), "-")
}

// Label is the label of the nodes that find a server which others do not.
func Label(s Served) string { return labelKey(s) + "=yes" }

func labelKey(s Served) string { return "serves-" + nameOf(s) }

// label sets a server's label on the nodes that find it.
func label(ctx context.Context, c *cli.CLI, s Served) error {
	var members []struct{ ID, Name string }
	if err := c.Call(ctx, http.MethodGet, "/api/v1/mesh/members", nil, &members); err != nil {
		return err
	}
	for _, m := range members {
		if !slices.Contains(s.Nodes, m.Name) {
			continue
		}
		body := map[string]any{"labels": map[string]string{labelKey(s): "yes"}}
		if err := c.Call(ctx, http.MethodPatch, "/api/v1/mesh/nodes/"+m.ID, body, nil); err != nil {
			return err
		}
	}
	return nil
}

// answers reports whether a server has a list of models.
func answers(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/models", nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// sizes matches names of small models: up to three billion weights.
var sizes = regexp.MustCompile(`(?i)(^|[^0-9.])([0-9]{2,3}m|0?\.[0-9]+b|[1-3](\.[0-9]+)?b)([^a-z0-9]|$)`)

// Small reports whether a model, judged by its name, is too small to use tools well.
func Small(model string) bool { return sizes.MatchString(model) }
