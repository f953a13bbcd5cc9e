package shim

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// NoNetHold is the note for a tree whose connections are not held though its guard says so.
const NoNetHold = "this kernel's Landlock holds no connections: the program reaches the network though it may not"

const (
	// netABI is the version of Landlock that holds TCP connections, of Linux 6.7.
	netABI = 4
	// rulePort is the type of a rule about a port; unix has no name for it.
	rulePort = 2
)

// restrictNet restricts the connections of the calling thread and of all processes that it starts.
func restrictNet(g Guard) (notes []string, err error) {
	if !g.HoldNet {
		return nil, nil
	}
	if landlockABI() < netABI {
		return []string{NoNetHold}, nil
	}
	attr := unix.LandlockRulesetAttr{Handled_access_net: unix.LANDLOCK_ACCESS_NET_CONNECT_TCP}
	size := unsafe.Offsetof(attr.Handled_access_net) + unsafe.Sizeof(attr.Handled_access_net)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno == unix.EOPNOTSUPP || errno == unix.EINVAL { // a kernel without TCP, or without this part of Landlock
		return []string{NoNetHold}, nil
	}
	if errno != 0 {
		return nil, errno
	}
	defer unix.Close(int(fd))
	if g.Port > 0 {
		rule := struct{ access, port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(g.Port)}
		if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, rulePort, uintptr(unsafe.Pointer(&rule)), 0, 0,
			0); errno != 0 {
			return nil, errno
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return nil, errno
	}
	return nil, nil
}
