//go:build unix

package localmodel

import "syscall"

// detached lets a process outlive the terminal that started it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
