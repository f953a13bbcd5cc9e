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
	// maxNodes bounds the nodes of one machine that are looked at.
	maxNodes = 256
	// usersRuntime is where each user's folder for running programs lies.
	usersRuntime = "/run/user"
	nodesFolder  = "selvage/nodes"
)

// NodesDir is the folder in which the nodes of a user tell where their data lies,
// "" when there is no place for it. runtime is $XDG_RUNTIME_DIR, home that of the user.
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

// Register tells the other nodes of the machine where this one has its data, so
// that no run of theirs reaches it, also while this node is stopped. What is told of
// directories that are gone is removed.
//
// A file has the absolute path of one data directory and a line break; its name is
// the first half of the path's SHA-256 in hex. Readers pass over what they do not
// understand.
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
				_ = os.Remove(path) // another start may have done it
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

// registered reads what one node told.
func registered(path string) (dir string, ok bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > syscall.PathMax {
		return "", false
	}
	b, err := os.ReadFile(path)
	dir = strings.TrimSuffix(string(b), "\n")
	return dir, err == nil && filepath.IsAbs(dir) && filepath.Clean(dir) == dir
}

// Hidden are the folders that no tree of the node reaches: what it was told, the
// data of the other nodes on the machine, those that told of it and those beside its
// own, and the folder in which they tell. Whoever opens folders to runs in another way
// asks at each run: nodes come and go.
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

// isData tells whether a folder is a node's data, and of the same user as what
// tells of it: nobody hides another's folders.
func isData(dir, told string) bool {
	var key, teller syscall.Stat_t
	return syscall.Stat(filepath.Join(dir, keyFile), &key) == nil && syscall.Lstat(told, &teller) == nil &&
		(key.Uid == teller.Uid || teller.Uid == 0)
}
