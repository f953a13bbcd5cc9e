package llm

import (
	"cmp"
	"encoding/json"
	"math"

	"github.com/selvage-mesh/selvage/company/core"
)

// A heard is the content of one piece of an upstream's answer.
type heard struct {
	deltas []delta
	use    usage
	bare   bool // nothing but usage, for which the client may not have asked
	done   bool // the answer is whole
	fault  string
}

// A hearing parses the answer of an upstream, in pieces or whole. Invalid JSON, or JSON that is
// not an answer, is a fault.
type hearing struct {
	d     dialect
	kinds map[int]string // of blocks of messages, by index
	calls int            // that were heard so far, of generate
	ended bool           // a reason to stop came
}

func newHearing(d dialect) *hearing { return &hearing{d: d, kinds: map[int]string{}} }

const faultGarbage = "The upstream sent what is no answer"

// event parses one event of a stream.
func (h *hearing) event(e event) heard {
	if len(e.Data) == 0 {
		return heard{}
	}
	if h.d == chat && string(e.Data) == "[DONE]" {
		return heard{done: true}
	}
	switch h.d {
	case messages:
		return h.messagesEvent(e.Data)
	case responses:
		return responsesEvent(e.Data)
	case generate:
		return h.generatePiece(e.Data, true)
	}
	return h.chatPiece(e.Data, true)
}

// whole parses an answer that is not streamed.
func (h *hearing) whole(body []byte) heard {
	switch h.d {
	case messages:
		return messagesWhole(body)
	case responses:
		return responsesWhole(body)
	case generate:
		return h.generatePiece(body, false)
	case embeddings:
		var in struct {
			Data  []json.RawMessage `json:"data"`
			Usage *chatUsage        `json:"usage"`
			Error *upstreamError    `json:"error"`
		}
		if json.Unmarshal(body, &in) != nil || in.Data == nil {
			return heard{fault: faultGarbage}
		}
		out := heard{done: true, use: usage{outKnown: true}}
		if in.Usage != nil {
			out.use = in.Usage.usage()
			out.use.output, out.use.outKnown = 0, true
		}
		return out
	}
	return h.chatPiece(body, false)
}

type upstreamError struct {
	Message string `json:"message"`
	Type    string `json:"type"`
}

func (e *upstreamError) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		e.Message = text
		return nil
	}
	type plain upstreamError
	return json.Unmarshal(b, (*plain)(e))
}

type chatUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
	Details    struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	bill
}

// A bill is the cost in an answer's usage, in dollars, in OpenRouter's form. With the customer's
// own key at the vendor behind it, the vendor's bill is added.
type bill struct {
	Cost   *float64 `json:"cost"`
	Own    bool     `json:"is_byok"`
	Detail struct {
		Vendor *float64 `json:"upstream_inference_cost"`
	} `json:"cost_details"`
}

// money returns the bill in micro-cents, rounded up; ok is false if there is none, or if it
// can not be true.
func (b bill) money() (_ core.Money, ok bool) {
	if b.Cost == nil {
		return 0, false
	}
	sum := *b.Cost
	if b.Own {
		if b.Detail.Vendor == nil {
			return 0, false
		}
		sum += *b.Detail.Vendor
	}
	if !(*b.Cost >= 0 && sum >= *b.Cost && sum <= mostBilled) {
		return 0, false
	}
	return core.Money(math.Ceil(math.Round(sum*perDollar*1000) / 1000)), true // decimal fractions have noise
}

// usage: the prompt includes cached tokens. Thinking that an upstream counts only in the total
// is output.
func (u chatUsage) usage() usage {
	cached := min(max(u.Details.Cached, 0), u.Prompt)
	out := u.Completion
	if u.Completion >= 0 && u.Prompt >= 0 && u.Total > u.Prompt+u.Completion {
		out = u.Total - u.Prompt
	}
	use := usage{input: u.Prompt - cached, cacheRead: cached, output: out, inKnown: true, outKnown: true}
	use.billed, use.billKnown = u.money()
	return use
}

type chatMessage struct {
	Content          *string `json:"content"`
	Refusal          *string `json:"refusal"`
	ReasoningContent string  `json:"reasoning_content"`
	Reasoning        string  `json:"reasoning"`
	ToolCalls        []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func (h *hearing) chatPiece(data []byte, piece bool) (out heard) {
	var in struct {
		Choices []struct {
			Index   int          `json:"index"`
			Delta   *chatMessage `json:"delta"`
			Message *chatMessage `json:"message"`
			Finish  string       `json:"finish_reason"`
		} `json:"choices"`
		Usage *chatUsage     `json:"usage"`
		Error *upstreamError `json:"error"`
	}
	if json.Unmarshal(data, &in) != nil {
		return heard{fault: faultGarbage}
	}
	if in.Error != nil {
		return heard{fault: in.Error.Message}
	}
	if in.Choices == nil && in.Usage == nil && !piece {
		return heard{fault: faultGarbage}
	}
	if in.Usage != nil {
		out.use = in.Usage.usage()
		out.bare = len(in.Choices) == 0
	}
	for _, c := range in.Choices {
		m := c.Delta
		if !piece {
			m = c.Message
		}
		if m == nil {
			m = &chatMessage{}
		}
		if t := m.ReasoningContent + m.Reasoning; t != "" {
			out.deltas = append(out.deltas, delta{kind: thinkDelta, text: t})
		}
		for _, t := range []*string{m.Content, m.Refusal} {
			if t != nil && *t != "" {
				out.deltas = append(out.deltas, delta{kind: textDelta, text: *t})
			}
		}
		for i, call := range m.ToolCalls {
			at := i
			if call.Index != nil {
				at = *call.Index
			}
			if call.Function.Name != "" && h.kinds[at] != call.ID+"/"+call.Function.Name {
				h.kinds[at] = call.ID + "/" + call.Function.Name
				out.deltas = append(out.deltas, delta{kind: callDelta, index: at, id: call.ID, name: call.Function.Name})
			}
			if call.Function.Arguments != "" {
				out.deltas = append(out.deltas, delta{kind: argsDelta, index: at, text: call.Function.Arguments})
			}
		}
		if c.Finish != "" {
			h.ended = true
			out.deltas = append(out.deltas, delta{kind: stopDelta, stop: chatStops(c.Finish)})
		}
	}
	out.done = !piece
	return out
}

func chatStops(s string) string {
	switch s {
	case "length":
		return stopLength
	case "tool_calls", "function_call":
		return stopTools
	case "content_filter":
		return stopFilter
	}
	return stopEnd
}

// messagesUsage has pointers because later events repeat only some members.
type messagesUsage struct {
	Input      *int64 `json:"input_tokens"`
	CacheRead  int64  `json:"cache_read_input_tokens"`
	CacheWrite int64  `json:"cache_creation_input_tokens"`
	Creation   struct {
		Long int64 `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Output *int64 `json:"output_tokens"`
}

func (m *messagesUsage) usage(final bool) (u usage) {
	if m == nil {
		return u
	}
	if m.Input != nil {
		long := min(max(m.Creation.Long, 0), m.CacheWrite)
		u = usage{input: *m.Input, cacheRead: m.CacheRead, cacheWrite: m.CacheWrite - long, long: long, inKnown: true}
	}
	if m.Output != nil && final {
		u.output, u.outKnown = *m.Output, true
	}
	return u
}

type messagesBlock struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Text  string          `json:"text"`
	Think string          `json:"thinking"`
	Input json.RawMessage `json:"input"`
}

func messagesStops(s string) string {
	switch s {
	case "max_tokens", "model_context_window_exceeded":
		return stopLength
	case "tool_use":
		return stopTools
	case "refusal":
		return stopFilter
	}
	return stopEnd
}

func (h *hearing) messagesEvent(data []byte) (out heard) {
	var in struct {
		Type    string `json:"type"`
		Index   int    `json:"index"`
		Message struct {
			Usage *messagesUsage `json:"usage"`
		} `json:"message"`
		Block messagesBlock `json:"content_block"`
		Delta struct {
			Type    string `json:"type"`
			Text    string `json:"text"`
			Partial string `json:"partial_json"`
			Think   string `json:"thinking"`
			Stop    string `json:"stop_reason"`
		} `json:"delta"`
		Usage *messagesUsage `json:"usage"`
		Error *upstreamError `json:"error"`
	}
	if json.Unmarshal(data, &in) != nil {
		return heard{fault: faultGarbage}
	}
	switch in.Type {
	case "message_start":
		out.use = in.Message.Usage.usage(false)
	case "content_block_start":
		switch in.Block.Type {
		case "tool_use":
			out.deltas = append(out.deltas, delta{kind: callDelta, index: in.Index, id: in.Block.ID, name: in.Block.Name})
		case "text":
			if in.Block.Text != "" {
				out.deltas = append(out.deltas, delta{kind: textDelta, text: in.Block.Text})
			}
		}
	case "content_block_delta":
		switch in.Delta.Type {
		case "text_delta":
			out.deltas = append(out.deltas, delta{kind: textDelta, text: in.Delta.Text})
		case "input_json_delta":
			out.deltas = append(out.deltas, delta{kind: argsDelta, index: in.Index, text: in.Delta.Partial})
		case "thinking_delta":
			out.deltas = append(out.deltas, delta{kind: thinkDelta, text: in.Delta.Think})
		}
	case "message_delta":
		out.use = in.Usage.usage(true)
		if in.Delta.Stop != "" {
			h.ended = true
			out.deltas = append(out.deltas, delta{kind: stopDelta, stop: messagesStops(in.Delta.Stop)})
		}
	case "message_stop":
		out.done = true
	case "error":
		out.fault = "The upstream broke off"
		if in.Error != nil {
			out.fault = in.Error.Message
		}
	}
	return out
}

func messagesWhole(body []byte) heard {
	var in struct {
		Type    string          `json:"type"`
		Content []messagesBlock `json:"content"`
		Stop    string          `json:"stop_reason"`
		Usage   *messagesUsage  `json:"usage"`
	}
	if json.Unmarshal(body, &in) != nil || in.Type != "message" {
		return heard{fault: faultGarbage}
	}
	out := heard{use: in.Usage.usage(true), done: true}
	for i, b := range in.Content {
		switch b.Type {
		case "text":
			out.deltas = append(out.deltas, delta{kind: textDelta, text: b.Text})
		case "thinking":
			out.deltas = append(out.deltas, delta{kind: thinkDelta, text: b.Think})
		case "tool_use":
			out.deltas = append(out.deltas, delta{kind: callDelta, index: i, id: b.ID, name: b.Name},
				delta{kind: argsDelta, index: i, text: string(b.Input)})
		}
	}
	out.deltas = append(out.deltas, delta{kind: stopDelta, stop: messagesStops(in.Stop)})
	return out
}

// generateUsage: the prompt includes cached tokens, the candidates do not include thinking.
// Tokens that only the total includes are output.
type generateUsage struct {
	Prompt     int64 `json:"promptTokenCount"`
	ToolUse    int64 `json:"toolUsePromptTokenCount"`
	Candidates int64 `json:"candidatesTokenCount"`
	Thoughts   int64 `json:"thoughtsTokenCount"`
	Cached     int64 `json:"cachedContentTokenCount"`
	Total      int64 `json:"totalTokenCount"`
}

func (u *generateUsage) usage() usage {
	in, out := u.Prompt+u.ToolUse, u.Candidates+u.Thoughts
	if min(u.Prompt, u.ToolUse, u.Candidates, u.Thoughts) < 0 {
		return usage{input: -1} // is not believed
	}
	cached := min(max(u.Cached, 0), in)
	return usage{input: in - cached, cacheRead: cached, output: max(out, u.Total-in), inKnown: true, outKnown: true}
}

func generateStops(s string, called bool) string {
	switch s {
	case "MAX_TOKENS":
		return stopLength
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY":
		return stopFilter
	}
	if called {
		return stopTools
	}
	return stopEnd
}

// generatePiece parses a piece of an answer in Google's dialect; it has the form of a whole
// answer. Each tool call is in one piece, sometimes without an ID.
func (h *hearing) generatePiece(data []byte, piece bool) (out heard) {
	var in struct {
		Candidates []struct {
			Content struct {
				Parts []generatePart `json:"parts"`
			} `json:"content"`
			Finish string `json:"finishReason"`
		} `json:"candidates"`
		Feedback struct {
			Blocked string `json:"blockReason"`
		} `json:"promptFeedback"`
		Usage *generateUsage `json:"usageMetadata"`
		Error *upstreamError `json:"error"`
	}
	if json.Unmarshal(data, &in) != nil {
		return heard{fault: faultGarbage}
	}
	if in.Error != nil {
		return heard{fault: cmp.Or(in.Error.Message, "The upstream broke off")}
	}
	if in.Candidates == nil && in.Feedback.Blocked == "" && (in.Usage == nil || !piece) {
		return heard{fault: faultGarbage}
	}
	if in.Usage != nil {
		out.use = in.Usage.usage()
	}
	for _, c := range in.Candidates[:min(len(in.Candidates), 1)] {
		for _, p := range c.Content.Parts {
			switch {
			case p.Call != nil:
				h.calls++
				id := p.Call.ID
				if id == "" {
					id = "call_" + drawID()
				}
				args := string(p.Call.Args)
				if args == "" || args == "null" {
					args = "{}"
				}
				out.deltas = append(out.deltas, delta{kind: callDelta, index: h.calls, id: id, name: p.Call.Name},
					delta{kind: argsDelta, index: h.calls, text: args})
			case p.Text == nil || *p.Text == "":
			case p.Thought:
				out.deltas = append(out.deltas, delta{kind: thinkDelta, text: *p.Text})
			default:
				out.deltas = append(out.deltas, delta{kind: textDelta, text: *p.Text})
			}
		}
		if c.Finish != "" {
			h.ended = true
			out.deltas = append(out.deltas, delta{kind: stopDelta, stop: generateStops(c.Finish, h.calls > 0)})
		}
	}
	if in.Feedback.Blocked != "" {
		h.ended = true
		out.deltas = append(out.deltas, delta{kind: stopDelta, stop: stopFilter})
	}
	out.done = !piece
	return out
}

type responsesUsage struct {
	Input   int64 `json:"input_tokens"`
	Output  int64 `json:"output_tokens"`
	Details struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
}

func (u *responsesUsage) usage() usage {
	if u == nil {
		return usage{}
	}
	cached := min(max(u.Details.Cached, 0), u.Input)
	return usage{input: u.Input - cached, cacheRead: cached, output: u.Output, inKnown: true, outKnown: true}
}

// responsesEvent counts an event of OpenAI's responses. These are never translated to another dialect.
func responsesEvent(data []byte) (out heard) {
	var in struct {
		Type     string          `json:"type"`
		Delta    json.RawMessage `json:"delta"`
		Response struct {
			Usage *responsesUsage `json:"usage"`
			Error *upstreamError  `json:"error"`
		} `json:"response"`
	}
	if json.Unmarshal(data, &in) != nil {
		return heard{fault: faultGarbage}
	}
	var text string
	if json.Unmarshal(in.Delta, &text) == nil && text != "" {
		out.deltas = append(out.deltas, delta{kind: textDelta, text: text})
	}
	switch in.Type {
	case "response.completed", "response.incomplete", "response.failed":
		out.use, out.done = in.Response.Usage.usage(), true
	case "error":
		out.done = true // it is handed on as it is
	}
	return out
}

func responsesWhole(body []byte) heard {
	var in struct {
		Object string            `json:"object"`
		Output []json.RawMessage `json:"output"`
		Usage  *responsesUsage   `json:"usage"`
	}
	if json.Unmarshal(body, &in) != nil || in.Object != "response" {
		return heard{fault: faultGarbage}
	}
	out := heard{use: in.Usage.usage(), done: true}
	for _, raw := range in.Output {
		var item struct {
			Arguments string `json:"arguments"`
			Input     string `json:"input"`
			Content   []struct {
				Text string `json:"text"`
			} `json:"content"`
		}
		_ = json.Unmarshal(raw, &item) // other items count nothing
		text := item.Arguments + item.Input
		for _, c := range item.Content {
			text += c.Text
		}
		out.deltas = append(out.deltas, delta{kind: textDelta, text: text})
	}
	return out
}
