package core

import (
	"encoding/json"
	"strconv"
)

// An Object is a JSON object under construction, without its closing brace. Details of
// refusals and changes, and issues in answers, are built with it: keys keep their order, so
// every node builds the same bytes, without reflection on the hot path.
type Object []byte

// Comma starts the next member.
func (o Object) Comma() Object {
	switch {
	case cap(o) == 0:
		return append(make(Object, 0, 256), '{')
	case len(o) == 0:
		return append(o, '{')
	}
	return append(o, ',')
}

func (o Object) key(name string) Object {
	o = append(o.Comma(), '"')
	o = append(o, name...)
	return append(o, '"', ':')
}

// Str adds a string.
func (o Object) Str(name, v string) Object { return AppendJSONString(o.key(name), v) }

// Null adds a string, or null when it is empty.
func (o Object) Null(name, v string) Object {
	if v == "" {
		return append(o.key(name), "null"...)
	}
	return o.Str(name, v)
}

func (o Object) Uint(name string, v uint64) Object {
	return strconv.AppendUint(o.key(name), v, 10)
}

func (o Object) Int(name string, v int64) Object {
	return strconv.AppendInt(o.key(name), v, 10)
}

func (o Object) Bool(name string, v bool) Object {
	return strconv.AppendBool(o.key(name), v)
}

// Time adds an instant, or null when it is zero.
func (o Object) Time(name string, v Time) Object { return v.AppendJSON(o.key(name)) }

// Raw adds encoded JSON, or null when there is none.
func (o Object) Raw(name string, v []byte) Object {
	if len(v) == 0 {
		return append(o.key(name), "null"...)
	}
	return append(o.key(name), v...)
}

// Value adds any value that encodes as JSON.
func (o Object) Value(name string, v any) Object {
	j, err := json.Marshal(v)
	if err != nil {
		panic("company: " + name + " does not encode: " + err.Error()) // rows always encode
	}
	return append(o.key(name), j...)
}

// Fixed adds members in their JSON text, without braces.
func (o Object) Fixed(members string) Object { return append(o.Comma(), members...) }

// With adds what write adds.
func (o Object) With(write func(Object) Object) Object { return write(o) }

// List adds an array of strings.
func (o Object) List(name string, v []string) Object {
	o = append(o.key(name), '[')
	for i, s := range v {
		if i > 0 {
			o = append(o, ',')
		}
		o = AppendJSONString(o, s)
	}
	return append(o, ']')
}

// Close returns the finished object.
func (o Object) Close() []byte {
	if len(o) == 0 {
		return []byte("{}")
	}
	return append(o, '}')
}

func (t Time) AppendJSON(b []byte) []byte {
	if t == 0 {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = t.Std().AppendFormat(b, isoMillis)
	return append(b, '"')
}
