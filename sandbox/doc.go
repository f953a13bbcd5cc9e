// Package sandbox runs programs that nobody trusts: WebAssembly modules with
// WASI, under limits that are enforced and not merely counted.
//
// A module is parsed and checked before any compiler sees it, rewritten so that
// it meters itself, compiled once per content (in a child process when it is
// large, so that compilation can be killed), and instantiated per call.
//
// # Instances
//
// What a call may find at its beginning is an image: the module's data, or what a
// reactor left in memory when it had begun without asking for anything but clocks,
// chance, arguments and variables. Instances map it privately, so they share what
// they do not write to. One whose call returned, and changed nothing but memory,
// globals and streams, is made what it was at its birth and serves the next call
// that may find the same. Fuel of a beginning is charged to each call, whether it
// happened in that call or before.
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
// that leads to them, up to 128 units at a point and 512 where a function begins, so
// a program is never charged less than it executes and a little more where it
// branches much. What a function does before a loop is charged with each turn where
// that is an eighth of a turn at most, so that a call of such a function charges
// once.
//
// Go's compiler writes nearly every function as a loop around a jump by a number,
// and a goto within it as one more turn. Those that lead forward become branches
// out of a block: they do not go round, so they need no looking at. Those that lead
// back are charged for what they lead to, and the rest where the function begins.
// The program does without the others and their fuel, which makes up for part of
// what metering costs it.
//
// # Depth
//
// Functions that can come back to themselves keep an estimate of the stack they
// use in a second global, and pay a unit for every 64 bytes of it. The host looks
// at it with the fuel: past 8 MiB, and 16 MiB later at most, the run ends with a
// trap.
//
// The room knows nothing of companies. What a guest may ask of its host beyond
// WASI is a map of functions that the caller hands in: see Host, and
// docs/sandbox-abi.md for the guest's side.
package sandbox
