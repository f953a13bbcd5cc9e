package llm

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/money"
)

// A wire is how upstreams of one kind are asked and answer, as their documentation
// says.
type wire struct {
	kind            money.ModelKind
	ask             string     // what clients of it post to
	base            string     // how its base URL ends
	path, list      string     // where it is asked, and for its models
	header          string     // the header of the key, with what stands in it
	sent            []string   // what else it is sent
	stream          []string   // its answer: until the text has begun, the rest, and what it used
	in, cached, out int64      // tokens: as usage says them
	billed          core.Money // what usage says that it cost, where it does
	much            [2]string  // in usage: the count of what was said, and a lie
	busy            string     // its 429
	reason          string     // what that says
	fault           string     // an event by which it breaks off by itself
	models          string
	own             bool // it is told elsewhere which model, and that it is a stream
}

// said is an event of chat completions.
func said(more string) string {
	return `data: {"id":"c1","object":"chat.completion.chunk","created":1760000000,"model":"m",` + more + "}\n\n"
}

// google is an event of Google's dialect.
func google(more string) string {
	return `data: {` + more + `,"modelVersion":"m","responseId":"r1"}` + "\n\n"
}

func wires() map[string]wire {
	const (
		begins  = `"choices":[{"index":0,"delta":{"role":"assistant","content":"Hello "},"finish_reason":null}]`
		goesOn  = `"choices":[{"index":0,"delta":{"content":"there"},"finish_reason":null}]`
		ends    = `"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]`
		over    = "data: [DONE]\n\n"
		path    = "/chat/completions"
		theList = `{"object":"list","data":[{"id":"m","object":"model","created":1760000000,"owned_by":"x"}]}`
	)
	bearer := "Authorization: Bearer " + canary
	chatWire := wire{ask: chatPath, base: "/v1", path: "/v1" + path, list: "/v1/models", header: bearer,
		sent: []string{`"stream_options":{"include_usage":true}`, `"max_tokens":100`},
		in:   9, out: 2, much: [2]string{`"completion_tokens":2`, `"completion_tokens":90000000000000`}, models: theList,
		stream: []string{said(begins), said(goesOn) + said(ends),
			said(`"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}`) + over},
		busy:   `{"error":{"message":"too many requests","type":"rate_limit_error","param":null,"code":null}}`,
		reason: "too many requests",
		fault:  `data: {"error":{"message":"it fell over","type":"server_error","code":500}}` + "\n\n"}
	kind := func(k money.ModelKind, change func(*wire)) wire {
		w := chatWire
		w.kind, w.stream, w.sent = k, slices.Clone(w.stream), slices.Clone(w.sent)
		change(&w)
		return w
	}
	return map[string]wire{
		// Its errors were a plain text once; its pieces carry a fingerprint.
		"Ollama": kind(money.ModelOllama, func(w *wire) {
			w.stream[0] = said(`"system_fingerprint":"fp_ollama",` + begins)
			w.busy, w.reason = `{"error":"server busy, please try again.  maximum pending requests exceeded"}`, ""
			w.fault = `data: {"error":{"message":"llama runner process has terminated","type":"api_error",` +
				`"param":null,"code":null}}` + "\n\n"
		}),
		// The first piece is of the role alone, and may hold logprobs; errors lie flat.
		"vLLM": kind(money.ModelVLLM, func(w *wire) {
			w.stream[0] = said(`"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,`+
				`"finish_reason":null}],"prompt_token_ids":null`) + said(begins)
			w.stream[1] = said(goesOn) +
				said(`"choices":[{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"stop",`+
					`"stop_reason":null,"token_ids":null}]`)
			w.busy, w.reason = `{"object":"error","message":"the engine is full","type":"TooManyRequests",`+
				`"param":null,"code":429}`, "the engine is full"
		}),
		// Timings and the names of its own beside the usual; its list is told twice.
		"llama.cpp": kind(money.ModelLlamaCpp, func(w *wire) {
			w.stream[0] = said(`"system_fingerprint":"b7000-abc",`+strings.Replace(begins, `"Hello "`, "null", 1)) +
				said(`"choices":[{"finish_reason":null,"index":0,"delta":{"content":"Hello "}}]`)
			w.stream[2] = said(`"choices":[],"usage":{"completion_tokens":2,"prompt_tokens":9,"total_tokens":11},`+
				`"timings":{"cache_n":4,"prompt_n":5,"prompt_ms":31.0,"predicted_n":2,"predicted_per_second":88.5}`) + over
			w.busy, w.reason = `{"error":{"code":429,"message":"all slots are taken","type":"unavailable_error"}}`,
				"all slots are taken"
			w.fault = `error: {"code":500,"message":"context shift is disabled","type":"server_error"}` + "\n\n"
			w.models = `{"models":[{"name":"m","model":"m","type":"model"}],` + theList[1:]
		}),
		"OpenAI-compatible": kind(money.ModelCompatible, func(w *wire) {
			// Many end without a last word, and put what was used into the last piece.
			w.stream[1] = said(goesOn)
			w.stream[2] = said(ends + `,"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}`)
			w.busy, w.reason = `{"detail":"slow down"}`, "slow down"
		}),
		// All pieces say that there is no usage yet, and hold noise against listeners;
		// the newer name of the bound; reasoning is in what was said, and part of the
		// prompt may have been cached.
		"OpenAI": kind(money.ModelOpenAI, func(w *wire) {
			more := `"service_tier":"default","system_fingerprint":"fp_1","usage":null,"obfuscation":"x1y2",`
			w.stream[0], w.stream[1] = said(more+begins), said(more+goesOn)+said(more+ends)
			w.stream[2] = said(`"choices":[],"usage":{"prompt_tokens":2000,"completion_tokens":42,`+
				`"total_tokens":2042,"prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":0},`+
				`"completion_tokens_details":{"reasoning_tokens":40,"audio_tokens":0,`+
				`"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`) + over
			w.in, w.cached, w.out, w.much = 80, 1920, 42, [2]string{`"completion_tokens":42`,
				`"completion_tokens":90000000000000`}
			w.sent[1] = `"max_completion_tokens":100`
			w.busy = `{"error":{"message":"too many requests","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`
		}),
		"Anthropic": {kind: money.ModelAnthropic, ask: messagesPath, path: "/v1/messages", list: "/v1/models",
			header: "X-Api-Key: " + canary, sent: []string{`"max_tokens":100`},
			in: 28, cached: 7, out: 15, much: [2]string{`"output_tokens":15`, `"output_tokens":90000000000000`},
			stream: []string{
				`event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],` +
					`"model":"m","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,` +
					`"cache_read_input_tokens":7,"cache_creation_input_tokens":3,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello "}}

`, `event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"there"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

`, `event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}

event: message_stop
data: {"type":"message_stop"}

`},
			busy:   `{"type":"error","error":{"type":"rate_limit_error","message":"too many requests"},"request_id":"req_1"}`,
			reason: "too many requests",
			fault: "event: error\ndata: " +
				"{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
			models: `{"data":[{"type":"model","id":"m","display_name":"M","created_at":"2026-01-01T00:00:00Z"}],` +
				`"has_more":false,"first_id":"m","last_id":"m"}`},
		// Comments keep the connection alive; what it charged stands beside what was
		// used; a fault is a piece with an error at its top.
		"OpenRouter": kind(money.ModelOpenRouter, func(w *wire) {
			w.base, w.path, w.list, w.billed = "/api/v1", "/api/v1"+path, "/api/v1/models", 14_000
			w.stream[0] = ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + said(`"provider":"Somebody",`+begins)
			w.stream[1] = ": OPENROUTER PROCESSING\n\n" + said(goesOn) +
				said(`"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop",`+
					`"native_finish_reason":"end_turn","logprobs":null}]`)
			w.stream[2] = said(`"choices":[{"index":0,"delta":{"role":"assistant","content":""},`+
				`"finish_reason":null,"native_finish_reason":null}],"usage":{"prompt_tokens":9,`+
				`"completion_tokens":2,"total_tokens":11,"cost":0.00014,"is_byok":false,`+
				`"cost_details":{"upstream_inference_cost":null},"prompt_tokens_details":{"cached_tokens":0}}`) + over
			w.busy, w.reason = `{"error":{"code":429,"message":"too many requests",`+
				`"metadata":{"provider_name":"Somebody"}},"user_id":"user_1"}`, "too many requests"
			w.fault = said(`"provider":"Somebody","error":{"code":502,"message":"Provider disconnected"},` +
				`"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]`)
		}),
		// Asked in its own dialect, but by clients of OpenAI's: below. All pieces tell what
		// was used so far, thinking by itself; the stream ends without a last word.
		"Gemini itself": {kind: money.ModelGemini, ask: messagesPath, base: "/v1beta/openai",
			path: "/v1beta/models/m:streamGenerateContent", list: "/v1beta/openai/models", own: true,
			header: "X-Goog-Api-Key: " + canary, sent: []string{`"maxOutputTokens":100`,
				`"contents":[{"role":"user","parts":[{"text":`}, in: 2, cached: 7, out: 52,
			much: [2]string{`"thoughtsTokenCount":50`, `"thoughtsTokenCount":90000000000000`},
			stream: []string{
				google(`"candidates":[{"content":{"parts":[{"text":"Let me see","thought":true}],"role":"model"},`+
					`"index":0}],"usageMetadata":{"promptTokenCount":9,"thoughtsTokenCount":40,"totalTokenCount":49}`) +
					google(`"candidates":[{"content":{"parts":[{"text":"Hello "}],"role":"model"},"index":0}],`+
						`"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1,"thoughtsTokenCount":50,"totalTokenCount":60}`),
				google(`"candidates":[{"content":{"parts":[{"text":"there","thoughtSignature":"c2ln"}],` +
					`"role":"model"},"index":0}]`),
				google(`"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP",` +
					`"index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,` +
					`"thoughtsTokenCount":50,"cachedContentTokenCount":7,"totalTokenCount":61,` +
					`"promptTokensDetails":[{"modality":"TEXT","tokenCount":9}]}`)},
			busy: `{"error":{"code":429,"message":"too many requests","status":"RESOURCE_EXHAUSTED",` +
				`"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}]}}`,
			reason: "too many requests",
			fault:  `data: {"error":{"code":503,"message":"The model is overloaded","status":"UNAVAILABLE"}}` + "\n\n",
			models: strings.ReplaceAll(theList, `"id":"m"`, `"id":"models/m"`)},
		// Asked in the dialect that it has for clients of OpenAI's. What it thought is in
		// the total alone; errors are in a list; models have a prefix; all pieces tell
		// what was used so far.
		"Gemini": kind(money.ModelGemini, func(w *wire) {
			w.base, w.path, w.list = "/v1beta/openai", "/v1beta/openai"+path, "/v1beta/openai/models"
			w.stream[0] = said(begins + `,"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":40}`)
			w.stream[1] = said(`"choices":[{"index":0,"delta":{"role":"assistant","content":"there"},"finish_reason":null}]`)
			w.stream[2] = said(ends+`,"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":61}`) + over
			w.out, w.much = 52, [2]string{`"completion_tokens":2,"total_tokens":61`,
				`"completion_tokens":2,"total_tokens":90000000000000`}
			w.busy = `[{"error":{"code":429,"message":"too many requests","status":"RESOURCE_EXHAUSTED",` +
				`"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}]}}]`
			w.models = strings.ReplaceAll(theList, `"id":"m"`, `"id":"models/m"`)
		}),
	}
}

// Each kind of upstream is called as its documentation says, with its key in the right place.
// Its stream reaches the client, and is settled by its reported usage, but not above what was
// reserved. An answer that breaks off is settled by what arrived, and a call that is refused for
// lack of capacity costs nothing.
func TestEachKindOfUpstream(t *testing.T) {
	t.Parallel()
	for name, w := range wires() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			streams := func(pieces ...string) (*upstream, *bench) {
				u := newUpstream(t, func(_ int, rw http.ResponseWriter, _ *http.Request) {
					rw.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(rw, strings.Join(pieces, ""))
					if len(pieces) < len(w.stream) {
						_ = http.NewResponseController(rw).Flush()
						panic(http.ErrAbortHandler)
					}
				})
				return u, newBench(t, provider(w.kind, "up", u.URL+w.base))
			}
			t.Run("a stream", func(t *testing.T) {
				u, b := streams(w.stream...)
				status, out := b.post(w.ask, askStream)
				if status != 200 || u.paths[0] != w.path {
					t.Fatalf("answered %d, asked at %s: %s", status, u.paths[0], out)
				}
				wantText(t, out, "Hello ", "there")
				wantText(t, u.body(0), w.sent...)
				if !w.own {
					wantText(t, u.body(0), `"model":"m"`, `"stream":true`)
				}
				at, value, _ := strings.Cut(w.header, ": ")
				for _, h := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key"} {
					if got := u.heads[0].Get(h); (h == at) != (got == value) || h != at && got != "" {
						t.Errorf("header %s is %q", h, got)
					}
				}
				use := b.use(0)
				if use.InputTokens != w.in || use.CachedInputTokens != w.cached || use.OutputTokens != w.out ||
					use.Cost != cmp.Or(w.billed, cents(w.in, w.cached, w.out)) || use.Provider != string(w.kind) ||
					use.Biller != "up" {
					t.Errorf("settled by %+v", use)
				}
			})
			// What could be is booked, though it exceeds what was set aside, because the
			// upstream will ask for it; the purse stops the scope then. This could not be.
			t.Run("a lie", func(t *testing.T) {
				_, b := streams(w.stream[0], w.stream[1], strings.Replace(w.stream[2], w.much[0], w.much[1], 1))
				b.post(w.ask, askStream)
				if use := b.use(0); use.OutputTokens < 1 || use.OutputTokens > 100 || use.Cost > b.till.grants[0].Amount {
					t.Errorf("settled by %+v of %d", use, b.till.grants[0].Amount)
				}
			})
			t.Run("cut off", func(t *testing.T) {
				_, b := streams(w.stream[0])
				status, out := b.post(w.ask, askStream)
				wantText(t, out, "Hello ", "upstream_broke_off")
				if use := b.use(0); status != 200 || use.Unsent || use.OutputTokens < 1 || use.InputTokens < 1 ||
					use.Cost > b.till.grants[0].Amount {
					t.Errorf("answered %d, settled by %+v", status, use)
				}
			})
			t.Run("a fault", func(t *testing.T) {
				_, b := streams(w.stream[0], w.fault, "")
				_, out := b.post(w.ask, askStream)
				wantText(t, out, "Hello ", "upstream_")
				if use := b.use(0); use.Unsent || use.OutputTokens < 1 || use.Cost > b.till.grants[0].Amount {
					t.Errorf("settled by %+v", use)
				}
			})
			t.Run("no room", func(t *testing.T) {
				u := newUpstream(t, func(_ int, rw http.ResponseWriter, _ *http.Request) {
					rw.Header().Set("Retry-After", "7")
					rw.Header().Set("Content-Type", "application/json")
					rw.WriteHeader(http.StatusTooManyRequests)
					_, _ = io.WriteString(rw, w.busy)
				})
				b := newBench(t, provider(w.kind, "up", u.URL+w.base))
				status, out := b.post(w.ask, askStream)
				if status != 429 || u.asked() < 1 || u.asked() > maxAttempts || !b.use(0).Unsent {
					t.Errorf("answered %d after %d requests, settled by %+v", status, u.asked(), b.use(0))
				}
				wantText(t, out, w.reason)
			})
			t.Run("models", func(t *testing.T) {
				u := newUpstream(t, replay("application/json", w.models))
				b := newBench(t)
				names, bad := b.fetch(t.Context(), provider(w.kind, "up", u.URL+w.base), canary)
				if bad != nil || !slices.Equal(names, []string{"m"}) || u.paths[0] != w.list {
					t.Errorf("%v, %v, asked at %s", names, bad, u.paths[0])
				}
			})
		})
	}
}

// An upstream that reports its bill is paid by it, even if the price table says less or more,
// plus the bill of the vendor behind it if the key there is the customer's. Impossible bills are
// ignored, and an upstream that does not account for all that it sent is paid no less than the
// table says. Amounts reported by other kinds are ignored.
func TestWhatAnUpstreamCharged(t *testing.T) {
	t.Parallel()
	const tokens = `"prompt_tokens":9,"completion_tokens":2,"total_tokens":11`
	table := cents(9, 0, 2)
	for _, c := range []struct {
		kind  money.ModelKind
		usage string
		want  core.Money
	}{
		{money.ModelOpenRouter, tokens + `,"cost":0.00014`, 14_000},
		{money.ModelOpenRouter, tokens + `,"cost":0.000000001`, 1}, // a tenth of a micro-cent is one
		{money.ModelOpenRouter, tokens + `,"cost":0`, 0},           // a free model
		{money.ModelOpenRouter, tokens + `,"cost":7.5`, 750_000_000},
		{money.ModelOpenRouter, tokens +
			`,"cost":0.0005,"is_byok":true,"cost_details":{"upstream_inference_cost":0.01}`, 1_050_000},
		{money.ModelOpenRouter, tokens + `,"cost":0.0005,"is_byok":true`, table}, // the vendor's is not told
		{money.ModelOpenRouter, tokens +
			`,"cost":0.0005,"is_byok":false,"cost_details":{"upstream_inference_cost":0.01}`, 50_000},
		{money.ModelOpenRouter, tokens + `,"cost":null`, table},
		{money.ModelOpenRouter, tokens, table},
		{money.ModelOpenRouter, tokens + `,"cost":-1`, table},
		{money.ModelOpenRouter, tokens + `,"cost":1,"is_byok":true,"cost_details":{"upstream_inference_cost":-1}`, table},
		{money.ModelOpenRouter, tokens + `,"cost":1e300`, table},
		{money.ModelOpenRouter, `"prompt_tokens":9,"completion_tokens":0,"total_tokens":9,"cost":0`,
			cents(9, 0, 100)}, // for 500 words
		{money.ModelCompatible, tokens + `,"cost":0.00014`, table},
		{money.ModelOpenAI, tokens + `,"cost":0`, table},
	} {
		for _, stream := range []bool{false, true} {
			text := "two words"
			if strings.Contains(c.usage, `"completion_tokens":0`) {
				text = strings.Repeat("word ", 500)
			}
			body := fmt.Sprintf(`{"object":"chat.completion","choices":[{"index":0,"message":{"content":%q},`+
				`"finish_reason":"stop"}],"usage":{%s}}`, text, c.usage)
			answer, asked := replay("application/json", body), ask
			if stream {
				answer, asked = sse(said(fmt.Sprintf(`"choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]`, text))+
					said(`"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{`+c.usage+`}`)+"data: [DONE]\n\n"),
					askStream
			}
			u := newUpstream(t, answer)
			b := newBench(t, provider(c.kind, "up", u.URL))
			status, out := b.post(chatPath, asked)
			if use := b.use(0); status != 200 || use.Cost != c.want {
				t.Errorf("%s, usage {%s}, streamed %v: settled by %+v, want %d; answered %d %.200s", c.kind, c.usage, stream, use,
					c.want, status, out)
			}
		}
	}
}
