package identity

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"testing"
)

// An ID is the hash of the key; other spellings are not IDs.
func TestIDs(t *testing.T) {
	t.Parallel()
	id := ada().ID()
	if len(id) != 32 || id.Short() != string(id[:8]) || !id.Valid() || id == bob().ID() {
		t.Errorf("odd ID %q", id)
	}
	for _, bad := range []NodeID{"", "xyz", id[:31], id + "0", NodeID(strings.ToUpper(string(id))),
		"../../../../etc/passwd/000000000"} {
		if bad.Valid() {
			t.Errorf("%q passes for an ID", bad)
		}
	}
	if NodeID("abc").Short() != "abc" {
		t.Error("Short of a short string")
	}
}

// A signature holds for its key, domain and message and for nothing else.
func TestSignVerify(t *testing.T) {
	t.Parallel()
	k := ada()
	sig := k.Sign("selvage/test/v1", []byte("hello"))
	for name, c := range map[string]struct {
		key    ed25519.PublicKey
		domain string
		msg    string
		sig    []byte
		want   bool
	}{
		"right":           {k.Public(), "selvage/test/v1", "hello", sig, true},
		"other key":       {bob().Public(), "selvage/test/v1", "hello", sig, false},
		"other domain":    {k.Public(), "selvage/test/v2", "hello", sig, false},
		"other message":   {k.Public(), "selvage/test/v1", "hellO", sig, false},
		"short signature": {k.Public(), "selvage/test/v1", "hello", sig[:63], false},
		"short key":       {k.Public()[:31], "selvage/test/v1", "hello", sig, false},
		"no key":          {nil, "selvage/test/v1", "hello", sig, false},
	} {
		if got := Verify(c.key, c.domain, []byte(c.msg), c.sig); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A certificate survives the wire; one flipped bit anywhere breaks it, and it
// does not serve the other purpose.
func TestCertificates(t *testing.T) {
	t.Parallel()
	for _, p := range []Purpose{ForNoise, ForSeal} {
		c := ada().Certificate(p)
		b := c.Encode()
		got, err := DecodeCertificate(b)
		if err != nil || !got.Node.Equal(c.Node) || !got.Static.Equal(c.Static) || got.Verify(p) != nil {
			t.Fatalf("certificate does not survive: %v", err)
		}
		if got.Verify(ForNoise+ForSeal-p) == nil || got.Verify(0) == nil {
			t.Error("a certificate serves another purpose")
		}
		everyFlip(b, func(i int, bad []byte) {
			if _, err := DecodeCertificate(bad); err == nil {
				t.Errorf("bit %d flipped and nobody noticed", i)
			}
		})
	}
}

// everyFlip calls f with each copy of b that has one bit flipped.
func everyFlip(b []byte, f func(bit int, flipped []byte)) {
	for i := range 8 * len(b) {
		c := bytes.Clone(b)
		c[i/8] ^= 1 << (i % 8)
		f(i, c)
	}
}

// chainOf admits each node by the one before, and returns the chain of the last.
func chainOf(t *testing.T, nodes ...*Keys) (chain []Admission) {
	t.Helper()
	for i, k := range nodes {
		a, err := nodes[max(0, i-1)].Admit(testMesh, k.Public(), uint64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		chain = append([]Admission{a}, chain...)
	}
	return chain
}

func rosterOf(revoked []*Keys, members ...*Keys) Roster {
	return func(id NodeID) (ed25519.PublicKey, bool, bool) {
		is := func(k *Keys) bool { return k.ID() == id }
		if i := slices.IndexFunc(revoked, is); i >= 0 {
			return revoked[i].Public(), true, true
		}
		if i := slices.IndexFunc(members, is); i >= 0 {
			return members[i].Public(), false, true
		}
		return nil, false, false
	}
}

// A chain is accepted if it leads to a node that the reader knows, and rejected if a link is
// missing, forged, of another mesh, or has a revoked node.
func TestAdmissionChains(t *testing.T) {
	t.Parallel()
	founder, ann, ben, eve := Derive([32]byte{10}), Derive([32]byte{11}), Derive([32]byte{12}), Derive([32]byte{13})
	chain := chainOf(t, founder, ann, ben)
	forged := chainOf(t, eve, ben)
	other, err := ann.Admit(MeshIDOf([]byte("another")), ben.Public(), 3)
	if err != nil {
		t.Fatal(err)
	}
	tampered := slices.Clone(chain)
	tampered[0].Height++
	for name, c := range map[string]struct {
		chain  []Admission
		node   *Keys
		roster Roster
		want   error
	}{
		"known admitter":           {chain, ben, rosterOf(nil, ann), nil},
		"only the founder known":   {chain, ben, rosterOf(nil, founder), nil},
		"only the first link":      {chain[:1], ben, rosterOf(nil, ann), nil},
		"first link, far reader":   {chain[:1], ben, rosterOf(nil, founder), ErrAdmission},
		"missing link":             {[]Admission{chain[0], chain[2]}, ben, rosterOf(nil, founder), ErrAdmission},
		"nobody known":             {chain, ben, rosterOf(nil), ErrAdmission},
		"somebody else's":          {chain, eve, rosterOf(nil, founder), ErrAdmission},
		"admitted by an outsider":  {forged, ben, rosterOf(nil, founder), ErrAdmission},
		"admits itself":            {chainOf(t, eve), eve, rosterOf(nil, founder), ErrAdmission},
		"of another mesh":          {[]Admission{other}, ben, rosterOf(nil, ann), ErrAdmission},
		"tampered":                 {tampered, ben, rosterOf(nil, ann), ErrAdmission},
		"admitter revoked":         {chain, ben, rosterOf([]*Keys{ann}, founder), ErrRevoked},
		"admitter's admitter gone": {chain, ben, rosterOf([]*Keys{founder}, ann), nil},
		"empty":                    {nil, founder, rosterOf(nil, founder), ErrAdmission},
		"too long":                 {slices.Repeat(chain, 30), ben, rosterOf(nil), ErrAdmission},
	} {
		if got := VerifyAdmissions(c.chain, testMesh, c.node.Public(), c.roster); !errors.Is(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Chains survive the wire; malformed ones are refused.
func TestAdmissionEncoding(t *testing.T) {
	t.Parallel()
	chain := chainOf(t, ada(), bob())
	b := EncodeAdmissions(chain)
	got, err := DecodeAdmissions(b)
	if err != nil || !bytes.Equal(EncodeAdmissions(got), b) {
		t.Fatalf("chain does not survive: %v", err)
	}
	if got, err := DecodeAdmissions(nil); err != nil || got != nil {
		t.Errorf("no bytes: %v, %v; want an empty chain", got, err)
	}
	for name, bad := range map[string][]byte{
		"zero links": {0}, "cut": b[:len(b)-1], "longer": append(bytes.Clone(b), 0),
		"count too high": append([]byte{3}, b[1:]...), "other version": append([]byte{2, 9}, b[2:]...),
	} {
		if _, err := DecodeAdmissions(bad); !errors.Is(err, ErrAdmission) {
			t.Errorf("%s: %v, want ErrAdmission", name, err)
		}
	}
	if _, err := ada().Admit("no mesh", bob().Public(), 1); err == nil {
		t.Error("admitted to a malformed mesh ID")
	}
	if EncodeAdmissions(make([]Admission, MaxAdmissions+1)) != nil {
		t.Error("encoded a chain that nobody reads")
	}
	everyFlip(chain[0].Encode(), func(i int, bad []byte) {
		if a, err := DecodeAdmission(bad); err == nil && a.Verify() == nil {
			t.Errorf("bit %d flipped and nobody noticed", i)
		}
	})
}

// Sealed bytes open with their key in their place and nowhere else.
func TestSealing(t *testing.T) {
	t.Parallel()
	k := NewDataKey()
	sealed := Seal(k, []byte("c/1/secret/2"), []byte("hunter2"))
	if got, err := Open(k, []byte("c/1/secret/2"), sealed); err != nil || string(got) != "hunter2" {
		t.Fatalf("got %q, %v", got, err)
	}
	if id, err := SealedWith(sealed); err != nil || id != k.ID() {
		t.Errorf("sealed with %q, %v; want %q", id, err, k.ID())
	}
	if _, err := Open(k, []byte("c/1/secret/3"), sealed); !errors.Is(err, ErrSealed) {
		t.Errorf("opens elsewhere: %v", err)
	}
	if _, err := Open(NewDataKey(), []byte("c/1/secret/2"), sealed); !errors.Is(err, ErrSealed) {
		t.Errorf("opens with another key: %v", err)
	}
	if bytes.Equal(sealed, Seal(k, []byte("c/1/secret/2"), []byte("hunter2"))) {
		t.Error("sealing twice gives the same bytes")
	}
	everyFlip(sealed, func(i int, bad []byte) {
		if _, err := Open(k, []byte("c/1/secret/2"), bad); err == nil {
			t.Errorf("bit %d flipped and nobody noticed", i)
		}
	})
	for n := range sealOverhead {
		if _, err := Open(k, nil, sealed[:n]); !errors.Is(err, ErrSealed) {
			t.Errorf("first %d bytes: %v", n, err)
		}
	}
	if got, err := Open(k, nil, Seal(k, nil, nil)); err != nil || len(got) != 0 {
		t.Errorf("nothing, sealed: %q, %v", got, err)
	}
}

// A wrapped key opens for its node only.
func TestWrapping(t *testing.T) {
	t.Parallel()
	a, b, key := ada(), bob(), NewDataKey()
	w, err := Wrap(a.Certificate(ForSeal).Static, key)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := a.Unwrap(w); err != nil || got != key {
		t.Fatalf("does not unwrap: %v", err)
	}
	if _, err := b.Unwrap(w); !errors.Is(err, ErrWrapped) {
		t.Errorf("another node unwraps: %v", err)
	}
	everyFlip(w, func(i int, bad []byte) {
		if _, err := a.Unwrap(bad); err == nil {
			t.Errorf("bit %d flipped and nobody noticed", i)
		}
	})
	if _, err := a.Unwrap(w[:len(w)-1]); !errors.Is(err, ErrWrapped) {
		t.Errorf("cut: %v", err)
	}
}

// A join token survives being pasted, and says what is wrong with a bad paste.
func TestJoinTokens(t *testing.T) {
	t.Parallel()
	s, err := EncodeJoinToken(testToken)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeJoinToken("\n  " + s + " \n")
	if err != nil || got.Mesh != testToken.Mesh || got.ID != testToken.ID || got.PSK != testToken.PSK ||
		got.Issuer != testToken.Issuer || !slices.Equal(got.Seeds, testToken.Seeds) {
		t.Fatalf("got %#v, %v", got, err)
	}
	for name, c := range map[string]struct{ s, want string }{
		"empty":         {"", "does not begin"},
		"a word":        {"hunter2", "does not begin"},
		"cut":           {s[:len(s)-3], "cut short or mistyped"},
		"prefix only":   {joinPrefix, "cut short or mistyped"},
		"mistyped":      {s[:40] + "A" + s[41:], "cut short or mistyped"},
		"no base64":     {joinPrefix + "!!!!", "cut short or mistyped"},
		"much too long": {joinPrefix + strings.Repeat("A", MaxJoinToken), "longer than"},
	} {
		_, err := DecodeJoinToken(c.s)
		if !errors.Is(err, ErrJoinToken) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	fresh := NewJoinToken(testMesh, ada().ID(), nil)
	if _, err := EncodeJoinToken(fresh); err != nil {
		t.Errorf("a token without seeds: %v", err)
	}
	for name, change := range map[string]func(*JoinToken){
		"mesh":       func(j *JoinToken) { j.Mesh = "x" },
		"issuer":     func(j *JoinToken) { j.Issuer = "x" },
		"no ID":      func(j *JoinToken) { j.ID = "" },
		"ID":         func(j *JoinToken) { j.ID = "a b" },
		"long ID":    func(j *JoinToken) { j.ID = strings.Repeat("a", 65) },
		"no key":     func(j *JoinToken) { j.PSK = [32]byte{} },
		"seed":       func(j *JoinToken) { j.Seeds = []string{"nowhere"} },
		"seed port":  func(j *JoinToken) { j.Seeds = []string{"host:0"} },
		"nine seeds": func(j *JoinToken) { j.Seeds = slices.Repeat([]string{"host:1"}, 9) },
	} {
		bad := testToken
		change(&bad)
		if s, err := EncodeJoinToken(bad); !errors.Is(err, ErrJoinToken) {
			t.Errorf("%s: %q, %v; want ErrJoinToken", name, s, err)
		}
	}
}
