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

// Rights of Landlock, by what a rule may give: on a file, on a folder, to read
// and to write. Making device files is in none.
const (
	readFile  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	readDir   = unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	writeDir  = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_REFER
	makeDevice = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// maxRules bounds the rules of one tree, and with them what a folder full of
// entries above a hidden one costs: some 5 µs each.
const maxRules = 16_384

// devices are written by every program.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm"}

// rawDevices are the character devices that are memory of the machine.
var rawDevices = []string{"mem", "kmem", "port", "kmsg"}

// landlockABI is the version of the kernel's, 0 without.
func landlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// restrict keeps files from the calling thread and all it starts, by the rules
// that are ready (nil: none) where they serve. A kernel that can not do it is a
// note; one that can and fails is an error.
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

// A ruleset is what a thread may do with files, once it is restricted to it.
type ruleset struct {
	fd      int
	handled uint64
	notes   []string // what this kernel's Landlock lacks
	// A ruleset that is made before anybody needs it also has:
	made   map[string]uint64  // the rules
	listed map[string]listing // the folders that they came from
}

// A listing is what a folder had.
type listing struct {
	entries []string
	changed unix.Timespec // the folder, when it was listed
	settled bool          // a change since would show: clocks of files are coarse
}

// settledAfter is above the coarsest clock of a file system.
const settledAfter = 100 * time.Millisecond

// prepare makes the rules that a guard asks for, so that most of them are there
// when a run begins: there are some hundreds in a full folder. It returns nil
// where there is no Landlock.
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

// list returns the entries of a folder, as they were read before when they are
// the same still.
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
			r.made[e] = 0 // it may be another file of the same name
		}
	}
	l := listing{entries: list(dir), changed: st.Mtim}
	l.settled = known && time.Since(time.Unix(st.Mtim.Unix())) > settledAfter
	r.listed[dir] = l
	return l.entries
}

// within tells whether all that the rules allow is in a plan.
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

// newRuleset returns an empty ruleset, or nil and a note where the kernel has none.
func newRuleset() (r *ruleset, notes []string, err error) {
	abi := landlockABI()
	if abi == 0 {
		return nil, []string{"this kernel has no Landlock: only ownership and modes keep the run from files of this node"}, nil
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
	size := unsafe.Sizeof(attr.Handled_access_fs) // as much as every kernel knows
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL // the tree signals itself, not the node
		size = unsafe.Offsetof(attr.Scoped) + unsafe.Sizeof(attr.Scoped)
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return nil, nil, errno
	}
	return &ruleset{fd: int(fd), handled: handled, notes: notes}, nil, nil
}

// allow adds a rule, unless it is there. What is not there, or a link, needs
// none: a link's target has its own.
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
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 && errno != unix.EBADFD {
		return errors.New("allow " + g.path + ": " + errno.Error())
	}
	return nil
}

// A grant is a path and what may be done with all below it.
type grant struct {
	path   string
	rights uint64
}

const (
	toRead  = uint64(readFile | readDir)
	toWrite = uint64(readFile | readDir | writeFile | writeDir)
)

// plan turns a guard into grants: Landlock can only allow, so what is hidden is
// left out by allowing everything beside it, and beside each folder above it. A
// file that is made directly in such a folder later is therefore out of reach.
func (g Guard) plan(list func(string) []string) (out []grant, notes []string) {
	hidden, shown := real(g.Hide), real(g.Show)
	at := map[string]int{} // where a path's grant stands in out
	allow := func(path string, rights uint64) {
		if i, ok := at[path]; ok {
			out[i].rights |= rights
			return
		}
		at[path] = len(out)
		out = append(out, grant{path, rights})
	}
	// Without a rule no folder can be listed; names are not what is hidden.
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

// within tells whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// real are paths without links; what is not there is left out.
func real(paths []string) (out []string) {
	for _, p := range paths {
		if p, err := filepath.EvalSymlinks(p); err == nil && filepath.IsAbs(p) {
			out = append(out, filepath.Clean(p))
		}
	}
	return out
}

// list returns the entries of a folder that a rule may be for: no links, no
// disks and no memory of the machine.
func list(dir string) (out []string) {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(maxRules)
	for _, e := range entries {
		t := e.Type()
		if t&fs.ModeSymlink != 0 || t&fs.ModeDevice != 0 && t&fs.ModeCharDevice == 0 || dir == "/dev" && slices.Contains(rawDevices, e.Name()) {
			continue
		}
		out = append(out, filepath.Join(dir, e.Name()))
	}
	return out
}
