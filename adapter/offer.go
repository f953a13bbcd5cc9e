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

// An Offer is something on a node that agents can work with.
type Offer struct {
	Kind string `json:"kind"` // program, server or key
	// Name is what people call it: Claude Code, Ollama, ANTHROPIC_API_KEY.
	Name string `json:"name"`
	// Adapter is the adapter of a program, Path where the program is.
	Adapter string `json:"adapterType,omitempty"`
	Path    string `json:"path,omitempty"`
	// Provider is the kind of upstream that a server or a key is for.
	Provider string   `json:"provider,omitempty"`
	BaseURL  string   `json:"baseUrl,omitempty"`
	Models   []string `json:"models,omitempty"` // of a server, at most maxOfferedModels
	// Tried says that the server was asked for an answer; Problem why it gave none.
	Tried   bool   `json:"tried,omitempty"`
	Problem string `json:"problem,omitempty"`
	TookMs  int64  `json:"tookMs,omitempty"`
}

const (
	// lookWait bounds finding out what listens on a port: it is on this machine.
	lookWait = 2 * time.Second
	// tryWait bounds one answer of a server. One that has to load its model first may
	// take longer, and is asked again by whoever wants to know.
	tryWait = 20 * time.Second
	// maxOfferedModels bounds the models that are told of a server.
	maxOfferedModels = 20
	// maxServerAnswer bounds what is read of a server's answer, in bytes.
	maxServerAnswer = 1 << 20
	// tryTokens bounds the answer that a server is asked for.
	tryTokens = 4
)

// A ModelServer is a server of models that people run on their own machine, and
// where it listens unless it is told otherwise.
type ModelServer struct {
	Name, Provider, URL string
	// owner is what its list of models says of itself, "" for nothing in particular.
	owner string
}

// modelServers are looked for on a node.
var modelServers = []ModelServer{
	{Name: "Ollama", Provider: "ollama", URL: "http://127.0.0.1:11434/v1"},
	{Name: "llama.cpp", Provider: "llamacpp", URL: "http://127.0.0.1:8080/v1", owner: "llamacpp"},
	{Name: "vLLM", Provider: "vllm", URL: "http://127.0.0.1:8000/v1", owner: "vllm"},
	{Name: "LM Studio", Provider: "openai_compatible", URL: "http://127.0.0.1:1234/v1"},
}

// ModelServers are the servers that a node looks for. Where its environment ("K=V")
// has OLLAMA_HOST, as Ollama itself reads it, Ollama is looked for there.
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

// A KeyVariable is a variable in which a vendor's programs look for a key. Base is the one in
// which they look for another address than the vendor's, where they do.
type KeyVariable struct{ Name, Provider, Base string }

var keyVariables = []KeyVariable{
	{"ANTHROPIC_API_KEY", "anthropic", "ANTHROPIC_BASE_URL"},
	{"OPENAI_API_KEY", "openai", "OPENAI_BASE_URL"},
	{"GEMINI_API_KEY", "gemini", ""},
	{"GOOGLE_API_KEY", "gemini", ""},
	{"OPENROUTER_API_KEY", "openrouter", ""},
}

// KeyVariables are the variables in which keys are looked for.
func KeyVariables() []KeyVariable { return slices.Clone(keyVariables) }

// Keys returns the variables of an environment ("K=V") that have a key: their names
// alone.
func Keys(environ []string) (out []KeyVariable) {
	for _, k := range keyVariables {
		if slices.ContainsFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, k.Name+"=") && len(kv) > len(k.Name)+1 }) {
			out = append(out, k)
		}
	}
	return out
}

// A Look says how closely a node looks at what it offers.
type Look struct {
	Try  bool `json:"try,omitempty"`  // model servers are asked for one short answer
	Port int  `json:"port,omitempty"` // of this machine, where a model server may listen as well; 0: none
}

// Offers looks which of servers answer, which vendors' programs are on the PATH, and
// which variables have keys, whose values it does not read.
func (p Prober) Offers(ctx context.Context, servers []ModelServer, look Look) []Offer {
	if look.Port != 0 {
		servers = append(slices.Clone(servers), ModelServer{Name: "llama.cpp", Provider: "llamacpp", URL: fmt.Sprintf("http://127.0.0.1:%d/v1", look.Port), owner: "llamacpp"})
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

// offer asks a server for its models, nil where nothing answers that is one.
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
			// Something else listens there that speaks the same.
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

// TooSlow begins the problem of a server that gave no answer in time.
const TooSlow = "it gave no answer within"

// try asks for one short answer of the first model that is not for embeddings.
func (o *Offer) try(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tryWait)
	defer cancel()
	began := time.Now()
	body := map[string]any{"model": o.Answers(), "max_tokens": tryTokens, "messages": []map[string]string{{"role": "user", "content": "Say hello."}}}
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

// Answers is the model of a server that answers in words, "" where it has none.
func (o Offer) Answers() string {
	n := slices.IndexFunc(o.Models, func(m string) bool { return !strings.Contains(strings.ToLower(m), "embed") })
	if n < 0 {
		return ""
	}
	return o.Models[n]
}

// exchange makes one request of JSON. Servers on this machine get no key.
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
