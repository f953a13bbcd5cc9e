// Package entity holds what a company keeps, and what may become of each by itself:
// companies, agents, goals, projects, issues, comments, labels, wake-ups and runs, as
// rows; the transitions of a row, which are methods on plain values and refuse what
// may not be; their tables and indexes; and the questions that rooms ask of them.
//
// Nothing here handles a command. The rules over several rows, and what follows when
// one is stored, are package company's.
package entity
