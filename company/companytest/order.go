package companytest

import "errors"

import "testing"
import "github.com/selvage-mesh/selvage/ledger"

// WantCode looks for a refusal with a code that clients branch on, "" for any.
func WantCode(t *testing.T, err error, status ledger.Code, code string) {
	t.Helper()
	if r, ok := errors.AsType[*ledger.Refusal](err); !ok || r.Code != status || code != "" && r.ErrCode != code {
		t.Errorf("got %v, want %s %s", err, status, code)
	}
}
