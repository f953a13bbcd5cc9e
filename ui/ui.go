// Package ui is the board: the web pages that every node serves at "/", built from ui/web into
// ui/dist and embedded here, so that building the program needs no Node.
package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// dist is what `make ui` built: index.html, SOURCES (see Sources) and assets, whose names hold
// a hash of their content. What compresses lies there as gzip alone: every browser takes it
// over plain HTTP too, which is not so of brotli, and it needs no library to undo.
//
//go:embed all:dist
var dist embed.FS

// assets is the folder of files that never change under their name.
const assets = "assets/"

// maxPeers bounds the other nodes that a page is told it may ask.
const maxPeers = 64

// Config is what the pages are told of the node that serves them.
type Config struct {
	// Mesh is the mesh's ID. A page shows a digest of it to pages of other nodes, which
	// so find out whether both are of one mesh before they send their reader over.
	Mesh string
	// Name is the node's.
	Name string
	// Ready reports whether the node can serve; nil: always.
	Ready func() bool
	// Peers returns the addresses ("https://10.0.0.2:3100") at which other nodes of the
	// mesh serve, so that a page may ask them when this node is lost; nil: none.
	Peers func() []string
}

// A file is one file as it is served. Its bytes are read when somebody asks for them: they
// lie in the program, and a copy would only take memory.
type file struct {
	read      func() ([]byte, error)
	packed    bool   // what is read is gzip
	gzipped   []byte // of a plain file that compresses; nil: there is none
	kind, tag string
	immutable bool
}

type handler struct {
	cfg   Config
	files map[string]file // by path, without the slash
	index file
	beat  []byte
}

// Handler serves the pages: the index for every path that is no file, so that each address of
// the page can be opened; never a list of a folder.
func Handler(cfg Config) (http.Handler, error) { return serve(cfg, dist) }

func serve(cfg Config, from fs.FS) (http.Handler, error) {
	h := &handler{cfg: cfg, files: map[string]file{}}
	err := fs.WalkDir(from, "dist", func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(from, at)
		if err != nil {
			return err
		}
		f, name, err := fileOf(strings.TrimPrefix(at, "dist/"), b)
		f.read = func() ([]byte, error) { return fs.ReadFile(from, at) }
		h.files[name] = f
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ui: read the pages: %w", err)
	}
	index, ok := h.files["index.html"]
	if !ok {
		return nil, fmt.Errorf("ui: dist/index.html is missing: run make ui")
	}
	h.index = index
	delete(h.files, "index.html")
	delete(h.files, sourcesFile)
	sum := sha256.Sum256([]byte("selvage/board-mesh/v1 " + cfg.Mesh))
	h.beat, err = json.Marshal(struct {
		Mesh string `json:"mesh"`
		Name string `json:"name"`
	}{hex.EncodeToString(sum[:8]), cfg.Name})
	return h, err
}

// fileOf prepares a file of dist; one that ends in .gz is served under its name without that.
func fileOf(name string, b []byte) (file, string, error) {
	sum := sha256.Sum256(b)
	f := file{tag: `"` + hex.EncodeToString(sum[:12]) + `"`, immutable: strings.HasPrefix(name, assets)}
	if short, packed := strings.CutSuffix(name, ".gz"); packed {
		name, f.packed = short, true
	} else if path.Ext(name) == ".html" {
		var packed bytes.Buffer
		w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is a valid one
		if _, err := w.Write(b); err != nil {
			return f, name, err
		}
		if err := w.Close(); err != nil {
			return f, name, err
		}
		f.gzipped = packed.Bytes()
	}
	f.kind = kindOf(name)
	return f, name, nil
}

// kindOf does not ask the machine's own table, which may say anything.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".woff2":
		return "font/woff2"
	case ".svg":
		return "image/svg+xml"
	case ".json", ".webmanifest":
		return "application/json; charset=utf-8"
	}
	return "application/octet-stream"
}

// beatPath answers pages of other nodes: which mesh this is, by a digest, and which node.
const beatPath = "board.json"

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "The pages are read with GET; the API is under /api", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	if name == beatPath {
		h.answerBeat(w)
		return
	}
	f, ok := h.files[name]
	if !ok && (strings.HasPrefix(name+"/", assets) || path.Ext(name) == ".map") {
		http.Error(w, "No such file; reload the page, it is of an older program", http.StatusNotFound)
		return
	}
	head := w.Header()
	head.Set("Cache-Control", "no-cache")
	switch {
	case !ok:
		f = h.index
		h.guard(head, r)
	case f.immutable:
		head.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	send(w, r, f)
}

// answerBeat lets any page read it: the digest tells nothing to who does not know the mesh.
func (h *handler) answerBeat(w http.ResponseWriter) {
	head := w.Header()
	head.Set("Access-Control-Allow-Origin", "*")
	head.Set("Cache-Control", "no-store")
	head.Set("Content-Type", "application/json; charset=utf-8")
	if h.cfg.Ready != nil && !h.cfg.Ready() {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(h.beat) // an error is the caller's going away
}

// guard sets what the page may do: run scripts, styles and fonts of this node alone, ask this
// node and the other nodes of the mesh, and be in nobody's frame. There is no inline script or style.
func (h *handler) guard(head http.Header, r *http.Request) {
	head.Set("Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data: blob:; "+
			"connect-src "+strings.Join(h.reached(r),
			" ")+"; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("X-Frame-Options", "DENY")
	head.Set("Referrer-Policy", "same-origin")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
}

// reached lists where a page may send requests. A page of this machine may ask the other ports
// of it, where the nodes of a mesh on one machine are.
func (h *handler) reached(r *http.Request) []string {
	to := []string{"'self'"}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if host == "localhost" || err == nil && ip.IsLoopback() {
		to = append(to, "http://127.0.0.1:*", "http://localhost:*")
	}
	if h.cfg.Peers == nil {
		return to
	}
	for i, peer := range h.cfg.Peers() {
		if i == maxPeers {
			break
		}
		u, err := url.Parse(peer)
		if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" &&
			!strings.ContainsAny(u.Host, " ;,'*") {
			to = append(to, u.Scheme+"://"+u.Host)
		}
	}
	return to
}

// send writes a file, packed for who takes that, and nothing when the caller has it.
func send(w http.ResponseWriter, r *http.Request, f file) {
	head := w.Header()
	head.Set("ETag", f.tag)
	if has(r, f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	head.Set("Content-Type", f.kind)
	body, err := f.body(head, takesGzip(r.Header.Get("Accept-Encoding")))
	if err != nil {
		http.Error(w, "Internal server error", http.StatusInternalServerError)
		return
	}
	head.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // an error is the caller's going away
	}
}

// body returns what is sent, packed for who takes that, and says so in the header.
func (f file) body(head http.Header, gzips bool) ([]byte, error) {
	if f.packed || f.gzipped != nil {
		head.Set("Vary", "Accept-Encoding")
	}
	packs := gzips && (f.packed || f.gzipped != nil)
	if packs {
		head.Set("Content-Encoding", "gzip")
	}
	if packs && !f.packed {
		return f.gzipped, nil
	}
	b, err := f.read()
	if err != nil || packs || !f.packed {
		return b, err
	}
	return unpack(b)
}

func unpack(b []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r) // bounded: it is our own file
}

func has(r *http.Request, tag string) bool {
	for t := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(t), "W/") == tag {
			return true
		}
	}
	return false
}

// takesGzip reads an Accept-Encoding; q=0 says no.
func takesGzip(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		name, q, _ := strings.Cut(strings.ToLower(strings.TrimSpace(part)), ";")
		if name = strings.TrimSpace(name); name == "gzip" || name == "*" {
			weight := strings.TrimSpace(q)
			return !slices.Contains([]string{"q=0", "q=0.0", "q=0.00", "q=0.000"}, weight)
		}
	}
	return false
}
