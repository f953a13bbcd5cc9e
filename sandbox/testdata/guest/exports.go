//go:build wasip1

package main

//go:wasmexport fib
func exportedFib(n int32) int32 { return int32(fib(int(n))) }

//go:wasmexport echo
func echo(n int32) int32 { return n + 1 }
