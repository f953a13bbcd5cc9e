package paper_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestDocumentsRefuseStaleWrites(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	i := d.Issue(t, company.CreateIssue{})
	save := func(base, body string) paper.SaveDocument {
		return paper.SaveDocument{Issue: i.ID, Key: "plan", ID: d.ID(), Revision: d.ID(), Format: "markdown",
			Body: body, Base: base}
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "document.save", save(companytest.UID(9), "x"), nil),
		ledger.Conflict, "Document does not exist yet")
	var first, second paper.SavedDocument
	d.Must(t, companytest.Board, "document.save", save("", "one"), &first)
	if !first.Created || first.Document.Number != 1 {
		t.Fatalf("got %+v", first)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "document.save", save("", "two"), nil), ledger.Conflict,
		"Document update requires baseRevisionId")
	companytest.WantRefusal(t, d.Do(companytest.Board, "document.save", save(companytest.UID(9), "two"), nil),
		ledger.Conflict, "Document was updated by someone else")
	d.Must(t, companytest.Board, "document.save", save(first.Document.Latest, "two"), &second)
	if second.Created || second.Document.Number != 2 || second.Was != first.Document.Latest ||
		second.Document.Text(d.Tx) != "two" {
		t.Fatalf("got %+v", second)
	}
	var third paper.SavedDocument
	d.Must(t, companytest.Board, "document.restore", paper.RestoreDocument{Issue: i.ID, Key: "plan",
		Revision: first.Document.Latest, ID: d.ID()}, &third)
	if third.Document.Number != 3 || third.Document.Text(d.Tx) != "one" {
		t.Errorf("restored %+v to %q", third, third.Document.Text(d.Tx))
	}
	d.Must(t, companytest.Board, "document.lock", paper.ChangeDocument{Issue: i.ID, Key: "plan"}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, "document.save", save(third.Document.Latest, "x"), nil),
		ledger.Conflict, "Document is locked")
	d.Must(t, companytest.Board, "document.unlock", paper.ChangeDocument{Issue: i.ID, Key: "plan"}, nil)
	for n := range paper.KeptRevisions + 5 {
		doc, _ := paper.DocumentOf(d.Tx, i, "plan")
		d.Must(t, companytest.Board, "document.save", save(doc.Latest, strings.Repeat("x", n)), nil)
	}
	doc, _ := paper.DocumentOf(d.Tx, i, "plan")
	if list := paper.RevisionsOfDocument(d.Tx, doc); len(list) != paper.KeptRevisions || list[0].ID != doc.Latest {
		t.Errorf("kept %d revisions", len(list))
	}
	ada := d.Agent("Ada")
	companytest.WantRefusal(t, d.Do(companytest.As{Agent: ada, Run: d.Run(ada)}, "document.delete",
		paper.ChangeDocument{Issue: i.ID, Key: "plan"}, nil), ledger.Forbidden, "Board access required")
	companytest.WantRefusal(t, d.Do(companytest.As{Agent: ada, Run: ""}, "document.save", save(doc.Latest, "y"), nil),
		ledger.Forbidden, "An agent writes on issues under a run of its own that is still going on; this request named none.")
	d.Must(t, companytest.Board, "document.delete", paper.ChangeDocument{Issue: i.ID, Key: "plan"}, nil)
	if _, ok := paper.DocumentOf(d.Tx, i, "plan"); ok || d.Count("document-revision") != 0 {
		t.Error("a deleted document left something behind")
	}
}

func TestLongDocumentsLieInParts(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	i := d.Issue(t, company.CreateIssue{})
	text := strings.Repeat("0123456789", 60_000)
	var names []string
	for _, b := range company.SplitParts([]byte(text)) {
		var staged company.StagedPart
		d.Must(t, companytest.Board, "part.put", company.PutPart{Bytes: b}, &staged)
		d.Must(t, companytest.Board, "part.put", company.PutPart{Bytes: b}, nil) // again changes nothing
		names = append(names, staged.SHA256)
	}
	p := paper.SaveDocument{Issue: i.ID, Key: "plan", ID: d.ID(), Revision: d.ID(), Format: "markdown", Parts: names,
		Sum: company.PartName([]byte("other"))}
	companytest.WantRefusal(t, d.Do(companytest.Board, "document.save", p, nil), ledger.Conflict,
		"The parts of the value do not have the announced length and hash")
	p.Sum = company.PartName([]byte(text))
	unknown := p
	unknown.Parts = append([]string{company.PartName([]byte("never staged"))}, names...)
	companytest.WantRefusal(t, d.Do(companytest.Board, "document.save", unknown, nil), ledger.Conflict,
		"A part of the value is not staged, or not any more; send it again")
	d.Must(t, companytest.Board, "document.save", p, nil)
	doc, _ := paper.DocumentOf(d.Tx, i, "plan")
	if doc.Text(d.Tx) != text {
		t.Error("the text came back different")
	}
	if total, _ := company.PartTotals.Get(d.Tx, d.Company, company.TotalKey); total.Staged != 0 ||
		company.PartsToSweep(d.Tx, d.Company, core.TimeOf(d.Now.Add(2*company.PartAge))) {
		t.Errorf("%d bytes still count as staged", total.Staged)
	}
	d.Must(t, companytest.Board, "issue.delete", company.DeleteIssue{Issue: i.ID}, nil)
	if !company.ThreadsToSweep(d.Tx, d.Company) {
		t.Fatal("nothing is left to sweep")
	}
	for company.ThreadsToSweep(d.Tx, d.Company) {
		d.Must(t, companytest.Board, "issue.sweep", company.SweepThreads{}, nil)
	}
	if d.Count("document") != 0 || d.Count("document-revision") != 0 {
		t.Error("rows of a deleted issue are left")
	}
	if company.PartsToSweep(d.Tx, d.Company, core.TimeOf(d.Now)) {
		t.Error("parts are swept before their time")
	}
	d.Now = d.Now.Add(2 * company.PartAge)
	d.Must(t, companytest.Board, "part.sweep", company.SweepParts{}, nil)
	if n := d.Count("part"); n != 0 {
		t.Errorf("%d parts are left", n)
	}
	if total, _ := company.PartTotals.Get(d.Tx, d.Company, company.TotalKey); total.Staged != 0 {
		t.Errorf("%d bytes count as staged", total.Staged)
	}
}

func TestStagedPartsAreBounded(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	company.PartTotals.Put(d.Tx, d.Company, company.TotalKey, company.PartTotal{Staged: company.MaxStagedParts - 3})
	d.Must(t, companytest.Board, "part.put", company.PutPart{Bytes: []byte("abc")}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, "part.put", company.PutPart{Bytes: []byte("d")}, nil),
		ledger.TooMany, "The company has 67108864 bytes staged that nothing uses yet; try again in an hour")
	companytest.WantRefusal(t, d.Do(companytest.Board, "part.put", company.PutPart{}, nil), ledger.TooLarge,
		"A part has between 1 and 196608 bytes")
	companytest.WantRefusal(t, d.Do(companytest.Board, "part.put", company.PutPart{Bytes: make([]byte, company.MaxPart+1)},
		nil), ledger.TooLarge, "A part has between 1 and 196608 bytes")
}

func TestDocumentKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{"plan": true, "a-b_c9": true, "": false, "-x": false, "_x": false, "A": false,
		"a.b": false, "a/b": false,
		strings.Repeat("a", paper.MaxDocumentKey): true, strings.Repeat("a", paper.MaxDocumentKey+1): false} {
		if paper.IsDocumentKey(key) != want {
			t.Errorf("%q: got %v", key, !want)
		}
	}
}
