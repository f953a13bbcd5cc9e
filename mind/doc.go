// Package mind is the cognitive tick of a node: it looks at what companies remember anew,
// finds what is alike, and links it.
//
// Impulses say what changed. A tick takes some of them through five steps: sense, embed,
// search, update, commit. What it found is one command for each company, which every node
// applies: the mind itself writes nothing. Only the leader's node commits; the others
// rest. The state says how far a company was looked at, so a new leader goes on there.
// Without impulses there is no tick at all, and no timer.
package mind
