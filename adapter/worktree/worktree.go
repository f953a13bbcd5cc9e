// Package worktree makes the folders in which runs work: the project's own, a
// clone of its repository, or a Git worktree with a branch for each issue. It
// uses the git program of the node.
//
// # On disk
//
// Below its directory: repos/<project workspace>, bare clones of repositories that a project
// names by URL; trees/<execution workspace>, the worktrees. A worktree belongs to the
// repository from which it was made, even if it is elsewhere.
package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// cloneTime bounds a clone or a fetch, gitTime any other call of git.
	cloneTime = 5 * time.Minute
	gitTime   = time.Minute
	// killWait is how long git may take to exit after it was signalled.
	killWait = 5 * time.Second
	// maxSaid bounds git's output in errors, in bytes.
	maxSaid = 2 << 10
)

// ErrNoGit says that this node has no git.
var ErrNoGit = errors.New("git is not installed on this node; install it, or let the project's runs share one " +
	"folder (workspaceStrategy project_primary)")

// A Maker makes folders. It is safe for concurrent use; operations on repositories run one
// after the other.
type Maker struct {
	dir     string
	environ []string
	turn    chan struct{}
}

// New returns a maker that works below dir, an absolute path, which it creates. git gets what
// it needs of environ, the node's environment.
func New(dir string, environ []string) (*Maker, error) {
	for _, d := range []string{"repos", "trees"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, err
		}
	}
	m := &Maker{dir: dir, turn: make(chan struct{}, 1)}
	for _, kv := range environ {
		switch k, _, _ := strings.Cut(kv, "="); k {
		case "PATH", "HOME", "USER", "LANG", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY",
			"NO_PROXY", "http_proxy", "https_proxy", "no_proxy":
			m.environ = append(m.environ, kv)
		}
	}
	m.environ = append(m.environ, "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=file:git:http:https:ssh",
		"GIT_SSH_COMMAND=ssh -oBatchMode=yes", "LC_ALL=C")
	return m, nil
}

// A Spec describes a worktree.
type Spec struct {
	ID     string // of the execution workspace; the folder's name
	Source string // ID of the project's workspace; the clone's name
	Local  string // a repository on this node; "" to use the clone of URL
	URL    string // may contain credentials, which are never shown
	Base   string // start of a new branch; "": HEAD
	Branch string
	Parent string // an absolute folder for the worktree; "": below the maker's own
}

// Make returns the folder of a worktree on its branch. An existing folder is used unchanged,
// with all files in it. If the branch exists in the repository or at its origin, it is
// continued; otherwise it starts at Base. The error is for the person who configured the
// project.
func (m *Maker) Make(ctx context.Context, s Spec) (dir string, err error) {
	if err := s.check(); err != nil {
		return "", err
	}
	if err := m.wait(ctx); err != nil {
		return "", err
	}
	defer func() { <-m.turn }()
	repo, err := m.repository(ctx, s)
	if err != nil {
		return "", err
	}
	dir = m.Path(s)
	if head, err := m.git(ctx, gitTime, s, dir, "symbolic-ref", "--short", "HEAD"); err == nil && isWorktree(dir) {
		if head != s.Branch {
			return "", fmt.Errorf("the worktree %s is on branch %q, not on %q; archive the workspace to begin anew", dir,
				head, s.Branch)
		}
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // an empty folder can be replaced
		return "", fmt.Errorf("%s is in the way of the worktree: %w", dir, err)
	}
	if _, err := m.git(ctx, gitTime, s, repo, "worktree", "prune"); err != nil {
		return "", err
	}
	args := []string{"worktree", "add", dir, s.Branch}
	if !m.has(ctx, s, repo, "refs/heads/"+s.Branch) {
		from := "refs/remotes/origin/" + s.Branch
		if !m.has(ctx, s, repo, from) {
			if from, err = m.base(ctx, s, repo); err != nil {
				return "", err
			}
		}
		args = []string{"worktree", "add", "--no-track", "-b", s.Branch, dir, from}
	}
	if _, err := m.git(ctx, cloneTime, s, repo, args...); err != nil {
		return "", err
	}
	return dir, nil
}

func (s Spec) check() error {
	plain := func(name string) bool { return name != "" && name == filepath.Base(name) && name[0] != '.' }
	switch {
	case !plain(s.ID) || !plain(s.Source):
		return errors.New("malformed ID of a workspace")
	case s.Branch == "" || strings.HasPrefix(s.Branch, "-") || strings.HasPrefix(s.Base, "-"):
		return fmt.Errorf("no branch can be called %q, or begin at %q", s.Branch, s.Base)
	case s.Local == "" && s.URL == "":
		return errors.New("the project's workspace names neither a folder (cwd) nor a repository (repoUrl)")
	case s.Local != "" && !filepath.IsAbs(s.Local):
		return fmt.Errorf("the folder of the project's workspace, %q, is not an absolute path", s.Local)
	case s.Parent != "" && !filepath.IsAbs(s.Parent):
		return fmt.Errorf("worktreeParentDir %q is not an absolute path", s.Parent)
	case s.URL != "" && (strings.HasPrefix(s.URL, "-") || strings.Contains(s.URL, "::")):
		return errors.New("the repository's URL is not one of file, git, http, https or ssh")
	}
	if _, err := exec.LookPath("git"); err != nil {
		return ErrNoGit
	}
	return nil
}

func (m *Maker) wait(ctx context.Context) error {
	select {
	case m.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Path returns where the worktree of a Spec is, or would be.
func (m *Maker) Path(s Spec) string {
	if s.Parent != "" {
		return filepath.Join(s.Parent, s.ID)
	}
	return filepath.Join(m.dir, "trees", s.ID)
}

// isWorktree reports whether dir itself is a worktree, not a folder inside a repository.
func isWorktree(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, ".git"))
	return err == nil && info.Mode().IsRegular()
}

// repository returns the repository from which a worktree is made.
func (m *Maker) repository(ctx context.Context, s Spec) (string, error) {
	if s.Local != "" {
		if _, err := os.Stat(s.Local); err != nil {
			return "", fmt.Errorf("the folder of the project's workspace is not on this node: %w", err)
		}
		if _, err := m.git(ctx, gitTime, s, s.Local, "rev-parse", "--git-dir"); err != nil {
			return "", fmt.Errorf("the folder of the project's workspace, %s, is no Git repository: %w", s.Local, err)
		}
		return s.Local, nil
	}
	repo := filepath.Join(m.dir, "repos", s.Source)
	if _, err := os.Stat(repo); err == nil {
		// If the fetch fails, the branches that are already here may be enough.
		_, _ = m.git(ctx, cloneTime, s, repo, "fetch", "--prune", "origin", "+refs/heads/*:refs/remotes/origin/*")
		return repo, nil
	}
	part := repo + ".part"
	if err := os.RemoveAll(part); err != nil {
		return "", err
	}
	for _, step := range [][]string{
		{"clone", "--bare", "--", s.URL, part},
		{"-C", part, "fetch", "origin", "+refs/heads/*:refs/remotes/origin/*"},
	} {
		if _, err := m.git(ctx, cloneTime, s, "", step...); err != nil {
			return "", errors.Join(err, os.RemoveAll(part))
		}
	}
	return repo, os.Rename(part, repo)
}

// base returns the commit at which a new branch starts.
func (m *Maker) base(ctx context.Context, s Spec, repo string) (string, error) {
	refs := []string{"HEAD"}
	if s.Base != "" {
		refs = []string{"refs/remotes/origin/" + strings.TrimPrefix(s.Base, "origin/"), s.Base}
		if s.Local != "" {
			refs = []string{s.Base, refs[0]}
		}
	}
	for _, ref := range refs {
		if commit, err := m.git(ctx, gitTime, s, repo, "rev-parse", "--verify", "--quiet", "--end-of-options",
			ref+"^{commit}"); err == nil {
			return commit, nil
		}
	}
	if s.Base == "" {
		return "", errors.New("the repository has no commit yet that a branch could begin at")
	}
	return "", fmt.Errorf("the repository has no %q that a branch could begin at", s.Base)
}

func (m *Maker) has(ctx context.Context, s Spec, repo, ref string) bool {
	_, err := m.git(ctx, gitTime, s, repo, "show-ref", "--verify", "--quiet", ref)
	return err == nil
}

// git runs one git command and returns its output without the last line break. Hooks of the
// repository are disabled, and errors contain no credentials.
func (m *Maker) git(ctx context.Context, limit time.Duration, s Spec, dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git",
		append([]string{"-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never"}, args...)...)
	cmd.Dir, cmd.Env = dir, m.environ
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killWait
	var out, said limited
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("it took longer than %s", limit)
		}
		text := strings.TrimSpace(said.String())
		if s.URL != "" {
			text = strings.ReplaceAll(text, s.URL, "the repository")
			if _, rest, ok := strings.Cut(s.URL, "@"); ok {
				text = strings.ReplaceAll(text, strings.TrimSuffix(s.URL, rest), "")
			}
		}
		name := args[0]
		if name == "-C" {
			name = args[2]
		}
		return "", fmt.Errorf("git %s: %w: %s", name, err, text)
	}
	return strings.TrimSpace(out.String()), nil
}

// limited keeps the first bytes that are written to it.
type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxSaid - l.Len(); room > 0 {
		l.Builder.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// Remove deletes a worktree with all uncommitted changes; its branch stays in the repository.
// dir is what Make returned; if it is not a worktree, Remove does nothing.
func (m *Maker) Remove(ctx context.Context, dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("%q is not an absolute path", dir)
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !isWorktree(dir) {
		return fmt.Errorf("%s is not a Git worktree; it was left alone", dir)
	}
	if err := m.wait(ctx); err != nil {
		return err
	}
	defer func() { <-m.turn }()
	if _, err := m.git(ctx, gitTime, Spec{}, dir, "worktree", "remove", "--force", "--force", dir); err != nil {
		// If its repository is gone, only the folder is left to delete.
		if filepath.Dir(dir) == filepath.Join(m.dir, "trees") {
			return os.RemoveAll(dir)
		}
		return err
	}
	return nil
}

// Trees returns the IDs of the workspaces with a worktree below the maker's own directory.
func (m *Maker) Trees() (ids []string, err error) {
	entries, err := os.ReadDir(filepath.Join(m.dir, "trees"))
	for _, e := range entries {
		if e.IsDir() {
			ids = append(ids, e.Name())
		}
	}
	return ids, err
}
