package memory

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func put(t testing.TB, c *Collection, n int, d Doc) {
	t.Helper()
	d.ID = idOf(n)
	if v, ok := Embed(d.Text); ok && d.Model == "" {
		d.Model, d.Vector = Lexical, v
	}
	if err := c.Put(d); err != nil {
		t.Fatal(err)
	}
}

func ask1(t testing.TB, c *Collection, s Search) Found {
	t.Helper()
	s.Limit = max(s.Limit, 10)
	got, err := c.Search(s)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// numbers are the records that were found, in order.
func numbers(f Found) (out []int) {
	for _, r := range f.Results {
		out = append(out, int(r.ID[15])|int(r.ID[14])<<8)
	}
	return out
}

func few(t testing.TB) *Collection {
	c := NewCollection()
	for n, text := range []string{
		"The customer Globex wants all invoices in blue",
		"Deployments to production are frozen on Fridays",
		"Die Rechnungen der Kunden gehen am Monatsende raus",
		"The database password rotates every ninety days",
		"A deployment failed because the disk was full",
		"Every Friday the team eats pizza",
	} {
		put(t, c, n, Doc{Text: text, Kind: "fact", CreatedAt: int64(n+1) * 1000})
	}
	return c
}

func TestWordsAreFound(t *testing.T) {
	t.Parallel()
	c := few(t)
	for query, want := range map[string][]int{
		"invoice":               {0},
		"Rechnung":              {2},
		"deploying":             {1, 4},
		"rotat*":                {3},
		"disk deployments":      {4, 1},
		`"deployment failed"`:   {4},
		`"failed deployment"`:   nil,
		`"the customer" friday`: {0},
		"kund":                  {2},
		"zebra":                 nil,
		`"every frid*"`:         {5},
		"GLOBEX's":              {0},
	} {
		if got := numbers(ask1(t, c, Search{Query: query, By: ByWords})); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	got := ask1(t, c, Search{Query: "full disk", By: ByWords})
	if r := got.Results[0]; r.WordRank != 1 || r.VectorRank != 0 || len(r.Words) != 2 || r.Words[0].Word != "full" ||
		r.Words[0].Worth+r.Words[1].Worth != r.WordsSum {
		t.Errorf("explained by %+v", r)
	}
}

// Words that are written otherwise are still near.
func TestVectorsAreFound(t *testing.T) {
	t.Parallel()
	c := few(t)
	got := ask1(t, c, Search{Query: "databases passwords rotation", By: ByVectors})
	if n := numbers(got); len(n) == 0 || n[0] != 3 || got.Model != Lexical || got.Results[0].Cosine < 0.2 ||
		got.Results[0].VectorRank != 1 {
		t.Errorf("found %+v", got)
	}
	both := ask1(t, c, Search{Query: "deployment"})
	if r := both.Results[0]; r.WordRank == 0 || r.VectorRank == 0 ||
		r.Score != 1_000_000_000/int64(60+r.WordRank)+1_000_000_000/int64(60+r.VectorRank) {
		t.Errorf("joined to %+v", r)
	}
}

// What the asker may not read is neither found nor counted: with it, the answer is the
// same to the last bit as without it.
func TestUnreadableRecordsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	without, with := few(t), few(t)
	for n := range 300 {
		put(t, with, 1000+n, Doc{Text: fmt.Sprintf("deployment disk friday invoice secret %d", n), Agent: "ada",
			Private: true})
		put(t, with, 2000+n, Doc{Text: fmt.Sprintf("deployment disk customer %d", n), ExpiresAt: 5})
	}
	for _, s := range []Search{{Query: "deployment friday disk"}, {Query: "invoi* customer", By: ByWords},
		{Query: "secret"}, {Query: `"deployment disk"`},
		{Query: "deployment", Filter: Filter{Agents: []string{"ada"}}}} {
		for _, reader := range []string{"", "bob"} {
			s.Now, s.Filter.Reader = 10, reader
			got, want := ask1(t, with, s), ask1(t, without, s)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s of %q: %+v, want %+v", s.Query, reader, got, want)
			}
		}
		s.Filter.Reader = "ada"
		if got := ask1(t, with, s); len(got.Results) == 0 || got.Seen < 300 {
			t.Errorf("%s: ada finds %d of %d", s.Query, len(got.Results), got.Seen)
		}
		s.Filter.Reader, s.Filter.All = "", true
		if got := ask1(t, with, s); len(got.Results) == 0 {
			t.Errorf("%s: the board finds nothing", s.Query)
		}
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	c := NewCollection()
	put(t, c, 1, Doc{Text: "note one", Agent: "ada", Project: "p", Kind: "fact", Tags: []string{"x", "y"}, CreatedAt: 100,
		Importance: 900})
	put(t, c, 2, Doc{Text: "note two", Agent: "bob", Issue: "i", Run: "r", Kind: "lesson", Tags: []string{"x"},
		CreatedAt: 200})
	put(t, c, 3, Doc{Text: "note three", CreatedAt: 300, ExpiresAt: 1000})
	for _, f := range []struct {
		Filter
		want []int
	}{
		{Filter{Agents: []string{"ada", "eve"}}, []int{1}}, {Filter{Projects: []string{"p"}}, []int{1}},
		{Filter{Issues: []string{"i"}}, []int{2}},
		{Filter{Runs: []string{"r"}}, []int{2}}, {Filter{Kinds: []string{"fact", "lesson"}}, []int{1, 2}},
		{Filter{Tags: []string{"x", "y"}}, []int{1}},
		{Filter{Tags: []string{"x"}}, []int{1, 2}}, {Filter{Tags: []string{"z"}}, nil}, {Filter{After: 200}, []int{2, 3}},
		{Filter{Before: 200}, []int{1}},
		{Filter{Agents: []string{"eve"}}, nil}, {Filter{}, []int{1, 2, 3}},
	} {
		got := ask1(t, c, Search{Query: "note", Filter: f.Filter, Now: 500})
		found := numbers(got)
		slices.Sort(found)
		if !slices.Equal(found, f.want) || got.Seen != len(f.want) {
			t.Errorf("%+v: %v of %d, want %v", f.Filter, found, got.Seen, f.want)
		}
	}
	if got := numbers(ask1(t, c, Search{Query: "note", Now: 1000})); slices.Contains(got, 3) {
		t.Error("found what expired")
	}
	if got := numbers(ask1(t, c, Search{Query: "note", Now: 400, HalfLife: 100})); !slices.Equal(got, []int{3, 2, 1}) {
		t.Errorf("the newest first: %v", got)
	}
	if got := ask1(t, c, Search{Query: "note", Now: 400, Importance: 1000}); numbers(got)[0] != 1 ||
		got.Results[0].Importance != 1900 {
		t.Errorf("the important first: %+v", got)
	}
	for age, want := range map[int64]int{-5: 1000, 0: 1000, 50: 750, 100: 500, 150: 375, 200: 250, 100000: 1} {
		if got := recency(age, 100); got != want {
			t.Errorf("recency of %d: %d, want %d", age, got, want)
		}
	}
}

func TestBadSearches(t *testing.T) {
	t.Parallel()
	c := few(t)
	for _, s := range []struct {
		Search
		want error
	}{
		{Search{}, ErrNoQuestion}, {Search{Query: " … !"}, ErrNoQuestion},
		{Search{Vector: make([]float32, LexicalDims)}, ErrZero},
		{Search{Vector: []float32{float32(math.NaN())}}, ErrNotFinite}, {Search{Vector: []float32{1, 2}}, ErrOtherDims},
		{Search{Vector: make1(8), Model: "other"}, ErrModel},
	} {
		if _, err := c.Search(s.Search); !errors.Is(err, s.want) {
			t.Errorf("%+v: %v, want %v", s.Search, err, s.want)
		}
	}
}

func make1(n int) []float32 {
	x := make([]float32, n)
	x[0] = 1
	return x
}

// Vectors of two models never meet, and one of the wrong length is refused.
func TestModelsAreApart(t *testing.T) {
	t.Parallel()
	c := few(t)
	put(t, c, 50, Doc{Text: "other", Model: "m", Vector: packed(t, make1(16))})
	if err := c.Put(Doc{ID: idOf(51), Text: "longer", Model: "m", Vector: packed(t, make1(32))}); !errors.Is(err,
		ErrOtherDims) {
		t.Error(err)
	}
	got := ask1(t, c, Search{Vector: make1(16), Model: "m"})
	if n := numbers(got); !slices.Equal(n, []int{50}) || got.Model != "m" {
		t.Errorf("found %v", n)
	}
	if st := c.Stat(); st.Records != 8 || len(st.Models) != 2 || st.Models[0].Model != "m" || st.Models[1].Vectors != 6 {
		t.Errorf("%+v", st)
	}
	c.Remove(idOf(50))
	if st := c.Stat(); len(st.Models) != 1 {
		t.Errorf("%+v", st)
	}
}

// Records come and go while searches run.
func TestCollectionsChangeDuringSearches(t *testing.T) {
	t.Parallel()
	c := few(t)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if got, err := c.Search(Search{Query: `deploy* "team eats"`, Limit: 5}); err != nil || len(got.Results) != 1 {
					t.Errorf("found %v, %v", got, err)
					return
				}
			}
		})
	}
	for n := range 300 {
		put(t, c, 100+n%50, Doc{Text: "deployment number " + strings.Repeat("again ", n%7), Tags: []string{fmt.Sprint(n)}})
		c.Link(10)
		if n%3 == 0 {
			c.Remove(idOf(100 + n%50))
		}
	}
	close(done)
	wg.Wait()
}

// What decides nothing is passed over, and yet the best are those that looking at every word
// of every text finds.
func TestTheBestByWordsAreExact(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	word := func() string { // few words are in most texts, many in few
		return "w" + strconv.Itoa(int(math.Exp(r.Float64()*7)))
	}
	some := func(most int) string {
		var words []string
		for range 1 + r.IntN(most) {
			words = append(words, word())
		}
		return strings.Join(words, " ")
	}
	c := NewCollection()
	for n := range 2000 {
		put(t, c, n, Doc{Text: some(30), Agent: "a", Private: n%3 == 0, Kind: "k" + strconv.Itoa(n%4)})
	}
	for n := 0; n < 2000; n += 17 {
		c.Remove(idOf(n))
	}
	for n := range 300 {
		q := parseQuery(some(8))
		if n%5 == 0 {
			q = parseQuery("w1* " + some(3))
		}
		filter := Filter{All: n%2 == 0}
		if n%3 == 0 {
			filter.Kinds = []string{"k1", "k2"}
		}
		among := c.pass(Search{Filter: filter})
		best, worths := c.lex.ranked(among, q, 10, among.among)
		if want := rankedPlainly(c.lex, among, q, 10); !slices.Equal(best, want) {
			t.Fatalf("question %d, %v:\n%v, want\n%v", n, q.words, best, want)
		}
		for _, f := range best {
			sum := int64(0)
			for _, w := range worths(f.slot) {
				sum += w
			}
			if sum != f.score {
				t.Fatalf("question %d: the words of %d are worth %d, its score is %d", n, f.slot, sum, f.score)
			}
		}
	}
}

func rankedPlainly(l *lexicon, c corpus, q query, n int) (all []wordFound) {
	score := map[uint32]int64{}
	for _, w := range q.words {
		counts := make([]uint8, len(l.texts))
		slots := l.countsIn(c, l.termsOf(w), counts, nil)
		for _, slot := range slots {
			score[slot] += c.worth(int(counts[slot]), l.length(slot), c.rarity(len(slots)))
		}
	}
	for slot, sum := range score {
		all = append(all, wordFound{slot, sum})
	}
	slices.SortFunc(all, bestScore)
	return all[:min(n, len(all))]
}
