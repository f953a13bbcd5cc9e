package ledger

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"sync"

	"github.com/selvage-mesh/selvage/ledger/store"
)

// A snapshot is the whole state at one raft index, rows, chain, batches and
// position, in the order of the keys:
//
//	"selvage-snapshot/1\n"
//	bytes position (see Position)
//	blocks: length (4), CRC-32C of the payload (4), payload;
//	        the payload is a row of: bytes key, bytes value
//	the end: length 0, then rows (8) and SHA-256 (32) of everything before it
//
// A stream that begins with "selvage-snapshot/2\n" is the same without the
// SHA-256, which takes most of the time of reading or writing one. It is for
// what lies inside a sealed file, where each byte is known to be genuine.
//
// Integers are big endian, "bytes" with a uvarint length. A block has at most
// snapshotBlock bytes unless one row is longer. The position is a row too; the
// one in front lets a reader choose without reading the rest. Readers refuse
// other versions, a checksum that does not fit, and bytes after the end they
// leave alone.
const (
	snapshotMagic = "selvage-snapshot/1\n"
	unsummedMagic = "selvage-snapshot/2\n"
	snapshotBlock = 64 << 10
	// streamBuffer gathers what is small; blocks pass it by.
	streamBuffer = 16 << 10
	// maxSnapshotBlock bounds what a reader allocates: a row is an entry, a batch
	// record or a value of a command, so it is well below the batch limit.
	maxSnapshotBlock = 16 << 20
)

// ErrSnapshot says that a stream is not a whole, undamaged snapshot.
var ErrSnapshot = errors.New("not a valid snapshot")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Snapshot is the state at one moment, taken at once and written later.
// While it is open, Restore and Close of its ledger wait.
type Snapshot struct {
	Position Position

	snap    *store.Snapshot
	release func()
	once    sync.Once
}

// Snapshot returns the state as it is now, in microseconds. It returns an error
// that wraps [ErrUpgrade] when the ledger stopped: its state is then older than
// the log that a snapshot would stand for.
func (l *Ledger) Snapshot() (*Snapshot, error) {
	l.applying.Lock() // so that position and content belong together
	defer l.applying.Unlock()
	if err := l.Err(); err != nil {
		return nil, err
	}
	l.readers.RLock()
	return &Snapshot{Position: l.Position(), snap: l.span.Snapshot(), release: l.readers.RUnlock}, nil
}

// Close releases the snapshot. It may be called again.
func (s *Snapshot) Close() (err error) {
	s.once.Do(func() {
		err = s.snap.Close()
		s.release()
	})
	return err
}

// WriteTo streams the snapshot.
func (s *Snapshot) WriteTo(to io.Writer) (n int64, err error) {
	n, _, err = s.write(to, true)
	return n, err
}

// WriteUnsummed streams the snapshot without a sum of its own, to what keeps it
// from being changed or cut short: a sealed file.
func (s *Snapshot) WriteUnsummed(to io.Writer) error {
	_, _, err := s.write(to, false)
	return err
}

// Sum reads the whole snapshot and returns SHA-256 of its stream up to the sum
// itself. Nodes at the same applied index have the same: it is the full scan
// that finds a state whose bytes changed behind the running digest.
func (s *Snapshot) Sum() (Hash, error) {
	_, sum, err := s.write(io.Discard, true)
	return sum, err
}

// snapshotAhead is how many blocks may wait between who reads and who writes.
const snapshotAhead = 2

func (s *Snapshot) write(to io.Writer, summed bool) (n int64, sum Hash, err error) {
	w, magic := snapshotWriter{w: bufio.NewWriterSize(to, streamBuffer)}, unsummedMagic
	if summed {
		w.sum, magic = newStreamSum(), snapshotMagic
	}
	w.write(appendBytes([]byte(magic), s.Position.encode()))
	made, free, stop := make(chan []byte, snapshotAhead), make(chan []byte, snapshotAhead+3), make(chan struct{})
	rows := uint64(0)
	go func() {
		defer close(made)
		rows, err = s.blocks(made, free, stop)
	}()
	var before []byte
	stopped := false
	for block := range made {
		w.write(block)
		if before != nil && w.err == nil { // it is hashed, since the next one was taken
			free <- before // there is room for all of them
		}
		if before = block; w.err != nil && !stopped {
			stopped = true
			close(stop)
		}
	}
	if err = errors.Join(w.err, err); err != nil {
		return w.n, sum, err
	}
	sum = w.end(rows)
	return w.n, sum, w.err
}

// blocks gives the rows to made, in memory of free if there is some.
func (s *Snapshot) blocks(made chan<- []byte, free <-chan []byte, stop <-chan struct{}) (rows uint64, err error) {
	defer func() {
		if r := recover(); r != nil {
			failure, ok := r.(StorageError)
			if !ok {
				panic(r)
			}
			err = failure
		}
	}()
	begin := func() []byte {
		select {
		case b := <-free:
			return b[:blockHead]
		default:
			return make([]byte, blockHead, blockHead+snapshotBlock)
		}
	}
	block := begin()
	give := func() bool {
		body := block[blockHead:]
		binary.BigEndian.PutUint32(block, uint32(len(body)))
		binary.BigEndian.PutUint32(block[4:], crc32.Checksum(body, castagnoli))
		select {
		case made <- block:
			block = begin()
			return true
		case <-stop:
			return false
		}
	}
	for k, v := range s.snap.Scan(nil, nil, false) {
		if held := len(block) - blockHead; held > 0 && held+len(k)+len(v) > snapshotBlock && !give() {
			return rows, nil
		}
		block = appendBytes(appendBytes(block, k), v)
		rows++
	}
	if len(block) > blockHead {
		give()
	}
	return rows, nil
}

// A streamSum hashes a stream, the last piece of it while the caller goes on. A
// nil one hashes nothing.
type streamSum struct {
	h    hash.Hash
	busy sync.WaitGroup
}

func newStreamSum() *streamSum { return &streamSum{h: sha256.New()} }

// add hashes b, which must not change before the next call of a method.
func (s *streamSum) add(b []byte) {
	if s != nil {
		s.busy.Wait()
		s.busy.Go(func() { s.h.Write(b) })
	}
}

func (s *streamSum) addNow(b []byte) {
	if s != nil {
		s.busy.Wait()
		s.h.Write(b)
	}
}

func (s *streamSum) sum() (sum Hash) {
	s.busy.Wait()
	s.h.Sum(sum[:0])
	return sum
}

// blockHead is how many bytes of length and checksum go before a block.
const blockHead = 8

type snapshotWriter struct {
	w   *bufio.Writer
	sum *streamSum // nil for a stream without
	n   int64
	err error
}

// write gives b to the stream; it must not change before the next write.
func (w *snapshotWriter) write(b []byte) {
	if w.err != nil {
		return
	}
	w.sum.add(b)
	n, err := w.w.Write(b)
	w.n, w.err = w.n+int64(n), err
}

func (w *snapshotWriter) end(rows uint64) (sum Hash) {
	w.write(binary.BigEndian.AppendUint64([]byte{0, 0, 0, 0}, rows))
	if w.sum != nil {
		sum = w.sum.sum()
		w.write(sum[:])
	}
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return sum
}

// Restore replaces the whole state by a snapshot, in one atomic step that is
// durable when it returns; the raft log is untouched. Readers are let finish
// and kept out only during the step itself. A stream that is damaged or cut
// short, or a disk that is full, leaves everything as it was; errors then wrap
// [ErrSnapshot] or [store.ErrDiskFull]. A ledger that had stopped applying goes on.
func (l *Ledger) Restore(r io.Reader) error {
	l.applying.Lock()
	defer l.applying.Unlock()
	if _, err := l.appliedOrClosed(); err != nil {
		return err
	}
	in := newSnapshotStream(r)
	pos, err := in.head()
	if err != nil {
		return err
	}
	var stored []byte
	locked := false
	defer func() {
		if locked {
			l.readers.Unlock()
		}
	}()
	err = l.span.Replace(func(put func(key, value []byte) error) error {
		err := in.rows(func(k, v []byte) error {
			if bytes.Equal(k, positionKey) {
				stored = bytes.Clone(v)
			}
			return put(k, v)
		})
		if err == nil && !bytes.Equal(stored, pos.encode()) {
			err = fmt.Errorf("%w: its position is not the one announced", ErrSnapshot)
		}
		if err == nil {
			l.readers.Lock() // the tables are written; what follows is the step
			locked = true
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	l.apply.init(l, pos)
	l.reads = newReadCache(l.room(l.cfg.ReadCacheBytes)) // nobody reads now
	l.mu.Lock()
	l.recent, l.recentSize = nil, 0
	l.members.forget()
	l.mu.Unlock()
	stop, err := l.tooNew()
	l.publish(stop)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return nil
}

// CheckSnapshot reads a snapshot to its end, checks it, and tells how far it is
// and how many rows it has.
func CheckSnapshot(r io.Reader) (pos Position, rows uint64, err error) {
	in := newSnapshotStream(r)
	if pos, err = in.head(); err != nil {
		return pos, 0, err
	}
	err = in.rows(func(k, v []byte) error {
		rows++
		return nil
	})
	return pos, rows, err
}

type snapshotStream struct {
	r   *bufio.Reader
	sum *streamSum // nil before the first line was read, and of a stream without
}

func newSnapshotStream(r io.Reader) *snapshotStream {
	return &snapshotStream{r: bufio.NewReaderSize(r, streamBuffer)}
}

func (s *snapshotStream) read(b []byte) error {
	if _, err := io.ReadFull(s.r, b); err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return nil
}

func (s *snapshotStream) full(b []byte) error {
	if err := s.read(b); err != nil {
		return err
	}
	s.sum.addNow(b)
	return nil
}

func (s *snapshotStream) head() (Position, error) {
	magic := make([]byte, len(snapshotMagic))
	if err := s.read(magic); err != nil {
		return Position{}, err
	}
	switch string(magic) {
	case snapshotMagic:
		s.sum = newStreamSum()
		s.sum.addNow(magic)
	case unsummedMagic:
	default:
		return Position{}, fmt.Errorf("%w: not a snapshot of this version", ErrSnapshot)
	}
	b := make([]byte, len(positionPrefix)+positionBytes)
	if err := s.full(b); err != nil {
		return Position{}, err
	}
	if !bytes.HasPrefix(b, positionPrefix) {
		return Position{}, fmt.Errorf("%w: position of another size", ErrSnapshot)
	}
	pos, err := decodePosition(b[len(positionPrefix):])
	if err != nil {
		return Position{}, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return pos, nil
}

// positionPrefix is the length of a position, as appendBytes writes it.
var positionPrefix = binary.AppendUvarint(nil, positionBytes)

// rows gives each row to put and checks the stream to its end.
func (s *snapshotStream) rows(put func(k, v []byte) error) error {
	blocks, free, stop := make(chan streamBlock, snapshotAhead), make(chan []byte, snapshotAhead+2), make(chan struct{})
	var broken error
	go func() {
		defer close(blocks)
		broken = s.blocks(blocks, free, stop)
	}()
	var rows uint64
	var err error
	for b := range blocks {
		if err != nil {
			continue // until the reader has stopped
		}
		if err = b.rows(&rows, put); err != nil {
			close(stop)
		}
		free <- b.body // there is room for all of them
	}
	if err != nil || broken != nil {
		return cmp.Or(err, broken)
	}
	var count [8]byte
	if err := s.full(count[:]); err != nil {
		return err
	}
	whole := binary.BigEndian.Uint64(count[:]) == rows
	if s.sum != nil {
		want, got := s.sum.sum(), make([]byte, sha256.Size)
		if err := s.read(got); err != nil {
			return err
		}
		whole = whole && bytes.Equal(got, want[:])
	}
	if !whole {
		return fmt.Errorf("%w: damaged", ErrSnapshot)
	}
	return nil
}

// A streamBlock is one block of a stream, as it was read.
type streamBlock struct {
	body []byte
	crc  uint32
}

// blocks reads blocks ahead, into memory of free if there is some, up to the end
// that has none.
func (s *snapshotStream) blocks(out chan<- streamBlock, free <-chan []byte, stop <-chan struct{}) error {
	for {
		var head [blockHead]byte
		if err := s.full(head[:4]); err != nil {
			return err
		}
		n := binary.BigEndian.Uint32(head[:4])
		if n == 0 {
			return nil
		}
		if n > maxSnapshotBlock {
			return fmt.Errorf("%w: a block of %d bytes", ErrSnapshot, n)
		}
		if err := s.full(head[4:]); err != nil {
			return err
		}
		var body []byte
		select {
		case body = <-free: // it is hashed, since a head was read after it
		default:
		}
		if uint32(cap(body)) < n {
			body = make([]byte, n)
		}
		body = body[:n]
		if err := s.read(body); err != nil {
			return err
		}
		s.sum.add(body)
		select {
		case out <- streamBlock{body, binary.BigEndian.Uint32(head[4:])}:
		case <-stop:
			return nil
		}
	}
}

// rows checks a block and gives its rows to put.
func (b streamBlock) rows(n *uint64, put func(k, v []byte) error) error {
	if crc32.Checksum(b.body, castagnoli) != b.crc {
		return fmt.Errorf("%w: damaged block", ErrSnapshot)
	}
	for p := (parser{b: b.body}); len(p.b) > 0; *n++ {
		k, v := p.bytes(), p.bytes()
		if p.bad || len(k) == 0 {
			return fmt.Errorf("%w: malformed row", ErrSnapshot)
		}
		if err := put(k, v); err != nil {
			return err
		}
	}
	return nil
}
