package api

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"mime/multipart"
	"net/http/httptest"
	"net/textproto"
	"runtime"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
)

// formOf is a multipart form with one file and some fields (name, value in turn).
func formOf(t testing.TB, name, fileType string, content []byte, fields ...string) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i+1 < len(fields); i += 2 {
		if err := w.WriteField(fields[i], fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	h := textproto.MIMEHeader{"Content-Disposition": {multipart.FileContentDisposition("file", name)}}
	if fileType != "" {
		h.Set("Content-Type", fileType)
	}
	part, err := w.CreatePart(h)
	if err != nil {
		t.Fatal(err)
	}
	part.Write(content)
	w.Close()
	return b.String(), "Content-Type: " + w.FormDataContentType()
}

func (h *harness) issueOf(of, title string) string {
	h.t.Helper()
	return h.call("POST", "/api/companies/"+of+"/issues", fmt.Sprintf(`{"title":%q,"status":"todo"}`, title)).want(h.t, 201, "").field(h.t, "id")
}

func TestAttachmentsAreServedSafely(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := h.company("Acme")
	path := "/api/companies/" + of + "/issues/" + h.issueOf(of, "Files") + "/attachments"
	for _, tc := range []struct{ name, fileType, shown, disposition string }{
		{"note.txt", "text/plain", "text/plain", `inline; filename="note.txt"`},
		{"page.html", "text/html", "text/html", `attachment; filename="page.html"`},
		{"run.js", "text/javascript", "text/javascript", `attachment; filename="run.js"`},
		{"x.svg", "image/svg+xml", "image/svg+xml", `inline; filename="x.svg"`},
		{"raw", "", "application/octet-stream", `attachment; filename="raw"`},
		{"../../etc/passwd", "text/plain; charset=utf-8", "text/plain; charset=utf-8", `inline; filename="passwd"`},
		{`a"b\c.txt`, "text/plain", "text/plain", `inline; filename="c.txt"`},
		{"größe.txt", "text/plain", "text/plain", `inline; filename="gr__e.txt"; filename*=UTF-8''gr%C3%B6%C3%9Fe.txt`},
	} {
		body, ct := formOf(t, tc.name, tc.fileType, []byte("content of "+tc.name))
		at := h.call("POST", path, body, ct).want(t, 201, "")
		got := h.call("GET", at.field(t, "contentPath"), "").want(t, 200, "content of ")
		if a, b := got.header.Get("Content-Type"), got.header.Get("Content-Disposition"); a != tc.shown || b != tc.disposition {
			t.Errorf("%s is served as %q, %q, want %q, %q", tc.name, a, b, tc.shown, tc.disposition)
		}
		if csp := got.header.Get("Content-Security-Policy"); !strings.Contains(csp, "sandbox") || got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s could run something: %v", tc.name, got.header)
		}
		saved := h.call("GET", at.field(t, "downloadPath"), "").want(t, 200, "")
		if d := saved.header.Get("Content-Disposition"); !strings.HasPrefix(d, "attachment") {
			t.Errorf("download of %s is %q", tc.name, d)
		}
	}
}

func TestRangesOfAttachments(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := h.company("Acme")
	issue := h.issueOf(of, "Files")
	body, ct := formOf(t, "digits", "text/plain", []byte("0123456789"))
	at := h.call("POST", "/api/companies/"+of+"/issues/"+issue+"/attachments", body, ct).want(t, 201, `"copies":{"synced":1,"wanted":1}`)
	path := at.field(t, "contentPath")
	whole := h.call("GET", path, "")
	etag := whole.header.Get("ETag")
	for _, tc := range []struct {
		header, want string
		status       int
	}{
		{"Range: bytes=2-4", "234", 206}, {"Range: bytes=7-", "789", 206}, {"Range: bytes=-2", "89", 206}, {"Range: bytes=0-0", "0", 206},
		{"Range: bytes=10-", "", 416}, {"Range: bytes=4-2", "", 416}, {"Range: lines=1-2", "", 416},
		{"If-None-Match: " + etag, "", 304}, {`If-None-Match: "other"`, "0123456789", 200}, {`If-Match: "other"`, "", 412},
	} {
		if got := h.call("GET", path, "", tc.header); got.status != tc.status || tc.want != "" && string(got.body) != tc.want {
			t.Errorf("%s: %d %q, want %d %q", tc.header, got.status, got.body, tc.status, tc.want)
		}
	}
	if got := h.call("GET", path, "", "Range: bytes=2-4", `If-Range: "other"`); got.status != 200 || string(got.body) != "0123456789" {
		t.Errorf("a range of what it was before: %d %q", got.status, got.body)
	}
	if got := h.call("HEAD", path, ""); got.status != 200 || got.header.Get("Content-Length") != "10" || len(got.body) > 0 {
		t.Errorf("HEAD: %d %v %q", got.status, got.header, got.body)
	}
}

// What is not a form with one file of at most so many bytes is refused, and
// leaves nothing on the disk.
func TestBadUploads(t *testing.T) {
	t.Parallel()
	var keeper *blob.Keeper
	h := newHarness(t, func(c *Config) { keeper = c.Blobs.(*blob.Keeper) })
	of, other := h.company("Acme"), h.company("Other")
	h.call("PATCH", "/api/companies/"+of, `{"attachmentMaxBytes":1000}`).want(t, 200, "")
	path := "/api/companies/" + of + "/issues/" + h.issueOf(of, "Files") + "/attachments"
	good, ct := formOf(t, "a.txt", "text/plain", []byte("fine"))
	big, bigType := formOf(t, "a.txt", "text/plain", bytes.Repeat([]byte("x"), 1001))
	huge, hugeType := formOf(t, "a.txt", "text/plain", bytes.Repeat([]byte("x"), 200_000))
	empty, emptyType := formOf(t, "a.txt", "text/plain", nil)
	two, twoType := formOf(t, "a.txt", "text/plain", []byte("one\r\n--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"b\"\r\n\r\ntwo"))
	two = strings.ReplaceAll(two, "--B\r\n", "--"+twoType[strings.Index(twoType, "boundary=")+9:]+"\r\n")
	wordy, wordyType := formOf(t, "a.txt", "text/plain", []byte("fine"), "note", strings.Repeat("y", maxFormField+1))
	alien, alienType := formOf(t, "a.txt", "text/plain", []byte("fine"), "issueCommentId", NewID())
	odd, oddType := formOf(t, "a.txt", "text/plain", []byte("fine"), "issueCommentId", "first")
	many, manyType := formOf(t, "a.txt", "text/plain", []byte("fine"), strings.Split(strings.Repeat("f,v,", maxParts), ",")...)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	io.Copy(z, io.LimitReader(zeros{}, 64<<20))
	z.Close()
	for name, tc := range map[string]struct {
		body   string
		header []string
		path   string
		status int
		text   string
	}{
		"one byte too many":      {big, []string{bigType}, path, 413, "Attachment exceeds 1000 bytes"},
		"far too many":           {huge, []string{hugeType}, path, 413, "Attachment exceeds 1000 bytes"},
		"nothing in it":          {empty, []string{emptyType}, path, 422, "empty"},
		"two files":              {two, []string{twoType}, path, 400, "more than one file"},
		"no form":                {`{"file":"x"}`, nil, path, 400, "multipart/form-data"},
		"no boundary":            {good, []string{"Content-Type: multipart/form-data"}, path, 400, "multipart/form-data"},
		"another boundary":       {good, []string{"Content-Type: multipart/form-data; boundary=x"}, path, 400, "Missing file"},
		"broken off in the file": {good[:len(good)-70], []string{ct}, path, 400, "broke off"},
		"broken off in a header": {good[:80], []string{ct}, path, 400, "broke off"},
		"a bomb":                 {zipped.String(), []string{ct, "Content-Encoding: gzip"}, path, 400, "Content-Encoding"},
		"a long field":           {wordy, []string{wordyType}, path, 400, "longer than"},
		"a comment elsewhere":    {alien, []string{alienType}, path, 404, "comment not found"},
		"a comment that is none": {odd, []string{oddType}, path, 400, "issueCommentId"},
		"many parts":             {many, []string{manyType}, path, 400, "more than 16 parts"},
		"an issue of another":    {good, []string{ct}, strings.Replace(path, of, other, 1), 422, "does not belong"},
		"no issue":               {good, []string{ct}, "/api/companies/" + of + "/issues/" + NewID() + "/attachments", 404, "Issue not found"},
		"no company":             {good, []string{ct}, strings.Replace(path, of, NewID(), 1), 404, "Company not found"},
		"a picture that is none": {good, []string{ct}, "/api/companies/" + of + "/assets/images", 422, "Unsupported image type"},
	} {
		got := h.call("POST", tc.path, tc.body, tc.header...)
		if got.status != tc.status || !strings.Contains(strings.ToLower(string(got.body)), strings.ToLower(tc.text)) {
			t.Errorf("%s: answered %d %s, want %d with %q", name, got.status, got.body, tc.status, tc.text)
		}
	}
	h.call("GET", "/api/issues/"+strings.Split(path, "/")[5]+"/attachments", "").want(t, 200, "[]")
	// What was synced before its command was refused is collected later; the rest is gone.
	for _, d := range keeper.List() {
		if err := keeper.Check(d); err != nil {
			t.Error(err)
		}
	}
	h.call("POST", path, good, ct).want(t, 201, "")
	h.call("GET", "/api/attachments/"+NewID()+"/content", "").want(t, 404, "Attachment not found")
	h.call("GET", "/api/assets/nonsense/content", "").want(t, 404, "Asset not found")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// An upload is on the disk, not in memory.
func TestUploadTakesLittleMemory(t *testing.T) {
	h := newHarness(t)
	of := h.company("Acme")
	h.call("PATCH", "/api/companies/"+of, `{"attachmentMaxBytes":100000000}`).want(t, 200, "")
	path := "/api/companies/" + of + "/issues/" + h.issueOf(of, "Files") + "/attachments"
	const size = 48 << 20
	head := "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"zeros\"\r\n\r\n"
	req := httptest.NewRequest("POST", path, io.MultiReader(strings.NewReader(head), io.LimitReader(zeros{}, size), strings.NewReader("\r\n--B--\r\n")))
	req.Host = "127.0.0.1:3100"
	req.Header.Set("Content-Type", "multipart/form-data; boundary=B")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	runtime.ReadMemStats(&after)
	if w.Code != 201 {
		t.Fatalf("answered %d %s", w.Code, w.Body)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > size/4 {
		t.Errorf("an upload of %d bytes allocated %d", size, took)
	}
}

// Who may add and delete files, and who sees them.
func TestAgentsAndAttachments(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of, foreign := h.company("Acme"), h.company("Other")
	key := func(of, name string) (id, token string) {
		id = h.call("POST", "/api/companies/"+of+"/agents", fmt.Sprintf(`{"name":%q,"role":"engineer","adapterType":"process","adapterConfig":{"command":"/bin/true"}}`, name)).want(t, 201, "").field(t, "id")
		return id, "Authorization: Bearer " + h.call("POST", "/api/agents/"+id+"/keys", `{"name":"k"}`).want(t, 201, "").field(t, "token")
	}
	_, ada := key(of, "Ada")
	_, eve := key(foreign, "Eve")
	issue := h.issueOf(of, "Files")
	path := "/api/companies/" + of + "/issues/" + issue + "/attachments"
	body, ct := formOf(t, "a.txt", "text/plain", []byte("by the board"))
	at := h.call("POST", path, body, ct).want(t, 201, "")
	h.call("GET", at.field(t, "contentPath"), "", ada).want(t, 200, "by the board")
	h.call("GET", at.field(t, "contentPath"), "", eve).want(t, 404, "Attachment not found")
	h.call("GET", "/api/issues/"+issue+"/attachments", "", eve).want(t, 404, "Issue not found")
	h.call("DELETE", "/api/attachments/"+at.field(t, "id"), "", eve).want(t, 404, "Attachment not found")
	h.call("POST", path, body, ct, eve).want(t, 403, "")
	h.call("POST", path, body, ct, ada).want(t, 401, "Agent run id required")
	h.call("DELETE", "/api/attachments/"+at.field(t, "id"), "", ada).want(t, 403, "cross_issue_influence_run_context_required")
	// The same key gives the same attachment, another file is another request.
	same, sameType := formOf(t, "k.txt", "text/plain", []byte("once"))
	first := h.call("POST", path, same, sameType, "Idempotency-Key: k1").want(t, 201, "").field(t, "id")
	again, againType := formOf(t, "k.txt", "text/plain", []byte("once"))
	if id := h.call("POST", path, again, againType, "Idempotency-Key: k1").want(t, 201, "").field(t, "id"); id != first {
		t.Errorf("repeated as %s, want %s", id, first)
	}
	h.call("POST", path, body, ct, "Idempotency-Key: k1").want(t, 422, "")
}

func TestCompanyLogo(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of, other := h.company("Acme"), h.company("Other")
	send := func(content []byte, fileType string) answer {
		body, ct := formOf(t, "logo", fileType, content)
		return h.call("POST", "/api/companies/"+of+"/logo", body, ct)
	}
	send([]byte("<html>"), "image/png").want(t, 422, "not an image")
	send([]byte("<html><svg/></html>"), "image/svg+xml").want(t, 422, "not an image")
	send([]byte(`<?xml version="1.0"?><!-- a logo --><svg xmlns="http://www.w3.org/2000/svg"/>`), "image/svg+xml").want(t, 201, "")
	send(bytes.Repeat([]byte("x"), maxImage+1), "image/png").want(t, 413, "Image exceeds")
	id := send(dot(), "image/png").want(t, 201, "").field(t, "assetId")
	h.call("PATCH", "/api/companies/"+other+"/branding", fmt.Sprintf(`{"logoAssetId":%q}`, id)).want(t, 404, "Asset not found")
	h.call("PATCH", "/api/companies/"+of+"/branding", fmt.Sprintf(`{"logoAssetId":%q}`, id)).want(t, 200, `"logoUrl":"/api/assets/`+id+`/content"`)
	h.call("GET", "/api/companies/"+of, "").want(t, 200, `"logoAssetId":"`+id+`"`)
	h.call("GET", "/api/assets/"+id+"/content", "").want(t, 200, "PNG")
	next := send(dot(), "image/png").want(t, 201, "").field(t, "assetId")
	h.call("PATCH", "/api/companies/"+of+"/branding", fmt.Sprintf(`{"logoAssetId":%q}`, next)).want(t, 200, next)
	h.call("GET", "/api/assets/"+id+"/content", "").want(t, 404, "Asset not found")
	h.call("DELETE", "/api/companies/"+of, "").want(t, 200, "")
	h.call("GET", "/api/assets/"+next+"/content", "").want(t, 404, "Asset not found")
	if err := h.node.ledger.View(func(tx *ledger.Tx) error {
		for sha, ref := range company.Blobs(tx) {
			t.Errorf("%s is still referred to: %+v", sha, ref)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
