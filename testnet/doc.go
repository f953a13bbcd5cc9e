// Package testnet is a mesh on one machine: as real processes (this package's
// Processes, behind `selvage testnet`), or in one process with virtual time and
// faults (testnet/sim). It is for developers and for tests that need a mesh to
// break; it does not import the testing package.
package testnet
