package shim

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// NoNetHold is the note for a tree whose connections are not held though its guard says so.
const NoNetHold = "this kernel's Landlock holds no connections: the program reaches the network though it may not"

const (
	// netABI is the version of Landlock that holds TCP connections, of Linux 6.7, and scopeABI the one
	// that holds sockets without a file, of 6.12.
	netABI   = 4
	scopeABI = 6
	// rulePort is the type of a rule about a port; unix has no name for it.
	rulePort = 2
)

// networkCaps are the capabilities by which root sends past sockets, or changes the network.
var networkCaps = []uintptr{unix.CAP_NET_RAW, unix.CAP_NET_ADMIN}

// restrictNet restricts the connections of the calling thread and of all processes that it starts. Landlock
// holds TCP to a port, and a filter of system calls everything else. Without Landlock the filter holds TCP too if
// the tree has a socket.
func restrictNet(g Guard) (notes []string, err error) {
	if !g.HoldNet {
		return nil, nil
	}
	for _, c := range networkCaps {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) // EPERM: there is nothing to drop
	}
	held, err := holdTCP(g.Port)
	if err != nil {
		return nil, err
	}
	tcp := held || !g.Socket
	if notes, err = filterCalls(connections(tcp)); err != nil {
		return nil, err
	}
	if !held && (tcp || len(notes) > 0) {
		notes = append(notes, NoNetHold)
	}
	return notes, nil
}

// holdTCP has TCP connections made to one port alone, 0: to none. It reports whether this kernel can.
func holdTCP(port uint16) (held bool, err error) {
	version := landlockABI()
	if version < netABI {
		return false, nil
	}
	attr := unix.LandlockRulesetAttr{Handled_access_net: unix.LANDLOCK_ACCESS_NET_CONNECT_TCP}
	size := unsafe.Offsetof(attr.Handled_access_net) + unsafe.Sizeof(attr.Handled_access_net)
	if version >= scopeABI {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		size = unsafe.Offsetof(attr.Scoped) + unsafe.Sizeof(attr.Scoped)
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno == unix.EOPNOTSUPP || errno == unix.EINVAL { // a kernel without TCP, or without this part of Landlock
		return false, nil
	}
	if errno != 0 {
		return false, errno
	}
	defer unix.Close(int(fd))
	if port > 0 {
		rule := struct{ access, port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}
		if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, rulePort, uintptr(unsafe.Pointer(&rule)), 0, 0,
			0); errno != 0 {
			return false, errno
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return false, errno
	}
	return true, nil
}
