package llm

import (
	"bytes"
	"encoding/json"
	"strings"
)

// fields are the members of a request's object. The request that is sent is encoded from them,
// so that what is counted is what is sent.
type fields map[string]json.RawMessage

// parse decodes a request. The members of all dialects are in lower case; others are dropped,
// because an upstream that ignores case would take "Max_Tokens" for the bound that was paid for.
func parse(body []byte) (fields, *refusal) {
	var f fields
	if err := json.Unmarshal(body, &f); err != nil || f == nil {
		return nil, invalid("The request is not a JSON object")
	}
	for name := range f {
		if strings.ContainsFunc(name, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' }) {
			delete(f, name)
		}
	}
	return f, nil
}

// get decodes a member into v and reports whether it is there and not null; one
// of another type is a refusal.
func (f fields) get(name string, v any) (bool, *refusal) {
	raw, ok := f[name]
	if !ok || string(raw) == "null" {
		return false, nil
	}
	if json.Unmarshal(raw, v) != nil {
		return false, invalid("%s: unexpected type", name)
	}
	return true, nil
}

func (f fields) set(name string, v any) { f[name] = encode(v) }

// inputBound returns an upper bound of the tokens in a request. Tokenizers differ, but a token
// is at least one byte of text, and all text is part of the body; escapes and the punctuation
// of JSON only make it longer. Images are counted separately, because their bytes are not
// text. Input that an upstream would fetch or store itself has no bound and is refused.
func inputBound(body []byte) (int64, *refusal) {
	n := int64(len(body)) + frameTokens
	for _, mark := range []string{`image`, `inlineData`, `"file`, `"document"`, `audio`, `video`, `\u`} {
		if bytes.Contains(body, []byte(mark)) {
			var v any
			if json.Unmarshal(body, &v) != nil {
				return 0, invalid("The request is not a JSON object")
			}
			w := walk{}
			w.value(v, 0)
			return w.tokens + frameTokens, w.refused
		}
	}
	return n, nil
}

type walk struct {
	tokens  int64
	refused *refusal
}

func (w *walk) value(v any, depth int) {
	switch v := v.(type) {
	case string:
		w.tokens += int64(len(v)) + 2
	case []any:
		for _, x := range v {
			w.value(x, depth+1)
			w.tokens++
		}
	case map[string]any:
		switch kind, _ := v["type"].(string); kind {
		case "image", "image_url", "input_image":
			if isContent(v, kind) {
				w.tokens += imageTokens
				return
			}
		case "document", "file", "input_file", "container_upload":
			if isFetched(v) {
				w.refused = invalid("A document that the upstream fetches by itself can not be paid for in " +
					"advance; send its content")
				return
			}
		case "input_audio", "audio", "video", "video_url", "input_video":
			if len(v) > 1 && (v[kind] != nil || v["source"] != nil) {
				w.refused = invalid("%s can not be paid for in advance", kind)
				return
			}
		}
		if in, ok := v["inlineData"].(map[string]any); ok && in["data"] != nil { // of Google's dialect
			w.tokens += imageTokens
		}
		for k, x := range v {
			w.tokens += int64(len(k)) + 6
			w.value(x, depth+1)
		}
	case nil, bool:
		w.tokens += 5
	default:
		w.tokens += 24
	}
}

// isContent reports whether an object is an image and not a schema or text that
// mentions one.
func isContent(v map[string]any, kind string) bool {
	if kind == "image" {
		s, ok := v["source"].(map[string]any)
		return ok && (s["type"] == "base64" || s["type"] == "url" || s["type"] == "file")
	}
	return v["image_url"] != nil || v["file_id"] != nil
}

func isFetched(v map[string]any) bool {
	if s, ok := v["source"].(map[string]any); ok && (s["type"] == "url" || s["type"] == "file") {
		return true
	}
	if s, ok := v["file"].(map[string]any); ok && s["file_id"] != nil {
		return true
	}
	return v["file_id"] != nil || v["file_url"] != nil
}
