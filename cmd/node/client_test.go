package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// A command sent during an election takes effect once: it is retried with one key, and
// with the run of its agent.
func TestCommandsWaitForALeader(t *testing.T) {
	var seen []string
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen,
			r.Method+" "+r.URL.Path+" "+r.Header.Get("Idempotency-Key")+" "+r.Header.Get("X-Paperclip-Run-Id")+" "+
				r.Header.Get("Authorization"))
		if len(seen) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			w.Write([]byte(`{"error": "There is no leader now", "code": "no_leader"}`))
			return
		}
		w.Write([]byte(`{"id": "7"}`))
	}))
	defer node.Close()
	t.Setenv("SELVAGE_API_URL", node.URL)
	t.Setenv("SELVAGE_CREDENTIALS", t.TempDir()+"/credentials.json")
	t.Setenv("PAPERCLIP_API_KEY", "pcp_abc")
	t.Setenv("PAPERCLIP_RUN_ID", "r-1")
	status, out, talk := told(t, "issue", "comment", "ACM-1", "Hello")
	if status != 0 || out != "7\n" {
		t.Fatalf("ended with %d: %s%s", status, out, talk)
	}
	if len(seen) != 3 || seen[0] != seen[2] || !strings.HasPrefix(seen[0], "POST /api/issues/ACM-1/comments go-") ||
		!strings.HasSuffix(seen[0], " r-1 Bearer pcp_abc") {
		t.Errorf("the node saw %q", seen)
	}
}

// If nothing listens at the address, the command fails at once.
func TestNobodyThereIsToldAtOnce(t *testing.T) {
	node := httptest.NewServer(http.NotFoundHandler())
	at := node.URL
	node.Close()
	t.Setenv("SELVAGE_API_URL", at+"/api")
	t.Setenv("SELVAGE_CREDENTIALS", t.TempDir()+"/credentials.json")
	status, _, talk := told(t, "members")
	if status != cli.ExitFailed || !strings.Contains(talk,
		"no answer from "+at+": is a node running there? (selvage up, or --api URL)") {
		t.Errorf("ended with %d: %s", status, talk)
	}
	if status, _, talk := told(t, "members", "--api", "http://["); status != cli.ExitMisused || !strings.Contains(talk,
		"is not the address of a node") {
		t.Errorf("ended with %d: %s", status, talk)
	}
}

// In a process that has a socket to its node, the command line asks there; an address that is given wins.
func TestTheSocketOfAProcessIsAsked(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // the address of a socket has little room
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	at := filepath.Join(dir, "api.sock")
	l, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	node := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"id": "by the socket, of %s"}`, r.Host)
	})}
	go func() { _ = node.Serve(l) }()
	t.Setenv("SELVAGE_API_SOCKET", at)
	t.Setenv("SELVAGE_API_URL", "http://127.0.0.1:1")
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("SELVAGE_CREDENTIALS", t.TempDir()+"/credentials.json")
	if status, out, talk := told(t, "issue", "comment", "ACM-1", "Hello"); status != 0 ||
		out != "by the socket, of localhost\n" {
		t.Errorf("ended with %d: %s%s", status, out, talk)
	}
	status, _, talk := told(t, "members", "--api", "http://127.0.0.1:1")
	if status != cli.ExitFailed || !strings.Contains(talk, "no answer from http://127.0.0.1:1:") {
		t.Errorf("ended with %d: %s", status, talk)
	}
	if err := node.Close(); err != nil {
		t.Fatal(err)
	}
	status, _, talk = told(t, "members")
	if status != cli.ExitFailed || !strings.Contains(talk, "no answer from the socket "+at) {
		t.Errorf("ended with %d: %s", status, talk)
	}
}
