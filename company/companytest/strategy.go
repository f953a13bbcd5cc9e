package companytest

import (
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// Held is the refusal of what the strategy gate holds back.
func Held(t testing.TB, what string, err error) {
	t.Helper()
	if r := Refused(t, err); r.ErrCode != "ceo_strategy_required" || r.Code != ledger.Conflict {
		t.Errorf("%s: %v", what, err)
	}
}
