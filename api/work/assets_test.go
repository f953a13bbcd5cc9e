package work_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
)

func TestAttachmentsAreServedSafely(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	path := "/api/companies/" + string(of) + "/issues/" + h.IssueOf(of, "Files") + "/attachments"
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
		body, ct := apitest.FormOf(t, tc.name, tc.fileType, []byte("content of "+tc.name))
		at := h.Call("POST", path, body, ct).Want(t, 201, "")
		got := h.Call("GET", at.Field(t, "contentPath"), "").Want(t, 200, "content of ")
		if a, b := got.Header.Get("Content-Type"), got.Header.Get("Content-Disposition"); a != tc.shown ||
			b != tc.disposition {
			t.Errorf("%s is served as %q, %q, want %q, %q", tc.name, a, b, tc.shown, tc.disposition)
		}
		if csp := got.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "sandbox") ||
			got.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s could run something: %v", tc.name, got.Header)
		}
		saved := h.Call("GET", at.Field(t, "downloadPath"), "").Want(t, 200, "")
		if d := saved.Header.Get("Content-Disposition"); !strings.HasPrefix(d, "attachment") {
			t.Errorf("download of %s is %q", tc.name, d)
		}
	}
}

func TestRangesOfAttachments(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	issue := h.IssueOf(of, "Files")
	body, ct := apitest.FormOf(t, "digits", "text/plain", []byte("0123456789"))
	at := h.Call("POST", "/api/companies/"+string(of)+"/issues/"+issue+"/attachments", body, ct).
		Want(t, 201, `"copies":{"synced":1,"wanted":1}`)
	path := at.Field(t, "contentPath")
	whole := h.Call("GET", path, "")
	etag := whole.Header.Get("ETag")
	for _, tc := range []struct {
		header, want string
		status       int
	}{
		{"Range: bytes=2-4", "234", 206}, {"Range: bytes=7-", "789", 206}, {"Range: bytes=-2", "89", 206},
		{"Range: bytes=0-0", "0", 206},
		{"Range: bytes=10-", "", 416}, {"Range: bytes=4-2", "", 416}, {"Range: lines=1-2", "", 416},
		{"If-None-Match: " + etag, "", 304}, {`If-None-Match: "other"`, "0123456789", 200}, {`If-Match: "other"`, "", 412},
	} {
		if got := h.Call("GET", path, "", tc.header); got.Status != tc.status || tc.want != "" &&
			string(got.Body) != tc.want {
			t.Errorf("%s: %d %q, want %d %q", tc.header, got.Status, got.Body, tc.status, tc.want)
		}
	}
	if got := h.Call("GET", path, "", "Range: bytes=2-4", `If-Range: "other"`); got.Status != 200 ||
		string(got.Body) != "0123456789" {
		t.Errorf("a range of what it was before: %d %q", got.Status, got.Body)
	}
	if got := h.Call("HEAD", path, ""); got.Status != 200 || got.Header.Get("Content-Length") != "10" ||
		len(got.Body) > 0 {
		t.Errorf("HEAD: %d %v %q", got.Status, got.Header, got.Body)
	}
}

// Whatever is not a form with one file within the size limit is refused, and leaves
// nothing on the disk.
func TestBadUploads(t *testing.T) {
	t.Parallel()
	var keeper *blob.Keeper
	h := apitest.NewHarness(t, func(c *api.Config) { keeper = c.Blobs.(*blob.Keeper) })
	of, other := ledger.CompanyID(h.Company("Acme")), h.Company("Other")
	h.Call("PATCH", "/api/companies/"+string(of), `{"attachmentMaxBytes":1000}`).Want(t, 200, "")
	path := "/api/companies/" + string(of) + "/issues/" + h.IssueOf(of, "Files") + "/attachments"
	good, ct := apitest.FormOf(t, "a.txt", "text/plain", []byte("fine"))
	big, bigType := apitest.FormOf(t, "a.txt", "text/plain", bytes.Repeat([]byte("x"), 1001))
	huge, hugeType := apitest.FormOf(t, "a.txt", "text/plain", bytes.Repeat([]byte("x"), 200_000))
	empty, emptyType := apitest.FormOf(t, "a.txt", "text/plain", nil)
	two, twoType := apitest.FormOf(t, "a.txt", "text/plain",
		[]byte("one\r\n--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"b\"\r\n\r\ntwo"))
	two = strings.ReplaceAll(two, "--B\r\n", "--"+twoType[strings.Index(twoType, "boundary=")+9:]+"\r\n")
	wordy, wordyType := apitest.FormOf(t, "a.txt", "text/plain", []byte("fine"), "note",
		strings.Repeat("y", api.MaxFormField+1))
	alien, alienType := apitest.FormOf(t, "a.txt", "text/plain", []byte("fine"), "issueCommentId", api.NewID())
	odd, oddType := apitest.FormOf(t, "a.txt", "text/plain", []byte("fine"), "issueCommentId", "first")
	many, manyType := apitest.FormOf(t, "a.txt", "text/plain", []byte("fine"),
		strings.Split(strings.Repeat("f,v,", api.MaxParts), ",")...)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	io.Copy(z, io.LimitReader(apitest.Zeros{}, 64<<20))
	z.Close()
	for name, tc := range map[string]struct {
		body   string
		header []string
		path   string
		status int
		text   string
	}{
		"one byte too many": {big, []string{bigType}, path, 413, "Attachment exceeds 1000 bytes"},
		"far too many":      {huge, []string{hugeType}, path, 413, "Attachment exceeds 1000 bytes"},
		"nothing in it":     {empty, []string{emptyType}, path, 422, "empty"},
		"two files":         {two, []string{twoType}, path, 400, "more than one file"},
		"no form":           {`{"file":"x"}`, nil, path, 400, "multipart/form-data"},
		"no boundary":       {good, []string{"Content-Type: multipart/form-data"}, path, 400, "multipart/form-data"},
		"another boundary": {good, []string{"Content-Type: multipart/form-data; boundary=x"}, path, 400,
			"Missing file"},
		"broken off in the file": {good[:len(good)-70], []string{ct}, path, 400, "broke off"},
		"broken off in a header": {good[:80], []string{ct}, path, 400, "broke off"},
		"a bomb":                 {zipped.String(), []string{ct, "Content-Encoding: gzip"}, path, 400, "Content-Encoding"},
		"a long field":           {wordy, []string{wordyType}, path, 400, "longer than"},
		"a comment elsewhere":    {alien, []string{alienType}, path, 404, "comment not found"},
		"a comment that is none": {odd, []string{oddType}, path, 400, "issueCommentId"},
		"many parts":             {many, []string{manyType}, path, 400, "more than 16 parts"},
		"an issue of another":    {good, []string{ct}, strings.Replace(path, string(of), other, 1), 422, "does not belong"},
		"no issue": {good, []string{ct}, "/api/companies/" + string(of) + "/issues/" + api.NewID() +
			"/attachments", 404, "Issue not found"},
		"no company": {good, []string{ct}, strings.Replace(path, string(of), api.NewID(), 1), 404,
			"Company not found"},
		"a picture that is none": {good, []string{ct}, "/api/companies/" + string(of) + "/assets/images", 422,
			"Unsupported image type"},
	} {
		got := h.Call("POST", tc.path, tc.body, tc.header...)
		if got.Status != tc.status || !strings.Contains(strings.ToLower(string(got.Body)), strings.ToLower(tc.text)) {
			t.Errorf("%s: answered %d %s, want %d with %q", name, got.Status, got.Body, tc.status, tc.text)
		}
	}
	h.Call("GET", "/api/issues/"+strings.Split(path, "/")[5]+"/attachments", "").Want(t, 200, "[]")
	// A file that was synced before its command was refused is collected later; the other
	// files are gone.
	for _, d := range keeper.List() {
		if err := keeper.Check(d); err != nil {
			t.Error(err)
		}
	}
	h.Call("POST", path, good, ct).Want(t, 201, "")
	h.Call("GET", "/api/attachments/"+api.NewID()+"/content", "").Want(t, 404, "Attachment not found")
	h.Call("GET", "/api/assets/nonsense/content", "").Want(t, 404, "Asset not found")
}

// An upload is written to the disk and not held in memory.
func TestUploadTakesLittleMemory(t *testing.T) {
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	h.Call("PATCH", "/api/companies/"+string(of), `{"attachmentMaxBytes":100000000}`).Want(t, 200, "")
	path := "/api/companies/" + string(of) + "/issues/" + h.IssueOf(of, "Files") + "/attachments"
	const size = 48 << 20
	head := "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"zeros\"\r\n\r\n"
	req := httptest.NewRequest("POST", path, io.MultiReader(strings.NewReader(head), io.LimitReader(apitest.Zeros{}, size),
		strings.NewReader("\r\n--B--\r\n")))
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

// Checks who may add and delete files, and who sees them.
func TestAgentsAndAttachments(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of, foreign := ledger.CompanyID(h.Company("Acme")), ledger.CompanyID(h.Company("Other"))
	key := func(of ledger.CompanyID, name string) (id, token string) {
		id = h.Call("POST", "/api/companies/"+string(of)+"/agents",
			fmt.Sprintf(`{"name":%q,"role":"engineer","adapterType":"process","adapterConfig":{"command":"/bin/true"}}`, name)).
			Want(t, 201, "").Field(t, "id")
		return id, "Authorization: Bearer " + h.Call("POST", "/api/agents/"+id+"/keys", `{"name":"k"}`).Want(t, 201, "").
			Field(t, "token")
	}
	_, ada := key(of, "Ada")
	_, eve := key(foreign, "Eve")
	issue := h.IssueOf(of, "Files")
	path := "/api/companies/" + string(of) + "/issues/" + issue + "/attachments"
	body, ct := apitest.FormOf(t, "a.txt", "text/plain", []byte("by the board"))
	at := h.Call("POST", path, body, ct).Want(t, 201, "")
	h.Call("GET", at.Field(t, "contentPath"), "", ada).Want(t, 200, "by the board")
	h.Call("GET", at.Field(t, "contentPath"), "", eve).Want(t, 404, "Attachment not found")
	h.Call("GET", "/api/issues/"+issue+"/attachments", "", eve).Want(t, 404, "Issue not found")
	h.Call("DELETE", "/api/attachments/"+at.Field(t, "id"), "", eve).Want(t, 404, "Attachment not found")
	h.Call("POST", path, body, ct, eve).Want(t, 403, "Agent key cannot access another company")
	h.Call("POST", path, body, ct, ada).Want(t, 401, "Agent run id required")
	h.Call("DELETE", "/api/attachments/"+at.Field(t, "id"), "", ada).
		Want(t, 403, "cross_issue_influence_run_context_required")
	// The same key and file return the same attachment; another file makes it another
	// request.
	same, sameType := apitest.FormOf(t, "k.txt", "text/plain", []byte("once"))
	first := h.Call("POST", path, same, sameType, "Idempotency-Key: k1").Want(t, 201, "").Field(t, "id")
	again, againType := apitest.FormOf(t, "k.txt", "text/plain", []byte("once"))
	if id := h.Call("POST", path, again, againType, "Idempotency-Key: k1").Want(t, 201, "").Field(t, "id"); id != first {
		t.Errorf("repeated as %s, want %s", id, first)
	}
	h.Call("POST", path, body, ct, "Idempotency-Key: k1").Want(t, 422, `"code":"idempotency_key_reused"`)
}

func TestCompanyLogo(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of, other := h.Company("Acme"), h.Company("Other")
	send := func(content []byte, fileType string) apitest.Answer {
		body, ct := apitest.FormOf(t, "logo", fileType, content)
		return h.Call("POST", "/api/companies/"+of+"/logo", body, ct)
	}
	send([]byte("<html>"), "image/png").Want(t, 422, "not an image")
	send([]byte("<html><svg/></html>"), "image/svg+xml").Want(t, 422, "not an image")
	send([]byte(`<?xml version="1.0"?><!-- a logo --><svg xmlns="http://www.w3.org/2000/svg"/>`), "image/svg+xml").
		Want(t, 201, "")
	send(bytes.Repeat([]byte("x"), api.MaxImage+1), "image/png").Want(t, 413, "Image exceeds")
	id := send(apitest.Dot(), "image/png").Want(t, 201, "").Field(t, "assetId")
	h.Call("PATCH", "/api/companies/"+other+"/branding", fmt.Sprintf(`{"logoAssetId":%q}`, id)).
		Want(t, 404, "Asset not found")
	h.Call("PATCH", "/api/companies/"+of+"/branding", fmt.Sprintf(`{"logoAssetId":%q}`, id)).
		Want(t, 200, `"logoUrl":"/api/assets/`+id+`/content"`)
	h.Call("GET", "/api/companies/"+of, "").Want(t, 200, `"logoAssetId":"`+id+`"`)
	h.Call("GET", "/api/assets/"+id+"/content", "").Want(t, 200, "PNG")
	next := send(apitest.Dot(), "image/png").Want(t, 201, "").Field(t, "assetId")
	h.Call("PATCH", "/api/companies/"+of+"/branding", fmt.Sprintf(`{"logoAssetId":%q}`, next)).Want(t, 200, next)
	h.Call("GET", "/api/assets/"+id+"/content", "").Want(t, 404, "Asset not found")
	h.Call("DELETE", "/api/companies/"+of, "").Want(t, 200, "")
	h.Call("GET", "/api/assets/"+next+"/content", "").Want(t, 404, "Asset not found")
	if err := h.Node.Ledger.View(func(tx *ledger.Tx) error {
		for sha, ref := range company.Blobs(tx) {
			t.Errorf("%s is still referred to: %+v", sha, ref)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
