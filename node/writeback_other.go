//go:build !linux

package node

import "os"

func writeBack(*os.File, int64, int64) {}
