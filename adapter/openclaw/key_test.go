package openclaw

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A damaged device key is renamed and replaced, and never stops a node; a key in the older
// format is kept.
func TestDamagedDeviceKeyIsDrawnAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "openclaw.key")
	first, err := deviceKey(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := deviceKey(path, nil); err != nil || !bytes.Equal(again, first) {
		t.Errorf("read again: another key, %v", err)
	}
	flipped := bytes.Clone(good)
	flipped[3] ^= 1
	for name, bad := range map[string][]byte{"flip": flipped, "zero": make([]byte, len(good)), "cut": good[:40],
		"empty": {}} {
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if CheckKey(dir) == nil {
			t.Errorf("%s: not found", name)
		}
		got, err := deviceKey(path, nil)
		if err != nil || bytes.Equal(got, first) || CheckKey(dir) != nil {
			t.Errorf("%s: %v", name, err)
		}
		if kept, err := os.ReadFile(path + ".damaged"); err != nil || !bytes.Equal(kept, bad) {
			t.Errorf("%s: not set aside: %v", name, err)
		}
	}
	if err := os.WriteFile(path, first, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := deviceKey(path, nil); err != nil || !bytes.Equal(got, first) {
		t.Errorf("of an earlier program: %v", err)
	}
}
