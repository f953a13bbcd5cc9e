package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
)

var distilFrom = flag.String("contract.from", "", "write testdata/contract from the recordings in this directory")

// The recorded contract, as the tests need it: a line for each exchange or frame.
const (
	exchangesFile = "testdata/contract/http.ndjson"
	signInsFile   = "testdata/contract/http-auth.ndjson"
	framesFile    = "testdata/contract/frames.ndjson"
)

// asRecorded decodes a file of one JSON value a line.
func asRecorded[T any](t *testing.T, name string) []T {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	for line := range bytes.Lines(b) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("%s:%d: %v", name, len(all)+1, err)
		}
		all = append(all, v)
	}
	return all
}

// maxKept is how many bytes of a recorded string are kept in an answer: IDs, names,
// states. What is longer is prose, of which only the type counts.
const maxKept = 64

// elided stands for a string that is not kept.
const elided = "…"

// generated are files of packages whose text the recorded server wrote.
var generated = regexp.MustCompile(`(^|/)(continuation-summary|README|SKILL)\.md$`)

// distilled returns what the tests need of a recorded value: all keys, types and short
// strings. An error keeps its words, which clients may branch on.
func distilled(v any, key string, failed bool) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = distilled(x, k, failed)
		}
	case []any:
		for i, x := range v {
			v[i] = distilled(x, key, failed)
		}
	case string:
		if len(v) > maxKept && !(failed && slices.Contains([]string{"error", "message", "code"}, key)) ||
			generated.MatchString(key) {
			return elided
		}
	}
	return v
}

// withoutProse replaces the texts of generated files in the body of a request.
func withoutProse(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = withoutProse(x, k)
		}
	case []any:
		for i, x := range v {
			v[i] = withoutProse(x, key)
		}
	case string:
		if generated.MatchString(key) {
			return "# " + strings.TrimSuffix(filepath.Base(key), ".md") + "\n"
		}
	}
	return v
}

// TestDistil writes testdata/contract from whole recordings, which are not part of this
// repository: -contract.from names their directory. Without it the test looks at what
// is there: no answer holds prose.
func TestDistil(t *testing.T) {
	if *distilFrom == "" {
		for _, e := range asRecorded[apitest.Exchange](t, exchangesFile) {
			var v any
			if err := json.Unmarshal(e.Answer, &v); err != nil && len(e.Answer) > 0 {
				t.Fatal(err)
			}
			before, _ := json.Marshal(v)
			after, _ := json.Marshal(distilled(v, "", e.Status >= 400))
			if !bytes.Equal(before, after) {
				t.Errorf("%s-%s: the answer is not distilled", e.Number, e.Name)
			}
		}
		return
	}
	for name, pattern := range map[string]string{exchangesFile: "http/[0-9]*.json", signInsFile: "http-auth/[0-9]*.json"} {
		files, err := filepath.Glob(filepath.Join(*distilFrom, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d recordings, %v", *distilFrom, len(files), err)
		}
		slices.Sort(files)
		var out bytes.Buffer
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			var e map[string]any
			if err := json.Unmarshal(b, &e); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			status, _ := e["status"].(float64)
			e["number"], _, _ = strings.Cut(filepath.Base(f), "-")
			e["responseBody"] = distilled(e["responseBody"], "", status >= 400)
			e["requestBody"] = withoutProse(e["requestBody"], "")
			headers, _ := e["responseHeaders"].(map[string]any)
			for k := range headers {
				if k != "Content-Type" {
					delete(headers, k)
				}
			}
			addLine(t, &out, e)
		}
		writeTestdata(t, name, out.Bytes())
	}
	b, err := os.ReadFile(filepath.Join(*distilFrom, "http", "_ws-live-events.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for l := range bytes.Lines(b) {
		var v any
		if err := json.Unmarshal(l, &v); err != nil {
			t.Fatal(err)
		}
		addLine(t, &out, distilled(v, "", false))
	}
	writeTestdata(t, framesFile, out.Bytes())
}

func addLine(t *testing.T, out *bytes.Buffer, v any) {
	t.Helper()
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
}

func writeTestdata(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
}
