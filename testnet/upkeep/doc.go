// Package upkeep does what operators do: it watches a mesh with a real Prometheus, and
// upgrades one, node by node, with two builds of the program.
//
// `make system` fetches Prometheus; without it the tests that need it are skipped.
package upkeep
