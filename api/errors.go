package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// StatusOf is the only table from refusals to HTTP statuses.
var StatusOf = map[ledger.Code]int{
	ledger.Invalid:       http.StatusBadRequest,
	ledger.Unauthorized:  http.StatusUnauthorized,
	ledger.Forbidden:     http.StatusForbidden,
	ledger.NotFound:      http.StatusNotFound,
	ledger.Conflict:      http.StatusConflict,
	ledger.TooLarge:      http.StatusRequestEntityTooLarge,
	ledger.Unprocessable: http.StatusUnprocessableEntity,
	ledger.TooMany:       http.StatusTooManyRequests,
	ledger.Unavailable:   http.StatusServiceUnavailable,
	ledger.Internal:      http.StatusInternalServerError,
}

// internalError is the text of every failure in answers.
const internalError = "Internal server error"

// An ErrorBody is the contract's form of an error: {"error", "code"?, "details"?}.
type ErrorBody struct {
	Error   string          `json:"error"`
	Code    string          `json:"code,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
}

// A momentary failure may be over when the caller retries.
type momentary struct {
	Err        error
	Code, text string
}

// notNow are failures of lower rooms after which a caller can retry.
var notNow = []momentary{
	// First: the reason must not hide that the command may have been executed.
	{consensus.ErrOutcomeUnknown, "outcome_unknown",
		"It is not known whether this was done; repeat it with the same Idempotency-Key, or look"},
	{consensus.ErrNoLeader, "no_leader", "The mesh has no leader now; try again"},
	{consensus.ErrBusy, "busy", "This node is busy; try again"},
	{consensus.ErrClosed, "closing", "This node is closing; use another one"},
	{ledger.ErrClosed, "closing", "This node is closing; use another one"},
	{ledger.ErrUpgrade, "upgrade_needed", "This node is older than the mesh; upgrade it, use another one"},
	{blob.ErrFull, "disk_full", "This node has no room for files; free some space, use another node"},
	{blob.ErrTooFew, "too_few_copies", "Too few nodes could take the file; try again"},
	{blob.ErrMismatch, "content_damaged",
		"The copy of this content on this node is damaged, and no node that answers has a good one; start the nodes that " +
			"are away, or put the same file again, or restore a backup"},
	{blob.ErrMissing, "content_unavailable", "No node that answers has this content; try again"},
	{store.ErrDiskFull, "disk_full", "The disk of this node is full; free some space, use another node"},
	{context.DeadlineExceeded, "timeout",
		"No answer in time; the request may still take effect. Repeat it with the same Idempotency-Key"},
	{context.Canceled, "timeout", "No answer in time; the request may still take effect. Repeat it with the same " +
		"Idempotency-Key"},
}

// damaged is the answer when this node's disk is damaged. The node stops serving and rebuilds
// its state from its peers.
var damaged = ErrorBody{Error: "A file of this node's store is damaged; the node rebuilds it from its peers. Use " +
	"another node, or try again", Code: "store_damaged"}

// AnswerOf returns the answer for err. failure reports that err is a failure: it is logged,
// and the caller does not see it.
func AnswerOf(err error) (status int, body ErrorBody, failure bool) {
	if r, ok := errors.AsType[*ledger.Refusal](err); ok {
		status, known := StatusOf[r.Code]
		if !known || r.Code == ledger.Internal {
			return http.StatusInternalServerError, ErrorBody{Error: internalError}, true
		}
		return status, bodyOf(r), false
	}
	if _, ok := errors.AsType[*store.Damage](err); ok {
		return http.StatusServiceUnavailable, damaged, true
	}
	for _, n := range notNow {
		if errors.Is(err, n.Err) {
			return http.StatusServiceUnavailable, ErrorBody{Error: n.text, Code: n.Code}, true
		}
	}
	return http.StatusInternalServerError, ErrorBody{Error: internalError}, true
}

// tellQuorum adds to an answer that there is no quorum: which nodes this one hears, and what
// that means for the request. The code stays that of an unknown outcome if the command may
// have left this node.
func (s *Server) tellQuorum(body *ErrorBody, unknown bool) {
	q := Quorum{}
	if s.Cfg.Quorum != nil {
		q = s.Cfg.Quorum()
	}
	node := cmp.Or(s.Cfg.Name, "this node")
	why := "No quorum: " + q.text(node)
	if q.Enough {
		why = fmt.Sprintf("No leader for %s: %s", q.Leaderless.Round(time.Second), q.text(node))
	}
	body.Details = detailOf(struct {
		Node   string   `json:"node"`
		Heard  []string `json:"heard"`
		Silent []string `json:"silent"`
		Enough bool     `json:"enough"` // those that are heard can elect a leader: it is a matter of seconds
		Since  float64  `json:"leaderlessSeconds"`
		Done   string   `json:"outcome"` // "none" or "unknown"
	}{node, append([]string{}, q.Heard...), append([]string{}, q.Silent...), q.Enough,
		q.Leaderless.Round(100 * time.Millisecond).Seconds(), map[bool]string{false: "none", true: "unknown"}[unknown]})
	if unknown {
		body.Error = why + ". It is not known whether this was done; repeat it with the same Idempotency-Key, or look"
		return
	}
	body.Code, body.Error = "no_quorum", why+". Nothing was changed; try again"
}

// bodyOf converts a refusal into the contract's form, which lifts details.code.
func bodyOf(r *ledger.Refusal) ErrorBody {
	body := ErrorBody{Error: r.Message, Code: r.ErrCode}
	if len(r.Detail) > 0 && json.Valid(r.Detail) {
		body.Details = r.Detail
	}
	if body.Code == "" && len(body.Details) > 0 && body.Details[0] == '{' {
		var d struct {
			Code any `json:"code"`
		}
		if json.Unmarshal(body.Details, &d) == nil {
			body.Code, _ = d.Code.(string)
		}
	}
	return body
}

// Invalid returns a 400.
func Invalid(format string, args ...any) error {
	return ledger.Refuse(ledger.Invalid, nil, format, args...)
}

// NotFound returns a 404 with a text such as "Issue not found". Rows of other companies get
// the same answer, so that nobody learns that they exist.
func NotFound(text string) error { return &ledger.Refusal{Code: ledger.NotFound, Message: text} }

// Forbidden returns a 403.
func Forbidden(text string) error { return &ledger.Refusal{Code: ledger.Forbidden, Message: text} }

// Unauthorized returns a 401.
func Unauthorized(text string) error {
	return &ledger.Refusal{Code: ledger.Unauthorized, Message: text}
}

// Unprocessable returns a 422 with details (nil: none).
func Unprocessable(text string, details any) error {
	return &ledger.Refusal{Code: ledger.Unprocessable, Message: text, Detail: detailOf(details)}
}

// Conflict returns a 409 with details (nil: none).
func Conflict(text string, details any) error {
	return &ledger.Refusal{Code: ledger.Conflict, Message: text, Detail: detailOf(details)}
}

// Unavailable returns a 503; the answer has Retry-After.
func Unavailable(text string) error {
	return &ledger.Refusal{Code: ledger.Unavailable, Message: text}
}

func detailOf(v any) []byte {
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}

// An Issue is one problem of a body, in the form that the contract's clients read.
type Issue struct {
	Origin    string   `json:"origin,omitempty"`
	Expected  string   `json:"expected,omitempty"`
	Code      string   `json:"code"`
	Format    string   `json:"format,omitempty"`
	Pattern   string   `json:"pattern,omitempty"`
	Minimum   *float64 `json:"minimum,omitempty"`
	Maximum   *float64 `json:"maximum,omitempty"`
	Inclusive *bool    `json:"inclusive,omitempty"`
	Values    []any    `json:"values,omitempty"`
	Keys      []string `json:"keys,omitempty"`
	Path      []any    `json:"path"` // never nil
	Message   string   `json:"message"`
}

// Custom returns the issue of a rule that tags can not express, at a path of member names and
// indexes.
func Custom(message string, path ...any) Issue {
	if path == nil {
		path = []any{}
	}
	return Issue{Code: "custom", Path: path, Message: message}
}

// ValidationError returns the 400 with all issues of a body.
func ValidationError(issues ...Issue) error {
	for i := range issues {
		if issues[i].Path == nil {
			issues[i].Path = []any{}
		}
	}
	return &ledger.Refusal{Code: ledger.Invalid, Message: "Validation error", Detail: detailOf(issues)}
}
