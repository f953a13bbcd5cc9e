// Package sandbox runs programs that nobody trusts: WebAssembly modules with
// WASI, under limits that are enforced and not merely counted.
//
// A module is parsed and checked before any compiler sees it, rewritten so that
// it meters itself, compiled once per content (in a child process when it is
// large, so that compilation can be killed), and instantiated per call.
//
// # Fuel
//
// The rewritten module keeps what is left of its fuel in a global of its own.
// Every run of instructions subtracts its cost there; loops and functions look
// whether the rest is negative and then call the host, which looks at the clock,
// the budget and whether somebody wants the end, and hands out the next slice.
// So a deadline is noticed within a slice (250,000 units, under a millisecond)
// although nothing looks at a clock in between.
//
// An instruction costs one unit; block, loop, else, end, nop, drop, return and
// unreachable cost nothing; a call of the host costs 64, growing memory or a
// table 512, and instructions that work on ranges one more for every 64 bytes or
// elements. Short runs that may or may not be reached are charged with the run
// that leads to them, up to 64 units at a point, so a program is never charged
// less than it executes and a little more where it branches much.
//
// # Depth
//
// Functions that can come back to themselves keep an estimate of the stack they
// use in a second global; past 8 MiB the run ends with a trap.
//
// The room knows nothing of companies. What a guest may ask of its host beyond
// WASI is a map of functions that the caller hands in: see Host, and
// docs/sandbox-abi.md for the guest's side.
package sandbox
