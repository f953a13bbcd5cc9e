package shim

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const statusFD = 3

// Main is the shim. It returns when the tree has ended: 0, or 2 if it was started by hand or
// with invalid input. args are a [Floor]; everything else arrives over the pipe.
func Main(args []string) int {
	if slices.Contains(args, tryApart) {
		return tryView()
	}
	var st unix.Stat_t
	if err := unix.Fstat(statusFD, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		os.Stderr.WriteString("run-shim is started by the node, not by hand\n")
		return 2
	}
	// The child gets 0, 1 and 2, and no descriptor that the node's parent left open. Kernels
	// before 5.11 can not do this in one call; there only the status descriptor is kept back.
	if err := unix.CloseRange(statusFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		unix.CloseOnExec(statusFD)
	}
	status := os.NewFile(statusFD, "status")
	// The shim ignores TERM and HUP: the pipe says when to stop. It catches and drops them,
	// because the child would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	defaultSignals()
	nameShim()
	s := &shim{status: status, orders: make(chan order), exits: make(chan exit), floor: floorOf(args)}
	defer status.Close()
	if !readable(0) {
		s.ready = prepare(Guard{Hide: s.floor.Hidden(), Confine: true, Write: Temporary})
	}
	var first order
	in := &rightsReader{}
	err := readFrame(in, &first)
	if err != nil || first.Spec == nil || len(in.files) != len(s.files) {
		s.tell(report{Failed: "no specification of what to run"})
		return 2
	}
	copy(s.files[:], in.files)
	if d := first.Spec.Deadline; d > 0 && d <= BootTime() {
		s.tell(report{Late: true})
		return 0
	}
	if err := s.start(*first.Spec); err != nil {
		s.tell(report{Failed: err.Error()})
		return 0
	}
	s.run(*first.Spec)
	return 0
}

type exit struct {
	pid    int
	status syscall.WaitStatus
}

// A shim watches one tree. All fields belong to the main goroutine.
type shim struct {
	status *os.File
	orders chan order // closed at the end of the pipe
	exits  chan exit  // children that were reaped
	files  [3]int     // the command's outputs and input, until it is started
	child  int
	floor  Floor
	ready  *ruleset // nil: no rules were prepared
	group  *cgroup  // nil: there is none
	last   []string
	env    []string // of last
}

// readable reports whether a read would not block.
func readable(fd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return n > 0 && err == nil
}

// A rightsReader reads the standard input and keeps the files that are sent with it.
type rightsReader struct{ files []int }

func (r *rightsReader) Read(b []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(3*4))
	for {
		n, oobn, _, _, err := unix.Recvmsg(0, b, oob, unix.MSG_CMSG_CLOEXEC)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		}
		messages, _ := unix.ParseSocketControlMessage(oob[:oobn])
		for _, m := range messages {
			fds, _ := unix.ParseUnixRights(&m)
			r.files = append(r.files, fds...)
		}
		if n == 0 && len(b) > 0 {
			return 0, io.EOF
		}
		return n, nil
	}
}

func (s *shim) tell(r report) {
	_ = writeFrame(s.status, r) // a node that has ended needs no report
}

// start makes this process the subreaper of its descendants and starts the command.
func (s *shim) start(spec Spec) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return errors.New("become subreaper: " + err.Error())
	}
	var (
		notes []string
		err   error
	)
	if s.floor.Cgroup != "" && spec.Limits.wantsCgroup() {
		if s.group, err = newCgroup(s.floor.Cgroup, spec.Limits); err != nil {
			notes = append(notes, "no cgroup could be made: "+err.Error())
		}
	}
	if s.group == nil && spec.Limits.MemoryMB > 0 {
		notes = append(notes, NoCgroup)
	}
	pid, more, err := s.begin(spec)
	if err != nil {
		s.group.remove()
		return errors.New("start " + spec.Path + ": " + err.Error())
	}
	notes = append(notes, more...)
	s.child = pid
	go yieldTree(pid)
	// Our copies would keep the pipes open after the tree has ended, and hide from writers
	// that nobody reads.
	for _, fd := range s.files {
		_ = unix.Close(fd)
	}
	s.tell(report{Started: &Started{PID: pid, Group: pid, Notes: notes}})
	return nil
}

func (s *shim) run(spec Spec) {
	s.last, s.env = spec.Last, spec.Env
	go s.listen()
	go s.reap()
	deadline := newDeadline(spec.Deadline)
	var grace <-chan time.Time
	var looks <-chan time.Time
	var watch *watch
	if s.group == nil && spec.Limits.wantsCgroup() {
		looks, watch = time.Tick(watchEvery), newWatch(spec.Limits, os.Getpid())
	}
	killed := ""
	for {
		select {
		case o, ok := <-s.orders:
			switch {
			case !ok:
				s.end("pipe")
				return
			case o.Kill:
				s.end("kill")
				return
			case o.Terminate != nil:
				killed = "terminate"
				signalTree(syscall.SIGTERM)
				signalTree(syscall.SIGCONT) // what is stopped would not end
				grace = time.After(time.Duration(*o.Terminate) * time.Millisecond)
			case o.Signal != "":
				s.signal(unix.SignalNum(o.Signal))
			case o.Deadline > 0:
				deadline.set(o.Deadline)
			}
		case <-grace:
			s.end(killed)
			return
		case <-deadline.passed:
			s.end("deadline")
			return
		case <-looks:
			if why := watch.exceeded(); why != "" {
				s.end(why)
				return
			}
		case e := <-s.exits:
			if e.pid == s.child {
				s.group.kill()
				killTree(s.exits)
				if killed == "" && s.group.outOfMemory() {
					killed = "memory"
				}
				s.exited(e.status, killed)
				return
			}
		}
	}
}

// signal sends a signal to the command, or one that stops and continues to the whole tree.
// 0 is none.
func (s *shim) signal(sig syscall.Signal) {
	switch sig {
	case 0:
	case syscall.SIGSTOP, syscall.SIGCONT:
		signalTree(sig)
	default:
		_ = syscall.Kill(s.child, sig) // it may have ended; the reaper says so
	}
}

// end kills the tree and reports how the command ended.
func (s *shim) end(why string) {
	status := syscall.WaitStatus(syscall.SIGKILL) // unless the reaper reports another
	s.group.kill()
	for _, e := range killTree(s.exits) {
		if e.pid == s.child {
			status = e.status
		}
	}
	s.tidy()
	s.exited(status, why)
}

// tidy runs the last command. The reaper collects its exit.
func (s *shim) tidy() {
	if len(s.last) == 0 {
		return
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer null.Close()
	fd := null.Fd()
	pid, err := syscall.ForkExec(s.last[0], s.last, &syscall.ProcAttr{Dir: "/", Env: s.env, Files: []uintptr{fd, fd, fd},
		Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		return
	}
	go s.reap() // the earlier reaper ended with the tree
	over := time.After(lastWait)
	for {
		select {
		case e := <-s.exits:
			if e.pid == pid {
				return
			}
		case <-over:
			killTree(s.exits)
			return
		}
	}
}

func (s *shim) exited(w syscall.WaitStatus, why string) {
	e := &Exit{Code: w.ExitStatus(), Killed: why}
	if w.Signaled() {
		e.Signal = unix.SignalName(w.Signal())
	}
	s.group.remove()
	s.tell(report{Exited: e})
}

// listen forwards the node's messages until the pipe is closed.
func (s *shim) listen() {
	defer close(s.orders)
	for {
		var o order
		if err := readFrame(os.Stdin, &o); err != nil {
			return
		}
		s.orders <- o
	}
}

// reap waits for every child, including adopted ones.
func (s *shim) reap() {
	for {
		var w syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &w, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // no child left; the main goroutine ends the process
			return
		case w.Exited() || w.Signaled():
			s.exits <- exit{pid, w}
		}
	}
}

// signalTree sends sig to every descendant.
func signalTree(sig syscall.Signal) []int {
	pids := descendants(os.Getpid())
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig)
	}
	return pids
}

// killTree kills every descendant and returns those that were reaped meanwhile. It stops them
// before it kills them, so that a tree that forks constantly can not escape. It returns when
// no child is left to reap.
func killTree(exits <-chan exit) []exit {
	var gone []exit
	for range killRounds {
		left := len(signalTree(syscall.SIGSTOP))
		signalTree(syscall.SIGKILL)
		pause := time.After(killPause)
	drain:
		for {
			select {
			case e := <-exits:
				gone = append(gone, e)
			case <-pause:
				break drain
			}
		}
		if left == 0 {
			break // the reaper had time to report the last one
		}
	}
	return gone
}

// descendants returns the processes below pid, parents first. It includes zombies: a process
// is a zombie if its first thread has ended while other threads continue.
func descendants(pid int) []int {
	names, err := readDirNames("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, name := range names {
		p, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if parent, ok := parentOf(p); ok {
			children[parent] = append(children[parent], p)
		}
	}
	var out []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		out = append(out, children[queue[0]]...)
		queue = append(queue, children[queue[0]]...)
	}
	return out
}

func readDirNames(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// parentOf reads the parent of a process.
func parentOf(pid int) (int, bool) {
	parent, _, ok := statOf(pid)
	return parent, ok
}

// A deadline fires once, when the boot-time clock passes it. That clock also runs while the
// machine is suspended.
type deadline struct {
	fd     int
	passed chan struct{}
}

func newDeadline(at time.Duration) *deadline {
	d := &deadline{passed: make(chan struct{})}
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC)
	if err != nil {
		close(d.passed) // without a clock there is no authority
		return d
	}
	d.fd = fd
	if at > 0 {
		d.set(at)
	}
	go func() {
		var n [8]byte
		for {
			if _, err := unix.Read(fd, n[:]); err != unix.EINTR {
				break
			}
		}
		close(d.passed)
	}()
	return d
}

func (d *deadline) set(at time.Duration) {
	_ = unix.TimerfdSettime(d.fd, unix.TFD_TIMER_ABSTIME,
		&unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(at, 1)))}, nil)
}

// BootTime reads the boot-time clock.
func BootTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("shim: no boot-time clock: " + err.Error()) // present since Linux 2.6.39
	}
	return time.Duration(ts.Nano())
}

// defaultSignals resets signals that the node's parent ignored and that Go's runtime does not
// change: a child would inherit that.
func defaultSignals() {
	var byDefault [4]uint64 // the kernel's struct sigaction: no handler, no flags, no mask
	for _, sig := range []uintptr{32, 33, 34} {
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	}
}
