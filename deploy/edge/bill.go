package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// bill writes a CycloneDX bill of materials: every module that is linked into
// any of the built programs, as the linker itself wrote down.
func (r *release) bill() error {
	seen := map[string]cdx.Component{}
	toolchain := ""
	for _, path := range r.binary {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return err
		}
		toolchain = info.GoVersion
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			c := cdx.Component{Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: "pkg:golang/" +
				m.Path + "@" + m.Version}
			c.BOMRef = c.PackageURL
			// h1: is a SHA-256 over the sums of a module's files.
			if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) == 32 {
				c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
			}
			seen[c.BOMRef] = c
		}
	}
	if len(seen) == 0 {
		return errors.New("the programs name no modules")
	}
	parts := make([]cdx.Component, 0, len(seen)+1)
	for _, c := range seen {
		parts = append(parts, c)
	}
	std := "pkg:golang/std@" + strings.TrimPrefix(toolchain, "go")
	parts = append(parts, cdx.Component{Type: cdx.ComponentTypeLibrary, Name: "std", Version: strings.TrimPrefix(toolchain,
		"go"), PackageURL: std, BOMRef: std})
	slices.SortFunc(parts, func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	b := cdx.NewBOM()
	b.Metadata = &cdx.Metadata{
		Timestamp: r.when.Format(time.RFC3339),
		Component: &cdx.Component{
			Type: cdx.ComponentTypeApplication, Name: "selvage", Version: r.version, BOMRef: "selvage",
			Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		},
	}
	b.Components = &parts
	return r.write("selvage_"+r.version+".cdx.json", func(w io.Writer) error {
		return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).Encode(b)
	})
}
