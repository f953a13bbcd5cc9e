package main

import "github.com/selvage-mesh/selvage/examples/wasmkit"

// call asks the host, see docs/sandbox-abi.md.
func call(method string, in, out any) error { return wasmkit.Call(method, in, out) }
