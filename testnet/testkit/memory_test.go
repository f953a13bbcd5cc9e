package testkit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/node"
)

type memoriesFound struct {
	Results []struct {
		Memory struct{ ID, Text string }
	}
	Considered int
	Height     uint64
}

// remember adds a memory at a node.
func (b *Bed) remember(on int, of ledger.CompanyID, text string) (id string) {
	b.t.Helper()
	var row struct{ ID string }
	b.Must(on, "POST", "/api/v1/memory", map[string]any{"companyId": of, "text": text}, &row)
	return row.ID
}

// The leader's mind links memories that are alike, and every node tells of the link. A node
// that is cut off answers searches with the height that it has, and finds the rest when it
// is back.
func TestMemoriesOnAMesh(t *testing.T) {
	t.Parallel()
	cuts := []*Cut{{}, {}, {}}
	b := Mesh(t, 3, func(i int, c *node.Config) { c.Conn, c.Mind = cuts[i], node.MindOn })
	of := b.Company("Acme")
	first := b.remember(0, of, "Globex wants all of its invoices printed on blue paper")
	second := b.remember(1, of, "Globex wants all its invoices on blue paper")
	b.remember(2, of, "The forklift in hall 3 has a flat tyre")
	link := "memory:" + second + " correlates memory:" + first
	back := "memory:" + first + " correlates memory:" + second
	b.Until("every node tells that two memories are alike", func() bool {
		for on := range b.Nodes {
			edges := b.edgesOf(on, "/api/v1/why/memory:"+first)
			if !slices.Contains(edges, link) && !slices.Contains(edges, back) {
				return false
			}
		}
		return true
	})
	leads := 0
	for on := range b.Nodes {
		m := b.fields(on, "/api/v1/mind")
		if m["calibration"] == nil && m["state"] == "off" {
			t.Errorf("n%d: the mind is off", on+1)
		}
		if m["leads"] == true {
			leads++
		} else if n := m["loop"].(map[string]any)["commits"]; fmt.Sprint(n) != "0" {
			t.Errorf("n%d does not lead and commits %v links", on+1, n)
		}
	}
	if leads != 1 {
		t.Errorf("%d minds lead", leads)
	}

	away := (b.Leader() + 1) % 3
	here := (away + 1) % 3
	before := b.find(away, of, "paper")
	cuts[away].Off()
	b.remember(here, of, "Initech wants its invoices on recycled paper")
	behind, ahead := b.find(away, of, "recycled"), b.find(here, of, "recycled")
	if behind.Height < before.Height || behind.Height >= ahead.Height || behind.Considered != 3 || ahead.Considered != 4 ||
		ahead.Results[0].Memory.Text != "Initech wants its invoices on recycled paper" {
		t.Errorf("cut off it answers %+v, the others %+v", behind, ahead)
	}
	cuts[away].On()
	b.Until("it has caught up", func() bool {
		f := b.find(away, of, "recycled")
		return f.Considered == 4 && f.Height >= ahead.Height
	})
}

// find searches at a node, for what this node has.
func (b *Bed) find(on int, of ledger.CompanyID, words string) (f memoriesFound) {
	b.t.Helper()
	a, err := b.Ask(on, "POST", "/api/v1/memory/search", map[string]any{"companyId": of, "query": words,
		"by": "words"}, &f)
	if err != nil {
		b.t.Fatal(err, a)
	}
	return f
}

// One node at a time embeds what a company remembers, not each of them, and every node has
// the vectors. When a node dies, another one goes on.
func TestOneNodeEmbedsForAll(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	var mu sync.Mutex
	sent := map[string]int{}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, `{"error":{"message":"input: a list of texts is needed"}}`, http.StatusBadRequest)
			return
		}
		type row struct {
			Object    string    `json:"object"`
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		out := struct {
			Object string `json:"object"`
			Model  string `json:"model"`
			Data   []row  `json:"data"`
			Usage  struct {
				Prompt int `json:"prompt_tokens"`
				Total  int `json:"total_tokens"`
			} `json:"usage"`
		}{Object: "list", Model: "mini"}
		mu.Lock()
		for n, text := range in.Input {
			sent[text]++
			v := make([]float32, 16)
			for i, c := range []byte(text) {
				v[i%16] += float32(c)
			}
			out.Data = append(out.Data, row{"embedding", n, v})
			out.Usage.Prompt++
		}
		mu.Unlock()
		out.Usage.Total = out.Usage.Prompt
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(up.Close)
	b.Must(0, "POST", "/api/companies/"+string(of)+"/model-providers",
		map[string]any{"name": "box", "kind": "openai_compatible", "baseUrl": up.URL,
			"models": []map[string]string{{"name": "mini", "as": "mini"}}}, nil)
	b.Must(0, "PUT", "/api/companies/"+string(of)+"/model-prices", map[string]any{"model": "*", "input": 1_000_000}, nil)
	ada := b.staff(of, "Ada", "ceo", "")
	b.Must(0, "PUT", "/api/v1/memory/embedding?companyId="+string(of), map[string]any{"model": "mini",
		"agentId": ada.ID}, nil)
	texts := 0
	add := func(on int) {
		for range 5 {
			texts++
			b.remember(on, of, fmt.Sprintf("Fact %d about the kiln", texts))
		}
	}
	done := func(on int) bool {
		e, _ := b.fields(on, "/api/v1/memory/stats?companyId="+string(of))["embedding"].(map[string]any)
		return e != nil && e["model"] == "mini@1" && fmt.Sprint(e["done"]) == fmt.Sprint(texts)
	}
	for on := range b.Nodes {
		add(on)
	}
	b.Until("every node has every vector", func() bool { return done(0) && done(1) && done(2) })
	mu.Lock()
	for text, n := range sent {
		if n > 2 { // two nodes may send it when the turn passes at that moment, never all three
			t.Errorf("%q was sent %d times", text, n)
		}
	}
	if len(sent) != texts {
		t.Errorf("%d texts were sent, %d are there", len(sent), texts)
	}
	mu.Unlock()
	lost := (b.Leader() + 1) % 3
	b.Kill(lost)
	add((lost + 1) % 3)
	b.Until("the others embed what came after a node died", func() bool { return done((lost+1)%3) && done((lost+2)%3) })
}
