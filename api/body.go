package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/selvage-mesh/selvage/ledger"
)

// Body decodes and validates the request's JSON body. Tags of T mean:
//
//	json:"name"              the member; required, unless omitempty, omitzero, a pointer, or Opt
//	required:"false"         not required; "true": required, also a pointer
//	nullable:"true"          null is allowed (pointers, Opt and JSON that may be absent: always, unless
//	                         "false") and leaves the zero value: in a body that creates, null is the same
//	                         as absent; in one that changes, it clears the value
//	default:"x"              used when the member is absent
//	trim:"true"              white space around a string is removed before validation
//	minLength, maxLength     of strings, in UTF-16 units as the contract's clients count; of a list
//	                         or record: of its strings, otherwise at most MaxItemLength. A name or title
//	                         with a minimum must not be white space only
//	minimum, maximum         of numbers
//	enum:"a,b"               allowed strings (or items of a list of strings)
//	format:"uuid"            also "date-time", "uri"
//	pattern:"^[a-z]+$"       a regular expression that a string must match
//	minItems, maxItems       of lists
//	types, maxBytes          of raw JSON: types:"object" (the default), "array,string", "any"; and its
//	                         length, at most MaxRaw by default
//	maxBytes                 of strings, in addition to maxLength: in UTF-8, where the rules allow less
//
// Every value is bounded: a record has at most MaxMembers members. Members that T does not
// have are ignored; a field `_ struct{}` with additionalProperties:"false" refuses them. A
// method Check() []Issue on T adds rules between members; it runs when everything else is
// valid. All problems are reported at once. No body counts as {}.
func Body[T any](rc *Request) (v T, err error) {
	b, err := rc.RawBody()
	if err != nil {
		return v, err
	}
	if len(bytes.TrimSpace(b)) == 0 {
		b = []byte("{}")
	} else if err := JsonContent(rc.HTTP.Header.Get("Content-Type")); err != nil {
		return v, err
	}
	err = DecodeBody(b, &v)
	return v, err
}

// checkIdleBody refuses malformed bodies on routes without a body type. Clients send {},
// null, or an object with unknown members there. Handlers that have a type for the body, or
// read it raw, check it themselves.
func (rc *Request) checkIdleBody() error {
	if m := rc.Route.Method; rc.Route.In != nil || rc.Route.MaxBody > 0 || m == http.MethodGet || m == http.MethodHead {
		return nil
	}
	if b, err := rc.RawBody(); err == nil && string(bytes.TrimSpace(b)) == "null" {
		return nil
	}
	_, err := Body[struct{}](rc)
	return err
}

// RawBody returns the body's bytes, at most the route's MaxBody; more is a 413.
func (rc *Request) RawBody() ([]byte, error) {
	if !rc.HasBody {
		rc.HasBody = true
		limit := rc.Route.MaxBody
		if limit == 0 {
			limit = MaxBody
		}
		if e := rc.HTTP.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
			rc.bodyErr = Invalid("Content-Encoding %q is not accepted; send the body as it is", Cut(e, 64))
		} else if rc.HTTP.ContentLength > limit {
			rc.bodyErr = ledger.Refuse(ledger.TooLarge, nil, "Request entity too large")
		} else {
			rc.Body, rc.bodyErr = readBody(rc.HTTP, limit)
		}
		if r, ok := errors.AsType[*ledger.Refusal](rc.bodyErr); ok && r.Code == ledger.TooLarge {
			discard(rc.HTTP)
		}
	}
	return rc.Body, rc.bodyErr
}

// discard reads the rest of a body that is too large, up to a bound: a client that still
// writes when the connection is closed does not see the answer with the reason. A client
// that asked before sending its body has not sent it.
func discard(r *http.Request) {
	if r.Header.Get("Expect") == "" && r.ContentLength <= maxDiscarded {
		io.CopyN(io.Discard, r.Body, maxDiscarded) // as much as arrives
	}
}

func readBody(r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil, nil
	}
	src := http.MaxBytesReader(nil, r.Body, limit)
	if n := r.ContentLength; n > 0 && n <= smallBody {
		b := make([]byte, n) // the usual body, in one read
		if _, err := io.ReadFull(src, b); err != nil {
			return nil, cutOff(err)
		}
		return b, nil
	}
	b, err := io.ReadAll(src)
	return b, cutOff(err)
}

// cutOff turns an error of the network into an answer.
func cutOff(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return ledger.Refuse(ledger.TooLarge, nil, "Request entity too large")
	}
	return Invalid("The request body broke off")
}

func JsonContent(header string) error {
	switch header {
	case "", "application/json", "application/json; charset=utf-8":
		return nil
	}
	media, _, err := mime.ParseMediaType(header)
	if err == nil && (media == "application/json" || strings.HasSuffix(media, "+json")) {
		return nil
	}
	return Invalid("Expected a JSON body with Content-Type: application/json")
}

// DecodeBody decodes and validates JSON into v, a pointer, as [Body] does.
func DecodeBody(b []byte, v any) error { return decodeAt(b, v) }

// DecodeMember decodes and validates a member of a body at a path, which issues name. Absent
// and null are valid.
func DecodeMember(b json.RawMessage, v any, at ...any) error {
	if len(b) == 0 || string(b) == "null" {
		return nil
	}
	return decodeAt(b, v, at...)
}

func decodeAt(b []byte, v any, at ...any) error {
	if err := WellFormed(b); err != nil {
		return err
	}
	target := reflect.ValueOf(v).Elem()
	d := decoder{path: slices.Clip(at)}
	d.value(bytes.TrimSpace(b), PlanOf(target.Type()), bounds{Types: anyJSON}, target)
	if len(d.issues) == 0 {
		if c, ok := v.(interface{ Check() []Issue }); ok {
			d.issues = c.Check()
			for n := range d.issues {
				d.issues[n].Path = slices.Concat(at, d.issues[n].Path)
			}
		}
	}
	if len(d.issues) > 0 {
		return ValidationError(d.issues...)
	}
	return nil
}

// A decoder fills a value and collects issues.
type decoder struct {
	path   []any
	issues []Issue
}

func (d *decoder) issue(i Issue) {
	if len(d.issues) >= MaxIssues {
		return
	}
	i.Path = append([]any{}, d.path...)
	d.issues = append(d.issues, i)
}

func (d *decoder) wrongType(expected, received string) {
	d.issue(Issue{Code: "invalid_type", Expected: expected, Message: "Invalid input: expected " + expected +
		", received " + received})
}

// typeName names the type of a JSON value.
func typeName(b []byte) string {
	switch b[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// Expected names the JSON type of the plan's values.
func (p *plan) Expected() string {
	switch {
	case p.Ptr, p.Opt:
		return p.Elem.Expected()
	}
	switch p.Shape {
	case isInt, isUint, isFloat:
		return "number"
	case isBool:
		return "boolean"
	case isList:
		return "array"
	case isMap:
		return "record"
	case isStruct:
		return "object"
	}
	return "string"
}

// mismatch reports a value of the wrong type, or an absent one.
func (d *decoder) mismatch(p *plan, r bounds, received string) {
	if len(r.Enum) > 0 && p.Expected() == "string" {
		d.badEnum(r)
		return
	}
	if p.Shape == isRaw && !p.Ptr && !p.Opt {
		d.wrongType(r.expected(), received)
		return
	}
	d.wrongType(p.Expected(), received)
}

func (d *decoder) badEnum(r bounds) {
	values := make([]any, len(r.Enum))
	for i, v := range r.Enum {
		values[i] = v
	}
	text := "Invalid option: expected one of \"" + strings.Join(r.Enum, `"|"`) + `"`
	if len(r.Enum) == 1 {
		text = "Invalid input: expected \"" + r.Enum[0] + `"`
	}
	d.issue(Issue{Code: "invalid_value", Values: values, Message: text})
}

func (d *decoder) value(b []byte, p *plan, r bounds, v reflect.Value) {
	null := b[0] == 'n'
	switch {
	case p.Ptr:
		if null {
			if !r.nullable {
				d.mismatch(p, r, "null")
			}
			return
		}
		n := reflect.New(p.Elem.typ)
		d.value(b, p.Elem, r, n.Elem())
		v.Set(n)
		return
	case p.Opt:
		v.Field(0).SetBool(true)
		if null {
			if !r.nullable {
				d.mismatch(p, r, "null")
			}
			v.Field(1).SetBool(true)
			return
		}
		d.value(b, p.Elem, r, v.Field(2))
		return
	case null && p.Shape != isAny && (p.Shape != isRaw || !r.takesNull()):
		if !r.nullable {
			d.mismatch(p, r, "null")
		}
		return
	}
	switch p.Shape {
	case isRaw:
		if d.raw(b, r) {
			v.SetBytes(bytes.Clone(b))
		}
	case isAny:
		var any any
		if json.Unmarshal(b, &any) == nil && any != nil {
			v.Set(reflect.ValueOf(any))
		}
	case isTime:
		if json.Unmarshal(b, v.Addr().Interface()) != nil {
			if b[0] != '"' {
				d.wrongType("string", typeName(b))
				return
			}
			d.issue(Issue{Origin: "string", Code: "invalid_format", Format: "datetime", Message: "Invalid ISO datetime"})
		}
	default:
		if have := typeName(b); have != p.Expected() && !(have == "object" && p.Shape == isMap) {
			d.mismatch(p, r, have)
			return
		}
		d.typed(b, p, r, v)
	}
}

// takesNull reports whether raw JSON may be null.
func (r bounds) takesNull() bool { return len(r.Types) > 0 && r.Types[0] == "any" }

// expected names the allowed types of raw JSON.
func (r bounds) expected() string { return strings.Join(r.kinds(), " or ") }

func (r bounds) kinds() []string {
	if r.Types == nil {
		return onlyObject
	}
	return r.Types
}

// raw validates raw JSON.
func (d *decoder) raw(b []byte, r bounds) bool {
	if have := typeName(b); !r.takesNull() && !slices.Contains(r.kinds(), have) {
		d.wrongType(r.expected(), have)
		return false
	}
	most := MaxRaw
	if r.MaxBytes > 0 {
		most = r.MaxBytes
	}
	if len(b) > most {
		d.issue(Issue{Origin: typeName(b), Code: "too_big", Maximum: new(float64(most)), Inclusive: new(true),
			Message: fmt.Sprintf("Too big: expected JSON to have <=%d bytes", most)})
		return false
	}
	return true
}

var onlyObject, anyJSON = []string{"object"}, []string{"any"}

// typed decodes a value whose JSON type is right.
func (d *decoder) typed(b []byte, p *plan, r bounds, v reflect.Value) {
	switch p.Shape {
	case isString:
		s := text(b)
		if r.trim {
			s = strings.TrimSpace(s)
		}
		v.SetString(s)
		d.checkText(s, r)
	case isBool:
		v.SetBool(b[0] == 't')
	case isInt, isUint, isFloat:
		d.number(b, p, r, v)
	case isList:
		d.list(b, p, r, v)
	case isMap:
		d.object(b, p, r, v)
	case isStruct:
		d.members(b, p, v)
	}
}

func (d *decoder) number(b []byte, p *plan, r bounds, v reflect.Value) {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || math.IsInf(f, 0) {
		d.wrongType("number", "number")
		return
	}
	if p.Shape != isFloat {
		const safe = 1<<53 - 1
		if f != math.Trunc(f) {
			d.issue(Issue{Code: "invalid_type", Expected: "int", Format: "safeint",
				Message: "Invalid input: expected int, received number"})
			return
		}
		if f > safe || p.Shape == isInt && v.OverflowInt(int64(f)) || p.Shape == isUint && f >= 0 &&
			v.OverflowUint(uint64(f)) {
			top := float64(safe)
			d.issue(Issue{Origin: "int", Code: "too_big", Maximum: &top, Inclusive: new(true),
				Message: "Too big: expected int to be <=9007199254740991"})
			return
		}
		if f < -safe {
			low := float64(-safe)
			d.issue(Issue{Origin: "int", Code: "too_small", Minimum: &low, Inclusive: new(true),
				Message: "Too small: expected int to be >=-9007199254740991"})
			return
		}
		if p.Shape == isUint && f < 0 && r.Minimum == nil {
			r.Minimum = new(float64)
		}
	}
	if r.Minimum != nil && f < *r.Minimum {
		d.issue(Issue{Origin: "number", Code: "too_small", Minimum: r.Minimum, Inclusive: new(true),
			Message: "Too small: expected number to be >=" + short(*r.Minimum)})
		return
	}
	if r.maximum != nil && f > *r.maximum {
		d.issue(Issue{Origin: "number", Code: "too_big", Maximum: r.maximum, Inclusive: new(true),
			Message: "Too big: expected number to be <=" + short(*r.maximum)})
		return
	}
	switch p.Shape {
	case isInt:
		v.SetInt(int64(f))
	case isUint:
		v.SetUint(uint64(f))
	default:
		v.SetFloat(f)
	}
}

func short(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

const guidPattern = "/^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})$/"

func (d *decoder) checkText(s string, r bounds) {
	if len(r.Enum) > 0 && !slices.Contains(r.Enum, s) {
		d.badEnum(r)
		return
	}
	if r.limited {
		n := 0
		for _, c := range s {
			n += max(1, utf16.RuneLen(c))
		}
		if r.seen && strings.TrimSpace(s) == "" {
			n = 0
		}
		if d.size("string", "characters", n, r.MinLength, r.MaxLength); r.MaxBytes > 0 &&
			(r.MaxLength < 0 || n <= r.MaxLength) {
			d.size("string", "bytes", len(s), -1, r.MaxBytes)
		}
	}
	switch r.Format {
	case "uuid":
		if !IsUUID(s) {
			d.issue(Issue{Origin: "string", Code: "invalid_format", Format: "guid", Pattern: guidPattern,
				Message: "Invalid GUID"})
		}
	case "date-time":
		if _, err := time.Parse(time.RFC3339Nano, s); err != nil {
			d.issue(Issue{Origin: "string", Code: "invalid_format", Format: "datetime", Message: "Invalid ISO datetime"})
		}
	case "uri":
		if scheme, rest, ok := strings.Cut(s, ":"); !ok || scheme == "" || rest == "" {
			d.issue(Issue{Origin: "string", Code: "invalid_format", Format: "url", Message: "Invalid URL"})
		}
	}
	if r.Pattern != nil && !r.Pattern.MatchString(s) {
		d.issue(Issue{Origin: "string", Code: "invalid_format", Format: "regex", Pattern: "/" + r.Pattern.String() + "/",
			Message: "Invalid string: must match pattern /" + r.Pattern.String() + "/"})
	}
}

func (d *decoder) size(origin, unit string, n, least, most int) {
	if least >= 0 && n < least {
		d.issue(Issue{Origin: origin, Code: "too_small", Minimum: new(float64(least)), Inclusive: new(true),
			Message: fmt.Sprintf("Too small: expected %s to have >=%d %s", origin, least, unit)})
	}
	if most >= 0 && n > most {
		d.issue(Issue{Origin: origin, Code: "too_big", Maximum: new(float64(most)), Inclusive: new(true),
			Message: fmt.Sprintf("Too big: expected %s to have <=%d %s", origin, most, unit)})
	}
}

// Items returns the rules for the items of a list or record.
func (r bounds) Items() bounds {
	most := MaxItemLength
	if r.MaxLength > 0 {
		most = r.MaxLength
	}
	return bounds{MinLength: r.MinLength, MaxLength: most, MinItems: -1, maxItems: -1, Enum: r.Enum, Format: r.Format,
		trim: r.trim, Types: r.Types, MaxBytes: r.MaxBytes, limited: true}
}

func (d *decoder) list(b []byte, p *plan, r bounds, v reflect.Value) {
	items := r.Items()
	out := reflect.MakeSlice(p.typ, 0, 4)
	pos := position{b: b, i: 1}
	for pos.next() {
		item := reflect.New(p.Elem.typ).Elem()
		d.path = append(d.path, out.Len())
		d.value(pos.skip(), p.Elem, items, item)
		d.path = d.path[:len(d.path)-1]
		out = reflect.Append(out, item)
	}
	v.Set(out)
	if r.limited {
		d.size("array", "items", out.Len(), r.MinItems, r.maxItems)
	}
}

func (d *decoder) object(b []byte, p *plan, r bounds, v reflect.Value) {
	out := reflect.MakeMap(p.typ)
	items := r.Items()
	pos := position{b: b, i: 1}
	for pos.next() {
		name := pos.member()
		item := reflect.New(p.Elem.typ).Elem()
		d.path = append(d.path, name)
		d.value(pos.skip(), p.Elem, items, item)
		d.path = d.path[:len(d.path)-1]
		out.SetMapIndex(reflect.ValueOf(name).Convert(p.typ.Key()), item)
		if out.Len() > MaxMembers {
			d.issue(Issue{Origin: "record", Code: "too_big", Maximum: new(float64(MaxMembers)), Inclusive: new(true),
				Message: fmt.Sprintf("Too big: expected record to have <=%d members", MaxMembers)})
			return
		}
	}
	v.Set(out)
}

// members decodes an object into a struct. Issues come in the order of the struct's fields,
// whatever the order of the members.
func (d *decoder) members(b []byte, p *plan, v reflect.Value) {
	var room [24][]byte
	values := room[:min(len(p.Fields), len(room))]
	if len(p.Fields) > len(room) {
		values = make([][]byte, len(p.Fields))
	}
	var unknown []string
	pos := position{b: b, i: 1}
	for pos.next() {
		name := pos.member()
		value := pos.skip()
		if i, ok := p.ByName[name]; ok {
			values[i] = value
		} else if p.strict {
			unknown = append(unknown, Cut(name, 64))
		}
	}
	for i := range p.Fields {
		f := &p.Fields[i]
		value := values[i]
		if value == nil {
			value = f.fallback
		}
		if value == nil && !f.Required {
			continue
		}
		d.path = append(d.path, f.Name)
		if value == nil {
			d.mismatch(f.Plan, f.Rules, "undefined")
		} else {
			d.value(value, f.Plan, f.Rules, v.FieldByIndex(f.index))
		}
		d.path = d.path[:len(d.path)-1]
	}
	if len(unknown) > 0 {
		text := "Unrecognized key: \"" + unknown[0] + `"`
		if len(unknown) > 1 {
			text = "Unrecognized keys: \"" + strings.Join(unknown, `", "`) + `"`
		}
		d.issue(Issue{Code: "unrecognized_keys", Keys: unknown, Message: text})
	}
}
