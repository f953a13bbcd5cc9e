package llm

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
)

// A telling encodes an answer for a client of one dialect: as a stream of events, or whole at
// the end.
type telling interface {
	// begin returns what comes before the first delta.
	begin() []byte
	// delta returns the events for one delta.
	delta(d delta) []byte
	// end returns what comes after the last one.
	end(u usage) []byte
	// whole returns the answer in one piece.
	whole(a answer, u usage) []byte
}

func newTelling(d dialect, r *request, askedUsage bool, now time.Time) telling {
	base := teller{id: drawID(), model: r.model, now: now.Unix(), custom: r.custom}
	switch d {
	case messages:
		return &messagesTeller{teller: base, open: -1}
	case responses:
		return &responsesTeller{teller: base}
	case generate:
		return &generateTeller{teller: base}
	}
	return &chatTeller{teller: base, askedUsage: askedUsage, at: map[int]int{}}
}

type teller struct {
	id     string
	model  string
	now    int64
	custom func(name string) bool
	stop   string
}

func drawID() string {
	var b [12]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// chatTeller encodes OpenAI's chat completions.
type chatTeller struct {
	teller
	askedUsage bool
	at         map[int]int // calls by their index upstream
}

func (t *chatTeller) piece(delta object, finish any) []byte {
	return appendEvent(nil, "", encode(object{"id": "chatcmpl-" + t.id, "object": "chat.completion.chunk",
		"created": t.now, "model": t.model,
		"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}}))
}

func (t *chatTeller) begin() []byte {
	return t.piece(object{"role": "assistant", "content": ""}, nil)
}

func (t *chatTeller) delta(d delta) []byte {
	switch d.kind {
	case textDelta:
		return t.piece(object{"content": d.text}, nil)
	case thinkDelta:
		return t.piece(object{"reasoning_content": d.text}, nil)
	case callDelta:
		n := len(t.at)
		t.at[d.index] = n
		return t.piece(object{"tool_calls": []any{object{"index": n, "id": d.id, "type": "function",
			"function": object{"name": d.name, "arguments": ""}}}}, nil)
	case argsDelta:
		return t.piece(object{"tool_calls": []any{object{"index": t.at[d.index],
			"function": object{"arguments": d.text}}}}, nil)
	}
	t.stop = d.stop
	return nil
}

func chatFinish(stop string) string {
	switch stop {
	case stopLength:
		return "length"
	case stopTools:
		return "tool_calls"
	case stopFilter:
		return "content_filter"
	}
	return "stop"
}

func chatCounts(u usage) object {
	in := u.prompt()
	return object{"prompt_tokens": in, "completion_tokens": u.output, "total_tokens": in + u.output,
		"prompt_tokens_details": object{"cached_tokens": u.cacheRead}}
}

func (t *chatTeller) end(u usage) []byte {
	b := t.piece(object{}, chatFinish(t.stop))
	if t.askedUsage {
		b = appendEvent(b, "", encode(object{"id": "chatcmpl-" + t.id, "object": "chat.completion.chunk", "created": t.now,
			"model":   t.model,
			"choices": []any{}, "usage": chatCounts(u)}))
	}
	return append(b, "data: [DONE]\n\n"...)
}

func (t *chatTeller) whole(a answer, u usage) []byte {
	m := object{"role": "assistant", "content": nil}
	if a.text != "" || len(a.calls) == 0 {
		m["content"] = a.text
	}
	if a.thinking != "" {
		m["reasoning_content"] = a.thinking
	}
	var calls []object
	for _, c := range a.calls {
		calls = append(calls, object{"id": c.id, "type": "function", "function": object{"name": c.name, "arguments": c.args}})
	}
	if len(calls) > 0 {
		m["tool_calls"] = calls
	}
	return encode(object{"id": "chatcmpl-" + t.id, "object": "chat.completion", "created": t.now, "model": t.model,
		"choices": []any{object{"index": 0, "message": m, "finish_reason": chatFinish(a.stop)}}, "usage": chatCounts(u)})
}

// messagesTeller encodes Anthropic's messages. Blocks are sent one after the other: open is the
// index of the open block, -1 if none is open.
type messagesTeller struct {
	teller
	open, next int
	kind       deltaKind // of the open block: text, thinking or call
	call       int       // index upstream of the open call
}

func (t *messagesTeller) send(b []byte, kind string, o object) []byte {
	o["type"] = kind
	return appendEvent(b, kind, encode(o))
}

func (t *messagesTeller) begin() []byte {
	return t.send(nil, "message_start", object{"message": object{"id": "msg_" + t.id, "type": "message",
		"role": "assistant", "model": t.model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 0, "output_tokens": 0,
			"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}}})
}

func (t *messagesTeller) close(b []byte) []byte {
	if t.open >= 0 {
		b = t.send(b, "content_block_stop", object{"index": t.open})
		t.open = -1
	}
	return b
}

func (t *messagesTeller) start(b []byte, kind deltaKind, block object) []byte {
	b = t.close(b)
	t.open, t.kind = t.next, kind
	t.next++
	return t.send(b, "content_block_start", object{"index": t.open, "content_block": block})
}

func (t *messagesTeller) delta(d delta) (b []byte) {
	switch d.kind {
	case textDelta:
		if t.open < 0 || t.kind != textDelta {
			b = t.start(b, textDelta, object{"type": "text", "text": ""})
		}
		return t.send(b, "content_block_delta", object{"index": t.open, "delta": object{"type": "text_delta",
			"text": d.text}})
	case thinkDelta:
		if t.open < 0 || t.kind != thinkDelta {
			b = t.start(b, thinkDelta, object{"type": "thinking", "thinking": "", "signature": ""})
		}
		return t.send(b, "content_block_delta", object{"index": t.open, "delta": object{"type": "thinking_delta",
			"thinking": d.text}})
	case callDelta:
		t.call = d.index
		return t.start(b, callDelta, object{"type": "tool_use", "id": d.id, "name": d.name, "input": object{}})
	case argsDelta:
		if t.open < 0 || t.kind != callDelta || t.call != d.index {
			return nil // of a call that was told already: upstreams do not go back
		}
		return t.send(b, "content_block_delta", object{"index": t.open, "delta": object{"type": "input_json_delta",
			"partial_json": d.text}})
	}
	t.stop = d.stop
	return nil
}

func messagesFinish(stop string) string {
	switch stop {
	case stopLength:
		return "max_tokens"
	case stopTools:
		return "tool_use"
	case stopFilter:
		return "refusal"
	}
	return "end_turn"
}

func messagesCounts(u usage) object {
	return object{"input_tokens": u.input, "output_tokens": u.output, "cache_read_input_tokens": u.cacheRead,
		"cache_creation_input_tokens": u.cacheWrite + u.long}
}

func (t *messagesTeller) end(u usage) []byte {
	b := t.close(nil)
	b = t.send(b, "message_delta", object{"delta": object{"stop_reason": messagesFinish(t.stop), "stop_sequence": nil},
		"usage": messagesCounts(u)})
	return t.send(b, "message_stop", object{})
}

func (t *messagesTeller) whole(a answer, u usage) []byte {
	content := []object{}
	if a.thinking != "" {
		content = append(content, object{"type": "thinking", "thinking": a.thinking, "signature": ""})
	}
	if a.text != "" {
		content = append(content, object{"type": "text", "text": a.text})
	}
	for _, c := range a.calls {
		content = append(content, object{"type": "tool_use", "id": c.id, "name": c.name, "input": argsObject(c.args)})
	}
	return encode(object{"id": "msg_" + t.id, "type": "message", "role": "assistant", "model": t.model, "content": content,
		"stop_reason": messagesFinish(a.stop), "stop_sequence": nil, "usage": messagesCounts(u)})
}

// argsObject returns the arguments of a call as an object, even if the model wrote none.
func argsObject(args string) any {
	var o map[string]json.RawMessage
	if args == "" {
		return object{}
	}
	if json.Unmarshal([]byte(args), &o) != nil {
		return object{"input": args}
	}
	return o
}

// responsesTeller encodes OpenAI's responses. Items are sent one after the other, each complete
// when it is done.
type responsesTeller struct {
	teller
	seq   int
	items []object // that are done
	kind  deltaKind
	open  bool
	text  string // of the open item
	call  delta  // of the open call
}

func (t *responsesTeller) send(b []byte, kind string, o object) []byte {
	o["type"], o["sequence_number"] = kind, t.seq
	t.seq++
	return appendEvent(b, kind, encode(o))
}

func (t *responsesTeller) response(status string, output []object, u any) object {
	if output == nil {
		output = []object{}
	}
	o := object{"id": "resp_" + t.id, "object": "response", "created_at": t.now, "status": status, "model": t.model,
		"output": output,
		"error":  nil, "incomplete_details": nil, "parallel_tool_calls": true, "usage": u}
	if status == "incomplete" {
		reason := "max_output_tokens"
		if t.stop == stopFilter {
			reason = "content_filter"
		}
		o["incomplete_details"] = object{"reason": reason}
	}
	return o
}

func (t *responsesTeller) begin() []byte {
	b := t.send(nil, "response.created", object{"response": t.response("in_progress", nil, nil)})
	return t.send(b, "response.in_progress", object{"response": t.response("in_progress", nil, nil)})
}

func (t *responsesTeller) itemID() string {
	head := map[deltaKind]string{textDelta: "msg_", callDelta: "fc_", thinkDelta: "rs_"}[t.kind]
	return head + t.id + strconv.Itoa(len(t.items))
}

func (t *responsesTeller) item(status string) object {
	switch t.kind {
	case callDelta:
		if t.custom(t.call.name) {
			return object{"id": t.itemID(), "type": "custom_tool_call", "status": status, "call_id": t.call.id,
				"name": t.call.name, "input": customInput(t.text)}
		}
		return object{"id": t.itemID(), "type": "function_call", "status": status, "call_id": t.call.id, "name": t.call.name,
			"arguments": t.text}
	case thinkDelta:
		o := object{"id": t.itemID(), "type": "reasoning", "summary": []any{}}
		if t.text != "" {
			o["summary"] = []any{object{"type": "summary_text", "text": t.text}}
		}
		return o
	}
	content := []object{}
	if status == "completed" {
		content = append(content, outputText(t.text))
	}
	return object{"id": t.itemID(), "type": "message", "role": "assistant", "status": status, "content": content}
}

func outputText(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []any{}}
}

// customInput returns the text argument of a custom tool from the function's arguments.
func customInput(args string) string {
	var in struct {
		Input string `json:"input"`
	}
	if json.Unmarshal([]byte(args), &in) != nil {
		return args
	}
	return in.Input
}

func (t *responsesTeller) start(b []byte, kind deltaKind) []byte {
	b = t.close(b)
	t.kind, t.open, t.text = kind, true, ""
	b = t.send(b, "response.output_item.added", object{"output_index": len(t.items), "item": t.item("in_progress")})
	if kind == textDelta {
		b = t.send(b, "response.content_part.added", object{"item_id": t.itemID(), "output_index": len(t.items),
			"content_index": 0, "part": outputText("")})
	}
	return b
}

func (t *responsesTeller) close(b []byte) []byte {
	if !t.open {
		return b
	}
	at := object{"item_id": t.itemID(), "output_index": len(t.items)}
	with := func(more object) object {
		for k, v := range at {
			more[k] = v
		}
		return more
	}
	switch {
	case t.kind == textDelta:
		b = t.send(b, "response.output_text.done", with(object{"content_index": 0, "text": t.text}))
		b = t.send(b, "response.content_part.done", with(object{"content_index": 0, "part": outputText(t.text)}))
	case t.kind == callDelta && t.custom(t.call.name):
		b = t.send(b, "response.custom_tool_call_input.delta", with(object{"delta": customInput(t.text)}))
		b = t.send(b, "response.custom_tool_call_input.done", with(object{"input": customInput(t.text)}))
	case t.kind == callDelta:
		b = t.send(b, "response.function_call_arguments.done", with(object{"arguments": t.text}))
	}
	done := t.item("completed")
	b = t.send(b, "response.output_item.done", object{"output_index": len(t.items), "item": done})
	t.items, t.open = append(t.items, done), false
	return b
}

func (t *responsesTeller) delta(d delta) (b []byte) {
	switch d.kind {
	case textDelta, thinkDelta:
		if !t.open || t.kind != d.kind {
			b = t.start(b, d.kind)
		}
		t.text += d.text
		if d.kind == thinkDelta {
			return t.send(b, "response.reasoning_summary_text.delta", object{"item_id": t.itemID(), "output_index": len(t.items),
				"summary_index": 0, "delta": d.text})
		}
		return t.send(b, "response.output_text.delta", object{"item_id": t.itemID(), "output_index": len(t.items),
			"content_index": 0, "delta": d.text})
	case callDelta:
		b = t.close(b)
		t.call = d
		return t.start(b, callDelta)
	case argsDelta:
		if !t.open || t.kind != callDelta || t.call.index != d.index {
			return nil
		}
		t.text += d.text
		if t.custom(t.call.name) {
			return nil // told in one piece, out of its JSON
		}
		return t.send(b, "response.function_call_arguments.delta", object{"item_id": t.itemID(), "output_index": len(t.items),
			"delta": d.text})
	}
	t.stop = d.stop
	return nil
}

func responsesCounts(u usage) object {
	in := u.prompt()
	return object{"input_tokens": in, "input_tokens_details": object{"cached_tokens": u.cacheRead},
		"output_tokens":         u.output,
		"output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": in + u.output}
}

func (t *responsesTeller) status() string {
	if t.stop == stopLength || t.stop == stopFilter {
		return "incomplete"
	}
	return "completed"
}

func (t *responsesTeller) end(u usage) []byte {
	b, status := t.close(nil), t.status()
	return t.send(b, "response."+status, object{"response": t.response(status, t.items, responsesCounts(u))})
}

func (t *responsesTeller) whole(a answer, u usage) []byte {
	t.begin()
	if a.thinking != "" {
		t.delta(delta{kind: thinkDelta, text: a.thinking})
	}
	if a.text != "" {
		t.delta(delta{kind: textDelta, text: a.text})
	}
	for i, c := range a.calls {
		t.delta(delta{kind: callDelta, index: i, id: c.id, name: c.name})
		t.delta(delta{kind: argsDelta, index: i, text: c.args})
	}
	t.close(nil)
	t.stop = a.stop
	return encode(t.response(t.status(), t.items, responsesCounts(u)))
}
