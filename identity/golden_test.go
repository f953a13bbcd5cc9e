package identity

import (
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with a file in testdata. A difference means that nodes of
// two versions would not understand each other.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got+"\n" != string(want) {
		t.Errorf("%s changed:\n got %s\nwant %s", name, got, want)
	}
}

// goldenBytes reads a golden file that holds hex.
func goldenBytes(t testing.TB, name string) []byte {
	t.Helper()
	s, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.TrimSpace(string(s)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Fixed keys, and everything that is stored or sent about them.
func ada() *Keys { return Derive([32]byte{1}) }
func bob() *Keys { return Derive([32]byte{2}) }

var (
	testGenesis = []byte("a genesis")
	testMesh    = MeshIDOf(testGenesis)
	testToken   = JoinToken{
		Mesh:   testMesh,
		ID:     "0123456789abcdef",
		PSK:    [32]byte{0: 1, 31: 2},
		Issuer: ada().ID(),
		Seeds:  []string{"192.0.2.1:9470", "[2001:db8::1]:9470", "mesh.example:9470"},
	}
	testDataKey = DataKey{0: 3, 31: 4}
)

// Every format is pinned, and what was written by this version once can be read.
func TestGoldenFiles(t *testing.T) {
	a, b := ada(), bob()
	golden(t, "ids.txt", strings.Join([]string{string(a.ID()), string(testMesh), a.ServerID(), string(testDataKey.ID())}, "\n"))
	golden(t, "identity.key", strings.TrimSuffix(string(a.encode(a.machineTag("a machine"))), "\n"))
	golden(t, "certificate-noise.hex", hex.EncodeToString(a.Certificate(ForNoise).Encode()))
	golden(t, "certificate-seal.hex", hex.EncodeToString(a.Certificate(ForSeal).Encode()))
	ad, err := a.Admit(testMesh, b.Public(), 42)
	if err != nil {
		t.Fatal(err)
	}
	founder, err := a.Admit(testMesh, a.Public(), 1)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "admission.hex", hex.EncodeToString(ad.Encode()))
	golden(t, "admissions.hex", hex.EncodeToString(EncodeAdmissions([]Admission{ad, founder})))
	token, err := EncodeJoinToken(testToken)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "join-token.txt", token)
	local := a.Local("example")
	golden(t, "local-secret.hex", hex.EncodeToString(local[:]))

	// Sealing and wrapping draw random bytes; what was made once must open for ever.
	sealed := sealWith(testDataKey, []byte("place"), []byte("secret"), append([]byte{sealVersion}, append(mustHex(string(testDataKey.ID())), make([]byte, 24)...)...))
	golden(t, "sealed.hex", hex.EncodeToString(sealed))
	if *update {
		w, err := Wrap(a.Seal.PublicKey(), testDataKey)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "wrapped.hex", hex.EncodeToString(w))
	}
	if got, err := a.Unwrap(goldenBytes(t, "wrapped.hex")); err != nil || got != testDataKey {
		t.Errorf("the wrapped key of testdata does not open: %v", err)
	}
	if got, err := Open(testDataKey, []byte("place"), goldenBytes(t, "sealed.hex")); err != nil || string(got) != "secret" {
		t.Errorf("the sealed bytes of testdata do not open: %q, %v", got, err)
	}
}

func mustHex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}
