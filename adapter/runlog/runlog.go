// Package runlog stores the output of runs: one segment per run, on the node that executed
// it. Any node can read it, even while it grows.
//
// # Format
//
// A segment is a file <company>/<agent>/<run>.ndjson of lines
//
//	{"ts":"2026-11-21T03:06:16.386Z","stream":"stdout","chunk":"text","seq":1}
//
// with seq counting from 1. Streams are "stdout", "stderr" and, for lines of the node
// itself, "system". Bytes that are not UTF-8 become U+FFFD. Offsets and limits count bytes of
// the file. The command that closes the run contains the SHA-256 of the whole file. Readers
// ignore keys they do not know.
//
// Run logs do not go through consensus. If a node is lost, so are its logs that were not
// copied before.
package runlog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// DefaultMaxBytes bounds the segment of one run; other systems have seen a log of 5 GB in
	// two minutes.
	DefaultMaxBytes = 16 << 20
	// DefaultKeepBytes bounds all segments of a node.
	DefaultKeepBytes = 1 << 30
	// DefaultKeepFor is how long a finished segment is kept.
	DefaultKeepFor = 30 * 24 * time.Hour
	// MaxRead bounds one read, in bytes, so that it fits the body of a response.
	MaxRead = 256_000
	// maxChunk bounds the text of one line, in bytes.
	maxChunk = 16 << 10
	// markRoom is the space below MaxBytes that is reserved for the truncation marker.
	markRoom = 512
)

// ErrNoLog is returned for a run without a segment on this node: not yet, no longer, or never.
var ErrNoLog = errors.New("run log not found")

// Config bounds what is stored. Zero values mean the defaults above.
type Config struct {
	MaxBytes  int64         // of one segment, at least 4 KiB
	KeepBytes int64         // of all segments
	KeepFor   time.Duration // after the last write
	// Wall is this node's clock, whose time lines have; default time.Now.
	Wall func() time.Time
}

// A Store is the run logs of one node. It is safe for concurrent use.
type Store struct {
	root *os.Root
	cfg  Config

	mu   sync.Mutex
	open map[string]*Writer // growing segments, by reference
}

// Open opens the store in dir, which it creates.
func Open(dir string, cfg Config) (*Store, error) {
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	cfg.MaxBytes = max(cfg.MaxBytes, 4<<10)
	if cfg.KeepBytes == 0 {
		cfg.KeepBytes = DefaultKeepBytes
	}
	if cfg.KeepFor == 0 {
		cfg.KeepFor = DefaultKeepFor
	}
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open run logs: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open run logs: %w", err)
	}
	return &Store{root: root, cfg: cfg, open: map[string]*Writer{}}, nil
}

// Close closes the store and the segments that still grow.
func (s *Store) Close() error {
	s.mu.Lock()
	open := make([]*Writer, 0, len(s.open))
	for _, w := range s.open {
		open = append(open, w)
	}
	s.mu.Unlock()
	for _, w := range open {
		w.Close()
	}
	return s.root.Close()
}

// Ref names the segment of a run: "<company>/<agent>/<run>.ndjson".
func Ref(company ledger.CompanyID, agent, run string) string {
	return string(company) + "/" + agent + "/" + run + ".ndjson"
}

// checkRef refuses a reference that [Ref] would not make.
func checkRef(ref string) error {
	if strings.Count(ref, "/") != 2 || !strings.HasSuffix(ref, ".ndjson") || !fs.ValidPath(ref) {
		return ErrNoLog
	}
	return nil
}

// Create starts the segment ref. If it exists, it is emptied.
func (s *Store) Create(ref string) (*Writer, error) {
	if err := checkRef(ref); err != nil {
		return nil, fmt.Errorf("create run log %q: not a reference", ref)
	}
	if err := s.root.MkdirAll(path.Dir(ref), 0o700); err != nil {
		return nil, fmt.Errorf("create run log: %w", err)
	}
	f, err := s.root.OpenFile(ref, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create run log: %w", err)
	}
	w := &Writer{store: s, ref: ref, file: f, max: s.cfg.MaxBytes, sum: sha256.New()}
	s.mu.Lock()
	s.open[ref] = w
	s.mu.Unlock()
	return w, nil
}

// A Writer appends to one segment. It is safe for concurrent use. It drops a write that fails
// and remembers the error: a run does not fail because its log can not be written.
type Writer struct {
	store *Store
	ref   string
	max   int64

	mu     sync.Mutex // guards the fields below
	file   *os.File   // nil: it rests
	sum    hash.Hash
	digest company.LogDigest
	err    error
	full   bool
	closed bool
}

type line struct {
	TS     string `json:"ts"`
	Stream string `json:"stream"`
	Chunk  string `json:"chunk"`
	Seq    int64  `json:"seq"`
}

// Write appends text to stream.
func (w *Writer) Write(stream, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(text) > 0 && !w.closed && !w.full {
		n := min(len(text), maxChunk)
		for n < len(text) && n > maxChunk-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		w.append(stream, text[:n], w.max-markRoom)
		text = text[n:]
	}
}

// append writes one line. If it does not fit below limit, append ends the segment with a
// marker.
func (w *Writer) append(stream, chunk string, limit int64) {
	now := w.store.cfg.Wall().UTC()
	b, err := json.Marshal(line{now.Format("2006-01-02T15:04:05.000Z"), stream, strings.ToValidUTF8(chunk, "\uFFFD"),
		w.digest.Seq + 1})
	if err != nil {
		return // never fails
	}
	if b = append(b, '\n'); w.digest.Bytes+int64(len(b)) > limit && !w.full {
		w.full, w.digest.Cut = true, true
		w.append("system", fmt.Sprintf("[selvage] the log ends here: it reached its limit of %d bytes\n", w.max), w.max)
		return
	}
	if w.file == nil {
		if w.file, w.err = w.store.root.OpenFile(w.ref, os.O_WRONLY|os.O_APPEND, 0o600); w.err != nil {
			w.file, w.full = nil, true
			return
		}
	}
	n, err := w.file.Write(b)
	w.sum.Write(b[:n])
	w.digest.Bytes += int64(n)
	if err != nil {
		w.err, w.full = err, true
		return
	}
	w.digest.Seq++
	w.digest.Stream, w.digest.At = stream, now
}

// Digest returns the size and hash of what was written so far.
func (w *Writer) Digest() company.LogDigest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.digest
}

// Rest closes the file until the next write, for one who may not write for long.
func (w *Writer) Rest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil && !w.closed {
		w.err = errors.Join(w.err, w.file.Close())
		w.file = nil
	}
}

// Close ends the segment and returns its digest. It is idempotent. The error is that of the
// first write that failed.
func (w *Writer) Close() (company.LogDigest, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		w.digest.SHA256 = hex.EncodeToString(w.sum.Sum(nil))
		if w.file != nil {
			w.err = errors.Join(w.err, w.file.Close())
		}
		w.store.mu.Lock()
		delete(w.store.open, w.ref)
		w.store.mu.Unlock()
	}
	return w.digest, w.err
}

// Remove deletes a finished segment that the mesh has stored elsewhere. It ignores segments
// that do not exist here or still grow.
func (s *Store) Remove(ref string) error {
	if checkRef(ref) != nil {
		return nil
	}
	s.mu.Lock()
	_, growing := s.open[ref]
	s.mu.Unlock()
	if growing {
		return nil
	}
	if err := s.root.Remove(ref); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove run log: %w", err)
	}
	return nil
}

// A Chunk is a piece of a segment.
type Chunk struct {
	Content []byte `json:"content"`
	Size    int64  `json:"size"`    // of the segment now
	Growing bool   `json:"growing"` // more may come
}

// Read returns up to limit bytes from offset; ErrNoLog if there is no such segment here. A
// limit of 0 or above MaxRead means MaxRead. A line that is being written may be incomplete;
// the next read continues where this one ended.
func (s *Store) Read(ref string, offset, limit int64) (Chunk, error) {
	if err := checkRef(ref); err != nil {
		return Chunk{}, err
	}
	s.mu.Lock()
	_, growing := s.open[ref]
	s.mu.Unlock()
	f, err := s.root.Open(ref)
	if errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(ref, gateEnd) {
		if f, err = s.root.Open(growingRef(ref)); err == nil {
			growing = true
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Chunk{}, ErrNoLog
	} else if err != nil {
		return Chunk{}, fmt.Errorf("read run log: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return Chunk{}, fmt.Errorf("read run log: %w", err)
	}
	c := Chunk{Size: st.Size(), Growing: growing}
	if limit <= 0 || limit > MaxRead {
		limit = MaxRead
	}
	if n := min(limit, st.Size()-offset); offset >= 0 && n > 0 {
		c.Content = make([]byte, n)
		if _, err := f.ReadAt(c.Content, offset); err != nil && err != io.EOF {
			return Chunk{}, fmt.Errorf("read run log: %w", err)
		}
	}
	return c, nil
}

// Keep bounds the finished segments that are kept.
type Keep struct {
	For   time.Duration // after the last write
	Bytes int64
}

// Prune deletes finished segments that are too old, then the oldest until the rest fits, and
// returns how many it deleted. The bounds are those of the store's configuration; most lowers
// them, and a zero field of it keeps nothing. A nil most changes nothing.
func (s *Store) Prune(now time.Time, most *Keep) (removed int, err error) {
	keep := Keep{s.cfg.KeepFor, s.cfg.KeepBytes}
	if most != nil {
		keep = Keep{min(keep.For, most.For), min(keep.Bytes, most.Bytes)}
	}
	type segment struct {
		ref  string
		at   time.Time
		size int64
	}
	var all []segment
	var total int64
	err = fs.WalkDir(s.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || checkRef(p) != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return nil // deleted meanwhile
		}
		all = append(all, segment{p, st.ModTime(), st.Size()})
		total += st.Size()
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("prune run logs: %w", err)
	}
	slices.SortFunc(all, func(a, b segment) int { return a.at.Compare(b.at) })
	for _, seg := range all {
		if total <= keep.Bytes && now.Sub(seg.at) <= keep.For {
			break
		}
		s.mu.Lock()
		_, growing := s.open[seg.ref]
		s.mu.Unlock()
		if growing {
			continue
		}
		if err := s.root.Remove(seg.ref); err != nil {
			return removed, fmt.Errorf("prune run logs: %w", err)
		}
		total -= seg.size
		removed++
	}
	return removed, nil
}
