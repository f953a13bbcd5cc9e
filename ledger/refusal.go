package ledger

import "fmt"

// A Code classifies a refusal. The api room maps codes to HTTP statuses in
// exactly one table. Persisted: do not rename.
type Code string

const (
	Invalid       Code = "invalid"       // 400: the input is malformed
	Unauthorized  Code = "unauthorized"  // 401: no valid credential
	Forbidden     Code = "forbidden"     // 403: the actor may not do this
	NotFound      Code = "not_found"     // 404
	Conflict      Code = "conflict"      // 409: the present state does not allow it
	TooLarge      Code = "too_large"     // 413
	Unprocessable Code = "unprocessable" // 422: well formed, but breaks a rule
	TooMany       Code = "too_many"      // 429
	Unavailable   Code = "unavailable"   // 503: not now; try again
	Internal      Code = "internal"      // 500: a handler panicked; rolled back
)

// A Refusal is a reasoned no from the rules: part of the outcome, equal on
// every node, not a failure. Detail is JSON (or nil) and goes into the error
// body's "details" as it is; ErrCode, when set, is the body's "code".
type Refusal struct {
	Code    Code   `cbor:"1,keyasint" json:"-"`
	Message string `cbor:"2,keyasint" json:"error"`
	Detail  []byte `cbor:"3,keyasint,omitempty" json:"-"`
	ErrCode string `cbor:"4,keyasint,omitempty" json:"code,omitempty"`
}

func (r *Refusal) Error() string { return r.Message }

// Refuse returns a [Refusal]. detail is ready JSON or nil.
func Refuse(code Code, detail []byte, format string, args ...any) error {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...), Detail: detail}
}
