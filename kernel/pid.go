package kernel

import (
	"fmt"
	"strconv"
	"strings"
)

// A PID numbers a process of one node. PIDs grow and are never used twice; 0 is the kernel.
type PID uint64

// KernelPID is the process of the node itself.
const KernelPID PID = 0

// String writes a PID in decimal.
func (p PID) String() string { return strconv.FormatUint(uint64(p), 10) }

// An Address names a process in the mesh: its node, by ID or by name, and its PID. The
// zero Node is the node that reads it.
type Address struct {
	Node string
	PID  PID
}

// String writes an address as "node:pid", or as "pid" where the node is not named.
func (a Address) String() string {
	if a.Node == "" {
		return a.PID.String()
	}
	return a.Node + ":" + a.PID.String()
}

// MarshalText and UnmarshalText write and read an address as String does.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what ParseAddress reads.
func (a *Address) UnmarshalText(b []byte) (err error) {
	*a, err = ParseAddress(string(b))
	return err
}

// maxNodeName bounds the node part of an address, in bytes: a node's name is shorter.
const maxNodeName = 128

// ParseAddress reads "node:pid" or "pid". A node's name may hold colons; the last one counts.
func ParseAddress(s string) (Address, error) {
	node, number := "", s
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		node, number = s[:i], s[i+1:]
		if node == "" || len(node) > maxNodeName {
			return Address{}, fmt.Errorf("process %q: the node before the colon has 1 to %d bytes", s, maxNodeName)
		}
	}
	pid, err := strconv.ParseUint(number, 10, 64)
	if err != nil || number[0] == '+' {
		return Address{}, fmt.Errorf("process %q: give a PID such as 12, or node:pid such as n1:12", s)
	}
	return Address{node, PID(pid)}, nil
}
