package blob

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"
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
	MaxBytes int64         // of all blobs; DefaultMaxBytes
	Reserve  int64         // bytes that stay free on the disk; DefaultReserve
	MaxBlob  int64         // bytes of one blob, at most the constant MaxBlob
	Recheck  time.Duration // how long a file is believed; DefaultRecheck
}

// A Store is the blobs on this node's disk. It is safe for concurrent use.
type Store struct {
	path string
	cfg  StoreConfig
	at   atomic.Pointer[os.Root] // the directory; another one after it was lost

	mu   sync.Mutex // guards what follows, and that names and held agree
	held map[Digest]held
	used int64 // bytes of what is held and of what is being written
}

// held is what the store knows of one file.
type held struct {
	size    int64
	touched time.Time // last put
	checked time.Time // hash last computed; zero: not in this life of the store
}

// OpenStore opens the store in dir, which it creates, and throws away what was
// being written when it was last closed.
func OpenStore(dir string, cfg StoreConfig) (*Store, error) {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, DefaultMaxBytes)
	cfg.Reserve = cmp.Or(cfg.Reserve, DefaultReserve)
	cfg.MaxBlob = min(cmp.Or(cfg.MaxBlob, MaxBlob), MaxBlob)
	cfg.Recheck = cmp.Or(cfg.Recheck, DefaultRecheck)
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
			s.forget(d, nil)
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
	return fs.WalkDir(s.root().FS(), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		d, err := ParseDigest(e.Name())
		if err != nil || path != d.path() {
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

// Has reports whether the store has a blob, without looking at its bytes.
func (s *Store) Has(d Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.held[d]
	return ok
}

// A Writer takes the bytes of a new blob. It belongs to one goroutine.
type Writer struct {
	s     *Store
	f     *os.File
	name  string // below the store's directory
	sum   hash.Hash
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
	w := &Writer{s: s, name: "tmp/" + hex.EncodeToString(b[:]), sum: sha256.New(), limit: limit, asked: -spaceStep}
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
	copy(d[:], w.sum.Sum(nil))
	return d, w.commit(d)
}

// CommitAs is Commit for bytes that shall be those of a digest; the error wraps
// ErrMismatch when they are not.
func (w *Writer) CommitAs(d Digest) error {
	defer w.Abort()
	if Digest(w.sum.Sum(nil)) != d {
		return ErrMismatch
	}
	return w.commit(d)
}

func (w *Writer) commit(d Digest) error {
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
	s.held[d] = held{size: size, touched: now, checked: now}
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

// Open returns a blob for reading, with its size. A file that was not looked at
// for a while is hashed first; one that rotted is thrown away. The error wraps
// ErrMissing when there is none, or none any more.
func (s *Store) Open(d Digest) (*os.File, int64, error) {
	s.mu.Lock()
	h, ok := s.held[d]
	s.mu.Unlock()
	if !ok {
		return nil, 0, ErrMissing
	}
	if time.Since(h.checked) > s.cfg.Recheck {
		if err := s.Check(d); err != nil {
			return nil, 0, err
		}
	}
	f, err := s.root().Open(d.path())
	if errors.Is(err, fs.ErrNotExist) {
		s.Remove(d, time.Now().Add(time.Hour))
		return nil, 0, ErrMissing
	}
	return f, h.size, err
}

// Sum hashes what r gives.
func Sum(r io.Reader) (d Digest, err error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return d, err
	}
	return Digest(sum.Sum(nil)), nil
}

// Check hashes a blob's file. One that is not what its name says is thrown
// away, and the error wraps ErrMissing and ErrMismatch.
func (s *Store) Check(d Digest) error {
	f, err := s.root().Open(d.path())
	if errors.Is(err, fs.ErrNotExist) {
		s.forget(d, nil)
		return ErrMissing
	} else if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return fmt.Errorf("read blob %s: %w", d, err)
	}
	if Digest(sum.Sum(nil)) == d {
		s.mu.Lock()
		defer s.mu.Unlock()
		if h, ok := s.held[d]; ok {
			h.checked = time.Now()
			s.held[d] = h
		}
		return nil
	}
	s.forget(d, f)
	return fmt.Errorf("%w: %w: %s was thrown away", ErrMissing, ErrMismatch, d)
}

// forget removes a file that is gone or rotten, unless it was replaced since it
// was opened as was.
func (s *Store) forget(d Digest, was *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.root().Stat(d.path())
	if err == nil {
		if was == nil {
			return
		}
		if info, err := was.Stat(); err != nil || !os.SameFile(info, now) {
			return
		}
		if s.root().Remove(d.path()) != nil {
			return
		}
	}
	s.used -= s.held[d].size
	delete(s.held, d)
}

// Touch notes that a blob was put again, so that it is not collected before what
// refers to it; it reports whether the store has an intact one.
func (s *Store) Touch(d Digest) bool {
	f, _, err := s.Open(d)
	if err != nil {
		return false
	}
	f.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.held[d]
	if !ok {
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
	s.used -= h.size
	delete(s.held, d)
	return true
}

// List returns the blobs that the store has, in order.
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

// stale returns the blobs whose bytes were not looked at for the longest time,
// of at most limit bytes in all, or one.
func (s *Store) stale(limit int64) (out []Digest) {
	type old struct {
		d Digest
		h held
	}
	s.mu.Lock()
	var all []old
	for d, h := range s.held {
		if time.Since(h.checked) > s.cfg.Recheck {
			all = append(all, old{d, h})
		}
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b old) int {
		return cmp.Or(a.h.checked.Compare(b.h.checked), a.d.Compare(b.d))
	})
	for _, o := range all {
		if len(out) > 0 && o.h.size > limit {
			break
		}
		limit -= o.h.size
		out = append(out, o.d)
	}
	return out
}
