// Command wasm-go is an example agent for the wasm adapter: it checks an issue
// out, comments on it and closes it.
//
//	GOOS=wasip1 GOARCH=wasm go build -ldflags='-s -w' -o agent.wasm ./examples/wasm-go
//	selvage agent create Ada --adapter wasm --config '{"module": "/path/to/agent.wasm"}'
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/selvage-mesh/selvage/examples/wasmkit"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "wasm-go:", err)
		os.Exit(1)
	}
}

func run() error {
	me, err := wasmkit.Context()
	if err != nil {
		return err
	}
	issues, err := wasmkit.Mine(me.AgentID, "todo,in_progress")
	if err != nil {
		return err
	}
	done := 0
	for _, issue := range issues {
		if err := work(issue); err != nil {
			var no *wasmkit.Error
			if errors.As(err, &no) && no.Code == "Conflict" {
				fmt.Println(issue.Identifier, "is held by another run")
				continue
			}
			return fmt.Errorf("%s: %w", issue.Identifier, err)
		}
		done++
	}
	fmt.Printf("closed %d issue(s)\n", done)
	return nil
}

func work(issue wasmkit.Issue) error {
	if err := wasmkit.CheckOut(issue.ID); err != nil {
		return err
	}
	if err := wasmkit.Log("info", "working on "+issue.Identifier); err != nil {
		return err
	}
	if err := wasmkit.Comment(issue.ID, fmt.Sprintf("Done in the sandbox: %q has %d letters.", issue.Title,
		len(issue.Title))); err != nil {
		return err
	}
	return wasmkit.SetStatus(issue.ID, "done")
}
