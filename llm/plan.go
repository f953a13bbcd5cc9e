package llm

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/money"
)

// A plan is a client's parsed request.
type plan struct {
	d          dialect
	f          fields
	model      string
	stream     bool
	askedUsage bool  // of a chat stream
	max, least int64 // tokens of output; least is what it must have at least
	choices    int64
	input      int64 // bound, in tokens
	long       bool  // it may write to a cache for an hour
	list       bool  // the answer is to be a list with one in it
}

// dropped are members that would change the price of a call: other service tiers, tools that
// run and are billed upstream, other names for the bound of an answer, and a choice of another
// upstream.
var dropped = map[dialect][]string{
	chat: {"service_tier", "web_search_options", "plugins", "store", "audio", "prediction",
		"n_predict", "num_predict", "max_new_tokens", "max_length", "best_of", "models", "route", "provider"},
	responses: {"service_tier", "store", "include", "max_tool_calls"},
	messages:  {"service_tier", "speed", "inference_geo", "mcp_servers", "container", "context_management"},
}

// kept of these include only what costs nothing.
const encryptedThinking = "reasoning.encrypted_content"

func planOf(d dialect, body []byte) (*plan, *refusal) {
	f, err := parse(body)
	if err != nil {
		return nil, err
	}
	p := &plan{d: d, f: f, choices: 1, max: defaultOutput}
	if _, err := f.get("model", &p.model); err != nil {
		return nil, err
	}
	if p.model == "" || len(p.model) > money.MaxModelName {
		return nil, invalid("model: the name of a model is needed")
	}
	if p.input, err = inputBound(body); err != nil {
		return nil, err
	}
	p.long = bytes.Contains(body, []byte(`"1h"`)) || bytes.Contains(body, []byte(`\u`))
	if d == embeddings {
		p.max = 0
		return p, nil
	}
	if _, err := f.get("stream", &p.stream); err != nil {
		return nil, err
	}
	if err := p.bounds(); err != nil {
		return nil, err
	}
	return p, p.clean()
}

// maxNames are the members that bound the answer.
var maxNames = map[dialect][]string{chat: {"max_completion_tokens", "max_tokens"}, responses: {"max_output_tokens"},
	messages: {"max_tokens"}}

func (p *plan) bounds() *refusal {
	given := false
	for _, name := range maxNames[p.d] {
		var n int64
		ok, err := p.f.get(name, &n)
		if err != nil {
			return err
		}
		if ok {
			if n < 1 || n > maxOutput {
				return invalid("%s: 1 to %d are possible", name, maxOutput)
			}
			if !given || n < p.max {
				p.max = n
			}
			given = true
		}
	}
	p.least = min(p.max, leastOutput)
	switch p.d {
	case generate:
		return p.generateBounds()
	case chat:
		if ok, err := p.f.get("n", &p.choices); err != nil || ok && (p.choices < 1 || p.choices > maxChoices) {
			return invalid("n: 1 to %d are possible", maxChoices)
		}
		var options struct {
			Usage bool `json:"include_usage"`
		}
		if _, err := p.f.get("stream_options", &options); err != nil {
			return err
		}
		p.askedUsage = options.Usage
	case messages:
		var thinking struct {
			Budget int64 `json:"budget_tokens"`
		}
		if _, err := p.f.get("thinking", &thinking); err != nil {
			return err
		}
		if thinking.Budget > 0 && thinking.Budget < p.max {
			p.least = min(p.max, thinking.Budget+leastOutput)
		}
	}
	return nil
}

// clean removes members that would be billed in addition to the tokens, and refuses requests
// that have no bound.
func (p *plan) clean() *refusal {
	switch p.d {
	case chat:
		var kinds []string
		if _, err := p.f.get("modalities", &kinds); err != nil || slices.ContainsFunc(kinds,
			func(k string) bool { return k != "text" }) {
			return invalid("modalities: only text can be paid for")
		}
	case responses:
		for _, name := range []string{"previous_response_id", "conversation", "prompt"} {
			var v json.RawMessage
			if ok, _ := p.f.get(name, &v); ok {
				return invalid("%s: what an upstream keeps can not be paid for in advance; send the whole input", name)
			}
		}
		var background bool
		if _, err := p.f.get("background", &background); err != nil || background {
			return invalid("background: an answer that nobody waits for can not be metered")
		}
		var include []string
		_, _ = p.f.get("include", &include)
		defer func() {
			if slices.Contains(include, encryptedThinking) {
				p.f.set("include", []string{encryptedThinking})
			}
			p.f.set("store", false)
		}()
	}
	for _, name := range dropped[p.d] {
		delete(p.f, name)
	}
	if p.d == generate {
		return nil // it is always read, and what runs upstream is no function
	}
	return p.cleanTools()
}

func (p *plan) cleanTools() *refusal {
	var tools []json.RawMessage
	if ok, err := p.f.get("tools", &tools); err != nil || !ok {
		return err
	}
	keep := []json.RawMessage{}
	for _, raw := range tools {
		var t struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(raw, &t) != nil {
			return invalid("tools: objects are needed")
		}
		if p.ours(t.Type) {
			keep = append(keep, raw)
		}
	}
	if len(keep) == len(tools) {
		return nil
	}
	p.f.set("tools", keep)
	if len(keep) == 0 {
		delete(p.f, "tools")
		delete(p.f, "tool_choice")
		delete(p.f, "parallel_tool_calls")
	}
	return nil
}

// ours reports whether a tool runs at the client. Tools that run at the upstream are removed:
// their results are input without a bound.
func (p *plan) ours(kind string) bool {
	if p.d == messages {
		for _, head := range []string{"web_search_", "web_fetch_", "code_execution_", "advisor_"} {
			if strings.HasPrefix(kind, head) {
				return false
			}
		}
		return true
	}
	return kind == "function" || kind == "custom" || p.d == responses && (kind == "local_shell" || kind == "apply_patch")
}

// body encodes the request for a target, with at most most tokens of output. r is the request
// that a telling for the client needs; nil if the answer is passed on unchanged.
func (p *plan) body(t target, up dialect, most int64) (b []byte, r *request, _ *refusal) {
	each := max(most/p.choices, 1)
	if up != p.d {
		r, err := read(p.d, p.f)
		if err != nil {
			return nil, nil, err
		}
		if p.choices > 1 {
			return nil, nil, invalid("n: this upstream gives one answer")
		}
		r.model, r.max = t.model, each
		f, err := r.sayTo(up, t.p.Kind)
		if err != nil {
			return nil, nil, err
		}
		return encode(f), r, nil
	}
	if p.d == generate {
		f, err := p.generateOnward(each)
		return encode(f), nil, err
	}
	f := make(fields, len(p.f)+2)
	for k, v := range p.f {
		f[k] = v
	}
	f.set("model", t.model)
	_, newer := f["max_completion_tokens"]
	for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		delete(f, name) // of other dialects, too
	}
	switch p.d {
	case chat:
		if newer || t.p.Kind == money.ModelOpenAI {
			f.set("max_completion_tokens", each)
		} else {
			f.set("max_tokens", each)
		}
		if p.stream {
			options := map[string]json.RawMessage{}
			_, _ = f.get("stream_options", &options)
			if options == nil {
				options = map[string]json.RawMessage{}
			}
			options["include_usage"] = json.RawMessage("true")
			f.set("stream_options", options)
		} else {
			delete(f, "stream_options")
		}
		if t.p.Kind == money.ModelGemini && wantsSignatures(t.model) {
			signChat(f)
		}
	case responses, messages:
		f.set(maxNames[p.d][0], each)
	}
	return encode(f), nil, nil
}
