package identity

import (
	"os"
	"strings"
	"testing"
	"time"
)

func capToken(t testing.TB, now time.Time) (string, MeshID) {
	t.Helper()
	mesh := MeshID(strings.Repeat("ab", 16))
	token, _, err := MintCapToken(DataKey{1}, mesh, CapClaims{ID: "id", Capabilities: []string{"execute"}, Agent: "agent",
		Company:   "company",
		ActorType: "user", Actor: "local-board", CredKind: "local"}, now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return token, mesh
}

// A capability token is good for its mesh, its key and its time only; its form is fixed.
func TestCapTokenIsGoodForItsMeshKeyAndTimeOnly(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	token, mesh := capToken(t, now)
	want, err := os.ReadFile("testdata/cap-token.txt")
	if err != nil {
		t.Fatal(err)
	}
	if token != strings.TrimSpace(string(want)) {
		t.Errorf("the form has changed:\n%s", token)
	}
	c, err := VerifyCapToken(token, []DataKey{{2}, {1}}, mesh, now.Add(59*time.Minute))
	if err != nil || !c.Has("execute") || c.Has("govern") || c.Agent != "agent" || c.Actor != "local-board" {
		t.Fatalf("verified %+v, %v", c, err)
	}
	run, err := MintRunToken(DataKey{1}, mesh, RunClaims{Agent: "a", Company: "c", Run: "r"}, now)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]struct {
		token string
		keys  []DataKey
		mesh  MeshID
		at    time.Time
	}{
		"another key":      {token, []DataKey{{2}}, mesh, now},
		"no key":           {token, nil, mesh, now},
		"another mesh":     {token, []DataKey{{1}}, "00", now},
		"too late":         {token, []DataKey{{1}}, mesh, now.Add(time.Hour)},
		"changed":          {token[:len(token)-2] + "AA", []DataKey{{1}}, mesh, now},
		"a run's":          {run, []DataKey{{1}}, mesh, now},
		"without its head": {strings.TrimPrefix(token, "cap1."), []DataKey{{1}}, mesh, now},
	} {
		if c, err := VerifyCapToken(bad.token, bad.keys, bad.mesh, bad.at); err != ErrCapToken || c.Actor != "" {
			t.Errorf("%s: %+v, %v; want ErrCapToken", name, c, err)
		}
	}
	if _, err := VerifyRunToken(token, []DataKey{{1}}, mesh, now); err != ErrRunToken {
		t.Errorf("a capability token passes as a run's: %v", err)
	}
	if _, _, err := MintCapToken(DataKey{1}, mesh, c, now, MaxCapLife+1); err == nil {
		t.Error("a token may last longer than the bound")
	}
}

func FuzzVerifyCapToken(f *testing.F) {
	token, mesh := capToken(f, time.Unix(0, 0))
	f.Add(token)
	f.Add("cap1..")
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := VerifyCapToken(s, []DataKey{{1}}, mesh, time.Unix(1, 0)); err == nil && s != token {
			t.Errorf("%q is accepted", s)
		}
	})
}
