package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// MARK says what was synced, outside the files that it speaks of. Pebble's log
// tells rot from a torn tail by what follows; at the end of the newest log
// nothing follows, and a log or manifest that is cut, zeroed or gone looks like
// one that never was longer. So the store notes for each log and manifest up to
// where it was synced, and the sum of these bytes:
//
//	8 bytes  "SLVMARK1"
//	8 bytes  sequence of this note, big endian, as all numbers here
//	8 bytes  index of the last raft entry that was synced, 0 when unknown
//	8 bytes  its term
//	2 bytes  number of files, then for each
//	1 byte     'L' write-ahead log, 'M' manifest
//	8 bytes    its number: the digits of its name
//	8 bytes    how many bytes of it are synced
//	4 bytes    CRC-32C of these bytes
//	4 bytes  CRC-32C of everything before
//
// A note stands in one of two slots of markSlot bytes, in turns, so a torn write
// leaves the note before. A reader takes the newer of the slots that are whole. A
// note is a lower bound: it is written after the sync that it tells of, and before
// a file that it names is removed or used again (then to both slots, and synced).
//
// Writing a note costs one write to the page cache, which outlives the process.
// The disk has it within markSyncEvery: after a power loss the note may be that
// much older than the log, which then has more than it promises.
const (
	markFile  = "MARK"
	markMagic = "SLVMARK1"
	markSlot  = 4096
	markHead  = 8 + 8 + 8 + 8 + 2
	markEntry = 1 + 8 + 8 + 4
	// markFiles bounds the files of a note. Pebble keeps a handful of logs and at
	// most two manifests; the newest are noted.
	markFiles = (markSlot - markHead - 4) / markEntry
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	// markKey stands in the database from the day on which it has a mark, so that
	// a mark that is gone is not taken for one that never was.
	markKey = []byte{'m'}
)

// A Head is the last entry of the raft log that was synced. It is told when a
// store is damaged, so that people know how much there was.
type Head struct{ Index, Term uint64 }

// A logged file is a log or manifest in a note.
type loggedFile struct {
	kind   byte
	number uint64
}

func (f loggedFile) name() string {
	if f.kind == 'M' {
		return fmt.Sprintf("MANIFEST-%06d", f.number)
	}
	return fmt.Sprintf("%06d.log", f.number)
}

// loggedName returns which logged file has the name, and whether it is one.
func loggedName(name string) (f loggedFile, ok bool) {
	if digits, ok := strings.CutSuffix(name, ".log"); ok {
		f.kind = 'L'
		_, err := fmt.Sscanf(digits, "%d", &f.number)
		return f, err == nil && f.name() == name
	}
	if digits, ok := strings.CutPrefix(name, "MANIFEST-"); ok {
		f.kind = 'M'
		_, err := fmt.Sscanf(digits, "%d", &f.number)
		return f, err == nil && f.name() == name
	}
	return f, false
}

// synced is how much of a file is on the disk.
type synced struct {
	bytes int64
	sum   uint32 // CRC-32C of these bytes
}

// A note is what MARK holds.
type note struct {
	seq   uint64
	head  Head
	files map[loggedFile]synced
}

func (n note) encode() []byte {
	names := make([]loggedFile, 0, len(n.files))
	for f := range n.files {
		names = append(names, f)
	}
	slices.SortFunc(names, func(a, b loggedFile) int {
		return cmp.Or(cmp.Compare(b.kind, a.kind), cmp.Compare(b.number, a.number)) // manifests, then logs, newest first
	})
	names = names[:min(len(names), markFiles)]
	b := make([]byte, 0, markHead+len(names)*markEntry+4)
	b = append(b, markMagic...)
	for _, v := range []uint64{n.seq, n.head.Index, n.head.Term} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(names)))
	for _, f := range names {
		b = append(b, f.kind)
		b = binary.BigEndian.AppendUint64(b, f.number)
		b = binary.BigEndian.AppendUint64(b, uint64(n.files[f].bytes))
		b = binary.BigEndian.AppendUint32(b, n.files[f].sum)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

var errNote = errors.New("not a whole note")

func decodeNote(b []byte) (n note, err error) {
	if len(b) < markHead+4 || string(b[:len(markMagic)]) != markMagic {
		return n, errNote
	}
	count := int(binary.BigEndian.Uint16(b[markHead-2:]))
	end := markHead + count*markEntry
	if count > markFiles || end+4 > len(b) || crc32.Checksum(b[:end], castagnoli) != binary.BigEndian.Uint32(b[end:]) {
		return n, errNote
	}
	n = note{
		seq:   binary.BigEndian.Uint64(b[8:]),
		head:  Head{Index: binary.BigEndian.Uint64(b[16:]), Term: binary.BigEndian.Uint64(b[24:])},
		files: make(map[loggedFile]synced, count),
	}
	for at := markHead; at < end; at += markEntry {
		f := loggedFile{kind: b[at], number: binary.BigEndian.Uint64(b[at+1:])}
		n.files[f] = synced{bytes: int64(binary.BigEndian.Uint64(b[at+9:])), sum: binary.BigEndian.Uint32(b[at+17:])}
		if n.files[f].bytes < 0 || f.kind != 'L' && f.kind != 'M' {
			return note{}, errNote
		}
	}
	return n, nil
}

// readMark returns the newest note in dir. It returns fs.ErrNotExist when there
// is no file, and a [Damage] when neither of its slots is whole.
func readMark(fsys vfs.FS, dir string) (n note, err error) {
	f, err := fsys.Open(fsys.PathJoin(dir, markFile))
	if err != nil {
		return n, err
	}
	b, err := io.ReadAll(io.LimitReader(f, 2*markSlot))
	if err = errors.Join(err, f.Close()); err != nil {
		return n, &Damage{File: markFile, Kind: DamageRead, Err: err}
	}
	found := false
	for at := 0; at < len(b); at += markSlot {
		if got, err := decodeNote(b[at:min(at+markSlot, len(b))]); err == nil && (!found || got.seq > n.seq) {
			n, found = got, true
		}
	}
	if !found {
		return n, &Damage{File: markFile, Kind: DamageMark}
	}
	return n, nil
}

// check holds the files in dir against the note: all that was synced must be
// there. It reads the logs and manifests once.
func (n note) check(fsys vfs.FS, dir string) error {
	names := make([]loggedFile, 0, len(n.files))
	for f, s := range n.files {
		if s.bytes > 0 {
			names = append(names, f)
		}
	}
	slices.SortFunc(names, func(a, b loggedFile) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.number, b.number))
	})
	for _, f := range names {
		if d := checkFile(fsys, fsys.PathJoin(dir, f.name()), n.files[f]); d != nil {
			d.File = f.name()
			if n.head.Index > 0 {
				d.Err = errors.Join(d.Err, fmt.Errorf("the raft log was synced up to entry %d of term %d", n.head.Index,
					n.head.Term))
			}
			return d
		}
	}
	return nil
}

func checkFile(fsys vfs.FS, path string, want synced) *Damage {
	f, err := fsys.Open(path, vfs.SequentialReadsOption)
	if errors.Is(err, fs.ErrNotExist) {
		return &Damage{Kind: DamageLost}
	} else if err != nil {
		return &Damage{Kind: DamageRead, Err: err}
	}
	defer f.Close()
	sum, read := uint32(0), int64(0)
	buf := make([]byte, 256<<10)
	for read < want.bytes {
		k, err := f.Read(buf[:min(int64(len(buf)), want.bytes-read)])
		sum, read = crc32.Update(sum, castagnoli, buf[:k]), read+int64(k)
		if err == io.EOF && read < want.bytes {
			return &Damage{Kind: DamageCut, Err: fmt.Errorf("it has %d of %d bytes", read, want.bytes)}
		} else if err != nil && err != io.EOF {
			return &Damage{Kind: DamageRead, Err: err}
		}
	}
	if sum != want.sum {
		return &Damage{Kind: DamageChanged, Err: fmt.Errorf("the first %d bytes have another sum", want.bytes)}
	}
	return nil
}

// A mark keeps MARK true while the store is open. Its locks are leaves: nothing
// but the file is touched under them.
type mark struct {
	fs  vfs.FS
	dir string
	log *slog.Logger

	slots  sync.Mutex // held while both slots are written; taken before mu
	mu     sync.Mutex // guards what follows, and the order of writes
	f      vfs.File   // nil before begin: nothing is written yet
	note   note
	slow   bool        // both slots are being written: commits do not wait for it
	late   bool        // a commit came meanwhile, whose note is still to be written
	timer  *time.Timer // runs while the disk may have less than the file
	busy   sync.WaitGroup
	failed bool // a write failed; the last whole note stands
	closed bool
}

// newMark returns the mark of a store that goes on from n. It keeps count from
// now on, and writes from begin on.
func newMark(fsys vfs.FS, dir string, n note, log *slog.Logger) *mark {
	if n.files == nil {
		n.files = map[loggedFile]synced{}
	}
	return &mark{fs: fsys, dir: dir, log: log, note: n}
}

// begin opens or makes the file and writes the note to it, durably.
func (m *mark) begin() error {
	f, err := m.fs.OpenReadWrite(m.fs.PathJoin(m.dir, markFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("open mark: %w", err)
	}
	m.mu.Lock()
	m.f = f
	m.mu.Unlock()
	if err := errors.Join(m.both(), SyncDir(m.fs, m.dir)); err != nil {
		m.mu.Lock()
		m.f = nil
		m.mu.Unlock()
		return errors.Join(fmt.Errorf("write mark: %w", err), f.Close())
	}
	return nil
}

// reached notes in memory that a file is synced that far.
func (m *mark) reached(f loggedFile, s synced) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note.files[f] = s
}

// forget takes a file out of the note, durably, before the file goes or is used
// for something else.
func (m *mark) forget(f loggedFile) error {
	m.mu.Lock()
	_, told := m.note.files[f]
	if !m.closed {
		delete(m.note.files, f)
	}
	write := told && !m.closed && m.f != nil
	m.mu.Unlock()
	if !write {
		return nil
	}
	return m.both()
}

// put writes the note, after a commit was synced. An error is logged once: the
// note before stands, which promises less.
func (m *mark) put(h Head) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.f == nil {
		return
	}
	if h != (Head{}) {
		m.note.head = h
	}
	if m.slow {
		m.late = true
		return
	}
	m.putLocked()
}

// putLocked is put; the caller holds mu.
func (m *mark) putLocked() {
	if err := m.write(); err != nil {
		if !m.failed {
			m.log.Error("store: the mark of what was synced can not be written", "err", err)
		}
		m.failed = true
		return
	}
	m.failed = false
	if m.timer == nil {
		m.busy.Add(1)
		m.timer = time.AfterFunc(markSyncEvery, m.flush)
	}
}

// flush brings the file to the disk, out of the way of commits.
func (m *mark) flush() {
	defer m.busy.Done()
	m.mu.Lock()
	m.timer = nil
	closed := m.closed
	m.mu.Unlock()
	if closed {
		return
	}
	if err := m.f.SyncData(); err != nil {
		m.log.Error("store: sync the mark", "err", err)
	}
}

// write puts the note into the slot whose turn it is. The caller holds mu.
func (m *mark) write() error {
	m.note.seq++
	b := m.note.encode()
	_, err := m.f.WriteAt(b, int64(m.note.seq%2)*markSlot)
	return err
}

// both writes the note to both slots, one after the other, so that no slot that
// survives a torn write speaks of what the note no longer names. A commit that comes
// meanwhile does not wait for the disk: its note is written at the end, and until then
// the one before stands, which promises less.
func (m *mark) both() error {
	m.slots.Lock()
	defer m.slots.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slow = true
	defer func() {
		if m.slow = false; m.late && !m.closed {
			m.putLocked()
		}
		m.late = false
	}()
	for range 2 {
		if err := m.write(); err != nil {
			return err
		}
		m.mu.Unlock()
		err := m.f.SyncData()
		m.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// close writes all that is known and ends.
func (m *mark) close() error {
	m.mu.Lock()
	ended := m.closed || m.f == nil
	m.closed = true
	if !ended && m.timer != nil && m.timer.Stop() {
		m.busy.Done()
	}
	m.mu.Unlock()
	if ended {
		return nil
	}
	err := m.both()
	m.busy.Wait()
	return errors.Join(err, m.f.Close())
}

// loggedWriter follows what is written to a log or manifest. Pebble writes and
// syncs a file from one goroutine at a time.
type loggedWriter struct {
	vfs.File
	m    *mark
	name loggedFile
	now  synced // all that was written
}

func (w *loggedWriter) Write(p []byte) (int, error) {
	sum := crc32.Update(w.now.sum, castagnoli, p) // before: Write may change p
	n, err := w.File.Write(p)
	if n == len(p) {
		w.now = synced{bytes: w.now.bytes + int64(n), sum: sum}
	}
	return n, err
}

func (w *loggedWriter) Sync() error {
	err := w.File.Sync()
	if err == nil {
		w.m.reached(w.name, w.now)
	}
	return err
}

func (w *loggedWriter) SyncData() error {
	err := w.File.SyncData()
	if err == nil {
		w.m.reached(w.name, w.now)
	}
	return err
}

func (w *loggedWriter) SyncTo(n int64) (bool, error) {
	full, err := w.File.SyncTo(n)
	if full && err == nil {
		w.m.reached(w.name, w.now)
	}
	return full, err
}
