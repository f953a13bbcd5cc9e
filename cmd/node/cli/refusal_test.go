package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/client"
)

// An approval whose command is refused: the error says what was refused, by which rule, and which approval stays open,
// and does not print the approval. Details that name an approval in another way are printed as they are.
func TestARefusedApprovalSaysWhatStaysOpen(t *testing.T) {
	t.Parallel()
	const approval = `{"id":"0199c0de-1","type":"governed_act","status":"revision_requested","companyId":"c",` +
		`"payload":{"action":"issue.delete","reason":"secret plan"}}`
	for _, c := range []struct{ details, want string }{
		{`{"approval":` + approval + `,"details":{"rule":"T-2","branch":"judicial"}}`,
			"Rule T-2 denies it (HTTP 403): branch judicial; rule T-2; nothing was carried out, and approval 0199c0de-1 " +
				"(governed_act issue.delete) stays revision requested: approve it again once this no longer holds, or " +
				"end it with selvage approval reject 0199c0de-1"},
		{`{"approval":` + approval + `}`,
			"Rule T-2 denies it (HTTP 403); nothing was carried out, and approval 0199c0de-1 (governed_act issue.delete) " +
				"stays revision requested: approve it again once this no longer holds, or end it with selvage approval " +
				"reject 0199c0de-1"},
		{`{"approvalId":"0199c0de-1"}`, "Rule T-2 denies it (HTTP 403): approval 0199c0de-1"},
		{`{"approval":"0199c0de-1"}`, "Rule T-2 denies it (HTTP 403): approval 0199c0de-1"},
		{``, "Rule T-2 denies it (HTTP 403)"},
	} {
		err := refusedBy(&client.Error{Status: 403, Message: "Rule T-2 denies it", Details: json.RawMessage(c.details)})
		if got := err.Error(); got != c.want || strings.Contains(got, "secret plan") {
			t.Errorf("%s:\n got %s\nwant %s", c.details, got, c.want)
		}
	}
}
