// Package clitest runs tools of adapter/cli against programs that print what the
// real ones do.
package clitest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/cli"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
)

// Token is the token of the run.
const Token = "eyJhbGciOiJIUzI1NiJ9.run-token-4711"

// A Bed is an adapter and a program in the place of the tool's.
type Bed struct {
	*cli.Adapter
	Inv company.Invocation
	Dir string // the adapter's

	t   testing.TB
	bin string
	mu  sync.Mutex
	log map[string]string
}

// New returns a bed for a tool whose program is the shell script given. Before
// the script's own lines each call writes its arguments, environment and input
// to files, see [Bed.Call].
func New(t testing.TB, tool cli.Tool, config map[string]any, script string) *Bed {
	t.Helper()
	b := &Bed{t: t, Dir: t.TempDir(), bin: t.TempDir(), log: map[string]string{}}
	p, err := process.New(process.Config{Shim: shimtest.Command, Dir: b.Dir, APIURL: "http://127.0.0.1:3100",
		ListenHost: "127.0.0.1", ListenPort: "3100", Token: func(entity.Run) (string, error) { return Token, nil },
		Environ: []string{"PATH=" + b.bin + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "AWS_SECRET=do-not-pass-on"}})
	if err != nil {
		t.Fatal(err)
	}
	if b.Adapter, err = cli.New(cli.Config{Process: p, Dir: b.Dir}, tool); err != nil {
		t.Fatal(err)
	}
	b.Program(tool.Program(), script)
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if config == nil {
		raw = []byte("{}")
	}
	until := shim.BootTime() + time.Minute
	b.Inv = company.Invocation{AgentName: "Ada", Config: raw, Wake: []byte(`{"wakeReason":"issue_commented"}`),
		Run: entity.Run{ID: "run-1", Company: "company-1", Agent: "agent-1", AdapterType: "test", Source: "assignment",
			Context: entity.RunContext{TaskID: "task-1", IssueID: "task-1", WakeReason: "issue_commented"}},
		Log: func(stream, text string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.log[stream] += text
		},
		Report: func(company.Report) {}, Authority: func() time.Duration { return until }}
	return b
}

// Program puts a script on the PATH of runs.
func (b *Bed) Program(name, script string) {
	b.t.Helper()
	if name == "" {
		return // the tool has none of its own
	}
	script = fmt.Sprintf(`#!/bin/sh
at=%[1]s/call.$(ls -d %[1]s/call.* 2>/dev/null | wc -l)
mkdir -p $at
for a in "$@"; do printf '%%s\0' "$a"; done >$at/args
env >$at/env
pwd >$at/dir
%[2]s
`, b.bin, script)
	if err := os.WriteFile(filepath.Join(b.bin, name), []byte(script), 0o700); err != nil {
		b.t.Fatal(err)
	}
}

// A Call is one call of the program.
type Call struct {
	Args  []string
	Env   map[string]string
	Input string // of scripts that keep it with cat >$at/input
	Dir   string
}

// Call returns the n-th call from 0.
func (b *Bed) Call(n int) (c Call) {
	b.t.Helper()
	read := func(name string) string {
		s, err := os.ReadFile(filepath.Join(b.bin, fmt.Sprint("call.", n), name))
		if err != nil && name != "input" {
			b.t.Fatal(err)
		}
		return string(s)
	}
	if args := strings.TrimSuffix(read("args"), "\x00"); args != "" {
		c.Args = strings.Split(args, "\x00")
	}
	c.Env = map[string]string{}
	for line := range strings.Lines(read("env")) {
		if k, v, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
			c.Env[k] = v
		}
	}
	c.Input, c.Dir = read("input"), strings.TrimSpace(read("dir"))
	return c
}

// File is a file that the script of the n-th call wrote to $at.
func (b *Bed) File(n int, name string) string {
	s, _ := os.ReadFile(filepath.Join(b.bin, fmt.Sprint("call.", n), name)) // "" when it did not
	return string(s)
}

// Invoke runs the tool once.
func (b *Bed) Invoke() company.Outcome { return b.Adapter.Invoke(b.t.Context(), b.Inv) }

// Again runs the tool with the session that an outcome left.
func (b *Bed) Again(o company.Outcome) company.Outcome {
	b.Inv.Resume = &entity.TaskSession{SessionID: core.NullText(o.SessionID), Params: o.SessionParams}
	return b.Invoke()
}

// Log is what the run wrote to a stream of its log.
func (b *Bed) Log(stream string) string { b.mu.Lock(); defer b.mu.Unlock(); return b.log[stream] }

// Summary is the summary of an outcome.
func Summary(o company.Outcome) string {
	var r struct{ Summary string }
	_ = json.Unmarshal(o.Result, &r)
	return r.Summary
}

// Print is a script that keeps its input and prints lines.
func Print(lines ...string) string {
	return "cat >$at/input\ncat <<'END'\n" + strings.Join(lines, "\n") + "\nEND"
}

// Has reports whether args holds the given ones next to each other.
func Has(args []string, want ...string) bool {
	return strings.Contains("\x00"+strings.Join(args, "\x00")+"\x00", "\x00"+strings.Join(want, "\x00")+"\x00")
}
