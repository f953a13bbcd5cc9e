package blob

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var (
	// ErrMissing says that there is no such blob here, or no intact one.
	ErrMissing = errors.New("blob is not here")
	// ErrTooLarge says that a blob has more bytes than its writer may write.
	ErrTooLarge = errors.New("blob is too large")
	// ErrFull says that the store, or its disk, has no room.
	ErrFull = errors.New("no room for blobs")
	// ErrMismatch says that bytes are not those of the digest.
	ErrMismatch = errors.New("blob does not have its hash")
)

// StoreConfig bounds a store. Zero values mean the defaults.
type StoreConfig struct {
	MaxBytes int64 // of all blobs; DefaultMaxBytes
	Reserve  int64 // bytes that stay free on the disk; DefaultReserve
	MaxBlob  int64 // bytes of one blob, at most the constant MaxBlob
}

// A Store is the blobs on this node's disk. It is safe for concurrent use.
type Store struct {
	path string
	cfg  StoreConfig
	at   atomic.Pointer[os.Root] // the directory; another one after it was lost

	rotten, mended atomic.Uint64 // what did not have its hash, and what of that was put right

	mu   sync.Mutex // guards what follows, and that names and held agree
	held map[Digest]held
	used int64 // bytes of what is held and of what is being written
}

// held is what the store knows of one file.
type held struct {
	size    int64
	touched time.Time // last put
	damaged bool      // it does not have its hash: it counts for room, and as absent
}

// OpenStore opens the store in dir, which it creates, and throws away what was
// being written when it was last closed.
func OpenStore(dir string, cfg StoreConfig) (*Store, error) {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, DefaultMaxBytes)
	cfg.Reserve = cmp.Or(cfg.Reserve, DefaultReserve)
	cfg.MaxBlob = min(cmp.Or(cfg.MaxBlob, MaxBlob), MaxBlob)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{path: dir, cfg: cfg, held: map[Digest]held{}}
	s.at.Store(root)
	if err := s.load(); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return s, nil
}

func (s *Store) root() *os.Root { return s.at.Load() }

// Renew looks whether the store still has its files. One whose directory is gone,
// or is another one, begins anew with what is there; of single files a few are
// looked at each time. It returns how many blobs turned out to be lost.
func (s *Store) Renew() (lost int, err error) {
	now, err := os.Stat(s.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	if err == nil {
		was, err := s.root().Stat(".")
		if err != nil {
			return 0, err
		}
		if os.SameFile(was, now) {
			return s.lookFor(lookedFor), nil
		}
	}
	if err := os.MkdirAll(s.path, 0o700); err != nil {
		return 0, err
	}
	root, err := os.OpenRoot(s.path)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	before := len(s.held)
	old := s.at.Swap(root)
	s.held, s.used = map[Digest]held{}, 0 // writers that are under way fail, and take off what they took
	err = s.load()
	lost = max(before-len(s.held), 0)
	s.mu.Unlock()
	return lost, errors.Join(err, old.Close())
}

// lookFor asks after the files of n blobs, in no order, and forgets those that
// are gone.
func (s *Store) lookFor(n int) (lost int) {
	var some []Digest
	s.mu.Lock()
	for d := range s.held {
		if some = append(some, d); len(some) == n {
			break
		}
	}
	s.mu.Unlock()
	for _, d := range some {
		if _, err := s.root().Stat(d.path()); errors.Is(err, fs.ErrNotExist) {
			s.lost(d)
			lost++
		}
	}
	return lost
}

func (s *Store) load() error {
	if err := s.root().RemoveAll("tmp"); err != nil {
		return err
	}
	if err := s.root().Mkdir("tmp", 0o700); err != nil {
		return err
	}
	var beside []Digest // those that have sums
	err := fs.WalkDir(s.root().FS(), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, sums := strings.CutSuffix(e.Name(), sumsSuffix)
		d, err := ParseDigest(name)
		if err != nil || strings.TrimSuffix(path, sumsSuffix) != d.path() {
			return nil
		}
		if sums {
			beside = append(beside, d)
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		s.held[d] = held{size: info.Size(), touched: info.ModTime()}
		s.used += info.Size()
		return nil
	})
	for _, d := range beside {
		if _, ok := s.held[d]; !ok && err == nil {
			s.dropSums(d)
		}
	}
	return err
}

// Close closes the store; blobs that are open stay readable.
func (s *Store) Close() error { return s.root().Close() }

// path is where a blob's file lies below the store's directory.
func (d Digest) path() string { return d.dir() + "/" + d.String() }
func (d Digest) dir() string  { return hex.EncodeToString(d[:1]) }

// Usage tells how many blobs there are, and their bytes with those being written.
func (s *Store) Usage() (blobs int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held), s.used
}

// Damaged tells how many blobs there are files of that do not have their hash.
func (s *Store) Damaged() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.held {
		if h.damaged {
			n++
		}
	}
	return n
}

// Has reports whether the store has a blob that is not known to be damaged, without
// looking at its bytes: rot that nobody has read counts as a copy until the scrub reads
// it, so it says what to fetch and where to read, and nothing is given up for it whose
// other copies were not hashed.
func (s *Store) Has(d Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.held[d]
	return ok && !h.damaged
}

// A Writer takes the bytes of a new blob. It belongs to one goroutine.
type Writer struct {
	s     *Store
	f     *os.File
	name  string // below the store's directory
	sum   *summer
	size  int64
	limit int64
	asked int64 // size at which the disk was last asked what is free
	over  bool
}

// Create begins a blob of at most limit bytes (0: as many as one may have).
func (s *Store) Create(limit int64) (*Writer, error) {
	if limit <= 0 || limit > s.cfg.MaxBlob {
		limit = s.cfg.MaxBlob
	}
	var b [16]byte
	rand.Read(b[:])
	w := &Writer{s: s, name: "tmp/" + hex.EncodeToString(b[:]), sum: newSummer(), limit: limit, asked: -spaceStep}
	var err error
	if w.f, err = s.root().OpenFile(w.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, full(err)
	}
	return w, nil
}

// Write appends bytes; the error wraps ErrTooLarge or ErrFull when there is no
// room for them.
func (w *Writer) Write(p []byte) (int, error) {
	if w.size+int64(len(p)) > w.limit {
		return 0, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, w.limit)
	}
	if err := w.s.take(int64(len(p))); err != nil {
		return 0, err
	}
	w.size += int64(len(p))
	if w.size-w.asked >= spaceStep {
		w.asked = w.size
		if err := w.s.room(); err != nil {
			return 0, err
		}
	}
	n, err := w.f.Write(p)
	w.sum.Write(p[:n])
	return n, full(err)
}

// Size returns how many bytes were written.
func (w *Writer) Size() int64 { return w.size }

// take counts n bytes that are about to be written.
func (s *Store) take(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used+n > s.cfg.MaxBytes {
		return fmt.Errorf("%w: the store is bounded at %d bytes", ErrFull, s.cfg.MaxBytes)
	}
	s.used += n
	return nil
}

// room asks the disk whether it has more than the reserve and one step.
func (s *Store) room() error {
	d, err := s.root().Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(d.Fd()), &st); err != nil {
		return fmt.Errorf("free space: %w", err)
	}
	if free := int64(st.Bavail) * int64(st.Bsize); free < s.cfg.Reserve+spaceStep {
		return fmt.Errorf("%w: the disk has %d bytes left, %d are kept for the log", ErrFull, free, s.cfg.Reserve)
	}
	return nil
}

// full names the disk's own words for no room.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// Commit makes the blob durable and gives it its name: when it returns, the
// bytes and the name are synced. The writer is over, whatever it returns.
func (w *Writer) Commit() (d Digest, err error) {
	defer w.Abort()
	d, of := w.sum.done()
	return d, w.commit(d, of)
}

// CommitAs is Commit for bytes that shall be those of a digest; the error wraps
// ErrMismatch when they are not.
func (w *Writer) CommitAs(d Digest) error {
	defer w.Abort()
	got, of := w.sum.done()
	if got != d {
		return ErrMismatch
	}
	return w.commit(d, of)
}

func (w *Writer) commit(d Digest, of sums) error {
	if err := w.f.Sync(); err != nil {
		return full(err)
	}
	if err := w.s.root().Mkdir(d.dir(), 0o700); err == nil {
		if err := w.s.syncDir("."); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return full(err)
	}
	if err := w.s.adopt(w.name, d, w.size); err != nil {
		return err
	}
	w.over = true
	w.s.keepSums(d, of)
	return errors.Join(w.f.Close(), w.s.syncDir(d.dir()))
}

// adopt gives a finished file its name. One that is there already is replaced:
// the new one is certainly whole.
func (s *Store) adopt(name string, d Digest, size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if err := s.root().Chtimes(name, now, now); err != nil {
		return err
	}
	if err := s.root().Rename(name, d.path()); err != nil {
		return full(err)
	}
	s.used -= s.held[d].size
	if s.held[d].damaged {
		s.mended.Add(1)
	}
	s.held[d] = held{size: size, touched: now}
	return nil
}

// Abort throws away what was written; after Commit it does nothing.
func (w *Writer) Abort() {
	if w.over {
		return
	}
	w.over = true
	w.f.Close()
	w.s.root().Remove(w.name) // what stays is thrown away at the next start
	w.s.mu.Lock()
	w.s.used = max(w.s.used-w.size, 0) // the store may have begun anew meanwhile
	w.s.mu.Unlock()
}

func (s *Store) syncDir(name string) error {
	d, err := s.root().Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Sum hashes what r gives.
func Sum(r io.Reader) (d Digest, err error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return d, err
	}
	return Digest(sum.Sum(nil)), nil
}

// Touch notes that a blob was put again, so that it is not collected before what
// refers to it; it reports whether the store has an intact one, which it hashes: that
// costs less than to take it again.
func (s *Store) Touch(d Digest) bool {
	if !s.Has(d) || s.Check(d) != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.held[d]
	if !ok || h.damaged {
		return false
	}
	h.touched = time.Now()
	s.held[d] = h
	return s.root().Chtimes(d.path(), h.touched, h.touched) == nil
}

// Remove throws a blob away unless it was put after a moment; it reports whether
// it is gone.
func (s *Store) Remove(d Digest, before time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.held[d]
	if !ok {
		return true
	}
	if h.touched.After(before) {
		return false
	}
	if err := s.root().Remove(d.path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	s.dropSums(d)
	s.used -= h.size
	delete(s.held, d)
	return true
}

// List returns the blobs that the store has files of, damaged ones too, in order.
func (s *Store) List() []Digest {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Digest, 0, len(s.held))
	for d := range s.held {
		out = append(out, d)
	}
	slices.SortFunc(out, Digest.Compare)
	return out
}
