package filters

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/governance"
)

// The minimum cut is the least of all cuts: compared with every way to part the vertices, for random graphs with cycles
// and with edges in any order.
func TestMinCutIsTheLeastOfAllCuts(t *testing.T) {
	t.Parallel()
	cut, connected := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		names := []string{Board, "a", "b", "c", "d", "e"}[:2+r.IntN(5)]
		var edges []Edge
		for range r.IntN(14) {
			edges = append(edges, Edge{From: names[r.IntN(len(names))], To: names[r.IntN(len(names))],
				Capacity: governance.Level(r.IntN(1001))})
		}
		to := names[1]
		want := governance.Level(math.MaxInt32)
		for set := range 1 << len(names) { // a set of vertices that has the board and not the agent
			if set&1 == 0 || set&2 != 0 {
				continue
			}
			sum := governance.Level(0)
			for _, e := range edges {
				from, at := slices.Index(names, e.From), slices.Index(names, e.To)
				if set&(1<<from) != 0 && set&(1<<at) == 0 {
					sum += e.Capacity
				}
			}
			want = min(want, sum)
		}
		got := MinCut(edges, to)
		if got != want {
			t.Fatalf("seed %d: %d, want %d: %v", seed, got, want, edges)
		}
		if r.Shuffle(len(edges), func(i, j int) { edges[i], edges[j] = edges[j], edges[i] }); MinCut(edges, to) != want {
			t.Fatalf("seed %d: another order gives another cut", seed)
		}
		if cut++; want > 0 {
			connected++
		}
	}
	if connected < 50 || cut-connected < 50 {
		t.Errorf("%d graphs of %d have a way: both are to be many", connected, cut)
	}
}

// A circle of agents that lead each other has no authority, however many they are.
func TestACircleHasNoAuthority(t *testing.T) {
	t.Parallel()
	ring := []Edge{{"ada", "bob", 1000, "manages"}, {"bob", "ada", 1000, "manages"}, {"bob", "cyd", 1000, "manages"}}
	for _, who := range []string{"ada", "bob", "cyd"} {
		if cut := MinCut(ring, who); cut != 0 {
			t.Errorf("%s has %s", who, cut)
		}
	}
	if cut := MinCut(append(ring, Edge{Board, "ada", 1000, "manages"}), "cyd"); cut != governance.Most {
		t.Errorf("with the board: %s", cut)
	}
}

// The evidence is an e-value for both sides. Where an act is refused with probability 1 in 20, the inverse of the
// evidence is a supermartingale: it passes 2^n with a probability of at most 2^-n, which is calculated here exactly
// over the states, for 2,000 acts. Where two in five are refused, the evidence itself is one.
func TestEvidenceIsAnEValue(t *testing.T) {
	t.Parallel()
	good, bad := math.Exp2(float64(Good)/Scale), math.Exp2(float64(Bad)/Scale)
	if e := 0.049/bad + 0.951/good; e > 1 {
		t.Errorf("one in 20 refused: the inverse grows by %f an act", e)
	}
	if e := 0.4*bad + 0.6*good; e > 1 {
		t.Errorf("two in five refused: the evidence grows by %f an act", e)
	}
	const wall = -12 * Scale
	states, fell := map[int64]float64{0: 1}, 0.0
	for range 2_000 {
		next := map[int64]float64{}
		for e, p := range states {
			for _, way := range []struct {
				step int64
				p    float64
			}{{Good, 0.951}, {Bad, 0.049}} {
				to := e + way.step // without the bound at the top: what the proof is about
				if to = min(to, 200*Scale); to < wall {
					fell += p * way.p
				} else if p*way.p > 1e-15 {
					next[to] += p * way.p
				}
			}
		}
		states = next
	}
	if fell > 1/4096. || fell == 0 {
		t.Errorf("it falls below 2^-12 with probability %g, at most %g", fell, 1/4096.)
	}
}

// An agent that is refused again and again is asked about and then denied; good acts lead back from the first, and
// answers of people from both.
func TestEvidenceDecides(t *testing.T) {
	t.Parallel()
	q := Question{Agent: "ada", Action: "x.y", Class: governance.Work, Magnitude: 300, Limits: Default(),
		Asks: governance.Defer, Edges: []Edge{{Board, "ada", 1000, "manages"}}}
	said := func() governance.Verdict { return Decide(q)[2].Verdict }
	var got []string
	for range 6 {
		got = append(got, said().String())
		q.Profile = q.Profile.With(q.Bin(), Refused)
	}
	if want := "permit permit permit escalate escalate deny"; strings.Join(got, " ") != want {
		t.Errorf("refused again and again: %v, want %s", got, want)
	}
	for range 60 {
		q.Profile = q.Profile.Answered(q.Bin(), true)
	}
	if said() != governance.Permit || q.Profile.Evidence != maxEvidence {
		t.Errorf("after 60 approvals: %s with %d", said(), q.Profile.Evidence)
	}
	for range 1_000 {
		q.Profile = q.Profile.Answered(q.Bin(), false)
	}
	if q.Profile.Evidence != minEvidence {
		t.Errorf("the evidence has no bottom: %d", q.Profile.Evidence)
	}
}

// A shift is measured once there is enough past, is 1 when nothing is as before, speaks only of acts that are part of
// it, and is over when the agent does again what it did.
func TestShift(t *testing.T) {
	t.Parallel()
	usual, rest, odd := BinOf(governance.Work, 100), BinOf(governance.Message, 100), BinOf(governance.Decommission, 700)
	p := Profile{}
	for n := range MinPast + Window {
		if _, known, _ := p.Shift(usual); known {
			t.Fatalf("measured after %d acts", n)
		}
		p = p.With([]uint8{usual, rest}[n%2], Done)
	}
	if s, known, _ := p.Shift(usual); !known || s > 50 {
		t.Errorf("the same as before: %s", s)
	}
	far := p
	for range Window {
		far = far.With(odd, Waits)
	}
	if s, _, part := far.Shift(odd); s != governance.Most || !part {
		t.Errorf("nothing as before: %s", s)
	}
	if s, _, part := far.Shift(usual); s < 900 || part {
		t.Errorf("an act as before: %s, part of it %v", s, part)
	}
	for range 2 * Window {
		far = far.With(usual, Done)
		far = far.With(rest, Done)
	}
	if s, _, _ := far.Shift(usual); s > 50 {
		t.Errorf("again as before: %s", s)
	}
	if i := slices.IndexFunc(far.Past, func(q Past) bool { return q.Bin == odd }); i >= 0 {
		t.Errorf("what was not carried out became its way: %+v", far.Past)
	}
}

// What is kept of an agent is bounded, whatever it does.
func TestAProfileIsBounded(t *testing.T) {
	t.Parallel()
	r, p := rand.New(rand.NewPCG(1, 2)), Profile{}
	for range 50_000 {
		p = p.With(uint8(r.IntN(256)), Outcome(r.IntN(4)))
		if len(p.Recent) > Window || len(p.Past) > Bins || p.past() >= maxPast || p.Evidence < minEvidence ||
			p.Evidence > maxEvidence {
			t.Fatalf("%+v", p)
		}
	}
	for _, c := range append(slices.Clone(governance.Classes), "unknown") {
		for _, m := range []governance.Level{0, 200, 500, 2237} {
			if b := BinOf(c, m); b >= Bins {
				t.Errorf("%s %s has bin %d", c, m, b)
			}
		}
	}
}

func TestLimitsAreChecked(t *testing.T) {
	t.Parallel()
	if err := Default().Check(); err != nil {
		t.Error(err)
	}
	for _, l := range []Limits{{MinCut: -1}, {MinCut: 1001}, {MaxShift: 1001}, {Floor: 2000}, {Permit: 1}, {Permit: -33},
		{Permit: -4, Deny: -3}, {Deny: -40}} {
		if l.Check() == nil {
			t.Errorf("%+v is taken", l)
		}
	}
}

// A question with too many edges, or with an edge that is none, is denied and never permitted.
func TestABadGraphDenies(t *testing.T) {
	t.Parallel()
	q := Question{Agent: "ada", Magnitude: 300, Limits: Default()}
	for _, edges := range [][]Edge{make([]Edge, MaxEdges+1), {{Board, "ada", 1001, ""}}, {{"", "ada", 1, ""}}} {
		if q.Edges = edges; Verdict(Decide(q)) != governance.Deny {
			t.Errorf("%d edges: %v", len(edges), Decide(q))
		}
	}
}

// witness is the one of the golden file.
func witness() Witness {
	q := Question{Agent: "ada", Action: "issue.update", Class: governance.Work, Magnitude: 100, Limits: Default(),
		Edges: []Edge{{Board, "cleo", 1000, "chief"}, {"cleo", "ada", 1000, "manages"}}, Asks: governance.Defer,
		Profile: Profile{Recent: []byte{0xb9, 0x39}, Past: []Past{{57, 3}}, Evidence: -700, Acts: 5}}
	return Witness{Sequence: 7, Company: "c", Height: 42, At: 1_700_000_000_000, Question: q, Findings: Decide(q),
		Decided: governance.Permit}
}

// The format of a receipt is the golden file's.
func TestReceiptFormat(t *testing.T) {
	t.Parallel()
	r := Seal(witness())
	got := fmt.Sprintf("%x\n%x\n", r.Body, r.Hash)
	want, err := os.ReadFile("testdata/receipt.txt")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile("testdata/receipt.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil || got != string(want) {
		t.Fatalf("%v\n%s", err, got)
	}
	w, err := r.Open()
	if err != nil || w.Sequence != 7 || w.Again() != "" || !slices.Equal(w.Findings, witness().Findings) {
		t.Fatalf("%v: %+v", err, w)
	}
}

// Each byte that is changed is found: by the hash, or by deciding again.
func TestAChangedReceiptIsFound(t *testing.T) {
	t.Parallel()
	r := Seal(witness())
	for i := range r.Body {
		bad := r.Clone()
		bad.Body[i] ^= 1
		if _, err := bad.Open(); err == nil {
			t.Fatalf("byte %d can be changed", i)
		}
	}
	w := witness()
	w.Findings[0].Value++
	if w, err := Seal(w).Open(); err != nil || w.Again() == "" {
		t.Errorf("another finding is not noticed: %v", err)
	}
	w = witness()
	w.Decided = governance.Deny
	if w.Again() == "" {
		t.Error("another decision is not noticed")
	}
}

func FuzzReceipt(f *testing.F) {
	text, err := os.ReadFile("testdata/receipt.txt")
	if err != nil {
		f.Fatal(err)
	}
	body, err := hex.DecodeString(string(bytes.SplitN(text, []byte("\n"), 2)[0]))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Fuzz(func(t *testing.T, body []byte) {
		w, err := (Receipt{body, hashOf(body)}).Open()
		if err == nil {
			w.Again()
			w.Question.Profile.With(w.Question.Bin(), Done)
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	q := witness().Question
	for len(q.Profile.Recent) < Window || q.Profile.past() < MinPast {
		q.Profile = q.Profile.With(uint8(q.Profile.Acts%20), Done)
	}
	b.ReportAllocs()
	for b.Loop() {
		if Verdict(Decide(q)) != governance.Permit {
			b.Fatal(Decide(q))
		}
	}
}
