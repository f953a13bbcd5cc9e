package api_test

import (
	"archive/zip"
	"bytes"
	"io"
	"maps"
	"mime/multipart"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
)

// Whatever a body is, what it costs to refuse it is less than a second, and memory
// does not grow with what it would unfold to.
//
// What is measured is the processor's time of this process and not the clock's, so
// that a busy machine is no failure; no other test runs beside this one.
//
// It would catch a decoder that recurses or backtracks over what is nested, compares
// each key with each, or unpacks before it looks at a bound.
func TestBadBodiesAreRefusedAtOnce(t *testing.T) {
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	issue := h.IssueOf(of, "Survey")
	in := "/api/companies/" + string(of)
	bomb := zipped(t, 256<<20)
	meta := `{"target":{"mode":"new_company"}}`
	type try struct{ method, path, contentType, coding, body string }
	tries := map[string]try{}
	bodies := maps.Clone(brokenBodies)
	bodies["very deep"] = strings.Repeat(`{"a":[`, 1<<20)
	bodies["deep in a field"] = `{"source":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + `}`
	bodies["many keys"] = `{` + strings.Repeat(`"aaaaaaaa":1,`, 1<<20) + `"b":1}`
	bodies["huge"] = `{"title":"` + strings.Repeat("a", 80<<20) + `"}`
	bodies["a long number"] = `{"title":` + strings.Repeat("9", 1<<20) + `}`
	bodies["escapes"] = `{"titl":"` + strings.Repeat(`\u0000`, 1<<19) + `"}`
	for _, r := range []struct{ name, method, path string }{
		{"issue", "POST", in + "/issues"}, {"change", "PATCH", "/api/issues/" + issue},
		{"document", "PUT", "/api/issues/" + issue + "/documents/plan"},
		{"import", "POST", "/api/companies/import"}, {"sign-in", "POST", "/api/auth/sign-in/email"},
		{"cost", "POST", in + "/cost-events"},
	} {
		for what, body := range bodies {
			tries[r.name+", "+what] = try{r.method, r.path, "application/json", "", body}
		}
		for _, ct := range []string{"text/plain", "application/xml", "application/x-www-form-urlencoded",
			"multipart/form-data"} {
			tries[r.name+", "+ct] = try{r.method, r.path, ct, "", `{"title":"x"}`}
		}
		for coding, bomb := range bombs {
			tries[r.name+", "+coding] = try{r.method, r.path, "application/json", coding, string(bomb)}
		}
	}
	tries["a zip that unfolds"] = try{"POST", "/api/companies/import/preview?meta=" + url.QueryEscape(meta),
		"application/zip", "", string(bomb)}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("package", "a.zip")
	if err != nil {
		t.Fatal(err)
	}
	part.Write(bomb)
	w.WriteField("meta", meta)
	w.Close()
	tries["a form with a zip that unfolds"] = try{"POST", "/api/companies/import/preview", w.FormDataContentType(), "",
		form.String()}
	var base, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&base)
	longest, which := time.Duration(0), ""
	for _, what := range slices.Sorted(maps.Keys(tries)) {
		x := tries[what]
		req := httptest.NewRequest(x.method, x.path, strings.NewReader(x.body))
		req.Host = "127.0.0.1:3100"
		req.Header.Set("Content-Type", x.contentType)
		if x.coding != "" {
			req.Header.Set("Content-Encoding", x.coding)
		}
		rec := httptest.NewRecorder()
		before := processorTime(t)
		h.ServeHTTP(rec, req)
		took := processorTime(t) - before
		if took > longest {
			longest, which = took, what
		}
		if took > time.Second {
			t.Errorf("%s cost %v of the processor", what, took)
		}
		if rec.Code < 400 || rec.Code >= 500 {
			known := strings.HasSuffix(what, ", many members") || strings.HasSuffix(what,
				", many keys") // keys that no field has are passed over
			if !(known && rec.Code < 300) {
				t.Errorf("%s answered %d %.200s", what, rec.Code, rec.Body)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&now)
	t.Logf("%d bodies; the dearest was %s: %v; %d MB of heap before, %d MB after", len(tries), which, longest,
		base.HeapAlloc>>20, now.HeapAlloc>>20)
	if now.HeapAlloc > base.HeapAlloc+floodRest {
		t.Errorf("%d MB of heap stay, want at most %d", (now.HeapAlloc-base.HeapAlloc)>>20, floodRest>>20)
	}
}

// zipped is a package whose COMPANY.md unfolds to n bytes.
func zipped(t *testing.T, n int64) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("COMPANY.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(w, apitest.Zeros{}, n); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// processorTime is what this process has had of the processor.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
