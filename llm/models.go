package llm

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// A modelList is the models that an upstream listed.
type modelList struct {
	at    time.Time
	names []string
}

// fetch requests an upstream's list of models.
func (g *Gateway) fetch(ctx context.Context, p money.ModelProvider, key string) ([]string, *refusal) {
	ctx, cancel := context.WithTimeout(ctx, testWait)
	defer cancel()
	url := p.BaseURL + "/models"
	if native, ok := googleBase(p); ok {
		url = native + "/openai/models"
	}
	if p.Kind == money.ModelAnthropic {
		url = p.BaseURL + "/v1/models?limit=1000"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, refuse(502, "upstream_error", "The upstream's address is not one")
	}
	setHeader(req.Header, p, key)
	resp, err := g.client.Do(req)
	if err != nil {
		return nil, refuse(502, "upstream_unreachable", "The upstream %s can not be reached from this node", p.Name)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == 401 || resp.StatusCode == 403:
		return nil, refuse(502, "upstream_refused", "The upstream %s refused its key (%d)", p.Name, resp.StatusCode)
	case resp.StatusCode != 200:
		return nil, refuse(502, "upstream_error", "The upstream %s answered with status %d", p.Name, resp.StatusCode)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	var in struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err != nil || json.Unmarshal(b, &in) != nil || in.Data == nil {
		return nil, refuse(502, "upstream_garbage", "The upstream %s sent what is no list of models", p.Name)
	}
	out := []string{}
	for _, m := range in.Data {
		name := strings.TrimPrefix(m.ID, "models/") // as Gemini has them
		if name != "" && len(name) <= money.MaxModelName && len(out) < maxModels &&
			(key == "" || !strings.Contains(name, key)) {
			out = append(out, name)
		}
	}
	return out, nil
}

// listed returns the models of an upstream, as they were at most modelsAge ago.
func (g *Gateway) listed(ctx context.Context, p money.ModelProvider, run entity.Run) []string {
	g.mu.Lock()
	l, ok := g.models[p.ID]
	g.mu.Unlock()
	if ok && time.Since(l.at) < modelsAge {
		return l.names
	}
	key, err := g.keyOf(ctx, p, run)
	if err != nil {
		return nil
	}
	names, bad := g.fetch(ctx, p, key)
	if bad != nil {
		names = l.names // better old ones than none
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.models) >= maxModels {
		clear(g.models)
	}
	g.models[p.ID] = modelList{time.Now(), names}
	return names
}

// names returns the model names that a caller may use: the configured names of upstreams, and
// the model lists of upstreams that serve any name.
func (g *Gateway) names(ctx context.Context, s scene) []string {
	var out []string
	for _, p := range s.providers {
		if !s.uses(p) {
			continue
		}
		open := len(p.Models) == 0
		for _, r := range p.Models {
			if strings.HasSuffix(r.Name, "*") {
				open = open || r.As == ""
			} else {
				out = append(out, r.Name)
			}
		}
		if open {
			for _, name := range g.listed(ctx, p, s.run) {
				if _, _, ok := match(p, name); ok {
					out = append(out, name)
				} else if _, _, ok := match(p, p.Name+"/"+name); ok {
					out = append(out, p.Name+"/"+name)
				}
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxModels)]
}

func (g *Gateway) serveModels(w http.ResponseWriter, r *http.Request, who Caller, d dialect) {
	if r.Header.Get("anthropic-version") != "" {
		d = messages
	}
	s, err := g.look(who)
	if err != nil {
		writeRefusal(w, d, err)
		return
	}
	data := []object{}
	names := g.names(r.Context(), s)
	for _, name := range names {
		data = append(data, modelObject(d, name))
	}
	out := object{"object": "list", "data": data}
	if d == generate {
		out = object{"models": data}
	}
	if d == messages {
		out = object{"data": data, "has_more": false, "first_id": nil, "last_id": nil}
		if len(names) > 0 {
			out["first_id"], out["last_id"] = names[0], names[len(names)-1]
		}
	}
	writeObject(w, out)
}

func modelObject(d dialect, name string) object {
	if d == messages {
		return object{"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"}
	}
	if d == generate {
		return object{"name": "models/" + name, "displayName": name, "supportedGenerationMethods": []string{"generateContent",
			"countTokens"}}
	}
	return object{"id": name, "object": "model", "created": 0, "owned_by": "selvage"}
}

func (g *Gateway) serveModel(w http.ResponseWriter, _ *http.Request, who Caller, d dialect, id string) {
	s, err := g.look(who)
	if err == nil && len(s.targetsOf(id)) == 0 {
		err = refuse(404, "model_not_found", "No upstream on this node answers to the model %q", id)
	}
	if err != nil {
		writeRefusal(w, d, err)
		return
	}
	writeObject(w, modelObject(d, id))
}

func writeObject(w http.ResponseWriter, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeWait))
	_, _ = w.Write(encode(v))
}

// serveCount counts the tokens of a request. Anthropic counts without a charge. For other
// upstreams it estimates one token for four bytes, as in text of European languages. Clients plan
// with it; no money depends on it.
func (g *Gateway) serveCount(w http.ResponseWriter, r *http.Request, who Caller) {
	body, err := readBody(w, r)
	if err == nil {
		err = g.count(w, r, who, body)
	}
	if err != nil {
		writeRefusal(w, messages, err)
	}
}

func (g *Gateway) count(w http.ResponseWriter, r *http.Request, who Caller, body []byte) error {
	p, bad := planOf(messages, body)
	if bad != nil {
		return bad
	}
	s, err := g.look(who)
	if err != nil {
		return err
	}
	targets := s.targetsOf(p.model)
	if len(targets) == 0 {
		return refuse(404, "model_not_found", "No upstream on this node answers to the model %q", p.model)
	}
	if t := targets[0]; t.p.Kind == money.ModelAnthropic {
		if n, ok := g.countThere(r.Context(), t, p, s.run); ok {
			writeObject(w, object{"input_tokens": n})
			return nil
		}
	}
	writeObject(w, object{"input_tokens": (p.input - frameTokens + 3) / 4})
	return nil
}

func (g *Gateway) countThere(ctx context.Context, t target, p *plan, run entity.Run) (n int64, ok bool) {
	key, err := g.keyOf(ctx, t.p, run)
	if err != nil {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(ctx, testWait)
	defer cancel()
	f := fields{}
	for _, name := range []string{"system", "messages", "tools", "tool_choice", "thinking"} {
		if v, ok := p.f[name]; ok {
			f[name] = v
		}
	}
	f.set("model", t.model)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.p.BaseURL+"/v1/messages/count_tokens",
		strings.NewReader(string(encode(f))))
	if err != nil {
		return 0, false
	}
	setHeader(req.Header, t.p, key)
	resp, err := g.client.Do(req)
	if err != nil {
		return 0, false
	}
	defer resp.Body.Close()
	var in struct {
		Tokens *int64 `json:"input_tokens"`
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxError))
	if err != nil || resp.StatusCode != 200 || json.Unmarshal(b, &in) != nil || in.Tokens == nil || *in.Tokens < 0 {
		return 0, false
	}
	return *in.Tokens, true
}

// A Check is the result of a test of an upstream, on one node.
type Check struct {
	OK      bool     `json:"ok"`
	Code    string   `json:"code,omitempty"`
	Message string   `json:"message"`
	Models  []string `json:"models"` // at most 100 of those that it has
	TookMs  int64    `json:"tookMs"`
	Node    string   `json:"nodeId"`
}

// Test requests the models of an upstream of a company, or of the mesh if company is "". It shows
// whether the upstream answers and accepts its key, without a cost.
func (g *Gateway) Test(ctx context.Context, of ledger.CompanyID, id string) (Check, error) {
	var p money.ModelProvider
	err := g.conf.View(func(tx *ledger.Tx) error {
		var ok bool
		if p, ok = money.ModelProviderOf(tx, of, id); !ok {
			return ledger.Refuse(ledger.NotFound, nil, "Model provider not found")
		}
		return nil
	})
	if err != nil {
		return Check{}, err
	}
	began := time.Now()
	c := Check{Models: []string{}, Node: g.conf.Self}
	key, err := g.keyOf(ctx, p, entity.Run{})
	if err != nil {
		c.Code, c.Message = "no_key", "Its key can not be opened on this node"
		return c, nil
	}
	names, bad := g.fetch(ctx, p, key)
	c.TookMs = time.Since(began).Milliseconds()
	if bad != nil {
		c.Code, c.Message = bad.code, bad.message
		return c, nil
	}
	c.OK, c.Message, c.Models = true, "The upstream answers", names[:min(len(names), 100)]
	return c, nil
}
