package scheduler

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// The bytes of a keep-alive are pinned: nodes of two versions exchange them.
func TestTheFormOfABeat(t *testing.T) {
	t.Parallel()
	b := Beat{Node: "00112233445566778899aabbccddeeff", Session: 7, Adapters: []string{"process"}, Labels: []string{"gpu"}, Slots: 8}
	const want = "a50178203030313132323333343435353636373738383939616162626363646465656666020703816770726f63657373048163677075" + "0508"
	if got := hex.EncodeToString(ledger.Marshal(b)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func FuzzReadBeat(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0xa0})
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		beat, err := readBeat(bytes.NewReader(b))
		if err == nil && len(ledger.Marshal(beat)) > 2*maxBeat {
			t.Errorf("a beat grew from %d bytes", len(b))
		}
	})
}
