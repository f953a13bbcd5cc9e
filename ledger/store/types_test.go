package store

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestPebblesTypesAreHidden looks for types of Pebble in our types and in signatures of their methods: each
// package that imports ours would compile all generic types that those are made of, see [db].
func TestPebblesTypesAreHidden(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	set := token.NewFileSet()
	look := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "pebble" && s.Sel.Name != "Lock" { // which is made of files
				t.Errorf("%s: pebble.%s is reached by who imports this: use any, and assert it in a function",
					set.Position(s.Pos()), s.Sel.Name)
			}
			return true
		})
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				if d.Tok == token.TYPE {
					look(d)
				}
			case *ast.FuncDecl:
				if d.Recv != nil {
					look(d.Type)
				}
			}
		}
	}
}
