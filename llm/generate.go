package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// The code below is Google's dialect, generateContent and streamGenerateContent, for clients and
// for Gemini. A request between these two keeps its thinking, signatures included; members with
// a separate price are dropped.

// serveGenerate answers below /llm/gemini; path is the rest, such as
// /v1beta/models/NAME:generateContent.
func (g *Gateway) serveGenerate(w http.ResponseWriter, r *http.Request, who Caller, path string) {
	if path == "" && r.Method != http.MethodPost {
		w.WriteHeader(http.StatusOK) // clients look whether anybody is here
		return
	}
	_, name, found := strings.Cut(strings.TrimPrefix(path, "/"), "/models")
	if version := strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/models"+name); !found || version != "v1beta" &&
		version != "v1" {
		writeRefusal(w, generate, refuse(404, "not_found", "The model gateway has no %s %s", r.Method, r.URL.Path))
		return
	}
	name = strings.TrimPrefix(name, "/")
	if r.Method == http.MethodGet {
		if name == "" {
			g.serveModels(w, r, who, generate)
			return
		}
		g.serveModel(w, r, who, generate, name)
		return
	}
	at := strings.LastIndexByte(name, ':')
	if at < 1 || r.Method != http.MethodPost {
		writeRefusal(w, generate, refuse(404, "not_found", "The model gateway has no %s %s", r.Method, r.URL.Path))
		return
	}
	model, method := name[:at], name[at+1:]
	list := method == "streamGenerateContent" && r.URL.Query().Get("alt") != "sse" // a stream that is one list
	shape := func(body []byte) ([]byte, *refusal) {
		return generateFields(model, method == "streamGenerateContent" && !list, list, body)
	}
	switch method {
	case "generateContent", "streamGenerateContent":
		g.serveCall(w, r, who, generate, shape)
	case "countTokens":
		g.countGenerate(w, r, who, model)
	default:
		writeRefusal(w, generate, refuse(404, "not_found", "The model gateway has no method %s", method))
	}
}

// generateNames are the members of a request that mean something here, by both of
// the names that Google takes. Others (safety settings, labels) are left out.
var generateNames = map[string]string{
	"contents": "contents", "tools": "tools", "toolConfig": "tool_config", "tool_config": "tool_config",
	"systemInstruction": "system_instruction", "system_instruction": "system_instruction",
	"generationConfig": "generation_config", "generation_config": "generation_config",
}

// generateFields makes a request of the other dialects' form: with the model and
// whether it is a stream among its members, which are called in one way.
func generateFields(model string, stream, list bool, body []byte) ([]byte, *refusal) {
	var in map[string]json.RawMessage
	if json.Unmarshal(body, &in) != nil || in == nil {
		return nil, invalid("The request is not a JSON object")
	}
	for _, name := range []string{"cachedContent", "cached_content"} {
		if v := in[name]; len(v) > 0 && string(v) != "null" && string(v) != `""` {
			return nil, invalid("%s: what an upstream keeps can not be paid for in advance; send the whole input", name)
		}
	}
	f := fields{}
	for name, to := range generateNames {
		if v, ok := in[name]; ok {
			f[to] = v
		}
	}
	f.set("model", model)
	f.set("stream", stream)
	f.set("list", list)
	return encode(f), nil
}

// A generateConfig is what a request says of its answer.
type generateConfig struct {
	Temperature json.Number     `json:"temperature"`
	TopP        json.Number     `json:"topP"`
	Max         *int64          `json:"maxOutputTokens"`
	Choices     int64           `json:"candidateCount"`
	Stop        []string        `json:"stopSequences"`
	Type        string          `json:"responseMimeType"`
	Schema      json.RawMessage `json:"responseSchema"`
	JSONSchema  json.RawMessage `json:"responseJsonSchema"`
	Modalities  []string        `json:"responseModalities"`
}

// generateBounds reads what bounds the answer.
func (p *plan) generateBounds() *refusal {
	var c generateConfig
	if _, err := p.f.get("generation_config", &c); err != nil {
		return err
	}
	if _, err := p.f.get("list", &p.list); err != nil {
		return err
	}
	for _, m := range c.Modalities {
		if !strings.EqualFold(m, "text") {
			return invalid("responseModalities: only text can be paid for")
		}
	}
	if c.Choices > 1 {
		return invalid("candidateCount: the gateway gives one answer")
	}
	if c.Max != nil {
		if *c.Max < 1 || *c.Max > maxOutput {
			return invalid("maxOutputTokens: 1 to %d are possible", maxOutput)
		}
		p.max = *c.Max
	}
	p.least = min(p.max, leastOutput)
	return nil
}

// A generatePart is a part of a content.
type generatePart struct {
	Text      *string           `json:"text,omitempty"`
	Thought   bool              `json:"thought,omitempty"`
	Signature string            `json:"thoughtSignature,omitempty"`
	Inline    *generateInline   `json:"inlineData,omitempty"`
	Call      *generateCall     `json:"functionCall,omitempty"`
	Response  *generateResponse `json:"functionResponse,omitempty"`
}

type (
	generateInline struct {
		Type string `json:"mimeType"`
		Data string `json:"data"`
	}
	generateCall struct {
		ID   string          `json:"id,omitempty"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args,omitempty"`
	}
	generateResponse struct {
		ID       string          `json:"id,omitempty"`
		Name     string          `json:"name"`
		Response json.RawMessage `json:"response"`
	}
	// A generateContent is what one side says.
	generateContent struct {
		Role  string         `json:"role,omitempty"`
		Parts []generatePart `json:"parts"`
	}
)

type (
	// A generateFunction is what a model may call.
	generateFunction struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
		JSONSchema  json.RawMessage `json:"parametersJsonSchema,omitempty"`
	}
	generateTools struct {
		Functions []generateFunction `json:"functionDeclarations"`
	}
	generateToolConfig struct {
		Calling struct {
			Mode    string   `json:"mode,omitempty"`
			Allowed []string `json:"allowedFunctionNames,omitempty"`
		} `json:"functionCallingConfig"`
	}
)

// readGenerate makes a request of what a client of Google's dialect sent. Calls
// without an ID, which are told apart by name and order there, get one.
func readGenerate(f fields) (*request, *refusal) {
	r := &request{}
	var in struct {
		Contents   []generateContent
		System     json.RawMessage
		Tools      []generateTools
		ToolConfig generateToolConfig
		Config     generateConfig
	}
	for name, into := range map[string]any{"contents": &in.Contents, "system_instruction": &in.System, "tools": &in.Tools,
		"tool_config":       &in.ToolConfig,
		"generation_config": &in.Config, "stream": &r.stream, "model": &r.model} {
		if _, err := f.get(name, into); err != nil {
			return nil, err
		}
	}
	if text := generateText(in.System); text != "" {
		r.system = append(r.system, text)
	}
	calls, waiting := 0, map[string][]string{} // IDs that were made up, by the name of the tool
	for _, c := range in.Contents {
		for _, p := range c.Parts {
			var one part
			switch {
			case p.Thought: // only the upstream that thought so can read it
				continue
			case p.Text != nil:
				if *p.Text == "" {
					continue
				}
				one = part{kind: textPart, text: *p.Text}
			case p.Inline != nil && strings.HasPrefix(p.Inline.Type, "image/"):
				one = part{kind: imagePart, media: p.Inline.Type, data: p.Inline.Data}
			case p.Call != nil:
				if p.Call.ID == "" {
					calls++
					p.Call.ID = fmt.Sprintf("call_%d", calls)
					waiting[p.Call.Name] = append(waiting[p.Call.Name], p.Call.ID)
				}
				one = part{kind: callPart, id: p.Call.ID, name: p.Call.Name, args: string(p.Call.Args)}
				if one.args == "" || one.args == "null" {
					one.args = "{}"
				}
			case p.Response != nil:
				if ids := waiting[p.Response.Name]; p.Response.ID == "" && len(ids) > 0 {
					p.Response.ID, waiting[p.Response.Name] = ids[0], ids[1:]
				}
				if p.Response.ID == "" {
					return nil, invalid("functionResponse: nobody called %q", p.Response.Name)
				}
				one = part{kind: resultPart, id: p.Response.ID, text: string(p.Response.Response)}
			default:
				return nil, invalid("contents: only texts, images, calls of functions and their results can be " +
					"translated for this upstream")
			}
			r.say(c.Role == "model", one)
		}
	}
	var allowed []string
	if in.ToolConfig.Calling.Mode == "ANY" {
		allowed = in.ToolConfig.Calling.Allowed
	}
	for _, t := range in.Tools {
		for _, fn := range t.Functions {
			schema := fn.JSONSchema
			if len(schema) == 0 {
				schema = lowerTypes(fn.Parameters)
			}
			if len(schema) == 0 {
				schema = json.RawMessage(`{"type":"object","properties":{}}`)
			}
			r.tools = append(r.tools, tool{name: fn.Name, description: fn.Description, schema: schema})
		}
	}
	switch mode := in.ToolConfig.Calling.Mode; {
	case mode == "ANY" && len(allowed) == 1:
		r.choice = "=" + allowed[0]
	case mode == "ANY":
		r.choice = "any"
	case mode == "NONE":
		r.choice = "none"
	}
	r.temperature, r.topP, r.stop = in.Config.Temperature, in.Config.TopP, in.Config.Stop
	switch {
	case len(in.Config.JSONSchema) > 0:
		r.schema = encode(map[string]any{"name": "answer", "schema": in.Config.JSONSchema})
	case len(in.Config.Schema) > 0:
		r.schema = encode(map[string]any{"name": "answer", "schema": lowerTypes(in.Config.Schema)})
	default:
		r.object = in.Config.Type == "application/json"
	}
	return r, nil
}

// generateText is the text of a content, or of a text that stands in its place.
func generateText(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text
	}
	var c struct {
		Parts []generatePart `json:"parts"`
	}
	_ = json.Unmarshal(raw, &c) // what is none says nothing
	var out []string
	for _, p := range c.Parts {
		if p.Text != nil {
			out = append(out, *p.Text)
		}
	}
	return strings.Join(out, "\n")
}

// maxSchema bounds how deep a schema is looked into.
const maxSchema = 64

// lowerTypes makes a JSON schema of Google's, whose types are in capitals.
func lowerTypes(raw json.RawMessage) json.RawMessage {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if len(raw) == 0 || d.Decode(&v) != nil {
		return nil
	}
	var lower func(v any, depth int)
	lower = func(v any, depth int) {
		switch x := v.(type) {
		case []any:
			for _, e := range x {
				if depth < maxSchema {
					lower(e, depth+1)
				}
			}
		case map[string]any:
			for k, e := range x {
				if s, ok := e.(string); ok && k == "type" {
					x[k] = strings.ToLower(s)
				} else if depth < maxSchema {
					lower(e, depth+1)
				}
			}
		}
	}
	lower(v, 0)
	return encode(v)
}

// countGenerate counts the tokens of a request as serveCount does, by its bytes.
func (g *Gateway) countGenerate(w http.ResponseWriter, r *http.Request, who Caller, model string) {
	body, err := readBody(w, r)
	if err == nil {
		if s, e := g.look(who); e != nil {
			err = e
		} else if len(s.targetsOf(model)) == 0 {
			err = refuse(404, "model_not_found", "No upstream on this node answers to the model %q", model)
		}
	}
	if err == nil {
		n, bad := inputBound(body)
		if bad == nil {
			writeObject(w, object{"totalTokens": (n - frameTokens + 3) / 4})
			return
		}
		err = bad
	}
	writeRefusal(w, generate, err)
}

// generateTeller speaks Google's dialect. A call of a function is told in one
// piece, when its arguments are whole.
type generateTeller struct {
	teller
	open bool
	call delta // that is open
	args string
}

func (t *generateTeller) candidate(parts []object, finish any, u any) object {
	if parts == nil {
		parts = []object{}
	}
	c := object{"content": object{"role": "model", "parts": parts}, "index": 0}
	if finish != nil {
		c["finishReason"] = finish
	}
	o := object{"candidates": []any{c}, "modelVersion": t.model, "responseId": t.id}
	if u != nil {
		o["usageMetadata"] = u
	}
	return o
}

func (t *generateTeller) send(b []byte, parts ...object) []byte {
	return appendEvent(b, "", encode(t.candidate(parts, nil, nil)))
}

func (t *generateTeller) begin() []byte { return nil }

func (t *generateTeller) close(b []byte) []byte {
	if !t.open {
		return b
	}
	t.open = false
	return t.send(b, functionCall(t.call.id, t.call.name, t.args))
}

func functionCall(id, name, args string) object {
	return object{"functionCall": object{"id": id, "name": name, "args": argsObject(args)}}
}

func (t *generateTeller) delta(d delta) (b []byte) {
	switch d.kind {
	case textDelta:
		return t.send(t.close(b), object{"text": d.text})
	case thinkDelta:
		return t.send(t.close(b), object{"text": d.text, "thought": true})
	case callDelta:
		b = t.close(b)
		t.open, t.call, t.args = true, d, ""
	case argsDelta:
		if t.open && t.call.index == d.index {
			t.args += d.text
		}
	case stopDelta:
		t.stop = d.stop
	}
	return b
}

func generateFinish(stop string) string {
	switch stop {
	case stopLength:
		return "MAX_TOKENS"
	case stopFilter:
		return "SAFETY"
	}
	return "STOP"
}

func generateCounts(u usage) object {
	in := u.prompt()
	return object{"promptTokenCount": in, "candidatesTokenCount": u.output, "totalTokenCount": in + u.output,
		"cachedContentTokenCount": u.cacheRead}
}

func (t *generateTeller) end(u usage) []byte {
	return appendEvent(t.close(nil), "", encode(t.candidate(nil, generateFinish(t.stop), generateCounts(u))))
}

func (t *generateTeller) whole(a answer, u usage) []byte {
	var parts []object
	if a.thinking != "" {
		parts = append(parts, object{"text": a.thinking, "thought": true})
	}
	if a.text != "" {
		parts = append(parts, object{"text": a.text})
	}
	for _, c := range a.calls {
		parts = append(parts, functionCall(c.id, c.name, c.args))
	}
	return encode(t.candidate(parts, generateFinish(a.stop), generateCounts(u)))
}

// generateStatus is the name of an error's status as Google has it.
func generateStatus(status int) string {
	switch status {
	case 400, 413, 422:
		return "INVALID_ARGUMENT"
	case 401:
		return "UNAUTHENTICATED"
	case 402, 429:
		return "RESOURCE_EXHAUSTED"
	case 403:
		return "PERMISSION_DENIED"
	case 404:
		return "NOT_FOUND"
	case 503:
		return "UNAVAILABLE"
	case 504:
		return "DEADLINE_EXCEEDED"
	}
	return "INTERNAL"
}
