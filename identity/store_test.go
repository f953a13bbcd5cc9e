package identity

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An identity outlives restarts, and its file is for the owner alone.
func TestCreateThenLoad(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	made, err := LoadOrCreate(dir, "here")
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(filepath.Join(dir, fileName))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v; want 0600", st.Mode(), err)
	}
	loaded, err := LoadOrCreate(dir, "here")
	if err != nil {
		t.Fatal(err)
	}
	if loaded.ServerID() != made.ServerID() || loaded.Local("x") != made.Local("x") ||
		!loaded.Noise.Equal(made.Noise) || !loaded.Seal.Equal(made.Seal) {
		t.Error("another identity was loaded than was made")
	}
	if _, err := Create(dir, "here"); !errors.Is(err, ErrExists) {
		t.Errorf("second Create: %v, want ErrExists", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("the directory holds %v, want one file", left)
	}
}

func TestLoadWithoutIdentity(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if _, err := Load(dir, "here"); !errors.Is(err, ErrNoIdentity) {
			t.Errorf("Load: %v, want ErrNoIdentity", err)
		}
	}
}

// A copied directory refuses to start. Reset makes it a new node; reset with keep, a new
// incarnation of the same node.
func TestForeignMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made, err := Create(dir, "here")
	if err != nil {
		t.Fatal(err)
	}
	for _, machine := range []string{"there", ""} {
		_, err := Load(dir, machine)
		if !errors.Is(err, ErrForeignMachine) || !strings.Contains(err.Error(), "selvage identity reset") {
			t.Errorf("Load on machine %q: %v", machine, err)
		}
	}
	if _, err := Reincarnate(dir, "there"); !errors.Is(err, ErrForeignMachine) {
		t.Errorf("Reincarnate on another machine: %v", err)
	}
	kept, err := Reset(dir, "there", true)
	if err != nil {
		t.Fatal(err)
	}
	if kept.ID() != made.ID() || kept.Incarnation == made.Incarnation {
		t.Error("reset with keep must keep the node and change the incarnation")
	}
	fresh, err := Reset(dir, "there", false)
	if err != nil {
		t.Fatal(err)
	}
	if fresh.ID() == made.ID() {
		t.Error("reset kept the node")
	}
	if got, err := Load(dir, "there"); err != nil || got.ServerID() != fresh.ServerID() {
		t.Errorf("after reset: %v", err)
	}
}

// A machine that gets its ID later binds the identity then.
func TestMachineWithoutID(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Create(dir, ""); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		machine string
		want    error
	}{{"", nil}, {"here", nil}, {"here", nil}, {"there", ErrForeignMachine}} {
		if _, err := Load(dir, step.machine); !errors.Is(err, step.want) {
			t.Errorf("Load on machine %q: %v, want %v", step.machine, err, step.want)
		}
	}
}

// A new incarnation is a new raft server of the same node.
func TestReincarnate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := Create(dir, "here")
	if err != nil {
		t.Fatal(err)
	}
	second, err := Reincarnate(dir, "here")
	if err != nil {
		t.Fatal(err)
	}
	if first.ID() != second.ID() || first.ServerID() == second.ServerID() {
		t.Errorf("server %s became %s", first.ServerID(), second.ServerID())
	}
	if got, err := Load(dir, "here"); err != nil || got.ServerID() != second.ServerID() {
		t.Errorf("the new incarnation was not kept: %v", err)
	}
}

// Damage is an error that says where, never a panic or a half identity.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Create(dir, "here"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, fileName)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":         {nil, "does not begin with"},
		"newer":         {bytes.Replace(good, []byte("v1"), []byte("v2"), 1), "does not begin with"},
		"torn":          {good[:len(good)/2], "cut short"},
		"no last line":  {good[:len(good)-1], "cut short"},
		"extra":         {append(bytes.Clone(good), "x\n"...), "extra lines"},
		"swapped lines": {bytes.Replace(good, []byte("noise "), []byte("seal "), 1), `line 3 should be "noise"`},
		"short key":     {bytes.Replace(good, []byte("=\nseal"), []byte("\nseal"), 1), "line 3 should hold 32 bytes"},
		"incarnation": {bytes.Replace(good, []byte("incarnation "), []byte("incarnation x"), 1),
			"line 6 should hold 16 hex"},
		"huge": {bytes.Repeat(good, 20), "too long"},
	} {
		if err := os.WriteFile(file, c.b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir, "here"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for i := range good { // a single bit, anywhere
		bad := bytes.Clone(good)
		bad[i] ^= 1
		if _, _, err := decodeKeys(bad); err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("a bit of byte %d flipped: %v", i, err)
		}
	}
	before := good[:bytes.LastIndex(good, []byte("sum "))] // as an earlier program wrote it
	if _, _, err := decodeKeys(before); err != nil {
		t.Errorf("without a sum: %v", err)
	}
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir, "here"); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("readable by others: %v", err)
	}
}

// A link out of the directory is not followed.
func TestIdentityStaysInItsDirectory(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), t.TempDir()
	if _, err := Create(outside, "here"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, fileName), filepath.Join(dir, fileName)); err != nil {
		t.Skip("no symbolic links here")
	}
	if _, err := Load(dir, "here"); err == nil {
		t.Error("a link out of the directory was followed")
	}
}

// However secrets are printed or logged, they do not show.
func TestSecretsDoNotShow(t *testing.T) {
	t.Parallel()
	k := ada()
	var out bytes.Buffer
	for _, v := range []any{k, testDataKey, testToken, &testToken, []DataKey{testDataKey}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	for _, h := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		slog.New(h).Info("x", "keys", k, "key", testDataKey, "token", testToken)
	}
	token, _ := EncodeJoinToken(testToken)
	for what, secret := range map[string]string{
		"node key":       fmt.Sprintf("%x", []byte(k.Node.Seed())),
		"node key list":  strings.Trim(fmt.Sprint([]byte(k.Node.Seed())), "[]"),
		"noise key":      fmt.Sprintf("%x", k.Noise.Bytes()),
		"data key":       fmt.Sprintf("%x", testDataKey[:]),
		"data key list":  strings.Trim(fmt.Sprint(testDataKey[:]), "[]"),
		"token":          token,
		"token key":      fmt.Sprintf("%x", testToken.PSK[:]),
		"token key list": strings.Trim(fmt.Sprint(testToken.PSK[:]), "[]"),
	} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("the %s shows in:\n%s", what, out.String())
		}
	}
	if !strings.Contains(out.String(), "keys of node "+k.ID().Short()) {
		t.Error("keys are not named by their node")
	}
}
