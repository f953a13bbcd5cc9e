package llm

import (
	"encoding/json"
	"strings"
)

// read converts a client's request to a request for an upstream of another dialect. What that
// dialect can not express is refused, not dropped, unless it does not change the answer.
func read(d dialect, f fields) (*request, *refusal) {
	switch d {
	case chat:
		return readChat(f)
	case messages:
		return readMessages(f)
	case generate:
		return readGenerate(f)
	}
	return readResponses(f)
}

// plain are the members that all dialects have in the same form.
func (r *request) plain(f fields) *refusal {
	for name, into := range map[string]any{"temperature": &r.temperature, "top_p": &r.topP, "stream": &r.stream,
		"model": &r.model} {
		if _, err := f.get(name, into); err != nil {
			return err
		}
	}
	return nil
}

// A block is a part of a message in any dialect.
type block struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Refusal  string          `json:"refusal"`
	ImageURL json.RawMessage `json:"image_url"` // chat: {"url"}; responses: text
	Source   *struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
	} `json:"source"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// blocks reads content: a text, or a list of blocks.
func blocks(raw json.RawMessage) ([]block, *refusal) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if text == "" {
			return nil, nil
		}
		return []block{{Type: "text", Text: text}}, nil
	}
	var list []block
	if json.Unmarshal(raw, &list) != nil {
		return nil, invalid("content: a text or a list of parts is needed")
	}
	return list, nil
}

// texts joins the texts of content.
func texts(raw json.RawMessage) (string, *refusal) {
	list, err := blocks(raw)
	if err != nil {
		return "", err
	}
	var out []string
	for _, b := range list {
		switch b.Type {
		case "text", "input_text", "output_text":
			out = append(out, b.Text)
		case "image", "image_url", "input_image":
			out = append(out, "[image]")
		}
	}
	return strings.Join(out, "\n"), nil
}

// parts converts content to parts. It drops the thinking of earlier answers: only the upstream
// that produced it can read it.
func parts(raw json.RawMessage) (out []part, err *refusal) {
	list, err := blocks(raw)
	if err != nil {
		return nil, err
	}
	for _, b := range list {
		switch b.Type {
		case "text", "input_text", "output_text":
			if b.Text != "" {
				out = append(out, part{kind: textPart, text: b.Text})
			}
		case "refusal":
			out = append(out, part{kind: textPart, text: b.Refusal})
		case "image_url", "input_image":
			var url string
			var o struct {
				URL string `json:"url"`
			}
			if json.Unmarshal(b.ImageURL, &url) != nil {
				if json.Unmarshal(b.ImageURL, &o) != nil {
					return nil, invalid("image_url: unexpected type")
				}
				url = o.URL
			}
			out = append(out, image(url))
		case "image":
			switch {
			case b.Source == nil:
				return nil, invalid("image: a source is needed")
			case b.Source.Type == "base64":
				out = append(out, part{kind: imagePart, media: b.Source.MediaType, data: b.Source.Data})
			default:
				out = append(out, part{kind: imagePart, data: b.Source.URL})
			}
		case "tool_use":
			args := string(b.Input)
			if args == "" {
				args = "{}"
			}
			out = append(out, part{kind: callPart, id: b.ID, name: b.Name, args: args})
		case "tool_result":
			text, err := texts(b.Content)
			if err != nil {
				return nil, err
			}
			out = append(out, part{kind: resultPart, id: b.ToolUseID, text: text, fails: b.IsError})
		case "thinking", "redacted_thinking":
		default:
			return nil, invalid("A part of type %q can not be translated for this upstream", b.Type)
		}
	}
	return out, nil
}

// image converts a URL, which may contain the image itself, to a part.
func image(url string) part {
	if rest, ok := strings.CutPrefix(url, "data:"); ok {
		if media, data, ok := strings.Cut(rest, ";base64,"); ok {
			return part{kind: imagePart, media: media, data: data}
		}
	}
	return part{kind: imagePart, data: url}
}

func readChat(f fields) (*request, *refusal) {
	r := &request{}
	if err := r.plain(f); err != nil {
		return nil, err
	}
	var in struct {
		Messages []struct {
			Role       string          `json:"role"`
			Content    json.RawMessage `json:"content"`
			ToolCallID string          `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		}
		Tools []struct {
			Type     string `json:"type"`
			Function struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Parameters  json.RawMessage `json:"parameters"`
			} `json:"function"`
		}
		Format struct {
			Type       string          `json:"type"`
			JSONSchema json.RawMessage `json:"json_schema"`
		}
		Stop   json.RawMessage
		Choice json.RawMessage
	}
	for name, into := range map[string]any{"messages": &in.Messages, "tools": &in.Tools, "response_format": &in.Format,
		"stop":        &in.Stop,
		"tool_choice": &in.Choice, "parallel_tool_calls": &r.parallel} {
		if _, err := f.get(name, into); err != nil {
			return nil, err
		}
	}
	for _, m := range in.Messages {
		switch m.Role {
		case "system", "developer":
			text, err := texts(m.Content)
			if err != nil {
				return nil, err
			}
			r.system = append(r.system, text)
		case "tool":
			text, err := texts(m.Content)
			if err != nil {
				return nil, err
			}
			r.say(false, part{kind: resultPart, id: m.ToolCallID, text: text})
		case "user", "assistant":
			list, err := parts(m.Content)
			if err != nil {
				return nil, err
			}
			for _, c := range m.ToolCalls {
				list = append(list, part{kind: callPart, id: c.ID, name: c.Function.Name, args: c.Function.Arguments})
			}
			r.say(m.Role == "assistant", list...)
		default:
			return nil, invalid("messages: unknown role %q", m.Role)
		}
	}
	for _, t := range in.Tools {
		if t.Type == "function" {
			r.tools = append(r.tools, tool{name: t.Function.Name, description: t.Function.Description,
				schema: t.Function.Parameters})
		}
	}
	var err *refusal
	if r.stop, err = stops(in.Stop); err != nil {
		return nil, err
	}
	if r.choice, err = choice(in.Choice); err != nil {
		return nil, err
	}
	r.schema, r.object = in.Format.JSONSchema, in.Format.Type == "json_object"
	return r, nil
}

// stops reads a text or a list of them.
func stops(raw json.RawMessage) (out []string, _ *refusal) {
	var one string
	switch {
	case len(raw) == 0:
		return nil, nil
	case json.Unmarshal(raw, &one) == nil:
		return []string{one}, nil
	case json.Unmarshal(raw, &out) == nil:
		return out, nil
	}
	return nil, invalid("stop: a text or a list of texts is needed")
}

// choice reads the tool choice of a request, in any dialect.
func choice(raw json.RawMessage) (string, *refusal) {
	if len(raw) == 0 {
		return "", nil
	}
	var word string
	var o struct {
		Type, Name string
		Function   struct{ Name string }
	}
	if json.Unmarshal(raw, &word) != nil && json.Unmarshal(raw, &o) != nil {
		return "", invalid("tool_choice: unexpected type")
	}
	switch w := word + o.Type; {
	case w == "auto" || w == "none":
		return w, nil
	case w == "required" || w == "any":
		return "any", nil
	case o.Name+o.Function.Name != "":
		return "=" + o.Name + o.Function.Name, nil
	}
	return "", nil // of a kind that only one upstream has
}

func readMessages(f fields) (*request, *refusal) {
	r := &request{}
	if err := r.plain(f); err != nil {
		return nil, err
	}
	var in struct {
		System   json.RawMessage
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		Tools []struct {
			Type        string          `json:"type"`
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Schema      json.RawMessage `json:"input_schema"`
		}
		Choice json.RawMessage
	}
	for name, into := range map[string]any{"system": &in.System, "messages": &in.Messages, "tools": &in.Tools,
		"tool_choice": &in.Choice, "stop_sequences": &r.stop} {
		if _, err := f.get(name, into); err != nil {
			return nil, err
		}
	}
	system, err := texts(in.System)
	if err != nil {
		return nil, err
	}
	if system != "" {
		r.system = append(r.system, system)
	}
	for _, m := range in.Messages {
		if m.Role == "system" {
			text, err := texts(m.Content)
			if err != nil {
				return nil, err
			}
			r.system = append(r.system, text)
			continue
		}
		if m.Role != "user" && m.Role != "assistant" {
			return nil, invalid("messages: unknown role %q", m.Role)
		}
		list, err := parts(m.Content)
		if err != nil {
			return nil, err
		}
		r.say(m.Role == "assistant", list...)
	}
	for _, t := range in.Tools {
		if len(t.Schema) > 0 {
			r.tools = append(r.tools, tool{name: t.Name, description: t.Description, schema: t.Schema})
		}
	}
	var alone struct {
		Parallel *bool `json:"disable_parallel_tool_use"`
	}
	if json.Unmarshal(in.Choice, &alone) == nil && alone.Parallel != nil {
		r.parallel = new(!*alone.Parallel)
	}
	var thinking struct {
		Type   string `json:"type"`
		Budget int64  `json:"budget_tokens"`
	}
	if _, err := f.get("thinking", &thinking); err != nil {
		return nil, err
	}
	r.think = thinking.Type == "enabled" || thinking.Type == "adaptive"
	r.budget = max(thinking.Budget, 0)
	r.choice, err = choice(in.Choice)
	return r, err
}

func readResponses(f fields) (*request, *refusal) {
	r := &request{}
	if err := r.plain(f); err != nil {
		return nil, err
	}
	var in struct {
		Instructions string
		Input        json.RawMessage
		Tools        []struct {
			Type        string          `json:"type"`
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		}
		Choice json.RawMessage
		Text   struct {
			Format struct {
				Type   string          `json:"type"`
				Name   string          `json:"name"`
				Schema json.RawMessage `json:"schema"`
				Strict bool            `json:"strict"`
			} `json:"format"`
		}
	}
	for name, into := range map[string]any{"instructions": &in.Instructions, "input": &in.Input, "tools": &in.Tools,
		"tool_choice":         &in.Choice,
		"parallel_tool_calls": &r.parallel, "text": &in.Text} {
		if _, err := f.get(name, into); err != nil {
			return nil, err
		}
	}
	var reasoning struct {
		Summary string `json:"summary"`
	}
	if _, err := f.get("reasoning", &reasoning); err != nil {
		return nil, err
	}
	r.think = reasoning.Summary != "" && reasoning.Summary != "none"
	if in.Instructions != "" {
		r.system = append(r.system, in.Instructions)
	}
	for _, t := range in.Tools {
		switch t.Type {
		case "function":
			r.tools = append(r.tools, tool{name: t.Name, description: t.Description, schema: t.Parameters})
		case "custom":
			r.tools = append(r.tools, tool{name: t.Name, description: t.Description, schema: customSchema, custom: true})
		}
	}
	if err := r.input(in.Input); err != nil {
		return nil, err
	}
	if s := in.Text.Format; s.Type == "json_schema" {
		r.schema = encode(map[string]any{"name": s.Name, "schema": s.Schema, "strict": s.Strict})
	} else {
		r.object = s.Type == "json_object"
	}
	var err *refusal
	r.choice, err = choice(in.Choice)
	return r, err
}

// An inputItem is one of the items of a Responses request.
type inputItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	Output    json.RawMessage `json:"output"`
}

// input reads what a Responses request says: a text, or a list of items.
func (r *request) input(raw json.RawMessage) *refusal {
	var text string
	var items []inputItem
	switch {
	case json.Unmarshal(raw, &text) == nil:
		r.say(false, part{kind: textPart, text: text})
	case json.Unmarshal(raw, &items) != nil:
		return invalid("input: a text or a list of items is needed")
	}
	for _, it := range items {
		switch it.Type {
		case "", "message":
			if it.Role == "system" || it.Role == "developer" {
				text, err := texts(it.Content)
				if err != nil {
					return err
				}
				r.system = append(r.system, text)
				continue
			}
			list, err := parts(it.Content)
			if err != nil {
				return err
			}
			r.say(it.Role == "assistant", list...)
		case "function_call":
			r.say(true, part{kind: callPart, id: it.CallID, name: it.Name, args: it.Arguments})
		case "custom_tool_call":
			r.say(true, part{kind: callPart, id: it.CallID, name: it.Name,
				args: string(encode(map[string]string{"input": it.Input}))})
		case "function_call_output", "custom_tool_call_output":
			text, err := texts(it.Output)
			if err != nil {
				return err
			}
			r.say(false, part{kind: resultPart, id: it.CallID, text: text})
		case "reasoning", "web_search_call":
		default:
			return invalid("An item of type %q can not be translated for this upstream", it.Type)
		}
	}
	return nil
}
