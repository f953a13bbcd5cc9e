package recall

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/companytest"
	company "github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/memory"
)

// A world is a company in memory whose state is looked at as a node's is.
type world struct {
	*companytest.Desk
	t  *testing.T
	mu sync.Mutex
}

func newWorld(t *testing.T) *world { return &world{Desk: companytest.NewDesk(t), t: t} }

func (w *world) view(f func(*ledger.Tx) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return f(w.Tx)
}

func (w *world) config() Config {
	return Config{View: w.view, Head: func() uint64 { return 0 },
		Entries: func(ctx context.Context, _ uint64) iter.Seq2[ledger.Entry, error] {
			return func(func(ledger.Entry, error) bool) { <-ctx.Done() }
		},
		Companies: func(*ledger.Tx) []ledger.CompanyID { return []ledger.CompanyID{w.Company} }}
}

func (w *world) add(text string) (id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id = w.ID()
	w.Must(w.t, companytest.Board, company.KindAdd, company.Save{ID: id, Text: &text}, nil)
	return id
}

func (w *world) search(r *Recall, query string) (ids []string, far Progress) {
	w.t.Helper()
	err := w.view(func(tx *ledger.Tx) error {
		found, p, err := r.Search(tx, w.Company, memory.Search{Query: query, By: memory.ByWords, Limit: 100,
			Now: w.Now.UnixMilli(), Filter: memory.Filter{All: true}})
		for _, hit := range found.Results {
			ids = append(ids, hit.ID.String())
		}
		far = p
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return ids, far
}

func has(ids []string, id string) bool { return fmt.Sprint(ids) == "["+id+"]" }

// A search sees each change that the state which it reads has, without anybody's help.
func TestSearchesCatchUpByThemselves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := New(w.config())
	if ids, far := w.search(r, "zebra"); len(ids) > 0 || !far.Ready {
		t.Errorf("found %v, %+v of nothing", ids, far)
	}
	id := w.add("a zebra crosses")
	if ids, far := w.search(r, "zebra"); !has(ids, id) || !far.Ready {
		t.Errorf("found %v, %+v", ids, far)
	}
	w.Must(t, companytest.Board, company.KindUpdate, company.Save{ID: id, Text: new("a lion sleeps")}, nil)
	if ids, _ := w.search(r, "zebra"); len(ids) > 0 {
		t.Errorf("found %v by a text that it had", ids)
	}
	w.Must(t, companytest.Board, company.KindForget, company.Forget{IDs: []string{id}}, nil)
	if ids, _ := w.search(r, "lion"); len(ids) > 0 {
		t.Errorf("found %v that is forgotten", ids)
	}
	if st, _ := r.Stat(w.Company); st.Records != 0 || st.Forms != 0 {
		t.Errorf("the index still has %+v", st)
	}
}

// An index that missed more changes than are kept, or that hears of another history, is
// the same afterwards as one that is new.
func TestAnIndexThatFellBehindIsWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := New(w.config())
	first := w.add("first")
	gone := w.add("gone")
	if ids, _ := w.search(r, "first"); !has(ids, first) {
		t.Fatal(ids)
	}
	w.Must(t, companytest.Board, company.KindForget, company.Forget{IDs: []string{gone}}, nil)
	for n := range company.MaxChanges {
		w.Must(t, companytest.Board, company.KindUpdate, company.Save{ID: first, Importance: new(int64(n % 1000))}, nil)
	}
	last := w.add("last")
	if ids, far := w.search(r, "last"); !has(ids, last) || !far.Ready {
		t.Errorf("found %v, %+v", ids, far)
	}
	if ids, _ := w.search(r, "gone"); len(ids) > 0 {
		t.Errorf("found %v that is forgotten", ids)
	}
	r.held[w.Company].last = w.ID() // as if the changes so far were others
	again := w.add("again")
	if ids, _ := w.search(r, "again"); !has(ids, again) {
		t.Errorf("found %v", ids)
	}
}

// A company with more than a search takes in is answered from what is there, with how far
// it is; Run builds the rest, and keeps up with what is heard.
func TestSearchesAnswerWhileAnIndexIsBuilt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range inline + 500 {
		w.add(fmt.Sprint("number ", n))
	}
	heard := make(chan ledger.Entry)
	conf := w.config()
	conf.Entries = func(ctx context.Context, _ uint64) iter.Seq2[ledger.Entry, error] {
		return func(yield func(ledger.Entry, error) bool) {
			for {
				select {
				case <-ctx.Done():
					return
				case e := <-heard:
					if !yield(e, nil) {
						return
					}
				}
			}
		}
	}
	r := New(conf)
	ids, far := w.search(r, "number")
	if len(ids) == 0 || far.Ready || far.Done != inline || far.Of != inline+500 {
		t.Errorf("%d found, %+v", len(ids), far)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	defer running.Wait()
	defer cancel()
	until(t, func() bool { _, far := r.Stat(w.Company); return far.Ready })
	w.add("late")
	heard <- ledger.Entry{Company: w.Company}
	until(t, func() bool { st, _ := r.Stat(w.Company); return st.Records == inline+501 })
}

func until(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come about")
		}
	}
}

// The index that was not asked for the longest time goes, and is there again when it is.
func TestIndexesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conf := w.config()
	conf.MaxHeld = 5
	r := New(conf)
	var ids []string
	for n := range 3 {
		w.Company = ledger.CompanyID(companytest.UID(n + 1))
		for k := range 3 {
			ids = append(ids, w.add(fmt.Sprint("word", k)))
		}
		w.search(r, "word0")
		r.makeRoom()
	}
	if len(r.held) != 1 || r.held[ledger.CompanyID(companytest.UID(3))] == nil {
		t.Errorf("%d indexes are held", len(r.held))
	}
	w.Company = ledger.CompanyID(companytest.UID(1))
	if got, far := w.search(r, "word0"); !has(got, ids[0]) || !far.Ready {
		t.Errorf("found %v, %+v", got, far)
	}
}

// A graph is saved whole or not at all; one that is damaged is taken away.
func TestSavedGraphs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conf := w.config()
	conf.Dir = filepath.Join(t.TempDir(), "memory")
	r := New(conf)
	w.add("some words")
	w.search(r, "words")
	sh := r.held[w.Company]
	if err := r.saveGraph(sh, memory.Lexical); err != nil {
		t.Fatal(err)
	}
	path := r.graphFile(w.Company, memory.Lexical)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.loadGraph(sh, memory.Lexical, path); err != nil {
		t.Errorf("a saved graph is not read: %v", err)
	}
	for what, b := range map[string][]byte{"cut": whole[:len(whole)-1], "empty": nil,
		"flipped": append([]byte{whole[0] ^ 1}, whole[1:]...)} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.loadGraph(sh, memory.Lexical, path); err == nil {
			t.Errorf("a graph that is %s is read", what)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(conf.Dir, "*.new")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
