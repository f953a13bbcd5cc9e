package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Who are the callers that a route admits.
type Who int

const (
	Any    Who = iota // the board or an agent
	Public            // also nobody: credentials are not read
	Board             // a person; agents get 403 "Board access required"
	Agent             // an agent; others get 401 "Agent authentication required"
	Admin             // a person who administers the instance; others get 403 "Instance admin required"
)

// A Route is one row of the table.
type Route struct {
	Method  string // "GET", "POST" …
	Path    string // pattern of http.ServeMux, e.g. "/api/issues/{id}/checkout"
	Tag     string // noun, groups operations in the OpenAPI description
	Summary string // one line, imperative, without a period
	Who     Who
	Query   []Param  // documented query parameters
	In      any      // zero value of the body's type; nil: no members, or Handle reads it raw, up to MaxBody
	Out     any      // zero value of the answer's type; nil: see Media and Never
	Media   []string // media types of an answer that is not JSON; "*/*": any
	Never   int      // the status with which it always refuses, where it has no answer
	Takes   Taken    // a body that Handle reads itself
	Status  int      // of success; default 200
	Also    []int    // other statuses with the same answer
	MaxBody int64    // bytes; 0 means MaxBody
	NoTool  bool     // not an MCP tool: a stream, a file, a second way to do the same

	// Timeout bounds the whole request; 0 means RequestTimeout.
	Timeout time.Duration
	// Limited: it creates, revokes or exchanges credentials, and is rate limited.
	Limited bool
	// NobodyAsAgent: a caller without a credential gets the answer for agents, not that a
	// credential is missing.
	NobodyAsAgent bool
	// Once: Handle does more than submit commands. A refused request is not retried on newer
	// state, see [Request.mayBeBehind].
	Once bool
	// Kernel: refusals have the form of the kernel's API, {code, message}.
	Kernel bool
	// Processes: a process of this node is admitted with its token.
	Processes bool
	// Capability is what a capability token has to grant for this route; "": it takes none.
	Capability string

	// Handle decodes, submits or reads, and returns the answer. A path value named companyId was
	// already checked against the company of an agent.
	Handle func(rc *Request) (Response, error)
}

// A Param describes a query parameter.
type Param struct {
	Name, Doc string
	Type      string // "string" (also ""), "integer", "boolean"
}

// Taken describes a body that a handler reads itself.
type Taken struct {
	Media string  // "multipart/form-data" has the part file and Parts; "application/json" is any JSON; others are bytes
	Parts []Param // texts in a form, beside the file
}

// Null is the Out of a route that always answers null.
type Null struct{}

// MarshalJSON writes null.
func (Null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// A Response is an answer. Status 0 means the route's. Body is encoded as JSON, unless
// ContentType is set and Body is a []byte or string. Stream, if set, writes the whole answer
// itself.
type Response struct {
	Status      int
	Body        any
	Header      http.Header
	ContentType string
	Stream      func(w http.ResponseWriter, r *http.Request) error
}

// OK answers v with the route's status.
func OK(v any) Response { return Response{Body: v} }

// Reply answers v with a status other than the route's.
func Reply(status int, v any) Response { return Response{Status: status, Body: v} }

// Raw answers bytes of a content type.
func Raw(contentType string, b []byte) Response { return Response{Body: b, ContentType: contentType} }

// A Request is one call of a route by an authenticated actor. It belongs to the goroutine of
// its handler.
type Request struct {
	HTTP *http.Request
	ID   string // X-Request-Id

	Actor      ledger.Actor
	Credential ledger.Credential
	Company    ledger.CompanyID    // of an agent; "" for the board
	Run        string              // heartbeat run under which an agent acts, or ""
	KeyID      string              // row ID of the caller's agent key, or ""
	granted    *identity.CapClaims // of the caller's capability token; nil: it has none

	Server  *Server
	Route   *Route
	W       http.ResponseWriter
	query   url.Values // of the URL
	Read    ledger.Read
	Index   uint64 // least raft index that the answer reflects
	asOf    uint64 // raft index that was read for a strong read, or 0
	began   uint64 // raft index that was applied when the handler began
	Body    []byte
	bodyErr error
	HasBody bool
	Submits int
	awaited bool // it has waited for what its node has answered
	spent   bool // the body was streamed and cannot be read again
	// Of an import that continues after its answer: its job, its progress, and whether it waits
	// for its turn.
	Job   string
	Pace  *Pace
	Waits bool
}

// Context ends when the caller goes away or the request's time is up.
func (rc *Request) Context() context.Context { return rc.HTTP.Context() }

// IsBoard reports whether a person asks.
func (rc *Request) IsBoard() bool { return rc.Actor.Type == "user" }

// IsAgent reports whether an agent asks; its ID is Actor.ID.
func (rc *Request) IsAgent() bool { return rc.Actor.Type == "agent" }

// Now returns the time of this node's clock. It is for reports (this month's costs), never for
// commands, which get the leader's time.
func (rc *Request) Now() time.Time { return rc.Server.Cfg.Wall().UTC().Truncate(time.Millisecond) }

// Path returns a path value.
func (rc *Request) Path(name string) string { return rc.HTTP.PathValue(name) }

// Query returns the first value of a query parameter, or "".
func (rc *Request) Query(name string) string {
	if rc.Server.Asked != nil {
		rc.Server.Asked(rc.Route, name)
	}
	return rc.query.Get(name)
}

// Has reports whether a query parameter is present and not empty.
func (rc *Request) Has(name string) bool { return rc.Query(name) != "" }

// QueryList returns the values of a query parameter, repeated or separated by commas.
func (rc *Request) QueryList(name string) []string {
	var out []string
	if rc.Server.Asked != nil {
		rc.Server.Asked(rc.Route, name)
	}
	for _, v := range rc.query[name] {
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
	}
	return out
}

// QueryInt returns a whole number, def when absent, clamped to [lo, hi]; anything else is a
// 400.
func (rc *Request) QueryInt(name string, def, lo, hi int) (int, error) {
	n, err := rc.QueryInt64(name, int64(def), int64(lo), int64(hi))
	return int(n), err
}

// QueryInt64 is QueryInt for values larger than an int of a 32-bit machine, such as a position
// in a log.
func (rc *Request) QueryInt64(name string, def, lo, hi int64) (int64, error) {
	v := rc.Query(name)
	if v == "" {
		return def, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, Invalid("Invalid %s: expected a whole number", name)
	}
	return min(max(n, lo), hi), nil
}

// QueryHeight returns a height of the chain, 0 when absent.
func (rc *Request) QueryHeight(name string) (uint64, error) {
	v := rc.Query(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(v, 10, 63)
	if err != nil {
		return 0, Invalid("Invalid %s: expected a height", name)
	}
	return n, nil
}

// QueryBool returns a flag: true for "true" and "1", false for "false", "0" and absent.
func (rc *Request) QueryBool(name string) (bool, error) {
	switch rc.Query(name) {
	case "true", "1":
		return true, nil
	case "", "false", "0":
		return false, nil
	}
	return false, Invalid("Invalid %s: expected true or false", name)
}

// QueryTime returns an instant (RFC 3339, or a date), zero when absent.
func (rc *Request) QueryTime(name string) (time.Time, error) {
	v := rc.Query(name)
	if v == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, v); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, Invalid("Invalid %s: expected an ISO date", name)
}

// QueryUUID returns an ID in lower case, "" when absent.
func (rc *Request) QueryUUID(name string) (string, error) {
	v := rc.Query(name)
	if v == "" {
		return "", nil
	}
	if !IsUUID(v) {
		return "", Invalid("Invalid %s: expected a UUID", name)
	}
	return strings.ToLower(v), nil
}

// View calls f with this node's state in the requested read mode, at or after what this
// request has written.
func (rc *Request) View(f func(*ledger.Tx) error) error {
	at := rc.Read
	at.AtLeast = max(at.AtLeast, rc.Index, rc.asOf)
	if rc.asOf > 0 && at.Mode == ledger.ReadStrong {
		at.Mode = ledger.ReadDefault
	}
	if rc.Submits > 0 && at.Mode == ledger.ReadStale {
		at.Mode = ledger.ReadDefault
	}
	if at.Mode == ledger.ReadDefault {
		rc.awaitOwn(at.AtLeast)
	}
	applied, err := rc.Server.Cfg.Node.View(rc.Context(), at, f)
	rc.Index = max(rc.Index, applied)
	return err
}

// Submit submits a command of the actor and returns its receipt; a refusal is returned as the
// error, with the receipt. payload is a payload type of the kind, or a []byte of CBOR; its
// secrets are sealed before it becomes part of the command. With an Idempotency-Key, a
// repetition returns the first outcome.
func (rc *Request) Submit(kind string, company ledger.CompanyID, payload any) (ledger.Receipt, error) {
	cmd := ledger.Command{Kind: kind, Company: company, Actor: rc.Actor, Credential: rc.Credential, Run: rc.Run}
	payload, err := rc.Sealed(company, payload)
	if err != nil {
		return ledger.Receipt{}, err
	}
	if b, ok := payload.([]byte); ok {
		cmd.Payload = b
	} else {
		cmd.Payload = ledger.Marshal(payload)
	}
	rand.Read(cmd.Salt[:])
	if err := rc.identify(&cmd); err != nil {
		return ledger.Receipt{}, err
	}
	if err := cmd.Check(); err != nil {
		return ledger.Receipt{}, err
	}
	rc.Submits++
	r, err := rc.Server.submit(rc.Context(), cmd)
	if err != nil {
		return r, err
	}
	rc.Index = max(rc.Index, r.Index)
	rc.Server.answers(r.Index)
	return r, r.Err()
}

// Do submits a command and decodes the answer of its handler.
func Do[T any](rc *Request, kind string, company ledger.CompanyID, payload any) (value T, err error) {
	r, err := rc.Submit(kind, company, payload)
	if err != nil {
		return value, err
	}
	if err := ledger.Unmarshal(r.Value, &value); err != nil {
		return value, fmt.Errorf("value of %s: %w", kind, err)
	}
	return value, nil
}

// SetHeader sets a header of the answer, also of one that is an error.
func (rc *Request) SetHeader(name, value string) { rc.W.Header().Set(name, value) }

// NewID returns a UUID (version 7) in lower case: rows created together have neighbouring
// keys, so writing and reading them touches few blocks.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// IsUUID reports whether s has the form of a UUID.
func IsUUID[S ~string](s S) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
				return false
			}
		}
	}
	return true
}

// Page cuts a list by the query's offset and limit (default def, at most most).
func Page[T any](rc *Request, all []T, def, most int) ([]T, error) {
	limit, err := rc.QueryInt("limit", def, 1, most)
	if err != nil {
		return nil, err
	}
	offset, err := rc.QueryInt("offset", 0, 0, 1<<31-1)
	if err != nil {
		return nil, err
	}
	all = all[min(offset, len(all)):]
	return slices.Clip(all[:min(limit, len(all))]), nil
}

// An Opt is a member of a body that may be absent or null: a PATCH changes what is Set, and
// clears what is Null.
type Opt[T any] struct {
	Set   bool // present, null or not
	Null  bool
	Value T
}

// Pointer returns the value, or nil when it is absent or null.
func (o Opt[T]) Pointer() *T {
	if !o.Set || o.Null {
		return nil
	}
	return &o.Value
}

// Or returns the value, or other when it is absent or null.
func (o Opt[T]) Or(other T) T {
	if !o.Set || o.Null {
		return other
	}
	return o.Value
}

// UnmarshalJSON is called for members that are present.
func (o *Opt[T]) UnmarshalJSON(b []byte) error {
	o.Set, o.Null = true, string(b) == "null"
	if o.Null {
		return nil
	}
	return json.Unmarshal(b, &o.Value)
}

// MarshalJSON writes null for absent and null; use it with omitzero.
func (o Opt[T]) MarshalJSON() ([]byte, error) { return json.Marshal(o.Pointer()) }
