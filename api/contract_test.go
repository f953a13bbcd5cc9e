package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// An exchange is one recorded request with its answer.
type exchange struct {
	Name    string            `json:"name"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Request map[string]string `json:"requestHeaders"`
	Body    json.RawMessage   `json:"requestBody"`
	Status  int               `json:"status"`
	Answer  json.RawMessage   `json:"responseBody"`
	number  string
}

func recordings(t *testing.T) []exchange {
	t.Helper()
	dirs := []string{os.Getenv("SELVAGE_CONTRACT"), "../../shared/contract"}
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		files, _ := filepath.Glob(filepath.Join(dir, "http", "[0-9]*.json"))
		if len(files) == 0 {
			continue
		}
		slices.Sort(files)
		var all []exchange
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			e := exchange{number: filepath.Base(f)[:3]}
			if err := json.Unmarshal(b, &e); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			all = append(all, e)
		}
		return all
	}
	t.Skip("the recorded exchanges are not here: set SELVAGE_CONTRACT to the directory that holds http/")
	return nil
}

// Where we answer another status than recorded, on purpose.
var otherStatus = map[string]int{
	"company-create-400-badjson": 400, "issue-create-404-company": 404,
}

// passing are the exchanges that answer as recorded. The test fails when one of
// them stops doing so, and names those that may be added.
var passing = strings.Fields(passList)

var (
	uuidText  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	tokenText = regexp.MustCompile(`pcp_[0-9a-f]{8}…?`)
)

// A replay maps what was recorded to what this run has: IDs and tokens.
type replay struct {
	ids    map[string]string
	tokens map[string]string // by what the recording shows of it
}

func (m *replay) text(s string) string {
	s = uuidText.ReplaceAllStringFunc(s, func(id string) string {
		if ours, ok := m.ids[id]; ok {
			return ours
		}
		return id
	})
	return tokenText.ReplaceAllStringFunc(s, func(short string) string {
		if ours, ok := m.tokens[strings.TrimSuffix(short, "…")]; ok {
			return ours
		}
		return short
	})
}

// learn pairs the IDs of a recorded answer with those of ours, at equal places.
func (m *replay) learn(recorded, ours any) {
	switch r := recorded.(type) {
	case map[string]any:
		o, ok := ours.(map[string]any)
		if !ok {
			return
		}
		for k, v := range r {
			m.learn(v, o[k])
		}
	case []any:
		o, ok := ours.([]any)
		if !ok || len(o) != len(r) {
			return
		}
		for i, v := range r {
			m.learn(v, o[i])
		}
	case string:
		o, ok := ours.(string)
		if !ok {
			return
		}
		if uuidText.MatchString(r) && len(r) == 36 && len(o) == 36 {
			if _, known := m.ids[r]; !known {
				m.ids[r] = o
			}
		}
		if strings.HasPrefix(r, "pcp_") && strings.HasPrefix(o, "pcp_") {
			m.tokens[strings.TrimSuffix(tokenText.FindString(r), "…")] = o
		}
	}
}

// differences compares an answer with the recorded one: the same keys, and the
// same types of values; nulls stand for anything, and keys of ours may be more.
func differences(at string, recorded, ours any, out []string) []string {
	if len(out) > 20 || recorded == nil {
		return out
	}
	if ours == nil {
		return out // null where a value was recorded is a matter of the story's state
	}
	if kind(recorded) != kind(ours) {
		return append(out, fmt.Sprintf("%s is a %s, recorded as %s", at, kind(ours), kind(recorded)))
	}
	switch r := recorded.(type) {
	case map[string]any:
		o := ours.(map[string]any)
		keys := make([]string, 0, len(r))
		for k := range r {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			v, ok := o[k]
			if !ok {
				if uuidText.MatchString(k) { // keyed by an ID
					continue
				}
				out = append(out, at+"."+k+" is missing")
				continue
			}
			out = differences(at+"."+k, r[k], v, out)
		}
	case []any:
		if o := ours.([]any); len(r) > 0 && len(o) > 0 {
			out = differences(at+"[0]", r[0], o[0], out)
		} else if len(r) > 0 {
			out = append(out, at+" is empty")
		}
	}
	return out
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// The recorded story told again, in order, to a server on one node. It has no
// scheduler: exchanges that need a run to end are not on the list.
func TestRecordedExchanges(t *testing.T) {
	all := recordings(t)
	h := newHarness(t)
	m := &replay{ids: map[string]string{}, tokens: map[string]string{}}
	var exact, differing, missing []string
	verdicts := map[string]string{}
	for _, e := range all {
		name := e.number + "-" + e.Name
		got, sent := h.retell(m, e)
		if !sent {
			verdicts[name] = "cannot be sent"
			missing = append(missing, name)
			continue
		}
		var recorded, ours any
		_ = json.Unmarshal(e.Answer, &recorded)
		_ = json.Unmarshal(got.body, &ours)
		m.learn(recorded, ours)
		want := e.Status
		if s, ok := otherStatus[e.Name]; ok {
			want, recorded = s, nil
		}
		switch {
		case got.status == http.StatusNotFound && strings.Contains(string(got.body), "API route not found") && e.Name != "unknown-api-404":
			missing = append(missing, name)
			verdicts[name] = "no such route"
		case got.status != want:
			differing = append(differing, name)
			verdicts[name] = fmt.Sprintf("answered %d %s, recorded %d", got.status, cut(string(got.body), 200), want)
		default:
			diff := differences("", recorded, ours, nil)
			if r, ok := recorded.(map[string]any); ok && want >= 400 && len(diff) == 0 {
				if text, _ := r["error"].(string); m.text(text) != got.field(t, "error") {
					diff = append(diff, fmt.Sprintf("error %q, recorded %q", got.field(t, "error"), text))
				}
			}
			if len(diff) > 0 {
				differing = append(differing, name)
				verdicts[name] = strings.Join(diff, "; ")
			} else {
				exact = append(exact, name)
			}
		}
	}
	t.Logf("%d exact, %d differing, %d missing of %d", len(exact), len(differing), len(missing), len(all))
	for _, name := range differing {
		t.Logf("differs: %s: %s", name, cut(verdicts[name], 400))
	}
	for _, name := range passing {
		if !slices.Contains(exact, name) {
			t.Errorf("%s no longer answers as recorded: %s", name, verdicts[name])
		}
	}
	for _, name := range exact {
		if !slices.Contains(passing, name) {
			t.Logf("may join the list: %s", name)
		}
	}
}

func (h *harness) retell(m *replay, e exchange) (a answer, sent bool) {
	var headers []string
	body := ""
	for k, v := range e.Request {
		if k == "Content-Type" && !strings.HasPrefix(v, "application/json") {
			return a, false
		}
		headers = append(headers, k+": "+m.text(v))
	}
	if len(e.Body) > 0 && string(e.Body) != "null" {
		body = m.text(string(e.Body))
		var raw struct {
			Raw *string `json:"_raw"`
		}
		if json.Unmarshal(e.Body, &raw) == nil && raw.Raw != nil {
			body = *raw.Raw
		}
		if strings.Contains(body, `"_multipart"`) {
			return a, false
		}
	}
	if strings.HasSuffix(e.Path, "/events/ws") {
		return a, false
	}
	done := make(chan answer, 1)
	go func() { done <- h.call(e.Method, m.text(e.Path), body, headers...) }()
	select {
	case a = <-done:
		return a, true
	case <-time.After(20 * time.Second):
		return a, false
	}
}
