package llm

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/money"
)

// A request as Google's clients send it: calls of functions have no IDs.
const generateAsk = `{"systemInstruction":{"role":"user","parts":[{"text":"Be brief"}]},"contents":[
	{"role":"user","parts":[{"text":"hi"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]},
	{"role":"model","parts":[{"thought":true,"text":"hm"},{"functionCall":{"name":"ls","args":{"dir":"a"}}},` +
	`{"functionCall":{"name":"ls","args":{"dir":"b"}}}]},
	{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"a b"}}},` +
	`{"functionResponse":{"name":"ls","response":{"output":"c"}}}]}],
	"tools":[{"functionDeclarations":[{"name":"ls","description":"list","parameters":{"type":"OBJECT",` +
	`"properties":{"dir":{"type":"STRING"}}}}]},{"googleSearch":{}}],
	"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["ls"]}},
	"generationConfig":{"maxOutputTokens":100,"temperature":0.5,"topP":0.9,"stopSequences":["END"],` +
	`"thinkingConfig":{"thinkingBudget":9}},"safetySettings":[]}`

func TestGoogleClientsAreServedByEveryUpstream(t *testing.T) {
	t.Parallel()
	chatOnce := `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,` +
		`"message":{"role":"assistant","content":"Hello","tool_calls":[{"id":"call_1","type":"function",` +
		`"function":{"name":"ls","arguments":"{\"dir\":\"/\"}"}}]},"finish_reason":"tool_calls"}],` +
		`"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`
	messagesOnce := `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text",` +
		`"text":"Hello"},{"type":"tool_use","id":"toolu_1","name":"ls","input":{"dir":"/"}}],` +
		`"stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":2}}`
	for name, c := range map[string]struct {
		kind         money.ModelKind
		once, stream string
		sent, events []string
	}{
		"by chat": {money.ModelCompatible, chatOnce, chatTools,
			[]string{`{"content":"Be brief","role":"system"}`, `"url":"data:image/png;base64,AAAA"`,
				`"arguments":"{\"dir\":\"a\"}"`, `"tool_call_id":"call_1"`, `"tool_call_id":"call_2"`,
				`"type":"object"`, `"type":"string"`, `"max_tokens":100`, `"temperature":0.5`, `"stop":["END"]`},
			[]string{`"functionCall":{"args":{"dir":"/tmp"},"id":"call_1","name":"ls"}`, `"finishReason":"STOP"`,
				`"candidatesTokenCount":12`, `"promptTokenCount":50`}},
		"by messages": {money.ModelAnthropic, messagesOnce, messagesStream,
			[]string{`"system":"Be brief"`, `"tool_use_id":"call_2"`, `"input_schema":{`, `"media_type":"image/png"`,
				`"max_tokens":100`, `"stop_sequences":["END"]`},
			[]string{`"parts":[{"text":"Hello"}]`, `"functionCall":{"args":{"dir":"/"},"id":"toolu_1","name":"ls"}`,
				`"cachedContentTokenCount":7`, `"candidatesTokenCount":15`}},
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
			const at = "/gemini/v1beta/models/gemini-2.5-pro:"
			status, out := b.post(at+"generateContent", generateAsk)
			var got struct {
				Candidates []struct {
					Content struct {
						Role  string
						Parts []json.RawMessage
					}
					FinishReason string
				}
				UsageMetadata struct{ TotalTokenCount int64 }
			}
			if err := json.Unmarshal([]byte(out), &got); err != nil || status != 200 || len(got.Candidates) != 1 ||
				got.Candidates[0].Content.Role != "model" || len(got.Candidates[0].Content.Parts) != 2 ||
				got.Candidates[0].FinishReason != "STOP" || got.UsageMetadata.TotalTokenCount != 11 {
				t.Fatal(status, out, err)
			}
			wantText(t, out, `{"text":"Hello"}`, `"functionCall":{"args":{"dir":"/"}`, `"modelVersion":"gemini-2.5-pro"`)
			wantText(t, u.body(0), c.sent...)
			for _, not := range []string{"thought", "googleSearch", "STRING", "safety"} {
				if strings.Contains(u.body(0), not) {
					t.Errorf("%s was handed on: %s", not, u.body(0))
				}
			}
			if use := b.use(0); use.InputTokens != 9 || use.OutputTokens != 2 || use.Cost != cents(9, 0, 2) {
				t.Errorf("settled by %+v", use)
			}
			status, out = b.post(at+"streamGenerateContent?alt=sse", generateAsk)
			if status != 200 {
				t.Fatal(status, out)
			}
			wantText(t, out, c.events...)
			checkEvents(t, out)
			if use := b.use(1); use.OutputTokens < 12 || use.InputTokens < 25 || use.Cost == 0 {
				t.Errorf("stream settled by %+v", use)
			}
			status, out = b.post(at+"streamGenerateContent", generateAsk) // without alt it is a list
			var list []any
			if json.Unmarshal([]byte(out), &list) != nil || status != 200 || len(list) != 1 {
				t.Errorf("a list came as %d %s", status, out)
			}
		})
	}
}

func TestWhatGoogleClientsAreRefused(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, replay("application/json",
		`{"choices":[{"message":{"content":"x"},"finish_reason":"length"}],"usage":{"prompt_tokens":1,`+
			`"completion_tokens":1}}`))
	up := provider(money.ModelCompatible, "up", u.URL)
	up.Models = []money.ModelRoute{{Name: "gemini-*", As: "small"}, {Name: "local/qwen:7b", As: "qwen"}}
	b := newBench(t, up)
	const at = "/gemini/v1beta/models/"
	small := `{"contents":[{"parts":[{"text":"hi"}]}]`
	for _, test := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"gemini-2.5-pro:generateContent", `[]`, 400, `"status":"INVALID_ARGUMENT"`},
		{"gemini-2.5-pro:generateContent", small + `,"cachedContent":"cachedContents/1"}`, 400, "paid for in advance"},
		{"gemini-2.5-pro:generateContent", small + `,"generationConfig":{"candidateCount":2}}`, 400, "candidateCount"},
		{"gemini-2.5-pro:generateContent", small + `,"generationConfig":{"maxOutputTokens":0}}`, 400, "maxOutputTokens"},
		{"gemini-2.5-pro:generateContent", small + `,"generationConfig":{"responseModalities":["AUDIO"]}}`, 400, "only text"},
		{"gemini-2.5-pro:generateContent", `{"contents":[{"parts":[{"fileData":{"fileUri":"gs://x"}}]}]}`, 400,
			"can be translated"},
		{"gemini-2.5-pro:generateContent", `{"contents":[{"parts":[{"functionResponse":{"name":"x","response":{}}}]}]}`, 400,
			"nobody called"},
		{"other:generateContent", small + `}`, 404, `"status":"NOT_FOUND"`},
		{"gemini-2.5-pro:batchEmbed", small + `}`, 404, "batchEmbed"},
		{"gemini-2.5-pro", small + `}`, 404, ""},
		{"local/qwen:7b:generateContent", small + `}`, 200, `"finishReason":"MAX_TOKENS"`},
		{"local%2Fqwen:7b:generateContent", small + `}`, 200, `"modelVersion":"qwen"`},
		{"gemini-2.5-pro:countTokens", small + `}`, 200, `"totalTokens":`},
		{"other:countTokens", small + `}`, 404, ""},
	} {
		if status, out := b.post(at+test.path, test.body); status != test.status || !strings.Contains(out, test.want) {
			t.Errorf("%s %s: %d %s, want %d with %s", test.path, test.body, status, out, test.status, test.want)
		}
	}
	b.till.left = 0
	if status, out := b.post(at+"gemini-2.5-pro:generateContent", small+`}`); status != 402 || !strings.Contains(out,
		`"status":"RESOURCE_EXHAUSTED"`) || !strings.Contains(out, `"reason":"budget_exceeded"`) {
		t.Errorf("without money: %d %s", status, out)
	}
	for path, want := range map[string]string{"/llm/gemini/v1beta/models": `"name":"models/local/qwen:7b"`,
		"/llm/gemini/v1beta/models/gemini-2.5-pro": `"supportedGenerationMethods"`, "/llm/gemini": "",
		"/llm/gemini/v2/models": "NOT_FOUND"} {
		w := httptest.NewRecorder()
		b.Serve(w, httptest.NewRequest("GET", path, nil), Caller{"acme", "ada", "run"})
		if (w.Code != 200) != (want == "NOT_FOUND") || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// FuzzGenerate: any request is refused, or written as JSON for every upstream with
// the bound that was granted.
func FuzzGenerate(f *testing.F) {
	f.Add([]byte(generateAsk))
	f.Add([]byte(`{"contents":[{"parts":[{"functionCall":{"name":"a"}}]}],` +
		`"generationConfig":{"responseSchema":{"type":"ARRAY","items":[{"type":7}]}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		shaped, bad := generateFields("m", true, false, body)
		if bad != nil {
			return
		}
		p, bad := planOf(generate, shaped)
		if bad != nil {
			return
		}
		for _, kind := range money.ModelKinds {
			to := money.ModelProvider{Kind: kind, BaseURL: "https://up/v1beta/openai"}
			up, _ := speaks(to, generate)
			b, r, bad := p.body(target{p: to, model: "up-model"}, up, 7)
			if bad != nil {
				continue
			}
			if up == generate {
				checkGenerate(t, b)
				continue
			}
			var out struct {
				Model string `json:"model"`
				A     *int64 `json:"max_tokens"`
				B     *int64 `json:"max_completion_tokens"`
			}
			if e := json.Unmarshal(b, &out); e != nil || out.Model != "up-model" || r == nil || out.A == nil && out.B == nil ||
				out.A != nil && *out.A > 7 || out.B != nil && *out.B > 7 {
				t.Fatalf("%s: %v", b, e)
			}
		}
	})
}
