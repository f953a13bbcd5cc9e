package node

import (
	"os"
	"strings"
	"testing"
	"time"
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
		{SizeAuto, 0, false}, // not to be found out
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

func TestElectionTimeoutFollowsTheDisk(t *testing.T) {
	for sync, want := range map[time.Duration]time.Duration{
		200 * time.Microsecond: 0,
		40 * time.Millisecond:  0,
		100 * time.Millisecond: 1200 * time.Millisecond,
		2 * time.Second:        slowestElection,
	} {
		if got := electionTimeout(sync); got != want {
			t.Errorf("a sync of %s: %s, want %s", sync, got, want)
		}
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
