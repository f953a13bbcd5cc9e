package llm

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/money"
)

// FuzzStream: any bytes end in io.EOF or an error, events never contain more than the input, and
// an encoded event is read back.
func FuzzStream(f *testing.F) {
	for _, s := range []string{chatStream, messagesStream, ": ping\n\n", "data: a\ndata: b\r\n\r\n",
		"\xef\xbb\xbfdata:x\n\n", "data", "event: e\n\n\n\n", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, raw := newStream(strings.NewReader(text)), 0
		for n := 0; ; n++ {
			e, err := s.next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				break
			}
			if n > len(text) {
				t.Fatal("more events than bytes")
			}
			raw += len(e.Raw)
			lines := strings.Count(string(e.Data), "\n")
			if lines == 0 && len(e.Data) > 0 && !strings.Contains(string(e.Data), "\r") {
				again, err := newStream(strings.NewReader(string(appendEvent(nil, "", e.Data)))).next()
				if err != nil || string(again.Data) != strings.TrimPrefix(string(e.Data), "") {
					t.Fatalf("%q came back as %q, %v", e.Data, again.Data, err)
				}
			}
		}
		if raw > len(text)+2 {
			t.Fatalf("%d bytes of events in %d", raw, len(text))
		}
	})
}

// hearers are the dialects in which answers are encoded for clients.
var hearers = []dialect{chat, messages, responses, generate}

// FuzzHearing: no upstream can make the gateway panic, count a negative usage, or send a client
// invalid JSON.
func FuzzHearing(f *testing.F) {
	for _, s := range []string{chatStream, chatTools, messagesStream, googleStream,
		`{"choices":[{"message":{"tool_calls":[{"index":-7,"function":{"name":"x","arguments":"{"}}]}}]}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range []dialect{chat, messages, responses, generate} {
			ear, m := newHearing(d), &meter{most: 100}
			tellings := []telling{}
			var outs [][]byte
			for _, to := range hearers {
				tell := newTelling(to, &request{model: "m"}, true, time.Unix(1, 0))
				tellings, outs = append(tellings, tell), append(outs, tell.begin())
			}
			var all []delta
			s := newStream(strings.NewReader(text))
			for {
				e, err := s.next()
				if err != nil {
					break
				}
				h := ear.event(e)
				m.count(h.deltas)
				m.learn(h.use)
				all = append(all, h.deltas...)
				for i, tell := range tellings {
					for _, x := range h.deltas {
						outs[i] = append(outs[i], tell.delta(x)...)
					}
				}
			}
			u := m.settled(1000, false)
			if min(u.input, u.cacheRead, u.cacheWrite, u.long, u.output) < 0 || u.cost(dear("m")) < 0 {
				t.Fatalf("settled by %+v", u)
			}
			for i, tell := range tellings {
				checkEvents(t, string(append(outs[i], tell.end(u)...)))
				if !json.Valid(newTelling(hearers[i], &request{model: "m"}, true, time.Unix(1, 0)).whole(gather(all), u)) {
					t.Fatal("an answer is no JSON")
				}
			}
			newHearing(d).whole([]byte(text))
		}
	})
}

// FuzzRequest: any request is refused, or has a positive bound and is encoded as JSON for every
// upstream with the granted bound.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{ask, askStream,
		`{"model":"m","input":[{"type":"custom_tool_call","call_id":"a","name":"b","input":"c"}],` +
			`"tools":[{"type":"custom","name":"b"}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"type":"url",` +
			`"url":"u"}}]}],"max_tokens":3,"thinking":{"type":"enabled","budget_tokens":2}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, d := range []dialect{chat, responses, messages, embeddings} {
			p, err := planOf(d, body)
			if err != nil {
				continue
			}
			if p.input < 1 || p.max < 0 || p.least > p.max || p.choices < 1 {
				t.Fatalf("plan %+v", p)
			}
			for _, kind := range money.ModelKinds {
				to := money.ModelProvider{Kind: kind, BaseURL: "https://up/v1beta/openai"}
				up, ok := speaks(to, d)
				if !ok {
					continue
				}
				b, _, err := p.body(target{p: to, model: "up-model"}, up, 7)
				if err != nil {
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
					C     *int64 `json:"max_output_tokens"`
				}
				if e := json.Unmarshal(b, &out); e != nil || out.Model != "up-model" {
					t.Fatalf("%s: %v", b, e)
				}
				if d == embeddings {
					continue
				}
				bounded := map[dialect][]*int64{chat: {out.A, out.B}, messages: {out.A}, responses: {out.C}}[up]
				found := false
				for _, n := range bounded {
					found = found || n != nil
					if n != nil && *n > 7 {
						t.Fatalf("%s: more than was granted", b)
					}
				}
				if !found {
					t.Fatalf("%s: the answer has no bound", b)
				}
			}
		}
	})
}

func TestCustomToolsTravelAsFunctions(t *testing.T) {
	t.Parallel()
	f, _ := parse([]byte(`{"model":"m","input":"x","tools":[{"type":"custom","name":"patch","description":"d"}]}`))
	r, err := read(responses, f)
	if err != nil || !r.custom("patch") {
		t.Fatal(err)
	}
	tell := newTelling(responses, r, false, time.Unix(1, 0))
	out := string(tell.begin())
	for _, d := range []delta{{kind: callDelta, id: "c", name: "patch"}, {kind: argsDelta, text: `{"inp`},
		{kind: argsDelta, text: `ut":"*** Begin"}`}, {kind: stopDelta, stop: stopTools}} {
		out += string(tell.delta(d))
	}
	out += string(tell.end(usage{}))
	wantText(t, out, `"type":"custom_tool_call"`, `"input":"*** Begin"`, "event: response.custom_tool_call_input.done\n")
	checkEvents(t, out)
}
