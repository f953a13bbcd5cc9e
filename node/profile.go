package node

import (
	"bufio"
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Size is a profile of the machine's resources.
type Size string

// The sizes of --size.
const (
	SizeAuto   Size = "auto"   // by the available memory when the node starts
	SizeSmall  Size = "small"  // a single-board computer: half a gigabyte of memory, a slow card
	SizeNormal Size = "normal" // everything else
)

const (
	// smallMemory is the memory, in bytes, below which a machine counts as small: a board
	// sold with 1 GB reports a little less than that.
	smallMemory = 1 << 30
	// smallRowCacheBytes bounds the cached rows of apply on a small machine,
	// smallDecodedBytes those that are decoded too, smallReadCacheBytes those that readers
	// share, and smallLogCacheBytes the newest entries of the raft log.
	smallRowCacheBytes  = 4 << 20
	smallDecodedBytes   = 4 << 20
	smallReadCacheBytes = 4 << 20
	smallLogCacheBytes  = 2 << 20
	// smallSnapshotBytes bounds the log that a small machine reads when it starts: a card
	// reads 20 MB a second.
	smallSnapshotBytes = 48 << 20

	// The time of a sync is measured probes times, with probeBytes each, within probeBound
	// in total.
	probes     = 5
	probeBytes = 4 << 10
	probeBound = 3 * time.Second
	// electionSyncs is the least election timeout in syncs: a round takes a sync of the
	// leader and one of a follower, and cards have slow moments.
	electionSyncs = 12
	// The time to verify a signature is measured checks times. electionChecks is the least
	// election timeout in verifications: on a busy node, the messages between two heartbeats
	// are that much work. A processor that needs more than 1.7 ms, an old or an emulated
	// board, gets a longer timeout than the default.
	checks         = 9
	electionChecks = 300
	// slowestElection bounds the election timeout for slow disks and processors, so that a
	// group of boards still fails over within some ten seconds.
	slowestElection = 4 * time.Second
)

// ParseSize parses a size.
func ParseSize(s string) (Size, error) {
	switch v := Size(s); v {
	case SizeAuto, SizeSmall, SizeNormal:
		return v, nil
	}
	return "", fmt.Errorf("size %q: give auto, small or normal", s)
}

// Small reports whether a machine with so much memory, in bytes, counts as small; 0 is
// unknown.
func (s Size) Small(memory uint64) bool {
	return s == SizeSmall || cmp.Or(s, SizeAuto) == SizeAuto && memory > 0 && memory < smallMemory
}

// Memory returns how much memory this process may use, in bytes: the machine's, or the
// limit of its control group. It is 0 if that is unknown.
func Memory() uint64 {
	most := uint64(0)
	if f, err := os.Open("/proc/meminfo"); err == nil {
		most = memTotal(f)
		f.Close()
	}
	for _, p := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		b, err := os.ReadFile(p)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 && (most == 0 || n < most) {
			most = n
		}
	}
	return most
}

// memTotal reads the line MemTotal of /proc/meminfo; 0 if there is none.
func memTotal(r io.Reader) uint64 {
	for s := bufio.NewScanner(r); s.Scan(); {
		if v, ok := strings.CutPrefix(s.Text(), "MemTotal:"); ok {
			kib, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(v), "kB")), 10, 54)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// syncTime measures how long the disk of dir takes to make a small append durable: the
// median of several. Once probeBound has passed, it uses the measurements so far.
func syncTime(dir string) (_ time.Duration, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	f, err := os.CreateTemp(dir, "sync-probe-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(filepath.Join(dir, filepath.Base(f.Name())))) }()
	block := make([]byte, probeBytes)
	took := make([]time.Duration, 0, probes)
	for began := time.Now(); len(took) < probes && time.Since(began) < probeBound; {
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		at := time.Now()
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(at))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// checkTime measures how long this processor takes to verify a signature: the median of
// several.
func checkTime() time.Duration {
	key, said := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), make([]byte, 32)
	pub, sig := key.Public().(ed25519.PublicKey), ed25519.Sign(key, said)
	took := make([]time.Duration, checks)
	for i := range took {
		at := time.Now()
		ed25519.Verify(pub, said, sig)
		took[i] = time.Since(at)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// electionTimeout derives the election timeout from the times for a sync and for a
// signature; 0 is the default.
func electionTimeout(sync, check time.Duration) time.Duration {
	const usual = 500 * time.Millisecond
	if t := min(max(electionSyncs*sync, electionChecks*check), slowestElection); t > usual {
		return t.Round(100 * time.Millisecond)
	}
	return 0
}

// Widen lets this node's read caches use more memory than usual, or ends that.
func (n *Node) Widen(wide bool) {
	n.ledger.Widen(wide)
	n.store.Widen(wide)
}

// Trim empties this node's read caches.
func (n *Node) Trim() {
	n.consensus.Trim()
	n.ledger.Trim()
	n.store.Trim()
}
