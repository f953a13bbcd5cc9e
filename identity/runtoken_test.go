package identity

import (
	"strings"
	"testing"
	"time"
)

func TestRunTokenIsGoodForItsMeshKeyAndTimeOnly(t *testing.T) {
	key, other := DataKey{1}, DataKey{2}
	now := time.Unix(1_790_000_000, 0)
	mesh := MeshID(strings.Repeat("ab", 16))
	want := RunClaims{Agent: "agent", Company: "company", Adapter: "process", Run: "run", Responsible: "local-board"}
	token, err := MintRunToken(key, mesh, want, now)
	if err != nil {
		t.Fatal(err)
	}
	got, err := VerifyRunToken(token, []DataKey{other, key}, mesh, now.Add(time.Hour))
	if err != nil || got.Agent != want.Agent || got.Run != want.Run || got.Company != want.Company {
		t.Fatalf("verified %+v, %v; want %+v", got, err, want)
	}
	last := token[len(token)-2:]
	for name, try := range map[string]func() (RunClaims, error){
		"another key":  func() (RunClaims, error) { return VerifyRunToken(token, []DataKey{other}, mesh, now) },
		"no key":       func() (RunClaims, error) { return VerifyRunToken(token, nil, mesh, now) },
		"another mesh": func() (RunClaims, error) { return VerifyRunToken(token, []DataKey{key}, "00", now) },
		"too late": func() (RunClaims, error) {
			return VerifyRunToken(token, []DataKey{key}, mesh, now.Add(RunTokenLife))
		},
		"changed": func() (RunClaims, error) {
			return VerifyRunToken(strings.TrimSuffix(token, last)+"AA", []DataKey{key}, mesh, now)
		},
		"no algorithm": func() (RunClaims, error) {
			_, rest, _ := strings.Cut(token, ".")
			return VerifyRunToken("eyJhbGciOiJub25lIn0."+rest, []DataKey{key}, mesh, now)
		},
	} {
		if c, err := try(); err != ErrRunToken || c != (RunClaims{}) {
			t.Errorf("%s: %+v, %v; want ErrRunToken", name, c, err)
		}
	}
}

func FuzzVerifyRunToken(f *testing.F) {
	mesh := MeshID(strings.Repeat("ab", 16))
	token, _ := MintRunToken(DataKey{1}, mesh, RunClaims{Agent: "a", Company: "c", Run: "r"}, time.Unix(0, 0))
	f.Add(token)
	f.Add("..")
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := VerifyRunToken(s, []DataKey{{1}}, mesh, time.Unix(1, 0)); err == nil && s != token {
			t.Errorf("%q is accepted", s)
		}
	})
}
