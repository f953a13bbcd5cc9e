package selvage

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

const module = "github.com/selvage-mesh/selvage"

// floors lists the rooms from the ground up. A room imports rooms on floors
// below its own, never a neighbour. A package inside a room counts as the room,
// but for those that are listed themselves.
var floors = []string{
	"kit identity sandbox memory ui ledger/store kernel/topic",
	"ledger transport ledger/blob",
	"governance consensus discovery",
	"company kernel",
	"scheduler adapter plugin llm purse recall mind",
	"api",
	"node",
	"testnet",
	"cmd/node",
}

// satellites are the rooms inside a room: each imports the kernel (the room itself) and
// what is listed as below it, never another satellite. What is listed as above may import
// all of them.
var satellites = map[string]struct{ below, above []string }{
	"company": {below: []string{"core", "conceal", "entity", "cause"}, above: []string{"rules", "companytest"}},
	"api":     {below: []string{"skills", "chart", "mcp", "client"}, above: []string{"routes", "described", "apitest"}},
}

// Bounds of one package, tests aside.
const (
	maxFiles = 60
	maxLines = 12_000
	maxNames = 350 // exported, methods aside
	maxFile  = 600 // lines of one file
)

// maxColumns bounds a line, a tab counted as one column.
const maxColumns = 120

// pinned are folders whose files are not formatted anew: the program embeds a module that was
// built from exactly these bytes (see adapter/wasm). Their tests are no part of the module.
var pinned = []string{"examples/agent/", "examples/wasmkit/"}

// homes says which room a third-party library lives in; others may not import
// it. Libraries that are not listed are plain tools, free for all.
var homes = map[string]string{
	"github.com/hashicorp/raft":         "consensus",
	"github.com/hashicorp/memberlist":   "discovery",
	"github.com/grandcat/zeroconf":      "discovery",
	"github.com/quic-go/quic-go":        "transport",
	"github.com/flynn/noise":            "transport",
	"github.com/tetratelabs/wazero":     "sandbox",
	"cel.dev/cel-go":                    "governance",
	"github.com/danielgtaylor/huma/v2":  "api",
	"github.com/coder/websocket":        "api",
	"github.com/modelcontextprotocol":   "api",
	"github.com/prometheus":             "api",
	"github.com/spf13/cobra":            "cmd/node",
	"github.com/knadh/koanf/v2":         "cmd/node",
	"github.com/coreos/go-systemd/v22":  "cmd/node",
	"github.com/cockroachdb/pebble/v2":  "ledger/store",
	"github.com/anishathalye/porcupine": "testnet",
	"github.com/coder/hnsw":             "memory",
	// In no room: with one template that is carried out the linker keeps every exported method of
	// every type, an eighth of the program.
	"html/template": "none",
	"text/template": "none",
}

// guests may import what lives elsewhere. The file system interface of Pebble is
// what tests and testnets put faults into, so whoever hands a file system on
// names its type; agents behind a WebSocket are called by their adapter.
var guests = map[string][]string{
	"github.com/cockroachdb/pebble/v2/vfs": {"ledger", "consensus", "api", "node", "testnet", "cmd/node"},
	"github.com/coder/websocket":           {"adapter"},
}

// impure may not be imported by rules: what they decide must be the same on
// every node.
var (
	pure   = []string{"company", "governance", "ledger"}
	impure = []string{"math/rand", "math/rand/v2", "crypto/rand", "net", "net/http", "os", "os/exec", "syscall"}
	// shells are the files of pure rooms that are not rules but wait, wake or
	// look at a clock that they were given; see their comments.
	shells = []string{"ledger/ledger.go", "ledger/feed.go", "ledger/apply.go", "ledger/snapshot.go", "ledger/verify.go",
		"ledger/stats.go"}
)

type pkg struct {
	ImportPath, Dir, Doc string
	Imports, TestImports []string
	XTestImports         []string
	GoFiles              []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// listed asks go for the packages of the module, once for all tests.
var listed = sync.OnceValues(func() (all []pkg, err error) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,Imports,TestImports,XTestImports,GoFiles",
		"./...").Output()
	if err != nil {
		return nil, err
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
})

// room returns the room of a package and its floor, from 1; examples, tools and
// the root stand on none.
func room(importPath string) (string, int) {
	path := strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
	name, floor := "", 0
	for i, f := range floors {
		for r := range strings.FieldsSeq(f) {
			if (path == r || strings.HasPrefix(path, r+"/")) && len(r) > len(name) {
				name, floor = r, i+1
			}
		}
	}
	return name, floor
}

func outside(importPath string) bool {
	return importPath == module || strings.HasPrefix(importPath, module+"/examples/") || strings.HasPrefix(importPath,
		module+"/scripts/")
}

func TestFloors(t *testing.T) {
	for _, p := range packages(t) {
		if outside(p.ImportPath) {
			continue
		}
		own, floor := room(p.ImportPath)
		if floor == 0 {
			t.Errorf("%s stands on no floor", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, module+"/") {
				continue
			}
			if other, below := room(imp); other != own && below >= floor {
				t.Errorf("%s (floor %d) imports %s (floor %d)", own, floor, other, below)
			}
		}
	}
}

// TestSatellites holds rooms inside a room apart.
func TestSatellites(t *testing.T) {
	all := packages(t)
	for name, s := range satellites {
		inside := func(importPath string) (string, bool) {
			rest, ok := strings.CutPrefix(importPath, module+"/"+name)
			if !ok || rest != "" && rest[0] != '/' {
				return "", false
			}
			return strings.TrimPrefix(rest, "/"), true
		}
		for _, p := range all {
			own, ok := inside(p.ImportPath)
			if !ok || slices.Contains(s.above, own) {
				continue
			}
			for _, imp := range p.Imports {
				to, ok := inside(imp)
				below := slices.Contains(s.below, to)
				switch {
				case !ok || below && !slices.Contains(s.below, own):
				case below && slices.Index(s.below, to) < slices.Index(s.below, own):
				case to == "" && !slices.Contains(s.below, own):
				default:
					t.Errorf("%s imports %s: rooms of %s know its kernel and what is below it alone; ask through its rules",
						p.ImportPath, imp, name)
				}
			}
		}
	}
}

// TestPackagesAreSmall: what grows beyond these bounds is to be divided.
func TestPackagesAreSmall(t *testing.T) {
	for _, p := range packages(t) {
		lines, names := 0, 0
		for _, f := range p.GoFiles {
			b, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				t.Fatal(err)
			}
			n := strings.Count(string(b), "\n")
			if n > maxFile {
				t.Errorf("%s/%s has %d lines, at most %d: divide it by what a reader looks for", p.ImportPath, f, n, maxFile)
			}
			lines += n
			file, err := parser.ParseFile(token.NewFileSet(), f, b, 0)
			if err != nil {
				t.Fatal(err)
			}
			names += exported(file)
		}
		if len(p.GoFiles) > maxFiles || lines > maxLines || names > maxNames {
			t.Errorf("%s has %d files, %d lines and %d exported names, at most %d, %d and %d: divide it",
				p.ImportPath, len(p.GoFiles), lines, names, maxFiles, maxLines, maxNames)
		}
	}
}

// exported counts the names that a file gives to other packages, methods aside.
func exported(f *ast.File) (n int) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() {
				n++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						n++
					}
				case *ast.ValueSpec:
					for _, name := range s.Names {
						if name.IsExported() {
							n++
						}
					}
				}
			}
		}
	}
	return n
}

func TestRoomsOfLibraries(t *testing.T) {
	for _, p := range packages(t) {
		own, _ := room(p.ImportPath)
		for _, imp := range p.Imports {
			for lib, home := range homes {
				if imp != lib && !strings.HasPrefix(imp, lib+"/") || own == home || slices.Contains(guests[imp], own) {
					continue
				}
				t.Errorf("%s imports %s, which lives in %s", p.ImportPath, imp, home)
			}
		}
	}
}

// kits are the packages that only tests import, and that may import testing. kit itself
// imports no other room, so that a test of any room can use it.
var kits = []string{
	"kit", "ledger/ledgertest", "company/companytest", "adapter/shim/shimtest", "adapter/container/containertest",
	"adapter/cli/clitest", "api/described", "api/apitest",
	"testnet/testkit",
}

func TestRoomsOfKits(t *testing.T) {
	isKit := func(importPath string) bool { return slices.Contains(kits, strings.TrimPrefix(importPath, module+"/")) }
	for _, p := range packages(t) {
		if isKit(p.ImportPath) {
			continue
		}
		for _, imp := range p.Imports {
			if imp == "testing" || isKit(imp) {
				t.Errorf("%s imports %s: helpers for tests belong in one of %s", p.ImportPath, imp, strings.Join(kits, ", "))
			}
		}
	}
}

func TestCommentsOnPackages(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

func TestPureRules(t *testing.T) {
	for _, p := range packages(t) {
		own, _ := room(p.ImportPath)
		if !slices.Contains(pure, own) {
			continue
		}
		for _, f := range p.GoFiles {
			path := filepath.Join(p.Dir, f)
			name, _ := filepath.Rel(root(t), path)
			checkPure(t, path, name, slices.Contains(shells, name))
		}
	}
}

// TestLinesAreShort holds every Go file to maxColumns. Two forms are exempt: a field of a struct
// whose tag alone is what makes its line too long, since Go has no way to break a tag, and the
// files whose bytes are pinned.
func TestLinesAreShort(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "*.go").Output()
	if err != nil {
		t.Skip("not a Git checkout")
	}
	for name := range strings.FieldsSeq(string(out)) {
		fixed := slices.ContainsFunc(pinned, func(dir string) bool { return strings.HasPrefix(name, dir) })
		if fixed && !strings.HasSuffix(name, "_test.go") {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			continue // deleted, not yet committed
		}
		for _, l := range longLines(t, name, b) {
			t.Errorf("%s:%d: longer than %d columns: break it", name, l, maxColumns)
		}
	}
}

// longLines returns the numbers of the lines that are longer than maxColumns and not exempt.
func longLines(t *testing.T, name string, src []byte) (long []int) {
	t.Helper()
	lines := strings.Split(string(src), "\n")
	var tagged map[int]int
	for i, line := range lines {
		if utf8.RuneCountInString(line) <= maxColumns {
			continue
		}
		if tagged == nil {
			tagged = tagColumns(t, name, src)
		}
		if at, ok := tagged[i+1]; ok && at <= maxColumns && strings.HasSuffix(line, "`") {
			continue
		}
		long = append(long, i+1)
	}
	return long
}

// tagColumns returns for each line that is one field of a struct with a tag where the tag begins.
func tagColumns(t *testing.T, name string, src []byte) map[int]int {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	at := map[int]int{}
	ast.Inspect(f, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok || field.Tag == nil {
			return true
		}
		first, tag := fset.Position(field.Pos()), fset.Position(field.Tag.Pos())
		before := src[first.Offset-first.Column+1 : first.Offset]
		if first.Line == tag.Line && len(bytes.TrimSpace(before)) == 0 {
			at[tag.Line] = tag.Column
		}
		return true
	})
	return at
}

// The bound on lines is one: what is a column too long is found, and only fields with tags pass.
func TestLongLinesAreFound(t *testing.T) {
	pad := func(begin, end string, width int) string {
		return begin + strings.Repeat("x", width-len(begin)-len(end)) + end
	}
	src := strings.Join([]string{
		"package p",
		pad("// ", "", maxColumns),
		pad("// ", "", maxColumns+1),
		"type s struct {",
		pad("\tA int `doc:\"", "\"`", maxColumns+30),
		pad("\tB int `doc:\"", "\"` // b", maxColumns+30),
		pad("\tC", " int `doc:\"c\"`", maxColumns+30),
		"}",
		pad("const long = `", "`", maxColumns+1),
		pad("type t struct{ A int `doc:\"", "\"` }", maxColumns+1),
	}, "\n") + "\n"
	if got, want := longLines(t, "p.go", []byte(src)), []int{3, 6, 7, 9, 10}; !slices.Equal(got, want) {
		t.Errorf("found the lines %v, want %v", got, want)
	}
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func checkPure(t *testing.T, path, name string, shell bool) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, imp := range f.Imports {
		if lib := strings.Trim(imp.Path.Value, `"`); slices.Contains(impure, lib) {
			t.Errorf("%s imports %s", name, lib)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if !shell {
				t.Errorf("%s starts a goroutine", fset.Position(n.Pos()))
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "After",
				"Sleep", "NewTimer", "NewTicker"}, n.Sel.Name) && !shell {
				t.Errorf("%s uses time.%s", fset.Position(n.Pos()), n.Sel.Name)
			}
		case *ast.FuncLit:
			if at := subtracts(n); at.IsValid() {
				t.Errorf("%s compares by subtracting, which overflows where int has 32 bits: use cmp.Compare", fset.Position(at))
			}
		}
		return true
	})
}

// subtracts returns where a function of two or more arguments returns int(x - y), if it does. Replicas whose words
// have other lengths would sort differently.
func subtracts(f *ast.FuncLit) (at token.Pos) {
	if f.Type.Params.NumFields() < 2 {
		return at
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		r, ok := n.(*ast.ReturnStmt)
		if !ok || len(r.Results) != 1 {
			return true
		}
		call, ok := r.Results[0].(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return true
		}
		to, _ := call.Fun.(*ast.Ident)
		by, _ := call.Args[0].(*ast.BinaryExpr)
		if to != nil && to.Name == "int" && by != nil && by.Op == token.SUB {
			at = r.Pos()
		}
		return true
	})
	return at
}

// TestWords keeps out of the repository what speaks of the machine that it was
// written on rather than of the product.
func TestWords(t *testing.T) {
	out, err := exec.Command("git", "ls-files").Output()
	if err != nil {
		t.Skip("not a Git checkout")
	}
	banned := []string{"/work" + "/main", "/work" + "/shared", "proxy.golang" + ".org", "registry.npmjs" + ".org",
		"pypi" + ".org"}
	for name := range strings.FieldsSeq(string(out)) {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // deleted, not yet committed
		}
		for _, w := range banned {
			if strings.Contains(string(b), w) {
				t.Errorf("%s contains %q", name, w)
			}
		}
	}
}

// TestArchitecture holds ARCHITECTURE.md to its length, and to the tests and files that
// it and the decisions name.
func TestArchitecture(t *testing.T) {
	const most = 250 // lines; what is longer is not read
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(page), "\n"); n > most {
		t.Errorf("ARCHITECTURE.md has %d lines, at most %d: move details to docs/decisions or to package comments", n, most)
	}
	decisions, err := filepath.Glob("docs/decisions/[0-9]*.md")
	if err != nil || len(decisions) == 0 {
		t.Fatalf("no decisions: %v", err)
	}
	index, err := os.ReadFile("docs/decisions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t)
	named := regexp.MustCompile(`\bTest[A-Z]\w+`)
	links := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	for _, name := range append(decisions, "ARCHITECTURE.md", "docs/decisions/README.md") {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range named.FindAllString(string(b), -1) {
			if !tests[test] {
				t.Errorf("%s names %s, and there is no such test", name, test)
			}
		}
		for _, link := range links.FindAllStringSubmatch(string(b), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), link[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if base := filepath.Base(name); name != "ARCHITECTURE.md" && base != "README.md" && !strings.Contains(string(index),
			"("+base+")") {
			t.Errorf("docs/decisions/README.md does not list %s", base)
		}
	}
}

// testNames returns the names of all tests of the module.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	out, err := exec.Command("git", "ls-files", "*_test.go").Output()
	if err != nil {
		t.Skip("not a Git checkout")
	}
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for name := range strings.FieldsSeq(string(out)) {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // deleted, not yet committed
		}
		for _, m := range declared.FindAllStringSubmatch(string(b), -1) {
			names[m[1]] = true
		}
	}
	return names
}
