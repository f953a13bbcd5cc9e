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
