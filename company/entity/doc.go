// Package entity holds the rows of the kernel: companies, agents, goals, projects, issues,
// comments, labels, wakeups and runs. It has their transitions, which are methods on plain
// values and refuse what is not allowed, their tables and indexes, and the queries that
// rooms make.
//
// No command is handled here. Rules over several rows, and what follows when a row is
// stored, are in package company.
package entity
