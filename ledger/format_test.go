package ledger

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kit"
)

func goldenCommand() Command {
	return Command{Kind: "issue.checkout", Company: "11111111-1111-4111-8111-111111111111", Actor: Actor{"agent", "ada"},
		Credential: Credential{"run", "run-7"}, Run: "run-7", Payload: []byte{0xa0}, Salt: [16]byte{1, 2, 3},
		IdempotencyKey: "key-1", RequestDigest: Hash{9}}
}

func goldenBatch() ([]byte, *identity.Keys) {
	k := keysOf(1)
	small := Command{Kind: "time.step", Actor: Actor{"user", "local-board"}, Credential: Credential{Kind: "local"}}
	b := EncodeBatch("000102030405060708090a0b0c0d0e0f", k.ID(), 3, 11, 10, []Command{goldenCommand(), small}, k.Sign)
	StampBatch(b, time.UnixMilli(1795230372922))
	return b, k
}

func goldenEntry() Entry {
	return Entry{Height: 258, Time: time.UnixMilli(1795230372922).UTC(), Prev: Hash{1}, Index: 300, Position: 2,
		Batch:       Hash{2},
		PayloadHash: Hash{3}, Kind: "issue.checkout", Company: "11111111-1111-4111-8111-111111111111",
		Actor: Actor{"agent", "ada"}, Credential: Credential{"run", "run-7"}, Run: "run-7", Outcome: Applied,
		Changes: []Change{{"issue.checked_out", "issue", "i-1", []byte(`{"status":"in_progress"}`)},
			{Action: "a", EntityType: "b", EntityID: "c"}}}
}

func goldenReceipts() []Receipt {
	return []Receipt{
		{Index: 300, Height: 258, Value: []byte{0xa0}},
		{Index: 300, Value: []byte{}},
		{Index: 301, Refusal: &Refusal{Code: Conflict, Message: "held", Detail: []byte(`{"owner":"ada"}`), ErrCode: "held"}},
		{Index: 302, Height: 259, Refusal: &Refusal{Code: Forbidden, Message: "no"}},
	}
}

func TestFormatsDoNotChange(t *testing.T) {
	b, k := goldenBatch()
	kit.Golden(t, "batch-v1.hex", kit.Hex(b))
	bt, err := DecodeBatch(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := bt.Verify(k.Public()); err != nil {
		t.Error(err)
	}
	kit.Golden(t, "command-header-v1.hex", kit.Hex(bt.Headers[0]))
	c := goldenCommand()
	if got := bt.Commands[0]; got.Kind != c.Kind || !bytes.Equal(got.Payload, c.Payload) || got.Salt != c.Salt ||
		got.RequestDigest != c.RequestDigest {
		t.Errorf("command = %+v, want %+v", got, c)
	}
	if !bytes.Equal(bt.Encode(), b) {
		t.Error("a decoded batch encodes to other bytes")
	}
	// the header is deterministic CBOR as the library would write it
	var generic map[int]any
	if err := Unmarshal(bt.Headers[0], &generic); err != nil {
		t.Fatal(err)
	}
	if lib, err := encMode.Marshal(generic); err != nil || !bytes.Equal(lib, bt.Headers[0]) {
		t.Errorf("the header is not deterministic CBOR: %x, library %x, %v", bt.Headers[0], lib, err)
	}

	e := goldenEntry()
	raw := AppendEntry(nil, &e)
	kit.Golden(t, "entry-v1.hex", kit.Hex(raw))
	h := EntryHash(raw)
	kit.Golden(t, "entry-v1-hash.hex", kit.Hex(h[:]))
	kit.Golden(t, "receipts-v1.hex", kit.Hex(EncodeReceipts(goldenReceipts())))
	kit.Golden(t, "record-v1.hex", kit.Hex(batchRecord(Hash{7}, LogEntry{Index: 300, Term: 4, Data: b}, bt)))
	kit.Golden(t, "bodies-v1.hex", kit.Hex(encodeBodies(bt, c.Company)))
	p := Position{Applied: 300, Height: 258, Head: Hash{1}, BatchIndex: 299, Batch: Hash{2}, Time: 1795230372922,
		Digest: Hash{3}, Mesh: "000102030405060708090a0b0c0d0e0f"}
	kit.Golden(t, "position-v1.hex", kit.Hex(p.encode()))
	if got, err := decodePosition(p.encode()); err != nil || got != p {
		t.Errorf("position = %+v, %v", got, err)
	}

	l, w := newLedger(t), newWorld(t)
	k = w.found()
	w.apply(l)
	w.add(k, session(t, l, k), 1, 1, w.note("note.put", "a", "hello"), w.note("note.refuse", "b", ""))
	w.apply(l)
	kit.Golden(t, "snapshot-v1.hex", kit.Hex(snapshotOf(t, l)))
}

func TestReadersRefuseWhatIsNewer(t *testing.T) {
	b, _ := goldenBatch()
	b[3] = 2
	if _, err := DecodeBatch(b); !errors.Is(err, ErrUpgrade) {
		t.Errorf("batch of version 2: %v, want ErrUpgrade", err)
	}
	newer := Command{}
	if _, err := parseHeader(append(append([]byte{0xa5}, mustHeader()[1:]...), 9, 0), &newer); !errors.Is(err, errNewer) {
		t.Errorf("header with field 9: %v, want errNewer", err)
	}
	if _, err := DecodeReceipts([]byte{2, 0}); !errors.Is(err, ErrReceipts) {
		t.Errorf("receipts of version 2: %v", err)
	}
	if _, err := DecodeEntry([]byte{2}); !errors.Is(err, ErrEntry) {
		t.Errorf("entry of version 2: %v", err)
	}
}

// mustHeader is a header with the four fields that are always there.
func mustHeader() []byte { return appendHeader(nil, &Command{Kind: "k"}) }

func FuzzDecodeBatch(f *testing.F) {
	b, k := goldenBatch()
	f.Add(b)
	f.Add(b[:len(b)-9])
	f.Add([]byte(batchMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		bt, err := DecodeBatch(b)
		if err != nil {
			if !errors.Is(err, ErrBatch) && !errors.Is(err, ErrUpgrade) {
				t.Errorf("error %v wraps neither ErrBatch nor ErrUpgrade", err)
			}
			return
		}
		if !bytes.Equal(bt.Encode(), b) {
			t.Errorf("decodes, but is not what Encode writes: %x", b)
		}
		for i := range bt.Commands {
			if got := appendHeader(nil, &bt.Commands[i]); bt.Bodies[i] != nil && bt.Verify(k.Public()) == nil &&
				!bytes.Equal(got, bt.Headers[i]) {
				t.Errorf("header %x is not what appendHeader writes: %x", bt.Headers[i], got)
			}
		}
	})
}

func FuzzDecodeReceipts(f *testing.F) {
	f.Add(EncodeReceipts(goldenReceipts()))
	f.Add([]byte{1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		rs, err := DecodeReceipts(b)
		if err == nil && !bytes.Equal(EncodeReceipts(rs), b) {
			t.Errorf("receipts %x have a second encoding %x", b, EncodeReceipts(rs))
		}
	})
}

func FuzzDecodeEntry(f *testing.F) {
	e := goldenEntry()
	f.Add(AppendEntry(nil, &e))
	f.Add(AppendEntry(nil, &Entry{Time: time.UnixMilli(0)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeEntry(b)
		if err == nil && !bytes.Equal(AppendEntry(nil, &e), b) {
			t.Errorf("entry %x has a second encoding", b)
		}
	})
}

func FuzzStoredRows(f *testing.F) {
	b, _ := goldenBatch()
	bt, err := DecodeBatch(b)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(batchRecord(Hash{}, LogEntry{Index: 1, Data: b}, bt))
	f.Add(encodeBodies(bt, goldenCommand().Company))
	f.Add((&Position{Mesh: "000102030405060708090a0b0c0d0e0f"}).encode())
	f.Fuzz(func(t *testing.T, row []byte) {
		if pos, err := decodePosition(row); err == nil && !bytes.Equal(pos.encode(), row) {
			t.Errorf("position %x has a second encoding", row)
		}
		if rec, err := decodeRecord(row); err == nil && rec.batch == nil {
			t.Error("a record without a batch")
		}
		bt, err := DecodeBatch(b)
		if err != nil {
			t.Fatal(err)
		}
		_ = readBodies(row, bt, goldenCommand().Company) // must not panic
		f := ActivityFilter{Action: "x"}
		scanned := 0
		f.mayChoose(1, row, nil, &scanned)
	})
}

func FuzzSnapshot(f *testing.F) {
	b, err := os.ReadFile(filepath.Join("testdata", "snapshot-v1.hex"))
	if err != nil {
		f.Fatal(err)
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(string(b), "\n", ""))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add(raw[:100])
	f.Add(append([]byte(unsummedMagic), raw[len(snapshotMagic):]...))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newSnapshotStream(bytes.NewReader(b))
		if _, err := s.head(); err != nil {
			if !errors.Is(err, ErrSnapshot) {
				t.Errorf("head: %v", err)
			}
			return
		}
		if err := s.rows(func(k, v []byte) error { return nil }); err != nil && !errors.Is(err, ErrSnapshot) {
			t.Errorf("rows: %v", err)
		}
	})
}
