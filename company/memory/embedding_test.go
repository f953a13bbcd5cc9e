package memory_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/ledger"
	index "github.com/selvage-mesh/selvage/memory"
)

// Vectors of a node's stand beside records that have none of their author's, under the
// model and the version that were chosen, and go with the text or the choice.
func TestNodesBringVectors(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	plain, own := d.ID(), d.ID()
	d.Must(t, companytest.Board, memory.KindAdd, memory.Save{ID: plain, Text: new("plain")}, nil)
	d.Must(t, companytest.Board, memory.KindAdd, memory.Save{ID: own, Text: new("own"), Model: "mine",
		Vector: vector(t, 16)}, nil)
	bring := func(model, id, text string, v index.Vector) error {
		return d.ByNode("n1", memory.KindEmbed,
			memory.Embed{Model: model, Vectors: []memory.Embedded{{ID: id, Text: memory.TextDigest(text), Vector: v}}})
	}
	companytest.WantRefusal(t, bring("box/mini@1", plain, "plain", vector(t, 8)), ledger.Conflict,
		`model: the company's is "" now`)
	d.Must(t, companytest.Board, memory.KindConfigure, memory.Configure{Model: "box/mini", Agent: ada}, nil)
	if e := memory.EmbeddingFor(d.Tx, d.Company); e.Name() != "box/mini@1" || string(e.Agent) != ada {
		t.Errorf("chosen is %+v", e)
	}
	none := "none of these memories needs such a vector"
	companytest.WantRefusal(t, bring("box/mini@1", own, "own", vector(t, 8)), ledger.Conflict, none)
	companytest.WantRefusal(t, bring("box/mini@1", plain, "another text", vector(t, 8)), ledger.Conflict, none)
	companytest.WantRefusal(t, bring("box/mini@1", plain, "plain", vector(t, 8)[:7]), ledger.Invalid,
		"vector: needs 8 to 4096 components")
	if err := bring("box/mini@1", plain, "plain", vector(t, 8)); err != nil {
		t.Fatal(err)
	}
	if r, _ := memory.Of(d.Tx, d.Company, plain); r.Model != "box/mini@1" || r.Vector.Dims() != 8 || !r.Embedded {
		t.Errorf("stored %+v", r)
	}
	companytest.WantRefusal(t, bring("box/mini@1", plain, "plain", vector(t, 8)), ledger.Conflict, none)

	// Another version takes the place, of another length if need be.
	d.Must(t, companytest.Board, memory.KindConfigure, memory.Configure{Model: "box/mini", Version: "2", Agent: ada}, nil)
	if err := bring("box/mini@2", plain, "plain", vector(t, 32)); err != nil {
		t.Fatal(err)
	}
	if n := memory.CountOf(d.Tx, d.Company); len(n.Models) != 2 ||
		n.Models[0] != (memory.Model{Name: "box/mini@2", Dims: 32, Records: 1}) ||
		n.Bytes != int64(len("plainown")+5+32+5+16) {
		t.Errorf("counted %+v", n)
	}
	// A new text has no vector; without a model they are taken away; the author's stays.
	d.Must(t, companytest.Board, memory.KindUpdate, memory.Save{ID: plain, Text: new("changed")}, nil)
	if r, _ := memory.Of(d.Tx, d.Company, plain); r.Model != "" || r.Vector != nil || r.Embedded {
		t.Errorf("a changed text keeps %+v", r)
	}
	if err := bring("box/mini@2", plain, "changed", vector(t, 32)); err != nil {
		t.Fatal(err)
	}
	d.Must(t, companytest.Board, memory.KindConfigure, memory.Configure{Inherit: true}, nil)
	if err := bring("", plain, "changed", nil); err != nil {
		t.Fatal(err)
	}
	companytest.WantRefusal(t, bring("", own, "own", nil), ledger.Conflict, none)
	if n := memory.CountOf(d.Tx, d.Company); len(n.Models) != 1 || n.Models[0].Name != "mine" {
		t.Errorf("counted %+v", n)
	}
}

// Without a choice of its own a company has that of the mesh, paid by who reports to nobody.
func TestTheChoiceOfTheMeshHolds(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	of := d.Company
	d.Company = ""
	d.Must(t, companytest.Board, memory.KindConfigure, memory.Configure{Model: "box/mini", Version: "q4"}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, memory.KindConfigure, memory.Configure{Model: "m", Agent: ada},
		nil), ledger.Invalid, "agentId: is of one company; a setting of the mesh has none")
	d.Company = of
	if e := memory.EmbeddingFor(d.Tx, of); e.Name() != "box/mini@q4" || string(e.Agent) != ada {
		t.Errorf("chosen is %+v", e)
	}
	d.Must(t, companytest.Board, memory.KindConfigure, memory.Configure{}, nil) // words alone
	if e := memory.EmbeddingFor(d.Tx, of); e.Name() != "" {
		t.Errorf("chosen is %+v", e)
	}
	for field, p := range map[string]memory.Configure{
		"model:":           {Model: "two words"},
		"model: the":       {Model: "a@b"},
		"version:":         {Model: "m", Version: "No Version"},
		"questionModel:":   {Model: "m", Question: "a b"},
		"agentId, version": {Agent: ada},
		"agentId: agent":   {Model: "m", Agent: d.ID()},
		"inherit:":         {Inherit: true, Model: "m"},
	} {
		if r := companytest.Refused(t, d.Do(companytest.Board, memory.KindConfigure, p,
			nil)); !strings.HasPrefix(r.Message, field) {
			t.Errorf("%s: %s", field, r.Message)
		}
	}
}
