package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A dialect is the protocol of a client or an upstream.
type dialect int

const (
	chat       dialect = iota // OpenAI: POST /chat/completions
	responses                 // OpenAI: POST /responses
	messages                  // Anthropic: POST /v1/messages
	embeddings                // OpenAI: POST /embeddings
	generate                  // Google: POST /v1beta/models/NAME:generateContent
)

func (d dialect) String() string {
	return [...]string{"chat completions", "responses", "messages", "embeddings", "generate content"}[d]
}

// A request is the dialect-independent form of a request, for translation.
type request struct {
	model       string
	system      []string
	turns       []turn
	tools       []tool
	choice      string // "", auto, none, any, or "=" and the name of a tool
	parallel    *bool
	max         int64 // tokens
	temperature json.Number
	topP        json.Number
	stop        []string
	stream      bool
	schema      json.RawMessage // of the answer: {"name", "schema", "strict"}; nil for none
	object      bool            // the answer is any JSON object
	think       bool            // the client wants thinking in the answer
	budget      int64           // tokens of thinking; 0: the upstream decides
}

// A turn is all consecutive messages of one side. Results of tools belong to the user's side.
type turn struct {
	assistant bool
	parts     []part
}

// A partKind says what a part is.
type partKind int

const (
	textPart partKind = iota
	imagePart
	callPart   // of a tool
	resultPart // of a tool
)

// A part is a piece of a turn.
type part struct {
	kind  partKind
	text  string // of a text or a result
	media string // of an image in base64
	data  string // of an image: base64, or with media "" a URL
	id    string // of a call or its result
	name  string // of the tool
	args  string // of a call: JSON, or any text for a custom tool
	fails bool   // of a result
}

// A tool is a function that the model may call. A custom tool takes one text; upstreams without
// custom tools get a function with one argument, "input".
type tool struct {
	name, description string
	schema            json.RawMessage
	custom            bool
}

// customSchema is the schema of a custom tool as a function.
var customSchema = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string"}},` +
	`"required":["input"],"additionalProperties":false}`)

func (r *request) say(assistant bool, p ...part) {
	if len(p) == 0 {
		return
	}
	if n := len(r.turns); n > 0 && r.turns[n-1].assistant == assistant {
		r.turns[n-1].parts = append(r.turns[n-1].parts, p...)
		return
	}
	r.turns = append(r.turns, turn{assistant, p})
}

func (r *request) custom(name string) bool {
	for _, t := range r.tools {
		if t.name == name {
			return t.custom
		}
	}
	return false
}

// A deltaKind says what a delta is.
type deltaKind int

const (
	textDelta  deltaKind = iota
	thinkDelta           // thinking that is shown
	callDelta            // a call of a tool begins: id, name
	argsDelta            // more of the arguments of the call that began last with that index
	stopDelta            // why the answer ends
)

// Reasons to stop.
const (
	stopEnd    = "end"
	stopLength = "length"
	stopTools  = "tools"
	stopFilter = "filter"
)

// A delta is a piece of an answer.
type delta struct {
	kind  deltaKind
	index int    // of a call
	id    string // of a call
	name  string // of the tool
	text  string
	stop  string
}

// An answer is all deltas together.
type answer struct {
	text, thinking string
	calls          []part
	stop           string
}

func (a *answer) add(d delta, at map[int]int) {
	switch d.kind {
	case textDelta:
		a.text += d.text
	case thinkDelta:
		a.thinking += d.text
	case callDelta:
		at[d.index] = len(a.calls)
		a.calls = append(a.calls, part{kind: callPart, id: d.id, name: d.name})
	case argsDelta:
		if i, ok := at[d.index]; ok {
			a.calls[i].args += d.text
		}
	case stopDelta:
		a.stop = d.stop
	}
}

// gather joins the deltas of an answer.
func gather(deltas []delta) (a answer) {
	at := map[int]int{}
	for _, d := range deltas {
		a.add(d, at)
	}
	return a
}

// A refusal is an answer of the gateway itself and not of a model: its status, a code for
// programs and a sentence for people.
type refusal struct {
	status  int
	code    string
	message string
	detail  json.RawMessage // of a budget: what it refused
	after   int             // seconds for Retry-After; 0: none
}

func (r *refusal) Error() string { return r.message }

func refuse(status int, code, format string, args ...any) *refusal {
	return &refusal{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) *refusal {
	return refuse(400, "invalid_request", format, args...)
}

// typeOf returns the error's type in the dialect.
func (r *refusal) typeOf(d dialect) string {
	if d == messages {
		switch r.status {
		case 400, 422:
			return "invalid_request_error"
		case 401:
			return "authentication_error"
		case 402:
			return "billing_error"
		case 403:
			return "permission_error"
		case 404:
			return "not_found_error"
		case 413:
			return "request_too_large"
		case 429:
			return "rate_limit_error"
		case 503:
			return "overloaded_error"
		case 504:
			return "timeout_error"
		}
		return "api_error"
	}
	switch r.status {
	case 400, 404, 413, 422:
		return "invalid_request_error"
	case 401:
		return "authentication_error"
	case 402:
		return "insufficient_quota"
	case 403:
		return "permission_error"
	case 429:
		return "rate_limit_error"
	}
	return "server_error"
}

// body returns the error in the dialect's form. If the dialect has no code and details, they
// are added as the gateway's own members.
func (r *refusal) body(d dialect) []byte {
	type openAI struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Param   *string         `json:"param"`
		Code    string          `json:"code"`
		Details json.RawMessage `json:"details,omitempty"`
	}
	if d == generate {
		info := map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": r.code, "domain": "selvage"}
		if len(r.detail) > 0 {
			info["details"] = r.detail
		}
		return encode(map[string]any{"error": map[string]any{"code": r.status, "message": r.message,
			"status": generateStatus(r.status), "details": []any{info}}})
	}
	if d == messages {
		return encode(map[string]any{"type": "error", "error": struct {
			Type    string          `json:"type"`
			Message string          `json:"message"`
			Code    string          `json:"code"`
			Details json.RawMessage `json:"details,omitempty"`
		}{r.typeOf(d), r.message, r.code, r.detail}})
	}
	return encode(map[string]any{"error": openAI{r.message, r.typeOf(d), nil, r.code, r.detail}})
}

// event returns the error as an event inside a stream.
func (r *refusal) event(d dialect) []byte {
	switch d {
	case messages:
		return appendEvent(nil, "error", r.body(d))
	case responses:
		return appendEvent(nil, "error", encode(map[string]any{"type": "error", "code": r.code, "message": r.message,
			"param": nil}))
	}
	return appendEvent(nil, "", r.body(d))
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("llm: " + err.Error()) // only values of this package get here
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
