package lan

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// rerunPrivate executes this program again, as the same process, in a mount namespace that has a
// directory of its own for the names of network namespaces. The kernel removes both with the last
// process there, and with the names the network namespaces: also when this process is killed and
// cleans up nothing. It returns only if that fails.
func rerunPrivate() error {
	runtime.LockOSThread() // the namespace is that of the thread, and then of what it executes
	if err := os.MkdirAll("/run/netns", 0o755); err != nil {
		return err
	}
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err := errors.Join(syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SLAVE, ""),
		syscall.Mount("none", "/run/netns", "tmpfs", 0, "mode=755")); err != nil {
		return os.NewSyscallError("mount", err)
	}
	return os.NewSyscallError("exec", syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), privateEnv+"=yes")))
}

// endsWithThis has the kernel kill a command when this process ends, however it does.
func endsWithThis(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
