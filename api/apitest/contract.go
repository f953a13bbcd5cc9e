package apitest

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"time"
)

// An exchange is one recorded request with its answer.
type Exchange struct {
	Number  string            `json:"number"`
	Name    string            `json:"name"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Request map[string]string `json:"requestHeaders"`
	Body    json.RawMessage   `json:"requestBody"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"responseHeaders"`
	Answer  json.RawMessage   `json:"responseBody"`
}

var (
	UuidText  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	tokenText = regexp.MustCompile(`pcp_(?:invite_[\w-]{43}|claim_[0-9a-f]{48}|[0-9a-f]{8}…?)`)
	// the address of a webhook, the beginning of its secret
	hookText = regexp.MustCompile(`\b[0-9a-f]{24}\b|\b[0-9a-f]{12}…`)
)

// A replay maps what was recorded to what this run has: IDs and tokens.
type Replay struct {
	Ids    map[string]string
	Tokens map[string]string // by what the recording shows of it
	// sidecar and blobs are what our export answered; the recording has only the
	// beginning of the one that was imported.
	sidecar any
	blobs   map[string]any
}

func (m *Replay) Text(s string) string {
	s = UuidText.ReplaceAllStringFunc(s, func(id string) string {
		if ours, ok := m.Ids[id]; ok {
			return ours
		}
		return id
	})
	s = hookText.ReplaceAllStringFunc(s, func(text string) string {
		if ours, ok := m.Tokens[strings.TrimSuffix(text, "…")]; ok {
			return ours
		}
		return text
	})
	return tokenText.ReplaceAllStringFunc(s, func(short string) string {
		if ours, ok := m.Tokens[strings.TrimSuffix(short, "…")]; ok {
			return ours
		}
		return short
	})
}

// Learn pairs the IDs of a recorded answer with those of ours, at equal places.
func (m *Replay) Learn(recorded, ours any) {
	switch r := recorded.(type) {
	case map[string]any:
		o, ok := ours.(map[string]any)
		if !ok {
			return
		}
		for name, shown := range map[string]int{"publicId": 24, "webhookSecret": 12} {
			theirs, _ := r[name].(string)
			if ours, ok := o[name].(string); ok && len(theirs) >= shown {
				m.Tokens[theirs[:shown]] = ours
			}
		}
		for k, v := range r {
			m.Learn(v, o[k])
		}
	case []any:
		o, ok := ours.([]any)
		if !ok || len(o) != len(r) {
			return
		}
		for i, v := range r {
			m.Learn(v, namesake(v, o, likeAction(r, o, i)))
		}
	case string:
		o, ok := ours.(string)
		if !ok {
			return
		}
		if UuidText.MatchString(r) && len(r) == 36 && len(o) == 36 {
			if _, known := m.Ids[r]; !known {
				m.Ids[r] = o
			}
		}
		if strings.HasPrefix(r, "pcp_") && strings.HasPrefix(o, "pcp_") {
			m.Tokens[strings.TrimSuffix(tokenText.FindString(r), "…")] = o
		}
	}
}

// namesake returns the item of a list that is called as the recorded one is,
// because lists without an order come in any; otherwise the one in its place.
func namesake(recorded any, list []any, otherwise any) any {
	r, _ := recorded.(map[string]any)
	name, ok := r["name"].(string)
	if !ok {
		return otherwise
	}
	for _, item := range list {
		if o, _ := item.(map[string]any); o["name"] == name {
			return item
		}
	}
	return otherwise
}

// likeAction returns the item of ours that tells of the same action as the i-th of
// what was recorded, the first for its first and so on, because how lines of runs and
// of costs follow each other depends on how fast runs are; nil when there is none.
// Of lists that tell of no actions it is the item in the same place.
func likeAction(recorded, ours []any, i int) any {
	action := func(v any) string {
		o, _ := v.(map[string]any)
		s, _ := o["action"].(string)
		return s
	}
	want := action(recorded[i])
	if want == "" {
		return ours[i]
	}
	nth := 0
	for _, r := range recorded[:i] {
		if action(r) == want {
			nth++
		}
	}
	for _, o := range ours {
		if action(o) != want {
			continue
		}
		if nth == 0 {
			return o
		}
		nth--
	}
	return nil
}

// mended puts a picture back where the recording, which is text, lost its bytes.
func mended(form string) string {
	begin, end := strings.Index(form, "\uFFFDPNG"), strings.LastIndex(form, "\r\n--")
	if begin < 0 || end < begin {
		return form
	}
	return form[:begin] + string(Dot()) + form[end:]
}

func (h *Harness) Retell(m *Replay, e Exchange) (a Answer, sent bool) {
	var headers []string
	body := ""
	for k, v := range e.Request {
		if k == "Content-Type" && !strings.HasPrefix(v, "application/json") && !strings.HasPrefix(v, "multipart/form-data") {
			return a, false
		}
		headers = append(headers, k+": "+m.Text(v))
	}
	if len(e.Body) > 0 && string(e.Body) != "null" {
		body = m.Text(string(m.whole(uncut(e.Body))))
		var raw struct {
			Raw *string `json:"_raw"`
		}
		if json.Unmarshal(e.Body, &raw) == nil && raw.Raw != nil {
			body = mended(*raw.Raw)
		}
		if strings.Contains(body, `"_multipart"`) {
			return a, false
		}
	}
	if strings.HasSuffix(e.Path, "/events/ws") {
		return a, false
	}
	done := make(chan Answer, 1)
	go func() { done <- h.Call(e.Method, m.Text(e.Path), body, headers...) }()
	select {
	case a = <-done:
		return a, true
	case <-time.After(Patience):
		return a, false
	}
}

const sidecarFile = ".paperclip.yaml"

// KeepPackage keeps of our export what the recording of the import cut.
func (m *Replay) KeepPackage(ours any) {
	answer, _ := ours.(map[string]any)
	files, _ := answer["files"].(map[string]any)
	m.sidecar, m.blobs = files[sidecarFile], map[string]any{}
	for name, f := range files {
		if strings.HasPrefix(name, "blobs/") {
			m.blobs[name] = f
		}
	}
}

// whole gives the package of an import the sidecar of our own export, with the files
// that it names: of the recorded one the recording has the beginning only.
func (m *Replay) whole(body []byte) []byte {
	if m.sidecar == nil || !bytes.Contains(body, []byte(sidecarFile)) {
		return body
	}
	var v map[string]any
	if json.Unmarshal(body, &v) != nil {
		return body
	}
	source, _ := v["source"].(map[string]any)
	files, ok := source["files"].(map[string]any)
	if !ok {
		return body
	}
	files[sidecarFile] = m.sidecar
	maps.Copy(files, m.blobs)
	b, err := json.Marshal(v)
	if err != nil {
		return body
	}
	return b
}

// uncut is a body without the marks of where the recording cut long texts: they
// end at the last whole line, or the last whole group of base64.
func uncut(body []byte) []byte {
	if !bytes.Contains(body, []byte(" characters in the original]")) {
		return body
	}
	var v any
	if json.Unmarshal(body, &v) != nil {
		return body
	}
	var mend func(v any) any
	mend = func(v any) any {
		switch v := v.(type) {
		case string:
			if whole, mark, ok := strings.Cut(v, "\u2026 ["); ok && strings.HasSuffix(mark, " characters in the original]") {
				if at := strings.LastIndexByte(whole, '\n'); at >= 0 {
					return whole[:at+1]
				}
				return whole[:len(whole)/4*4]
			}
		case map[string]any:
			for k := range v {
				v[k] = mend(v[k])
			}
		case []any:
			for n := range v {
				v[n] = mend(v[n])
			}
		}
		return v
	}
	b, err := json.Marshal(mend(v))
	if err != nil {
		return body
	}
	return b
}
