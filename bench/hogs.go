package main

import (
	"os/exec"
	"runtime"
)

// hogs starts two processes a core that do nothing but use it.
func hogs() (stop func()) {
	var cmds []*exec.Cmd
	for range 2 * runtime.NumCPU() {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		if cmd.Start() == nil {
			cmds = append(cmds, cmd)
		}
	}
	return func() {
		for _, c := range cmds {
			c.Process.Kill()
			c.Wait()
		}
	}
}
