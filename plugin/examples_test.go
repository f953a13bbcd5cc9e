package plugin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// needs skips a test of an app whose script needs programs that are not here.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip("the app needs " + p)
		}
	}
}

// The web monitor of the examples opens an issue for a page that is away, also at its first look, for one that changes,
// and none for one that is as it was.
func TestTheWebMonitorOpensIssues(t *testing.T) {
	t.Parallel()
	needs(t, "/bin/sh", "curl", "sha256sum")
	var mu sync.Mutex // guards what follows
	status, text := 503, ""
	var issues []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch r.URL.Path {
		case "/page":
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
		case "/api/companies/c/issues":
			var in struct{ Title, Description string }
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Description == "" {
				t.Errorf("issue: %+v %v", in, err)
			}
			issues = append(issues, in.Title)
			w.WriteHeader(http.StatusCreated)
		default:
			t.Errorf("it asks for %s %s", r.Method, r.URL)
		}
	}))
	defer s.Close()
	page, home := s.URL+"/page", t.TempDir()
	look := func(what string, code int, says string, want ...string) {
		t.Helper()
		mu.Lock()
		status, text, issues = code, says, nil
		mu.Unlock()
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "../examples/apps/web-monitor/watch.sh")
		cmd.Env = append(cmd.Environ(), "URLS="+page, "AGENT_HOME="+home, "PAPERCLIP_API_URL="+s.URL,
			"PAPERCLIP_API_KEY=k", "PAPERCLIP_RUN_ID=r", "PAPERCLIP_COMPANY_ID=c", "PAPERCLIP_AGENT_ID=a",
			"PAPERCLIP_TASK_ID=", "no_proxy=*")
		out, err := cmd.CombinedOutput()
		mu.Lock()
		defer mu.Unlock()
		if err != nil || !slices.Equal(issues, want) || !strings.Contains(string(out), "changed") {
			t.Errorf("%s: issues %q, want %q; %v, it says %s", what, issues, want, err, out)
		}
	}
	look("away at the first look", 503, "", "Away: "+page)
	look("still away", 503, "")
	look("back", 200, "one\n", "Changed: "+page)
	look("as it was", 200, "one\n")
	look("other words", 200, "two\n", "Changed: "+page)
	look("gone", 404, "two\n", "Away: "+page)
	home = t.TempDir()
	look("there at the first look", 200, "two\n")
}

// The reviewer of the examples watches the first branch of a repository unless it is told another one, opens an issue
// for a commit with findings and none for one without, and says which branches there are when its own is not.
func TestTheCodeReviewerOpensIssues(t *testing.T) {
	t.Parallel()
	needs(t, "/bin/sh", "curl", "git", "awk")
	var mu sync.Mutex // guards what follows
	var issues []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var in struct{ Title, Description string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Path != "/api/companies/c/issues" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		issues = append(issues, in.Title[strings.LastIndex(in.Title, ":")+2:]+" "+in.Description)
	}))
	defer s.Close()
	dir := t.TempDir()
	repository, home := filepath.Join(dir, "work"), filepath.Join(dir, "home")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", repository, "-c", "user.name=a", "-c",
			"user.email=a@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v %s", args, err, out)
		}
	}
	commit := func(subject, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(repository, "a_test.go"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", ".")
		git("commit", "-qm", subject)
	}
	look := func(what, branch, says string, want ...string) {
		t.Helper()
		mu.Lock()
		issues = nil
		mu.Unlock()
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "../examples/apps/code-reviewer/review.sh")
		cmd.Env = append(cmd.Environ(), "REPOSITORY="+repository, "BRANCH="+branch, "AGENT_HOME="+home,
			"PAPERCLIP_API_URL="+s.URL, "PAPERCLIP_API_KEY=k", "PAPERCLIP_RUN_ID=r", "PAPERCLIP_COMPANY_ID=c",
			"PAPERCLIP_AGENT_ID=a", "PAPERCLIP_TASK_ID=", "no_proxy=*")
		out, err := cmd.CombinedOutput()
		mu.Lock()
		defer mu.Unlock()
		if err != nil || len(issues) != len(want) || !strings.Contains(string(out), says) {
			t.Fatalf("%s: issues %q, want %q; %v, it says %s", what, issues, want, err, out)
		}
		for i, text := range want {
			if !strings.Contains(issues[i], text) {
				t.Errorf("%s: issue %q, want %q", what, issues[i], text)
			}
		}
	}
	for _, d := range []string{repository, home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q", "-b", "trunk")
	commit("first", "package a // TODO: all\n")
	look("the first branch", "", "1 commits, 1 with findings", "a_test.go:1: a new TODO")
	look("nothing new", "", "0 commits")
	commit("clean", "package a\n")
	commit("again", "package a\n\n// FIXME: more\n")
	look("two commits", "", "2 commits, 1 with findings", "again ")
	look("no such branch", "main", "has no branch main; it has: trunk")
	look("its name", "trunk", "0 commits")
}
