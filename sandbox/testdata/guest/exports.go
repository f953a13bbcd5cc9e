//go:build wasip1

package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
)

var (
	calls int
	kept  [][]byte
)

// run tells what it finds of earlier calls: nothing, each time.
//
//go:wasmexport run
func run() {
	calls++
	fmt.Println("call", calls, len(kept), len(os.Args))
	kept = append(kept, make([]byte, 100_000))
	switch {
	case len(os.Args) < 2:
	case os.Args[1] == "leave":
		os.Exit(4)
	case os.Args[1] == "fail":
		panic("as it was told")
	}
}

//go:wasmexport fib
func exportedFib(n int32) int32 { return int32(fib(int(n))) }

//go:wasmexport echo
func echo(n int32) int32 { return n + 1 }

//go:wasmexport sorting
func sorting(n int32) int32 {
	a := make([]int, n)
	x := uint32(7)
	for i := range a {
		x = x*1664525 + 1013904223
		a[i] = int(x >> 8)
	}
	sort.Ints(a)
	return int32(a[0])
}

//go:wasmexport hashing
func hashing(kib int32) int32 {
	return int32(sha256.Sum256(make([]byte, int(kib)<<10))[0])
}

//go:wasmexport text
func text(n int32) int32 {
	words := map[string]int{}
	for i := range int(n) {
		words[strings.ToUpper("word"+strconv.Itoa(i%100))]++
	}
	return int32(len(words))
}
