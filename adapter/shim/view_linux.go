package shim

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// veil gives the calling thread, and all that it starts, a view of the files in
// which the hidden folders of a guard hold nothing but the way to what is shown in
// them: Landlock keeps files from being read, but lets names be listed. It takes a
// privilege that root has; without it nothing is changed.
func veil(g Guard) error {
	if os.Geteuid() != 0 || unix.Unshare(unix.CLONE_NEWNS) != nil {
		return nil
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil // what is mounted is still that of everybody, and so are the files
	}
	hidden := real(g.Hide)
	slices.Sort(hidden)
	hidden = slices.Compact(hidden)
	var inside []shownFolder
	for _, s := range real(g.Show) {
		if !slices.ContainsFunc(hidden, func(h string) bool { return within(s, h) }) {
			continue
		}
		fd, err := unix.Open(s, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("show %s: %w", s, err)
		}
		defer unix.Close(fd)
		inside = append(inside, shownFolder{s, fd})
	}
	last := ""
	for _, h := range hidden {
		if last != "" && within(h, last) {
			continue
		}
		last = h
		if info, err := os.Stat(h); err != nil || !info.IsDir() {
			continue // a file has no names in it
		}
		if err := unix.Mount("none", h, "tmpfs", unix.MS_NODEV|unix.MS_NOSUID, "mode=0755,size=1m"); err != nil {
			return fmt.Errorf("hide %s: %w", h, err)
		}
	}
	for _, s := range inside {
		if err := os.MkdirAll(s.path, 0o755); err != nil {
			return fmt.Errorf("show %s: %w", s.path, err)
		}
		if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", s.fd), s.path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("show %s: %w", s.path, err)
		}
	}
	return nil
}

type shownFolder struct {
	path string
	fd   int
}
