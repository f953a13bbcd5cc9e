package consensus

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"github.com/selvage-mesh/selvage/ledger/store"
)

// A snapshot is a file <term>-<index>.snap (16 hex digits each) in the
// snapshot directory:
//
//	8 bytes  "SLVSNAP1"
//	4 bytes  length of the header, big endian, as all numbers here
//	...      header: 8 bytes index, 8 bytes term, 8 bytes index of the
//	         configuration, then the configuration as raft encodes it
//	4 bytes  CRC-32C of everything before
//	then chunks, each
//	4 bytes  length, 1 to 1 MiB
//	...      that many bytes of the state
//	4 bytes  CRC-32C of these bytes
//	and at the end
//	4 bytes  0
//	8 bytes  length of the state
//	32 bytes SHA-256 of the state
//
// A state of length 0 says that there is no state in the file: it was put into
// the store before, and the file only tells raft where its log goes on. See [Base].
//
// It is written under another name, synced, and renamed, so that a file of the
// right name is whole. A reader checks each chunk before it gives it out, and
// the sum at the end. Another magic is refused.
const (
	snapMagic    = "SLVSNAP1"
	snapSuffix   = ".snap"
	snapPartial  = ".partial"
	snapTrailer  = 4 + 8 + sha256.Size
	snapChunk    = 256 << 10
	maxSnapChunk = 1 << 20
	maxSnapHead  = 1 << 20
)

var (
	errSnapshot = errors.New("snapshot file is damaged")
	errNoState  = errors.New("the snapshot has no state of its own yet")
)

// snapshots is raft's snapshot store in a directory.
type snapshots struct {
	fs  vfs.FS
	dir string
	log *slog.Logger

	doubted chan struct{} // a reader met damage

	mu sync.Mutex // guards the set of files while one is added and others removed
}

func openSnapshots(fs vfs.FS, dir string, log *slog.Logger) (*snapshots, error) {
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make snapshot directory: %w", err)
	}
	s := &snapshots{fs: fs, dir: dir, log: log, doubted: make(chan struct{}, 1)}
	if err := store.SyncDir(fs, fs.PathDir(dir)); err != nil { // or a power loss takes the directory away
		return nil, fmt.Errorf("sync above the snapshot directory: %w", err)
	}
	names, err := fs.List(dir)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	for _, n := range names {
		if strings.HasSuffix(n, snapPartial) { // left by a crash
			if err := fs.Remove(fs.PathJoin(dir, n)); err != nil {
				return nil, fmt.Errorf("remove unfinished snapshot: %w", err)
			}
		}
	}
	return s, nil
}

func snapID(term, index uint64) string { return fmt.Sprintf("%016x-%016x", term, index) }

func (s *snapshots) path(name string) string { return s.fs.PathJoin(s.dir, name) }

// Create begins a snapshot.
func (s *snapshots) Create(_ raft.SnapshotVersion, index, term uint64, conf raft.Configuration, confIndex uint64,
	_ raft.Transport) (raft.SnapshotSink, error) {
	id := snapID(term, index)
	f, err := s.fs.Create(s.path(id+snapPartial), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("create snapshot: %w", err)
	}
	k := &snapSink{s: s, id: id, f: f, sum: sha256.New()}
	if _, err := f.Write(snapHead(index, term, conf, confIndex)); err != nil {
		return nil, errors.Join(fmt.Errorf("write snapshot: %w", err), k.Cancel())
	}
	return k, nil
}

func snapHead(index, term uint64, conf raft.Configuration, confIndex uint64) []byte {
	var h []byte
	h = binary.BigEndian.AppendUint64(h, index)
	h = binary.BigEndian.AppendUint64(h, term)
	h = binary.BigEndian.AppendUint64(h, confIndex)
	h = append(h, raft.EncodeConfiguration(conf)...)
	b := binary.BigEndian.AppendUint32([]byte(snapMagic), uint32(len(h)))
	b = append(b, h...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// readSnapHead reads the head of a snapshot.
func readSnapHead(r io.Reader) (m *raft.SnapshotMeta, err error) {
	fixed := make([]byte, len(snapMagic)+4)
	if _, err := io.ReadFull(r, fixed); err != nil {
		return nil, fmt.Errorf("%w: %w", errSnapshot, err)
	}
	if string(fixed[:len(snapMagic)]) != snapMagic {
		return nil, fmt.Errorf("%w: not a snapshot of a known version", errSnapshot)
	}
	n := binary.BigEndian.Uint32(fixed[len(snapMagic):])
	if n < 24 || n > maxSnapHead {
		return nil, fmt.Errorf("%w: header of %d bytes", errSnapshot, n)
	}
	rest := make([]byte, n+4)
	if _, err := io.ReadFull(r, rest); err != nil {
		return nil, fmt.Errorf("%w: %w", errSnapshot, err)
	}
	h := rest[:n]
	if crc32.Update(crc32.Checksum(fixed, castagnoli), castagnoli, h) != binary.BigEndian.Uint32(rest[n:]) {
		return nil, fmt.Errorf("%w: header checksum", errSnapshot)
	}
	defer func() { // raft panics on a configuration that it can not read
		if p := recover(); p != nil {
			m, err = nil, fmt.Errorf("%w: configuration: %v", errSnapshot, p)
		}
	}()
	m = &raft.SnapshotMeta{
		Version:            raft.SnapshotVersionMax,
		Index:              binary.BigEndian.Uint64(h),
		Term:               binary.BigEndian.Uint64(h[8:]),
		ConfigurationIndex: binary.BigEndian.Uint64(h[16:]),
		Configuration:      raft.DecodeConfiguration(h[24:]),
	}
	m.ID = snapID(m.Term, m.Index)
	return m, nil
}

// List returns the snapshots, newest first. A file that can not be read is
// passed over and logged.
func (s *snapshots) List() ([]*raft.SnapshotMeta, error) {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var out []*raft.SnapshotMeta
	for _, n := range names {
		id, ok := strings.CutSuffix(n, snapSuffix)
		if !ok {
			continue
		}
		m, err := s.stat(id)
		if err != nil {
			s.log.Error("consensus: snapshot is passed over", "file", n, "err", err)
			continue
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *raft.SnapshotMeta) int {
		return cmp.Or(cmp.Compare(b.Term, a.Term), cmp.Compare(b.Index, a.Index))
	})
	return out, nil
}

func (s *snapshots) stat(id string) (*raft.SnapshotMeta, error) {
	f, err := s.fs.Open(s.path(id + snapSuffix))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := readSnapHead(f)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	tail := make([]byte, snapTrailer)
	if info.Size() < int64(len(tail)) {
		return nil, fmt.Errorf("%w: too short", errSnapshot)
	}
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil {
		return nil, fmt.Errorf("%w: %w", errSnapshot, err)
	}
	size := binary.BigEndian.Uint64(tail[4:])
	if binary.BigEndian.Uint32(tail) != 0 || size > uint64(info.Size()) || m.ID != id {
		return nil, fmt.Errorf("%w: trailer", errSnapshot)
	}
	m.Size = int64(size)
	return m, nil
}

// Open returns the state in a snapshot; reading it to the end checks it.
func (s *snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	m, err := s.stat(id)
	if err != nil {
		return nil, nil, fmt.Errorf("open snapshot %s: %w", id, err)
	}
	if m.Size == 0 {
		return nil, nil, fmt.Errorf("open snapshot %s: %w", id, errNoState)
	}
	f, err := s.fs.Open(s.path(id + snapSuffix))
	if err != nil {
		return nil, nil, fmt.Errorf("open snapshot %s: %w", id, err)
	}
	if _, err := readSnapHead(f); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open snapshot %s: %w", id, err), f.Close())
	}
	return m, &snapReader{f: f, r: f, sum: sha256.New(), damaged: s.doubt}, nil
}

// doubt has the snapshots looked at soon.
func (s *snapshots) doubt() {
	select {
	case s.doubted <- struct{}{}:
	default:
	}
}

// check reads a snapshot to its end, at a pace that leaves the machine to others,
// and returns errSnapshot when it is damaged.
func (s *snapshots) check(ctx context.Context, id string) error {
	_, r, err := s.Open(id)
	if errors.Is(err, errNoState) {
		return nil
	} else if err != nil {
		return err
	}
	defer r.Close()
	buf := make([]byte, snapChunk)
	for {
		began := time.Now()
		if _, err := io.ReadFull(r, buf); err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := sleep(ctx, snapCheckRest*time.Since(began)); err != nil {
			return err
		}
	}
}

// remove takes a snapshot away that is damaged.
func (s *snapshots) remove(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.fs.Remove(s.path(id+snapSuffix)), store.SyncDir(s.fs, s.dir))
}

// prune removes all but the newest snapshots.
func (s *snapshots) prune() error {
	all, err := s.List()
	if err != nil {
		return err
	}
	for _, m := range all[min(keptSnapshots, len(all)):] {
		if err := s.fs.Remove(s.path(m.ID + snapSuffix)); err != nil {
			return fmt.Errorf("remove old snapshot: %w", err)
		}
	}
	return nil
}

// A snapSink writes one snapshot. Used by one goroutine.
type snapSink struct {
	s    *snapshots
	id   string
	f    vfs.File
	buf  bytes.Buffer
	sum  hash.Hash
	size uint64
	err  error
	done bool
}

func (k *snapSink) ID() string { return k.id }

func (k *snapSink) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && k.err == nil {
		take := min(len(p), snapChunk-k.buf.Len())
		k.buf.Write(p[:take])
		p = p[take:]
		if k.buf.Len() == snapChunk {
			k.flush()
		}
	}
	if k.err != nil {
		return 0, k.err
	}
	return n, nil
}

func (k *snapSink) flush() {
	b := k.buf.Bytes()
	if len(b) == 0 || k.err != nil {
		return
	}
	k.sum.Write(b)
	k.size += uint64(len(b))
	out := binary.BigEndian.AppendUint32(make([]byte, 0, len(b)+8), uint32(len(b)))
	out = append(out, b...)
	out = binary.BigEndian.AppendUint32(out, crc32.Checksum(b, castagnoli))
	if _, err := k.f.Write(out); err != nil {
		k.err = fmt.Errorf("write snapshot: %w", err)
	}
	k.buf.Reset()
}

// Close finishes the snapshot; it is then durable, and older ones are removed.
func (k *snapSink) Close() error {
	if k.done {
		return k.err
	}
	k.flush()
	if k.err != nil {
		return errors.Join(k.err, k.Cancel())
	}
	tail := binary.BigEndian.AppendUint64(make([]byte, 4, snapTrailer), k.size)
	if _, err := k.f.Write(k.sum.Sum(tail)); err != nil {
		return errors.Join(fmt.Errorf("write snapshot: %w", err), k.Cancel())
	}
	if err := k.f.Sync(); err != nil {
		return errors.Join(fmt.Errorf("sync snapshot: %w", err), k.Cancel())
	}
	k.done = true
	if err := k.f.Close(); err != nil {
		return fmt.Errorf("close snapshot: %w", err)
	}
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	if err := k.s.fs.Rename(k.s.path(k.id+snapPartial), k.s.path(k.id+snapSuffix)); err != nil {
		return fmt.Errorf("finish snapshot: %w", err)
	}
	if err := store.SyncDir(k.s.fs, k.s.dir); err != nil {
		return fmt.Errorf("sync snapshot directory: %w", err)
	}
	return k.s.prune()
}

// Cancel drops the snapshot.
func (k *snapSink) Cancel() error {
	if k.done {
		return nil
	}
	k.done = true
	k.err = cmp.Or(k.err, errors.New("snapshot was cancelled"))
	return errors.Join(k.f.Close(), k.s.fs.Remove(k.s.path(k.id+snapPartial)))
}

// A snapReader reads the chunks of a snapshot.
type snapReader struct {
	damaged func() // hears of damage
	f       io.Closer
	r       io.Reader
	buf     []byte
	sum     hash.Hash
	size    uint64
	err     error
}

func (r *snapReader) Read(p []byte) (int, error) {
	for len(r.buf) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		if r.buf, r.err = r.chunk(); errors.Is(r.err, errSnapshot) {
			r.damaged()
		}
		if len(r.buf) == 0 && r.err == nil {
			r.err = io.EOF
		}
	}
	n := copy(p, r.buf)
	r.buf = r.buf[n:]
	return n, nil
}

// chunk returns the next chunk, or nothing at the end once the sum is right.
func (r *snapReader) chunk() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return nil, fmt.Errorf("%w: %w", errSnapshot, err)
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxSnapChunk {
		return nil, fmt.Errorf("%w: chunk of %d bytes", errSnapshot, n)
	}
	if n == 0 {
		tail := make([]byte, snapTrailer-4)
		if _, err := io.ReadFull(r.r, tail); err != nil {
			return nil, fmt.Errorf("%w: %w", errSnapshot, err)
		}
		if binary.BigEndian.Uint64(tail) != r.size || !bytes.Equal(tail[8:], r.sum.Sum(nil)) {
			return nil, fmt.Errorf("%w: sum of the state", errSnapshot)
		}
		return nil, nil
	}
	b := make([]byte, n+4)
	if _, err := io.ReadFull(r.r, b); err != nil {
		return nil, fmt.Errorf("%w: %w", errSnapshot, err)
	}
	b, sum := b[:n], binary.BigEndian.Uint32(b[n:])
	if crc32.Checksum(b, castagnoli) != sum {
		return nil, fmt.Errorf("%w: chunk checksum", errSnapshot)
	}
	r.sum.Write(b)
	r.size += uint64(n)
	return b, nil
}

func (r *snapReader) Close() error { return r.f.Close() }
