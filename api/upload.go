package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
)

// Blobs stores content by its hash on several nodes; [blob.Keeper] does.
type Blobs interface {
	// Create starts a blob of at most limit bytes on this node's disk.
	Create(limit int64) (*blob.Writer, error)
	// Spread copies a blob of this node to the nodes that should have it.
	Spread(ctx context.Context, d blob.Digest, size int64) (blob.Placement, error)
	// Read opens a blob on any node.
	Read(ctx context.Context, ref blob.Reference) (blob.Content, error)
}

// formMedia is the media type of a form with a file.
const formMedia = "multipart/form-data"

// Form describes a form with the part file, and with these texts beside it.
func Form(parts ...Param) Taken { return Taken{Media: formMedia, Parts: parts} }

// An Upload is a form with one file, which is on this node's disk.
type Upload struct {
	File   company.NewFile
	Fields map[string]string // the form's other parts
	Digest blob.Digest
}

// rolling extends a connection's deadline with every read: a large body may take long, a
// stalled one may not.
type rolling struct {
	r       io.Reader
	control *http.ResponseController
}

func (r rolling) Read(p []byte) (int, error) {
	// Connections of tests have no deadlines.
	_ = r.control.SetReadDeadline(time.Now().Add(bodyTimeout))
	return r.r.Read(p)
}

// Receive reads a multipart form with one part "file" of at most limit bytes. The file is
// streamed to the disk. tooLarge is the error for more. The caller spreads the file.
func (rc *Request) Receive(limit int64, tooLarge string) (up Upload, err error) {
	blobs := rc.Server.Cfg.Blobs
	if blobs == nil {
		return up, Unavailable("This node keeps no files")
	}
	h := rc.HTTP.Header
	if e := h.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return up, Invalid("Content-Encoding %q is not accepted; send the form as it is", Cut(e, 64))
	}
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || media != formMedia || params["boundary"] == "" {
		return up, Invalid("Expected a form with Content-Type: multipart/form-data")
	}
	if rc.HTTP.ContentLength > limit+MultipartRoom {
		return up, ledger.Refuse(ledger.TooLarge, nil, "%s", tooLarge)
	}
	select {
	case rc.Server.uploads <- struct{}{}:
		defer func() { <-rc.Server.uploads }()
	default:
		return up, Unavailable("Too many uploads at once; try again")
	}
	control := http.NewResponseController(rc.W)
	_ = control.SetWriteDeadline(time.Now().Add(UploadTimeout + WriteTimeout))
	rc.spent = true
	body := http.MaxBytesReader(rc.W, rc.HTTP.Body, limit+MultipartRoom)
	form := multipart.NewReader(rolling{body, control}, params["boundary"])
	up.Fields = map[string]string{}
	have := false
	for range MaxParts {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			if !have {
				return up, Invalid("Missing file field 'file'")
			}
			rc.streamed(up)
			return up, nil
		} else if err != nil {
			return up, FormError(err, tooLarge)
		}
		name := part.FormName()
		if name != "file" {
			b, err := io.ReadAll(io.LimitReader(part, MaxFormField+1))
			switch {
			case err != nil:
				return up, FormError(err, tooLarge)
			case len(b) > MaxFormField:
				return up, Invalid("Form field %q is longer than %d bytes", Cut(name, 64), MaxFormField)
			}
			up.Fields[name] = string(b)
			continue
		}
		if have {
			return up, Invalid("The form has more than one file; send one at a time")
		}
		have = true
		if err := up.take(blobs, part, limit, tooLarge); err != nil {
			return up, err
		}
	}
	return up, Invalid("The form has more than %d parts", MaxParts)
}

// take writes the file's part to the disk.
func (up *Upload) take(blobs Blobs, part *multipart.Part, limit int64, tooLarge string) error {
	up.File = company.NewFile{ID: NewID(), Object: NewID(), Name: fileName(part.FileName())}
	var err error
	if up.File.ContentType, err = fileType(part.Header.Get("Content-Type")); err != nil {
		return err
	}
	w, err := blobs.Create(limit)
	if err != nil {
		return err
	}
	defer w.Abort()
	buf := make([]byte, 64<<10)
	for {
		n, err := part.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); errors.Is(err, blob.ErrTooLarge) {
				return ledger.Refuse(ledger.TooLarge, nil, "%s", tooLarge)
			} else if err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return FormError(err, tooLarge)
		}
	}
	up.File.Size = w.Size()
	if up.File.Size == 0 {
		return Unprocessable("The file is empty", nil)
	}
	if up.Digest, err = w.Commit(); err != nil {
		return err
	}
	up.File.SHA256 = up.Digest.String()
	return nil
}

func FormError(err error, tooLarge string) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return ledger.Refuse(ledger.TooLarge, nil, "%s", tooLarge)
	}
	return Invalid("The form is malformed, or broke off")
}

// streamed sets what an Idempotency-Key compares of an upload: a repetition has another
// boundary, but the same file.
func (rc *Request) streamed(up Upload) {
	rc.HasBody = true
	rc.Body = fmt.Appendf(nil, "%q %q %s %d %q", up.File.Name, up.File.ContentType, up.File.SHA256,
		up.File.Size, up.Fields)
}

// Spread copies the file to the nodes that should have it, before a row refers to it.
func (rc *Request) Spread(up *Upload) (blob.Placement, error) {
	p, err := rc.Server.Cfg.Blobs.Spread(rc.Context(), up.Digest, up.File.Size)
	for _, id := range p.Holders[:min(len(p.Holders), company.MaxBlobNodes)] {
		up.File.Nodes = append(up.File.Nodes, string(id))
	}
	return p, err
}

// Keep stores a file whose bytes the request had in another form, on this node's disk and on
// those that should have it.
func (rc *Request) Keep(data []byte, name, contentType string) (up Upload, err error) {
	blobs := rc.Server.Cfg.Blobs
	if blobs == nil {
		return up, Unavailable("This node keeps no files")
	}
	up.File = company.NewFile{Name: fileName(name), Size: int64(len(data))}
	if up.File.ContentType, err = fileType(contentType); err != nil {
		return up, err
	}
	w, err := blobs.Create(int64(len(data)))
	if err != nil {
		return up, err
	}
	defer w.Abort()
	if _, err := w.Write(data); err != nil {
		return up, err
	}
	if up.Digest, err = w.Commit(); err != nil {
		return up, err
	}
	up.File.SHA256 = up.Digest.String()
	_, err = rc.Spread(&up)
	return up, err
}

// fileName returns the file name of a form part, without folders and without characters that
// file systems refuse.
func fileName(s string) string {
	s = path.Base(strings.ReplaceAll(s, `\`, "/"))
	if s == "." || s == "/" {
		return ""
	}
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
	if len(s) > file.MaxFilename {
		s = Cut(s, file.MaxFilename)
	}
	return s
}

// fileType returns the media type of a part, without parameters except charset.
func fileType(header string) (string, error) {
	if header == "" {
		return "application/octet-stream", nil
	}
	media, params, err := mime.ParseMediaType(header)
	if err != nil || !strings.Contains(media, "/") || len(media) > 100 {
		return "", Invalid("The file's Content-Type is malformed")
	}
	if charset := params["charset"]; charset != "" {
		if t := mime.FormatMediaType(media, map[string]string{"charset": charset}); t != "" && len(t) <= file.MaxContentType {
			return t, nil
		}
	}
	return media, nil
}

// inline are the types that a browser may display; others are downloaded. None of them runs
// scripts: see [ServeFile].
var inline = map[string]bool{
	"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true, "image/avif": true, "image/bmp": true,
	"image/svg+xml": true,
	"text/plain":    true, "text/markdown": true, "text/csv": true, "application/json": true, "application/pdf": true,
	"audio/mpeg": true, "audio/ogg": true, "audio/wav": true, "video/mp4": true, "video/webm": true,
}

// ServeFile answers the content of an asset, whole or in ranges, from this node's disk or from
// another node.
func ServeFile(rc *Request, a file.Asset, ref company.BlobRef, download bool) (Response, error) {
	if rc.Server.Cfg.Blobs == nil {
		return Response{}, Unavailable("This node keeps no files")
	}
	d, err := blob.ParseDigest(a.SHA256)
	if err != nil {
		return Response{}, fmt.Errorf("asset %s: %w", a.ID, err)
	}
	media, _, err := mime.ParseMediaType(a.ContentType)
	if err != nil {
		media = "application/octet-stream"
	}
	h := http.Header{}
	h.Set("Content-Type", a.ContentType)
	h.Set("Cache-Control", "private, max-age=60")
	h.Set("ETag", `"`+a.SHA256+`"`)
	h.Set("Accept-Ranges", "bytes")
	if media == "application/pdf" {
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; object-src 'self'")
	} else {
		h.Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:")
	}
	how := "attachment"
	if inline[media] && !download {
		how = "inline"
	}
	h.Set("Content-Disposition", disposition(how, string(a.Filename)))
	content, err := rc.Server.Cfg.Blobs.Read(rc.Context(), Reference(d, a, ref))
	if err != nil {
		return Response{}, err
	}
	return Response{Header: h, Stream: func(w http.ResponseWriter, r *http.Request) error {
		defer content.Close()
		out := &contentWriter{ResponseWriter: w, control: http.NewResponseController(w)}
		in := &contentReader{ReadSeeker: content}
		http.ServeContent(out, r, "", a.CreatedAt.Std(), in)
		switch {
		case in.err == nil:
			out.begin()
		case out.begun: // the client must not take the partial file as complete
			rc.Server.Log.Error("content broke off", "request", rc.ID, "sha256", a.SHA256, "error", in.err)
			panic(http.ErrAbortHandler)
		default:
			for _, k := range []string{"Content-Length", "Content-Range", "Content-Type", "Content-Disposition",
				"Content-Security-Policy", "ETag", "Last-Modified", "Accept-Ranges", "Cache-Control"} {
				w.Header().Del(k)
			}
			return in.err
		}
		return nil
	}}, nil
}

func Reference(d blob.Digest, a file.Asset, ref company.BlobRef) blob.Reference {
	out := blob.Reference{Digest: d, Size: a.Size}
	for _, id := range ref.Nodes {
		out.Hints = append(out.Hints, identity.NodeID(id))
	}
	return out
}

// A contentReader keeps the error that ended reading.
type contentReader struct {
	io.ReadSeeker
	err error
}

func (c *contentReader) Read(p []byte) (int, error) {
	n, err := c.ReadSeeker.Read(p)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// A contentWriter extends the connection's deadline with every write, and delays the status
// until the first bytes arrive, so that damaged content is answered as an error.
type contentWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	status  int
	begun   bool
}

func (c *contentWriter) WriteHeader(status int) { c.status = status }

func (c *contentWriter) begin() {
	if !c.begun && c.status != 0 {
		c.ResponseWriter.WriteHeader(c.status)
	}
	c.begun = true
}

func (c *contentWriter) Write(p []byte) (int, error) {
	c.begin()
	_ = c.control.SetWriteDeadline(time.Now().Add(WriteTimeout))
	return c.ResponseWriter.Write(p)
}

// disposition formats a file's name as in RFC 6266; names beyond plain ASCII come in both
// forms.
func disposition(how, name string) string {
	if name == "" {
		return how
	}
	plain, ascii := strings.Map(func(r rune) rune {
		switch {
		case r == '"' || r == '\\' || r < 0x20 || r == 0x7f:
			return '_'
		case r > 0x7e:
			return '_'
		}
		return r
	}, name), true
	for i := range len(name) {
		ascii = ascii && name[i] < 0x7f
	}
	out := how + `; filename="` + plain + `"`
	if !ascii {
		var b strings.Builder
		for i := range len(name) {
			if c := name[i]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' ||
				c == '-' || c == '_' {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		}
		out += "; filename*=UTF-8''" + b.String()
	}
	return out
}
