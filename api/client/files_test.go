package client

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A download continues at another node where the first one failed. An upload is sent
// again from the start with the same key.
func TestFilesMoveOnToAnotherNode(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte("0123456789"), 10_000)
	var keys atomic.Value
	ill := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			keys.Store(r.Header.Get("Idempotency-Key"))
			io.Copy(io.Discard, io.LimitReader(r.Body, 1000))
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("ETag", `"x"`)
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		w.Write(content[:50_000])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer ill.Close()
	well := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			f, h, err := r.FormFile("file")
			if err != nil {
				t.Error(err)
				return
			}
			b, _ := io.ReadAll(f)
			fmt.Fprintf(w, `{"name":%q,"size":%d,"same":%t,"space":%q}`, h.Filename, len(b),
				r.Header.Get("Idempotency-Key") == keys.Load(), r.FormValue("namespace"))
			return
		}
		w.Header().Set("ETag", `"x"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}))
	defer well.Close()
	c, err := New(Config{Nodes: []string{ill.URL, well.URL}})
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if n, err := c.Download(t.Context(), "/x", &got); err != nil || n != int64(len(content)) ||
		!bytes.Equal(got.Bytes(), content) {
		t.Errorf("downloaded %d bytes, %v", n, err)
	}
	if c, err = New(Config{Nodes: []string{ill.URL, well.URL}}); err != nil {
		t.Fatal(err)
	}
	var out struct {
		Name, Space string
		Size        int
		Same        bool
	}
	if err := c.Upload(t.Context(), "/x", "a.txt", bytes.NewReader(content), map[string]string{"namespace": "n"},
		&out); err != nil {
		t.Fatal(err)
	}
	if out.Name != "a.txt" || out.Size != len(content) || !out.Same || out.Space != "n" {
		t.Errorf("uploaded %+v", out)
	}
	// A refusal is returned at once, and a failing writer is not retried.
	no := httptest.NewServer(http.NotFoundHandler())
	defer no.Close()
	if c, err = New(Config{Nodes: []string{no.URL}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Download(t.Context(), "/x", io.Discard); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("refused with %v", err)
	}
}
