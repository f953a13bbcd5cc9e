package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// maxTexts bounds the texts of one [Gateway.Embed].
const maxTexts = 256

// ErrTexts says that an upstream will never accept these texts: one of them is too long for its
// model.
var ErrTexts = errors.New("the upstream does not take these texts")

// Embed returns the vectors of texts by a model, for a company and outside runs. who's agent
// pays, as for a call of its run. All texts are sent in one call.
func (g *Gateway) Embed(ctx context.Context, who Caller, model string, texts []string) ([][]float32, error) {
	if len(texts) == 0 || len(texts) > maxTexts {
		return nil, invalid("1 to %d texts are embedded at once", maxTexts)
	}
	who.Run = ""
	body, _ := json.Marshal(map[string]any{"model": model, "input": texts, "encoding_format": "float"}) // always encodes
	p, bad := planOf(embeddings, body)
	if bad != nil {
		return nil, bad
	}
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	default:
		return nil, refuse(503, "overloaded", "This node makes %d model calls at once already", maxCalls)
	}
	var w kept
	c := &call{g: g, who: who, d: embeddings, plan: p, w: &w}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	defer c.cancel(nil)
	defer context.AfterFunc(g.alive, func() { c.cancel(refuse(503, "closing", "The node is closing")) })()
	var err error
	if c.scene, err = g.sight(who); err != nil {
		return nil, err
	}
	if err := c.do(); err != nil {
		return nil, whyNot(err)
	}
	return vectorsOf(w.body.Bytes(), len(texts))
}

// whyNot marks refusals that the same texts would always get.
func whyNot(err error) error {
	r := asRefusal(err)
	if r.code == "upstream_invalid" {
		return errors.Join(ErrTexts, r)
	}
	return r
}

// vectorsOf reads an answer of embeddings.
func vectorsOf(body []byte, want int) ([][]float32, error) {
	garbage := refuse(502, "upstream_garbage", "The upstream sent what are no vectors of %d texts", want)
	var in struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &in) != nil || len(in.Data) != want {
		return nil, garbage
	}
	out := make([][]float32, want)
	for _, d := range in.Data {
		if d.Index < 0 || d.Index >= want || out[d.Index] != nil || len(d.Embedding) == 0 ||
			len(d.Embedding) != len(in.Data[0].Embedding) {
			return nil, garbage
		}
		out[d.Index] = d.Embedding
	}
	return out, nil
}

// kept stores the answer to a call for which no client waits.
type kept struct {
	head http.Header
	body bytes.Buffer
}

func (k *kept) Header() http.Header {
	if k.head == nil {
		k.head = http.Header{}
	}
	return k.head
}
func (k *kept) WriteHeader(int)             {}
func (k *kept) Write(b []byte) (int, error) { return k.body.Write(b) }

// readSight is the scene of a call that belongs to no run.
func (g *Gateway) readSight(who Caller) (s scene, err error) {
	if !g.conf.Holds() {
		return s, errLease
	}
	err = g.conf.View(func(tx *ledger.Tx) error {
		g.fill(tx, who.Company, &s)
		return nil
	})
	return s, err
}

// fill reads what a scene has of the mesh.
func (g *Gateway) fill(tx *ledger.Tx, of ledger.CompanyID, s *scene) {
	s.providers = money.UpstreamsOf(tx, of)
	if n, ok := ledger.FindNode(tx, identity.NodeID(g.conf.Self)); ok {
		s.labels = n.Labels
	}
	s.companys, s.everyone = money.ModelPricesOf(tx, of), money.ModelPricesOf(tx, "")
}

// Reaches returns which of the nodes may call an upstream of a company that serves embeddings
// under the name model.
func Reaches(tx *ledger.Tx, of ledger.CompanyID, model string, nodes []ledger.Node) (out []ledger.Node) {
	s := scene{providers: money.UpstreamsOf(tx, of)}
	for _, n := range nodes {
		s.labels = n.Labels
		if slices.ContainsFunc(s.targetsOf(model), func(t target) bool { _, ok := speaks(t.p, embeddings); return ok }) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b ledger.Node) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
