package shim

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	// maxNodes bounds the registered nodes of one machine that are read.
	maxNodes = 256
	// usersRuntime has each user's runtime folder.
	usersRuntime = "/run/user"
	nodesFolder  = "selvage/nodes"
)

// NodesDir returns the folder in which a user's nodes register their data directories, "" if
// there is no place for it. runtime is $XDG_RUNTIME_DIR, home the user's home.
func NodesDir(runtime, home string) string {
	switch {
	case os.Geteuid() == 0:
		return "/run/" + nodesFolder
	case filepath.IsAbs(runtime):
		return filepath.Join(runtime, nodesFolder)
	case filepath.IsAbs(home):
		return filepath.Join(home, ".local/state", nodesFolder)
	}
	return ""
}

// Register registers this node's data directory for the other nodes of the machine, so that
// none of their runs can access it, even while this node is stopped. It removes entries of
// directories that no longer exist.
//
// A file has the absolute path of one data directory and a line break; its name is the first
// half of the path's SHA-256 in hex. Readers ignore files that they do not understand.
func Register(nodes, dir string) error {
	if err := os.MkdirAll(nodes, 0o700); err != nil {
		return err
	}
	files, err := readDirNames(nodes)
	if err != nil {
		return err
	}
	for _, name := range files {
		path := filepath.Join(nodes, name)
		if of, ok := registered(path); ok {
			if _, err := os.Stat(of); errors.Is(err, os.ErrNotExist) {
				_ = os.Remove(path) // another start may have removed it
			}
		}
	}
	sum := sha256.Sum256([]byte(dir))
	path := filepath.Join(nodes, hex.EncodeToString(sum[:16]))
	part := path + ".part"
	if err := os.WriteFile(part, []byte(dir+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// registered reads the entry of one node.
func registered(path string) (dir string, ok bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > syscall.PathMax {
		return "", false
	}
	b, err := os.ReadFile(path)
	dir = strings.TrimSuffix(string(b), "\n")
	return dir, err == nil && filepath.IsAbs(dir) && filepath.Clean(dir) == dir
}

// Hidden returns the folders that no tree of the node can access: those in Hide, the data of
// the machine's other nodes (registered ones, and those next to its own), and the folder of
// the registrations. Code that gives runs access to folders in another way calls it for each
// run, because nodes come and go.
func (f Floor) Hidden() []string {
	out := append([]string{}, f.Hide...)
	if f.Nodes == "" {
		return out
	}
	add := func(dir, told string) {
		if len(out) < maxNodes && isData(dir, told) {
			out = append(out, dir)
		}
	}
	folders := []string{f.Nodes}
	if os.Geteuid() == 0 {
		more, _ := filepath.Glob(usersRuntime + "/*/" + nodesFolder)
		folders = append(folders, more...)
	}
	for _, folder := range folders {
		names, err := readDirNames(folder)
		if err != nil {
			continue
		}
		out = append(out, folder)
		for _, name := range names {
			if dir, ok := registered(filepath.Join(folder, name)); ok {
				add(dir, filepath.Join(folder, name))
			}
		}
	}
	for _, dir := range f.beside() {
		add(dir, filepath.Join(dir, keyFile))
	}
	return out
}

// isData reports whether a folder is a node's data directory and belongs to the same user as
// its registration: a user can not hide folders of another.
func isData(dir, told string) bool {
	var key, teller syscall.Stat_t
	return syscall.Stat(filepath.Join(dir, keyFile), &key) == nil && syscall.Lstat(told, &teller) == nil &&
		(key.Uid == teller.Uid || teller.Uid == 0)
}
