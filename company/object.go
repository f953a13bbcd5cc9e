package company

import (
	"strconv"
)

// A jsonObject is a JSON object under construction, without its closing brace.
// Details of refusals and changes are built with it: keys keep their order, so
// every node builds the same bytes, and nothing is reflected on in the hot path.
type jsonObject []byte

// comma begins the next member.
func (o jsonObject) comma() jsonObject {
	if len(o) == 0 {
		return append(make(jsonObject, 0, 256), '{')
	}
	return append(o, ',')
}

func (o jsonObject) key(name string) jsonObject {
	o = append(o.comma(), '"')
	o = append(o, name...)
	return append(o, '"', ':')
}

// str adds a string.
func (o jsonObject) str(name, v string) jsonObject { return AppendJSONString(o.key(name), v) }

// null adds a string, or null when it is empty.
func (o jsonObject) null(name, v string) jsonObject {
	if v == "" {
		return append(o.key(name), "null"...)
	}
	return o.str(name, v)
}

func (o jsonObject) uint(name string, v uint64) jsonObject {
	return strconv.AppendUint(o.key(name), v, 10)
}

func (o jsonObject) int(name string, v int64) jsonObject {
	return strconv.AppendInt(o.key(name), v, 10)
}

func (o jsonObject) bool(name string, v bool) jsonObject {
	return strconv.AppendBool(o.key(name), v)
}

// time adds an instant, or null when it is zero.
func (o jsonObject) time(name string, v Time) jsonObject { return v.appendJSON(o.key(name)) }

// raw adds ready JSON.
func (o jsonObject) raw(name string, v []byte) jsonObject { return append(o.key(name), v...) }

// list adds an array of strings.
func (o jsonObject) list(name string, v []string) jsonObject {
	o = append(o.key(name), '[')
	for i, s := range v {
		if i > 0 {
			o = append(o, ',')
		}
		o = AppendJSONString(o, s)
	}
	return append(o, ']')
}

// close returns the finished object.
func (o jsonObject) close() []byte {
	if len(o) == 0 {
		return []byte("{}")
	}
	return append(o, '}')
}

func (t Time) appendJSON(b []byte) []byte {
	if t == 0 {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = t.Std().AppendFormat(b, isoMillis)
	return append(b, '"')
}
