package core

import (
	"fmt"

	"github.com/selvage-mesh/selvage/ledger"
)

// RefuseCode returns a refusal with a code by which clients tell it from others of the same
// status.
func RefuseCode(status ledger.Code, code string, details []byte, format string, args ...any) error {
	return &ledger.Refusal{Code: status, ErrCode: code, Detail: details, Message: fmt.Sprintf(format, args...)}
}

// Illegal returns the 409 for a transition that the status of a row does not allow. Its
// details name the row (key is "agentId" and the like), its status, the wanted status, and
// the allowed ones, as an empty list when there are none.
func Illegal[S ~string](key, id string, present, wanted S, allowed []S, format string, args ...any) error {
	return ledger.Refuse(ledger.Conflict, StepDetail(key, id, present, wanted, allowed), format, args...)
}

func StepDetail[S ~string](key, id string, present, wanted S, allowed []S) []byte {
	names := make([]string, len(allowed))
	for n, s := range allowed {
		names[n] = string(s)
	}
	return Object{}.Str(key, id).Str("status", string(present)).Str("requestedStatus", string(wanted)).
		List("allowedStatuses", names).Close()
}

// StatusDetail returns the details of a refusal that is caused by the status of a row
// although no transition was requested.
func StatusDetail[S ~string](key, id string, present S) []byte {
	return Object{}.Str(key, id).Str("status", string(present)).Close()
}
