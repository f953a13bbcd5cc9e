package rules_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
)

// TestEveryTableTravelsOrSaysWhyNot reads the tables from the sources: each is included in
// packages, or is in the list of excluded tables, with a reason.
func TestEveryTableTravelsOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	var tables []string
	for _, name := range sources(t) {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			of := call.Fun
			if generic, ok := of.(*ast.IndexListExpr); ok {
				of = generic.X
			}
			if sel, ok := of.(*ast.SelectorExpr); ok && sel.Sel.Name == "NewTable" {
				lit, ok := call.Args[0].(*ast.BasicLit)
				if !ok {
					t.Errorf("%s has a table whose name can not be read", name)
					return true
				}
				table, _ := strconv.Unquote(lit.Value)
				tables = append(tables, table)
			}
			return true
		})
	}
	if len(tables) < 70 {
		t.Fatalf("only %d tables found", len(tables))
	}
	var listed []string
	listed = append(append(listed, company.Travelling...), company.Derived...)
	for _, kind := range company.Staying {
		if kind.Kind == "" || len(kind.Reason) < 10 || len(kind.Tables) == 0 {
			t.Errorf("%+v says too little", kind)
		}
		listed = append(listed, kind.Tables...)
	}
	for _, table := range tables {
		if n := len(slices.DeleteFunc(slices.Clone(listed), func(s string) bool { return s != table })); n != 1 {
			t.Errorf("table %s is listed %d times in travel.go, want once", table, n)
		}
	}
	for _, table := range listed {
		if !slices.Contains(tables, table) {
			t.Errorf("travel.go lists %s, which is no table", table)
		}
	}
}

// sources returns the files of all rooms except tests.
func sources(t *testing.T) (out []string) {
	t.Helper()
	all, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	rooms, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, rooms...)
	for _, name := range all {
		if !strings.HasSuffix(name, "_test.go") {
			out = append(out, name)
		}
	}
	return out
}
