// Package ledger keeps what was agreed: the chain, the world state that follows
// from it, sessions and their outcomes, the roster, and the feed.
//
// Apply is deterministic: no clock, randomness, goroutines, network or map
// order. Everything that differs between nodes (time, identity, leadership)
// arrives as an argument, and every replica gets the same bytes, however the
// entries of the log are grouped.
//
// A committed batch goes through apply in this order: its form and version
// (what is newer stops the ledger, see [ErrUpgrade]); mesh and origin; then for
// each command: sequence, origin not revoked and session not ended, the
// configured Authorize, Idempotency-Key, configured Gate, handler; and for what was
// applied, denied or deferred a link of the chain. One write per group holds all of it.
//
// Keys of the state, each format described where it is written:
//
//	c/<company>/<table>/<id>   rows and indexes of a company; tables that begin
//	                           with '~' are the ledger's: ~payload, ~act…, ~idem…
//	m/<table>/<id>             rows of the mesh: node, session, token, keys, …
//	!b<index> !e<height>       batch records and entries, big endian
//	!d<index> !pos             digests at fixed indexes, and the position
package ledger
