package portable

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

//go:embed all:starters
var starters embed.FS

// Starters returns the sorted names of the starter companies that are embedded in the program.
func Starters() (names []string) {
	dirs, err := starters.ReadDir("starters")
	if err != nil {
		panic(err) // embedded
	}
	for _, d := range dirs {
		names = append(names, d.Name())
	}
	return names
}

// Starter returns the files of a starter company.
func Starter(name string) (Files, bool) {
	if !slices.Contains(Starters(), name) {
		return nil, false
	}
	files := Files{}
	err := fs.WalkDir(starters, "starters/"+name, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := starters.ReadFile(path)
		files[strings.TrimPrefix(path, "starters/"+name+"/")] = File{Data: b}
		return err
	})
	if err != nil {
		panic(err) // embedded
	}
	return files, true
}
