package main

import (
	"encoding/json"
	"fmt"
	"os"
	"unsafe"
)

//go:wasmimport selvage take
func take(to unsafe.Pointer, length uint32) uint32

// onMessage is called for each message when this is built as a reactor, see docs/sandbox-abi.md. The
// message waits outside, as an answer does.
//
//go:wasmexport on_message
func onMessage(length uint32) {
	b := make([]byte, length)
	for at := uint32(0); at < length; {
		n := take(unsafe.Pointer(&b[at]), length-at)
		if n == 0 {
			break
		}
		at += n
	}
	var m envelope
	err := json.Unmarshal(b, &m)
	if err == nil {
		err = handle(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "talk:", m.ID, err)
	}
}
