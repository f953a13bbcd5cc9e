package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// What was compiled is machine code that the runtime maps and jumps into; of its own
// sums it checks only one, of a part. So each file that it keeps in Dir has a sum of
// ours beside it, <file>.sum, the SHA-256 of its bytes in hex. Before a module is taken
// from there all files that have a sum are checked, and one that is damaged is thrown
// away with the notes of what was compiled: the module is compiled anew.
const sumSuffix = ".sum"

// maxKeptBytes bounds what is hashed before a module is compiled or taken from Dir; a
// larger folder is emptied, which costs each module one compilation.
const maxKeptBytes = 256 << 20

// kept are the files of compiled code in dir, and their bytes.
func kept(dir string) (files []string, bytes int64) {
	all, _ := filepath.Glob(filepath.Join(dir, "wazero-*", "*"))
	for _, path := range all {
		info, err := os.Stat(path)
		if strings.HasSuffix(path, sumSuffix) || strings.HasSuffix(path, ".tmp") || err != nil || !info.Mode().IsRegular() {
			continue
		}
		files, bytes = append(files, path), bytes+info.Size()
	}
	return files, bytes
}

// dropDamaged throws away what does not have its sum any more, and with all set what
// has none; it returns how many files that were.
func dropDamaged(dir string, all bool) (dropped int, err error) {
	if dir == "" {
		return 0, nil
	}
	files, bytes := kept(dir)
	for _, path := range files {
		want, err := os.ReadFile(path + sumSuffix)
		if errors.Is(err, fs.ErrNotExist) && !all {
			continue
		}
		if got, sumErr := sumOf(path); bytes <= maxKeptBytes && err == nil && sumErr == nil && got == string(want) {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return dropped, err
		}
		_ = os.Remove(path + sumSuffix)
		dropped++
	}
	if dropped > 0 {
		marks, _ := filepath.Glob(filepath.Join(dir, "compiled-*"))
		for _, path := range marks {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return dropped, err
			}
		}
	}
	return dropped, nil
}

// sumKept gives a sum to what has none: it was written just now.
func sumKept(dir string) error {
	if dir == "" {
		return nil
	}
	files, _ := kept(dir)
	var errs []error
	for _, path := range files {
		if _, err := os.Stat(path + sumSuffix); err == nil {
			continue
		}
		sum, err := sumOf(path)
		if err == nil {
			err = os.WriteFile(path+sumSuffix, []byte(sum), 0o600)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// CheckKept returns an error when code in dir does not have its sum; the engine throws
// it away by itself.
func CheckKept(dir string) error {
	files, _ := kept(dir)
	for _, path := range files {
		want, err := os.ReadFile(path + sumSuffix)
		if got, sumErr := sumOf(path); err != nil || sumErr != nil || got != string(want) {
			return errors.New(filepath.Base(path) + " does not have its sum; it is compiled anew when it is needed")
		}
	}
	return nil
}
