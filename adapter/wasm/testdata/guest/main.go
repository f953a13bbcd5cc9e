// Command guest does what its first argument says, for tests.
package main

import (
	"encoding/json"
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
		var answer any
		var request any = map[string]string{"url": "https://example.com/"}
		if len(os.Args) > 3 {
			request = json.RawMessage(os.Args[3])
		}
		if err := wasmkit.Call(os.Args[2], request, &answer); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(5)
		}
	case "files":
		for _, at := range os.Args[2:] {
			b, err := os.ReadFile(at)
			if err == nil {
				err = os.WriteFile(at+".new", b, 0o600)
			}
			fmt.Printf("%s %q %v\n", at, b, err)
		}
	}
}
