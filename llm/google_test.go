package llm

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/money"
)

// googleStream is an answer in Google's dialect: thinking, words, two calls.
var googleStream = google(`"candidates":[{"content":{"parts":[{"text":"hm","thought":true}],"role":"model"}}],`+
	`"usageMetadata":{"promptTokenCount":50,"thoughtsTokenCount":4,"totalTokenCount":54}`) +
	google(`"candidates":[{"content":{"parts":[{"text":"Hello"},{"functionCall":{"name":"ls",`+
		`"args":{"dir":"/tmp"}},"thoughtSignature":"c2ln"},{"functionCall":{"id":"own","name":"ls","args":{}}}],`+
		`"role":"model"}}]`) +
	google(`"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP"}],`+
		`"usageMetadata":{"promptTokenCount":50,"candidatesTokenCount":12,"thoughtsTokenCount":4,"totalTokenCount":66}`)

const googleOnce = `{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"Hello"},` +
	`{"functionCall":{"name":"ls","args":{"dir":"/tmp"}},"thoughtSignature":"c2ln"}],"role":"model"},` +
	`"finishReason":"STOP","index":0}],` +
	`"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"thoughtsTokenCount":3,"totalTokenCount":14},` +
	`"modelVersion":"m"}`

// checkGenerate fails unless a request of Google's dialect is bounded by 7, and holds
// nothing but what is known to cost its tokens.
func checkGenerate(t *testing.T, b []byte) {
	t.Helper()
	var out map[string]json.RawMessage
	var config struct {
		Max *int64 `json:"maxOutputTokens"`
	}
	if e := json.Unmarshal(b, &out); e != nil || json.Unmarshal(out["generationConfig"], &config) != nil ||
		config.Max == nil || *config.Max > 7 || *config.Max < 1 {
		t.Fatalf("%s: %v", b, e)
	}
	for name := range out {
		switch name {
		case "contents", "systemInstruction", "tools", "toolConfig", "generationConfig":
		default:
			t.Fatalf("%s: %s", name, b)
		}
	}
	var tools []map[string]json.RawMessage
	if v := out["tools"]; len(v) > 0 && json.Unmarshal(v, &tools) != nil {
		t.Fatalf("%s", b)
	}
	for _, tool := range tools {
		if len(tool) != 1 || tool["functionDeclarations"] == nil {
			t.Fatalf("a tool that runs upstream: %s", b)
		}
	}
}

func googleUp(t *testing.T) (*upstream, money.ModelProvider) {
	u := newUpstream(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ":streamGenerateContent") {
			io.WriteString(w, googleStream)
		} else {
			io.WriteString(w, googleOnce)
		}
	})
	return u, provider(money.ModelGemini, "up", u.URL+"/v1beta/openai")
}

// Google's clients pass to Gemini unchanged, with their signatures and their thinking budget;
// members that cost more than tokens are dropped.
func TestGoogleClientsPassToGemini(t *testing.T) {
	t.Parallel()
	u, p := googleUp(t)
	p.Models = []money.ModelRoute{{Name: "gemini-*", As: "gemini-3-pro"}}
	b := newBench(t, p)
	const at = "/gemini/v1beta/models/gemini-2.5-pro:"
	body := strings.Replace(generateAsk, `{"functionCall":{"name":"ls","args":{"dir":"a"}}}`,
		`{"functionCall":{"name":"ls","args":{"dir":"a"}},"thoughtSignature":"c2lnbmVk"}`, 1)
	status, out := b.post(at+"generateContent", body)
	if status != 200 || out != googleOnce {
		t.Fatal(status, out)
	}
	if u.paths[0] != "/v1beta/models/gemini-3-pro:generateContent" || u.heads[0].Get("X-Goog-Api-Key") != canary ||
		u.heads[0].Get("Authorization") != "" {
		t.Errorf("asked at %s with %v", u.paths[0], u.heads[0])
	}
	wantText(t, u.body(0), `"thoughtSignature":"c2lnbmVk"`, `{"text":"hm","thought":true}`,
		`"thinkingConfig":{"thinkingBudget":9}`, `"maxOutputTokens":100`, `"topP":0.9`, `"stopSequences":["END"]`,
		`"inlineData":{"mimeType":"image/png","data":"AAAA"}`, `"functionResponse":{"name":"ls","response":{"output":"a b"}}`,
		`"parameters":{"type":"OBJECT"`, `"mode":"ANY"`, `"systemInstruction":{"parts":[{"text":"Be brief"}]}`)
	for _, not := range []string{"googleSearch", "safety", `"model":`, `"stream":`, `"list":`} {
		if strings.Contains(u.body(0), not) {
			t.Errorf("%s was handed on: %s", not, u.body(0))
		}
	}
	if use := b.use(0); use.InputTokens != 9 || use.OutputTokens != 5 || use.Cost != cents(9, 0, 5) {
		t.Errorf("settled by %+v", use)
	}
	status, out = b.post(at+"streamGenerateContent?alt=sse", body)
	if status != 200 || out != googleStream {
		t.Error(status, out)
	}
	if use := b.use(1); use.InputTokens != 50 || use.OutputTokens != 16 ||
		u.paths[1] != "/v1beta/models/gemini-3-pro:streamGenerateContent" {
		t.Errorf("settled by %+v, asked at %s", use, u.paths[1])
	}
	if status, out = b.post(at+"streamGenerateContent", body); status != 200 || out != "["+googleOnce+"]" {
		t.Errorf("a list came as %d %s", status, out)
	}
	// An image is bounded as such, not by its few bytes.
	if ask := b.till.asks[0]; ask.Want < cents(imageTokens, 0, 100) {
		t.Errorf("%d was set aside", ask.Want)
	}
	for body, want := range map[string]string{
		`{"contents":[{"parts":[{"inlineData":{"mimeType":"audio/mp3",` +
			`"data":"AAAA"}}]}]}`: "can be translated",
		`{"contents":[{"parts":[{"fileData":{"fileUri":"https://x/y.pdf"}}]}]}`: "can be translated",
		`{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"max_output_tokens":1000000,` +
			`"maxOutputTokens":5,"candidateCount":1,"speechConfig":{"a":1}}}`: "",
	} {
		n := u.asked()
		status, out := b.post(at+"generateContent", body)
		if want != "" && (status != 400 || !strings.Contains(out, want) || u.asked() != n) {
			t.Errorf("%s: %d %s", body, status, out)
		}
		if want == "" && (status != 200 || !strings.Contains(u.body(n), `"generationConfig":{"maxOutputTokens":5}`)) {
			t.Errorf("%s: %d %s, sent %s", body, status, out, u.body(n))
		}
	}
}

// Clients of Anthropic's messages and of OpenAI's responses are translated to Gemini's dialect
// and back: thinking, calls and their results, and the signature that later models require if
// the client keeps none.
func TestOtherClientsAreTranslatedToGemini(t *testing.T) {
	t.Parallel()
	u, p := googleUp(t)
	b := newBench(t, p)
	const talk = `{"model":"gemini-3-pro","max_tokens":100,"stream":true,"system":"Be brief",` +
		`"thinking":{"type":"enabled","budget_tokens":64},"temperature":0.5,"stop_sequences":["END"],"messages":[
		{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image","source":{"type":"base64",` +
		`"media_type":"image/png","data":"AAAA"}}]},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"tool_use",` +
		`"id":"t1","name":"ls","input":{"dir":"a"}},{"type":"tool_use","id":"t2","name":"ls","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"{\"files\":2}"},` +
		`{"type":"tool_result","tool_use_id":"t1","content":"no such thing","is_error":true}]}],
		"tools":[{"name":"ls","description":"list","input_schema":{"type":"object",` +
		`"properties":{"dir":{"type":"string"}},"additionalProperties":false}}],"tool_choice":{"type":"tool","name":"ls"}}`
	status, out := b.post(messagesPath, talk)
	if status != 200 || u.paths[0] != "/v1beta/models/gemini-3-pro:streamGenerateContent" {
		t.Fatal(status, out, u.paths[0])
	}
	wantText(t, u.body(0), `"systemInstruction":{"parts":[{"text":"Be brief"}]}`,
		`{"role":"user","parts":[{"text":"hi"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}`,
		`{"role":"model","parts":[{"thoughtSignature":"skip_thought_signature_validator",`+
			`"functionCall":{"id":"t1","name":"ls","args":{"dir":"a"}}},{"functionCall":{"id":"t2","name":"ls","args":{}}}]}`,
		`{"functionResponse":{"id":"t2","name":"ls","response":{"files":2}}},{"functionResponse":{"id":"t1",`+
			`"name":"ls","response":{"error":"no such thing"}}}`,
		`"parametersJsonSchema":{"type":"object"`,
		`"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["ls"]}}`,
		`"maxOutputTokens":100`, `"thinkingConfig":{"includeThoughts":true}`, `"temperature":0.5`, `"stopSequences":["END"]`)
	wantText(t, out, `"type":"thinking_delta"`, `"text":"Hello"`, `"type":"tool_use"`, `"id":"call_`, `"id":"own"`,
		`"partial_json":"{\"dir\":\"/tmp\"}"`, `"stop_reason":"tool_use"`, `"output_tokens":16`)
	checkEvents(t, out)
	if use := b.use(0); use.InputTokens != 50 || use.OutputTokens != 16 {
		t.Errorf("settled by %+v", use)
	}
	// One of the second generation takes a budget, and looks for no signature.
	status, _ = b.post(messagesPath, strings.Replace(strings.Replace(talk, "gemini-3-pro", "gemini-2.5-pro", 1),
		`"stream":true,`, "", 1))
	if wantText(t, u.body(1), `"thinkingConfig":{"includeThoughts":true,"thinkingBudget":64}`); status != 200 ||
		strings.Contains(u.body(1), anySignature) {
		t.Error(status, u.body(1))
	}
	status, out = b.post("/v1/responses",
		`{"model":"gemini-3-pro","input":"hi","stream":true,"max_output_tokens":50,`+
			`"reasoning":{"summary":"auto"},"text":{"format":{"type":"json_schema","name":"x","schema":{"type":"object"}}}}`)
	wantText(t, out, "response.reasoning_summary_text.delta", `"type":"function_call"`, "response.completed",
		`"output_tokens":16`)
	wantText(t, u.body(2), `"responseMimeType":"application/json"`, `"responseJsonSchema":{"type":"object"}`,
		`"maxOutputTokens":50`, `"includeThoughts":true`)
	if status != 200 {
		t.Error(status, out)
	}
	checkEvents(t, out)
	status, out = b.post(messagesPath,
		`{"model":"gemini-3-pro","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result",`+
			`"tool_use_id":"none","content":"x"}]}]}`)
	if status != 400 || !strings.Contains(out, "answers no call") {
		t.Error(status, out)
	}
}

// A chat passes to Gemini in its OpenAI-compatible dialect, with signatures if its client kept
// none.
func TestChatsWithGeminiAreSigned(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, replay("application/json",
		`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`))
	p := provider(money.ModelGemini, "up", u.URL+"/v1beta")
	b := newBench(t, p)
	talk := `{"model":"gemini-3-pro","messages":[{"role":"user","content":"hi"},{"role":"assistant",` +
		`"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b",` +
		`"type":"function","function":{"name":"f","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"a","content":"1"},{"role":"assistant","tool_calls":[{"id":"c",` +
		`"type":"function","extra_content":{"google":{"thought_signature":"c2ln"}},"function":{"name":"f",` +
		`"arguments":"{}"}}]}]}`
	if status, out := b.post(chatPath, talk); status != 200 || u.paths[0] != "/v1beta/openai/chat/completions" {
		t.Fatal(status, out, u.paths)
	}
	if got := u.body(0); strings.Count(got, anySignature) != 1 || strings.Count(got, `"thought_signature":"c2ln"`) != 1 ||
		strings.Count(got, "extra_content") != 2 {
		t.Errorf("sent %s", got)
	}
	b.post(chatPath, strings.Replace(talk, "gemini-3-pro", "gemini-2.5-pro", 1))
	if strings.Contains(u.body(1), anySignature) {
		t.Errorf("sent %s", u.body(1))
	}
	// Elsewhere than at Google's the kind speaks OpenAI's dialect alone.
	p.BaseURL = u.URL + "/proxy/v1"
	b = newBench(t, p)
	b.post(messagesPath, `{"model":"gemini-3-pro","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`)
	if at := u.paths[len(u.paths)-1]; at != "/proxy/v1/chat/completions" {
		t.Errorf("asked at %s", at)
	}
}

// An answer that Gemini blocks is reported as blocked, and only an answer is paid for as one.
func TestWhatGeminiBlocks(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":12,` +
			`"totalTokenCount":12}}`: `"stop_reason":"refusal"`,
		`{"candidates":[{"finishReason":"SAFETY"}],"usageMetadata":{"promptTokenCount":12,` +
			`"totalTokenCount":12}}`: `"stop_reason":"refusal"`,
		`{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"MAX_TOKENS"}],` +
			`"usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":1}}`: `"stop_reason":"max_tokens"`,
		`{"modelVersion":"m"}`: `upstream_garbage`,
	} {
		u := newUpstream(t, replay("application/json", body))
		b := newBench(t, provider(money.ModelGemini, "up", u.URL+"/v1beta/openai"))
		status, out := b.post(messagesPath,
			`{"model":"gemini-2.5-pro","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`)
		if wantText(t, out, want); (status == 200) != (want != "upstream_garbage") {
			t.Error(status, out)
		}
		if use := b.use(0); status == 200 && (use.InputTokens != 12 || use.OutputTokens > 1) || status != 200 &&
			use.OutputTokens != 9 {
			t.Errorf("%s: settled by %+v", body, use)
		}
	}
}
