package selvage

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	// undated are rooms of the program that no date leaves: what they note of the time are durations, or the times of
	// files, which the machine's clock has stamped.
	undated = []string{"discovery", "transport", "sandbox", "ledger/blob", "ledger/store", "testnet", "cmd/node", "ui"}
	// measured are functions that take the machine's time to measure a duration, or to compare it with the time of a file.
	measured = []string{"SetDeadline", "SetReadDeadline", "SetWriteDeadline", "Sub", "Before", "After", "Compare", "Add",
		"Since", "Until", "add", "trace", "pace", "Prune", "note"}
	// shown are methods of a time that make a date of it.
	shown = []string{"UTC", "Local", "In", "Unix", "UnixMilli", "UnixMicro", "Format", "AppendFormat", "Date", "Clock",
		"Year", "Month", "Day", "Weekday", "YearDay", "Round", "Truncate", "AddDate"}
)

// Dates come from a clock that a room was given (Wall in its Config), so that a test holds it: a test whose dates are
// fixed would fail on some day otherwise. time.Now measures durations, and time.Since and time.Until are of what it
// returned, never of a time that was stored, sent or shown.
func TestDatesComeFromAClock(t *testing.T) {
	t.Parallel()
	looked := 0
	for _, p := range packages(t) {
		at := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		room := func(r string) bool { return at == r || strings.HasPrefix(at, r+"/") }
		floor := slices.ContainsFunc(floors, func(f string) bool { return slices.ContainsFunc(strings.Fields(f), room) })
		if !floor || slices.ContainsFunc(undated, room) || slices.Contains(kits, at) {
			continue
		}
		for _, name := range p.GoFiles {
			files := token.NewFileSet()
			f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			looked++
			for _, d := range dates(f) {
				t.Errorf("%s/%s:%d: a date of the machine's clock: ask the clock that the room was given (Wall)", at, name,
					files.Position(d).Line)
			}
		}
	}
	if looked < 500 {
		t.Errorf("looked at %d files only", looked)
	}
}

// dates returns where a file makes a date of the machine's time.
func dates(f *ast.File) (at []token.Pos) {
	for _, d := range f.Decls {
		var path []ast.Node
		var held []string // variables that hold what time.Now returned
		ast.Inspect(d, func(n ast.Node) bool {
			if n == nil {
				path = path[:len(path)-1]
				return true
			}
			if e, ok := n.(ast.Expr); ok && (isTime(e, "Now") || isHeld(e, held) && !isField(path, e)) {
				to, bad := leads(path, e)
				held = append(held, to...)
				if bad {
					at = append(at, n.Pos())
				}
			}
			if c, ok := n.(*ast.CallExpr); ok && (isTime(c.Fun, "Since") || isTime(c.Fun, "Until")) && isStored(c.Args[0]) {
				at = append(at, n.Pos())
			}
			path = append(path, n)
			return true
		})
	}
	return at
}

// leads follows a time of the machine's clock upwards: it returns the variables that hold it then, and whether it
// becomes a date.
func leads(path []ast.Node, e ast.Expr) (held []string, date bool) {
	called := !isTime(e, "Now") // a variable holds the time, not the function
	var below ast.Node = e
	for _, up := range slices.Backward(path) {
		switch up := up.(type) {
		case *ast.SelectorExpr:
			if slices.Contains(shown, up.Sel.Name) {
				return nil, true
			}
			if up.Sel.Name == "UnixNano" { // of a beat that is the same on all nodes only the remainder counts
				return nil, !slices.ContainsFunc(path, func(n ast.Node) bool {
					b, ok := n.(*ast.BinaryExpr)
					return ok && b.Op == token.REM
				})
			}
		case *ast.CallExpr:
			if up.Fun == below {
				if s, ok := up.Fun.(*ast.SelectorExpr); ok && called && s.Sel.Name != "Add" {
					return nil, false // Sub, Before and the like: no time any more
				}
				called = true
				break
			}
			name := ""
			switch f := up.Fun.(type) {
			case *ast.Ident:
				name = f.Name
			case *ast.SelectorExpr:
				name = f.Sel.Name
			}
			return nil, !called || !slices.Contains(measured, name)
		case *ast.KeyValueExpr:
			k, ok := up.Key.(*ast.Ident)
			return nil, !ok || k.IsExported()
		case *ast.ReturnStmt:
			return nil, true
		case *ast.AssignStmt:
			if i := slices.IndexFunc(up.Rhs, func(r ast.Expr) bool { return r == below }); i >= 0 && called {
				if v, ok := up.Lhs[min(i, len(up.Lhs)-1)].(*ast.Ident); ok {
					return []string{v.Name}, false
				}
			}
			return nil, false
		case ast.Stmt:
			return nil, false
		}
		below = up
	}
	return nil, false
}

func isTime(e ast.Expr, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	p, ok := s.X.(*ast.Ident)
	return ok && p.Name == "time" && s.Sel.Name == name
}

// isField reports whether an identifier is the name after a dot.
func isField(path []ast.Node, e ast.Expr) bool {
	s, ok := path[len(path)-1].(*ast.SelectorExpr)
	return ok && s.Sel == e
}

func isHeld(e ast.Expr, held []string) bool {
	v, ok := e.(*ast.Ident)
	return ok && slices.Contains(held, v.Name)
}

// isStored reports whether a time comes from a row, a message or a certificate.
func isStored(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CallExpr:
		s, ok := e.Fun.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Std"
	case *ast.SelectorExpr:
		return e.Sel.IsExported()
	}
	return false
}

// What the test above finds, and what it leaves alone.
func TestWhatIsADate(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`x := time.Now().UTC(); _ = x`:                             true,
		`return time.Now()`:                                        true,
		`f(time.Now())`:                                            true,
		`f(time.Now)`:                                              true,
		`_ = row{At: time.Now()}`:                                  true,
		`now := time.Now(); f(now.Add(d))`:                         true,
		`now := time.Now(); _ = now.Format(time.RFC3339)`:          true,
		`_ = time.Since(r.FinishedAt.Std())`:                       true,
		`_ = time.Until(leaf.NotAfter)`:                            true,
		`_ = time.Unix(0, time.Now().UnixNano())`:                  true,
		`began := time.Now(); f(time.Since(began))`:                false,
		`c.SetDeadline(time.Now().Add(d))`:                         false,
		`cfg.Wall = time.Now`:                                      false,
		`s.seen = time.Now()`:                                      false,
		`_ = link{seen: time.Now()}`:                               false,
		`now := time.Now(); s.now.At = x; _ = now.Sub(s.seen) > d`: false,
		`_ = d - time.Duration(time.Now().UnixNano()%int64(d))`:    false,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc g() {\n"+body+"\n}", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(dates(f)) > 0; got != want {
			t.Errorf("%s: a date %v, want %v", body, got, want)
		}
	}
}
