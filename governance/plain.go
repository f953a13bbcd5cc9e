package governance

import (
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Most predicates compare variables with constants and join the answers. CEL takes half a microsecond for each of them,
// most of it for boxing values. Such a predicate is therefore also made into Go functions, from the expression that CEL
// has checked. This covers only what can not err:
//
//	variables and constants · == != < <= > >= of numbers and texts · in · contains, startsWith, endsWith · && || !
//
// Everything else is evaluated by CEL. TestPlainPredicatesAgreeWithCEL compares the two on random expressions.

type (
	truthOf  func(*facts) bool
	textOf   func(*facts) string
	numberOf func(*facts) int64
)

// A plainer reads one checked expression.
type plainer struct{ ast *ast.AST }

// plainOf returns a checked predicate as a function, nil where it has what only CEL knows.
func plainOf(a *ast.AST) truthOf { return plainer{a}.truth(a.Expr()) }

// variable returns the variable that an expression names, nil if it names none.
func (p plainer) variable(e ast.Expr) *Variable {
	if k := e.Kind(); k != ast.IdentKind && k != ast.SelectKind {
		return nil
	}
	r := p.ast.ReferenceMap()[e.ID()]
	if r == nil || r.Value != nil {
		return nil
	}
	if i, ok := place[r.Name]; ok {
		return &variables[i]
	}
	return nil
}

func (p plainer) truth(e ast.Expr) truthOf {
	if v := p.variable(e); v != nil {
		return v.truth
	}
	switch e.Kind() {
	case ast.LiteralKind:
		if b, ok := e.AsLiteral().(types.Bool); ok {
			return func(*facts) bool { return bool(b) }
		}
	case ast.CallKind:
		return p.call(e.AsCall())
	}
	return nil
}

func (p plainer) call(c ast.CallExpr) truthOf {
	args := c.Args()
	if c.IsMemberFunction() {
		if len(args) != 1 {
			return nil
		}
		return p.part(c.FunctionName(), p.text(c.Target()), p.text(args[0]))
	}
	switch f := c.FunctionName(); f {
	case operators.LogicalNot:
		if of := p.truth(args[0]); of != nil {
			return func(f *facts) bool { return !of(f) }
		}
	case operators.LogicalAnd, operators.LogicalOr:
		return p.join(f == operators.LogicalAnd, args)
	case operators.In:
		return p.in(args[0], args[1])
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater,
		operators.GreaterEquals:
		if a, b := p.number(args[0]), p.number(args[1]); a != nil && b != nil {
			return compare(f, a, b)
		}
		if a, b := p.text(args[0]), p.text(args[1]); a != nil && b != nil {
			return compare(f, a, b)
		}
	}
	return nil
}

// join returns the conjunction or disjunction of its arguments. None of them can err, so the first that decides does.
func (p plainer) join(all bool, args []ast.Expr) truthOf {
	var parts []truthOf
	for _, a := range args {
		of := p.truth(a)
		if of == nil {
			return nil
		}
		parts = append(parts, of)
	}
	if len(parts) == 2 {
		a, b := parts[0], parts[1]
		if all {
			return func(f *facts) bool { return a(f) && b(f) }
		}
		return func(f *facts) bool { return a(f) || b(f) }
	}
	return func(f *facts) bool {
		for _, of := range parts {
			if of(f) != all {
				return !all
			}
		}
		return all
	}
}

func (p plainer) in(member, list ast.Expr) truthOf {
	m := p.text(member)
	if m == nil {
		return nil
	}
	if v := p.variable(list); v != nil {
		if v.names == nil {
			return nil
		}
		return func(f *facts) bool { return slices.Contains(v.names(f), m(f)) }
	}
	if list.Kind() != ast.ListKind || len(list.AsList().OptionalIndices()) > 0 {
		return nil
	}
	var all []string
	for _, e := range list.AsList().Elements() {
		if e.Kind() != ast.LiteralKind {
			return nil
		}
		s, ok := e.AsLiteral().(types.String)
		if !ok {
			return nil
		}
		all = append(all, string(s))
	}
	return func(f *facts) bool { return slices.Contains(all, m(f)) }
}

// part is one of the questions whether a text is part of another.
func (p plainer) part(function string, text, part textOf) truthOf {
	if text == nil || part == nil {
		return nil
	}
	switch function {
	case "contains":
		return func(f *facts) bool { return strings.Contains(text(f), part(f)) }
	case "startsWith":
		return func(f *facts) bool { return strings.HasPrefix(text(f), part(f)) }
	case "endsWith":
		return func(f *facts) bool { return strings.HasSuffix(text(f), part(f)) }
	}
	return nil
}

func (p plainer) text(e ast.Expr) textOf {
	if v := p.variable(e); v != nil {
		return v.text
	}
	if e.Kind() == ast.LiteralKind {
		if s, ok := e.AsLiteral().(types.String); ok {
			return func(*facts) string { return string(s) }
		}
	}
	return nil
}

func (p plainer) number(e ast.Expr) numberOf {
	if v := p.variable(e); v != nil {
		return v.number
	}
	if e.Kind() == ast.LiteralKind {
		if n, ok := e.AsLiteral().(types.Int); ok {
			return func(*facts) int64 { return int64(n) }
		}
	}
	return nil
}

func compare[T int64 | string](operator string, a, b func(*facts) T) truthOf {
	switch operator {
	case operators.Equals:
		return func(f *facts) bool { return a(f) == b(f) }
	case operators.NotEquals:
		return func(f *facts) bool { return a(f) != b(f) }
	case operators.Less:
		return func(f *facts) bool { return a(f) < b(f) }
	case operators.LessEquals:
		return func(f *facts) bool { return a(f) <= b(f) }
	case operators.Greater:
		return func(f *facts) bool { return a(f) > b(f) }
	}
	return func(f *facts) bool { return a(f) >= b(f) }
}
