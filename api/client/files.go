package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"path/filepath"
	"slices"
	"strconv"
)

// maxRefusal bounds what is read of a refused download, in bytes.
const maxRefusal = 1 << 20

// Upload sends a file as the part "file" of a form with further fields, and decodes the
// answer into out, a pointer or nil. It has its own Idempotency-Key; a retry reads
// content from the start. Only ctx bounds the time of a call.
func (c *Client) Upload(ctx context.Context, path, name string, content io.ReadSeeker, fields map[string]string,
	out any) error {
	key := newKey()
	var last error
	for try := range c.cfg.Attempts {
		if err := c.pause(ctx, try); err != nil {
			return errors.Join(last, err)
		}
		if _, err := content.Seek(0, io.SeekStart); err != nil {
			return err
		}
		node := c.node()
		b, status, err := c.uploadOnce(ctx, node, path, name, content, fields, key)
		if err == nil {
			if out == nil {
				return nil
			}
			if err := json.Unmarshal(b, out); err != nil {
				return fmt.Errorf("answer of %s: %w", path, err)
			}
			return nil
		}
		if last = err; ctx.Err() != nil || !c.again(http.MethodPost, key, status, err) {
			return err
		}
		c.leave(node)
	}
	return last
}

func (c *Client) uploadOnce(ctx context.Context, node, path, name string, content io.Reader, fields map[string]string,
	key string) ([]byte, int, error) {
	req, err := c.request(ctx, node, http.MethodPost, path, nil)
	if err != nil {
		return nil, 0, err
	}
	r, w := io.Pipe()
	form := multipart.NewWriter(w)
	written := make(chan struct{})
	go func() {
		defer close(written)
		w.CloseWithError(writeForm(form, name, content, fields))
	}()
	defer func() { r.CloseWithError(io.ErrClosedPipe); <-written }() // after Upload returns, content belongs to the caller
	req.Body, req.ContentLength = r, -1
	req.Header.Set("Content-Type", form.FormDataContentType())
	req.Header.Set("Idempotency-Key", key)
	resp, err := c.stream.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("answer of %s: %w", path, err)
	case resp.StatusCode >= 400:
		return nil, resp.StatusCode, refusal(resp, b)
	}
	if h, err := strconv.ParseUint(resp.Header.Get("X-Selvage-Height"), 10, 64); err == nil {
		c.Since(h)
	}
	return b, resp.StatusCode, nil
}

func writeForm(form *multipart.Writer, name string, content io.Reader, fields map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if err := form.WriteField(k, fields[k]); err != nil {
			return err
		}
	}
	h := textproto.MIMEHeader{"Content-Disposition": {multipart.FileContentDisposition("file", name)}}
	if t := mime.TypeByExtension(filepath.Ext(name)); t != "" {
		h.Set("Content-Type", t)
	}
	part, err := form.CreatePart(h)
	if err != nil {
		return err
	}
	if _, err := io.Copy(part, content); err != nil {
		return err
	}
	return form.Close()
}

// Download writes the bytes at path to w and returns how many. When a node fails,
// another one continues where it stopped.
func (c *Client) Download(ctx context.Context, path string, w io.Writer) (n int64, err error) {
	var last error
	etag := ""
	for try := range c.cfg.Attempts {
		if err := c.pause(ctx, try); err != nil {
			return n, errors.Join(last, err)
		}
		node := c.node()
		done, status, err := c.downloadOnce(ctx, node, path, w, &n, &etag)
		if done {
			return n, err
		}
		if last = err; ctx.Err() != nil || !c.again(http.MethodGet, "", status, err) {
			return n, err
		}
		c.leave(node)
	}
	return n, last
}

// downloadOnce continues at *n. done reports that a retry would not help.
func (c *Client) downloadOnce(ctx context.Context, node, path string, w io.Writer, n *int64, etag *string) (done bool,
	status int, err error) {
	req, err := c.request(ctx, node, http.MethodGet, path, nil)
	if err != nil {
		return true, 0, err
	}
	if *n > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", *n))
		req.Header.Set("If-Match", *etag)
	}
	resp, err := c.stream.Do(req)
	if err != nil {
		return false, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 400 {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
		return false, resp.StatusCode, refusal(resp, b)
	}
	if *n > 0 && resp.StatusCode != http.StatusPartialContent {
		return true, resp.StatusCode, fmt.Errorf("%s: the node does not read ranges", path)
	}
	*etag = resp.Header.Get("ETag")
	out := &taker{w: w}
	m, err := io.Copy(out, resp.Body)
	*n += m
	return err == nil || out.err != nil || *etag == "", 0, err
}

// taker distinguishes errors of the writer from errors of the reader.
type taker struct {
	w   io.Writer
	err error
}

func (t *taker) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	if err != nil {
		t.err = err
	}
	return n, err
}
