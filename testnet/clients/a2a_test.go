package clients

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/testnet/testkit"
)

// a2aSDK returns the python that `make clients` installs A2A's own client in.
func a2aSDK(t *testing.T) string {
	t.Helper()
	at := os.Getenv("SELVAGE_A2A_SDK")
	if at == "" {
		at, _ = filepath.Abs("../../.cache/a2a-python")
	}
	python := filepath.Join(at, "v", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		t.Skip("the client of A2A is not installed; `make clients` does it (needs pip and a registry)")
	}
	return python
}

// A listener is a webhook that keeps what it is told of one task; what is below it is told of another.
type listener struct {
	mu   sync.Mutex
	told []string
	bad  string
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/hook" {
		return
	}
	var e struct {
		Task struct {
			Status struct{ State string }
		}
	}
	err := json.NewDecoder(r.Body).Decode(&e)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || r.Header.Get("X-A2A-Notification-Token") != "told" ||
		r.Header.Get("Authorization") != "Bearer secret" {
		l.bad = "a notification without its token or task"
	}
	if l.told = append(l.told, e.Task.Status.State); len(l.told) == 1 {
		w.WriteHeader(http.StatusServiceUnavailable) // it is told again
	}
}

func (l *listener) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.told) < 2 {
		return ""
	}
	return l.told[len(l.told)-1]
}

// The official client finds an agent of a company by the card of the mesh, gives it tasks over both bindings and at two
// nodes, and gets their artifacts; a webhook is told. Then an agent of the company gives its work to another agent by
// the adapter a2a, at the other node.
func TestOfficialClientOfA2A(t *testing.T) {
	python := a2aSDK(t)
	b := testkit.Mesh(t, 3, func(_ int, c *node.Config) {
		c.Adapters, c.Shim, c.Private = nil, shimtest.Command, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	hook := &listener{}
	at := httptest.NewServer(hook)
	t.Cleanup(at.Close)
	of := string(b.Company("Acme"))
	demo := map[string]any{"env": map[string]string{"AGENT_DEMO": "1"}}
	hire := func(name, role, adapter string, config any) (id string) {
		t.Helper()
		var made struct{ ID string }
		b.Must(0, "POST", "/api/companies/"+of+"/agents", map[string]any{"name": name, "role": role, "adapterType": adapter,
			"adapterConfig": config}, &made)
		return made.ID
	}
	ada := hire("Ada", "ceo", "wasm", demo)
	b.Must(0, "POST", "/api/agents/"+hire("Idle", "engineer", "wasm", demo)+"/pause", nil, nil)
	d := described{url: strings.TrimSuffix(b.URL(0, ""), "/"), dir: t.TempDir(), key: boardKey(b, "a2a")}
	const want = `the mesh has Ada of Acme
the card is of Ada and streams
streamed … completed Result says who it is
waited completed Result
read completed True text/markdown
listed 2 True
go on is refused
subscribe is refused
not found
webhook mine 1 True ''
submitted then canceled
`
	if said := d.do(t, python, d.copied(t, "task.py"), strings.TrimSuffix(b.URL(1, ""), "/"),
		at.URL+"/hook"); said != want {
		t.Errorf("it said:\n%s\nwant:\n%s", said, want)
	}
	testkit.Patient.Until(t, "the webhook is told of the end",
		func() bool { return hook.last() == "TASK_STATE_COMPLETED" })
	if hook.bad != "" {
		t.Error(hook.bad)
	}

	envoy := hire("Envoy", "engineer", "a2a", map[string]any{"url": b.URL(1, "/a2a/"+ada), "token": d.key})
	var issue struct{ ID, Status string }
	b.Must(0, "POST", "/api/companies/"+of+"/issues", map[string]any{"title": "Ask outside", "status": "todo",
		"assigneeAgentId": envoy}, &issue)
	testkit.Patient.Until(t, "the agent outside has done it", func() bool {
		b.Must(0, "GET", "/api/issues/"+issue.ID, nil, &issue)
		return issue.Status == "done"
	})
	var comments []struct{ Body, AuthorAgentID string }
	b.Must(0, "GET", "/api/issues/"+issue.ID+"/comments", nil, &comments)
	if len(comments) == 0 || comments[0].AuthorAgentID != envoy || !strings.Contains(comments[0].Body, "I am Ada") {
		t.Errorf("its comments are %+v", comments)
	}
}
