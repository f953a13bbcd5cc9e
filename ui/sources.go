package ui

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// sourcesFile is the file of dist that holds the hash of what it was built from.
const sourcesFile = "SOURCES"

// Sources returns the hash of the pages' sources in a folder (ui/web): SHA-256, in hex, over one line
// for each file in the order of their paths,
//
//	<SHA-256 of the content, in hex>  <path with slashes>\n
//
// without what was installed or is only for tests. ui/web/build/sources.mjs writes the same into dist.
func Sources(web fs.FS) (string, error) {
	var names []string
	err := fs.WalkDir(web, ".", func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{"node_modules", "test", ".cache"}, at) {
				return fs.SkipDir
			}
			return nil
		}
		if base := path.Base(at); !strings.Contains(base, ".test.") {
			names = append(names, at)
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("list the pages' sources: %w", err)
	}
	slices.Sort(names)
	all := sha256.New()
	for _, name := range names {
		b, err := fs.ReadFile(web, name)
		if err != nil {
			return "", fmt.Errorf("read the pages' sources: %w", err)
		}
		sum := sha256.Sum256(b)
		fmt.Fprintf(all, "%s  %s\n", hex.EncodeToString(sum[:]), name)
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}
