package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/consensus"
)

func TestSize(t *testing.T) {
	for _, c := range []struct {
		size   Size
		memory uint64
		small  bool
	}{
		{SizeAuto, 512 << 20, true},
		{SizeAuto, 1000 << 20, true}, // a board of 1 GB
		{SizeAuto, 2 << 30, false},
		{SizeAuto, 0, false}, // unknown
		{"", 512 << 20, true},
		{SizeSmall, 64 << 30, true},
		{SizeNormal, 512 << 20, false},
	} {
		if got := c.size.Small(c.memory); got != c.small {
			t.Errorf("%q with %d MiB: small %v", c.size, c.memory>>20, got)
		}
	}
	if _, err := ParseSize("tiny"); err == nil || !strings.Contains(err.Error(), "auto, small or normal") {
		t.Errorf("tiny: %v", err)
	}
}

func TestMemTotal(t *testing.T) {
	for in, want := range map[string]uint64{
		"MemTotal:         496812 kB\nMemFree: 1 kB\n": 496812 << 10,
		"MemFree: 1 kB\n":                     0,
		"MemTotal:   x kB\n":                  0,
		"MemTotal: 99999999999999999999 kB\n": 0,
	} {
		if got := memTotal(strings.NewReader(in)); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}

func TestElectionTimeoutFollowsTheMachine(t *testing.T) {
	for in, want := range map[[2]time.Duration]time.Duration{
		{200 * time.Microsecond, 50 * time.Microsecond}:  0,
		{40 * time.Millisecond, 1600 * time.Microsecond}: 0,
		{100 * time.Millisecond, 50 * time.Microsecond}:  1200 * time.Millisecond,
		{2 * time.Second, 50 * time.Microsecond}:         slowestElection,
		{time.Millisecond, 6 * time.Millisecond}:         1800 * time.Millisecond, // an emulated board of 32 bits
		{100 * time.Millisecond, 3 * time.Millisecond}:   1200 * time.Millisecond, // the slower of the two counts
		{0, time.Second}: slowestElection,
	} {
		if got := electionTimeout(in[0], in[1]); got != want {
			t.Errorf("a sync of %s, a signature of %s: %s, want %s", in[0], in[1], got, want)
		}
	}
	if took := checkTime(); took <= 0 || took > time.Second {
		t.Errorf("a signature takes %s", took)
	}
}

func TestSyncTimeLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	took, err := syncTime(dir)
	if err != nil || took <= 0 {
		t.Fatalf("%s, %v", took, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Founding a mesh is an election with one voter, which takes long on the slowest card.
func TestFoundingOnTheSlowestCard(t *testing.T) {
	t.Parallel()
	n := start(t, filepath.Join(t.TempDir(), "card"), func(c *Config) {
		tune := c.TuneConsensus
		c.TuneConsensus = func(c *consensus.Config) { tune(c); c.ElectionTimeout = slowestElection }
	})
	if height, _ := n.ledger.Head(); height == 0 {
		t.Error("there is no genesis")
	}
}
