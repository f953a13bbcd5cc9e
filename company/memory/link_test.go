package memory_test

import (
	"fmt"
	"testing"

	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/ledger"
)

// Links are refused by name where they do not fit, a record has a bounded number of them,
// the best ones, and both sides always tell the same.
func TestLinksAreBoundedAndMutual(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	var ids []string
	for n := range memory.MaxLikes + 5 {
		id := d.ID()
		d.Must(t, companytest.Board, memory.KindAdd, memory.Save{ID: id, Text: new(fmt.Sprint("record ", n))}, nil)
		ids = append(ids, id)
	}
	refused := func(p memory.Link, code ledger.Code, says string) {
		t.Helper()
		companytest.WantRefusal(t, d.ByNode("n1", memory.KindLink, p), code, says)
	}
	pair := func(a, b int, weight int64) memory.Pair { return memory.Pair{A: ids[a], B: ids[b], Weight: weight} }
	refused(memory.Link{After: 3, Through: 3, Renewed: ids[:1]}, ledger.Conflict,
		"changes up to 0 were looked at, not up to 3")
	refused(memory.Link{Through: 1000, Renewed: ids[:1]}, ledger.Invalid, "through: there is no such change")
	refused(memory.Link{}, ledger.Invalid, fmt.Sprintf("renewed and pairs: 1 to %d records, at most %d pairs",
		memory.MaxLinked, memory.MaxPairs))
	refused(memory.Link{Pairs: []memory.Pair{pair(0, 1, memory.LeastLike-1)}}, ledger.Invalid,
		fmt.Sprintf("weight: %d to 1000", memory.LeastLike))
	refused(memory.Link{Pairs: []memory.Pair{pair(0, 1, 1001)}}, ledger.Invalid, fmt.Sprintf("weight: %d to 1000",
		memory.LeastLike))

	link := func(p memory.Link) {
		t.Helper()
		p.After = memory.LinkingOf(d.Tx, d.Company).Through
		p.Through = p.After
		if err := d.ByNode("n1", memory.KindLink, p); err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; n < len(ids); n++ {
		link(memory.Link{Pairs: []memory.Pair{pair(0, n, int64(700+n)), {A: ids[n], B: ids[n], Weight: 900},
			{A: ids[n], B: companytest.UID(7), Weight: 900}}})
	}
	if got := memory.Likes(d.Tx, d.Company, ids[0]); got != memory.MaxLikes {
		t.Errorf("%d likes, want %d", got, memory.MaxLikes)
	}
	link(memory.Link{Pairs: []memory.Pair{pair(0, 1, 700)}}) // weaker than all
	for n := 1; n < len(ids); n++ {
		want := 0
		if n >= len(ids)-memory.MaxLikes {
			want = 1
		}
		if got := memory.Likes(d.Tx, d.Company, ids[n]); got != want {
			t.Errorf("record %d has %d likes, want %d", n, got, want)
		}
	}
	link(memory.Link{Renewed: []string{ids[0]}})
	for n := range ids {
		if got := memory.Likes(d.Tx, d.Company, ids[n]); got != 0 {
			t.Errorf("record %d still has %d likes", n, got)
		}
	}
}
