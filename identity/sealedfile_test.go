package identity

import (
	"bytes"
	"crypto/ecdh"
	"errors"
	"io"
	"testing"

	"github.com/selvage-mesh/selvage/kit"
)

func sealFile(t testing.TB, content []byte, to ...Recipient) []byte {
	t.Helper()
	return sealFileWith(t, fastCipher, content, to...)
}

func sealFileWith(t testing.TB, c sealedCipher, content []byte, to ...Recipient) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := sealFileBy(c, &b, []byte(`{"what":"test"}`), to)
	if err != nil {
		t.Fatal(err)
	}
	for part := range bytes.Lines(content) { // in pieces of any size
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unsealFile(b, passphrase []byte, keys ...*RecipientKey) ([]byte, error) {
	f, err := ReadSealedFile(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	r, err := f.Open(passphrase, keys...)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// cheap is a KDF that a test can afford.
func cheap() *KDF { k := NewKDF(); k.Time, k.Memory = 1, 64; return k }

func TestSealedFileOpensForItsRecipientsOnly(t *testing.T) {
	one, two, other := NewRecipientKey(), NewRecipientKey(), NewRecipientKey()
	kdf := cheap()
	byPass, err := kdf.Key([]byte("open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	to := []Recipient{{Key: byPass.PublicKey().Bytes(), KDF: kdf}}
	for _, k := range []*RecipientKey{one, two} {
		r, err := ParseRecipient(FormatRecipient(k.PublicKey()))
		if err != nil {
			t.Fatal(err)
		}
		to = append(to, r)
	}
	for _, size := range []int{0, 1, sealedPiece - 1, sealedPiece, sealedPiece + 1, sealedGroup * sealedPiece,
		sealedGroup*sealedPiece + 1, 3*sealedGroup*sealedPiece + 5} {
		content := bytes.Repeat([]byte("row\n"), size/4+1)[:size]
		b := sealFile(t, content, to...)
		again, err := ParseRecipientKey(FormatRecipientKey(two) + "\n")
		if err != nil {
			t.Fatal(err)
		}
		for name, open := range map[string]func() ([]byte, error){
			"first key":  func() ([]byte, error) { return unsealFile(b, nil, one) },
			"second key": func() ([]byte, error) { return unsealFile(b, nil, other, again) },
			"passphrase": func() ([]byte, error) { return unsealFile(b, []byte("open sesame")) },
		} {
			if got, err := open(); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d bytes by %s: %d bytes, %v", size, name, len(got), err)
			}
		}
		if _, err := unsealFile(b, []byte("open says me"), other); !errors.Is(err, ErrNotRecipient) {
			t.Errorf("others: %v", err)
		}
	}
}

// TestSealedFilesOfEveryVersionOpen: a backup is read by later programs, and by
// machines with other instructions than those of the one that made it.
func TestSealedFilesOfEveryVersionOpen(t *testing.T) {
	k, err := ecdh.X25519().NewPrivateKey(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sealedfile-v1.hex", "sealedfile-v2-aes-256-gcm.hex",
		"sealedfile-v2-chacha20-poly1305.hex"} {
		if got, err := unsealFile(kit.FromHex(t, name), nil, k); err != nil || string(got) != "what was kept" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	made := sealFile(t, nil, Recipient{Key: k.PublicKey().Bytes()})
	for name, b := range map[string][]byte{
		"a cipher that is not known":  bytes.Replace(made, []byte(fastCipher), []byte("rot13"), 1),
		"a file that names none":      bytes.Replace(made, []byte(`"cipher":"`+fastCipher+`",`), nil, 1),
		"the line of another version": bytes.Replace(made, []byte(sealedMagic), []byte(sealedFirst), 1),
	} {
		if _, err := unsealFile(b, nil, k); !errors.Is(err, ErrSealedFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file that was changed anywhere, cut short anywhere, or had its chunks
// dropped or swapped does not read to its end.
func TestSealedFileIsWholeOrDoesNotOpen(t *testing.T) {
	for _, c := range []sealedCipher{aesGCM, chaCha} {
		t.Run(string(c), func(t *testing.T) { wholeOrNothing(t, c) })
	}
}

func wholeOrNothing(t *testing.T, c sealedCipher) {
	k := NewRecipientKey()
	content := bytes.Repeat([]byte("0123456789\n"), sealedPiece*(2*sealedGroup+1)/11)
	b := sealFileWith(t, c, content, Recipient{Key: k.PublicKey().Bytes()})
	head := bytes.IndexByte(b[len(sealedMagic):], '\n') + len(sealedMagic) + 1
	bad := map[string][]byte{
		"one byte more":       append(bytes.Clone(b), 0),
		"the first chunk out": append(bytes.Clone(b[:head]), b[head+4+sealedPiece+16:]...),
	}
	for i := 0; i < len(b); i += 29983 {
		bad["cut"+string(rune('a'+i%26))] = b[:i]
		c := bytes.Clone(b)
		c[i] ^= 1
		bad["flip"+string(rune('a'+i%26))] = c
	}
	chunks := bytes.Clone(b[head : head+2*(4+sealedPiece+16)])
	swapped := append(bytes.Clone(b[:head]), chunks[4+sealedPiece+16:]...)
	bad["two chunks swapped"] = append(append(swapped, chunks[:4+sealedPiece+16]...), b[head+len(chunks):]...)
	bad["cut at a group"] = b[:head+sealedGroup*(4+sealedPiece+16)]
	bad["cut at a chunk"] = b[:head+4+sealedPiece+16]
	about := bytes.Replace(bytes.Clone(b), []byte(`"what":"test"`), []byte(`"what":"tost"`), 1)
	bad["another about"] = about
	for name, b := range bad {
		if got, err := unsealFile(b, nil, k); err == nil {
			t.Errorf("%s: %d bytes read", name, len(got))
		}
	}
}

func FuzzReadSealedFile(f *testing.F) {
	k := NewRecipientKey()
	f.Add(sealFile(f, []byte("content"), Recipient{Key: k.PublicKey().Bytes()}))
	f.Add([]byte(sealedMagic +
		`{"to":[{"key":"AAAA","kdf":{"salt":"","time":9,"memoryKiB":99999999,"threads":0}}]}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ReadSealedFile(bytes.NewReader(b))
		if err != nil {
			return
		}
		if r, err := s.Open(nil, k); err == nil {
			_, _ = io.Copy(io.Discard, r)
		}
	})
}
