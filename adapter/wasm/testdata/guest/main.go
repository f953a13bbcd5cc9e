// The guest does what its first argument says, for tests.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/selvage-mesh/selvage/examples/wasmkit"
)

func main() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case "say":
		fmt.Println(os.Args[2])
	case "exit":
		os.Exit(4)
	case "spin":
		for {
		}
	case "sleep":
		time.Sleep(time.Hour)
	case "env":
		for _, kv := range os.Environ() {
			fmt.Println(kv)
		}
		_ = wasmkit.Log("info", "the key is "+os.Getenv("KEY"))
	case "ask":
		if err := wasmkit.Call(os.Args[2], map[string]string{"url": "https://example.com/"}, nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(5)
		}
	}
}
