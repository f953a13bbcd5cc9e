// Package cause tells why something happened in a company, and what came of it.
//
// The graph is not stored. Nearly every cause is a field of a row already (a run has the
// comment that woke it, a sub-issue its parent, a cost its run) or stands in the entry of
// the command (its actor, its run, and all that it changed). Each room says how its rows
// hang together as a [Part]; a [Graph] is all parts, and walks them. Reading is bounded by
// the limits of this package, and stays within one company.
package cause
