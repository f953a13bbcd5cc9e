package identity

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestJoinCode(t *testing.T) {
	a, b := Derive([32]byte{1}).Public(), Derive([32]byte{2}).Public()
	hash, mine, theirs := [32]byte{3}, [32]byte{4}, [32]byte{5}
	code := JoinCode(hash, a, b, mine, theirs)
	if want := "43R-V3T"; code != want {
		t.Errorf("the code of fixed input is %s, want %s: codes of two versions would differ", code, want)
	}
	for what, other := range map[string]string{
		"another handshake":        JoinCode([32]byte{9}, a, b, mine, theirs),
		"the keys exchanged":       JoinCode(hash, b, a, mine, theirs),
		"another newcomer's nonce": JoinCode(hash, a, b, [32]byte{9}, theirs),
		"another member's nonce":   JoinCode(hash, a, b, mine, [32]byte{9}),
	} {
		if other == code {
			t.Errorf("%s gives the same code", what)
		}
	}
	for typed, want := range map[string]string{
		code: code, strings.ToLower(code): code, " " + strings.ReplaceAll(code, "-", "") + "\n": code,
		"oil-abc": "011-ABC", "abc def": "ABC-DEF", "": "", "ABC-DE": "", "ABC-DEFG": "", "ABC-DE!": "", "ÄBC-DEF": "",
		"UUU-UUU": "",
	} {
		got, ok := ParseJoinCode(typed)
		if got != want || ok != (want != "") {
			t.Errorf("%q is read as %q, %v; want %q", typed, got, ok, want)
		}
	}
}

func TestOwnerKey(t *testing.T) {
	k := NewOwnerKey()
	s := EncodeOwnerKey(k)
	if back, err := DecodeOwnerKey("  " + s + "\n"); err != nil || back != k {
		t.Fatalf("decoded: %v, the same %v", err, back == k)
	}
	if shown := fmt.Sprintf("%v %s %#v %+v", k, k, k, k); strings.Contains(shown, s[len(ownerPrefix):][:12]) ||
		!strings.Contains(shown, k.TokenID()) {
		t.Error("printing an owner key shows more than its ID")
	}
	for _, bad := range []string{"", "selvage-owner-", s[:len(s)-1], s + "A", strings.Replace(s, "owner", "join", 1),
		s[:20] + "!" + s[21:], s[:30] + "\n" + s[30:]} {
		if _, err := DecodeOwnerKey(bad); !errors.Is(err, ErrOwnerKey) {
			t.Errorf("%d characters: %v", len(bad), err)
		}
	}
	for i := len(ownerPrefix); i < len(s); i++ { // one wrong digit is detected
		c := byte('A')
		if s[i] == 'A' {
			c = 'B'
		}
		if _, err := DecodeOwnerKey(s[:i] + string(c) + s[i+1:]); err == nil {
			t.Errorf("a slip at %d went unnoticed", i)
		}
	}
	if k.TokenID() == NewOwnerKey().TokenID() {
		t.Error("two keys have one ID")
	}
}
