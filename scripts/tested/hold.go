package main

import (
	"flag"
	"fmt"
	"os"
)

// A held is a command that tested -hold runs. Two holders stand above it, the outer one that is
// called and the inner one that it starts: whichever is killed, the other one ends the rest.
type held struct {
	inner   bool
	parent  int    // process ID; when it is not this process's parent any more, the command ends
	remove  string // directory to remove at the end
	command []string
}

// parseHold reads what follows -hold.
func parseHold(args []string) (h held, err error) {
	f := flag.NewFlagSet("tested -hold", flag.ContinueOnError)
	f.BoolVar(&h.inner, "inner", false, "be the inner holder, which the outer one starts")
	f.IntVar(&h.parent, "parent", os.Getppid(), "process `ID` without which the command ends")
	f.StringVar(&h.remove, "remove", "", "`directory` to remove at the end")
	if err := f.Parse(args); err != nil {
		return h, err
	}
	if h.command = f.Args(); len(h.command) == 0 {
		return h, fmt.Errorf("name a command: tested -hold COMMAND [ARGUMENT...]")
	}
	return h, nil
}

// tidy removes the directory, on a thread that has the mounts of the machine: where the command has
// mounts of its own, it may have left some in the directory.
func (h held) tidy() {
	if h.remove == "" {
		return
	}
	removed := make(chan error)
	go func() { removed <- os.RemoveAll(h.remove) }()
	if err := <-removed; err != nil {
		fmt.Fprintln(os.Stderr, "tested:", err)
	}
}
