package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
)

// A file that is damaged on the only disk that has it is answered as an error that
// says so; where bytes have gone out already the answer is cut off. No answer has a
// wrong byte, and putting the same file again mends it.
func TestDamagedContentIsNeverAnswered(t *testing.T) {
	dir := t.TempDir()
	var keeper *blob.Keeper
	h := apitest.NewHarness(t, func(c *api.Config) {
		var err error
		if keeper, err = blob.Open(dir, blob.Config{Self: identity.NodeID(strings.Repeat("a", 32)),
			Store: blob.StoreConfig{Reserve: 1}}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { keeper.Close() })
		c.Blobs = keeper
	})
	of := ledger.CompanyID(h.Company("Acme"))
	issue := h.IssueOf(of, "Keep this")
	server := h.Serve()
	want := bytes.Repeat([]byte("0123456789abcdef"), 64<<10) // 1 MiB
	form, contentType := apitest.FormOf(t, "file.bin", "", want)
	put := func() (path, sum string) {
		t.Helper()
		at := h.Call("POST", fmt.Sprintf("/api/companies/%s/issues/%s/attachments", of, issue), form, contentType).
			Want(t, 201, "")
		return "/api/attachments/" + at.Field(t, "id") + "/content", at.Field(t, "sha256")
	}
	path, sum := put()
	damage := func(at int64) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(dir, sum[:2], sum), os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteAt([]byte("X"), at)
			f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	get := func(header ...string) (int, []byte, error) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(header) == 2 {
			r.Header.Set(header[0], header[1])
		}
		a, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		b, err := io.ReadAll(a.Body)
		return a.StatusCode, b, err
	}

	damage(0)
	status, body, err := get()
	if status != 503 || err != nil || !strings.Contains(string(body), "content_damaged") {
		t.Errorf("damaged at its beginning: %d %.100q %v", status, body, err)
	}
	put()
	if status, body, err := get(); status != 200 || !bytes.Equal(body, want) {
		t.Errorf("put again: %d, %d bytes, %v", status, len(body), err)
	}
	damage(int64(len(want)) - 1)
	if status, body, err := get("Range", "bytes=100-200"); status != 206 || !bytes.Equal(body, want[100:201]) {
		t.Errorf("a range that is whole: %d, %d bytes, %v", status, len(body), err)
	}
	status, body, err = get()
	if err == nil || !bytes.HasPrefix(want, body) || len(body) == len(want) {
		t.Errorf("damaged at its end: %d, %d bytes, %v", status, len(body), err)
	}
	if status, body, err := get(); status != 503 || err != nil {
		t.Errorf("damaged at its end, again: %d, %d bytes, %v", status, len(body), err)
	}
}
