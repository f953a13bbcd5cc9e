//go:build !linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// run runs the command. What that leaves behind stays where there are no subreapers.
func (h held) run() int {
	defer h.tidy()
	cmd := exec.Command(h.command[0], h.command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(1, e.ExitCode()) // -1 of what a signal ended
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "tested:", err)
		return 1
	}
	return 0
}
