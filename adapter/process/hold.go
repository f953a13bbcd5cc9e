package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
)

const (
	// A plain command, of the process adapter, gets what a container gets, so that one
	// that runs away is noticed before the machine does.
	PlainProcesses = 256
	PlainMemoryMB  = 512
	PlainFileMB    = 256
	// A tool is an agent that writes and builds programs, or what makes its workspace
	// ready: it gets half of the machine's memory, and no less than minToolMemoryMB.
	ToolProcesses   = 1024
	ToolFileMB      = 4096
	minToolMemoryMB = 1024
	// tasksEach is how many threads a process has on average at most, where a cgroup
	// counts threads: a tree whose configuration says nothing of processes gets that many.
	tasksEach = 16
	// maxPaths bounds writable and hidden, each.
	maxPaths = 64
)

// limits is what adapterConfig says of what the tree of a run may use: nothing is
// the default, 0 none.
type limits struct {
	MemoryMB  *int64 `json:"memoryMb"`
	Processes *int64 `json:"processes"`
	OpenFiles *int64 `json:"openFiles"`
	CPUSec    *int64 `json:"cpuSec"`
	FileMB    *int64 `json:"fileMb"`
}

// of returns the limits of a tree on a machine with so much memory, 0 when that is
// not known.
func (l limits) of(tool bool, memoryMB int64) shim.Limits {
	or := func(v *int64, def int64) int64 {
		if v != nil {
			return *v
		}
		return def
	}
	memory, processes, file := int64(PlainMemoryMB), int64(PlainProcesses), int64(PlainFileMB)
	if memoryMB > 0 {
		memory = min(memory, memoryMB/2)
	}
	if tool {
		memory, processes, file = max(memoryMB/2, minToolMemoryMB), ToolProcesses, ToolFileMB
	}
	out := shim.Limits{MemoryMB: or(l.MemoryMB, memory), Processes: or(l.Processes, processes), OpenFiles: or(l.OpenFiles, 0), CPUSec: or(l.CPUSec, 0), FileMB: or(l.FileMB, file)}
	if l.Processes == nil {
		out.Tasks = processes * tasksEach
	}
	return out
}

// holding is what adapterConfig says of what a run may use and reach.
type holding struct {
	Limits limits `json:"limits"`
	// Landlock false opens to the run what its user may write, but for the node's
	// own files.
	Landlock *bool    `json:"landlock"`
	Writable []string `json:"writable"` // absolute paths, beside the run's own
	Hidden   []string `json:"hidden"`   // absolute paths that are not read
}

func (h holding) check() error {
	l := h.Limits
	for _, n := range []*int64{l.MemoryMB, l.Processes, l.OpenFiles, l.CPUSec, l.FileMB} {
		if n != nil && (*n < 0 || *n > 1<<40) {
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
	g := &shim.Guard{Hide: h.Hidden, Show: []string{home, scratch}, Confine: h.confines(job)}
	if f := inv.Folder; f != nil {
		g.Show = append(g.Show, worktreeOf(*f)...)
	}
	g.Write = append(append(append(g.Write, g.Show...), spec.Dir), shim.Temporary...)
	g.Write = append(append(g.Write, h.Writable...), job.Writable...)
	spec.Guard = g
}

// worktreeOf are the folders of a worktree, none where a workspace is not one. It is the
// node's own make, so it may lie among the node's files.
func worktreeOf(f entity.RunFolder) []string {
	if f.Worktree == "" {
		return nil
	}
	if repo := repositoryOf(f.Worktree); repo != "" {
		return []string{f.Worktree, repo}
	}
	return []string{f.Worktree}
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
func tooMuch(killed string, l shim.Limits) string {
	switch killed {
	case "memory":
		return fmt.Sprintf("Its processes together used more than %d MiB of memory; limits.memoryMb of the adapterConfig says how much they may use", l.MemoryMB)
	case "processes":
		return fmt.Sprintf("It had more than %d processes; limits.processes of the adapterConfig says how many it may have", l.Processes)
	}
	return ""
}
