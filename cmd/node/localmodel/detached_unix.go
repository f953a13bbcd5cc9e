//go:build unix

package localmodel

import "syscall"

// detached has a process outlive the terminal that it was started from.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
