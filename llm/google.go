package llm

import (
	"encoding/json"
	"strings"
)

// Requests to Gemini in its own dialect.

// anySignature is used in place of the signature of a model's thoughts, for calls in a history
// that another model made, or whose client did not keep it. Google documents the word for this
// purpose; without it such a request is refused.
const anySignature = "skip_thought_signature_validator"

// wantsSignatures reports whether a model refuses calls without a signature: those
// after the second generation do.
func wantsSignatures(model string) bool {
	rest, gemini := strings.CutPrefix(model, "gemini-")
	return gemini && !strings.HasPrefix(rest, "1") && !strings.HasPrefix(rest, "2")
}

// onwardConfig are the members of a generationConfig that are passed on: those whose cost is in
// the tokens. The bound of the answer is added to them.
var onwardConfig = []string{"temperature", "topP", "topK", "seed", "presencePenalty", "frequencyPenalty",
	"stopSequences",
	"responseMimeType", "responseSchema", "responseJsonSchema", "thinkingConfig", "mediaResolution"}

// generateOnward encodes a request of Google's dialect for an upstream that speaks it too, with
// a bound of most output tokens. It encodes only the known members of contents, tools and
// configuration, so that what is counted is what is sent.
func (p *plan) generateOnward(most int64) (fields, *refusal) {
	if _, err := readGenerate(p.f); err != nil { // refuses what nobody could bound
		return nil, err
	}
	var contents []generateContent
	var tools, functions []generateTools
	var choice generateToolConfig
	var system json.RawMessage
	var config map[string]json.RawMessage
	for name, into := range map[string]any{"contents": &contents, "tools": &tools, "tool_config": &choice,
		"system_instruction": &system, "generation_config": &config} {
		if _, err := p.f.get(name, into); err != nil {
			return nil, err
		}
	}
	f := fields{}
	for i, c := range contents {
		if c.Parts == nil {
			contents[i].Parts = []generatePart{}
		}
		for n, part := range c.Parts {
			if part.Thought { // is a text
				c.Parts[n].Inline, c.Parts[n].Call, c.Parts[n].Response = nil, nil, nil
			}
			if part.Response != nil && len(part.Response.Response) == 0 {
				part.Response.Response = json.RawMessage("{}")
			}
		}
	}
	f.set("contents", contents)
	if text := generateText(system); text != "" {
		f.set("systemInstruction", generateContent{Parts: []generatePart{{Text: &text}}})
	}
	for _, t := range tools { // others run upstream
		if len(t.Functions) > 0 {
			functions = append(functions, t)
		}
	}
	if len(functions) > 0 {
		f.set("tools", functions)
		if choice.Calling.Mode != "" {
			f.set("toolConfig", choice)
		}
	}
	onward := fields{}
	for _, name := range onwardConfig {
		if v := config[name]; len(v) > 0 && string(v) != "null" {
			onward[name] = v
		}
	}
	onward.set("maxOutputTokens", most)
	f.set("generationConfig", onward)
	return f, nil
}

// sayGenerate encodes r in Google's dialect.
func (r *request) sayGenerate() (fields, *refusal) {
	f, named := fields{}, map[string]string{} // tools by the ID of a call
	contents := []generateContent{}
	for _, t := range r.turns {
		c := generateContent{Role: "user"}
		if t.assistant {
			c.Role = "model"
		}
		signed := false
		for _, p := range t.parts {
			var one generatePart
			switch p.kind {
			case textPart:
				one.Text = &p.text
			case imagePart:
				if p.media == "" {
					return nil, invalid("An image that the upstream fetches by itself can not be translated for " +
						"this upstream; send its content")
				}
				one.Inline = &generateInline{Type: p.media, Data: p.data}
			case callPart:
				named[p.id] = p.name
				one.Call = &generateCall{ID: p.id, Name: p.name, Args: encode(argsObject(p.args))}
				if !signed && wantsSignatures(r.model) {
					one.Signature = anySignature
				}
				signed = true
			case resultPart:
				if named[p.id] == "" {
					return nil, invalid("A result answers no call: %q", p.id)
				}
				one.Response = &generateResponse{ID: p.id, Name: named[p.id], Response: resultObject(p)}
			}
			c.Parts = append(c.Parts, one)
		}
		contents = append(contents, c)
	}
	f.set("contents", contents)
	if text := strings.Join(r.system, "\n\n"); text != "" {
		f.set("systemInstruction", generateContent{Parts: []generatePart{{Text: &text}}})
	}
	if len(r.tools) > 0 {
		var list generateTools
		for _, t := range r.tools {
			fn := generateFunction{Name: t.name, Description: t.description}
			if len(t.schema) > 0 && string(t.schema) != "null" {
				fn.JSONSchema = t.schema
			}
			list.Functions = append(list.Functions, fn)
		}
		f.set("tools", []generateTools{list})
		var choice generateToolConfig
		switch name, one := strings.CutPrefix(r.choice, "="); {
		case one:
			choice.Calling.Mode, choice.Calling.Allowed = "ANY", []string{name}
		case r.choice == "any":
			choice.Calling.Mode = "ANY"
		case r.choice == "none":
			choice.Calling.Mode = "NONE"
		}
		if choice.Calling.Mode != "" {
			f.set("toolConfig", choice)
		}
	}
	config := fields{}
	config.set("maxOutputTokens", r.max)
	if r.temperature != "" {
		config.set("temperature", r.temperature)
	}
	if r.topP != "" {
		config.set("topP", r.topP)
	}
	if len(r.stop) > 0 {
		config.set("stopSequences", r.stop)
	}
	switch {
	case len(r.schema) > 0:
		var s struct {
			Schema json.RawMessage `json:"schema"`
		}
		_ = json.Unmarshal(r.schema, &s) // without a schema any object will do
		config.set("responseMimeType", "application/json")
		if len(s.Schema) > 0 && string(s.Schema) != "null" {
			config["responseJsonSchema"] = s.Schema
		}
	case r.object:
		config.set("responseMimeType", "application/json")
	}
	if r.think && !strings.HasPrefix(r.model, "gemini-1") && !strings.HasPrefix(r.model, "gemini-2.0") {
		thinking := object{"includeThoughts": true}
		if r.budget > 0 && !wantsSignatures(r.model) { // later ones choose by levels
			thinking["thinkingBudget"] = min(r.budget, r.max)
		}
		config.set("thinkingConfig", thinking)
	}
	f.set("generationConfig", config)
	return f, nil
}

// resultObject returns a tool's result as an object.
func resultObject(p part) json.RawMessage {
	var o map[string]json.RawMessage
	if !p.fails && json.Unmarshal([]byte(p.text), &o) == nil && o != nil {
		return encode(o)
	}
	name := "output"
	if p.fails {
		name = "error"
	}
	return encode(object{name: p.text})
}

// signChat adds a signature to tool calls without one, in the member that Gemini reads in the
// chat dialect.
func signChat(f fields) {
	var list []map[string]json.RawMessage
	if ok, err := f.get("messages", &list); !ok || err != nil {
		return // the upstream says what is wrong with it
	}
	changed := false
	for _, m := range list {
		var calls []map[string]json.RawMessage
		if raw, ok := m["tool_calls"]; !ok || json.Unmarshal(raw, &calls) != nil || len(calls) == 0 || calls[0] == nil {
			continue
		}
		if _, signed := calls[0]["extra_content"]; signed { // the first one has it
			continue
		}
		calls[0]["extra_content"] = encode(object{"google": object{"thought_signature": anySignature}})
		m["tool_calls"], changed = encode(calls), true
	}
	if changed {
		f.set("messages", list)
	}
}
