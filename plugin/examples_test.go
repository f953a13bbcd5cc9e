package plugin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The web monitor of the examples opens an issue for a page that is away, also at its first look, for one that changes,
// and none for one that is as it was.
func TestTheWebMonitorOpensIssues(t *testing.T) {
	t.Parallel()
	for _, needed := range []string{"/bin/sh", "curl", "sha256sum"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skip("the app needs " + needed)
		}
	}
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
		cmd := exec.CommandContext(t.Context(), "/bin/sh", filepath.Join("..", "examples", "apps", "web-monitor", "watch.sh"))
		cmd.Env = append(cmd.Environ(), "URLS="+page, "AGENT_HOME="+home, "PAPERCLIP_API_URL="+s.URL,
			"PAPERCLIP_API_KEY=k", "PAPERCLIP_RUN_ID=r", "PAPERCLIP_COMPANY_ID=c", "PAPERCLIP_AGENT_ID=a", "PAPERCLIP_TASK_ID=",
			"no_proxy=*")
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
