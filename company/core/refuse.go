package core

import (
	"fmt"

	"github.com/selvage-mesh/selvage/ledger"
)

// RefuseCode is a refusal with a code by which a client can tell it from others
// of its status.
func RefuseCode(status ledger.Code, code string, details []byte, format string, args ...any) error {
	return &ledger.Refusal{Code: status, ErrCode: code, Detail: details, Message: fmt.Sprintf(format, args...)}
}

// Illegal is the 409 for a step that the present state of a row does not allow. Its
// details name the row (key is "agentId" and the like), its status, the status that
// was wanted, and those that may follow the present one: none is an empty list.
func Illegal[S ~string](key, id string, present, wanted S, allowed []S, format string, args ...any) error {
	return ledger.Refuse(ledger.Conflict, StepDetail(key, id, present, wanted, allowed), format, args...)
}

func StepDetail[S ~string](key, id string, present, wanted S, allowed []S) []byte {
	names := make([]string, len(allowed))
	for n, s := range allowed {
		names[n] = string(s)
	}
	return Object{}.Str(key, id).Str("status", string(present)).Str("requestedStatus", string(wanted)).List("allowedStatuses", names).Close()
}

// StatusDetail is that of a refusal that has its reason in the state of a row, where
// no change of that state was asked for.
func StatusDetail[S ~string](key, id string, present S) []byte {
	return Object{}.Str(key, id).Str("status", string(present)).Close()
}
