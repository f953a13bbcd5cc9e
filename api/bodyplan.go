package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// bounds are the rules from the tags of one field.
type bounds struct {
	MinLength, MaxLength int // 0 and -1: none
	MinItems, maxItems   int
	Minimum, maximum     *float64
	Enum                 []string
	Format               string
	Pattern              *regexp.Regexp
	Types                []string // of raw JSON; nil: object
	MaxBytes             int
	trim, nullable       bool
	seen                 bool // a name for people: must not be white space only
	limited              bool // set; the zero value of bounds has no limits
}

type field struct {
	Name     string
	index    []int
	Plan     *plan
	Rules    bounds
	Required bool
	fallback []byte // JSON of the default
}

type shape int

const (
	isString shape = iota
	isInt
	isUint
	isFloat
	isBool
	isTime // anything that decodes itself from a string
	isAny
	isRaw
	isList
	isMap
	isStruct
)

// A plan says how a type is decoded.
type plan struct {
	typ    reflect.Type
	Shape  shape
	Opt    bool // typ is an Opt; the rest describes its value
	Ptr    bool
	Elem   *plan // of lists, maps, pointers and Opt
	Fields []field
	ByName map[string]int
	strict bool
}

var plans sync.Map // of reflect.Type to *plan

func PlanOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := makePlan(t, map[reflect.Type]*plan{})
	plans.Store(t, p)
	return p
}

var (
	rawType         = reflect.TypeFor[json.RawMessage]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
	optType         = reflect.TypeFor[opt]()
)

// opt is implemented by the instances of [Opt].
type opt interface{ isOpt() }

func (Opt[T]) isOpt() {}

func makePlan(t reflect.Type, seen map[reflect.Type]*plan) *plan {
	if p, ok := seen[t]; ok {
		return p
	}
	p := &plan{typ: t}
	seen[t] = p
	switch {
	case t.Kind() == reflect.Pointer:
		p.Ptr, p.Elem = true, makePlan(t.Elem(), seen)
		return p
	case t.Implements(optType):
		p.Opt, p.Elem = true, makePlan(t.Field(2).Type, seen)
		return p
	case t == rawType:
		p.Shape = isRaw
		return p
	case reflect.PointerTo(t).Implements(unmarshalerType):
		p.Shape = isTime
		return p
	}
	switch t.Kind() {
	case reflect.String:
		p.Shape = isString
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.Shape = isInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.Shape = isUint
	case reflect.Float32, reflect.Float64:
		p.Shape = isFloat
	case reflect.Bool:
		p.Shape = isBool
	case reflect.Interface:
		p.Shape = isAny
	case reflect.Slice:
		p.Shape, p.Elem = isList, makePlan(t.Elem(), seen)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			panic(fmt.Sprintf("api: body with a map by %s", t.Key()))
		}
		p.Shape, p.Elem = isMap, makePlan(t.Elem(), seen)
	case reflect.Struct:
		p.Shape, p.ByName = isStruct, map[string]int{}
		p.addFields(t, nil, seen)
	default:
		panic(fmt.Sprintf("api: body with a %s", t))
	}
	return p
}

func (p *plan) addFields(t reflect.Type, at []int, seen map[reflect.Type]*plan) {
	for f := range t.Fields() {
		index := append(slices.Clone(at), f.Index...)
		if f.Name == "_" {
			p.strict = p.strict || f.Tag.Get("additionalProperties") == "false"
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct {
			p.addFields(f.Type, index, seen)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		fp := makePlan(f.Type, seen)
		fd := field{Name: name, index: index, Plan: fp, Rules: rulesOf(f.Tag), Required: !fp.Ptr && !fp.Opt &&
			!strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero")}
		if v, ok := f.Tag.Lookup("nullable"); ok {
			fd.Rules.nullable = v == "true"
		} else {
			fd.Rules.nullable = fp.Ptr || fp.Opt || fp.Shape == isRaw && !fd.Required
		}
		if v, ok := f.Tag.Lookup("default"); ok {
			fd.fallback, fd.Required = []byte(v), false
			inner := fp
			for inner.Elem != nil && (inner.Ptr || inner.Opt) {
				inner = inner.Elem
			}
			if inner.Shape == isString {
				fd.fallback, _ = json.Marshal(v)
			}
		}
		if v, ok := f.Tag.Lookup("required"); ok {
			fd.Required = v == "true"
		}
		p.ByName[name] = len(p.Fields)
		p.Fields = append(p.Fields, fd)
	}
}

func rulesOf(tag reflect.StructTag) (r bounds) {
	whole := func(name string) int {
		v, ok := tag.Lookup(name)
		if !ok {
			return -1
		}
		n, err := strconv.Atoi(v)
		if err != nil {
			panic("api: tag " + name + ":" + strconv.Quote(v))
		}
		r.limited = true
		return n
	}
	number := func(name string) *float64 {
		v, ok := tag.Lookup(name)
		if !ok {
			return nil
		}
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			panic("api: tag " + name + ":" + strconv.Quote(v))
		}
		return &n
	}
	r.MinLength, r.MaxLength = whole("minLength"), whole("maxLength")
	r.MinItems, r.maxItems = whole("minItems"), whole("maxItems")
	r.MaxBytes = whole("maxBytes")
	r.Minimum, r.maximum = number("minimum"), number("maximum")
	if v := tag.Get("types"); v != "" {
		r.Types = strings.Split(v, ",")
	}
	if name, _, _ := strings.Cut(tag.Get("json"), ","); r.MinLength > 0 && (name == "name" || name == "title") {
		r.seen = true
	}
	r.Format, r.trim = tag.Get("format"), tag.Get("trim") == "true"
	if v := tag.Get("enum"); v != "" {
		r.Enum = strings.Split(v, ",")
	}
	if v := tag.Get("pattern"); v != "" {
		r.Pattern = regexp.MustCompile(v)
	}
	return r
}
