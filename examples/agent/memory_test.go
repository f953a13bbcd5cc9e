package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/examples/wasmkit"
)

// A shelf stands in for a host that keeps texts and embeds them: a text's vector is
// what it says of fruit, of tools and of neither.
type shelf struct {
	rows    map[string]memory
	clock   int
	most    int    // rows; 0 is 500
	model   string // that embeds; "" is none
	refuse  string // code that embedding is refused with
	dims    int    // of a vector; 0 is 3
	embeds  []int  // how many texts each call was for
	puts    int
	logged  []string
	garbled bool
}

func (s *shelf) ask(method string, in, out any) error {
	b, _ := json.Marshal(in)
	var q struct {
		Key, Value, Q, Model, Message string
		Input                         []string
	}
	_ = json.Unmarshal(b, &q)
	reply := func(v any) error {
		b, _ := json.Marshal(v)
		if out == nil {
			return nil
		}
		return json.Unmarshal(b, out)
	}
	switch method {
	case "log":
		s.logged = append(s.logged, q.Message)
	case "model.list":
		return reply(map[string]any{"data": []map[string]string{{"id": "chatty"}, {"id": s.model}}})
	case "model.embed":
		if s.refuse != "" {
			return fmt.Errorf("x: %w", &wasmkit.Error{Code: s.refuse, Message: "402: no money"})
		}
		if q.Model != s.model {
			return errors.New("another model")
		}
		s.embeds = append(s.embeds, len(q.Input))
		var data []any
		for i, text := range q.Input {
			v := make([]float64, max(s.dims, 3))
			for n, words := range [][]string{{"apple", "pear", "fruit"}, {"hammer", "saw", "tool"}} {
				for _, w := range words {
					if strings.Contains(text, w) {
						v[n]++
					}
				}
			}
			v[2] = 0.1
			if s.garbled {
				v = nil
			}
			data = append(data, map[string]any{"index": i, "embedding": v})
		}
		slices.Reverse(data) // the index counts, not the order
		return reply(map[string]any{"data": data})
	case "memory.put":
		if _, had := s.rows[q.Key]; !had && len(s.rows) >= max(s.most, 1) && s.most > 0 {
			return fmt.Errorf("x: %w",
				&wasmkit.Error{Code: "BadRequest",
					Message: "422: An agent keeps at most 500 memories of 1048576 bytes in all; delete some first"})
		}
		if len(q.Value) > 16<<10 {
			return &wasmkit.Error{Code: "BadRequest", Message: "422: A memory has at most 16384 bytes"}
		}
		s.clock++
		s.puts++
		s.rows[q.Key] = memory{Key: q.Key, Value: q.Value, Updated: fmt.Sprintf("%09d", s.clock)}
	case "memory.delete":
		if _, had := s.rows[q.Key]; !had {
			return &wasmkit.Error{Code: "NotFound"}
		}
		delete(s.rows, q.Key)
	case "memory.list":
		list := []memory{}
		for _, m := range s.rows {
			list = append(list, m)
		}
		slices.SortFunc(list, func(a, b memory) int { return strings.Compare(a.Key, b.Key) })
		return reply(list)
	case "memory.search":
		list := []memory{}
		for _, m := range s.rows {
			if slices.ContainsFunc(strings.Fields(q.Q), func(w string) bool { return strings.Contains(m.Key+" "+m.Value, w) }) {
				list = append(list, m)
			}
		}
		slices.SortFunc(list, func(a, b memory) int { return strings.Compare(a.Key, b.Key) })
		return reply(list)
	}
	return nil
}

func (s *shelf) agent() *agent {
	return &agent{ask: s.ask, env: func(string) string { return "" }, say: func(...any) (int, error) { return 0, nil }}
}

func (s *shelf) packs() (n int) {
	for k := range s.rows {
		if strings.HasPrefix(k, vectorKey) {
			n++
		}
	}
	return n
}

func newShelf(model string, texts map[string]string) *shelf {
	s := &shelf{rows: map[string]memory{}, model: model}
	for k, v := range texts {
		s.rows[k] = memory{Key: k, Value: v}
	}
	return s
}

func TestRecallByMeaning(t *testing.T) {
	t.Parallel()
	s := newShelf("nomic-embed-text", map[string]string{
		"a": "We buy the pear at the market.",
		"b": "The hammer hangs on the wall.",
		"c": "Nothing of either.",
	})
	a := s.agent()
	// No word of the question is in what is found first.
	if got := a.recall("apple"); len(got) == 0 || got[0] != "a: We buy the pear at the market." {
		t.Fatalf("it recalls %q", got)
	}
	if got := a.recall("saw"); len(got) == 0 || got[0] != "b: The hammer hangs on the wall." {
		t.Errorf("it recalls %q", got)
	}
	if s.packs() != 1 || !slices.Equal(s.embeds, []int{1, 3, 1}) {
		t.Errorf("%d packs, embedded %v: what is known is not to be asked for again", s.packs(), s.embeds)
	}
	// A text that changed has another meaning; another model has vectors of its own.
	s.rows["b"] = memory{Key: "b", Value: "An apple is a fruit."}
	if got := s.agent().recall("pear"); len(got) < 2 ||
		got[0] != "b: An apple is a fruit." && got[1] != "b: An apple is a fruit." {
		t.Errorf("it recalls %q", got)
	}
	if !slices.Equal(s.embeds, []int{1, 3, 1, 1, 1}) {
		t.Errorf("embedded %v", s.embeds)
	}
	s.model, s.embeds = "other-embed", nil
	s.agent().recall("pear")
	if !slices.Equal(s.embeds, []int{1, 3}) || s.packs() != 1 {
		t.Errorf("embedded %v, %d packs", s.embeds, s.packs())
	}
}

// What words find stands beside what is near in meaning, and first where both do.
func TestRecallAddsWordsToMeaning(t *testing.T) {
	t.Parallel()
	s := newShelf("embedder", map[string]string{
		"code":  "XK-113 opens the door",
		"fruit": "apple and pear",
		"both":  "a pear named XK-113",
		"tool":  "a hammer",
	})
	got := s.agent().recall("XK-113 fruit")
	if len(got) < 3 || !strings.HasPrefix(got[0], "fruit") && !strings.HasPrefix(got[0], "both") ||
		!slices.Contains(got, "code: XK-113 opens the door") {
		t.Errorf("it recalls %q", got)
	}
	for _, l := range got {
		if strings.HasPrefix(l, vectorKey) {
			t.Errorf("a vector is recalled: %.80s", l)
		}
	}
}

// Without a model that embeds, or with one that does not answer, words alone are
// looked for; the log says so, once.
func TestRecallByWordsWhereNothingEmbeds(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*shelf{
		"no model":   newShelf("", nil),
		"no money":   {model: "embed", refuse: "BudgetExceeded"},
		"no vectors": {model: "embed", garbled: true},
		"too long":   {model: "embed", dims: maxDims + 1},
	} {
		s.rows = map[string]memory{"a": {Key: "a", Value: "a pear"}, "b": {Key: "b", Value: "an apple"}}
		a := s.agent()
		for range 2 {
			if got := a.recall("pear"); !slices.Equal(got, []string{"a: a pear"}) {
				t.Errorf("%s: it recalls %q", name, got)
			}
		}
		if len(s.logged) != 1 || !strings.HasPrefix(s.logged[0], "memory is looked through by words") || s.packs() != 0 {
			t.Errorf("%s: it logs %q", name, s.logged)
		}
	}
	s := newShelf("other", map[string]string{"a": "a pear"})
	a := s.agent()
	a.env = func(k string) string { return map[string]string{"AGENT_EMBED_MODEL": "other"}[k] }
	if got := a.recall("apple"); len(got) != 1 || len(s.embeds) == 0 {
		t.Errorf("with a configured model it recalls %q", got)
	}
}

// Vectors have their bound, and one call has its.
func TestVectorsAreBounded(t *testing.T) {
	t.Parallel()
	s := newShelf("embed", nil)
	s.dims = 1536
	for i := range 400 {
		k := fmt.Sprint("k", i)
		s.rows[k] = memory{Key: k, Value: "a pear"}
	}
	for range 10 {
		s.agent().recall("apple")
	}
	for k, m := range s.rows {
		if strings.HasPrefix(k, vectorKey) && len(m.Value) > 16<<10 {
			t.Errorf("%s has %d bytes", k, len(m.Value))
		}
	}
	most := 0
	for _, n := range s.embeds {
		most = max(most, n)
	}
	if s.packs() != maxPacks || most != maxEmbedded {
		t.Errorf("%d packs, at most %d texts at once", s.packs(), most)
	}
	before := len(s.embeds)
	s.agent().recall("apple")
	if n := len(s.embeds) - before; n != 1 {
		t.Errorf("with no room for more, %d calls were made for one question", n)
	}
	// What is gone leaves its place to others.
	for i := range 390 {
		delete(s.rows, fmt.Sprint("k", i))
	}
	s.rows["new"] = memory{Key: "new", Value: "an apple"}
	s.agent().recall("apple")
	s.rows["newer"] = memory{Key: "newer", Value: "an apple"}
	s.agent().recall("apple")
	_, packs, _ := s.agent().memories("embed")
	n := 0
	for _, p := range packs {
		n += len(p.Of)
	}
	if n != 12 {
		t.Errorf("%d vectors of 12 texts", n)
	}
}

func TestLearn(t *testing.T) {
	t.Parallel()
	s := newShelf("embed", map[string]string{"fact": "a pear"})
	a := s.agent()
	for i := range maxDone + 5 {
		o := Outcome{
			Score:   0.3,
			Status:  "blocked",
			Result:  "It did not ripen.",
			Lesson:  "Wait for autumn.",
			Profile: Profile{Type: "Research"},
		}
		if err := a.learn(Issue{Identifier: fmt.Sprint("ACM-", i), Title: "Ripen the pear"}, o); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.rows) != maxDone+1 {
		t.Errorf("%d texts are kept", len(s.rows))
	}
	if _, old := s.rows["done.ACM-4"]; old {
		t.Error("the oldest work is still there")
	}
	if got := s.rows["done.ACM-104"].Value; got != "Ripen the pear (Research, scored 0.30, blocked): It did not "+
		"ripen.\nLesson: Wait for autumn." {
		t.Errorf("it learnt %q", got)
	}
	// Where there is no room, vectors go first, then earlier work, never facts.
	a.recall("apple")
	if s.packs() != 1 {
		t.Fatalf("%d packs", s.packs())
	}
	s.most = len(s.rows)
	if err := a.put("more", "a fact"); err != nil || s.packs() != 0 || s.rows["fact"].Value == "" ||
		len(s.rows) != maxDone+2 {
		t.Errorf("%v: %d packs, %d texts", err, s.packs(), len(s.rows))
	}
	if err := a.put("evenmore", "a fact"); err != nil || s.rows["more"].Value == "" || len(s.rows) != maxDone+3-doneFreed {
		t.Errorf("%v: %d texts", err, len(s.rows))
	}
	for k := range s.rows {
		if strings.HasPrefix(k, doneKey) {
			delete(s.rows, k)
		}
	}
	s.most = len(s.rows)
	if err := a.put("toomuch", "a fact"); codeOf(err) != "BadRequest" {
		t.Errorf("a full memory took more: %v", err)
	}
	if err := a.put("long", strings.Repeat("x", 17<<10)); codeOf(err) != "BadRequest" || s.rows["fact"].Value == "" {
		t.Errorf("a long text: %v", err)
	}
}

func TestNear(t *testing.T) {
	t.Parallel()
	if n := near(shrink([]float32{1, 0}), shrink([]float32{0.5, 0})); n != 1 {
		t.Errorf("the same direction is %v", n)
	}
	if n := near(shrink([]float32{1, 0}), shrink([]float32{0, 1})); n != 0 {
		t.Errorf("a right angle is %v", n)
	}
	if near([]int8{1}, []int8{1, 2}) != -1 || near(nil, nil) != -1 || shrink(nil) != nil ||
		shrink([]float32{0, 0}) != nil {
		t.Error("what can not be compared was")
	}
}
