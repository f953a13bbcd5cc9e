package process

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Shell executes shell commands of a workspace, not of an agent: those that prepare it, and
// its services. They run under a shim as runs do. It has no state.
type Shell struct {
	Argv    []string // command line that starts a shim, such as {"/proc/self/exe", "run-shim"}
	Environ []string // the node's environment as "K=V"; commands get the same variables as runs
	// MemoryMB is the machine's memory in MiB, 0: not known.
	MemoryMB int64
}

// A ShellCommand is one command for a [Shell].
type ShellCommand struct {
	Line string // for sh -c
	// Folder is the command's workspace. If it is a worktree, the worktree and its repository
	// are the only files of the node that the command can access.
	Folder entity.RunFolder
	Dir    string // absolute; "": that of Folder
	Env    map[string]string
	// Secrets are redacted in the output, and so are variables of Env whose names suggest
	// secrets.
	Secrets []string
	Limit   time.Duration // 0: none
	Grace   time.Duration // between TERM and KILL
	// Authority returns the boot-clock time until which this node may act, as for an
	// invocation. The process tree has ended by then.
	Authority func() time.Duration
	Log       func(stream, text string)
	Started   func(pid int) // optional
}

// A ShellEnd is how a command ended.
type ShellEnd struct {
	Exit           *int   // nil when it did not exit by itself
	Error          string // "" if it exited with 0
	Stdout, Stderr string // the ends of its output
}

// Run executes a command and returns when its whole process tree has ended. When ctx ends, the
// tree gets TERM, and KILL after Grace.
func (s Shell) Run(ctx context.Context, c ShellCommand) ShellEnd {
	failed := func(format string, args ...any) ShellEnd { return ShellEnd{Error: fmt.Sprintf(format, args...)} }
	env := s.base()
	secrets := slices.Clone(c.Secrets)
	for k, v := range c.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") {
			continue
		}
		env[k] = strings.ReplaceAll(v, "\x00", "")
		if sensitive(k) {
			secrets = append(secrets, env[k])
		}
	}
	c.Dir = cmp.Or(c.Dir, c.Folder.Dir)
	if st, err := os.Stat(c.Dir); err != nil || !st.IsDir() {
		return failed("the folder %s is not on this node", c.Dir)
	}
	sh, ok := lookPath("sh", c.Dir, env["PATH"])
	if !ok {
		sh = "/bin/sh"
	}
	spec := shim.Spec{Path: sh, Args: []string{"sh", "-c", c.Line}, Dir: c.Dir, Env: list(env), Deadline: c.Authority(),
		Limits: limits{}.of(true, s.MemoryMB),
		Guard:  &shim.Guard{Show: worktreeOf(c.Folder)}}
	if spec.Deadline <= shim.BootTime() {
		return failed("the node's lease ended before the command began")
	}
	p, err := Begin(spec, func(spec shim.Spec, stdout, stderr *os.File) (*shim.Process, error) {
		return shim.Start(s.Argv, spec, stdout, stderr)
	})
	if err != nil {
		return failed("the command could not be started: %v", err)
	}
	if c.Started != nil {
		c.Started(p.PID)
	}
	p.Follow(c.Log, secrets)
	exit, why := s.watch(ctx, c, p)
	end := ShellEnd{Error: why}
	end.Stdout, end.Stderr = p.Output()
	if exit.Signal == "" && exit.Killed == "" {
		end.Exit = new(exit.Code)
	}
	switch {
	case why != "":
	case exit.Killed == "memory":
		end.Error = fmt.Sprintf("its processes together used more than %d MiB of memory", spec.Limits.MemoryMB)
	case exit.Killed == "processes":
		end.Error = fmt.Sprintf("it had more than %d processes", spec.Limits.Processes)
	case exit.Killed == "deadline" || exit.Killed == "pipe":
		end.Error = "the node stopped it"
	case exit.Signal != "":
		end.Error = "it was ended by " + exit.Signal
	case exit.Code != 0:
		end.Error = fmt.Sprintf("it exited with code %d", exit.Code)
	}
	return end
}

// watch waits for the end of a command, and returns why it was stopped.
func (s Shell) watch(ctx context.Context, c ShellCommand, p *Child) (exit shim.Exit, why string) {
	var timeout <-chan time.Time
	if c.Limit > 0 {
		t := time.NewTimer(c.Limit)
		defer t.Stop()
		timeout = t.C
	}
	renew := time.NewTicker(RenewEvery)
	defer renew.Stop()
	done := ctx.Done()
	for {
		select {
		case e := <-p.Ended():
			if e.Err != nil && why == "" {
				why = "its process was lost: " + e.Err.Error()
			}
			return e.Exit, why
		case <-renew.C:
			p.Renew(c.Authority())
		case <-timeout:
			if why == "" {
				why = fmt.Sprintf("it took longer than %s", c.Limit)
			}
			p.Terminate(c.Grace)
		case <-done:
			done = nil
			if why == "" {
				why = "it was stopped"
			}
			p.Terminate(c.Grace)
		}
	}
}

// base returns the variables of the node's environment that commands get.
func (s Shell) base() map[string]string {
	env := map[string]string{}
	for _, kv := range s.Environ {
		if k, v, ok := strings.Cut(kv, "="); ok && slices.Contains(baseNames, k) {
			env[k] = v
		}
	}
	return env
}

// FolderEnv returns the variables about a workspace for a command in it: those that a run
// there would have, except the run's own.
func FolderEnv(f entity.RunFolder, of ledger.CompanyID, issue, run string) map[string]string {
	env := map[string]string{}
	setFolder(env, &f)
	maps.Copy(env, map[string]string{"PAPERCLIP_COMPANY_ID": string(of), "PAPERCLIP_PROJECT_ID": f.Project,
		"PAPERCLIP_PROJECT_WORKSPACE_ID":   f.ProjectWorkspace,
		"PAPERCLIP_EXECUTION_WORKSPACE_ID": f.ID})
	for k, v := range map[string]string{"PAPERCLIP_ISSUE_ID": issue, "PAPERCLIP_RUN_ID": run} {
		if v != "" {
			env[k] = v
		}
	}
	return env
}
