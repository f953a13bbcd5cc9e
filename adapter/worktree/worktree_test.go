package worktree

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository makes a repository with a commit on main.
func repository(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	dir := t.TempDir()
	run(t, dir, "init", "-q", "-b", "main")
	commit(t, dir, "README", "first")
	return dir
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func commit(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "add", ".")
	run(t, dir, "commit", "-q", "-m", content)
}

func maker(t *testing.T) *Maker {
	t.Helper()
	m, err := New(t.TempDir(), os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestEachWorkspaceHasItsOwnTree(t *testing.T) {
	t.Parallel()
	repo, m := repository(t), maker(t)
	hook := filepath.Join(repo, ".git", "hooks", "post-checkout")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\ntouch \"$PWD/HOOK\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	one, err := m.Make(t.Context(), Spec{ID: "w1", Source: "s", Local: repo, Branch: "ACM-1-fix"})
	if err != nil {
		t.Fatal(err)
	}
	two, err := m.Make(t.Context(), Spec{ID: "w2", Source: "s", Local: repo, Branch: "ACM-2-fix", Base: "main"})
	if err != nil {
		t.Fatal(err)
	}
	if one == two || run(t, one, "symbolic-ref", "--short", "HEAD") != "ACM-1-fix" || run(t, two, "symbolic-ref",
		"--short", "HEAD") != "ACM-2-fix" {
		t.Errorf("%s and %s", one, two)
	}
	if _, err := os.Stat(filepath.Join(one, "HOOK")); err == nil {
		t.Error("a hook of the repository ran")
	}
	// The next run finds the files that were left in it.
	if err := os.WriteFile(filepath.Join(one, "dirty"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := m.Make(t.Context(), Spec{ID: "w1", Source: "s", Local: repo, Branch: "ACM-1-fix"}); err != nil ||
		again != one {
		t.Errorf("again: %s, %v", again, err)
	}
	if _, err := os.Stat(filepath.Join(one, "dirty")); err != nil {
		t.Error(err)
	}
	if _, err := m.Make(t.Context(), Spec{ID: "w1", Source: "s", Local: repo, Branch: "other"}); err == nil {
		t.Error("a worktree changed its branch")
	}
	if err := m.Remove(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(one); !os.IsNotExist(err) {
		t.Errorf("still there: %v", err)
	}
	if err := m.Remove(t.Context(), one); err != nil {
		t.Errorf("what is gone: %v", err)
	}
	if err := m.Remove(t.Context(), repo); err == nil {
		t.Error("removed the repository itself")
	}
	// The branch stays after its worktree is deleted, and is continued.
	if _, err := m.Make(t.Context(), Spec{ID: "w3", Source: "s", Local: repo, Branch: "ACM-1-fix"}); err != nil {
		t.Error(err)
	}
	if ids, err := m.Trees(); err != nil || strings.Join(ids, " ") != "w2 w3" {
		t.Errorf("trees are %v, %v", ids, err)
	}
}

// A repository named by URL is cloned. A branch that another node has pushed is continued, and
// what was not pushed is not there.
func TestClonedRepository(t *testing.T) {
	t.Parallel()
	origin, here, there := repository(t), maker(t), maker(t)
	spec := Spec{ID: "w1", Source: "s", URL: "file://" + origin, Branch: "ACM-1", Base: "main"}
	first, err := here.Make(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, first, "pushed", "pushed")
	run(t, first, "push", "-q", "origin", "ACM-1")
	commit(t, first, "lost", "lost")
	second, err := there.Make(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(second, "pushed")); err != nil {
		t.Errorf("what was pushed is missing: %v", err)
	}
	if _, err := os.Stat(filepath.Join(second, "lost")); err == nil {
		t.Error("what was not pushed is there")
	}
	commit(t, origin, "later", "later")
	fresh, err := here.Make(t.Context(), Spec{ID: "w2", Source: "s", URL: "file://" + origin, Branch: "ACM-2"})
	if err != nil {
		t.Fatal(err)
	}
	_ = fresh
	based, err := here.Make(t.Context(), Spec{ID: "w3", Source: "s", URL: "file://" + origin, Branch: "ACM-3",
		Base: "main"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(based, "later")); err != nil {
		t.Errorf("a new branch begins at an old commit: %v", err)
	}
}

func TestWhatCannotBeMade(t *testing.T) {
	t.Parallel()
	repo, m := repository(t), maker(t)
	for name, s := range map[string]Spec{
		"nothing to make it from": {ID: "w", Source: "s", Branch: "b"},
		"a folder elsewhere":      {ID: "w", Source: "s", Branch: "b", Local: filepath.Join(repo, "none")},
		"a relative folder":       {ID: "w", Source: "s", Branch: "b", Local: "repo"},
		"no repository":           {ID: "w", Source: "s", Branch: "b", Local: t.TempDir()},
		"no such base":            {ID: "w", Source: "s", Branch: "b", Local: repo, Base: "nowhere"},
		"a base that is a flag":   {ID: "w", Source: "s", Branch: "b", Local: repo, Base: "--exec=x"},
		"a branch that is a flag": {ID: "w", Source: "s", Branch: "-b", Local: repo},
		"a helper for a URL":      {ID: "w", Source: "s", Branch: "b", URL: "ext::sh -c touch% /tmp/x"},
		"an ID that climbs":       {ID: "..", Source: "s", Branch: "b", Local: repo},
		"a folder in the ID":      {ID: "a/b", Source: "s", Branch: "b", Local: repo},
		"a relative parent":       {ID: "w", Source: "s", Branch: "b", Local: repo, Parent: "x"},
	} {
		if dir, err := m.Make(t.Context(), s); err == nil {
			t.Errorf("%s: made %s", name, dir)
		}
	}
	_, err := m.Make(t.Context(), Spec{ID: "w", Source: "s", Branch: "b", URL: "http://bob:CANARY@127.0.0.1:1/x.git"})
	if err == nil || strings.Contains(err.Error(), "CANARY") {
		t.Errorf("unreachable: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Make(ctx, Spec{ID: "w", Source: "s", Branch: "b", Local: repo}); err == nil {
		t.Error("made after the end")
	}
}

func TestNoGit(t *testing.T) {
	m := maker(t)
	t.Setenv("PATH", t.TempDir())
	if _, err := m.Make(t.Context(), Spec{ID: "w", Source: "s", Branch: "b", Local: "/"}); err != ErrNoGit {
		t.Errorf("got %v, want %v", err, ErrNoGit)
	}
}
