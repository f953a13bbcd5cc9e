package process

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
)

// The test binary also plays the shim, as the program does.
func TestMain(m *testing.M) { shimtest.Main(m) }

const token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.run-token"

// A bed is an adapter with one run, and what the run reported.
type bed struct {
	*Adapter
	t   *testing.T
	dir string
	inv company.Invocation

	mu      sync.Mutex
	log     map[string]string
	reports []company.Report
	pid     chan int64
	lease   time.Duration // boot-clock time at which authority ends
}

func newBed(t *testing.T, config any) *bed {
	t.Helper()
	b := &bed{t: t, dir: t.TempDir(), log: map[string]string{}, pid: make(chan int64, 1), lease: shim.BootTime() +
		time.Minute}
	var err error
	b.Adapter, err = New(Config{Shim: shimtest.Command, Dir: b.dir, APIURL: "http://127.0.0.1:3100",
		ListenHost: "127.0.0.1", ListenPort: "3100", Token: func(entity.Run) (string, error) { return token, nil },
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=/home/x", "AWS_SECRET=do-not-pass-on"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	cfg, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	b.inv = company.Invocation{Config: cfg, Wake: []byte(`{"wakeReason":"issue_assigned"}`),
		Run: entity.Run{ID: "run-1", Company: "company-1", Agent: "agent-1", AdapterType: "process",
			Context: entity.RunContext{TaskID: "task-1", IssueID: "task-1", WakeReason: "issue_assigned"}},
		Log: func(stream, text string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.log[stream] += text
		},
		Report: func(r company.Report) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.reports = append(b.reports, r)
			if r.PID != 0 {
				b.pid <- r.PID
			}
		},
		Authority: func() time.Duration { b.mu.Lock(); defer b.mu.Unlock(); return b.lease }}
	return b
}

func sh(script string, more ...any) map[string]any {
	c := map[string]any{"command": "sh", "args": []string{"-c", script}}
	for i := 0; i < len(more); i += 2 {
		c[more[i].(string)] = more[i+1]
	}
	return c
}

func (b *bed) invoke() company.Outcome { return b.Invoke(b.t.Context(), b.inv) }

func (b *bed) wrote(stream string) string { b.mu.Lock(); defer b.mu.Unlock(); return b.log[stream] }

// wantNoSecret fails if a secret is anywhere in the run's outcome, log or events.
func (b *bed) wantNoSecret(o company.Outcome, secret string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	all, err := json.Marshal([]any{o, b.log, b.reports})
	if err != nil {
		b.t.Fatal(err)
	}
	if strings.Contains(string(all), secret) {
		b.t.Errorf("%q shows in what the run left: %s", secret, all)
	}
}

func fields(t *testing.T, raw json.RawMessage) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestACommandThatEndsWellSucceeded(t *testing.T) {
	t.Parallel()
	b := newBed(t, sh("cat; echo out; echo err >&2", "timeoutSec", 20))
	o := b.invoke()
	if o.Status != entity.RunSucceeded || *o.ExitCode != 0 || *o.Stdout != "out\n" || *o.Stderr != "err\n" {
		t.Errorf("outcome %+v", o)
	}
	got := fields(t, o.Result)
	for key, want := range map[string]any{"stdout": "out\n", "stderr": "err\n", "stopReason": "completed",
		"timeoutFired":  false,
		"timeoutSource": "config", "timeoutConfigured": true, "effectiveTimeoutSec": 20.0} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(b.dir, "scratch")); len(left) != 0 {
		t.Errorf("%d scratch directories are left", len(left))
	}
}

func TestACommandThatFailsSaysItsCode(t *testing.T) {
	t.Parallel()
	o := newBed(t, sh("echo oops >&2; exit 3")).invoke()
	if o.Status != entity.RunFailed || o.Error != "Process exited with code 3" || o.ErrorCode != "adapter_failed" ||
		*o.ExitCode != 3 {
		t.Errorf("outcome %+v", o)
	}
	if got := fields(t, o.Result); got["stopReason"] != "adapter_failed" || got["effectiveTimeoutSec"] != 900.0 {
		t.Errorf("result %v", got)
	}
}

func TestWhatCanNotStartFails(t *testing.T) {
	t.Parallel()
	for _, c := range []any{map[string]any{}, map[string]any{"command": "/no/such/program"},
		map[string]any{"command": "no-such-program"},
		map[string]any{"command": "true", "cwd": "/no/such/directory"}, "nonsense", map[string]any{"command": 7}} {
		if o := newBed(t, c).invoke(); o.Status != entity.RunFailed || o.Error == "" || o.ExitCode != nil {
			t.Errorf("%v: %+v", c, o)
		}
	}
}

func TestAMissingWorkingDirectoryIsNamed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/no/such/directory", file} {
		o := newBed(t, sh("true", "cwd", dir)).invoke()
		if want := fmt.Sprintf("The run's working directory %q (adapter_config) is not a directory of this node; "+
			"create it, or name another", dir); o.Status != entity.RunFailed || o.Error != want {
			t.Errorf("%s: %s %q, want %q", dir, o.Status, o.Error, want)
		}
	}
}

// The variables name the folder in which the run works, whoever configured it.
func TestTheVariablesNameTheFolderOfTheRun(t *testing.T) {
	t.Parallel()
	own, shared, worktree := t.TempDir(), t.TempDir(), t.TempDir()
	for name, c := range map[string]struct {
		cwd    string
		folder *entity.RunFolder
		want   string // "" for the agent's own
	}{
		"nobody": {"", nil, ""}, "the configuration": {own, nil, own + " adapter_config"},
		"the configuration over a shared folder": {own, &entity.RunFolder{Dir: shared, Source: "project_primary"},
			own + " adapter_config"},
		"a project": {"", &entity.RunFolder{Dir: shared, Source: "project_primary"},
			shared + " project_primary"},
		"a worktree": {own, &entity.RunFolder{Dir: worktree, Worktree: worktree,
			Source: "task_session"}, worktree + " task_session"},
	} {
		b := newBed(t, sh(`[ "$PWD" = "$PAPERCLIP_WORKSPACE_CWD" ] && echo "$PAPERCLIP_WORKSPACE_CWD `+
			`$PAPERCLIP_WORKSPACE_SOURCE"`, "cwd", c.cwd))
		b.inv.Folder = c.folder
		o := b.invoke()
		if c.want == "" {
			c.want = filepath.Join(b.dir, "workspaces", "agent-1") + " agent_home"
		}
		if o.Stdout == nil || *o.Stdout != c.want+"\n" {
			t.Errorf("chosen by %s: %v %s", name, o.Stdout, o.Error)
		}
	}
}

// The environment is the contract's: the configuration can not override the runtime's
// variables, and the node's own are withheld.
func TestTheEnvironmentIsTheContracts(t *testing.T) {
	t.Parallel()
	b := newBed(t, sh("env; pwd", "env", map[string]any{"FOO": "plain value", "MY_TOKEN": map[string]any{"type": "plain",
		"value": "configured-secret"},
		"PAPERCLIP_API_KEY": "mine", "PAPERCLIP_RUN_ID": "mine", "PAPERCLIP_X": "mine", "TMPDIR": "/mine", "BAD=NAME": "x"}))
	b.inv.Run.Context.ApprovalID, b.inv.Run.Context.ApprovalStatus, b.inv.Run.Context.LinkedIssueIDs = "approval-1",
		"approved", []string{"task-1", "task-2"}
	o := b.invoke()
	env := map[string]string{}
	for _, l := range strings.Split(*o.Stdout, "\n") {
		k, v, _ := strings.Cut(l, "=")
		env[k] = v
	}
	home := filepath.Join(b.dir, "workspaces", "agent-1")
	for k, want := range map[string]string{"PAPERCLIP_AGENT_ID": "agent-1", "PAPERCLIP_COMPANY_ID": "company-1",
		"PAPERCLIP_RUN_ID":  "run-1",
		"PAPERCLIP_API_KEY": Redacted, "PAPERCLIP_API_URL": "http://127.0.0.1:3100",
		"PAPERCLIP_RUNTIME_API_URL": "http://127.0.0.1:3100",
		"PAPERCLIP_LISTEN_HOST":     "127.0.0.1", "PAPERCLIP_LISTEN_PORT": "3100", "PAPERCLIP_TASK_ID": "task-1",
		"PAPERCLIP_APPROVAL_ID": "approval-1", "PAPERCLIP_APPROVAL_STATUS": "approved",
		"PAPERCLIP_LINKED_ISSUE_IDS": "task-1,task-2",
		"PAPERCLIP_WAKE_REASON":      "issue_assigned", "PAPERCLIP_WAKE_PAYLOAD_JSON": `{"wakeReason":"issue_assigned"}`,
		"PAPERCLIP_GIT_METADATA_ROOTS": "[]", "HOME": "/home/x", "AGENT_HOME": home, "FOO": "plain value",
		"MY_TOKEN":                   Redacted,
		"PAPERCLIP_RESOLVED_COMMAND": which(t, "sh")} {
		if env[k] != want {
			t.Errorf("%s=%q, want %q", k, env[k], want)
		}
	}
	for _, k := range []string{"PAPERCLIP_RUNTIME_TOOLS_AVAILABLE", "PAPERCLIP_RUNTIME_TOOLS_MCP_URL",
		"PAPERCLIP_RUNTIME_TOOLS_TOKEN",
		"PAPERCLIP_RUNTIME_TOOLS_EXPIRES_AT", "PAPERCLIP_RUNTIME_TOOLS_GUIDANCE", "PAPERCLIP_GITHUB_AUTH_MODE",
		"PAPERCLIP_RUNNER_NETWORK_ACCESS",
		"PAPERCLIP_RUNNER_NETWORK_ROOTS"} {
		if _, ok := env[k]; !ok {
			t.Errorf("%s is missing", k)
		}
	}
	for _, k := range []string{"TMPDIR", "TMP", "TEMP", "PAPERCLIP_TMPDIR", "PAPERCLIP_SCRATCH_DIR",
		"PAPERCLIP_RUN_SCRATCH_DIR", "PAPERCLIP_TASK_SCRATCH_DIR"} {
		if !strings.HasPrefix(env[k], filepath.Join(b.dir, "scratch", "run-run-1-")) {
			t.Errorf("%s=%q is not the run's scratch", k, env[k])
		}
	}
	for _, k := range []string{"AWS_SECRET", "PAPERCLIP_X", "BAD", "GOMAXPROCS"} {
		if v, ok := env[k]; ok {
			t.Errorf("%s=%q came through", k, v)
		}
	}
	if _, ok := env[home]; !ok {
		t.Errorf("the working directory is not %s", home)
	}
	b.wantNoSecret(o, token)
	b.wantNoSecret(o, "configured-secret")
	if !strings.Contains(fmt.Sprint(b.reports), `adapter invocation`) {
		t.Error("the invocation was not reported")
	}
}

func which(t *testing.T, name string) string {
	t.Helper()
	p, ok := lookPath(name, "/", os.Getenv("PATH"))
	if !ok {
		t.Fatal("no " + name)
	}
	return p
}

// The process gets the real token, although the log shows it redacted.
func TestTheTokenReachesTheProcess(t *testing.T) {
	t.Parallel()
	b := newBed(t, sh(`[ "$PAPERCLIP_API_KEY" = "`+token[:20]+`""`+token[20:]+
		`" ] && tr '\0' '\n' < /proc/$PPID/cmdline | grep -c run-token; tr '\0' '\n' < /proc/$PPID/environ | `+
		`grep -c run-token`))
	if o := b.invoke(); *o.Stdout != "0\n0\n" {
		t.Errorf("the shim's command line or environment holds the token: %q %q", *o.Stdout, o.Error)
	}
}

// timedOut runs a script that prints "ready" when it has started, until its timeout. If a busy
// machine does not start it in time, the timeout is raised.
func timedOut(t *testing.T, script string, graceSec float64) company.Outcome {
	t.Helper()
	for timeout := 0.3; timeout < 100; timeout *= 3 {
		o := newBed(t, sh(script, "timeoutSec", timeout, "graceSec", graceSec)).invoke()
		if o.Stdout != nil && strings.Contains(*o.Stdout, "ready") {
			return o
		}
	}
	t.Fatal("the script never was at work")
	panic("unreachable")
}

func TestATimeoutTakesTheTreeDown(t *testing.T) {
	t.Parallel()
	began := time.Now()
	o := timedOut(t, "sleep 1000 & echo $! ready; wait", 600)
	if o.Status != entity.RunTimedOut || o.ErrorCode != "timeout" || o.Signal != "SIGTERM" || o.ExitCode != nil {
		t.Errorf("outcome %+v", o)
	}
	if d := time.Since(began); d > 5*time.Minute { // it exits at the first signal
		t.Errorf("took %v", d)
	}
	child, _, _ := strings.Cut(*o.Stdout, " ")
	if _, err := os.Stat("/proc/" + child); err == nil {
		t.Errorf("the child %s is left", child)
	}
	if got := fields(t, o.Result); got["stopReason"] != "timeout" || got["timeoutFired"] != true {
		t.Errorf("result %v", got)
	}
}

func TestATimeoutKillsWhatIgnoresTERM(t *testing.T) {
	t.Parallel()
	o := timedOut(t, "trap '' TERM; echo ready; while :; do sleep 0.05; done", 0.3)
	if o.Status != entity.RunTimedOut || o.Signal != "SIGKILL" {
		t.Errorf("outcome %+v", o)
	}
}

func TestCancelEndsARun(t *testing.T) {
	t.Parallel()
	b := newBed(t, sh("exec sleep 100"))
	go func() {
		<-b.pid
		b.Cancel("run-1", "")
		b.Cancel("run-1", "")
	}()
	if o := b.invoke(); o.Status != entity.RunCancelled || o.Signal != "SIGTERM" {
		t.Errorf("outcome %+v", o)
	}
	if b.Status("run-1") != "" {
		t.Error("it is still at work")
	}
}

func TestTheEndOfItsContextStopsARunAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t, sh("trap '' TERM; sleep 100"))
	ctx, stop := context.WithCancel(t.Context())
	go func() { <-b.pid; stop() }()
	if o := b.Invoke(ctx, b.inv); o.Status != entity.RunInterrupted || o.ErrorCode != "node_lost" {
		t.Errorf("outcome %+v", o)
	}
}

// A run ends when its node's authority ends, and continues while that is extended.
func TestARunDiesWithItsNodesAuthority(t *testing.T) {
	t.Parallel()
	script := sh("trap '' TERM; while :; do echo alive; sleep 0.1; done")
	for lease := 3 * time.Second; lease < 100*time.Second; lease *= 2 {
		b := newBed(t, script)
		first := shim.BootTime() + lease
		b.lease = first
		var grew time.Duration // boot-clock time of the extension
		over := make(chan struct{})
		go func() {
			select {
			case <-b.pid:
				b.mu.Lock()
				grew, b.lease = shim.BootTime(), first+500*time.Millisecond
				b.mu.Unlock()
			case <-over:
			}
		}()
		o := b.invoke()
		died := shim.BootTime()
		close(over)
		if o.Status != entity.RunInterrupted || o.ErrorCode != "node_lost" {
			t.Errorf("outcome %+v", o)
		}
		b.mu.Lock()
		last := b.lease
		b.mu.Unlock()
		if last == first || grew > first-2*time.Second {
			continue // a busy machine started it late: the extended authority was about to end
		}
		if died < last-100*time.Millisecond {
			t.Errorf("it died %v before its lease was over", last-died)
		}
		break
	}
	b := newBed(t, script)
	b.lease = shim.BootTime()
	if o := b.invoke(); o.Status != entity.RunInterrupted {
		t.Errorf("without authority: %+v", o)
	}
}

func TestMuchOutputIsCutInTheRowOnly(t *testing.T) {
	t.Parallel()
	b := newBed(t, sh(`i=0; while [ $i -lt 3000 ]; do printf '"\001line %d\n' $i; i=$((i+1)); done`))
	o := b.invoke()
	if len(*o.Stdout) > entity.MaxExcerpt+3 || !strings.HasSuffix(*o.Stdout, "line 2999\n") ||
		!strings.HasPrefix(*o.Stdout, "…") {
		t.Errorf("excerpt of %d bytes", len(*o.Stdout))
	}
	if len(o.Result) > company.MaxResult {
		t.Errorf("result of %d bytes", len(o.Result))
	}
	if n := strings.Count(b.wrote("stdout"), "\n"); n != 3000 {
		t.Errorf("%d lines in the log", n)
	}
}

// If the lease ends after the run was passed to its shim, the shim does not start the command.
// The run is interrupted, just as if the lease had ended a moment before or after.
func TestALeaseThatEndsOnTheWayToTheShimInterrupts(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	b := newBed(t, map[string]any{"command": "/bin/sh", "args": []string{"-c", "echo began > " + mark}})
	b.inv.Authority = func() time.Duration { return shim.BootTime() + time.Millisecond } // no shim starts that fast
	out := b.Invoke(t.Context(), b.inv)
	if out.Status != entity.RunInterrupted {
		t.Errorf("the run is %s: %s", out.Status, out.Error)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("its command began")
	}
}
