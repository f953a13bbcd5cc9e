// Package company is what a company is and what may happen to it: pure rules.
//
// Rows are plain values, rules are methods on them (value in, value out), and
// handlers are the shell: load, call the rule, store. Nothing here reads a
// clock, draws a random number, starts a goroutine or touches the network.
// Names, shapes and status codes are those of the recorded contract.
//
// This package is the kernel: the commands of companies, agents, issues and their
// checkout, comments, runs, goals, projects, labels, and the rules over several rows;
// the rows themselves are package entity's. The rooms beside it (money, people, paper …) import it
// and never each other; what it needs of them it asks through [Rules].
package company
