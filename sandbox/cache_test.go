package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// Code that was compiled and is damaged on the disk, anywhere in its file, at rest or
// under an engine that runs, is never run: the module is compiled anew and works.
func TestDamagedCodeIsCompiledAnew(t *testing.T) {
	dir := t.TempDir()
	load := func(e *Engine) {
		t.Helper()
		m, err := e.Load(t.Context(), randomModule(1))
		if err != nil {
			t.Fatal(err)
		}
		m.Close()
	}
	e, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	load(e)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := kept(dir)
	if len(files) != 1 || CheckKept(dir) != nil {
		t.Fatalf("kept %v, %v", files, CheckKept(dir))
	}
	good, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	damages := map[string][]byte{"zero": make([]byte, len(good)), "cut": good[:len(good)/2], "empty": {}}
	for at := 0; at < len(good); at += max(1, len(good)/40) {
		bad := append([]byte{}, good...)
		bad[at] ^= 0x80
		damages["flip at "+filepath.Base(files[0])[:4]+" "+string(rune('a'+at%26))] = bad
	}
	for name, bad := range damages {
		for _, running := range []bool{false, true} {
			var e *Engine
			if running {
				if e, err = Open(Config{Dir: dir}); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(files[0], bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if CheckKept(dir) == nil {
				t.Errorf("%s: not found", name)
			}
			if !running {
				if e, err = Open(Config{Dir: dir}); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			load(e)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if err := CheckKept(dir); err != nil {
				t.Errorf("%s, running %v: %v", name, running, err)
			}
		}
	}
}
