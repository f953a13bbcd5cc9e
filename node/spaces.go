package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/adapter/runlog"
	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/ledger"
)

// operationLogs replaces the agent in the names of operation logs.
const operationLogs = "workspace-operations"

var errNoAuthority = errors.New("this node may not act now")

// turns is a lock per folder. The zero value is ready.
type turns struct {
	mu    sync.Mutex
	taken map[string]chan struct{}
}

// take waits for the folder; the returned function releases it.
func (t *turns) take(ctx context.Context, dir string) (func(), error) {
	for {
		t.mu.Lock()
		busy := t.taken[dir]
		if busy == nil {
			if t.taken == nil {
				t.taken = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			t.taken[dir] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				delete(t.taken, dir)
				t.mu.Unlock()
				close(mine)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// A spaceCommand is a command to execute in a workspace.
type spaceCommand struct {
	w           place.ExecutionWorkspace
	f           entity.RunFolder
	run         string // "" outside of runs
	phase       place.OperationPhase
	name, line  string
	env         map[string]string
	secrets     []string
	authority   func() time.Duration
	alreadyOpen string // ID of the operation, if somebody requested it
}

// prepare executes the commands that prepare a workspace for its runs, once for each
// place and again when they change.
func (n *Node) prepare(ctx context.Context, inv company.Invocation, w place.ExecutionWorkspace, l place.Lifecycle,
	f entity.RunFolder) error {
	want := l.Prepared(string(n.ID()), f.Dir)
	if want == "" || want == w.Prepared {
		return nil
	}
	done, err := n.work.turns.take(ctx, f.Dir)
	if err != nil {
		return err
	}
	defer done()
	env, secrets, err := n.spaceEnv(ctx, inv.Run, f, string(w.SourceIssue), inv.Run.ID)
	if err != nil {
		return err
	}
	for _, c := range []struct{ name, line string }{{"setupCommand", l.Setup}, {"provisionCommand", l.Provision}} {
		if c.line == "" {
			continue
		}
		inv.Log("system", "[selvage] running the workspace's "+c.name+"\n")
		if err := n.carryOutIn(ctx, spaceCommand{w: w, f: f, run: inv.Run.ID, phase: place.OperationProvision, name: c.name,
			line: c.line,
			env:  env, secrets: secrets, authority: inv.Authority}); err != nil {
			return err
		}
	}
	return n.carryOut(ctx, n.command(place.KindExecWorkspaceRealize, w.Company, place.RealizeWorkspace{ID: w.ID,
		Run: inv.Run.ID, Cwd: f.Dir, Prepared: want}))
}

// wind executes the commands of a closed workspace.
func (n *Node) wind(ctx context.Context, w place.ExecutionWorkspace, dir string) error {
	var l place.Lifecycle
	run := entity.Run{ID: w.Run, Company: w.Company, Context: entity.RunContext{IssueID: string(w.SourceIssue)}}
	err := n.ledger.View(func(tx *ledger.Tx) error {
		l = place.LifecycleOf(tx, w)
		if r, ok := entity.RunOf(tx, w.Company, w.Run); ok {
			run = r
		}
		return nil
	})
	if err != nil || l.Cleanup == "" && l.Teardown == "" {
		return err
	}
	if n.authority() <= shim.BootTime() {
		return errNoAuthority
	}
	done, err := n.work.turns.take(ctx, dir)
	if err != nil {
		return err
	}
	defer done()
	f := folderOf(w)
	if f.Dir = dir; w.Mode == entity.IsolatedWorkspace {
		f.Worktree = dir // even if its node had not reported the location yet
	}
	env, secrets, err := n.spaceEnv(ctx, run, f, string(w.SourceIssue), "")
	if err != nil {
		return err
	}
	for _, c := range []struct{ name, line string }{{"cleanupCommand", l.Cleanup}, {"teardownCommand", l.Teardown}} {
		if c.line == "" {
			continue
		}
		if err := n.carryOutIn(ctx, spaceCommand{w: w, f: f, phase: place.OperationTeardown, name: c.name, line: c.line,
			env: env, secrets: secrets, authority: n.authority}); err != nil {
			return err
		}
	}
	return nil
}

// spaceEnv returns the environment of a workspace's commands: a run's variables about
// the folder, and the project's variables, but not the agent's own.
func (n *Node) spaceEnv(ctx context.Context, as entity.Run, f entity.RunFolder, issue, run string) (map[string]string,
	[]string, error) {
	config, secrets, err := n.resolveSecrets(ctx, as, json.RawMessage("{}"))
	if err != nil {
		return nil, nil, fmt.Errorf("variables of the project: %w", err)
	}
	var vars struct {
		Env map[string]string `json:"env"`
	}
	if err := json.Unmarshal(config, &vars); err != nil {
		return nil, nil, fmt.Errorf("variables of the project: %w", err)
	}
	env := process.FolderEnv(f, as.Company, issue, run)
	for k, v := range vars.Env {
		if _, ours := env[k]; !ours {
			env[k] = v
		}
	}
	return env, secrets, nil
}

// carryOutIn executes one command in a workspace, as a visible operation. A command that
// was started before, even if this node's state does not say so, is refused before its
// log is changed.
func (n *Node) carryOutIn(ctx context.Context, c spaceCommand) error {
	id := c.alreadyOpen
	if id == "" {
		id = uuid.Must(uuid.NewV7()).String()
	}
	n.work.active.Store(id, true)
	defer n.work.active.Delete(id)
	ref := runlog.Ref(c.w.Company, operationLogs, id)
	if err := n.carryOut(ctx, n.command(place.KindWorkspaceOpStart, c.w.Company,
		place.StartOperation{ID: id, Workspace: c.w.ID, Run: c.run, Phase: c.phase,
			Name: c.name, Command: c.line, Cwd: c.f.Dir, LogRef: ref})); err != nil {
		return fmt.Errorf("tell the mesh of the workspace's %s: %w", c.name, err)
	}
	end, digest := n.runIn(ctx, c, id, ref)
	done := place.FinishOperation{ID: id, Error: end.Error, Stdout: end.Stdout, Stderr: end.Stderr, LogBytes: digest.Bytes,
		LogSHA256: digest.SHA256}
	if end.Exit != nil {
		done.ExitCode = new(int64(*end.Exit))
	}
	// The end of a stopped command is recorded too, if the node still can.
	if err := n.carryOut(context.WithoutCancel(ctx), n.command(place.KindWorkspaceOpFinish, c.w.Company,
		done)); err != nil {
		n.log.Warn("end of a workspace operation could not be told", "operation", id, "error", err)
	}
	if end.Error != "" {
		return fmt.Errorf("the workspace's %s failed: %s (workspace operation %s)", c.name, end.Error, id)
	}
	return nil
}

// runIn runs the command of a started operation, with its log.
func (n *Node) runIn(ctx context.Context, c spaceCommand, id, ref string) (end process.ShellEnd,
	digest company.LogDigest) {
	log, err := n.work.logs.Create(ref)
	if err != nil {
		return process.ShellEnd{Error: "its log could not be made: " + err.Error()}, digest
	}
	end = n.shell().Run(ctx, process.ShellCommand{Line: c.line, Folder: c.f, Env: c.env, Secrets: c.secrets,
		Limit: workspaceCommandTime, Grace: commandGrace,
		Authority: c.authority, Log: log.Write})
	if digest, err = log.Close(); err != nil {
		n.log.Warn("log of a workspace operation is incomplete", "operation", id, "error", err)
	}
	return end, digest
}

func (n *Node) shell() process.Shell {
	return process.Shell{Argv: n.conf.Shim, Environ: os.Environ(), MemoryMB: int64(Memory() >> 20)}
}
