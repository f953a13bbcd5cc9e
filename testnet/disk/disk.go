// Package disk is a file system in memory that loses what was not synced when its
// machine loses power. Unlike Pebble's own, a sync costs what was written since the
// last one, not the whole file again, and a crash takes its chances in one order.
package disk

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A Disk is a crashable [vfs.FS].
type Disk struct {
	mu    sync.Mutex // held for one call, never while something waits
	root  *node
	locks map[string]bool
}

var _ vfs.FS = (*Disk)(nil)

// New returns an empty disk.
func New() *Disk { return &Disk{root: newDir(), locks: map[string]bool{}} }

// A node is a file or a directory.
type node struct {
	content
	changed time.Time
	synced  content // what a power loss leaves
	dirty   int     // first block that may differ from what is synced
}

// content is what a file or a directory has: a directory has children, a file blocks.
type content struct {
	children map[string]*node // nil in a file
	blocks   []*block
	size     int
}

func newDir() *node { return &node{content: content{children: map[string]*node{}}} }

func (n *node) isDir() bool { return n.children != nil }

// blockSize is what a power loss takes or leaves as a whole.
const blockSize = 4096

// A block's bytes below fixed are also part of another content and stay as they are.
type block struct {
	b     [blockSize]byte
	fixed int
}

func (b *block) fix(n int) {
	if b.fixed < n { // not written where it is so already: two disks may share the block
		b.fixed = n
	}
}

// Crash returns the disk as it is after the power was lost: all that was synced, and
// of each block and each directory entry that was not, percent in a hundred.
func (d *Disk) Crash(percent int, rng *rand.Rand) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := New()
	after.root = d.root.crash(func() bool { return percent > 0 && rng.IntN(100) < percent })
	return after
}

func (n *node) crash(kept func() bool) *node {
	if !n.isDir() {
		return n.crashFile(kept)
	}
	after := newDir()
	left := maps.Clone(n.synced.children)
	if left == nil {
		left = map[string]*node{}
	}
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		if kept() {
			left[name] = n.children[name]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		after.children[name] = left[name].crash(kept)
	}
	after.synced.children = maps.Clone(after.children)
	return after
}

func (n *node) crashFile(kept func() bool) *node {
	after := &node{changed: n.changed}
	for i := range max(len(n.blocks), len(n.synced.blocks)) {
		from := &n.synced
		if i < len(n.blocks) && kept() {
			from = &n.content
		}
		b, used := from.at(i)
		if used == 0 {
			continue
		}
		for len(after.blocks) < i { // what lies before it was lost
			after.blocks = append(after.blocks, &block{})
		}
		if used == blockSize {
			b.fix(blockSize)
		} else {
			whole := b
			b = &block{fixed: used}
			copy(b.b[:used], whole.b[:used])
		}
		after.blocks = append(after.blocks, b)
		after.size = i*blockSize + used
	}
	after.synced = content{blocks: slices.Clone(after.blocks), size: after.size}
	for _, b := range after.blocks {
		b.fix(blockSize)
	}
	after.dirty = len(after.blocks)
	return after
}

// at returns block i and how much of it is used.
func (c *content) at(i int) (*block, int) {
	if i >= len(c.blocks) {
		return nil, 0
	}
	return c.blocks[i], min(blockSize, c.size-i*blockSize)
}

func (n *node) sync() {
	if n.isDir() {
		n.synced.children = maps.Clone(n.children)
		return
	}
	n.synced.blocks = append(n.synced.blocks[:n.dirty], n.blocks[n.dirty:]...)
	n.synced.size = n.size
	for i := n.dirty; i < len(n.blocks); i++ {
		b, used := n.at(i)
		b.fix(used)
	}
	n.dirty = n.size / blockSize // what is appended goes there
}

func (n *node) write(p []byte, off int) {
	if len(p) == 0 {
		return
	}
	n.changed = time.Now()
	for end := off + len(p); len(n.blocks)*blockSize < end; {
		n.blocks = append(n.blocks, &block{})
	}
	n.size = max(n.size, off+len(p))
	n.dirty = min(n.dirty, off/blockSize)
	for len(p) > 0 {
		i, at := off/blockSize, off%blockSize
		if b := n.blocks[i]; at < b.fixed {
			n.blocks[i] = &block{b: b.b}
		}
		done := copy(n.blocks[i].b[at:], p)
		p, off = p[done:], off+done
	}
}

func (n *node) read(p []byte, off int) (done int) {
	for off < n.size && done < len(p) {
		b, used := n.at(off / blockSize)
		k := copy(p[done:], b.b[off%blockSize:used])
		done, off = done+k, off+k
	}
	return done
}

// find returns what is at a path, and the directory that has it.
func (d *Disk) find(op, name string) (dir *node, base string, n *node, err error) {
	n = d.root
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." {
			continue
		}
		if n == nil || !n.isDir() {
			return nil, "", nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		dir, base, n = n, part, n.children[part]
	}
	return dir, base, n, nil
}

// there is find for what has to be there.
func (d *Disk) there(op, name string) (dir *node, base string, n *node, err error) {
	dir, base, n, err = d.find(op, name)
	if err == nil && n == nil {
		err = &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return dir, base, n, err
}

// Create makes a new file, in place of the one of that name.
func (d *Disk) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.create(name)
}

func (d *Disk) create(name string) (vfs.File, error) {
	dir, base, n, err := d.find("create", name)
	switch {
	case err != nil:
		return nil, err
	case dir == nil || n != nil && n.isDir():
		return nil, &fs.PathError{Op: "create", Path: name, Err: syscall.EISDIR}
	}
	n = &node{changed: time.Now()}
	dir.children[base] = n
	return &file{d: d, n: n, name: base, writes: true}, nil
}

// Open opens a file for reading.
func (d *Disk) Open(name string, _ ...vfs.OpenOption) (vfs.File, error) { return d.open(name, false) }

// OpenDir opens a directory, to sync it.
func (d *Disk) OpenDir(name string) (vfs.File, error) { return d.open(name, false) }

func (d *Disk) open(name string, writes bool) (vfs.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, base, n, err := d.there("open", name)
	if err != nil {
		return nil, err
	}
	return &file{d: d, n: n, name: base, writes: writes}, nil
}

// OpenReadWrite opens a file for both, and makes it if it is not there.
func (d *Disk) OpenReadWrite(name string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.open(name, true)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.create(name)
}

// ReuseForWrite removes the old file and makes a new one.
func (d *Disk) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.Remove(from); err != nil {
		return nil, err
	}
	return d.Create(to, c)
}

// Link gives a file a second name.
func (d *Disk) Link(from, to string) error { return d.name("link", from, to) }

// Rename gives a file or a directory another name.
func (d *Disk) Rename(from, to string) error { return d.name("rename", from, to) }

func (d *Disk) name(op, from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, base, n, err := d.there(op, from)
	if err != nil {
		return err
	}
	dir2, base2, old, err := d.find(op, to)
	switch {
	case err != nil:
		return err
	case dir == nil || dir2 == nil:
		return &fs.PathError{Op: op, Path: to, Err: fs.ErrInvalid}
	case op == "link" && old != nil:
		return &fs.PathError{Op: op, Path: to, Err: fs.ErrExist}
	case op == "rename":
		delete(dir.children, base)
	}
	dir2.children[base2] = n
	return nil
}

// Remove removes a file or an empty directory.
func (d *Disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, base, n, err := d.there("remove", name)
	switch {
	case err != nil:
		return err
	case dir == nil || len(n.children) > 0:
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOTEMPTY}
	}
	delete(dir.children, base)
	return nil
}

// RemoveAll removes a file or a directory with all that is in it.
func (d *Disk) RemoveAll(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, base, _, err := d.find("remove", name)
	if err == nil && dir != nil {
		delete(dir.children, base)
	}
	return nil // as the operating system's: what is not there is removed
}

// MkdirAll makes a directory, and those above it that are not there.
func (d *Disk) MkdirAll(name string, _ fs.FileMode) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.root
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." {
			continue
		}
		next := n.children[part]
		if next == nil {
			next = newDir()
			n.children[part] = next
		}
		if !next.isDir() {
			return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
		}
		n = next
	}
	return nil
}

// Lock makes a file that only one may hold.
func (d *Disk) Lock(name string) (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locks[name] {
		return nil, syscall.EAGAIN
	}
	if _, err := d.create(name); err != nil {
		return nil, err
	}
	d.locks[name] = true
	return unlock(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.locks, name)
	}), nil
}

type unlock func()

func (f unlock) Close() error { f(); return nil }

// List returns the names that a directory has.
func (d *Disk) List(name string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _, n, err := d.there("list", name)
	if err != nil {
		return nil, err
	}
	if !n.isDir() {
		return nil, &fs.PathError{Op: "list", Path: name, Err: syscall.ENOTDIR}
	}
	return slices.Sorted(maps.Keys(n.children)), nil
}

// Stat says what is at a path.
func (d *Disk) Stat(name string) (vfs.FileInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, base, n, err := d.there("stat", name)
	if err != nil {
		return nil, err
	}
	return n.info(base), nil
}

// PathBase returns the last element of a path.
func (*Disk) PathBase(p string) string { return path.Base(p) }

// PathJoin makes one path.
func (*Disk) PathJoin(elem ...string) string { return path.Join(elem...) }

// PathDir returns a path without its last element.
func (*Disk) PathDir(p string) string { return path.Dir(p) }

// GetDiskUsage is not supported.
func (*Disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{}, vfs.ErrUnsupported
}

// Unwrap returns nil, for there is nothing below.
func (*Disk) Unwrap() vfs.FS { return nil }
