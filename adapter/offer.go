package adapter

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/adapter/process"
)

// An Offer is a program, a server or a key on a node that agents can use.
type Offer struct {
	Kind string `json:"kind"` // program, server or key
	// Name is the display name: Claude Code, Ollama, ANTHROPIC_API_KEY.
	Name string `json:"name"`
	// Adapter is the adapter for a program, Path the program's path.
	Adapter string `json:"adapterType,omitempty"`
	Path    string `json:"path,omitempty"`
	// Provider is the kind of upstream of a server or a key.
	Provider string   `json:"provider,omitempty"`
	BaseURL  string   `json:"baseUrl,omitempty"`
	Models   []string `json:"models,omitempty"` // of a server, at most maxOfferedModels
	// Tried says that the server was sent a test request; Problem, why that failed.
	Tried   bool   `json:"tried,omitempty"`
	Problem string `json:"problem,omitempty"`
	TookMs  int64  `json:"tookMs,omitempty"`
}

const (
	// lookWait bounds the check of what listens on a port of this machine.
	lookWait = 2 * time.Second
	// tryWait bounds one test request. A server that has to load its model first may take
	// longer; the user can test it again.
	tryWait = 20 * time.Second
	// maxOfferedModels bounds the models that are listed for one server.
	maxOfferedModels = 20
	// maxServerAnswer bounds what is read of a server's answer, in bytes.
	maxServerAnswer = 1 << 20
	// tryTokens bounds the answer to a test request, in tokens.
	tryTokens = 4
)

// A ModelServer is a model server that people run on their own machine, and its default
// address.
type ModelServer struct {
	Name, Provider, URL string
	// owner is the owned_by value in its list of models; "" if it has no fixed one.
	owner string
}

// modelServers are the servers that a node checks for.
var modelServers = []ModelServer{
	{Name: "Ollama", Provider: "ollama", URL: "http://127.0.0.1:11434/v1"},
	{Name: "llama.cpp", Provider: "llamacpp", URL: "http://127.0.0.1:8080/v1", owner: "llamacpp"},
	{Name: "vLLM", Provider: "vllm", URL: "http://127.0.0.1:8000/v1", owner: "vllm"},
	{Name: "LM Studio", Provider: "openai_compatible", URL: "http://127.0.0.1:1234/v1"},
}

// ModelServers returns the servers that a node checks for. If its environment ("K=V") sets
// OLLAMA_HOST, that is the address of Ollama.
func ModelServers(environ []string) []ModelServer {
	out := slices.Clone(modelServers)
	for _, kv := range environ {
		at, ok := strings.CutPrefix(kv, "OLLAMA_HOST=")
		if !ok || at == "" {
			continue
		}
		if !strings.Contains(at, "://") {
			at = "http://" + at
		}
		out[0].URL = strings.TrimSuffix(at, "/") + "/v1"
	}
	return out
}

// A KeyVariable is an environment variable from which a vendor's programs read a key. Base is
// the variable from which they read another address than the vendor's, if there is one.
type KeyVariable struct{ Name, Provider, Base string }

var keyVariables = []KeyVariable{
	{"ANTHROPIC_API_KEY", "anthropic", "ANTHROPIC_BASE_URL"},
	{"OPENAI_API_KEY", "openai", "OPENAI_BASE_URL"},
	{"GEMINI_API_KEY", "gemini", ""},
	{"GOOGLE_API_KEY", "gemini", ""},
	{"OPENROUTER_API_KEY", "openrouter", ""},
}

// KeyVariables returns the variables that are checked for keys.
func KeyVariables() []KeyVariable { return slices.Clone(keyVariables) }

// Keys returns the variables of an environment ("K=V") that hold a key: their names only.
func Keys(environ []string) (out []KeyVariable) {
	for _, k := range keyVariables {
		if slices.ContainsFunc(environ, func(kv string) bool {
			return strings.HasPrefix(kv, k.Name+"=") &&
				len(kv) > len(k.Name)+1
		}) {
			out = append(out, k)
		}
	}
	return out
}

// A Look says how thoroughly a node checks what it offers.
type Look struct {
	Try  bool `json:"try,omitempty"`  // send each model server a short test request
	Port int  `json:"port,omitempty"` // a further port of this machine to check for a model server; 0: none
}

// Offers checks which of servers answer, which vendors' programs are on the PATH, and which
// variables have keys. It does not return the keys.
func (p Prober) Offers(ctx context.Context, servers []ModelServer, look Look) []Offer {
	if look.Port != 0 {
		servers = append(slices.Clone(servers), ModelServer{Name: "llama.cpp", Provider: "llamacpp",
			URL: fmt.Sprintf("http://127.0.0.1:%d/v1", look.Port), owner: "llamacpp"})
	}
	found := make([]*Offer, len(servers))
	var wg sync.WaitGroup
	for n, s := range servers {
		wg.Go(func() { found[n] = s.offer(ctx, look.Try) })
	}
	wg.Wait()
	out := []Offer{}
	for _, o := range found {
		if o != nil {
			out = append(out, *o)
		}
	}
	path := ""
	for _, kv := range p.Environ {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, k := range kinds {
		if at, ok := process.LookPath(k.Program, "", path); k.Program != "" && ok && p.Has(k.Type) {
			out = append(out, Offer{Kind: "program", Name: k.Name, Adapter: k.Type, Path: at})
		}
	}
	for _, k := range Keys(p.Environ) {
		out = append(out, Offer{Kind: "key", Name: k.Name, Provider: k.Provider})
	}
	return out
}

// offer asks a server for its models; nil if no model server answers.
func (s ModelServer) offer(ctx context.Context, try bool) *Offer {
	asked, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	var list struct {
		Data []struct {
			ID    string `json:"id"`
			Owner string `json:"owned_by"`
		} `json:"data"`
	}
	if err := exchange(asked, http.MethodGet, s.URL+"/models", nil, &list); err != nil || list.Data == nil {
		return nil
	}
	o := &Offer{Kind: "server", Name: s.Name, Provider: s.Provider, BaseURL: s.URL}
	for _, m := range list.Data {
		if s.owner != "" && m.Owner != s.owner {
			// Another server with the same protocol listens there.
			o.Name, o.Provider = "model server", "openai_compatible"
		}
		if m.ID != "" && len(o.Models) < maxOfferedModels {
			o.Models = append(o.Models, m.ID)
		}
	}
	switch {
	case o.Answers() == "":
		o.Problem = "it has no model that answers in words"
	case try:
		o.try(ctx)
	}
	return o
}

// TooSlow is the beginning of the problem of a server that did not answer in time.
const TooSlow = "it gave no answer within"

// try sends a test request to the first model that is not for embeddings.
func (o *Offer) try(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tryWait)
	defer cancel()
	began := time.Now()
	body := map[string]any{"model": o.Answers(), "max_tokens": tryTokens,
		"messages": []map[string]string{{"role": "user", "content": "Say hello."}}}
	var said struct {
		Choices []json.RawMessage `json:"choices"`
	}
	err := exchange(ctx, http.MethodPost, o.BaseURL+"/chat/completions", body, &said)
	if err == nil && len(said.Choices) == 0 {
		err = errors.New("it answered without words")
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%s %s", TooSlow, tryWait)
	}
	o.Tried, o.TookMs = true, time.Since(began).Milliseconds()
	if err != nil {
		o.Problem = err.Error()
	}
}

// Answers returns a model of the server that generates text, "" if it has none.
func (o Offer) Answers() string {
	n := slices.IndexFunc(o.Models, func(m string) bool { return !strings.Contains(strings.ToLower(m), "embed") })
	if n < 0 {
		return ""
	}
	return o.Models[n]
}

// exchange makes one JSON request. Servers on this machine are sent no key.
func exchange(ctx context.Context, method, url string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxServerAnswer))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered with status %d", res.StatusCode)
	}
	if json.Unmarshal(b, out) != nil {
		return errors.New("its answer is not JSON")
	}
	return nil
}
