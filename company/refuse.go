package company

import (
	"fmt"

	"github.com/selvage-mesh/selvage/ledger"
)

// refuseCode is a refusal with a code by which a client can tell it from others
// of its status.
func refuseCode(status ledger.Code, code string, details []byte, format string, args ...any) error {
	return &ledger.Refusal{Code: status, ErrCode: code, Detail: details, Message: fmt.Sprintf(format, args...)}
}

// illegal is the 409 for a step that the present state of a row does not allow. Its
// details name the row (key is "agentId" and the like), its status, the status that
// was wanted, and those that may follow the present one: none is an empty list.
func illegal[S ~string](key, id string, present, wanted S, allowed []S, format string, args ...any) error {
	return ledger.Refuse(ledger.Conflict, stepDetail(key, id, present, wanted, allowed), format, args...)
}

func stepDetail[S ~string](key, id string, present, wanted S, allowed []S) []byte {
	names := make([]string, len(allowed))
	for n, s := range allowed {
		names[n] = string(s)
	}
	return jsonObject{}.str(key, id).str("status", string(present)).str("requestedStatus", string(wanted)).list("allowedStatuses", names).close()
}

// statusDetail is that of a refusal that has its reason in the state of a row, where
// no change of that state was asked for.
func statusDetail[S ~string](key, id string, present S) []byte {
	return jsonObject{}.str(key, id).str("status", string(present)).close()
}
