package ledger

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/fxamacker/cbor/v2"
)

// encMode is RFC 8949 core deterministic encoding: the same value has the same
// bytes on every node.
var encMode = must2(cbor.CoreDetEncOptions().EncMode())

// decMode refuses what a deterministic encoder never writes. Unknown map keys
// are ignored so that a row written by a newer node can still be read; a
// command of an unknown kind or feature level is never applied (see [Mux]).
var decMode = must2(cbor.DecOptions{
	DupMapKey:        cbor.DupMapKeyEnforcedAPF,
	IndefLength:      cbor.IndefLengthForbidden,
	TagsMd:           cbor.TagsForbidden,
	MaxNestedLevels:  32,
	MaxArrayElements: 65_536,
	MaxMapPairs:      65_536,
}.DecMode())

// Marshal encodes v, which must hold no floating point, as deterministic CBOR.
func Marshal(v any) []byte {
	b, err := encMode.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("ledger: encode %T: %v", v, err)) // only types checked by noFloats get here
	}
	return b
}

// Unmarshal decodes what [Marshal] wrote.
func Unmarshal(b []byte, v any) error { return decMode.Unmarshal(b, v) }

// noFloats panics when t can hold a floating-point number: replicas on
// different CPUs must never disagree, so replicated state has integers only.
func noFloats(t reflect.Type) { checkFloats(t, map[reflect.Type]bool{}) }

func checkFloats(t reflect.Type, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128, reflect.Interface:
		panic(fmt.Sprintf("ledger: %s can hold a float; replicated state has integers only", t))
	case reflect.Pointer, reflect.Slice, reflect.Array:
		checkFloats(t.Elem(), seen)
	case reflect.Map:
		checkFloats(t.Key(), seen)
		checkFloats(t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if f.IsExported() {
				checkFloats(f.Type, seen)
			}
		}
	}
}

var checked sync.Map // of reflect.Type, so that a type is walked once

func checkType[T any]() {
	t := reflect.TypeFor[T]()
	if _, ok := checked.Load(t); !ok {
		noFloats(t)
		checked.Store(t, true)
	}
}

func must2[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
