package api

import (
	"encoding"
	"reflect"
	"strings"
	"sync"
)

// filled returns an answer with an empty list in the place of each nil one: clients that
// read a list do not expect null, and the description says that they get none. Members
// that are left out when empty, or have the tag nullable:"true", stay as they are. What v
// holds is not changed: parts of it may belong to others.
func filled(v any) any {
	at := reflect.ValueOf(v)
	if !at.IsValid() {
		return v
	}
	if out, changed := fill(at); changed {
		return out.Interface()
	}
	return v
}

// fill returns v itself, or a copy of what has to be another.
func fill(v reflect.Value) (out reflect.Value, changed bool) {
	t := v.Type()
	if !holdsLists(t) {
		return v, false
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return v, false
		}
		inner, changed := fill(v.Elem())
		if !changed || v.Kind() == reflect.Interface {
			return inner, changed
		}
		out = reflect.New(t.Elem())
		out.Elem().Set(inner)
		return out.Convert(t), true
	case reflect.Slice:
		if v.IsNil() {
			return reflect.MakeSlice(t, 0, 0), true
		}
		return fillItems(v)
	case reflect.Map:
		return fillMap(v)
	case reflect.Struct:
		return fillMembers(v)
	}
	return v, false
}

func fillItems(v reflect.Value) (out reflect.Value, changed bool) {
	out = v
	for i := range v.Len() {
		inner, other := fill(v.Index(i))
		if !other {
			continue
		}
		if !changed {
			out, changed = reflect.MakeSlice(v.Type(), v.Len(), v.Len()), true
			reflect.Copy(out, v)
		}
		out.Index(i).Set(inner)
	}
	return out, changed
}

func fillMap(v reflect.Value) (out reflect.Value, changed bool) {
	out = v
	for of := v.MapRange(); of.Next(); {
		inner, other := fill(of.Value())
		if !other {
			continue
		}
		if !changed {
			out, changed = reflect.MakeMapWithSize(v.Type(), v.Len()), true
			for all := v.MapRange(); all.Next(); {
				out.SetMapIndex(all.Key(), all.Value())
			}
		}
		out.SetMapIndex(of.Key(), inner)
	}
	return out, changed
}

func fillMembers(v reflect.Value) (out reflect.Value, changed bool) {
	out = v
	for _, m := range listsOf(v.Type()).members {
		at := v.FieldByIndex(m.index)
		if m.mayBeNil && at.Kind() == reflect.Slice && at.IsNil() {
			continue
		}
		inner, other := fill(at)
		if !other {
			continue
		}
		if !changed {
			out, changed = reflect.New(v.Type()).Elem(), true
			out.Set(v)
		}
		out.FieldByIndex(m.index).Set(inner)
	}
	return out, changed
}

// A listPlan says where in values of a type lists may be.
type listPlan struct {
	some    bool // there may be
	members []listMember
}

// A listMember is a member of a struct that is a list, or may hold one.
type listMember struct {
	index    []int
	mayBeNil bool
}

var listPlans sync.Map // of reflect.Type to *listPlan

func holdsLists(t reflect.Type) bool { return listsOf(t).some }

func listsOf(t reflect.Type) *listPlan {
	if p, ok := listPlans.Load(t); ok {
		return p.(*listPlan)
	}
	p := planLists(t, map[reflect.Type]bool{})
	listPlans.Store(t, p)
	return p
}

var textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()

// planLists looks through a type; one that holds itself, which under says, may hold lists.
func planLists(t reflect.Type, under map[reflect.Type]bool) *listPlan {
	switch {
	case under[t]:
		return &listPlan{some: true}
	case t.Kind() == reflect.Interface:
		return &listPlan{some: true} // as what is in it
	case t.Implements(marshaler), reflect.PointerTo(t).Implements(marshaler), t.Implements(textMarshaler),
		reflect.PointerTo(t).Implements(textMarshaler):
		return &listPlan{} // it writes itself
	}
	under[t] = true
	defer delete(under, t)
	switch t.Kind() {
	case reflect.Slice:
		return &listPlan{some: t.Elem().Kind() != reflect.Uint8}
	case reflect.Pointer, reflect.Map:
		return &listPlan{some: planLists(t.Elem(), under).some}
	case reflect.Struct:
		p := &listPlan{}
		p.addMembers(t, nil, under)
		p.some = len(p.members) > 0
		return p
	}
	return &listPlan{}
}

// addMembers takes members of embedded structs for those of t, as encoding/json does.
func (p *listPlan) addMembers(t reflect.Type, at []int, under map[reflect.Type]bool) {
	for f := range t.Fields() {
		name, how, _ := strings.Cut(f.Tag.Get("json"), ",")
		index := append(at[:len(at):len(at)], f.Index...)
		switch {
		case name == "-" && how == "":
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct && !f.Type.Implements(marshaler):
			p.addMembers(f.Type, index, under)
		case f.IsExported() && planLists(f.Type, under).some:
			p.members = append(p.members, listMember{index, strings.Contains(how, "omit") || f.Tag.Get("nullable") == "true"})
		}
	}
}
