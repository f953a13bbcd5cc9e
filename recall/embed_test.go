package recall

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/selvage-mesh/selvage/company/companytest"
	company "github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/memory"
)

// A model embeds texts by their first letter, in so many dimensions, and counts.
type model struct {
	mu    sync.Mutex
	dims  int
	most  int // bytes of a text that it takes, 0 for any
	fails error
	asked []string
	who   Payer
}

func (m *model) embed(_ context.Context, who Payer, name string, texts []string) (out [][]float32, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails != nil {
		return nil, m.fails
	}
	m.who = who
	for _, s := range texts {
		if m.most > 0 && len(s) > m.most {
			return nil, fmt.Errorf("%w: %d bytes", ErrTexts, len(s))
		}
	}
	for _, s := range texts {
		m.asked = append(m.asked, name+" "+s)
		v := make([]float32, m.dims)
		v[int(s[0])%m.dims], v[0] = 1, v[0]+0.1
		out = append(out, v)
	}
	return out, nil
}

func (w *world) embedder(m *model) Embedder {
	return Embedder{Embed: m.embed, Mine: func(*ledger.Tx, ledger.CompanyID, string) bool { return true },
		Submit: func(_ context.Context, kind string, _ ledger.CompanyID, payload any) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.ByNode("n1", kind, payload)
		}}
}

func (w *world) choose(p company.Configure) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Must(w.t, companytest.Board, company.KindConfigure, p, nil)
}

// settle embeds until nothing is left to do.
func (w *world) settle(r *Recall) (last error) {
	w.search(r, "x")
	for range 1000 {
		more, err := r.embedSome(w.t.Context(), r.held[w.Company])
		if !more {
			return err
		}
	}
	w.t.Fatal("embedding has no end")
	return nil
}

func (w *world) embedding(r *Recall) (e Embedding) {
	_ = w.view(func(tx *ledger.Tx) error { e, _ = r.Embedding(tx, w.Company); return nil })
	return e
}

// What is remembered is embedded by the chosen model, each text once; a change of model
// embeds it again, in batches, and the vectors of the two never meet.
func TestAModelEmbedsWhatIsRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.Agent("Ada")
	conf := w.config()
	m := &model{dims: 16}
	conf.Embedder = w.embedder(m)
	r := New(conf)
	for n := range 3 * batchTexts {
		w.add(fmt.Sprintf("%c record %d", 'a'+n%10, n))
	}
	w.add("a record 0") // the same text again
	if err := w.settle(r); err != nil || len(m.asked) > 0 {
		t.Fatalf("without a model: %v, asked %d times", err, len(m.asked))
	}
	w.choose(company.Configure{Model: "box/mini"})
	if model, v, err := r.Question(t.Context(), w.Company, "", "b?"); model != "" || v != nil || err != nil {
		t.Errorf("a question is embedded before texts are: %q %v %v", model, v, err)
	}
	if err := w.settle(r); err != nil {
		t.Fatal(err)
	}
	if e := w.embedding(r); e != (Embedding{Model: "box/mini@1", Agent: ada, Done: 97, Of: 97}) ||
		m.who != (Payer{w.Company, ada}) || len(m.asked) != 96 {
		t.Errorf("%+v, %d texts asked for %+v", e, len(m.asked), m.who)
	}
	name, v, err := r.Question(t.Context(), w.Company, "bob", "b?")
	if name != "box/mini@1" || len(v) != 16 || err != nil || m.who != (Payer{w.Company, "bob"}) {
		t.Fatalf("the question is %q %v %v for %+v", name, v, err, m.who)
	}
	near := func(v []float32, name string) (texts []string) {
		_ = w.view(func(tx *ledger.Tx) error {
			found, _, err := r.Search(tx, w.Company, memory.Search{Vector: v, Model: name, By: memory.ByVectors, Limit: 4,
				Filter: memory.Filter{All: true}})
			if err != nil {
				t.Error(err)
			}
			for _, hit := range found.Results {
				row, _ := company.Of(tx, w.Company, hit.ID.String())
				texts = append(texts, row.Text[:1])
			}
			return nil
		})
		return texts
	}
	if got := near(v, name); fmt.Sprint(got) != "[b b b b]" {
		t.Errorf("near to b are %v", got)
	}
	asked := len(m.asked)
	m.dims = 32
	w.choose(company.Configure{Model: "box/mini", Version: "2", Question: "box/ask"})
	if more, err := r.embedSome(t.Context(), r.held[w.Company]); !more || err != nil {
		t.Fatal(more, err)
	}
	if e := w.embedding(r); e.Model != "box/mini@2" || e.Done < batchTexts || e.Done >= e.Of {
		t.Errorf("after one batch %+v", e)
	}
	if got := near(v, name); len(got) == 0 {
		t.Error("the vectors of before are gone while others are made")
	}
	if err := w.settle(r); err != nil {
		t.Fatal(err)
	}
	if e := w.embedding(r); e.Done != 97 || len(m.asked) != asked+96 {
		t.Errorf("%+v, %d texts asked", e, len(m.asked)-asked)
	}
	if name, v, err = r.Question(t.Context(), w.Company, "", "c!"); err != nil || len(v) != 32 ||
		m.asked[len(m.asked)-1] != "box/ask c!" {
		t.Errorf("the question is %q %v %v", name, v, err)
	}
	again := len(m.asked)
	if _, _, err := r.Question(t.Context(), w.Company, "", "c!"); err != nil || len(m.asked) != again {
		t.Error("a question is paid twice")
	}
	// By words alone again: the vectors go.
	w.choose(company.Configure{})
	if err := w.settle(r); err != nil {
		t.Fatal(err)
	}
	if st, _ := r.Stat(w.Company); len(st.Models) != 1 || st.Models[0].Model != memory.Lexical ||
		st.Models[0].Vectors != 97 {
		t.Errorf("left are %+v", st.Models)
	}
}

// Texts that a model does not take are cut, and left alone when that does not help; what
// fails is told, and tried again later and not at once.
func TestWhatAModelDoesNotTake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conf := w.config()
	m := &model{dims: 16, most: 1000}
	conf.Embedder = w.embedder(m)
	r := New(conf)
	w.choose(company.Configure{Model: "box/mini"})
	w.add(strings.Repeat("long ", 1000))
	w.add("short")
	if err := w.settle(r); err == nil || !strings.Contains(w.embedding(r).Problem, "no agent can pay") {
		t.Errorf("without an agent: %v", err)
	}
	w.Agent("Ada")
	again := func() { r.embed.works[w.Company].until = w.Now.AddDate(-10, 0, 0) }
	again()
	if err := w.settle(r); err != nil || w.embedding(r).Done != 2 {
		t.Errorf("%v, %+v", err, w.embedding(r))
	}
	m.most = leastText / 2
	w.add(strings.Repeat("later ", 100))
	if err := w.settle(r); err == nil {
		t.Error("a text that is never taken is no error")
	}
	if again(); w.settle(r) != nil || w.embedding(r).Hopeless != 1 || w.embedding(r).Done != 2 {
		t.Errorf("%+v", w.embedding(r))
	}
	m.most, m.fails = 0, errors.New("no money")
	w.add("new")
	if again(); w.settle(r) == nil || w.embedding(r).Problem != "no money" {
		t.Errorf("%+v", w.embedding(r))
	}
	m.fails = nil
	if w.settle(r) != nil || w.embedding(r).Done != 2 {
		t.Error("it is tried again at once")
	}
	if again(); w.settle(r) != nil || w.embedding(r).Done != 3 || w.embedding(r).Problem != "" {
		t.Errorf("%+v", w.embedding(r))
	}
}
