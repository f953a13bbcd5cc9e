package courier

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/kernel/post"
	"github.com/selvage-mesh/selvage/ledger"
)

// The journal holds the durable messages of this node that are not acknowledged, and the IDs of
// those that its processes handled. It is one file of records:
//
//	length of the body (4, big endian) | CRC-32 (IEEE) of the body (4) | body
//
// The body is a record as deterministic CBOR. A record that is torn ends the file: it was not
// promised, since each record is synced before it counts. One that is damaged ends it as well,
// and the file is set aside under the name messages.damaged. At the start,
// and when it has grown enough, the file is written anew with what still matters, under another
// name, synced and renamed.
type journal struct {
	dir   string
	epoch uint64

	mu      sync.Mutex // guards what follows
	file    *os.File
	size    int64 // of the file
	fresh   int64 // its size when it was written anew
	kept    map[string]*wireMsg
	handled []string // the oldest first
	broken  error    // a write failed: the file ends in the middle of a record
	damaged bool     // when it was opened, a record was not as it was written
}

type record struct {
	Epoch   uint64   `cbor:"1,keyasint,omitempty"`
	Keep    *wireMsg `cbor:"2,keyasint,omitempty"`
	Settled string   `cbor:"3,keyasint,omitempty"`
	Handled string   `cbor:"4,keyasint,omitempty"`
}

const (
	journalName = "messages"
	recordHead  = 8
	// rewriteAt is how many bytes the journal grows before it is written anew. handledMost bounds
	// the IDs that it remembers: more than can be under way.
	rewriteAt   = 32 << 20
	handledMost = post.SeenMost / 2
	// recordMost bounds a body: a message with its envelope.
	recordMost = post.MaxMessage + 64<<10
)

// openJournal reads the journal of a directory and returns the messages to be sent.
func openJournal(dir string, now time.Time) (*journal, []*post.Message, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("messages: %w", err)
	}
	j := &journal{dir: dir, kept: map[string]*wireMsg{}}
	f, err := os.Open(filepath.Join(dir, journalName))
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, nil, fmt.Errorf("messages: %w", err)
	default:
		j.damaged = !j.read(f)
		f.Close()
	}
	if j.damaged {
		if err := os.Rename(filepath.Join(dir, journalName), filepath.Join(dir, journalName+".damaged")); err != nil {
			return nil, nil, fmt.Errorf("messages: %w", err)
		}
	}
	j.epoch = max(j.epoch+1, uint64(now.UnixMilli()))
	if err := j.rewrite(); err != nil {
		return nil, nil, err
	}
	var out []*post.Message
	for _, id := range sortedIDs(j.kept) {
		m, err := j.kept[id].message()
		if err != nil || !m.Deadline.After(now) {
			delete(j.kept, id)
			continue
		}
		out = append(out, m)
	}
	return j, out, nil
}

func sortedIDs(m map[string]*wireMsg) []string {
	ids := make([]string, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// read applies records up to the end or the first that is torn. It reports whether each was as
// it was written.
func (j *journal) read(f io.Reader) (whole bool) {
	r := bufio.NewReader(f)
	for {
		var head [recordHead]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return true
		}
		n := binary.BigEndian.Uint32(head[:4])
		if n == 0 || n > recordMost {
			return false
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(r, body); err != nil {
			return true
		}
		var rec record
		if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(head[4:]) || ledger.Unmarshal(body, &rec) != nil {
			return false
		}
		j.apply(rec)
	}
}

func (j *journal) apply(r record) {
	j.epoch = max(j.epoch, r.Epoch)
	if r.Keep != nil {
		j.kept[r.Keep.ID] = r.Keep
	}
	if r.Settled != "" {
		delete(j.kept, r.Settled)
	}
	if r.Handled != "" {
		j.handled = append(j.handled, r.Handled)
		if over := len(j.handled) - handledMost; over > 0 {
			j.handled = slices.Delete(j.handled, 0, over)
		}
	}
}

func bytesOf(r record) []byte {
	body := ledger.Marshal(r)
	b := binary.BigEndian.AppendUint32(make([]byte, 0, recordHead+len(body)), uint32(len(body)))
	return append(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(body)), body...)
}

// rewrite writes the file anew, with what still matters.
func (j *journal) rewrite() error {
	path := filepath.Join(j.dir, journalName)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("messages: %w", err)
	}
	w := bufio.NewWriter(f)
	size := int64(0)
	put := func(r record) {
		n, _ := w.Write(bytesOf(r)) // Flush has the error
		size += int64(n)
	}
	put(record{Epoch: j.epoch})
	for _, id := range j.handled {
		put(record{Handled: id})
	}
	for _, id := range sortedIDs(j.kept) {
		put(record{Keep: j.kept[id]})
	}
	err = errors.Join(w.Flush(), f.Sync())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("messages: %w", err)
	}
	if d, err := os.Open(j.dir); err == nil {
		_ = d.Sync() // not every file system can
		d.Close()
	}
	if j.file != nil {
		j.file.Close()
	}
	j.file, j.size, j.fresh, j.broken = f, size, size, nil
	return nil
}

// add writes a record, and syncs if it must count.
func (j *journal) add(r record, sync bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return os.ErrClosed
	}
	if j.broken != nil || j.size-j.fresh > rewriteAt {
		if err := j.rewrite(); err != nil {
			return err
		}
	}
	n, err := j.file.Write(bytesOf(r))
	j.size += int64(n)
	if err == nil && sync {
		err = j.file.Sync()
	}
	if err != nil {
		j.broken = err
		return err
	}
	j.apply(r)
	return nil
}

func (j *journal) keep(m *post.Message) error { return j.add(record{Keep: wireOf(m)}, true) }
func (j *journal) handle(id string) error     { return j.add(record{Handled: id}, true) }

// settle forgets a message. If that is lost it is sent again, and recognized by its receiver.
func (j *journal) settle(id string) { _ = j.add(record{Settled: id}, false) }

func (j *journal) handledIDs() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.handled)
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}
