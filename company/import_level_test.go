package company

import (
	"fmt"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// As long as older nodes may be there, an import is what they take, because they
// would refuse what others carry out.
func TestALargeImportWaitsForAllNodes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ledger.NewMeshTable[ledger.FeatureRaise]("feature").Put(d.tx, "-", ledger.FeatureRaise{Level: 1})
	of := func(n int) ImportCompany {
		var p ImportCompany
		for i := range n {
			p.Steps = append(p.Steps, ImportStep{Kind: "company.update", Payload: ledger.Marshal(SaveCompany{Name: new(fmt.Sprint("Acme ", i))})})
		}
		return p
	}
	d.must(t, board, "company.import", of(narrowImportSteps), nil)
	err := d.do(board, "company.import", of(narrowImportSteps+1), nil)
	if r := wantRefusal(t, err, ledger.Conflict, ""); r.ErrCode != "feature_level" || detail(t, r)["needed"] != float64(ledger.LevelWide) || detail(t, r)["limit"] != float64(narrowImportSteps) {
		t.Errorf("refused as %s %s", r.ErrCode, r.Detail)
	}
	wantRefusal(t, ImportFits(d.tx, MaxImportSteps+1), ledger.Unprocessable, "")
	ledger.NewMeshTable[ledger.FeatureRaise]("feature").Put(d.tx, "-", ledger.FeatureRaise{Level: ledger.LevelWide})
	d.must(t, board, "company.import", of(narrowImportSteps+1), nil)
	wantRefusal(t, ImportFits(d.tx, MaxImportSteps+1), ledger.Unprocessable, "")
}
