package shim

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Access rights of Landlock rules: for a file or a folder, to read or to write. None includes
// making device files.
const (
	readFile  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	readDir   = unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	writeDir  = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_REFER
	makeDevice = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// maxRules bounds the rules of one tree, and so the cost of a large folder above a hidden one:
// about 5 µs for each entry.
const maxRules = 16_384

// devices are device files that every program may write.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx",
	"/dev/pts", "/dev/shm"}

// rawDevices are the character devices that give access to the machine's memory.
var rawDevices = []string{"mem", "kmem", "port", "kmsg"}

// landlockABI returns the kernel's version of Landlock, 0 without it.
func landlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// restrict restricts the file access of the calling thread and all processes it starts. It uses
// the prepared rules (nil: none) if they fit. If the kernel does not support a restriction, it
// returns a note; if the kernel does and fails, an error.
func restrict(g Guard, ready *ruleset) (notes []string, err error) {
	r := ready
	plan, more := g.plan(r.list)
	if r == nil || !r.within(plan) {
		if r, notes, err = newRuleset(); r == nil {
			return notes, err
		}
		defer r.close()
	}
	for _, p := range plan {
		if err := r.allow(p); err != nil {
			return nil, err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); errno != 0 {
		return nil, errno
	}
	return append(append(notes, r.notes...), more...), nil
}

// A ruleset is the file access of a thread that is restricted to it.
type ruleset struct {
	fd      int
	handled uint64
	notes   []string // what this kernel's Landlock lacks
	// Only in a ruleset that was prepared before it is needed:
	made   map[string]uint64  // the rules
	listed map[string]listing // the folders from which they were made
}

// A listing is the entries of a folder at a time.
type listing struct {
	entries []string
	changed unix.Timespec // modification time of the folder when it was listed
	settled bool          // a later change would change the time: file clocks are coarse
}

// settledAfter is longer than one tick of the coarsest file system clock.
const settledAfter = 100 * time.Millisecond

// prepare makes the rules of a guard ahead, so that most of them exist when a run starts: a
// large folder needs several hundred. It returns nil without Landlock.
func prepare(g Guard) *ruleset {
	r, _, err := newRuleset()
	if r == nil || err != nil {
		return nil
	}
	r.made, r.listed = map[string]uint64{}, map[string]listing{}
	plan, _ := g.plan(r.list)
	for _, p := range plan {
		if err := r.allow(p); err != nil {
			r.close()
			return nil
		}
	}
	for _, p := range plan {
		r.made[p.path] = p.rights
	}
	return r
}

// list returns the entries of a folder, from the earlier listing if the folder is unchanged.
func (r *ruleset) list(dir string) []string {
	if r == nil || r.listed == nil {
		return list(dir)
	}
	old, ok := r.listed[dir]
	var st unix.Stat_t
	known := unix.Stat(dir, &st) == nil
	if ok && known && old.settled && st.Mtim == old.changed {
		return old.entries
	}
	for _, e := range old.entries {
		if _, ok := r.made[e]; ok {
			r.made[e] = 0 // the name may now belong to another file
		}
	}
	l := listing{entries: list(dir), changed: st.Mtim}
	l.settled = known && time.Since(time.Unix(st.Mtim.Unix())) > settledAfter
	r.listed[dir] = l
	return l.entries
}

// within reports whether a plan includes everything that the rules allow.
func (r *ruleset) within(plan []grant) bool {
	rights := make(map[string]uint64, len(plan))
	for _, p := range plan {
		rights[p.path] = p.rights
	}
	for path, made := range r.made {
		if now, ok := rights[path]; !ok || made&^now != 0 {
			return false
		}
	}
	return true
}

func (r *ruleset) close() { unix.Close(r.fd) }

// newRuleset returns an empty ruleset, or nil and a note if the kernel has no Landlock.
func newRuleset() (r *ruleset, notes []string, err error) {
	abi := landlockABI()
	if abi == 0 {
		return nil, []string{"this kernel has no Landlock: only ownership and modes keep the run from files of this " +
			"node"}, nil
	}
	handled := uint64(readFile | readDir | writeFile | writeDir | makeDevice)
	if abi < 2 {
		handled &^= unix.LANDLOCK_ACCESS_FS_REFER
		notes = append(notes, "this kernel's Landlock lets no file be moved to another folder")
	}
	if abi < 3 {
		handled &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled}
	size := unsafe.Sizeof(attr.Handled_access_fs) // the size that every kernel accepts
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL // the tree may signal itself, but not the node
		size = unsafe.Offsetof(attr.Scoped) + unsafe.Sizeof(attr.Scoped)
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return nil, nil, errno
	}
	return &ruleset{fd: int(fd), handled: handled, notes: notes}, nil, nil
}

// allow adds a rule, unless it exists. Missing files and links need none: the target of a link
// has its own rule.
func (r *ruleset) allow(g grant) error {
	if _, ok := r.listed[filepath.Dir(g.path)]; ok && r.made[g.path] == g.rights {
		return nil
	}
	fd, err := unix.Open(g.path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil
	}
	rights := g.rights & r.handled
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
	case unix.S_IFLNK:
		return nil
	default:
		rights &= readFile | writeFile
	}
	if rights == 0 {
		return nil
	}
	rule := struct { // packed in the kernel: 12 bytes
		access uint64
		fd     int32
	}{rights, int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 && errno != unix.EBADFD {
		return errors.New("allow " + g.path + ": " + errno.Error())
	}
	return nil
}

// A grant is a path and the access to everything below it.
type grant struct {
	path   string
	rights uint64
}

const (
	toRead  = uint64(readFile | readDir)
	toWrite = uint64(readFile | readDir | writeFile | writeDir)
)

// plan converts a guard to grants. Landlock can only allow. To hide a path, plan allows
// everything next to it, and next to each folder above it. So a file that is created later
// directly in one of these folders is not accessible.
func (g Guard) plan(list func(string) []string) (out []grant, notes []string) {
	hidden, shown := real(g.Hide), real(g.Show)
	at := map[string]int{} // index of a path's grant in out
	allow := func(path string, rights uint64) {
		if i, ok := at[path]; ok {
			out[i].rights |= rights
			return
		}
		at[path] = len(out)
		out = append(out, grant{path, rights})
	}
	// Without this rule no folder can be listed. Names need not be hidden here; see veil.
	allow("/", readDir)
	listed := map[string][]string{}
	var beside func(path string, rights uint64)
	beside = func(path string, rights uint64) {
		switch {
		case slices.ContainsFunc(hidden, func(h string) bool { return within(path, h) }):
		case slices.ContainsFunc(hidden, func(h string) bool { return within(h, path) }), path == "/dev":
			if _, ok := listed[path]; !ok {
				listed[path] = list(path)
			}
			for _, e := range listed[path] {
				beside(e, rights)
			}
		case len(out) < maxRules:
			allow(path, rights)
		}
	}
	rest := toRead
	if !g.Confine {
		rest = toWrite
	}
	beside("/", rest)
	for _, p := range shown {
		allow(p, rest)
	}
	if g.Confine {
		for _, p := range devices {
			allow(p, toWrite)
		}
		for _, w := range real(g.Write) {
			in := func(d string) bool { return within(w, d) }
			above := slices.ContainsFunc(hidden, func(h string) bool { return h != w && within(h, w) })
			switch {
			case slices.ContainsFunc(hidden, in) && !slices.ContainsFunc(shown, in):
				notes = append(notes, w+" holds files of the node itself and is not open to the run")
			case above:
				beside(w, toWrite)
				notes = append(notes, w+" is above files of the node itself: the run makes no new files directly in it")
			default:
				allow(w, toWrite)
			}
		}
	}
	if len(out) >= maxRules {
		notes = append(notes, "there are too many files beside those that are hidden; some are out of reach")
	}
	return out, notes
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// real resolves links in paths and leaves out paths that do not exist.
func real(paths []string) (out []string) {
	for _, p := range paths {
		if p, err := filepath.EvalSymlinks(p); err == nil && filepath.IsAbs(p) {
			out = append(out, filepath.Clean(p))
		}
	}
	return out
}

// list returns the entries of a folder that may get a rule: no links, no disks, and no memory
// devices.
func list(dir string) (out []string) {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(maxRules)
	for _, e := range entries {
		t := e.Type()
		if t&fs.ModeSymlink != 0 || t&fs.ModeDevice != 0 && t&fs.ModeCharDevice == 0 || dir == "/dev" &&
			slices.Contains(rawDevices, e.Name()) {
			continue
		}
		out = append(out, filepath.Join(dir, e.Name()))
	}
	return out
}
