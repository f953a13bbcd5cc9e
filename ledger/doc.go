// Package ledger keeps what was agreed: the chain, the world state that follows
// from it, sessions and their outcomes, the roster, and the feed.
//
// Apply is deterministic: no clock, randomness, goroutines, network or map
// order. Everything that differs between nodes (time, identity, leadership)
// arrives as an argument, and every replica gets the same bytes.
package ledger
