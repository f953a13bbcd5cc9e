package companytest

import (
	"errors"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// WantCode fails unless err is a refusal with this code and the one that clients branch on.
func WantCode(t *testing.T, err error, status ledger.Code, code string) {
	t.Helper()
	if r, ok := errors.AsType[*ledger.Refusal](err); !ok || r.Code != status || code == "" || r.ErrCode != code {
		t.Errorf("got %v, want %s %s", err, status, code)
	}
}
