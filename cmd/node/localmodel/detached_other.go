//go:build !unix

package localmodel

import "syscall"

// detached does nothing on systems without sessions.
func detached() *syscall.SysProcAttr { return nil }
