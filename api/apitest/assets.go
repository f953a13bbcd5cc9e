package apitest

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/textproto"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// FormOf is a multipart form with one file and some fields (name, value in turn).
func FormOf(t testing.TB, name, fileType string, content []byte, fields ...string) (body, contentType string) {
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

func (h *Harness) IssueOf(of ledger.CompanyID, title string) string {
	h.T.Helper()
	return h.Call("POST", "/api/companies/"+string(of)+"/issues", fmt.Sprintf(`{"title":%q,"status":"todo"}`, title)).
		Want(h.T, 201, "").Field(h.T, "id")
}

type Zeros struct{}

func (Zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
