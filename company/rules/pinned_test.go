package rules_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/kit"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	pinnedSeeds = 200
	pinnedSteps = 150
	// pinnedOf is the number of seeds per line, so that the file stays short.
	pinnedOf = 10
)

// TestStatesArePinned executes random commands of all nouns and a story of every kind, and
// compares the resulting rows and answers, byte for byte, with those of earlier versions.
// Moving code changes nothing here. Changing a rule does: say so in the commit, and rewrite
// the digests with
//
//	go test ./company/rules -run TestStatesArePinned -update
func TestStatesArePinned(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for first := uint64(0); first < pinnedSeeds; first += pinnedOf {
		h := sha256.New()
		for seed := first; seed < first+pinnedOf; seed++ {
			p := newPlayer(seed, nil)
			p.witness = func(kind string, value any, changes []ledger.Change, err error) { pin(t, h, kind, value, changes, err) }
			if bad := p.begin(); bad != "" {
				t.Fatalf("seed %d: %s", seed, bad)
			}
			for range pinnedSteps {
				p.step()
			}
			pinRows(h, p.Tx)
		}
		fmt.Fprintf(&lines, "seeds %d-%d %x\n", first, first+pinnedOf-1, h.Sum(nil))
	}
	for _, story := range stories {
		h := sha256.New()
		s := newStory(t, map[string]int{})
		s.after = func(kind, _ string, c *ledger.Context) { pin(t, h, kind, nil, c.Changes(), nil) }
		story.tell(s)
		pinRows(h, s.Tx)
		fmt.Fprintf(&lines, "story of %s %x\n", story.of, h.Sum(nil))
	}
	kit.Golden(t, "states.txt", lines.String())
}

// pin adds the outcome of a command: its answer and its entries, or its refusal.
func pin(t *testing.T, h hash.Hash, kind string, value any, changes []ledger.Change, err error) {
	t.Helper()
	said := struct {
		Kind    string          `cbor:"1,keyasint"`
		Value   any             `cbor:"2,keyasint,omitempty"`
		Changes []ledger.Change `cbor:"3,keyasint,omitempty"`
		Refusal *ledger.Refusal `cbor:"4,keyasint,omitempty"`
	}{Kind: kind}
	if err == nil {
		said.Value, said.Changes = value, changes
	} else if !errors.As(err, &said.Refusal) {
		t.Fatalf("%s: %v", kind, err)
	}
	h.Write(ledger.Marshal(said))
}

// pinRows adds all rows of a state.
func pinRows(h hash.Hash, tx *ledger.Tx) {
	for k, v := range tx.Prefix(nil) {
		fmt.Fprintf(h, "%d %d ", len(k), len(v))
		h.Write(k)
		h.Write(v)
	}
}
