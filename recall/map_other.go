//go:build !unix

package recall

import "os"

// mapFile reads a file where none are mapped.
func mapFile(path string) ([]byte, error) { return os.ReadFile(path) }

func unmapFile([]byte) {}
