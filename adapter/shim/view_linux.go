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
	// tryApart asks a shim whether this machine lets it make a view.
	tryApart = "--try-apart"
	// tryWait bounds that.
	tryWait = 10 * time.Second
)

// apart are the attributes of a shim whose node is not root: a user namespace in which
// it may mount, and has no other privilege. The machine's other users have no number
// in it: their files look as if they were nobody's, and are read as before.
func apart() *syscall.SysProcAttr {
	uid, gid := os.Geteuid(), os.Getegid()
	return &syscall.SysProcAttr{
		Setsid: true, Cloneflags: unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN}, // or the exec takes it
	}
}

// tried is what was found out of this machine, once in the life of a process.
var tried struct {
	once sync.Once
	why  string
}

// whyNotApart says why a shim of this user can not be apart, "" where it can. It is
// tried and not looked up: distributions forbid it, or the mounts in it, in ways of
// their own.
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

// tryView makes a view and tells whether it could.
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

// newView gives the calling thread mounts of its own.
func newView() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	return nil
}

// leaveNamespace takes from the calling thread, and what it starts, what apart gave.
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

// veil gives the calling thread, and all that it starts, a view of the files in
// which the hidden folders of a guard hold nothing but the way to what is shown in
// them: Landlock keeps files from being read, but lets names be listed. It takes a
// privilege that root has, and the shims of others where they are apart; without it
// nothing is changed, and a note says so. open is why the shim is not apart.
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
		return []string{"names of files in the data directories of nodes can be listed, and the files not be read: this machine gives the run no view of its own: " + open}, nil
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
			continue // a file has no names in it
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
	// maxIncluded bounds the files that it includes, maxIncludedBytes each of them;
	// together they fit into what veil mounts.
	maxIncluded, maxIncludedBytes = 32, 16 << 10
)

// includedBySSH are the files that the machine's configuration of ssh includes. A client
// refuses to start where one of them is neither root's nor its user's, and in a user
// namespace nothing is root's.
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

// ownCopies puts copies that belong to this user in the place of files, by way of a
// folder in which nothing stays. What fails leaves a file as it is: it is read all the
// same by whoever does not ask for its owner.
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
