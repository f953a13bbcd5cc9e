package identity

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/kit"
)

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
	kit.Golden(t, "ids.txt", strings.Join([]string{string(a.ID()), string(testMesh), a.ServerID(),
		string(testDataKey.ID())}, "\n")+"\n")
	kit.Golden(t, "identity.key", strings.TrimSuffix(string(a.encode(a.machineTag("a machine"))), "\n")+"\n")
	kit.Golden(t, "certificate-noise.hex", hex.EncodeToString(a.Certificate(ForNoise).Encode())+"\n")
	kit.Golden(t, "certificate-seal.hex", hex.EncodeToString(a.Certificate(ForSeal).Encode())+"\n")
	ad, err := a.Admit(testMesh, b.Public(), 42)
	if err != nil {
		t.Fatal(err)
	}
	founder, err := a.Admit(testMesh, a.Public(), 1)
	if err != nil {
		t.Fatal(err)
	}
	kit.Golden(t, "admission.hex", hex.EncodeToString(ad.Encode())+"\n")
	kit.Golden(t, "admissions.hex", hex.EncodeToString(EncodeAdmissions([]Admission{ad, founder}))+"\n")
	token, err := EncodeJoinToken(testToken)
	if err != nil {
		t.Fatal(err)
	}
	kit.Golden(t, "join-token.txt", token+"\n")
	local := a.Local("example")
	kit.Golden(t, "local-secret.hex", hex.EncodeToString(local[:])+"\n")

	// Sealing and wrapping draw random bytes; stored output of an earlier version must still open.
	sealed := sealWith(testDataKey, []byte("place"), []byte("secret"),
		append([]byte{sealVersion}, append(mustHex(string(testDataKey.ID())), make([]byte, 24)...)...))
	kit.Golden(t, "sealed.hex", hex.EncodeToString(sealed)+"\n")
	if kit.Update() {
		w, err := Wrap(a.Seal.PublicKey(), testDataKey)
		if err != nil {
			t.Fatal(err)
		}
		kit.Golden(t, "wrapped.hex", hex.EncodeToString(w)+"\n")
	}
	if got, err := a.Unwrap(kit.FromHex(t, "wrapped.hex")); err != nil || got != testDataKey {
		t.Errorf("the wrapped key of testdata does not open: %v", err)
	}
	if got, err := Open(testDataKey, []byte("place"), kit.FromHex(t, "sealed.hex")); err != nil ||
		string(got) != "secret" {
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
