package llm

import (
	"encoding/json"
	"strings"

	"github.com/selvage-mesh/selvage/company/money"
)

// sayTo encodes r for an upstream that speaks d: chat, messages or generate.
func (r *request) sayTo(d dialect, kind money.ModelKind) (fields, *refusal) {
	switch d {
	case messages:
		return r.sayMessages()
	case generate:
		return r.sayGenerate()
	}
	return r.sayChat(kind), nil
}

type object = map[string]any

func (r *request) sayChat(kind money.ModelKind) fields {
	var list []any
	if len(r.system) > 0 {
		list = append(list, object{"role": "system", "content": strings.Join(r.system, "\n\n")})
	}
	for _, t := range r.turns {
		if t.assistant {
			list = append(list, chatAssistant(t))
			continue
		}
		var rest []part
		for _, p := range t.parts {
			if p.kind == resultPart { // before anything else that the user says
				list = append(list, object{"role": "tool", "tool_call_id": p.id, "content": p.text})
			} else {
				rest = append(rest, p)
			}
		}
		if len(rest) > 0 {
			list = append(list, object{"role": "user", "content": chatContent(rest)})
		}
	}
	f := fields{}
	f.set("model", r.model)
	f.set("messages", list)
	r.common(f)
	if kind == money.ModelOpenAI {
		f.set("max_completion_tokens", r.max)
	} else {
		f.set("max_tokens", r.max)
	}
	if len(r.stop) > 0 {
		f.set("stop", r.stop)
	}
	if len(r.tools) > 0 {
		var tools []object
		for _, t := range r.tools {
			fn := object{"name": t.name, "description": t.description}
			if len(t.schema) > 0 {
				fn["parameters"] = t.schema
			}
			tools = append(tools, object{"type": "function", "function": fn})
		}
		f.set("tools", tools)
		switch name, one := strings.CutPrefix(r.choice, "="); {
		case one:
			f.set("tool_choice", object{"type": "function", "function": object{"name": name}})
		case r.choice == "any":
			f.set("tool_choice", "required")
		case r.choice != "":
			f.set("tool_choice", r.choice)
		}
		if r.parallel != nil {
			f.set("parallel_tool_calls", *r.parallel)
		}
	}
	switch {
	case len(r.schema) > 0:
		f.set("response_format", object{"type": "json_schema", "json_schema": r.schema})
	case r.object:
		f.set("response_format", object{"type": "json_object"})
	}
	if r.stream {
		f.set("stream_options", object{"include_usage": true})
	}
	return f
}

// common encodes the members that have the same form in all dialects.
func (r *request) common(f fields) {
	if r.stream {
		f.set("stream", true)
	}
	if r.temperature != "" {
		f.set("temperature", r.temperature)
	}
	if r.topP != "" {
		f.set("top_p", r.topP)
	}
}

func chatAssistant(t turn) object {
	m, calls, said := object{"role": "assistant", "content": nil}, []object{}, []string{}
	for _, p := range t.parts {
		switch p.kind {
		case textPart:
			said = append(said, p.text)
		case callPart:
			calls = append(calls, object{"id": p.id, "type": "function", "function": object{"name": p.name,
				"arguments": p.args}})
		}
	}
	if len(said) > 0 {
		m["content"] = strings.Join(said, "\n")
	}
	if len(calls) > 0 {
		m["tool_calls"] = calls
	}
	return m
}

// chatContent encodes content as a string if possible: not all upstreams accept parts.
func chatContent(list []part) any {
	var said []string
	var out []object
	for _, p := range list {
		switch p.kind {
		case textPart:
			said = append(said, p.text)
			out = append(out, object{"type": "text", "text": p.text})
		case imagePart:
			url := p.data
			if p.media != "" {
				url = "data:" + p.media + ";base64," + p.data
			}
			out = append(out, object{"type": "image_url", "image_url": object{"url": url}})
		}
	}
	if len(said) == len(out) {
		return strings.Join(said, "\n")
	}
	return out
}

func (r *request) sayMessages() (fields, *refusal) {
	if len(r.schema) > 0 || r.object {
		return nil, invalid("A format of the answer can not be translated for this upstream")
	}
	var list []any
	for _, t := range r.turns {
		role, content := "user", []object{}
		if t.assistant {
			role = "assistant"
		}
		for _, p := range t.parts { // results before anything else
			if p.kind == resultPart {
				content = append(content, object{"type": "tool_result", "tool_use_id": p.id, "content": p.text,
					"is_error": p.fails})
			}
		}
		for _, p := range t.parts {
			switch p.kind {
			case textPart:
				content = append(content, object{"type": "text", "text": p.text})
			case imagePart:
				source := object{"type": "url", "url": p.data}
				if p.media != "" {
					source = object{"type": "base64", "media_type": p.media, "data": p.data}
				}
				content = append(content, object{"type": "image", "source": source})
			case callPart:
				args := json.RawMessage(p.args)
				var o map[string]json.RawMessage
				if json.Unmarshal(args, &o) != nil {
					args = encode(object{"input": p.args})
				}
				content = append(content, object{"type": "tool_use", "id": p.id, "name": p.name, "input": args})
			}
		}
		list = append(list, object{"role": role, "content": content})
	}
	f := fields{}
	f.set("model", r.model)
	f.set("messages", list)
	f.set("max_tokens", r.max)
	if len(r.system) > 0 {
		f.set("system", strings.Join(r.system, "\n\n"))
	}
	r.common(f)
	if t, err := r.temperature.Float64(); err == nil && t > 1 { // the scale ends there
		f.set("temperature", 1)
	}
	if len(r.stop) > 0 {
		f.set("stop_sequences", r.stop)
	}
	if len(r.tools) > 0 {
		var tools []object
		for _, t := range r.tools {
			schema := t.schema
			if len(schema) == 0 || string(schema) == "null" {
				schema = json.RawMessage(`{"type":"object"}`)
			}
			tools = append(tools, object{"name": t.name, "description": t.description, "input_schema": schema})
		}
		f.set("tools", tools)
		choice := object{"type": r.choice}
		switch name, one := strings.CutPrefix(r.choice, "="); {
		case one:
			choice = object{"type": "tool", "name": name}
		case r.choice == "":
			choice["type"] = "auto"
		}
		if r.parallel != nil && r.choice != "none" {
			choice["disable_parallel_tool_use"] = !*r.parallel
		}
		if r.choice != "" || r.parallel != nil {
			f.set("tool_choice", choice)
		}
	}
	return f, nil
}
