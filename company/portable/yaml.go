package portable

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// quoted returns v as YAML with all strings in double quotes, which simple YAML parsers also
// understand. It builds the nodes itself: the library's encoder writes block scalars that it
// can not always read back (a text that begins with a tab, or has a single line separator).
func quoted(v any) []byte {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(nodeOf(reflect.ValueOf(v))), e.Close()); err != nil {
		panic(fmt.Sprintf("portable: encode %T: %v", v, err)) // only types of this package come here
	}
	return b.Bytes()
}

// nodeOf returns the node of v: structs by their yaml tags, maps sorted by key.
func nodeOf(v reflect.Value) *yaml.Node {
	scalar := func(tag, value string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return nodeOf(v.Elem())
		}
	case reflect.String:
		n := scalar("!!str", strings.ToValidUTF8(v.String(), "\uFFFD"))
		n.Style = yaml.DoubleQuotedStyle
		return n
	case reflect.Bool:
		return scalar("!!bool", strconv.FormatBool(v.Bool()))
	case reflect.Int, reflect.Int64:
		return scalar("!!int", strconv.FormatInt(v.Int(), 10))
	case reflect.Float64: // from objects that were decoded from JSON
		text := strconv.FormatFloat(v.Float(), 'g', -1, 64)
		if strings.ContainsAny(text, ".e") {
			return scalar("!!float", text)
		}
		return scalar("!!int", text)
	case reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for i := range v.Len() {
			n.Content = append(n.Content, nodeOf(v.Index(i)))
		}
		if v.Len() == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case reflect.Map, reflect.Struct:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		if v.Kind() == reflect.Struct {
			addFields(n, v)
		} else {
			keys := v.MapKeys()
			slices.SortFunc(keys, func(a, b reflect.Value) int { return natural(a.String(), b.String()) })
			for _, k := range keys {
				addPair(n, k.String(), v.MapIndex(k))
			}
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case reflect.Invalid:
	default:
		panic("portable: no YAML for a " + v.Type().String())
	}
	return scalar("!!null", "null")
}

func addPair(n *yaml.Node, key string, v reflect.Value) {
	k := nodeOf(reflect.ValueOf(key))
	if plainKey(key) {
		k.Style = 0
	}
	n.Content = append(n.Content, k, nodeOf(v))
}

func addFields(n *yaml.Node, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case name == "-" || rest == "omitempty" && empty(v.Field(i)):
		case rest == "inline":
			addFields(n, v.Field(i))
		default:
			addPair(n, cmp.Or(name, strings.ToLower(f.Name)), v.Field(i))
		}
	}
}

// empty reports whether an omitempty field is empty.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		for i := range v.NumField() {
			if !empty(v.Field(i)) {
				return false
			}
		}
		return true
	}
	return v.IsZero()
}

// natural compares names with numbers by value: acm-9 comes before acm-10.
func natural(a, b string) int {
	for a != "" && b != "" {
		x, y := number(a), number(b)
		if x != "" && y != "" {
			p, q := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Or(cmp.Compare(len(p), len(q)), cmp.Compare(p, q), cmp.Compare(len(x), len(y))); c != 0 {
				return c
			}
			a, b = a[len(x):], b[len(y):]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// number returns the digits at the start of s.
func number(s string) string {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[:n]
}

func plainKey(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || (c < '0' || c > '9') &&
			c != '-' && c != '_') {
			return false
		}
	}
	return s != ""
}
