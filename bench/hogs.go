package main

import (
	"os/exec"
	"runtime"
	"syscall"
)

// hogs starts so many processes a core that do nothing but use it. Each has a
// session of its own: where the kernel shares the processor between sessions
// first (autogroup, as on desktops), hogs of one session would count as one.
func hogs(perCore int) (stop func()) {
	var cmds []*exec.Cmd
	for range perCore * runtime.NumCPU() {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
		if cmd.Start() == nil {
			cmds = append(cmds, cmd)
		}
	}
	return func() {
		for _, c := range cmds {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}
}
