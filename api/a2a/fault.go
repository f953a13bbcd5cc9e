package a2a

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/ledger"
)

// A fault is an error of the protocol, with its forms in both bindings.
type fault struct {
	code   int    // of JSON-RPC
	status int    // of HTTP
	name   string // of the status
	reason string
	text   string
}

func (f *fault) Error() string { return f.text }

// as returns the fault with a text.
func (f fault) as(format string, args ...any) error {
	f.text = fmt.Sprintf(format, args...)
	return &f
}

var (
	badJSON       = fault{code: -32700, status: http.StatusBadRequest, name: "INVALID_ARGUMENT", reason: "PARSE_ERROR"}
	badRequest    = fault{code: -32600, status: http.StatusBadRequest, name: "INVALID_ARGUMENT", reason: "INVALID_REQUEST"}
	noMethod      = fault{code: -32601, status: http.StatusNotFound, name: "NOT_FOUND", reason: "METHOD_NOT_FOUND"}
	badParams     = fault{code: -32602, status: http.StatusBadRequest, name: "INVALID_ARGUMENT", reason: "INVALID_PARAMS"}
	noTask        = fault{code: -32001, status: http.StatusNotFound, name: "NOT_FOUND", reason: "TASK_NOT_FOUND"}
	notCancelable = fault{code: -32002, status: http.StatusBadRequest, name: "FAILED_PRECONDITION",
		reason: "TASK_NOT_CANCELABLE"}
	unsupported = fault{code: -32004, status: http.StatusBadRequest, name: "FAILED_PRECONDITION",
		reason: "UNSUPPORTED_OPERATION"}
	badType = fault{code: -32005, status: http.StatusBadRequest, name: "INVALID_ARGUMENT",
		reason: "CONTENT_TYPE_NOT_SUPPORTED"}
	badVersion = fault{code: -32009, status: http.StatusBadRequest, name: "FAILED_PRECONDITION",
		reason: "VERSION_NOT_SUPPORTED"}
)

// faultOf returns the fault for an error, nil for one that is answered as everywhere else: with a status of HTTP.
func faultOf(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	no, ok := errors.AsType[*ledger.Refusal](err)
	if !ok {
		return nil
	}
	switch no.Code {
	case ledger.NotFound:
		f := noTask
		if f.text = no.Message; no.Message == "Issue not found" {
			f.text = "Task not found"
		}
		return &f
	case ledger.Invalid, ledger.Unprocessable, ledger.TooLarge, ledger.Conflict:
		f := badParams
		f.text = no.Message
		if len(no.Detail) > 0 && no.Code == ledger.Invalid {
			f.text += ": " + api.Cut(string(no.Detail), 1000)
		}
		return &f
	}
	return nil
}

// refused returns the error of a call within the process that was refused.
func refused(in api.Inner, said struct {
	Error string `json:"error"`
}) error {
	for code, status := range api.StatusOf {
		if status == in.Status {
			return &ledger.Refusal{Code: code, Message: said.Error}
		}
	}
	return fmt.Errorf("a2a: a route answered %d", in.Status)
}

type (
	errorInfo struct {
		Type     string            `json:"@type"`
		Reason   string            `json:"reason"`
		Domain   string            `json:"domain"`
		Metadata map[string]string `json:"metadata,omitempty"`
	}
	rpcError struct {
		Code    int         `json:"code"`
		Message string      `json:"message"`
		Data    []errorInfo `json:"data,omitempty"`
	}
	restError struct {
		Error struct {
			Code    int         `json:"code"`
			Status  string      `json:"status"`
			Message string      `json:"message"`
			Details []errorInfo `json:"details"`
		} `json:"error"`
	}
)

func (f *fault) info() []errorInfo {
	return []errorInfo{{Type: "type.googleapis.com/google.rpc.ErrorInfo", Reason: f.reason, Domain: "a2a-protocol.org"}}
}

func (f *fault) rpc() *rpcError { return &rpcError{f.code, f.text, f.info()} }

func (f *fault) rest() (out restError) {
	out.Error.Code, out.Error.Status, out.Error.Message, out.Error.Details = f.status, f.name, f.text, f.info()
	return out
}
