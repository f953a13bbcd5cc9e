package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/company"
)

const (
	// DefaultProcesses bounds a tree that says nothing: no honest run has as many,
	// and a machine has room for several such.
	DefaultProcesses = 4096
	// maxPaths bounds writable and hidden, each.
	maxPaths = 64
)

// holding is what adapterConfig says of what a run may use and reach.
type holding struct {
	Limits shim.Limits `json:"limits"`
	// Landlock false opens to the run what its user may write, but for the node's
	// own files.
	Landlock *bool    `json:"landlock"`
	Writable []string `json:"writable"` // absolute paths, beside the run's own
	Hidden   []string `json:"hidden"`   // absolute paths that are not read
}

func (h holding) check() error {
	l := h.Limits
	for _, n := range []int64{l.MemoryMB, l.Processes, l.OpenFiles, l.CPUSec, l.FileMB} {
		if n < 0 || n > 1<<40 {
			return fmt.Errorf("limits of the adapterConfig must not be negative, or above %d", int64(1)<<40)
		}
	}
	if len(h.Writable) > maxPaths || len(h.Hidden) > maxPaths {
		return fmt.Errorf("adapterConfig has more than %d paths that are writable, or hidden", maxPaths)
	}
	for _, p := range append(append([]string{}, h.Writable...), h.Hidden...) {
		if !filepath.IsAbs(p) {
			return fmt.Errorf("path %q of the adapterConfig is not absolute", p)
		}
	}
	return nil
}

// hold sets what the tree of a run may use, and which files it reaches: it reads
// what its user may but for the node's own files, and writes in its working
// directory, its agent's folder, its scratch directory, the folders for temporary
// files, and where the job says that its program keeps things.
func (h holding) hold(spec *shim.Spec, inv company.Invocation, job Job, home, scratch string) {
	spec.Limits = h.Limits
	if spec.Limits.Processes == 0 {
		spec.Limits.Processes = DefaultProcesses
	}
	g := &shim.Guard{Hide: h.Hidden, Show: []string{home, scratch}, Confine: h.confines(job)}
	// A worktree is the node's own make, so it may lie among the node's files.
	if f := inv.Folder; f != nil && f.Worktree != "" {
		g.Show = append(g.Show, f.Dir)
		if repo := repositoryOf(f.Dir); repo != "" {
			g.Show = append(g.Show, repo)
		}
	}
	g.Write = append(append(append(g.Write, g.Show...), spec.Dir), shim.Temporary...)
	g.Write = append(append(g.Write, h.Writable...), job.Writable...)
	spec.Guard = g
}

// confines tells whether a job's command writes only where hold says.
func (h holding) confines(job Job) bool {
	if h.Landlock != nil {
		return *h.Landlock
	}
	return job.Confine
}

// caches are variables that lead what programs fetch and may lose into the agent's
// folder: those of the user are not written by a run that is confined.
var caches = map[string]string{"XDG_CACHE_HOME": "", "npm_config_cache": "npm", "GOMODCACHE": "go-mod", "CARGO_HOME": "cargo"}

func keepCaches(env map[string]string, home string) {
	for name, dir := range caches {
		if env[name] == "" {
			env[name] = filepath.Join(home, ".cache", dir)
		}
	}
}

// repositoryOf returns the folder of the repository that a worktree belongs to,
// which is written by commits. That the repository names the worktree too shows
// that it was not the run that made it up.
func repositoryOf(tree string) string {
	b, err := os.ReadFile(filepath.Join(tree, ".git"))
	if err != nil {
		return ""
	}
	at, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: ")
	if !ok {
		return ""
	}
	if at, err = filepath.EvalSymlinks(at); err != nil {
		return ""
	}
	back, err := os.ReadFile(filepath.Join(at, "gitdir"))
	if err != nil || filepath.Base(filepath.Dir(at)) != "worktrees" {
		return ""
	}
	named, err := filepath.EvalSymlinks(strings.TrimSpace(string(back)))
	own, err2 := filepath.EvalSymlinks(filepath.Join(tree, ".git"))
	if err != nil || err2 != nil || named != own {
		return ""
	}
	return filepath.Dir(filepath.Dir(at))
}

// tooMuch says what a tree was killed for, "" for something else.
func (h holding) tooMuch(killed string) string {
	switch killed {
	case "memory":
		return fmt.Sprintf("Its processes together used more than %d MiB of memory", h.Limits.MemoryMB)
	case "processes":
		n := h.Limits.Processes
		if n == 0 {
			n = DefaultProcesses
		}
		return fmt.Sprintf("It had more than %d processes", n)
	}
	return ""
}
