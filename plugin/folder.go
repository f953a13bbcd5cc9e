package plugin

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/app"
)

// ArchiveExt is the ending of an archive's name.
const ArchiveExt = ".selvage-app"

// ReadFolder reads the files of an app from its folder. Hidden ones and archives are left out.
func ReadFolder(dir string) (Files, error) {
	files, total := Files{}, 0
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || strings.HasPrefix(d.Name(), ".") || strings.HasSuffix(name, ArchiveExt):
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file", name)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if total += int(info.Size()); total > MaxArchive {
			return fmt.Errorf("the folder has more than %d bytes", MaxArchive)
		}
		b, err := root.ReadFile(filepath.FromSlash(name))
		files[name] = b
		return err
	})
	return files, err
}

// A Listed is an app of a catalogue.
type Listed struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	About   string `json:"description"`
	Signer  string `json:"signer"` // "" for a folder, which is signed when it is installed
	Path    string `json:"path"`
	Problem string `json:"problem,omitempty"`
}

// Catalogue lists the apps in a folder: archives, and folders with a manifest, also one level below.
func Catalogue(dir string) (out []Listed, err error) {
	var look func(at string, depth int) error
	look = func(at string, depth int) error {
		entries, err := os.ReadDir(at)
		if err != nil {
			return err
		}
		for _, e := range entries {
			path := filepath.Join(at, e.Name())
			switch {
			case strings.HasPrefix(e.Name(), "."):
			case e.Type().IsRegular() && strings.HasSuffix(e.Name(), ArchiveExt):
				out = append(out, listedArchive(path))
			case e.IsDir() && IsFolder(path):
				out = append(out, listedFolder(path))
			case e.IsDir() && depth < 2:
				if err := look(path, depth+1); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err = look(dir, 0)
	slices.SortFunc(out, func(a, b Listed) int {
		if a.Name != b.Name {
			return strings.Compare(a.Name, b.Name)
		}
		v, _ := app.ParseVersion(a.Version)
		w, _ := app.ParseVersion(b.Version)
		return w.Compare(v) // the newest first
	})
	return out, err
}

// IsFolder reports whether a folder has a manifest.
func IsFolder(dir string) bool {
	return slices.ContainsFunc(ManifestNames, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

func listedArchive(path string) (l Listed) {
	var a Archive
	b, err := os.ReadFile(path)
	if err == nil {
		a, err = Open(b)
	}
	l = listed(path, a.Files, err)
	l.Signer = a.Signer
	return l
}

func listedFolder(path string) Listed {
	files, err := ReadFolder(path)
	return listed(path, files, err)
}

// listed describes the app that has the files, or says why they could not be read.
func listed(path string, files Files, err error) Listed {
	l := Listed{Path: path}
	if err == nil {
		var m Manifest
		m, err = Read(files)
		l.Name, l.Version, l.About = m.Name, m.Version, m.Description
	}
	if err != nil {
		l.Problem = err.Error()
	}
	return l
}
