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
	// A plain command, of the process adapter, gets the same limits as a container, to stop one
	// that starts processes without end before it exhausts the machine.
	PlainProcesses = 256
	PlainMemoryMB  = 512
	PlainFileMB    = 256
	// A tool is an agent that writes and builds programs, or a command that prepares its
	// workspace. It gets half of the machine's memory, but at least minToolMemoryMB.
	ToolProcesses   = 1024
	ToolFileMB      = 4096
	minToolMemoryMB = 1024
	// tasksEach is the assumed average of threads per process. A cgroup counts threads: if the
	// configuration does not limit processes, the limit is multiplied by it.
	tasksEach = 16
	// maxPaths bounds writable and hidden, each.
	maxPaths = 64
)

// limits is the part of adapterConfig that limits the process tree of a run: a missing value
// means the default, 0 no limit.
type limits struct {
	MemoryMB  *int64 `json:"memoryMb"`
	Processes *int64 `json:"processes"`
	OpenFiles *int64 `json:"openFiles"`
	CPUSec    *int64 `json:"cpuSec"`
	FileMB    *int64 `json:"fileMb"`
}

// of returns the limits of a process tree on a machine with memoryMB of memory, 0 if unknown.
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
	out := shim.Limits{MemoryMB: or(l.MemoryMB, memory), Processes: or(l.Processes, processes),
		OpenFiles: or(l.OpenFiles, 0), CPUSec: or(l.CPUSec, 0), FileMB: or(l.FileMB, file)}
	if l.Processes == nil {
		out.Tasks = processes * tasksEach
	}
	return out
}

// holding is the part of adapterConfig about resources and files of a run.
type holding struct {
	Limits limits `json:"limits"`
	// Landlock false lets the run write everything that its user may, except the node's own
	// files.
	Landlock *bool    `json:"landlock"`
	Writable []string `json:"writable"` // absolute paths, besides the run's own
	Hidden   []string `json:"hidden"`   // absolute paths that can not be read
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

// hold sets the limits of a run's process tree and the files that it can access. It can read
// what its user may, except the node's own files. It can write in its working directory, its
// agent's folder, its scratch directory, the folders for temporary files, and the folders that
// the job names.
func (h holding) hold(spec *shim.Spec, inv company.Invocation, job Job, home, scratch string) {
	g := &shim.Guard{Hide: h.Hidden, Show: []string{home, scratch}, Confine: h.confines(job)}
	if f := inv.Folder; f != nil {
		g.Show = append(g.Show, worktreeOf(*f)...)
	}
	g.Write = append(append(append(g.Write, g.Show...), spec.Dir), shim.Temporary...)
	g.Write = append(append(g.Write, h.Writable...), job.Writable...)
	spec.Guard = g
}

// worktreeOf returns the folders of a worktree; none if the workspace is not one. The node
// created them, so they may be among the node's files.
func worktreeOf(f entity.RunFolder) []string {
	if f.Worktree == "" {
		return nil
	}
	if repo := repositoryOf(f.Worktree); repo != "" {
		return []string{f.Worktree, repo}
	}
	return []string{f.Worktree}
}

// confines reports whether a job's command can write only where hold allows.
func (h holding) confines(job Job) bool {
	if h.Landlock != nil {
		return *h.Landlock
	}
	return job.Confine
}

// caches are variables that move the caches of programs into the agent's folder, because a
// confined run can not write the user's.
var caches = map[string]string{"XDG_CACHE_HOME": "", "npm_config_cache": "npm", "GOMODCACHE": "go-mod",
	"CARGO_HOME": "cargo"}

func keepCaches(env map[string]string, home string) {
	for name, dir := range caches {
		if env[name] == "" {
			env[name] = filepath.Join(home, ".cache", dir)
		}
	}
}

// repositoryOf returns the folder of the repository of a worktree, in which commits write. The
// repository has to refer back to the worktree; otherwise a run could have made up the
// reference.
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

// tooMuch returns the limit for which a tree was killed, "" if there was another reason.
func tooMuch(killed string, l shim.Limits) string {
	switch killed {
	case "memory":
		return fmt.Sprintf("Its processes together used more than %d MiB of memory; limits.memoryMb of the adapterConfig "+
			"says how much they may use", l.MemoryMB)
	case "processes":
		return fmt.Sprintf("It had more than %d processes; limits.processes of the adapterConfig says how many it may have",
			l.Processes)
	}
	return ""
}
