//go:build !unix

package localmodel

import "syscall"

// detached does nothing where there are no sessions.
func detached() *syscall.SysProcAttr { return nil }
