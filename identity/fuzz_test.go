package identity

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/kit"
)

// No decoder panics, and what one accepts is written back as the same bytes.

func FuzzKeysFile(f *testing.F) {
	f.Add(ada().encode(noMachine))
	f.Add(ada().encode(ada().machineTag("here")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if k, machine, err := decodeKeys(b); err == nil && !bytes.Equal(k.encode(machine), b) {
			t.Errorf("%q was read as something else", b)
		}
	})
}

func FuzzCertificate(f *testing.F) {
	f.Add(kit.FromHex(f, "certificate-noise.hex"))
	f.Add(kit.FromHex(f, "certificate-seal.hex"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := DecodeCertificate(b); err == nil && !bytes.Equal(c.Encode(), b) {
			t.Errorf("%x was read as something else", b)
		}
	})
}

func FuzzAdmissions(f *testing.F) {
	f.Add(kit.FromHex(f, "admissions.hex"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		chain, err := DecodeAdmissions(b)
		if err != nil {
			return
		}
		if !bytes.Equal(EncodeAdmissions(chain), b) {
			t.Errorf("%x was read as something else", b)
		}
		VerifyAdmissions(chain, testMesh, bob().Public(), rosterOf(nil, ada()))
	})
}

func FuzzAdmission(f *testing.F) {
	f.Add(kit.FromHex(f, "admission.hex"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := DecodeAdmission(b); err == nil && !bytes.Equal(a.Encode(), b) {
			t.Errorf("%x was read as something else", b)
		}
	})
}

func FuzzSealed(f *testing.F) {
	f.Add(kit.FromHex(f, "sealed.hex"), []byte("place"))
	f.Fuzz(func(t *testing.T, b, aad []byte) {
		if p, err := Open(testDataKey, aad, b); err == nil && len(p) != len(b)-sealOverhead {
			t.Errorf("%x opened to %d bytes", b, len(p))
		}
	})
}

func FuzzWrapped(f *testing.F) {
	k := ada()
	f.Add(kit.FromHex(f, "wrapped.hex"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := k.Unwrap(b); err == nil && len(b) != wrappedBytes {
			t.Errorf("%x unwrapped to %v", b, got)
		}
	})
}

func FuzzJoinToken(f *testing.F) {
	s, err := os.ReadFile(filepath.Join("testdata", "join-token.txt"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(s))
	f.Add(joinPrefix)
	f.Fuzz(func(t *testing.T, s string) {
		j, err := DecodeJoinToken(s)
		if err != nil {
			return
		}
		if got, err := EncodeJoinToken(j); err != nil || got != strings.TrimSpace(s) {
			t.Errorf("%q was read as something else: %q, %v", s, got, err)
		}
	})
}
