// Package company is what a company is and what may happen to it: pure rules.
//
// Rows are plain values. Rules are methods on them: value in, value out. Handlers are
// the shell: load, call the rule, store. Nothing here reads a clock, draws a random
// number, starts a goroutine or touches the network. Names, shapes and status codes are
// those of the recorded contract.
//
// This package is the kernel: the commands of companies, agents, issues and their
// checkout, comments, runs, goals, projects and labels, and the rules over several rows.
// Package entity has the rows themselves. The rooms beside it (money, people, paper …)
// import it and never each other. It calls them through [Rules].
package company
