package node

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/api/mesh"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// treeEvery is how often the leader looks whether the resource tree has changed since its root was committed, and each
	// node compares its root with the others. Reading all of the tree takes milliseconds for thousands of agents, and
	// nothing waits for it.
	treeEvery = time.Minute
	// treeFirst is how long a node waits before its first look. The waits double until it has compared its tree with the
	// others once.
	treeFirst = time.Second
	// treeWait bounds one question about a root, there and back.
	treeWait = 5 * time.Second
	// maxTreesAsked bounds the nodes that are asked at one look.
	maxTreesAsked = 16
)

// trees is what this node knows of the roots that other nodes have for the newest commitment.
type trees struct {
	mu     sync.Mutex
	height uint64                        // of the commitment that was compared; guarded by mu
	others map[identity.NodeID]treeStand // guarded by mu
	wake   chan struct{}                 // capacity 1: another node has asked that has another root
}

// A treeStand is the newest commitment to the root of the resource tree that a node has applied, with the root that it
// calculated then. Nodes with the same height and another root have other trees.
type treeStand struct {
	Height uint64 `json:"height"`
	Root   string `json:"root"`
}

func (n *Node) treeQuestion() question[treeStand, treeStand] {
	return question[treeStand, treeStand]{ipcTree, ipcTreeTold, treeWait, n.treeAsked}
}

// treeAsked answers another node. Where its root is another one, and this node does not know of a difference, it looks
// too.
func (n *Node) treeAsked(_ context.Context, at treeStand) treeStand {
	own := n.treeCommitted()
	n.trees.mu.Lock()
	defer n.trees.mu.Unlock()
	if at.Height == own.Height && at.Root != own.Root &&
		(n.trees.height != own.Height || len(differing(own, n.trees.others)) == 0) {
		kick(n.trees.wake)
	}
	return own
}

// treeCommitted returns the newest commitment that this node has.
func (n *Node) treeCommitted() (own treeStand) {
	_ = n.ledger.View(func(tx *ledger.Tx) error {
		own = committedTree(tx)
		return nil
	})
	return own
}

func committedTree(tx *ledger.Tx) treeStand {
	c, _ := rules.LastTreeCommit(tx)
	return treeStand{c.Height, c.Root}
}

// treeStand returns the commitment that this node has, and the root of its tree as it is now, for which all of the tree
// is read.
func (n *Node) treeStand() (own treeStand, root string) {
	err := n.ledger.View(func(tx *ledger.Tx) error {
		own = committedTree(tx)
		tree, err := rules.Tree(tx)
		if err != nil {
			return err
		}
		h := tree.Root()
		root = hex.EncodeToString(h[:])
		return nil
	})
	if err != nil {
		n.log.Warn("the resource tree is not well formed", "error", err)
	}
	return own, root
}

// keepTree checks the resource tree when the node starts, and commits its root on the chain: the leader when the tree
// has changed, and each node once after its start, when its own root is not the one on the chain. All nodes calculate
// the root when they apply the command, so that the roots of one height can be compared.
func (n *Node) keepTree(ctx context.Context) {
	own, root := n.treeStand()
	if own.Root != "" && root != "" {
		n.log.Info("resource tree checked", "root", root, "committed", own.Root, "unchanged", root == own.Root)
	}
	for wait, first := treeFirst, true; first; wait = min(2*wait, treeEvery) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if n.Ready(ctx) != nil {
			continue
		}
		if own, root = n.treeStand(); own.Root != "" && root != own.Root && root != "" {
			n.commitTree(ctx)
		}
		// Before the first commitment, which the leader makes below, there is nothing to compare.
		first = own.Root != "" && !n.compareTrees(ctx) && len(n.others()) > 0 && ctx.Err() == nil
	}
	tick, seen := time.NewTicker(treeEvery), uint64(0)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.trees.wake:
		case <-tick.C:
			height, _ := n.ledger.Head()
			if height == seen || !n.consensus.IsLeader() {
				break
			}
			if own, root := n.treeStand(); root == "" || root == own.Root || n.commitTree(ctx) {
				seen, _ = n.ledger.Head()
			}
		}
		n.compareTrees(ctx)
	}
}

func (n *Node) commitTree(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, treeEvery)
	defer cancel()
	r, err := n.submit(ctx, n.command(rules.KindTreeCommit, "", rules.CommitTree{}))
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		n.log.Debug("the root of the resource tree was not committed", "error", err)
	}
	return err == nil
}

// compareTrees asks the others which root they have for the newest commitment, and tells when one differs. It reports
// whether at least one could be compared.
func (n *Node) compareTrees(ctx context.Context) (compared bool) {
	own := n.treeCommitted()
	if own.Root == "" {
		return false
	}
	told := map[identity.NodeID]treeStand{}
	others := n.others()
	for _, m := range others[:min(len(others), maxTreesAsked)] {
		at, err := n.treeQuestion().put(ctx, n, m.Meta.Node, own)
		if err != nil {
			n.log.Debug("the root of the resource tree of a node is not known", "node", m.Meta.Node.Short(), "error", err)
		} else if at.Height == own.Height {
			told[m.Meta.Node] = at
		}
	}
	if len(told) == 0 {
		return false
	}
	n.trees.mu.Lock()
	fresh := n.trees.height != own.Height || !maps.Equal(n.trees.others, told)
	n.trees.height, n.trees.others = own.Height, told
	n.trees.mu.Unlock()
	if differ := differing(own, told); len(differ) > 0 && fresh {
		text := fmt.Sprintf("the resource trees differ at height %d: this node has the root %.12s, %s", own.Height, own.Root,
			n.namedTrees(differ, told))
		n.log.Error(text)
		n.events.Add(kernel.Event{Level: kernel.LevelError, Kind: "tree.differs", Message: text})
	}
	return true
}

// differing lists the nodes with another root, sorted.
func differing(own treeStand, told map[identity.NodeID]treeStand) (out []identity.NodeID) {
	for _, id := range slices.SortedFunc(maps.Keys(told), func(a, b identity.NodeID) int { return cmp.Compare(a, b) }) {
		if told[id].Root != own.Root {
			out = append(out, id)
		}
	}
	return out
}

// namedTrees lists nodes with their roots.
func (n *Node) namedTrees(list []identity.NodeID, told map[identity.NodeID]treeStand) string {
	var parts []string
	for _, id := range list {
		name := id.Short()
		if m, ok := n.roster.node(id); ok && m.Name != "" {
			name = m.Name
		}
		parts = append(parts, fmt.Sprintf("%s has %.12s", name, told[id].Root))
	}
	return strings.Join(parts, ", ")
}

// tree reports whether the nodes have one resource tree.
func (f *findings) tree(n *Node) {
	own, root := n.treeStand()
	n.trees.mu.Lock()
	told := maps.Clone(n.trees.others)
	if n.trees.height != own.Height {
		told = nil // a new commitment, which will be compared
	}
	n.trees.mu.Unlock()
	differ := differing(own, told)
	switch {
	case root == "":
		f.add("tree", mesh.CheckBad, "the resource tree is not well formed", "see the node's log")
	case 2*len(differ) > len(told)+1:
		f.add("tree", mesh.CheckBad, "this node has another resource tree than most: "+n.namedTrees(differ, told),
			"its state differs: when the digests of the states are compared, after at most 512 entries, the node "+
				"stops by itself, and "+
				"gets the others' state when it is started again")
	case len(differ) > 0:
		f.add("tree", mesh.CheckBad, "not all nodes have the same resource tree: "+n.namedTrees(differ, told),
			"run selvage doctor on them: where it says that the node has another tree than most, its state is wrong")
	case len(told) > 0:
		f.add("tree", mesh.CheckOK, fmt.Sprintf("root %.12s at height %d, on this node and %d others", own.Root, own.Height,
			len(told)), "")
	default:
		f.add("tree", mesh.CheckOK, fmt.Sprintf("root %.12s, not compared with another node yet", root), "")
	}
}
