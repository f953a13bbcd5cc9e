package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// What upstreams send, as recorded from their documentation's wire format.
const (
	chatStream = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m",` +
		`"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,` +
		`"delta":{"content":"Hel"},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,` +
		`"delta":{"content":"lo"},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},` +
		`"finish_reason":"stop"}]}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],` +
		`"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":4}}}

data: [DONE]

`
	chatTools = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null,` +
		`"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"ls","arguments":""}}]},` +
		`"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"dir\":"}}]},` +
		`"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"/tmp\"}"}}]},` +
		`"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":12,"total_tokens":62}}

data: [DONE]

`
	messagesStream = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],` +
		`"model":"claude","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,` +
		`"cache_read_input_tokens":7,"cache_creation_input_tokens":3,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"ls","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"dir\":\"/\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":15}}

event: message_stop
data: {"type":"message_stop"}

`
	ask          = `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`
	askStream    = `{"model":"m","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hi"}]}`
	chatPath     = "/v1/chat/completions"
	messagesPath = "/anthropic/v1/messages"
)

// cents is what tokens cost at the dear price, micro-cents.
func cents(in, cached, out int64) core.Money {
	return core.Money(in*1e6 + cached*1e5 + out*2e6)
}

func TestAStreamPassesThroughAndIsSettledByItsUsage(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, sse(chatStream))
	b := newBench(t, provider(money.ModelCompatible, "up", u.URL))
	status, out := b.post(chatPath, askStream)
	if status != 200 {
		t.Fatal(status, out)
	}
	want := strings.Replace(chatStream,
		chatStream[strings.Index(chatStream,
			`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],`):strings.Index(chatStream,
			"data: [DONE]")], "", 1)
	if out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	wantText(t, u.body(0), `"include_usage":true`, `"max_tokens":100`, `"model":"m"`)
	if got := u.heads[0].Get("Authorization"); got != "Bearer "+canary {
		t.Errorf("authorization %q", got)
	}
	use := b.use(0)
	if use.InputTokens != 5 || use.CachedInputTokens != 4 || use.OutputTokens != 2 || use.Cost != cents(5, 4, 2) ||
		use.Provider != "openai_compatible" || use.Biller != "up" || use.Model != "m" {
		t.Errorf("settled by %+v", use)
	}
	a := b.till.asks[0]
	if a.Company != "acme" || a.Agent != "ada" || a.Run != "run" || a.Issue != "issue" || a.BillingCode != "R&D" ||
		a.Want != cents(int64(len(askStream))+frameTokens, 0, 100) || a.Least > a.Want {
		t.Errorf("asked for %+v", a)
	}
	if _, out = b.post(chatPath,
		`{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[]}`); out != chatStream {
		t.Errorf("usage was asked for: %s", out)
	}
	wantText(t, u.body(1), `"max_tokens":8192`) // injected
}

func TestEveryDialectIsServedByEveryUpstream(t *testing.T) {
	t.Parallel()
	chatOnce := `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,` +
		`"message":{"role":"assistant","content":"Hello","tool_calls":[{"id":"call_1","type":"function",` +
		`"function":{"name":"ls","arguments":"{\"dir\":\"/\"}"}}]},"finish_reason":"tool_calls"}],` +
		`"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`
	messagesOnce := `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text",` +
		`"text":"Hello"},{"type":"tool_use","id":"toolu_1","name":"ls","input":{"dir":"/"}}],` +
		`"stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":2}}`
	chatAsk := `{"model":"m","max_tokens":100,%s"messages":[{"role":"system","content":"Be brief"},` +
		`{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url",` +
		`"image_url":{"url":"data:image/png;base64,AAAA"}}]},{"role":"assistant","content":null,` +
		`"tool_calls":[{"id":"t0","type":"function","function":{"name":"ls","arguments":"{}"}}]},{"role":"tool",` +
		`"tool_call_id":"t0","content":"a b"}],"tools":[{"type":"function","function":{"name":"ls",` +
		`"description":"list","parameters":{"type":"object"}}}],"tool_choice":"auto"}`
	messagesAsk := `{"model":"m","max_tokens":100,%s"system":[{"type":"text","text":"Be brief",` +
		`"cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text",` +
		`"text":"hi"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"t0","name":"ls","input":{}}]},{"role":"user",` +
		`"content":[{"type":"tool_result","tool_use_id":"t0","content":"a b"}]}],"tools":[{"name":"ls",` +
		`"description":"list","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto"}}`
	responsesAsk := `{"model":"m","max_output_tokens":100,%s"instructions":"Be brief","input":[{"type":"message",` +
		`"role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image",` +
		`"image_url":"data:image/png;base64,AAAA"}]},{"type":"reasoning","summary":[]},{"type":"function_call",` +
		`"call_id":"t0","name":"ls","arguments":"{}"},{"type":"function_call_output","call_id":"t0","output":"a ` +
		`b"}],"tools":[{"type":"function","name":"ls","description":"list","parameters":{"type":"object"}},` +
		`{"type":"web_search"}],"tool_choice":"auto"}`
	for name, c := range map[string]struct {
		kind         money.ModelKind
		path, ask    string
		once, stream string   // what the upstream sends
		sent         []string // what it was sent
		got, events  []string // what the client reads
	}{
		"chat by messages": {money.ModelAnthropic, chatPath, chatAsk, messagesOnce, messagesStream,
			[]string{`"system":"Be brief"`, `"type":"tool_result"`, `"tool_use_id":"t0"`, `"input_schema":{"type":"object"}`,
				`"media_type":"image/png"`, `"max_tokens":100`},
			[]string{`"content":"Hello"`, `"arguments":"{\"dir\":\"/\"}"`, `"finish_reason":"tool_calls"`, `"total_tokens":11`},
			[]string{`"content":"Hello"`, `"id":"toolu_1"`, `"arguments":"{\"dir\":\"/\"}"`, `"finish_reason":"tool_calls"`,
				"data: [DONE]\n\n"}},
		"messages by chat": {money.ModelLlamaCpp, messagesPath, messagesAsk, chatOnce, chatTools,
			[]string{`{"content":"Be brief","role":"system"}`, `"tool_call_id":"t0"`, `"url":"data:image/png;base64,AAAA"`,
				`"parameters":{"type":"object"}`, `"max_tokens":100`},
			[]string{`"type":"message"`, `"text":"Hello"`, `"input":{"dir":"/"}`, `"stop_reason":"tool_use"`,
				`"input_tokens":9`},
			[]string{"event: message_start\n", `"type":"tool_use"`, `"name":"ls"`, `"partial_json":"{\"dir\":"`,
				`"stop_reason":"tool_use"`, `"output_tokens":12`, "event: message_stop\n"}},
		"responses by chat": {money.ModelLlamaCpp, "/v1/responses", responsesAsk, chatOnce, chatTools,
			[]string{`{"content":"Be brief","role":"system"}`, `"tool_call_id":"t0"`, `"url":"data:image/png;base64,AAAA"`,
				`"max_tokens":100`},
			[]string{`"object":"response"`, `"status":"completed"`, `"text":"Hello"`, `"type":"function_call"`,
				`"call_id":"call_1"`, `"total_tokens":11`},
			[]string{"event: response.created\n", "event: response.output_item.added\n",
				"event: response.function_call_arguments.delta\n", "event: response.output_item.done\n",
				`"arguments":"{\"dir\":\"/tmp\"}"`, "event: response.completed\n", `"output_tokens":12`}},
		"responses by messages": {money.ModelAnthropic, "/v1/responses", responsesAsk, messagesOnce, messagesStream,
			[]string{`"system":"Be brief"`, `"type":"tool_result"`, `"max_tokens":100`},
			[]string{`"text":"Hello"`, `"type":"function_call"`, `"call_id":"toolu_1"`},
			[]string{"event: response.output_text.delta\n", `"delta":"Hello"`, `"call_id":"toolu_1"`,
				"event: response.completed\n"}},
		"messages by messages": {money.ModelAnthropic, messagesPath + "?beta=true", messagesAsk, messagesOnce, messagesStream,
			[]string{`"cache_control"`, `"max_tokens":100`}, []string{messagesOnce}, []string{messagesStream}},
		"chat by chat": {money.ModelOpenAI, chatPath, chatAsk, chatOnce, chatTools, []string{`"max_completion_tokens":100`},
			[]string{chatOnce}, []string{`"finish_reason":"tool_calls"`}},
		"responses by responses": {money.ModelOpenAI, "/v1/responses", responsesAsk,
			`{"id":"r","object":"response","output":[],"usage":{"input_tokens":9,"output_tokens":2,` +
				`"input_tokens_details":{"cached_tokens":0}}}`,
			"event: response.output_text.delta\ndata: " +
				"{\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\nevent: response.completed\ndata: " +
				"{\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":15}}}\n\n",
			[]string{`"max_output_tokens":100`, `"store":false`}, []string{`"object":"response"`},
			[]string{"event: response.completed\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUpstream(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Accept") == "text/event-stream" {
					io.WriteString(w, c.stream)
				} else {
					io.WriteString(w, c.once)
				}
			})
			b := newBench(t, provider(c.kind, "up", u.URL))
			status, out := b.post(c.path, strings.Replace(c.ask, "%s", "", 1))
			if status != 200 {
				t.Fatal(status, out)
			}
			wantText(t, out, c.got...)
			wantText(t, u.body(0), c.sent...)
			if strings.Contains(u.body(0), "web_search") {
				t.Error("a tool that runs upstream was handed on")
			}
			if use := b.use(0); use.InputTokens != 9 || use.OutputTokens != 2 || use.Unsent {
				t.Errorf("settled by %+v", use)
			}
			status, out = b.post(c.path, strings.Replace(c.ask, "%s", `"stream":true,`, 1))
			if status != 200 {
				t.Fatal(status, out)
			}
			wantText(t, out, c.events...)
			checkEvents(t, out)
			if use := b.use(1); use.OutputTokens < 12 || use.InputTokens < 25 || use.Cost == 0 {
				t.Errorf("stream settled by %+v", use)
			}
		})
	}
}

// checkEvents holds that a stream is whole events of JSON.
func checkEvents(t *testing.T, out string) {
	t.Helper()
	s := newStream(strings.NewReader(out))
	for {
		e, err := s.next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil || !json.Valid(e.Data) && string(e.Data) != "[DONE]" {
			t.Fatalf("event %q: %v", e.Raw, err)
		}
	}
}

func TestWithoutBudgetNothingLeaves(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, sse(chatStream))
	b := newBench(t, provider(money.ModelCompatible, "up", u.URL))
	b.till.left = cents(100, 0, 0)
	status, out := b.post(chatPath, ask)
	if status != 402 {
		t.Errorf("status %d, want 402", status)
	}
	wantText(t, out, `"type":"insufficient_quota"`, `"code":"budget_exceeded"`, `"details":{"scopeType":"agent"}`)
	status, out = b.post(messagesPath, ask)
	if status != 402 {
		t.Errorf("status %d, want 402", status)
	}
	wantText(t, out, `"type":"error"`, `"type":"billing_error"`, `budget_exceeded`)
	b.till.refuse = errors.New("the outcome is not known")
	if status, _ = b.post(chatPath, ask); status != 503 {
		t.Errorf("outcome not known: status %d, want 503", status)
	}
	b.conf.Purse = nil
	if status, _ = b.post(chatPath, ask); status != 503 {
		t.Errorf("no purse: status %d, want 503", status)
	}
	if u.asked() != 0 {
		t.Errorf("the upstream was asked %d times", u.asked())
	}
}

func TestWithLittleMoneyTheAnswerIsCutShorter(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, sse(chatStream))
	b := newBench(t, provider(money.ModelCompatible, "up", u.URL))
	body := strings.Replace(askStream, `100`, `5000`, 1)
	b.till.left = cents(int64(len(body))+frameTokens, 0, 300)
	if status, out := b.post(chatPath, body); status != 200 {
		t.Fatal(status, out)
	}
	wantText(t, u.body(0), `"max_tokens":300`)
}

func TestBusyUpstreamsAreAskedAgainAndThenOthers(t *testing.T) {
	t.Parallel()
	busy := func(status int) func(int, http.ResponseWriter, *http.Request) {
		return func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(status)
			io.WriteString(w, `{"error":{"message":"no room, `+canary+`"}}`)
		}
	}
	for _, status := range []int{429, 500, 503, 529} {
		first := newUpstream(t, busy(status))
		second := newUpstream(t, sse(chatStream))
		b := newBench(t, provider(money.ModelCompatible, "a", first.URL), provider(money.ModelCompatible, "b", second.URL))
		got, out := b.post(chatPath, askStream)
		if got != 200 || first.asked() != maxAttempts || second.asked() != 1 {
			t.Errorf("%d: answered %d %s after %d and %d requests", status, got, out, first.asked(), second.asked())
		}
		if !b.use(0).Unsent || b.use(1).Unsent {
			t.Errorf("%d: settled by %+v, then %+v", status, b.use(0), b.use(1))
		}
	}
	// Soon better.
	u := newUpstream(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n < 2 {
			busy(429)(n, w, r)
			return
		}
		sse(chatStream)(n, w, r)
	})
	b := newBench(t, provider(money.ModelCompatible, "a", u.URL))
	var waited []time.Duration
	b.conf.Pause = func(_ context.Context, d time.Duration) { waited = append(waited, d) }
	if status, out := b.post(chatPath, askStream); status != 200 || len(b.till.grants) != 1 {
		t.Errorf("answered %d %s with %d grants", status, out, len(b.till.grants))
	}
	if len(waited) != 2 || waited[0] < time.Second || waited[1] < time.Second {
		t.Errorf("asked to wait for a second, it waited %v", waited)
	}
	// Nobody better.
	u = newUpstream(t, busy(429))
	b = newBench(t, provider(money.ModelCompatible, "a", u.URL))
	if status, out := b.post(messagesPath, ask); status != 429 {
		t.Errorf("answered %d %s, want 429", status, out)
	}
	// Not there.
	gone := newUpstream(t, nil)
	gone.Close()
	b = newBench(t, provider(money.ModelCompatible, "a", gone.URL))
	status, out := b.post(chatPath, ask)
	if status != 502 || !b.use(0).Unsent {
		t.Errorf("answered %d %s, settled by %+v", status, out, b.use(0))
	}
	wantText(t, out, "upstream_unreachable")
}

func TestRefusalsOfUpstreams(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		upstream, status int
		text             string
	}{
		{400, 400, "too long"}, {401, 502, "upstream_refused"}, {403, 502, "upstream_refused"}, {404, 404, "model_not_found"},
		{413, 413, "too long"},
		{302, 502, "upstream_error"}, {418, 502, "upstream_error"},
	} {
		u := newUpstream(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
			w.WriteHeader(c.upstream)
			io.WriteString(w, `{"type":"error","error":{"type":"x","message":"too long, your key is `+canary+`"}}`)
		})
		b := newBench(t, provider(money.ModelAnthropic, "up", u.URL))
		for _, path := range []string{chatPath, messagesPath} {
			status, out := b.post(path, ask)
			if status != c.status {
				t.Errorf("%d at %s: answered %d %s, want %d", c.upstream, path, status, out, c.status)
			}
			wantText(t, out, c.text)
		}
		if !b.use(0).Unsent || u.asked() != 2 {
			t.Errorf("%d: asked %d times, settled by %+v", c.upstream, u.asked(), b.use(0))
		}
	}
}

// An answer that breaks off, hangs or is garbage: the client gets an error, and the call is
// settled with no less than the upstream can bill.
func TestAnswersThatBreakOffAreSettledByWhatWasStreamed(t *testing.T) {
	t.Parallel()
	bound := int64(len(askStream)) + frameTokens
	half := chatStream[:strings.Index(chatStream,
		`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},`)]
	for name, c := range map[string]struct {
		answer func(int, http.ResponseWriter, *http.Request)
		kind   money.ModelKind
		model  string
		status int
		text   string
		in     int64
		out    int64
	}{
		"a half stream": {sse(half), money.ModelCompatible, "m", 200, "upstream_broke_off", bound, 5},
		"a half stream that hid its thinking": {sse(half), money.ModelCompatible, "o3-x", 200, "upstream_broke_off",
			bound + 3, 100},
		"a stream that stands still": {func(_ int, w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, half)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, money.ModelCompatible, "m", 200, "upstream_stalled", bound, 5},
		"garbage in the middle": {sse(half + "data: {\"choi\n\n"), money.ModelCompatible, "m", 200, "no answer", bound, 5},
		"garbage": {sse("<html>it works</html>"), money.ModelCompatible, "m", 502,
			"upstream_broke_off", bound, 0},
		"no JSON": {sse("data: hello\n\n"), money.ModelCompatible, "m", 502, "upstream_garbage", bound, 0},
		"half of messages": {sse(messagesStream[:strings.Index(messagesStream, "event: message_delta")]),
			money.ModelAnthropic, "m", 200, "upstream_broke_off", 28, 18},
		"an error in the middle": {sse(half + "data: {\"error\":{\"message\":\"out of memory " + canary + "\"}}\n\n"),
			money.ModelCompatible, "m", 200, "out of memory", bound, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUpstream(t, c.answer)
			b := newBench(t, provider(c.kind, "up", u.URL))
			if c.text == "upstream_stalled" {
				b.conf.Idle = 2 * time.Second
			}
			path := chatPath
			if c.kind == money.ModelAnthropic {
				path = messagesPath
			}
			status, out := b.post(path, strings.Replace(askStream, `"m"`, `"`+c.model+`"`, 1))
			if status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
			wantText(t, out, c.text)
			use := b.use(0)
			if use.Unsent || use.InputTokens != c.in || use.OutputTokens != c.out {
				t.Errorf("settled by %+v, want %d in and %d out", use, c.in, c.out)
			}
			if g := b.till.grants[0]; use.Cost > g.Amount {
				t.Errorf("cost %d is beyond the grant of %d", use.Cost, g.Amount)
			}
		})
	}
}

func TestLiesAboutUsage(t *testing.T) {
	t.Parallel()
	lie := func(usage string) string {
		return `{"object":"chat.completion","choices":[{"index":0,"message":{"content":"` + strings.Repeat("word ", 100) +
			`"},"finish_reason":"stop"}],"usage":` + usage + `}`
	}
	for usage, want := range map[string]struct{ in, out int64 }{
		`null`: {int64(len(ask)) + frameTokens, 100},
		`{"prompt_tokens":-5,"completion_tokens":-1,"total_tokens":0}`: {int64(len(ask)) +
			frameTokens, 100},
		`{"prompt_tokens":3,"completion_tokens":90000000000000,"total_tokens":9}`: {int64(len(ask)) +
			frameTokens, 100},
		`{"prompt_tokens":3,"completion_tokens":20,"total_tokens":5000}`: {3,
			4997}, // thinking in the total only
		`{"prompt_tokens":3,"completion_tokens":99,"total_tokens":102}`:                           {3, 99},
		`{"prompt_tokens":3,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":900}}`: {0, 2},
	} {
		u := newUpstream(t, replay("application/json", lie(usage)))
		b := newBench(t, provider(money.ModelCompatible, "up", u.URL))
		if status, out := b.post(chatPath, ask); status != 200 {
			t.Fatal(status, out)
		}
		if use := b.use(0); use.InputTokens != want.in || use.OutputTokens != want.out {
			t.Errorf("%s: settled by %+v, want %+v", usage, use, want)
		}
	}
}

func TestAnUpstreamThatIgnoresItsBoundIsCutOff(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"more "}}]}`+"\n\n"); err != nil {
				return
			}
		}
	})
	b := newBench(t, provider(money.ModelCompatible, "up", u.URL))
	status, out := b.post(chatPath, askStream)
	if n := strings.Count(out, "more "); status != 200 || n > 100+100/4+eventSlack+1 {
		t.Errorf("status %d, %d pieces passed of 100 tokens", status, n)
	}
	wantText(t, out, "output_limit")
	if use := b.use(0); use.OutputTokens != 100 {
		t.Errorf("settled by %+v, want all that was granted", use)
	}
}

func TestACallEndsWithItsRun(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	u := newUpstream(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"x"}}]}`+"\n\n")
			w.(http.Flusher).Flush()
			time.Sleep(50 * time.Millisecond)
		}
		close(gone)
	})
	b := newBench(t, provider(money.ModelCompatible, "up", u.URL))
	status, out, err := b.hear(t.Context(), chatPath, askStream, func(soFar string) {
		if strings.Contains(soFar, `"x"`) {
			b.ended.Store(true)
		}
	})
	if status != 200 || err != nil {
		t.Fatal(status, out, err)
	}
	wantText(t, out, "run_not_running")
	<-gone
	if use := b.use(0); use.Unsent || use.OutputTokens == 0 {
		t.Errorf("settled by %+v", use)
	}
	if status, out = b.post(chatPath, ask); status != 403 {
		t.Errorf("after the end: %d %s", status, out)
	}
}

func TestAClientThatGoesAwayEndsItsCall(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	u := newUpstream(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"hello"}}]}`+"\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	})
	b := newBench(t, provider(money.ModelCompatible, "up", u.URL))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	_, _, _ = b.hear(ctx, chatPath, askStream, func(soFar string) {
		if strings.Contains(soFar, "hello") {
			leave()
		}
	})
	<-gone
	for range 3000 {
		b.till.mu.Lock()
		n := len(b.till.uses)
		b.till.mu.Unlock()
		if n == 1 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if use := b.use(0); use.Unsent || use.OutputTokens != 5 {
		t.Errorf("settled by %+v", use)
	}
}

func TestWhatHasNoPriceIsNotCalled(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, sse(chatStream))
	p := provider(money.ModelCompatible, "up", u.URL)
	b := newBench(t, p)
	b.scene.companys = nil
	status, out := b.post(chatPath, ask)
	if status != 402 || u.asked() != 0 {
		t.Errorf("answered %d %s", status, out)
	}
	wantText(t, out, "no_price")
	p.Free = true
	b.scene.providers = []money.ModelProvider{p}
	if status, out = b.post(chatPath, askStream); status != 200 {
		t.Errorf("free: %d %s", status, out)
	}
	if use, a := b.use(0), b.till.asks[0]; use.Cost != 0 || a.Want != 0 || use.OutputTokens != 2 {
		t.Errorf("free: asked for %+v, settled by %+v", a, use)
	}
}

func TestRequestsThatCanNotBePaidForAreRefused(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, sse(chatStream))
	b := newBench(t, provider(money.ModelOpenAI, "up", u.URL))
	for _, c := range []struct{ path, body, text string }{
		{chatPath, `[]`, "not a JSON object"},
		{chatPath, `{"messages":[]}`, "model"},
		{chatPath, `{"model":"m","max_tokens":0}`, "max_tokens"},
		{chatPath, `{"model":"m","max_tokens":"9"}`, "max_tokens"},
		{chatPath, `{"model":"m","n":99}`, "n:"},
		{chatPath, `{"model":"m","modalities":["audio"]}`, "modalities"},
		{chatPath, `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}]}`,
			"fetches"},
		{chatPath, `{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"x"}}]}]}`,
			"paid for"},
		{"/v1/responses", `{"model":"m","previous_response_id":"r"}`, "previous_response_id"},
		{"/v1/responses", `{"model":"m","input":"x","background":true}`, "background"},
		{"/v1/nothing", `{}`, "not_found"},
	} {
		status, out := b.post(c.path, c.body)
		if status < 400 || status > 404 {
			t.Errorf("%s: status %d", c.body, status)
		}
		wantText(t, out, c.text)
	}
	if status, _ := b.post(chatPath, `{"model":"`+strings.Repeat("x", maxBody)+`"}`); status != 413 {
		t.Errorf("too long: %d", status)
	}
	if u.asked() != 0 || len(b.till.asks) != 0 {
		t.Errorf("asked %d times, reserved %d times", u.asked(), len(b.till.asks))
	}
}

// Callers that are refused together retry at different times, also if the upstream says when.
// They wait longer each time, at least as long as asked, but not for ever.
func TestWaitsBetweenAttemptsDiffer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n           int
		after       time.Duration
		least, most time.Duration
	}{
		{1, 0, firstWait / 2, firstWait},
		{2, 0, firstWait, 2 * firstWait},
		{2, time.Millisecond, firstWait, 2 * firstWait},
		{1, time.Second, time.Second, time.Second + firstWait/2},
		{2, time.Hour, maxWait, maxWait + firstWait},
		{9, 0, maxWait / 2, maxWait},
	} {
		seen := map[time.Duration]bool{}
		for range 50 {
			got := backoff(c.n, c.after)
			if seen[got] = true; got < c.least || got >= c.most {
				t.Errorf("after attempt %d, asked for %v: %v, want %v to %v", c.n, c.after, got, c.least, c.most)
			}
		}
		if len(seen) < 25 {
			t.Errorf("after attempt %d, asked for %v: 50 callers wait %d different times", c.n, c.after, len(seen))
		}
	}
}

func TestEmbeddings(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, replay("application/json",
		`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1]}],"model":"e",`+
			`"usage":{"prompt_tokens":5,"total_tokens":5}}`))
	b := newBench(t, provider(money.ModelAnthropic, "claude", u.URL), provider(money.ModelOllama, "box", u.URL))
	status, out := b.post("/v1/embeddings", `{"model":"e","input":"hello"}`)
	if status != 200 {
		t.Fatal(status, out)
	}
	wantText(t, out, `"embedding":[0.1]`)
	if use := b.use(0); use.InputTokens != 5 || use.OutputTokens != 0 || use.Biller != "box" ||
		u.paths[0] != "/embeddings" {
		t.Errorf("settled by %+v at %s", use, u.paths[0])
	}
}

func TestTokensAreCountedWithoutMoney(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, replay("application/json", `{"input_tokens":14}`))
	b := newBench(t, provider(money.ModelAnthropic, "claude", u.URL))
	if status, out := b.post(messagesPath+"/count_tokens", `{"model":"m","messages":[]}`); status != 200 ||
		out != `{"input_tokens":14}` {
		t.Error(status, out)
	}
	b.scene.providers[0].Kind = money.ModelOllama
	if status, out := b.post(messagesPath+"/count_tokens", `{"model":"m","messages":[]}`); status != 200 ||
		out != `{"input_tokens":7}` {
		t.Error(status, out)
	}
	if len(b.till.asks) != 0 {
		t.Error("counting asked for money")
	}
}

func TestRouting(t *testing.T) {
	t.Parallel()
	named := func(name string, kind money.ModelKind, priority int, models ...string) money.ModelProvider {
		p := money.ModelProvider{ID: name, Name: name, Kind: kind, Priority: priority}
		for _, m := range models {
			from, to, _ := strings.Cut(m, "=")
			p.Models = append(p.Models, money.ModelRoute{Name: from, As: to})
		}
		return p
	}
	gpu := named("gpu", money.ModelVLLM, 0, "qwen*")
	gpu.Labels = []string{"gpu=yes"}
	off := named("off", money.ModelOpenAI, -9)
	off.Disabled = true
	providers := []money.ModelProvider{
		named("claude", money.ModelAnthropic, 0), named("openai", money.ModelOpenAI, 0),
		named("router", money.ModelOpenRouter, 0),
		named("box", money.ModelOllama, 0), named("cheap", money.ModelCompatible, 5, "tier/cheap=small-1", "gpt-4o-mini"),
		named("cheaper", money.ModelCompatible, 1, "tier/cheap=tiny"),
		named("cpp", money.ModelLlamaCpp, 0, "local/gemma=gemma-3"), gpu, off,
	}
	for name, want := range map[string]string{
		"claude-sonnet-4-5":         "claude:claude-sonnet-4-5 box:claude-sonnet-4-5",
		"gpt-4o-mini":               "cheap:gpt-4o-mini openai:gpt-4o-mini box:gpt-4o-mini",
		"router/anthropic/claude-x": "router:anthropic/claude-x box:router/anthropic/claude-x",
		"local/llama3":              "box:llama3",
		"local/gemma":               "box:gemma cpp:gemma-3",
		"tier/cheap":                "cheaper:tiny cheap:small-1",
		"tier/none":                 "",
		"cheap/other":               "box:cheap/other",
		"qwen3":                     "box:qwen3",
		"openai/gpt-x":              "openai:gpt-x box:openai/gpt-x",
	} {
		var got []string
		for _, t := range (scene{providers: providers}).targetsOf(name) {
			got = append(got, t.p.Name+":"+t.model)
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%s: %q, want %q", name, g, want)
		}
	}
	if got := (scene{providers: providers, labels: []string{"gpu=yes"}}).targetsOf("qwen3"); len(got) != 2 ||
		got[0].p.Name != "gpu" {
		t.Errorf("on a node with a GPU: %v", got)
	}
}

// A changed price applies to later calls. A call in progress is settled at the price at which
// it was reserved, also if it breaks off.
func TestAPriceThatChangesMeanwhile(t *testing.T) {
	t.Parallel()
	var scenes atomic.Pointer[scene]
	tenfold := func() {
		s := *scenes.Load()
		p := dear("*")
		s.companys = []money.ModelPrice{{Model: "*", Input: 10 * p.Input, Output: 10 * p.Output, CacheRead: 10 * p.CacheRead,
			CacheWrite: 10 * p.CacheWrite}}
		scenes.Store(&s)
	}
	for name, c := range map[string]struct {
		answer      string
		least, most core.Money // of the first call
	}{
		"to its end": {chatStream, cents(5, 4, 2), cents(5, 4, 2)},
		"broken off": {chatStream[:strings.Index(chatStream,
			`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{}`)], 1,
			cents(3000, 0, 100)},
	} {
		u := newUpstream(t, func(n int, w http.ResponseWriter, r *http.Request) {
			tenfold()
			sse(c.answer)(n, w, r)
		})
		b := newBench(t, provider(money.ModelCompatible, "up", u.URL))
		scenes.Store(&b.scene)
		b.look = func(Caller) (scene, error) { return *scenes.Load(), nil }
		b.post(chatPath, askStream)
		b.post(chatPath, askStream)
		first, second := b.use(0).Cost, b.use(1).Cost
		if first < c.least || first > c.most || second != 10*first {
			t.Errorf("%s: settled by %d, then by %d, want %d to %d and ten times that", name, first, second, c.least, c.most)
		}
	}
}

func TestPrices(t *testing.T) {
	t.Parallel()
	p := money.ModelProvider{Name: "up", Kind: money.ModelOpenAI}
	ours, all := []money.ModelPrice{{Model: "gpt-*", Input: 1}, {Model: "up/gpt-4o", Input: 2}},
		[]money.ModelPrice{{Model: "gpt-4o", Input: 3}, {Model: "o3", Input: 4}}
	for model, want := range map[string]int64{"gpt-4o": 2, "gpt-9": 1, "o3": 4, "gpt-5": 1, "o4-mini": 110_000_000,
		"o4-mini-2025-04-16": 110_000_000, "o4-mini-max": -1, "x": -1} {
		got, ok := priceOf(p, model, ours, all)
		if ok != (want >= 0) || ok && got.Input != want {
			t.Errorf("%s: %+v %t, want %d", model, got, ok, want)
		}
	}
	if got := times(1, 1); got != 1 {
		t.Errorf("a part of a micro-cent is %d, want it rounded up", got)
	}
	if got := times(money.MaxEventTokens, money.MaxModelPrice); got != 1_000_000_000_000_000_000 {
		t.Errorf("the most that can be: %d", got)
	}
	if got := times(1<<62, 1<<62); got != core.MaxMoney {
		t.Errorf("beyond: %d", got)
	}
	for n := range int64(2000) {
		m := core.Money(n * 37)
		if k := affordable(m, 2_999_999); times(k, 2_999_999) > m || times(k+1, 2_999_999) <= m {
			t.Fatalf("%d pays for %d tokens", m, k)
		}
	}
}

func TestOnlyWhatRunsAtTheClientAndCostsNothingMoreIsHandedOn(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, replay("application/json",
		`{"type":"message","content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`))
	b := newBench(t, provider(money.ModelAnthropic, "up", u.URL))
	status, out := b.post(messagesPath+"?beta=true",
		`{"model":"m","max_tokens":5,"speed":"fast","service_tier":"auto","mcp_servers":[{}],"messages":[],`+
			`"tools":[{"type":"web_search_20250305","name":"web_search"},{"type":"bash_20250124","name":"bash"}]}`,
		"anthropic-beta", "claude-code-20250219,context-1m-2025-08-07,fine-grained-tool-streaming-2025-05-14", "x-api-key",
		"pcp_run_token")
	if status != 200 {
		t.Fatal(status, out)
	}
	for _, bad := range []string{"speed", "service_tier", "mcp_servers", "web_search"} {
		if strings.Contains(u.body(0), bad) {
			t.Errorf("%s was handed on: %s", bad, u.body(0))
		}
	}
	wantText(t, u.body(0), "bash_20250124")
	h := u.heads[0]
	if h.Get("anthropic-beta") != "claude-code-20250219,fine-grained-tool-streaming-2025-05-14" ||
		h.Get("x-api-key") != canary || h.Get("anthropic-version") == "" || h.Get("Authorization") != "" {
		t.Errorf("headers %v", h)
	}
}

func TestRefusalsOfTheMesh(t *testing.T) {
	t.Parallel()
	r := ledger.Refuse(ledger.Conflict, nil, "no").(*ledger.Refusal)
	for code, want := range map[string]int{"budget_exceeded": 402, "budget_paused": 402, "": 402, "run_not_running": 403,
		"agent_stopped": 403} {
		r.ErrCode = code
		if got := asRefusal(r); got.status != want {
			t.Errorf("%q: %d, want %d", code, got.status, want)
		}
	}
}

// A node without a data key, such as an untrusted one, calls no upstream that needs a key. Its
// refusal says so and reveals nothing of the key.
func TestANodeWithoutDataKeyHasNoKeys(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, sse(chatStream))
	b := newBench(t, provider(money.ModelCompatible, "up", u.URL))
	b.keyOf = b.openKey
	status, out := b.post(chatPath, ask)
	if status != 503 || u.asked() != 0 || len(b.till.asks) != 0 {
		t.Errorf("answered %d %s after %d requests and %d reservations", status, out, u.asked(), len(b.till.asks))
	}
	wantText(t, out, "no_key")
	b.scene.providers[0].Sealed = ""
	if status, out = b.post(chatPath, askStream); status != 200 || u.heads[0].Get("Authorization") != "" {
		t.Errorf("an upstream without a key: %d %s", status, out)
	}
}

// A node embeds for a company outside of any run, paid by an agent as its calls are.
func TestEmbeddingOutsideOfRuns(t *testing.T) {
	t.Parallel()
	two := `{"data":[{"index":1,"embedding":[0.5,1]},{"index":0,"embedding":[2,0]}],"usage":{"prompt_tokens":7}}`
	answers := []string{two, `{"data":[{"index":0,"embedding":[1]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`, ""}
	u := newUpstream(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if answers[n] == "" {
			http.Error(w, `{"error":{"message":"input is too large to process"}}`,
				http.StatusInternalServerError) // as llama.cpp has it
			return
		}
		io.WriteString(w, answers[n])
	})
	b := newBench(t, provider(money.ModelOllama, "box", u.URL))
	b.sight = func(who Caller) (scene, error) { return b.scene, nil }
	ask := func() ([][]float32, error) {
		return b.Embed(t.Context(), Caller{Company: "acme", Agent: "ada", Run: "ignored"}, "box/e", []string{"a", "b"})
	}
	got, err := ask()
	if err != nil || fmt.Sprint(got) != "[[2 0] [0.5 1]]" {
		t.Fatal(got, err)
	}
	if use := b.use(0); use.InputTokens != 7 || use.Cost == 0 || b.till.asks[0].Agent != "ada" ||
		b.till.asks[0].Run != "" {
		t.Errorf("settled by %+v for %+v", use, b.till.asks[0])
	}
	for range 3 {
		if got, err := ask(); err == nil || !strings.Contains(err.Error(), "what are no vectors of 2 texts") {
			t.Errorf("took %v, %v", got, err)
		}
	}
	if _, err := ask(); !errors.Is(err, ErrTexts) || !strings.Contains(err.Error(), "too large to process") {
		t.Errorf("a text that is too long: %v", err)
	}
	b.till.refuse = ledger.Refuse(ledger.Conflict, nil, "no money")
	if _, err := ask(); err == nil || err.Error() != "no money" {
		t.Errorf("without money: %v", err)
	}
}
