package shim

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// tryApart makes a shim test whether this machine lets it make a view.
	tryApart = "--try-apart"
	// tryWait bounds that test.
	tryWait = 10 * time.Second
)

// apart returns the attributes of a shim whose node is not root: a user namespace in which it
// may mount, without other privileges. Other users of the machine are not mapped in it: their
// files appear to belong to nobody, and can be read as before.
func apart() *syscall.SysProcAttr {
	uid, gid := os.Geteuid(), os.Getegid()
	return &syscall.SysProcAttr{
		Setsid: true, Cloneflags: unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN}, // else the exec drops it
	}
}

// tried is the result of the test, made once per process.
var tried struct {
	once sync.Once
	why  string
}

// whyNotApart returns why a shim of this user can not have a namespace, "" if it can. It makes
// the test, because distributions forbid namespaces, or mounts in them, in different ways.
func whyNotApart(argv []string) string {
	tried.once.Do(func() {
		ctx, stop := context.WithTimeout(context.Background(), tryWait)
		defer stop()
		cmd := exec.CommandContext(ctx, argv[0], append(slices.Clone(argv[1:]), tryApart)...)
		cmd.Env, cmd.SysProcAttr = []string{"GOMAXPROCS=1"}, apart()
		if said, err := cmd.CombinedOutput(); err != nil {
			tried.why = strings.TrimSpace(err.Error() + " " + string(said))
		}
	})
	return tried.why
}

// tryView makes a view and returns whether that worked, as an exit code.
func tryView() int {
	runtime.LockOSThread()
	err := newView()
	if err == nil {
		err = os.NewSyscallError("mount", unix.Mount("none", "/", "tmpfs", 0, "size=1m"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// newView gives the calling thread its own mount namespace.
func newView() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	return nil
}

// leaveNamespace removes from the calling thread, and processes that it starts, the privileges
// that apart gave.
func leaveNamespace() error {
	if os.Geteuid() == 0 {
		return nil
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now, none [2]unix.CapUserData
	if err := unix.Capget(&head, &now[0]); err == nil && now == none {
		return nil
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	if err := unix.Capset(&head, &none[0]); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	return nil
}

// veil gives the calling thread, and all processes that it starts, a view of the files in which
// the hidden folders of a guard contain only the paths to the folders in Show. Landlock
// prevents reading files, but not listing names. This needs a privilege that root has, and
// other users' shims in their namespace; without it nothing changes, and a note says so. open
// is why the shim has no namespace.
func veil(g Guard, open string) (notes []string, err error) {
	hidden := real(g.Hide)
	if len(hidden) == 0 {
		return nil, nil
	}
	if open == "" {
		if err := newView(); err != nil {
			open = err.Error()
		}
	}
	if open != "" {
		return []string{"names of files in the data directories of nodes can be listed, and the files not be read: this " +
			"machine gives the run no view of its own: " + open}, nil
	}
	slices.Sort(hidden)
	hidden = slices.Compact(hidden)
	var inside []shownFolder
	for _, s := range real(g.Show) {
		if !slices.ContainsFunc(hidden, func(h string) bool { return within(s, h) }) {
			continue
		}
		fd, err := unix.Open(s, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("show %s: %w", s, err)
		}
		defer unix.Close(fd)
		inside = append(inside, shownFolder{s, fd})
	}
	last := ""
	for _, h := range hidden {
		if last != "" && within(h, last) {
			continue
		}
		if info, err := os.Stat(h); err != nil || !info.IsDir() {
			continue // a file contains no names
		}
		last = h
		if err := unix.Mount("none", h, "tmpfs", unix.MS_NODEV|unix.MS_NOSUID, "mode=0755,size=1m"); err != nil {
			return nil, fmt.Errorf("hide %s: %w", h, err)
		}
	}
	if last != "" && os.Geteuid() != 0 {
		ownCopies(last, includedBySSH())
	}
	for _, s := range inside {
		if err := os.MkdirAll(s.path, 0o755); err != nil {
			return nil, fmt.Errorf("show %s: %w", s.path, err)
		}
		if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", s.fd), s.path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return nil, fmt.Errorf("show %s: %w", s.path, err)
		}
	}
	return nil, nil
}

type shownFolder struct {
	path string
	fd   int
}

const (
	sshConfig = "/etc/ssh/ssh_config"
	// maxIncluded bounds the included files, maxIncludedBytes each of them; together they fit
	// into the file system that veil mounts.
	maxIncluded, maxIncludedBytes = 32, 16 << 10
)

// includedBySSH returns the files that the machine's ssh configuration includes. An ssh client
// refuses to start if one of them belongs to neither root nor its user, and in a user namespace
// no file belongs to root.
func includedBySSH() (out []string) {
	for files := []string{sshConfig}; len(files) > 0; files = files[1:] {
		b, err := os.ReadFile(files[0])
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n=\"", r) })
			if len(words) == 0 || !strings.EqualFold(words[0], "include") {
				continue
			}
			for _, pattern := range words[1:] {
				if !filepath.IsAbs(pattern) {
					pattern = filepath.Join(filepath.Dir(sshConfig), pattern)
				}
				found, _ := filepath.Glob(pattern)
				for _, f := range real(found) {
					if len(out) < maxIncluded && !slices.Contains(out, f) {
						out, files = append(out, f), append(files, f)
					}
				}
			}
		}
	}
	return out
}

// ownCopies mounts copies that belong to this user over files; each is made in the folder by
// and unlinked. If that fails, the original stays, and programs that do not check the owner
// can read it.
func ownCopies(by string, files []string) {
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxIncludedBytes {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		copied := filepath.Join(by, "copy")
		if os.WriteFile(copied, b, 0o444) == nil {
			_ = unix.Mount(copied, f, "", unix.MS_BIND, "")
		}
		_ = os.Remove(copied)
	}
}
