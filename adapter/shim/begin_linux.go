package shim

import (
	"errors"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// begin starts the command with its limits, guard and priority. Landlock, dropped
// capabilities, the nice value and the parent-death signal apply to the thread that forks, so
// begin uses one thread for it, which lives until the shim ends. The shim's other threads
// keep the node's priority, because they have to kill in time.
func (s *shim) begin(spec Spec) (pid int, notes []string, err error) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		pid, notes, err = s.fork(spec)
		close(done)
		select {}
	}()
	<-done
	return pid, notes, err
}

func (s *shim) fork(spec Spec) (pid int, notes []string, err error) {
	yieldThread() // before the thread drops its capabilities below
	files := []uintptr{uintptr(s.files[0]), uintptr(s.files[1]), uintptr(s.files[2])}
	if spec.Tool {
		pid, err = syscall.ForkExec(spec.Path, spec.Args, &syscall.ProcAttr{Dir: spec.Dir, Env: spec.Env, Files: files,
			Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}})
		return pid, nil, err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, nil, errors.New("give up new privileges: " + err.Error())
	}
	g, guarded := s.floor.guard(spec)
	if guarded {
		if notes, err = veil(g, s.floor.open); err != nil {
			return 0, nil, err
		}
		dropCapabilities()
	}
	if err := leaveNamespace(); err != nil {
		return 0, nil, err
	}
	if guarded {
		more, err := restrict(g, s.ready)
		if err != nil {
			return 0, nil, errors.New("restrict files: " + err.Error())
		}
		notes = append(notes, more...)
		if more, err = restrictNet(g); err != nil {
			return 0, nil, errors.New("restrict connections: " + err.Error())
		}
		notes = append(notes, more...)
	}
	sys := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if s.group != nil {
		sys.UseCgroupFD, sys.CgroupFD = true, int(s.group.dir.Fd())
	}
	attr := &syscall.ProcAttr{Dir: spec.Dir, Env: spec.Env, Files: files, Sys: sys}
	// The child stops at its exec until its limits are set. So they apply from its first
	// instruction, and not to this process.
	sys.Ptrace = true
	pid, err = syscall.ForkExec(spec.Path, spec.Args, attr)
	switch {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSYS):
		sys.Ptrace = false
		if pid, err = syscall.ForkExec(spec.Path, spec.Args, attr); err != nil {
			return 0, nil, err
		}
		notes = append(notes, "limits were set when the program had begun: this machine does not let it be held")
	case err != nil:
		return 0, nil, err
	}
	if sys.Ptrace {
		var w syscall.WaitStatus
		for {
			if _, err = syscall.Wait4(pid, &w, 0, nil); err != syscall.EINTR {
				break
			}
		}
		if err != nil || !w.Stopped() {
			return 0, nil, errors.New("it was ended before it began")
		}
	}
	for _, l := range spec.Limits.rlimits(s.group != nil) {
		if err := lower(pid, l); err != nil {
			notes = append(notes, "limit "+l.name+" could not be set: "+err.Error())
		}
	}
	if sys.Ptrace {
		if err := syscall.PtraceDetach(pid); err != nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			return 0, nil, errors.New("let it go: " + err.Error())
		}
	}
	return pid, notes, nil
}

// lower sets a limit, but never above the current one.
func lower(pid int, l rlimit) error {
	var now unix.Rlimit
	if err := unix.Prlimit(pid, l.resource, nil, &now); err != nil {
		return err
	}
	most := min(l.most, now.Max)
	return unix.Prlimit(pid, l.resource, &unix.Rlimit{Cur: min(most, l.soft()), Max: most}, nil)
}

// dangerous are the capabilities by which root can access files without opening them: mounting,
// devices, kernel modules, memory of other processes.
var dangerous = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_PTRACE,
	unix.CAP_SYS_BOOT,
	unix.CAP_MKNOD, unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE, unix.CAP_SYSLOG, unix.CAP_BPF, unix.CAP_PERFMON,
	unix.CAP_SYS_RESOURCE}

// dropCapabilities removes these capabilities from the processes that this thread starts. Only
// root has them; no one gains any later, because no_new_privs is set.
func dropCapabilities() {
	for _, c := range dangerous {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) // EPERM: there is nothing to drop
	}
}

// guard returns the guard that applies to a spec; false if there is none.
func (f Floor) guard(spec Spec) (Guard, bool) {
	if spec.Guard == nil {
		hide := f.Hidden()
		return Guard{Hide: hide}, len(hide) > 0
	}
	g := *spec.Guard
	g.Hide = append(f.Hidden(), g.Hide...)
	return g, true
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
