package memory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/ledger"
	index "github.com/selvage-mesh/selvage/memory"
)

func vector(t *testing.T, dims int) index.Vector {
	t.Helper()
	x := make([]float32, dims)
	x[1] = 1
	v, err := index.Pack(x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// An agent changes and forgets what is its own; what is private to another is not there
// for it.
func TestWhoseMemoriesAre(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	asAda, asBob := companytest.As{Agent: ada, Run: d.Run(ada)}, companytest.As{Agent: bob, Run: d.Run(bob)}
	add := func(who companytest.As, p memory.Save) string {
		p.ID = d.ID()
		d.Must(t, who, memory.KindAdd, p, nil)
		return p.ID
	}
	private := add(asAda, memory.Save{Text: new("mine"), Private: new(true)})
	shared := add(asAda, memory.Save{Text: new("ours"), Tags: &[]string{"b", "a", "b"}})
	r, _ := memory.Of(d.Tx, d.Company, private)
	if r.Agent != core.NullText(ada) || r.Author != ada || r.Run != core.NullText(asAda.Run) || r.Height == 0 ||
		!r.Private || r.Kind != "note" {
		t.Errorf("stored %+v", r)
	}
	if r, _ := memory.Of(d.Tx, d.Company, shared); !slices.Equal(r.Tags, []string{"a", "b"}) || !r.ReadableBy(bob) {
		t.Errorf("stored %+v", r)
	}
	if r.ReadableBy(bob) || !r.ReadableBy(ada) || !r.ReadableBy("") {
		t.Error("the wrong ones read it")
	}
	for kind, p := range map[string]any{memory.KindUpdate: memory.Save{ID: private, Text: new("x")},
		memory.KindForget: memory.Forget{IDs: []string{private}}} {
		companytest.WantRefusal(t, d.Do(asBob, kind, p, nil), ledger.NotFound, "Memory record not found")
	}
	companytest.WantRefusal(t, d.Do(asBob, memory.KindForget, memory.Forget{IDs: []string{shared}}, nil), ledger.Forbidden,
		"Only the board, its author and the agent whose it is can change a memory")
	companytest.WantRefusal(t, d.Do(asBob, memory.KindAdd, memory.Save{ID: d.ID(), Text: new("x"), Agent: ada}, nil),
		ledger.Forbidden, "agentId: an agent adds memories of its own, or of the company")
	companytest.WantRefusal(t, d.Do(asBob, memory.KindAdd, memory.Save{ID: d.ID(), Text: new("x"),
		Links: &[]string{private}}, nil), ledger.NotFound, fmt.Sprintf("links: memory %q not found", private))
	d.Must(t, asAda, memory.KindUpdate, memory.Save{ID: private, Importance: new(int64(5)), Links: &[]string{shared}}, nil)
	d.Must(t, companytest.Board, memory.KindForget, memory.Forget{IDs: []string{private, shared}}, nil)
	if n := memory.CountOf(d.Tx, d.Company); n.Records != 0 || n.Bytes != 0 || n.Changes != 5 {
		t.Errorf("left are %+v", n)
	}
}

// What can not be remembered is refused by the name of the field.
func TestBadMemoriesAreRefused(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	zero := slices.Clone(vector(t, 16))
	zero[5+1] = 0
	inf := slices.Clone(vector(t, 16))
	inf[1], inf[2] = 0x7f, 0x80
	many := make([]string, 1000)
	for n := range many {
		many[n] = fmt.Sprint(n)
	}
	for field, p := range map[string]memory.Save{
		"text: required":         {},
		"text: needs":            {Text: new(" … ")},
		"text: 1048576 bytes":    {Text: new(strings.Repeat("x", 1<<20))},
		"text: has a control":    {Text: new("a\x00b")},
		"tags: at most":          {Tags: &many},
		"tags: a tag":            {Tags: &[]string{strings.Repeat("t", 65)}},
		"tags: a tag has":        {Tags: &[]string{"a\nb"}},
		"kind:":                  {Kind: new("No Kind")},
		"importance:":            {Importance: new(int64(1001))},
		"expiresAt: is over":     {ExpiresAt: new(core.TimeOf(d.Now))},
		"expiresAt: is before":   {ExpiresAt: new(core.Time(-1))},
		"private:":               {Private: new(true)},
		"model and vector:":      {Model: "m"},
		"vector: all components": {Model: "m", Vector: zero},
		"vector: a component is": {Model: "m", Vector: inf},
		"vector: needs":          {Model: "m", Vector: vector(t, 16)[:10]},
		"model: at most":         {Model: index.Lexical, Vector: vector(t, 16)},
		"agentId:":               {Agent: d.ID()},
		"issueId:":               {Issue: d.ID()},
		"commentId:":             {Comment: d.ID()},
		"projectId:":             {Project: new(d.ID())},
		"links: memory":          {Links: &[]string{d.ID()}},
		"links: at most":         {Links: new(many[:100])},
	} {
		p.ID = d.ID()
		if p.Text == nil && field != "text: required" {
			p.Text = new("fine")
		}
		r := companytest.Refused(t, d.Do(companytest.Board, memory.KindAdd, p, nil))
		if !strings.HasPrefix(r.Message, field) {
			t.Errorf("%s: %s", field, r.Message)
		}
	}
	if n := memory.CountOf(d.Tx, d.Company); n.Changes != 0 {
		t.Errorf("stored were %+v", n)
	}
}

// Vectors of one model have one length; of few models there are any; another text has
// another vector.
func TestModelsOfMemories(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	add := func(model string, dims int) (string, error) {
		id := d.ID()
		return id, d.Do(companytest.Board, memory.KindAdd, memory.Save{ID: id, Text: new("x"), Model: model,
			Vector: vector(t, dims)}, nil)
	}
	first, err := add("a", 16)
	if err != nil {
		t.Fatal(err)
	}
	_, err = add("a", 32)
	companytest.WantRefusal(t, err, ledger.Unprocessable, "vector: has 32 components, those of the model a have 16")
	for _, m := range []string{"b", "c", "d"} {
		if _, err := add(m, 32); err != nil {
			t.Fatal(err)
		}
	}
	_, err = add("e", 16)
	companytest.WantRefusal(t, err, ledger.Unprocessable, "model: a company has vectors of at most 4 models")
	d.Must(t, companytest.Board, memory.KindUpdate, memory.Save{ID: first, Text: new("y")}, nil)
	if r, _ := memory.Of(d.Tx, d.Company, first); r.Vector != nil || r.Model != "" {
		t.Errorf("the vector of another text stays: %+v", r)
	}
	if _, err := add("e", 16); err != nil {
		t.Error(err)
	}
}

// Records go when their time is over, the oldest first, so many at once.
func TestMemoriesExpire(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	for n := range memory.MaxExpired + 5 {
		at := core.TimeOf(d.Now.Add(time.Hour + time.Duration(n)*time.Millisecond))
		d.Must(t, companytest.Board, memory.KindAdd, memory.Save{ID: d.ID(), Text: new("x"), ExpiresAt: &at}, nil)
	}
	kept := d.ID()
	d.Must(t, companytest.Board, memory.KindAdd, memory.Save{ID: kept, Text: new("x")}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, memory.KindExpire, memory.Expire{}, nil), ledger.Conflict,
		"no memory has expired")
	d.Now = d.Now.Add(2 * time.Hour)
	for _, left := range []int64{6, 1} {
		d.Must(t, companytest.Board, memory.KindExpire, memory.Expire{}, nil)
		if n := memory.CountOf(d.Tx, d.Company); n.Records != left {
			t.Errorf("%d are left, want %d", n.Records, left)
		}
	}
	if _, ok := memory.Of(d.Tx, d.Company, kept); !ok {
		t.Error("one without a time went")
	}
}

// An index that is not too far behind hears what changed; one that is reads everything.
func TestChangesAreKeptForAWhile(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	id := d.ID()
	d.Must(t, companytest.Board, memory.KindAdd, memory.Save{ID: id, Text: new("x")}, nil)
	for n := range memory.MaxChanges {
		d.Must(t, companytest.Board, memory.KindUpdate, memory.Save{ID: id, Importance: new(int64(n % 1000))}, nil)
	}
	since := func(after uint64, last string) ([]string, uint64, bool) {
		return memory.ChangedSince(d.Tx, d.Company, after, last, 10)
	}
	if _, upTo, ok := since(1, id); ok || upTo != memory.MaxChanges+1 {
		t.Errorf("%d, %v of what is too long ago", upTo, ok)
	}
	if ids, upTo, ok := since(2, id); !ok || upTo != 12 || len(ids) != 10 || ids[0] != id {
		t.Errorf("%v, %d, %v", ids, upTo, ok)
	}
	if _, _, ok := since(2, d.ID()); ok {
		t.Error("another history is not seen")
	}
	if ids, upTo, ok := since(memory.MaxChanges+1, memory.LastChanged(d.Tx, d.Company)); !ok ||
		upTo != memory.MaxChanges+1 || len(ids) != 0 {
		t.Errorf("%v, %d, %v of nothing", ids, upTo, ok)
	}
	if _, _, ok := since(memory.MaxChanges+2, id); ok {
		t.Error("an index is ahead of the state")
	}
	n := 0
	for range d.Tx.Prefix(ledger.Key("c", string(d.Company), "memory-change", "")) {
		n++
	}
	if n != memory.MaxChanges {
		t.Errorf("%d changes are kept", n)
	}
}

// A closed issue leaves one record of how it ended, which does not quote a comment that
// was deleted, and goes with the issue.
func TestAClosedIssueLeavesARecord(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	i := d.Issue(t, company.CreateIssue{Title: "Fix the roof", Description: "It rains in"})
	comment := d.ID()
	d.Must(t, companytest.Board, "comment.create", entity.CreateComment{ID: comment, Issue: i.ID,
		Body: "New tiles\x07 hold"}, nil)
	close := func(status entity.IssueStatus) memory.Record {
		t.Helper()
		d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Status: status}, nil)
		r, _ := memory.Of(d.Tx, d.Company, memory.OutcomeOf(i.ID))
		return r
	}
	r := close(entity.IssueDone)
	if r.Kind != memory.Outcome ||
		r.Text != i.Identifier+" done: Fix the roof\n\nIt rains in\n\nLast comment: New tiles hold" ||
		string(r.Comment) != comment || string(r.Issue) != i.ID {
		t.Errorf("left is %+v", r)
	}
	d.Must(t, companytest.Board, "comment.delete", company.DeleteComment{ID: comment, Issue: i.ID}, nil)
	if r, _ := memory.Of(d.Tx, d.Company, r.ID); strings.Contains(r.Text, "tiles") || r.Comment != "" ||
		!strings.Contains(r.Text, "roof") {
		t.Errorf("after the comment was deleted: %+v", r)
	}
	close(entity.IssueTodo)
	if r := close(entity.IssueCancelled); !strings.Contains(r.Text, "cancelled") {
		t.Errorf("closed again: %+v", r)
	}
	if n := memory.CountOf(d.Tx, d.Company); n.Records != 1 {
		t.Errorf("left are %+v", n)
	}
	d.Must(t, companytest.Board, "issue.delete", company.DeleteIssue{Issue: i.ID}, nil)
	if n := memory.CountOf(d.Tx, d.Company); n.Records != 0 || n.Bytes != 0 {
		t.Errorf("after the issue was deleted: %+v", n)
	}
}

// The record of a closed issue tells which of its runs failed, and why.
func TestAClosedIssueTellsWhatFailed(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	i := d.Issue(t, company.CreateIssue{})
	for n, status := range []entity.RunStatus{entity.RunFailed, entity.RunSucceeded, entity.RunTimedOut} {
		r, _ := entity.RunTable.Get(d.Tx, d.Company, d.Run(ada))
		r.Status, r.Context.IssueID = status, i.ID
		if n == 0 {
			r.Error = "the arm\nis stuck"
		}
		entity.RunTable.Put(d.Tx, d.Company, r.ID, r)
	}
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueDone}, nil)
	r, ok := memory.Of(d.Tx, d.Company, memory.OutcomeOf(i.ID))
	if !ok || !strings.Contains(r.Text, "\n\nRuns that failed: 2\n- run ") || !strings.Contains(r.Text,
		" failed: the arm is stuck") || !strings.Contains(r.Text, " timed_out") {
		t.Errorf("left is %q", r.Text)
	}
}
