// Package consensus puts commands in one order that all nodes agree on: raft, propose and forward, strong reads,
// voters.
//
// It wraps hashicorp/raft. The log and the stable values live in one span of
// the node's Pebble, synced; the state lives in another span that the
// [StateMachine] owns, unsynced, and follows the log.
//
//	Proposer  commands of this node -> signed batches, exactly one final outcome each
//	Propose   a batch -> leader (forwarded, at most maxHops) -> raft entry -> result
//	ReadIndex the index that a linearizable read must wait for
//	autopilot who votes (1, 3 or 5), who is only a learner, who is removed
//
// A new leader serves nothing until an entry of its own term, an empty one that
// it proposes at once, has passed through its own state machine. Time stamps,
// strong reads and receipts therefore always see everything that earlier
// leaders acknowledged.
package consensus
