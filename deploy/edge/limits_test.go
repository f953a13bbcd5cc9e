//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// limitsWithin is what a Linux in user mode may take for it on a busy machine.
const limitsWithin = 8 * time.Minute

// TestLimitsUnderSystemd installs the package where version 2 of cgroups has the
// controllers of memory and processes, and lets agents take too much of both: the
// kernel ends the one, and gives the other no more. A machine whose controllers
// belong to version 1 boots a Linux in user mode for it, with systemd as its first
// process and its own files as that one's.
func TestLimitsUnderSystemd(t *testing.T) {
	if testing.Short() {
		t.Skip("boots systemd")
	}
	t.Parallel()
	deb := filepath.Join(made.dir, "selvage_1.2.3_"+runtime.GOARCH+".deb")
	limits, err := os.ReadFile("testdata/limits.sh")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "limits.sh")
	if err := os.WriteFile(script, fmt.Appendf(nil, "shim_test='%s'\n%s", shimTest(t), limits), 0o600); err != nil {
		t.Fatal(err)
	}
	var said string
	if has, _ := os.ReadFile("/sys/fs/cgroup/cgroup.controllers"); slices.Contains(strings.Fields(string(has)), "memory") {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		said = boot(t, deb).must("sh", "-c", string(text))
	} else {
		said = inUserMode(t, deb, script)
	}
	for _, want := range []string{
		"shared out: cpu io memory pids\n", "runs without cgroups: 0\n",
		"more than 64 MiB of memory; limits.memoryMb", // by the kernel, which counts it:
		"killed for memory: ",
		"Rabbit: ", "Cannot fork\n",
		"--- PASS: TestACgroupHoldsTheTree",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it did not say %q", want)
		}
	}
	if strings.Contains(said, "\nover\n") || strings.Contains(said, "killed for memory: 0") || strings.Contains(said,
		"has no cgroup to divide") {
		t.Error("the limits do not hold")
	}
	if t.Failed() {
		t.Log(said)
	}
}

// shimTest builds the tests of adapter/shim that need a cgroup of their own, where the
// machines that are booted see this machine's files: not below /tmp.
func shimTest(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "shim-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	name := filepath.Join(dir, "shim.test")
	build := exec.Command("go", "test", "-c", "-tags", "cgroup", "-o", name, "./adapter/shim")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

// An untilPanic keeps what a kernel says and ends it when it panics, as it waits then.
type untilPanic struct {
	said bytes.Buffer
	stop func()
}

func (u *untilPanic) Write(b []byte) (int, error) {
	n, err := u.said.Write(b)
	if bytes.Contains(u.said.Bytes(), []byte("Kernel panic")) {
		u.stop()
	}
	return n, err
}

// inUserMode boots a Linux in user mode with this machine's files, installs the
// package there, runs a script, and returns what that said.
func inUserMode(t *testing.T, deb, script string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root reads all files of this machine")
	}
	needs(t, "linux.uml", "cc", "perl", "unshare", "systemctl", "dpkg")
	modules, _ := filepath.Glob("/usr/lib/uml/modules/*/kernel/fs/overlayfs/overlay.ko")
	if len(modules) == 0 {
		t.Skip("the Linux in user mode of this machine has no overlays")
	}
	dir := t.TempDir()
	reports := filepath.Join(dir, "reports")
	if err := os.Mkdir(reports, 0o700); err != nil {
		t.Fatal(err)
	}
	var paths []any
	for _, p := range []string{"testdata/uml.sh", modules[len(modules)-1], deb, script, reports} {
		p, err := filepath.Abs(p)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	init := filepath.Join(dir, "init")
	if err := os.WriteFile(init, fmt.Appendf(nil, "#!/bin/sh\nexec sh '%s' '%s' '%s' '%s' '%s'\n", paths...),
		0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limitsWithin)
	defer cancel()
	wide := filepath.Join(dir, "xstate.so")
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-O2", "-o", wide, "testdata/xstate.c").
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// In a namespace of their own its processes end with it.
	cmd := exec.CommandContext(ctx, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "linux.uml", "mem=1G",
		"root=/dev/root", "rootfstype=hostfs",
		"rootflags=/", "ro", "con=null", "con0=fd:0,fd:1", "quiet", "uml_dir="+dir, "init="+init)
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+wide)
	console := &untilPanic{stop: cancel}
	cmd.Stdout, cmd.Stderr = console, console
	err := cmd.Run()
	said, _ := os.ReadFile(filepath.Join(reports, "said"))
	if _, over := os.Stat(filepath.Join(reports, "over")); over != nil {
		if len(said) == 0 {
			t.Fatalf("Linux in user mode does not boot: %v: %s", err, console.said.String())
		}
		t.Fatalf("it did not come to its end: %v\n%s\n%s", err, console.said.String(), said)
	}
	return string(said)
}
