package company

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

func TestDocumentsRefuseStaleWrites(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i := d.issue(t, CreateIssue{})
	save := func(base, body string) SaveDocument {
		return SaveDocument{Issue: i.ID, Key: "plan", ID: d.id(), Revision: d.id(), Format: "markdown", Body: body, Base: base}
	}
	wantRefusal(t, d.do(board, "document.save", save(uid(9), "x"), nil), ledger.Conflict, "Document does not exist yet")
	var first, second SavedDocument
	d.must(t, board, "document.save", save("", "one"), &first)
	if !first.Created || first.Document.Number != 1 {
		t.Fatalf("got %+v", first)
	}
	wantRefusal(t, d.do(board, "document.save", save("", "two"), nil), ledger.Conflict, "Document update requires baseRevisionId")
	wantRefusal(t, d.do(board, "document.save", save(uid(9), "two"), nil), ledger.Conflict, "Document was updated by someone else")
	d.must(t, board, "document.save", save(first.Document.Latest, "two"), &second)
	if second.Created || second.Document.Number != 2 || second.Was != first.Document.Latest || second.Document.Text(d.tx) != "two" {
		t.Fatalf("got %+v", second)
	}
	var third SavedDocument
	d.must(t, board, "document.restore", RestoreDocument{Issue: i.ID, Key: "plan", Revision: first.Document.Latest, ID: d.id()}, &third)
	if third.Document.Number != 3 || third.Document.Text(d.tx) != "one" {
		t.Errorf("restored %+v to %q", third, third.Document.Text(d.tx))
	}
	d.must(t, board, "document.lock", ChangeDocument{Issue: i.ID, Key: "plan"}, nil)
	wantRefusal(t, d.do(board, "document.save", save(third.Document.Latest, "x"), nil), ledger.Conflict, "Document is locked")
	d.must(t, board, "document.unlock", ChangeDocument{Issue: i.ID, Key: "plan"}, nil)
	for n := range KeptRevisions + 5 {
		doc, _ := DocumentOf(d.tx, i, "plan")
		d.must(t, board, "document.save", save(doc.Latest, strings.Repeat("x", n)), nil)
	}
	doc, _ := DocumentOf(d.tx, i, "plan")
	if list := RevisionsOfDocument(d.tx, doc); len(list) != KeptRevisions || list[0].ID != doc.Latest {
		t.Errorf("kept %d revisions", len(list))
	}
	ada := d.agent("Ada")
	wantRefusal(t, d.do(as{ada, d.run(ada)}, "document.delete", ChangeDocument{Issue: i.ID, Key: "plan"}, nil), ledger.Forbidden, "")
	wantRefusal(t, d.do(as{ada, ""}, "document.save", save(doc.Latest, "y"), nil), ledger.Forbidden, "")
	d.must(t, board, "document.delete", ChangeDocument{Issue: i.ID, Key: "plan"}, nil)
	if _, ok := DocumentOf(d.tx, i, "plan"); ok || d.count("document-revision") != 0 {
		t.Error("a deleted document left something behind")
	}
}

func TestLongDocumentsLieInParts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i := d.issue(t, CreateIssue{})
	text := strings.Repeat("0123456789", 60_000)
	var names []string
	for _, b := range SplitParts([]byte(text)) {
		var staged StagedPart
		d.must(t, board, "part.put", PutPart{Bytes: b}, &staged)
		d.must(t, board, "part.put", PutPart{Bytes: b}, nil) // again changes nothing
		names = append(names, staged.SHA256)
	}
	p := SaveDocument{Issue: i.ID, Key: "plan", ID: d.id(), Revision: d.id(), Format: "markdown", Parts: names, Sum: PartName([]byte("other"))}
	wantRefusal(t, d.do(board, "document.save", p, nil), ledger.Conflict, "")
	p.Sum = PartName([]byte(text))
	unknown := p
	unknown.Parts = append([]string{PartName([]byte("never staged"))}, names...)
	wantRefusal(t, d.do(board, "document.save", unknown, nil), ledger.Conflict, "")
	d.must(t, board, "document.save", p, nil)
	doc, _ := DocumentOf(d.tx, i, "plan")
	if doc.Text(d.tx) != text {
		t.Error("the text came back different")
	}
	if total, _ := partTotals.Get(d.tx, d.company, totalKey); total.Staged != 0 || PartsToSweep(d.tx, d.company, TimeOf(d.now.Add(2*PartAge))) {
		t.Errorf("%d bytes still count as staged", total.Staged)
	}
	d.must(t, board, "issue.delete", DeleteIssue{Issue: i.ID}, nil)
	if !ThreadsToSweep(d.tx, d.company) {
		t.Fatal("nothing is left to sweep")
	}
	for ThreadsToSweep(d.tx, d.company) {
		d.must(t, board, "issue.sweep", SweepThreads{}, nil)
	}
	if d.count("document") != 0 || d.count("document-revision") != 0 {
		t.Error("rows of a deleted issue are left")
	}
	if PartsToSweep(d.tx, d.company, TimeOf(d.now)) {
		t.Error("parts are swept before their time")
	}
	d.now = d.now.Add(2 * PartAge)
	d.must(t, board, "part.sweep", SweepParts{}, nil)
	if n := d.count("part"); n != 0 {
		t.Errorf("%d parts are left", n)
	}
	if total, _ := partTotals.Get(d.tx, d.company, totalKey); total.Staged != 0 {
		t.Errorf("%d bytes count as staged", total.Staged)
	}
}

func TestStagedPartsAreBounded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	partTotals.Put(d.tx, d.company, totalKey, partTotal{Staged: MaxStagedParts - 3})
	d.must(t, board, "part.put", PutPart{Bytes: []byte("abc")}, nil)
	wantRefusal(t, d.do(board, "part.put", PutPart{Bytes: []byte("d")}, nil), ledger.TooMany, "")
	wantRefusal(t, d.do(board, "part.put", PutPart{}, nil), ledger.TooLarge, "")
	wantRefusal(t, d.do(board, "part.put", PutPart{Bytes: make([]byte, MaxPart+1)}, nil), ledger.TooLarge, "")
}

func TestDocumentKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{"plan": true, "a-b_c9": true, "": false, "-x": false, "_x": false, "A": false, "a.b": false, "a/b": false,
		strings.Repeat("a", MaxDocumentKey): true, strings.Repeat("a", MaxDocumentKey+1): false} {
		if IsDocumentKey(key) != want {
			t.Errorf("%q: got %v", key, !want)
		}
	}
}

// count returns how many rows a table has.
func (d *desk) count(table string) (n int) {
	for range d.tx.Prefix(ledger.Key("c", d.company, table, "")) {
		n++
	}
	return n
}
