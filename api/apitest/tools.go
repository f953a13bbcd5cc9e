package apitest

import (
	"bytes"
	"mime/multipart"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

func (h *Harness) DeployTool(t *testing.T, of ledger.CompanyID, module []byte, fields map[string]string,
	headers ...string) Answer {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for k, v := range fields {
		_ = w.WriteField(k, v)
	}
	part, _ := w.CreateFormFile("file", "tool.wasm")
	_, _ = part.Write(module)
	_ = w.Close()
	return h.Call("POST", "/api/companies/"+string(of)+"/tools", body.String(),
		append(headers, "Content-Type: "+w.FormDataContentType())...)
}
