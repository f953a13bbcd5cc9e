package cause

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// Hashes of BLAKE3's published test vectors, whose inputs count from 0 to 250 again and
// again, of an empty text, and of "abc".
func TestSumsAreBLAKE3(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		"":     "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
		"\x00": "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
		"abc":  "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
	} {
		if got := sum([]byte(input)); hex.EncodeToString(got[:]) != want {
			t.Errorf("%q: %x, want %s", input, got, want)
		}
	}
	count := make([]byte, 1024)
	for n := range count {
		count[n] = byte(n % 251)
	}
	if got := sum(count); hex.EncodeToString(
		got[:]) != "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7" {
		t.Errorf("1,024 bytes: %x", got)
	}
}

// A universal ID differs with everything that makes a node another one, and with nothing
// that changes while it stands.
func TestUniversalIDs(t *testing.T) {
	t.Parallel()
	p := Point{Ref: Ref{Issue, "i1"}, Label: "Close the books", Status: "todo", At: 1_700_000_000_000, Height: 7}
	want := p.Universal("acme")
	later := p
	later.Label, later.Status, later.Reader = "Close them", "done", "ada"
	if later.Universal("acme") != want || len(want.String()) != 64 {
		t.Errorf("%s became %s", want, later.Universal("acme"))
	}
	if p.Universal("globex") == want {
		t.Error("two companies share an ID")
	}
	for what, change := range map[string]func(*Point){
		"type": func(p *Point) { p.Type = Run }, "id": func(p *Point) { p.ID = "i2" }, "time": func(p *Point) { p.At++ },
		"height":    func(p *Point) { p.Height++ },
		"structure": func(p *Point) { p.Type = Memory },
	} {
		q := p
		change(&q)
		if u := q.Universal("acme"); bytes.Equal(u[:], want[:]) {
			t.Errorf("the same ID with another %s", what)
		}
	}
}

// Cross references are the edges between structures of a walk, with their types.
func TestCrossReferences(t *testing.T) {
	t.Parallel()
	at := func(t Type, id string) Reached { return Reached{Point: Point{Ref: Ref{t, id}}} }
	f := Found{Points: []Reached{at(Memory, "m"), at(Issue, "i"), at(Run, "r"), at(Agent, "a"), at(Entry, "9")},
		Edges: []Edge{
			{From: Ref{Issue, "i"}, To: Ref{Memory, "m"}, Kind: EvidenceFor, Height: 4},
			{From: Ref{Issue, "i"}, To: Ref{Run, "r"}, Kind: TriggeredBy},
			{From: Ref{Agent, "a"}, To: Ref{Issue, "i"}, Kind: Causes}, {From: Ref{Entry, "9"}, To: Ref{Issue, "i"},
				Kind: Follows},
			{From: Ref{Issue, "gone"}, To: Ref{Memory, "m"}, Kind: EvidenceFor}, {From: Ref{Agent, "a"}, To: Ref{Run, "r"},
				Kind: TriggeredBy},
		}}
	got := f.CrossRefs()
	var types []string
	for _, x := range got {
		types = append(types, x.From.Ref.String()+" "+x.Kind.String()+" "+x.To.Ref.String())
	}
	want := []string{"issue:i memory_encoded memory:m", "agent:a causes issue:i", "entry:9 elaborates issue:i",
		"agent:a triggered_by run:r"}
	if len(types) != len(want) {
		t.Fatalf("%q, want %q", types, want)
	}
	for n := range want {
		if types[n] != want[n] {
			t.Errorf("%q, want %q", types[n], want[n])
		}
	}
	if got[0].Height != 4 {
		t.Errorf("the entry is %d", got[0].Height)
	}
}
