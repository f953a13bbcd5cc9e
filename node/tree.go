package node

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/ledger"
)

// treeEvery is how often the leader looks whether the resource tree has changed since its root was committed. Reading all of it
// takes milliseconds for thousands of agents, and nothing waits for it.
const treeEvery = time.Minute

// keepTree checks the resource tree when the node starts, and commits its root on the chain while the node leads. All nodes
// calculate the root when they apply the command, so a node with another tree stores another row and is quarantined.
func (n *Node) keepTree(ctx context.Context) {
	n.checkTree()
	seen := uint64(0)
	every(ctx, treeEvery, func() {
		height, _ := n.ledger.Head()
		if height == seen || !n.consensus.IsLeader() {
			return
		}
		if root, committed, ok := n.treeRoots(); !ok || root == committed {
			seen = height
			return
		}
		ctx, cancel := context.WithTimeout(ctx, treeEvery)
		defer cancel()
		r, err := n.submit(ctx, n.command(rules.KindTreeCommit, "", rules.CommitTree{}))
		if err == nil {
			err = r.Err()
		}
		if err != nil {
			n.log.Debug("the root of the resource tree was not committed", "error", err)
			return
		}
		seen, _ = n.ledger.Head()
	})
}

// treeRoots returns the root of the tree as this node has it, and the newest one on the chain.
func (n *Node) treeRoots() (root, committed string, ok bool) {
	err := n.ledger.View(func(tx *ledger.Tx) error {
		tree, err := rules.Tree(tx)
		if err != nil {
			return err
		}
		h := tree.Root()
		c, _ := rules.LastTreeCommit(tx)
		root, committed = hex.EncodeToString(h[:]), c.Root
		return nil
	})
	if err != nil {
		n.log.Warn("the resource tree is not well formed", "error", err)
	}
	return root, committed, err == nil
}

// checkTree tells at the start whether the tree is well formed, and whether its root is the one on the chain.
func (n *Node) checkTree() {
	if root, committed, ok := n.treeRoots(); ok && committed != "" {
		n.log.Info("resource tree checked", "root", root, "committed", committed, "unchanged", root == committed)
	}
}
