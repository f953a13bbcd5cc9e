package wasm

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/sandbox"
)

// dirs opens the configured directories. The guest can not leave an opened directory; see
// sandbox.Dir.
func (r *run) dirs() (out []sandbox.Dir, err error) {
	defer func() {
		if err != nil {
			for _, d := range out {
				d.Root.Close()
			}
			out = nil
		}
	}()
	for _, spec := range r.config.Dirs {
		parts := strings.Split(spec, ":")
		d := sandbox.Dir{ReadOnly: len(parts) == 3 && parts[2] == "ro"}
		if len(parts) != 2 && !d.ReadOnly {
			return out, fmt.Errorf("WASM adapter dir %q is not HOST:GUEST or HOST:GUEST:ro", spec)
		}
		if d.Guest = parts[1]; !path.IsAbs(d.Guest) || path.Clean(d.Guest) != d.Guest {
			return out, fmt.Errorf("WASM adapter dir %q: the guest sees it at a clean absolute path", spec)
		}
		at, err := r.place(parts[0])
		if err != nil {
			return out, fmt.Errorf("WASM adapter dir %q: %w", spec, err)
		}
		if d.Root, err = os.OpenRoot(at); err != nil {
			return out, fmt.Errorf("WASM adapter dir %q is not on this node", spec)
		}
		out = append(out, d)
	}
	return out, nil
}

// place returns the directory on the node for a configured path.
func (r *run) place(host string) (string, error) {
	conf := r.adapter.cfg
	if host == "" {
		if conf.Home == "" {
			return "", fmt.Errorf("agents have no folders on this node")
		}
		at := filepath.Join(conf.Home, filepath.Base(r.inv.Run.Agent))
		return at, os.MkdirAll(at, 0o700)
	}
	if !filepath.IsAbs(host) {
		return "", fmt.Errorf("its path is not absolute")
	}
	at, err := filepath.EvalSymlinks(host)
	if err != nil {
		return "", fmt.Errorf("it is not on this node")
	}
	if conf.Hide != nil && slices.ContainsFunc(conf.Hide(), func(h string) bool {
		if to, err := filepath.EvalSymlinks(h); err == nil {
			h = to
		}
		return within(at, h) || within(h, at)
	}) {
		return "", fmt.Errorf("it holds files of this node, or of another on this machine")
	}
	return at, nil
}

func within(at, dir string) bool {
	rel, err := filepath.Rel(dir, at)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
