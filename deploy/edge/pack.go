package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// pack makes a package of a Linux distribution from nfpm.yaml.
func (r *release) pack(t target, program, format string) error {
	arch := t.arch
	if t.arm != "" {
		arch += t.arm
	}
	values := map[string]string{
		"ARCH": arch, "VERSION": r.version, "BINARY": program,
		"FILES": filepath.Join(r.root, "deploy/edge/files"), "ROOT": r.root,
	}
	text, err := os.ReadFile(filepath.Join(r.root, "deploy/edge/nfpm.yaml"))
	if err != nil {
		return err
	}
	conf, err := nfpm.Parse(strings.NewReader(os.Expand(string(text), func(k string) string { return values[k] })))
	if err != nil {
		return err
	}
	info, err := conf.Get(format)
	if err != nil {
		return err
	}
	info = nfpm.WithDefaults(info)
	info.MTime = r.when
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	return r.write(packager.ConventionalFileName(info), func(w io.Writer) error { return packager.Package(info, w) })
}
