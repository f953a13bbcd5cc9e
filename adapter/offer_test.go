package adapter

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A node offers the model servers that answer, the programs on its PATH, and the names of
// variables with keys, never their values.
func TestANodeTellsWhatItOffers(t *testing.T) {
	t.Parallel()
	asked := 0
	serve := func(models string, status int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/chat/completions" {
				asked++
				w.WriteHeader(status)
				_, _ = w.Write([]byte(`{"choices":[{"message":{"content":"Hello"}}]}`))
				return
			}
			_, _ = w.Write([]byte(models))
		}))
		t.Cleanup(s.Close)
		return s.URL + "/v1"
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "claude"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	environ := []string{"PATH=" + bin, "OPENAI_API_KEY=sk-canary-77", "ANTHROPIC_API_KEY=", "GEMINI_API_KEYS=x"}
	servers := []ModelServer{
		{Name: "Ollama", Provider: "ollama", URL: serve(`{"data":[{"id":"nomic-embed"},{"id":"qwen3"}]}`, 200)},
		{Name: "llama.cpp", Provider: "llamacpp", URL: serve(`{"data":[{"id":"m","owned_by":"somebody"}]}`, 500),
			owner: "llamacpp"},
		{Name: "vLLM", Provider: "vllm", URL: serve(`<html>`, 200)},
		{Name: "LM Studio", Provider: "openai_compatible", URL: "http://127.0.0.1:1/v1"},
	}
	p := Prober{Environ: environ, Has: func(string) bool { return true }}
	found := p.Offers(t.Context(), servers, Look{Try: true})
	var got []string
	for _, o := range found {
		got = append(got, strings.Join([]string{o.Kind, o.Name, o.Adapter, o.Provider, o.Answers(), o.Problem}, "|"))
	}
	want := []string{"server|Ollama||ollama|qwen3|",
		"server|model server||openai_compatible|m|it answered with status 500", "program|Claude Code|claude_local|||",
		"key|OPENAI_API_KEY||openai||"}
	if !slices.Equal(got, want) || asked != 2 {
		t.Errorf("got %q after %d answers, want %q", got, asked, want)
	}
	if b, _ := json.Marshal(found); strings.Contains(string(b), "canary") {
		t.Error("the value of a key is told")
	}
	if p.Offers(t.Context(), servers[:1], Look{}); asked != 2 {
		t.Error("a server was asked for an answer that nobody wanted")
	}
}

func TestOllamaIsLookedForWhereItsVariableSays(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": "http://127.0.0.1:11434/v1", "127.0.0.1:9": "http://127.0.0.1:9/v1",
		"http://127.0.0.1:8/": "http://127.0.0.1:8/v1"} {
		if got := ModelServers([]string{"OLLAMA_HOST=" + given})[0].URL; got != want {
			t.Errorf("%q: %s, want %s", given, got, want)
		}
	}
}
