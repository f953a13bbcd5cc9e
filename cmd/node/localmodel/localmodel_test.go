package localmodel

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/adapter"
)

func TestSmallModelsAreToldByTheirNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"local/gemma3-270m": true, "qwen3:0.6b": true, "llama3.2:3b": true,
		"Qwen2.5-1.5B-Instruct": true, "tiny-.5b": true,
		"qwen3:8b": false, "llama3.1:70b": false, "gpt-oss-20b": false, "claude-haiku-4-5": false, "mixtral-8x7b": false,
		"gemma3-13b": false} {
		if got := Small(name); got != want {
			t.Errorf("%s: small is %v", name, got)
		}
	}
}

// A server that several nodes find is listed once, with the nodes that do not find it.
func TestServersAreFoundOnce(t *testing.T) {
	t.Parallel()
	at := func(port string) adapter.Offer {
		return adapter.Offer{Kind: "server", Name: "Ollama", BaseURL: "http://127.0.0.1:" + port + "/v1"}
	}
	got := Servers([]NodeOffers{{Name: "a", Offers: []adapter.Offer{at("1"), {Kind: "key"}}},
		{Name: "b", Offers: []adapter.Offer{at("1"), at("2")}}})
	if len(got) != 2 || !slices.Equal(got[0].Nodes, []string{"a", "b"}) || len(got[0].Missing) != 0 ||
		!slices.Equal(got[1].Missing, []string{"a"}) || Label(got[1]) != "serves-ollama=yes" {
		t.Errorf("%+v", got)
	}
}

// A server that ends by itself is restarted, but not forever, and it ends with its
// parent. A script replaces python here.
func TestTheServerIsKeptAndEnded(t *testing.T) {
	t.Parallel()
	s := Server{Dir: t.TempDir(), Port: 1}
	python := func(script string) {
		if err := os.MkdirAll(filepath.Join(s.Dir, "v", "bin"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.Dir, "v", "bin", "python"), []byte("#!/bin/sh\n"+script+"\n"),
			0o700); err != nil {
			t.Fatal(err)
		}
	}
	python("echo listening here; exec cat >/dev/null")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	ready := make(chan struct{}, 1)
	var log bytes.Buffer
	go func() { ended <- s.Run(ctx, &log, func() { ready <- struct{}{} }) }()
	<-ready
	if pid, ok := s.Running(); !ok || pid != os.Getpid() {
		t.Errorf("it runs as %d, %v", pid, ok)
	}
	if err := s.Run(t.Context(), &log, func() {}); err == nil || !strings.Contains(err.Error(), "runs already") {
		t.Errorf("a second one: %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, ok := s.Running(); ok {
		t.Error("it runs after its end")
	}
	if _, err := s.Stop(); err == nil {
		t.Error("what does not run was stopped")
	}
	// A process that has ended is not confused with a new one of the same ID.
	if err := os.WriteFile(s.file(), []byte(`{"pid":1,"start":"0"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Running(); ok {
		t.Error("another process is taken for it")
	}
}
