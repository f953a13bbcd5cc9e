package shim

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// shimName is the process name of a shim. It identifies the shims of all nodes and programs.
const shimName = "run-shim"

const (
	// walkTries bounds how often the walk up the ancestors of a process is restarted because
	// one of them ended meanwhile.
	walkTries = 8
	// walkDepth bounds a chain of ancestors.
	walkDepth = 4096
	// firstPIDNamespace is the kernel's name for the namespace that has all processes of the
	// machine.
	firstPIDNamespace = "pid:[4026531836]"
)

// ErrCaller says that the process at the other end of a connection can not be determined.
var ErrCaller = errors.New("no process of this machine is seen to hold the connection")

// nameShim gives this process the name by which shims are recognised.
func nameShim() {
	_ = os.WriteFile("/proc/self/comm", []byte(shimName), 0) // sets the first thread's name, whichever thread writes it
}

// FromRun reports whether the client of a TCP connection on this machine is a process below
// the shim of a run, of any node. It returns false only if it finds a process that has the
// client's socket and is not below a shim. If no process has the socket any more, or only
// processes that this one may not inspect, it returns an error. While there is no shim on the
// machine, any existing client counts as outside runs.
//
// One call reads one file per process of the machine, and if there are shims, also one per
// open file of the inspected processes: those of runs, then the process found last, then all.
func FromRun(client, server netip.AddrPort) (bool, error) {
	// The list is made first: a process that has the connection later existed before, and so
	// did its shim.
	procs, err := processes()
	if err != nil {
		return false, err
	}
	end, err := endOf(client, server)
	switch {
	case err != nil && len(procs.shims) == 0:
		return false, nil // this system can not tell, and there is no run to distinguish from
	case err != nil:
		return false, err
	case end.inode == 0:
		return false, ErrCaller
	case len(procs.shims) == 0:
		return false, nil
	}
	if euid := uint32(os.Geteuid()); euid != 0 && end.uid != euid {
		// Processes of other users can not be inspected. A run has the user of its shim; if that
		// is root, any user.
		for _, s := range procs.shims {
			if uid, ok := userOf(s); !ok || uid == end.uid || uid == 0 {
				return false, ErrCaller
			}
		}
		return false, nil
	}
	return procs.holder(end)
}

// lastHolder is the process outside runs that was last found to hold a client's socket. It is
// asked first: this changes how many processes are inspected, never the result.
var lastHolder atomic.Int64

// A table is a snapshot of the machine's processes.
type table struct {
	pids   []int       // highest number first, which is usually newest first
	parent map[int]int // by process
	shims  []int
}

func processes() (t table, err error) {
	names, err := readDirNames("/proc")
	if err != nil {
		return t, err
	}
	t.parent = make(map[int]int, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		parent, comm, ok := statOf(pid)
		if !ok {
			continue
		}
		t.pids, t.parent[pid] = append(t.pids, pid), parent
		if comm == shimName {
			t.shims = append(t.shims, pid)
		}
	}
	slices.Sort(t.pids)
	slices.Reverse(t.pids)
	return t, nil
}

// below reports whether a process is below a shim in the snapshot.
func (t table) below(pid int) bool {
	for range walkDepth {
		if slices.Contains(t.shims, pid) {
			return true
		}
		parent, ok := t.parent[pid]
		if !ok {
			return false
		}
		pid = parent
	}
	return true
}

// holder finds the process that has an end of a connection, and reports whether it is a run's.
func (t table) holder(end end) (run bool, err error) {
	link := "socket:[" + strconv.FormatUint(uint64(end.inode), 10) + "]"
	var others []int
	var runs []int
	for _, pid := range t.pids {
		if !t.below(pid) {
			others = append(others, pid)
			continue
		}
		if held, _ := holds(pid, link); held {
			return true, nil
		}
		runs = append(runs, pid)
	}
	// Most requests come from the process that made one before, such as a browser.
	if i := slices.Index(others, int(lastHolder.Load())); i > 0 {
		others[0], others[i] = others[i], others[0]
	}
	perhaps := false
	for _, pid := range others {
		held, seen := holds(pid, link)
		if held {
			lastHolder.Store(int64(pid))
			// Its parent may have ended while the snapshot was made, so that in the snapshot it is
			// not below its shim.
			return belowShim(pid)
		}
		if !seen && !perhaps {
			uid, ok := userOf(pid)
			perhaps = ok && uid == end.uid
		}
	}
	// A process that nobody may inspect, such as the sshd process of a tunnel, is assumed to
	// have the socket if no run has it or could hide it; so is a process outside the container
	// in which this node runs.
	if at, err := os.Readlink("/proc/self/ns/pid"); !perhaps && (err != nil || at == firstPIDNamespace) {
		return false, ErrCaller
	}
	for _, pid := range runs {
		if mayHide(pid, link) {
			return false, ErrCaller
		}
	}
	return false, nil
}

// mayHide reports whether a process may have the open file link without listing it: in another
// thread's table, in transit over a unix socket, or in an io_uring. A process that may not be
// inspected may hide it.
func mayHide(pid int, link string) bool {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task/"
	threads, err := readDirNames(tasks)
	for _, tid := range threads {
		dir := tasks + tid + "/fd/"
		var names []string
		if names, err = readDirNames(dir); err != nil {
			break
		}
		for _, name := range names {
			at, err := os.Readlink(dir + name)
			switch {
			case errors.Is(err, fs.ErrPermission), at == link, at == "anon_inode:[io_uring]":
				return true
			case strings.HasPrefix(at, "socket:"):
				info, _ := os.ReadFile(tasks + tid + "/fdinfo/" + name)
				_, waiting, _ := bytes.Cut(info, []byte("scm_fds:"))
				if f := bytes.Fields(waiting); len(f) > 0 && string(f[0]) != "0" {
					return true
				}
			}
		}
	}
	return err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH)
}

// belowShim reports whether a process is now below a shim.
func belowShim(pid int) (bool, error) {
again:
	for range walkTries {
		at := pid
		for range walkDepth {
			parent, comm, ok := statOf(at)
			switch {
			case !ok && at == pid:
				return false, ErrCaller
			case !ok:
				continue again // it ended, and its children have another parent now
			case comm == shimName:
				return true, nil
			case parent == 0:
				return false, nil
			}
			at = parent
		}
		return true, nil
	}
	return false, ErrCaller
}

// holds reports whether a process has the open file link, and whether its files may be
// inspected. An ended process has none.
func holds(pid int, link string) (held, seen bool) {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	names, err := readDirNames(dir)
	if err != nil {
		return false, errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
	}
	seen = true
	for _, name := range names {
		at, err := os.Readlink(dir + "/" + name)
		if at == link {
			return true, true
		}
		seen = seen && !errors.Is(err, fs.ErrPermission)
	}
	return false, seen
}

// statOf returns the parent and the name from "pid (name) state ppid …". The name may contain
// any character, so the last parenthesis ends it.
func statOf(pid int) (parent int, comm string, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, "", false
	}
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return 0, "", false
	}
	fields := strings.Fields(string(b[end+1:]))
	if len(fields) < 2 {
		return 0, "", false
	}
	parent, err = strconv.Atoi(fields[1])
	return parent, string(b[open+1 : end]), err == nil
}

// userOf returns the effective user of a process.
func userOf(pid int) (uint32, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte("Uid:")); ok {
			if f := strings.Fields(string(rest)); len(f) > 1 {
				uid, err := strconv.ParseUint(f[1], 10, 32)
				return uint32(uid), err == nil
			}
		}
	}
	return 0, false
}

// An end is one end of a connection. Inode 0 means that no process has it any more.
type end struct {
	inode, uid uint32
}

// endOf finds the client's end; its inode is 0 if there is none. An error means that this
// system can not tell.
func endOf(client, server netip.AddrPort) (end, error) {
	client = netip.AddrPortFrom(client.Addr().Unmap().WithZone(""), client.Port())
	server = netip.AddrPortFrom(server.Addr().Unmap().WithZone(""), server.Port())
	if e, err := diagEnd(client, server); err == nil {
		return e, nil
	}
	// The kernel has no sock_diag, or the end is gone.
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) && file == "/proc/net/tcp6" {
			break
		}
		if err != nil {
			return end{}, err
		}
		if e, ok := listedEnd(b, client, server); ok {
			return e, nil
		}
	}
	return end{}, nil
}

// listedEnd finds an end in the text of /proc/net/tcp or tcp6: one heading, then lines "sl
// local remote state tx:rx tr:when retransmits uid timeout inode …". Addresses are in hex, as
// 32-bit words in the machine's byte order.
func listedEnd(list []byte, client, server netip.AddrPort) (end, bool) {
	for line := range bytes.Lines(list) {
		f := bytes.Fields(line)
		if len(f) < 10 || listedAddr(f[1]) != client || listedAddr(f[2]) != server {
			continue
		}
		uid, err := strconv.ParseUint(string(f[7]), 10, 32)
		inode, err2 := strconv.ParseUint(string(f[9]), 10, 32)
		return end{uint32(inode), uint32(uid)}, err == nil && err2 == nil
	}
	return end{}, false
}

func listedAddr(text []byte) (a netip.AddrPort) {
	host, port, _ := bytes.Cut(text, []byte(":"))
	b := make([]byte, hex.DecodedLen(len(host)))
	n, err := hex.Decode(b, host)
	if err != nil || n%4 != 0 {
		return a
	}
	for w := b; len(w) >= 4; w = w[4:] {
		binary.BigEndian.PutUint32(w, binary.NativeEndian.Uint32(w))
	}
	ip, ok := netip.AddrFromSlice(b)
	p, err := strconv.ParseUint(string(port), 16, 16)
	if !ok || err != nil {
		return a
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(p))
}

const (
	diagRequest = 16 + 56 // struct nlmsghdr, struct inet_diag_req_v2
	diagAnswer  = 16 + 72 // struct nlmsghdr, struct inet_diag_msg
	byFamily    = 20      // SOCK_DIAG_BY_FAMILY
)

// diagEnd asks the kernel for one socket by its addresses. The cost does not depend on the
// number of sockets.
func diagEnd(client, server netip.AddrPort) (end, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return end{}, err
	}
	defer unix.Close(fd)
	// The kernel answers within the request; the timeout is for one that does not.
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return end{}, err
	}
	b := make([]byte, diagRequest)
	binary.NativeEndian.PutUint32(b, diagRequest)
	binary.NativeEndian.PutUint16(b[4:], byFamily)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	req := b[16:]
	req[0], req[1] = unix.AF_INET, unix.IPPROTO_TCP
	if client.Addr().Is6() {
		req[0] = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(req[4:], ^uint32(0)) // any state
	binary.BigEndian.PutUint16(req[8:], client.Port())
	binary.BigEndian.PutUint16(req[10:], server.Port())
	copy(req[12:28], client.Addr().AsSlice())
	copy(req[28:44], server.Addr().AsSlice())
	binary.NativeEndian.PutUint64(req[48:], ^uint64(0)) // no cookie
	if err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return end{}, err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return end{}, err
	}
	if typ := binary.NativeEndian.Uint16(answer[4:]); n < diagAnswer || typ != byFamily {
		return end{}, fmt.Errorf("sock_diag: message %d of %d bytes", typ, n)
	}
	msg := answer[16:n]
	if binary.BigEndian.Uint16(msg[6:]) != server.Port() {
		return end{}, errors.New("sock_diag: it is a listener of the same port")
	}
	return end{uid: binary.NativeEndian.Uint32(msg[64:]), inode: binary.NativeEndian.Uint32(msg[68:])}, nil
}
