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

// bounds are the limits that the tags of one field give.
type bounds struct {
	minLength, maxLength int // 0 and -1: none
	minItems, maxItems   int
	minimum, maximum     *float64
	enum                 []string
	format               string
	pattern              *regexp.Regexp
	types                []string // of JSON that is taken over; nil: objects
	maxBytes             int
	trim, nullable       bool
	seen                 bool // a name that people read: white space alone is none
	limited              bool // the zero value of bounds has no limits
}

type field struct {
	name     string
	index    []int
	plan     *plan
	rules    bounds
	required bool
	fallback []byte // JSON of the default
}

type shape int

const (
	isString shape = iota
	isInt
	isUint
	isFloat
	isBool
	isTime // anything that unmarshals itself from a string
	isAny
	isRaw
	isList
	isMap
	isStruct
)

// A plan says how a type is decoded.
type plan struct {
	typ    reflect.Type
	shape  shape
	opt    bool // typ is an Opt; the rest is about its value
	ptr    bool
	elem   *plan // of lists, maps, pointers and Opt
	fields []field
	byName map[string]int
	strict bool
}

var plans sync.Map // of reflect.Type to *plan

func planOf(t reflect.Type) *plan {
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

// opt marks the instances of [Opt].
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
		p.ptr, p.elem = true, makePlan(t.Elem(), seen)
		return p
	case t.Implements(optType):
		p.opt, p.elem = true, makePlan(t.Field(2).Type, seen)
		return p
	case t == rawType:
		p.shape = isRaw
		return p
	case reflect.PointerTo(t).Implements(unmarshalerType):
		p.shape = isTime
		return p
	}
	switch t.Kind() {
	case reflect.String:
		p.shape = isString
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.shape = isInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.shape = isUint
	case reflect.Float32, reflect.Float64:
		p.shape = isFloat
	case reflect.Bool:
		p.shape = isBool
	case reflect.Interface:
		p.shape = isAny
	case reflect.Slice:
		p.shape, p.elem = isList, makePlan(t.Elem(), seen)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			panic(fmt.Sprintf("api: body with a map by %s", t.Key()))
		}
		p.shape, p.elem = isMap, makePlan(t.Elem(), seen)
	case reflect.Struct:
		p.shape, p.byName = isStruct, map[string]int{}
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
		fd := field{name: name, index: index, plan: fp, rules: rulesOf(f.Tag), required: !fp.ptr && !fp.opt &&
			!strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero")}
		if v, ok := f.Tag.Lookup("nullable"); ok {
			fd.rules.nullable = v == "true"
		} else {
			fd.rules.nullable = fp.ptr || fp.opt || fp.shape == isRaw && !fd.required
		}
		if v, ok := f.Tag.Lookup("default"); ok {
			fd.fallback, fd.required = []byte(v), false
			inner := fp
			for inner.elem != nil && (inner.ptr || inner.opt) {
				inner = inner.elem
			}
			if inner.shape == isString {
				fd.fallback, _ = json.Marshal(v)
			}
		}
		if v, ok := f.Tag.Lookup("required"); ok {
			fd.required = v == "true"
		}
		p.byName[name] = len(p.fields)
		p.fields = append(p.fields, fd)
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
	r.minLength, r.maxLength = whole("minLength"), whole("maxLength")
	r.minItems, r.maxItems = whole("minItems"), whole("maxItems")
	r.maxBytes = whole("maxBytes")
	r.minimum, r.maximum = number("minimum"), number("maximum")
	if v := tag.Get("types"); v != "" {
		r.types = strings.Split(v, ",")
	}
	if name, _, _ := strings.Cut(tag.Get("json"), ","); r.minLength > 0 && (name == "name" || name == "title") {
		r.seen = true
	}
	r.format, r.trim = tag.Get("format"), tag.Get("trim") == "true"
	if v := tag.Get("enum"); v != "" {
		r.enum = strings.Split(v, ",")
	}
	if v := tag.Get("pattern"); v != "" {
		r.pattern = regexp.MustCompile(v)
	}
	return r
}
