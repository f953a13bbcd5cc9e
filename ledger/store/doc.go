// Package store is the one place that opens Pebble: spans, sync, full and slow disks.
//
// One database per node holds several spans, each under a one-byte prefix of
// its own: consensus keeps the raft log in span 'r' and syncs it, ledger keeps
// the state in span 's' and does not. Both share the write-ahead log, which is
// written in the order of the commits: when an append to 'r' is durable, every
// commit to 's' before it is durable too, and after a power loss the state is
// never ahead of the log.
//
// What was synced is noted beside the files, in MARK (see mark.go), so a log that
// lost its end is told from one that a power loss tore: [Open] returns a [Damage],
// and [Options.OnDamage] hears of wrong bytes that are met later.
//
// Failures: what a caller can act on is an error ([ErrLocked], [ErrDiskFull],
// [ErrNotFound], [ErrClosed]). A read error inside an iteration is a panic of
// type [Failure], so that loops over a span stay loops. An error after which
// the database may not go on (a failed sync, a broken manifest) is given to
// [Options.OnFatal] and then ends the process.
package store
