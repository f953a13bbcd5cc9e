// Command notice writes NOTICE: what is linked into the program and built into its pages, for every platform
// that releases have, under which licences, and where the sources of what is under the
// Mozilla Public License are to be had. With -check it says whether NOTICE is so.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	file    = "NOTICE"
	program = "./cmd/node"
	// maxText bounds one licence, in bytes.
	maxText = 1 << 20
)

// platforms are those of releases; what is linked differs by the system.
var platforms = []string{"linux/amd64", "linux/arm64", "linux/arm", "linux/riscv64", "darwin/amd64", "darwin/arm64"}

// A module is one that the program has code of.
type module struct {
	Path, Version, Dir string

	licence string // by its SPDX name
	texts   []text
}

// A text is a licence or notice file of a module.
type text struct{ name, body string }

// licences are known by words of theirs, more special ones first.
var licences = []struct{ name, words string }{
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"MPL-2.0", "Mozilla Public License, version 2.0"},
	{"Apache-2.0", "Apache License Version 2.0, January 2004"},
	{"BSD-3-Clause", "Neither the name of"},
	{"BSD-3-Clause", "name of the author may not be used"},
	{"BSD-2-Clause", "Redistributions in binary form must reproduce the above copyright"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose"},
	{"ISC", "Permission to use, copy, modify, and distribute this software for any purpose with or without fee"},
	{"MIT", "Permission is hereby granted, free of charge"},
}

var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice)(\.(md|txt))?$`)
	spaces      = regexp.MustCompile(`\s+`)
	copyright   = regexp.MustCompile(`(?m)^[\s*#/]*(Copyright (?:\([cC]\)|©|\d|[A-Z][a-z]|the ).*)$`)
)

func main() {
	check := flag.Bool("check", false, "say whether NOTICE is as it would be written")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "notice:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	all, err := linked()
	if err != nil {
		return err
	}
	for i := range all {
		if err := all[i].read(); err != nil {
			return err
		}
	}
	pages, err := inPages()
	if err != nil {
		return err
	}
	all = append(all, pages...)
	want := write(all)
	if !check {
		return os.WriteFile(file, want, 0o644)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return errors.New(file + " is not what is linked: run make notice, and look at what has changed")
	}
	return nil
}

// inPages are the packages and fonts that the board's pages have code of: the build of the
// pages (make ui) wrote them down.
func inPages() (out []module, err error) {
	const list = "ui/packages.json"
	b, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Name, Version, Licence string
		Texts                  []struct{ Name, Body string }
	}
	if err := json.Unmarshal(b, &rows); err != nil {
		return nil, fmt.Errorf("%s: %w", list, err)
	}
	for _, r := range rows {
		if r.Licence == "" {
			return nil, fmt.Errorf("%s: %s %s has no licence: look at it", list, r.Name, r.Version)
		}
		m := module{Path: "npm " + r.Name, Version: r.Version, licence: r.Licence}
		for _, t := range r.Texts {
			m.texts = append(m.texts, text{t.Name, t.Body})
		}
		out = append(out, m)
	}
	return out, nil
}

// linked are the modules of the packages that the program has on any platform, and the
// standard library.
func linked() ([]module, error) {
	seen := map[string]module{}
	for _, p := range platforms {
		system, arch, _ := strings.Cut(p, "/")
		cmd := exec.Command("go", "list", "-deps", "-json=Module", program)
		cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		b, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", p, err)
		}
		for d := json.NewDecoder(bytes.NewReader(b)); ; {
			var one struct {
				Module *struct {
					Path, Version, Dir string
					Main               bool
					Replace            *module
				}
			}
			if err := d.Decode(&one); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if m := one.Module; m != nil && !m.Main {
				seen[m.Path] = module{Path: m.Path, Version: m.Version, Dir: m.Dir}
			}
		}
	}
	b, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	out := []module{{Path: "the Go standard library", Dir: strings.TrimSpace(string(b))}}
	for _, m := range seen {
		out = append(out, m)
	}
	slices.SortFunc(out[1:], func(a, b module) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

// read finds a module's licence.
func (m *module) read() error {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Path, err)
	}
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(m.Dir, e.Name()))
		if err != nil {
			return err
		}
		if len(b) > maxText {
			return fmt.Errorf("%s: %s is larger than %d bytes", m.Path, e.Name(), maxText)
		}
		t := text{e.Name(), strings.TrimSpace(strings.ReplaceAll(string(b), "\r\n", "\n"))}
		m.texts = append(m.texts, t)
		if strings.HasPrefix(strings.ToLower(t.name), "notice") || m.licence != "" {
			continue
		}
		plain := spaces.ReplaceAllString(t.body, " ")
		for _, l := range licences {
			if strings.Contains(strings.ToLower(plain), strings.ToLower(l.words)) {
				m.licence = l.name
				break
			}
		}
	}
	if m.licence == "" {
		return fmt.Errorf("%s %s: no licence that is known in %s: look at it, and teach this program", m.Path,
			m.Version, m.Dir)
	}
	return nil
}

// holders are the lines of a module that say whose it is.
func (m module) holders() (out []string) {
	for _, t := range m.texts {
		for _, found := range copyright.FindAllStringSubmatch(t.body, -1) {
			line := strings.TrimSpace(spaces.ReplaceAllString(found[1], " "))
			template := strings.Contains(line, "[yyyy]") || strings.Contains(line, "{yyyy}")
			if !template && !slices.Contains(out, line) {
				out = append(out, line)
			}
		}
	}
	return out
}

func (m module) name() string { return strings.TrimSpace(m.Path + " " + m.Version) }

// write is the whole file: a list, and then each text with the modules that have it.
func write(all []module) []byte {
	var b bytes.Buffer
	b.WriteString(`Selvage
Copyright the Selvage authors. Licensed under the Apache License, Version 2.0: see LICENSE.

Written by scripts/notice (make notice). The program has code of the modules below, and
its pages of the npm packages after them.
Those under MPL-2.0 are used as they were published, unchanged. Their sources are at
the module path and version that stand here; go mod download PATH@VERSION fetches them.

`)
	for _, m := range all {
		fmt.Fprintf(&b, "%s: %s\n", m.name(), m.licence)
		for _, h := range m.holders() {
			fmt.Fprintf(&b, "    %s\n", h)
		}
		if m.licence == "MPL-2.0" {
			fmt.Fprintf(&b, "    Source: go mod download %s@%s\n", m.Path, m.Version)
		}
	}
	type shared struct {
		body string
		of   []string
	}
	var texts []shared
	for _, m := range all {
		for _, t := range m.texts {
			at := slices.IndexFunc(texts, func(s shared) bool { return s.body == t.body })
			if at < 0 {
				at, texts = len(texts), append(texts, shared{body: t.body})
			}
			texts[at].of = append(texts[at].of, m.name()+" ("+t.name+")")
		}
	}
	for _, t := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(t.of, "\n"), t.body)
	}
	return b.Bytes()
}
