package ledger

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestEveryFlippedByteIsFound flips bits of everything that Verify answers for,
// one at a time, and wants each found.
func TestEveryFlippedByteIsFound(t *testing.T) {
	l, w := newLedger(t), newWorld(t)
	k := w.found()
	w.apply(l)
	s := session(t, l, k)
	w.add(k, s, 1, 1, w.note("note.put", "a", "hello"), w.note("note.deny", "b", "x"))
	w.add(k, s, 3, 3, w.note("note.refuse", "c", "nothing is entered for this batch"))
	w.add(k, s, 4, 4, w.note("note.put", "a", "world"), w.user(KindTimeStep, TimeStep{To: w.now.UnixMilli() + 90_000}))
	w.add(k, s, 6, 6, w.note("note.refuse", "c", "nor for the last one"))
	w.apply(l)
	want, err := l.Verify(t.Context(), nil)
	if err != nil || want.Entries != 6 || want.Batches != 6 || want.Erased != 0 {
		t.Fatalf("Verify = %+v, %v", want, err)
	}
	set := func(key string, v []byte) {
		b := l.span.NewBatch()
		defer b.Close()
		b.Set([]byte(key), v)
		if err := l.span.Commit(b, false); err != nil {
			t.Fatal(err)
		}
	}
	flips, each := 0, 1
	if testing.Short() { // nothing happens at once here: the race detector sees each kind of byte
		each = 7
	}
	for key, v := range dump(l) {
		whole := strings.HasPrefix(key, "!e") || strings.HasPrefix(key, "!b") || strings.Contains(key, "/"+payloadTable+"/")
		if !whole && key != string(positionKey) {
			continue
		}
		for i := 0; i < len(v); i += each {
			if key == string(positionKey) && i >= 9+8+32+8+32 && i < 9+8+32+8+32+8+32 || key == string(positionKey) &&
				i >= 1 && i < 9 {
				continue // applied index, time and digest are not of the chain
			}
			bad := []byte(v)
			bad[i] ^= 1 << (i % 8)
			set(key, bad)
			flips++
			if v, err := l.Verify(t.Context(), nil); err == nil {
				t.Errorf("byte %d of %q flipped: not found (%+v)", i, key, v)
			} else if b, ok := IsBroken(err); !ok || b.Height < 1 || b.Height > 7 {
				t.Errorf("byte %d of %q flipped: %v", i, key, err)
			}
		}
		set(key, []byte(v))
	}
	if _, err := l.Verify(t.Context(), nil); err != nil {
		t.Fatalf("after putting all back: %v", err)
	}
	t.Logf("%d flips", flips)
}

func TestVerifyNamesTheFirstBadHeight(t *testing.T) {
	l := newLedger(t)
	l.ApplyBatch(randomLog(t, rand.New(rand.NewPCG(9, 9)), 80))
	height, _ := l.Head()
	if height < 20 {
		t.Fatal("short chain")
	}
	for _, h := range []uint64{1, 7, height} {
		raw, err := l.span.Get(entryKey(h))
		if err != nil {
			t.Fatal(err)
		}
		b := l.span.NewBatch()
		bad := bytes.Clone(raw)
		bad[len(bad)-1] ^= 4
		b.Set(entryKey(h), bad)
		if err := l.span.Commit(b, false); err != nil {
			t.Fatal(err)
		}
		b.Close()
		_, err = l.Verify(t.Context(), nil)
		// a change in an entry shows at the next one, which names its hash, or at the end
		if broken, ok := IsBroken(err); !ok || broken.Height != h && broken.Height != h+1 {
			t.Errorf("entry %d flipped: %v", h, err)
		}
		b = l.span.NewBatch()
		b.Set(entryKey(h), raw)
		if err := l.span.Commit(b, false); err != nil {
			t.Fatal(err)
		}
		b.Close()
	}
}

func TestErasedPayloadsLeaveTheChainValid(t *testing.T) {
	l, w := newLedger(t, func(c *Config) {
		c.Mux["note.eraseFirst"] = func(c *Context) ([]byte, error) {
			ErasePayload(c.Tx, Entry{Company: c.Cmd.Company, Index: 4, Position: 0})
			return nil, nil
		}
		c.Mux["note.eraseSelf"] = func(c *Context) ([]byte, error) {
			EraseBody(c.Tx, c.Cmd.Company, c.Index, [16]byte{}) // of nobody
			EraseBody(c.Tx, c.Cmd.Company, c.Index, c.Salt)
			return nil, nil
		}
	}), newWorld(t)
	k := w.found()
	w.apply(l)
	s := session(t, l, k)
	w.add(k, s, 1, 1, w.note("note.put", "a", "a secret of ada"), w.note("note.put", "b", "stays"))
	w.add(k, s, 3, 3, w.note("note.eraseFirst", "", ""))
	wantOK(t, w.apply(l))
	v, err := l.Verify(t.Context(), nil)
	if err != nil || v.Erased != 1 {
		t.Fatalf("Verify = %+v, %v; want one erased", v, err)
	}
	var got *Batch
	for b, err := range l.Batches(t.Context(), 4) {
		if err != nil {
			t.Fatal(err)
		}
		if got, err = DecodeBatch(b.Data); err != nil {
			t.Fatal(err)
		}
		break
	}
	if got.Bodies[0] != nil || got.Bodies[1] == nil {
		t.Errorf("bodies = %x, want only the second", got.Bodies)
	}
	if err := got.Verify(k.Public()); err != nil {
		t.Errorf("signature after erasing: %v", err)
	}
	// A command in the batch that is just applied, by its salt; the others stay.
	w.add(k, s, 4, 4, w.note("note.put", "c", "kept"), w.note("note.eraseSelf", "", "another secret of ada"),
		w.note("note.put", "d", "kept too"))
	wantOK(t, w.apply(l))
	if v, err = l.Verify(t.Context(), nil); err != nil || v.Erased != 2 {
		t.Fatalf("Verify = %+v, %v; want two erased", v, err)
	}
	// the rest of the company's payloads, in chunks
	w.add(k, s, 7, 7, w.note("note.erase", "", ""))
	w.add(k, s, 8, 8, w.note("note.erase", "", ""))
	wantOK(t, w.apply(l))
	if v, err = l.Verify(t.Context(), nil); err != nil || v.Erased < 4 {
		t.Errorf("Verify = %+v, %v; want at least four erased", v, err)
	}
	for key, row := range dump(l) {
		if strings.Contains(row, "secret of ada") && strings.Contains(key, payloadTable) {
			t.Errorf("the payload is still under %q", key)
		}
	}
}

func TestVerifyFindsAForgedSignature(t *testing.T) {
	l, w := newLedger(t), newWorld(t)
	k := w.found()
	w.apply(l)
	s := session(t, l, k)
	// a member that signs in another one's name gets past apply (the leader
	// checks signatures, once) but neither past the leader nor past Verify
	mallory := keysOf(66)
	forged := EncodeBatch(w.mesh, k.ID(), s, 1, 1, []Command{w.note("note.put", "a", "forged")}, mallory.Sign)
	StampBatch(forged, w.now)
	if err := l.CheckBatch(forged); err == nil {
		t.Error("the leader took a forged batch")
	}
	w.addRaw(forged)
	w.apply(l)
	_, err := l.Verify(t.Context(), nil)
	if b, ok := IsBroken(err); !ok || b.Height != 3 || b.Index != 4 {
		t.Errorf("Verify = %v, want height 3, batch 4", err)
	}
}

func TestMerkleRootIsThatOfRFC6962(t *testing.T) {
	leaf := func(b ...byte) Hash { return sha256.Sum256(append([]byte{0}, b...)) }
	node := func(a, b Hash) Hash { return sha256.Sum256(append(append([]byte{1}, a[:]...), b[:]...)) }
	var split func(leaves []Hash) Hash // the definition, §2.1
	split = func(leaves []Hash) Hash {
		if len(leaves) == 1 {
			return leaf(leaves[0][:]...)
		}
		k := 1
		for 2*k < len(leaves) {
			k *= 2
		}
		return node(split(leaves[:k]), split(leaves[k:]))
	}
	var leaves []Hash
	for n := range 70 {
		leaves = append(leaves, sha256.Sum256([]byte{byte(n)}))
		want := split(leaves)
		if got := merkleRoot(append([]Hash(nil), leaves...)); got != want {
			t.Errorf("root of %d leaves = %x, want %x", len(leaves), got, want)
		}
	}
}

func TestDeletingACompanyGoesOnInChunks(t *testing.T) {
	l, w := newLedger(t, func(c *Config) {
		c.Mux["note.deleteCompany"] = func(c *Context) ([]byte, error) {
			return Marshal(deleteCompany(c.Tx, c.Cmd.Company, 7)), nil
		}
	}), newWorld(t)
	k := w.found()
	w.apply(l)
	s, seq := session(t, l, k), uint64(1)
	var cmds []Command
	for range 20 {
		c := w.note("note.put", "n"+Order(uint64(len(cmds))), "text")
		c.IdempotencyKey = c.Kind + Order(uint64(len(cmds)))
		cmds = append(cmds, c)
	}
	kept := w.note("note.put", "a", "another company's")
	kept.Company = "22222222-2222-4222-8222-222222222222"
	cmds = append(cmds, kept)
	w.add(k, s, seq, seq, cmds...)
	wantOK(t, w.apply(l))
	seq += uint64(len(cmds))
	of := func(company CompanyID) (n int) {
		for key := range dump(l) {
			if strings.HasPrefix(key, "c/"+string(company)+"/") {
				n++
			}
		}
		return n
	}
	before, rounds := of(cmds[0].Company), 0
	for more := true; more; rounds++ {
		w.add(k, s, seq, seq, w.note("note.deleteCompany", "", ""))
		seq++
		rs := w.apply(l)
		wantOK(t, rs)
		if err := Unmarshal(rs[0].Value, &more); err != nil {
			t.Fatal(err)
		}
	}
	if got := of(cmds[0].Company); got != 0 || before < 100 || rounds < before/7 {
		t.Errorf("%d of %d rows left after %d rounds", got, before, rounds)
	}
	if of(kept.Company) == 0 {
		t.Error("the other company lost its rows")
	}
	// keys of the deleted company are free again, and its chain still stands
	w.add(k, s, seq, seq, cmds[0])
	if rs := w.apply(l); rs[0].Refusal != nil || rs[0].Height <= uint64(len(cmds)) {
		t.Errorf("after deleting: %+v", rs[0])
	}
	if _, err := l.Verify(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
