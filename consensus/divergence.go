package consensus

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Digester is a StateMachine whose replicas can be compared. It remembers a
// digest of all it has applied at the indexes that are multiples of
// [ledger.DigestEvery], for a while; equal logs give equal digests.
type Digester interface {
	DigestAt(index uint64) (digest [32]byte, ok bool, err error)
}

// A Divergence says that replicas of the state differ: a bug or a broken disk.
type Divergence struct {
	Index uint64   // of the entry after which the states differ
	Own   [32]byte // digest of this node's state there
	// Majority is what most voters have. When NoMajority is set, all voters
	// answered and no majority agrees on anything: writes must stop.
	Majority   [32]byte
	NoMajority bool
	// Disagree names the voters that differ from Majority, or all of them.
	Disagree []identity.NodeID
}

// compareDigests compares this node's state with the voters' again and again,
// and tells Config.OnDiverged, once for each index, when it is in the minority.
func (c *Consensus) compareDigests() {
	d, ok := c.cfg.State.(Digester)
	if !ok {
		return
	}
	var compared uint64
	for sleep(c.ctx, digestInterval) == nil {
		// Not the newest: the others should have it too.
		index := c.cfg.State.Applied() / ledger.DigestEvery * ledger.DigestEvery
		if index <= ledger.DigestEvery {
			continue
		}
		if index -= ledger.DigestEvery; index == compared {
			continue
		}
		own, ok, err := d.DigestAt(index)
		if err != nil || !ok {
			continue
		}
		compared = index
		others, self := c.voters()
		answers := c.askDigests(others, index)
		if v, bad := judge(index, own, self, c.node, answers, len(others)); bad {
			c.log.Error("consensus: states diverge", "index", index, "own", own[:4], "majority", v.Majority[:4], "none",
				v.NoMajority)
			c.stats.divergences.Add(1)
			c.cfg.OnDiverged(v)
		}
	}
}

// judge compares answers. voters counts the other voters, those without an
// answer too; self tells whether this node has a vote as well.
func judge(index uint64, own [32]byte, self bool, node identity.NodeID, answers map[identity.NodeID][32]byte,
	voters int) (Divergence, bool) {
	count := map[[32]byte]int{}
	for _, d := range answers {
		count[d]++
	}
	total := voters
	if self {
		total++
		count[own]++
	}
	v := Divergence{Index: index, Own: own}
	most := 0
	for d, n := range count {
		if n > most || n == most && bytes.Compare(d[:], v.Majority[:]) < 0 {
			v.Majority, most = d, n
		}
	}
	switch {
	case most > total/2:
		if v.Majority == own {
			return v, false
		}
	case len(answers) == voters && len(count) > 1:
		v.Majority, v.NoMajority = [32]byte{}, true
	default:
		return v, false // too few have answered
	}
	for id, d := range answers {
		if v.NoMajority || d != v.Majority {
			v.Disagree = append(v.Disagree, id)
		}
	}
	if self {
		v.Disagree = append(v.Disagree, node)
	}
	return v, true
}

// askDigests asks voters for their digest at index; who is behind, or does not
// answer, is left out.
func (c *Consensus) askDigests(voters []raft.ServerID, index uint64) map[identity.NodeID][32]byte {
	ctx, cancel := context.WithTimeout(c.ctx, probeTimeout)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	out := map[identity.NodeID][32]byte{}
	for _, id := range voters {
		wg.Go(func() {
			m, err := c.ask(ctx, nodeOf(id), &message{op: opDigest, body: binary.BigEndian.AppendUint64(nil, index)})
			if err != nil || m.status != statusOK || len(m.body) != 32 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out[nodeOf(id)] = [32]byte(m.body)
		})
	}
	wg.Wait()
	return out
}

// answerDigest answers a peer's question for a digest.
func (c *Consensus) answerDigest(m *message) *message {
	d, ok := c.cfg.State.(Digester)
	if !ok || len(m.body) != 8 {
		return &message{status: statusAbsent}
	}
	digest, ok, err := d.DigestAt(binary.BigEndian.Uint64(m.body))
	if err != nil || !ok {
		return &message{status: statusAbsent}
	}
	return &message{status: statusOK, body: digest[:]}
}

// sleep waits for d, or returns why ctx ended.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
