//go:build unix

package recall

import (
	"fmt"
	"os"
	"syscall"
)

// mapFile maps a file into memory, so that reading it takes no heap. A saved graph is
// replaced by a rename, never written to or cut by a node.
func mapFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 || info.Size() != int64(int(info.Size())) {
		return nil, fmt.Errorf("map %s: has %d bytes", path, info.Size())
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return b, nil
}

// unmapFile gives back what mapFile returned.
func unmapFile(b []byte) { _ = syscall.Munmap(b) }
