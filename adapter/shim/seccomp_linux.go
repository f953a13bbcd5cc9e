package shim

import (
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// NoDatagramHold is the note for a tree whose datagrams are not held though its guard says so.
const NoDatagramHold = "this kernel filters no system calls: the program can send UDP and raw packets though it may not"

// An abi is a set of system calls that a program can use. A machine runs programs of several.
type abi struct {
	arch                              uint32
	socket, sendto, sendmsg, sendmmsg uint32
	// socketcall is all of these in one, with arguments that a filter can not see: old 32-bit programs that know no
	// other have no sockets. 0: none.
	socketcall uint32
}

// abis are those of the machines that a release is made for, and of the programs that these also run.
var abis = []abi{
	{arch: unix.AUDIT_ARCH_X86_64, socket: 41, sendto: 44, sendmsg: 46, sendmmsg: 307},
	{arch: unix.AUDIT_ARCH_I386, socket: 359, sendto: 369, sendmsg: 370, sendmmsg: 345, socketcall: 102},
	{arch: unix.AUDIT_ARCH_AARCH64, socket: 198, sendto: 206, sendmsg: 211, sendmmsg: 269},
	{arch: unix.AUDIT_ARCH_ARM, socket: 281, sendto: 290, sendmsg: 296, sendmmsg: 374, socketcall: 102},
	{arch: unix.AUDIT_ARCH_RISCV64, socket: 198, sendto: 206, sendmsg: 211, sendmmsg: 269},
}

// filtered are the machines whose system calls abis has. All of them are little-endian.
var filtered = map[string]bool{"amd64": true, "arm64": true, "arm": true, "riscv64": true}

const (
	// x32 marks the system calls of 64-bit programs with short pointers, which have numbers of their own.
	x32 = 0x40000000
	// ioUringSetup and the two numbers after it are the calls that do others in the background, past
	// any filter. They are the same everywhere.
	ioUringSetup = 425
	// Offsets in the kernel's struct seccomp_data.
	dataNumber, dataArch, dataArgs = 0, 4, 16

	allow   = unix.SECCOMP_RET_ALLOW
	refuse  = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
	unknown = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS) // programs have another way then
)

// A filter is a program of the kernel's for system calls. Its helpers jump over what follows them, never back.
type filter []unix.SockFilter

func (f *filter) add(code uint16, k uint32, jt, jf int) {
	*f = append(*f, unix.SockFilter{Code: code, Jt: uint8(jt), Jf: uint8(jf), K: k})
}

func (f *filter) load(offset uint32) { f.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0) }
func (f *filter) arg(n uint32)       { f.load(dataArgs + 8*n) }
func (f *filter) ret(action uint32)  { f.add(unix.BPF_RET|unix.BPF_K, action, 0, 0) }

// when goes through then if a test of the loaded value succeeds, else it goes on behind it.
func (f *filter) when(test uint16, k uint32, then func(*filter)) {
	var body filter
	then(&body)
	f.add(unix.BPF_JMP|test|unix.BPF_K, k, 0, len(body))
	*f = append(*f, body...)
}

// is ends with an action if the loaded value is k.
func (f *filter) is(k, action uint32) {
	f.when(unix.BPF_JEQ, k, func(f *filter) { f.ret(action) })
}

// connections returns the filter of a tree without a network: it may have TCP sockets if tcp is
// true, those of files, and the table of the machine's own addresses. It has no datagrams, no raw
// packets and no other family, and no connection that is made by sending.
func connections(tcp bool) (f filter) {
	for _, a := range abis {
		f.load(dataArch)
		f.when(unix.BPF_JEQ, a.arch, func(f *filter) { a.connections(f, tcp) })
	}
	f.ret(unknown) // a program of another machine, by emulation
	return f
}

func (a abi) connections(f *filter, tcp bool) {
	f.load(dataNumber)
	if a.arch == unix.AUDIT_ARCH_X86_64 {
		f.when(unix.BPF_JGE, x32, func(f *filter) { f.ret(unknown) })
	}
	for n := range uint32(3) {
		f.is(ioUringSetup+n, unknown)
	}
	if a.socketcall != 0 {
		f.is(a.socketcall, unknown)
	}
	// Landlock is not asked about a connection that the first data makes.
	for _, send := range []struct{ number, flags uint32 }{{a.sendto, 3}, {a.sendmsg, 2}, {a.sendmmsg, 3}} {
		f.when(unix.BPF_JEQ, send.number, func(f *filter) {
			f.arg(send.flags)
			f.when(unix.BPF_JSET, unix.MSG_FASTOPEN, func(f *filter) { f.ret(refuse) })
			f.ret(allow)
		})
	}
	f.when(unix.BPF_JEQ, a.socket, func(f *filter) {
		f.arg(0)
		f.is(unix.AF_UNIX, allow)
		f.when(unix.BPF_JEQ, unix.AF_NETLINK, func(f *filter) {
			f.arg(2)
			f.is(unix.NETLINK_ROUTE, allow)
			f.ret(refuse)
		})
		if tcp {
			for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
				f.when(unix.BPF_JEQ, family, stream)
			}
		}
		f.ret(refuse)
	})
	f.ret(allow)
}

// stream allows a socket if it is one of TCP. Other protocols have streams that Landlock does not see.
func stream(f *filter) {
	f.arg(1)
	f.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0xf, 0, 0) // the rest are flags
	f.when(unix.BPF_JEQ, unix.SOCK_STREAM, func(f *filter) {
		f.arg(2)
		f.is(0, allow)
		f.is(unix.IPPROTO_TCP, allow)
	})
	f.ret(refuse)
}

// filterCalls holds the calling thread, and all processes that it starts, to a filter. no_new_privs is set.
func filterCalls(f filter) (notes []string, err error) {
	if !filtered[runtime.GOARCH] {
		return []string{NoDatagramHold}, nil
	}
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
	runtime.KeepAlive(f)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // a kernel without filters, or an emulator
		return []string{NoDatagramHold}, nil
	}
	return nil, err
}
