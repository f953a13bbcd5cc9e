package purse

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// The journal is a file of notes, each: length of the body (4 bytes, big
// endian), CRC-32C of the body (4 bytes), and the body, a note in deterministic
// CBOR. The first note is the head; it names the format, the node, and the boot
// of the machine under which the file was begun. A file that ends in the middle
// of a note ends before it: whoever wrote that was not told that it was
// written. What does not decode ends the file too, and whatever was open in it is
// then unsure, as it is when another boot was the last to write: notes are
// synced when a reservation is asked for and when the file is closed, and
// otherwise with what follows, so a machine that stops may lose the last ones. Kinds
// that a reader does not know end its reading in the same way. A file of
// another node is refused.
//
// The file is written anew, with what is still open, when it is opened, closed,
// and when it has grown; the new one takes the place of the old one at once.
const (
	noteHead   = 1 // Boot, Node; Clean: the file was closed, all of it is synced
	noteAsked  = 2 // a reservation is asked for: Company, Agent, Project, Session, Amount, Until
	noteMade   = 3 // it was made: Amount, Until
	noteBegun  = 4 // Call as it is told when nothing else is known
	noteEnded  = 5 // Call as it is to be told
	noteUnsent = 6 // Calls that never left
	noteTold   = 7 // Calls that the mesh knows
	noteClosed = 8 // nothing more of the reservation is to be told
	noteUnsure = 9 // calls of the reservation may be missing here
)

// A note is one line of the journal. Persisted: do not renumber.
type note struct {
	Kind        uint8            `cbor:"1,keyasint"`
	Reservation string           `cbor:"2,keyasint,omitempty"`
	Company     ledger.CompanyID `cbor:"3,keyasint,omitempty"`
	Agent       string           `cbor:"4,keyasint,omitempty"`
	Project     string           `cbor:"5,keyasint,omitempty"`
	Session     uint64           `cbor:"6,keyasint,omitempty"`
	Amount      core.Money       `cbor:"7,keyasint,omitempty"`
	Until       core.Time        `cbor:"8,keyasint,omitempty"`
	Call        *money.Metered   `cbor:"9,keyasint,omitempty"`
	Calls       []string         `cbor:"10,keyasint,omitempty"`
	Node        string           `cbor:"11,keyasint,omitempty"`
	Boot        string           `cbor:"12,keyasint,omitempty"`
	Clean       bool             `cbor:"13,keyasint,omitempty"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encodeNote(n note) []byte {
	body := ledger.Marshal(n)
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(body, castagnoli))
	return append(b, body...)
}

// decodeNotes returns the notes at the beginning of b, and whether they are followed by bytes
// that are not the beginning of a note.
func decodeNotes(b []byte) (out []note, broken bool) {
	for len(b) >= 8 {
		n, sum := int(binary.BigEndian.Uint32(b)), binary.BigEndian.Uint32(b[4:])
		if n > maxNote {
			return out, true
		}
		if len(b) < 8+n {
			return out, false
		}
		body := b[8 : 8+n]
		var one note
		if crc32.Checksum(body, castagnoli) != sum || ledger.Unmarshal(body, &one) != nil || one.Kind == 0 ||
			one.Kind > noteUnsure {
			return out, true
		}
		out, b = append(out, one), b[8+n:]
	}
	return out, false
}

// replay returns the stocks that notes describe.
func replay(notes []note) map[string]*stock {
	stocks := map[string]*stock{}
	for _, n := range notes {
		s := stocks[n.Reservation]
		if n.Kind == noteAsked {
			stocks[n.Reservation] = &stock{id: n.Reservation, of: key{company: n.Company, agent: n.Agent, project: n.Project},
				session: n.Session, amount: n.Amount, until: n.Until.Std(), under: map[string]money.Metered{}}
			continue
		}
		if s == nil {
			continue
		}
		switch n.Kind {
		case noteMade:
			s.made, s.amount, s.until = true, n.Amount, n.Until.Std()
		case noteBegun:
			if n.Call != nil {
				s.under[n.Call.Event.ID] = *n.Call
			}
		case noteEnded:
			if n.Call != nil {
				delete(s.under, n.Call.Event.ID)
				s.ended = append(s.ended, *n.Call)
			}
		case noteUnsent:
			for _, id := range n.Calls {
				delete(s.under, id)
			}
		case noteTold:
			s.ended = slices.DeleteFunc(s.ended, func(m money.Metered) bool { return slices.Contains(n.Calls, m.Event.ID) })
		case noteClosed:
			delete(stocks, n.Reservation)
		case noteUnsure:
			s.unsure = true
		}
	}
	return stocks
}

// A journal is the open file. It is used by one goroutine at a time.
type journal struct {
	path, node, boot string
	file             *os.File
	size             int64
	synced           int64 // number of bytes that survive a stop of the machine
	broken           error // a write failed; the file has to be rewritten first
}

// openJournal reads or creates the journal at path and returns the open stocks. A call that was
// in progress counts as having cost all that was granted, and nothing more is granted from
// these stocks.
func openJournal(path, node, boot string, log *slog.Logger) (*journal, map[string]*stock, error) {
	j := &journal{path: path, node: node, boot: boot}
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	notes, broken := decodeNotes(b)
	stocks := replay(notes)
	if len(notes) > 0 && (notes[0].Kind != noteHead || notes[0].Node != node) {
		return nil, nil, fmt.Errorf("journal %s is not one of this node", path)
	}
	lossy := broken || len(notes) == 0 && len(b) > 0
	if len(notes) > 0 && !lossy {
		lossy = notes[0].Boot != boot && !notes[0].Clean
	}
	for _, s := range stocks {
		s.closing, s.unsure = true, s.unsure || lossy
		for _, id := range slices.Sorted(maps.Keys(s.under)) {
			s.ended = append(s.ended, s.under[id])
		}
		clear(s.under)
	}
	if lossy {
		log.Warn("the purse's journal may be missing calls; what it was about stays held until a person writes it off",
			"reservations", len(stocks))
		if broken {
			_ = os.Rename(path, path+".broken") // kept for inspection
		}
	}
	return j, stocks, j.rewrite(stocks, false)
}

// write adds a note, and syncs the file when sync is set or the boot is not known.
func (j *journal) write(n note, sync bool) error {
	if j.broken != nil {
		return j.broken
	}
	b := encodeNote(n)
	if len(b) > maxNote {
		return fmt.Errorf("a note of %d bytes", len(b))
	}
	if _, err := j.file.Write(b); err != nil {
		// Part of the note may be in the file and would hide what follows.
		j.broken = j.file.Truncate(j.size)
		return err
	}
	j.size += int64(len(b))
	if !sync && j.boot != "" {
		return nil
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	j.synced = j.size
	return nil
}

// rewrite atomically replaces the file by one with only the open stocks.
func (j *journal) rewrite(stocks map[string]*stock, clean bool) error {
	var b bytes.Buffer
	b.Write(encodeNote(note{Kind: noteHead, Node: j.node, Boot: j.boot, Clean: clean}))
	for _, id := range slices.Sorted(maps.Keys(stocks)) {
		s := stocks[id]
		b.Write(encodeNote(note{Kind: noteAsked, Reservation: id, Company: s.of.company, Agent: s.of.agent,
			Project: s.of.project, Session: s.session, Amount: s.amount, Until: core.TimeOf(s.until)}))
		if s.made {
			b.Write(encodeNote(note{Kind: noteMade, Reservation: id, Amount: s.amount, Until: core.TimeOf(s.until)}))
		}
		if s.unsure {
			b.Write(encodeNote(note{Kind: noteUnsure, Reservation: id}))
		}
		for _, call := range slices.Sorted(maps.Keys(s.under)) {
			b.Write(encodeNote(note{Kind: noteBegun, Reservation: id, Call: new(s.under[call])}))
		}
		for _, m := range s.ended {
			b.Write(encodeNote(note{Kind: noteEnded, Reservation: id, Call: &m}))
		}
	}
	f, err := os.OpenFile(j.path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	if err = errors.Join(err, f.Sync()); err == nil {
		err = os.Rename(j.path+".new", j.path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(j.path))
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if j.file != nil {
		_ = j.file.Close() // its bytes are in the new one
	}
	j.file, j.size, j.synced, j.broken = f, int64(b.Len()), int64(b.Len()), nil
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (j *journal) close() error { return j.file.Close() }

// Check returns an error if the journal at path is damaged. [Open] then uses what can be read,
// renames the file, and marks its reservations as unsure. A missing file is no error.
func Check(path string) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if notes, broken := decodeNotes(b); broken || len(notes) == 0 {
		return fmt.Errorf("the purse's journal is damaged after %d notes", len(notes))
	}
	return nil
}
