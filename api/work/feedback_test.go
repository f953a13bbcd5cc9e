package work_test

import (
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestFeedbackIsHandedOnOnlyWithConsent(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	in := "/api/companies/" + string(of)
	issue := "/api/issues/" + h.IssueOf(of, "Write it")
	comment := h.Call("POST", issue+"/comments", `{"body":"What I found"}`).Want(t, 201, "").Field(t, "id")
	h.Call("POST", issue+"/feedback-votes",
		`{"targetType":"issue_comment","targetId":"`+comment+`","vote":"down","reason":"wrong","allowSharing":true}`).
		Want(t, 201, `"allowSharing":true`)
	h.Call("GET", issue+"/feedback-traces", "").Want(t, 200, "[]")
	h.Call("GET", in, "").Want(t, 200, `"feedbackDataSharingEnabled":false,"feedbackDataSharingConsentAt":null`)
	h.Call("PATCH", in, `{"feedbackDataSharingEnabled":true,"feedbackDataSharingTermsVersion":"v1"}`).
		Want(t, 200, `"feedbackDataSharingEnabled":true`).
		Want(t, 200, `"feedbackDataSharingConsentByUserId":"`+api.LocalBoard+`","feedbackDataSharingTermsVersion":"v1"`)
	trace := h.Call("GET", issue+"/feedback-traces", "").Want(t, 200, `"status":"local_only"`).
		Decode(t).([]any)[0].(map[string]any)["traceId"].(string)
	h.Call("GET", in+"/feedback-traces", "").Want(t, 200, trace)
	h.Call("GET", "/api/feedback-traces/"+trace, "").Want(t, 200, `"vote":"down"`)
	h.Call("GET", "/api/feedback-traces/"+trace+"/bundle", "").Want(t, 200, `"targetText":"What I found"`)
	h.Call("GET", "/api/feedback-traces/"+api.NewID(), "").Want(t, 404, "Feedback trace not found")
	h.Call("PATCH", in, `{"feedbackDataSharingEnabled":false}`).Want(t, 200, `"feedbackDataSharingConsentAt":null`)
	h.Call("GET", "/api/feedback-traces/"+trace, "").Want(t, 404, "Feedback trace not found")

	h.Call("GET", "/api/instance/settings", "").Want(t, 200, `"defaultEnvironmentId":null`)
	h.Call("PATCH", "/api/instance/settings", `{"defaultEnvironmentId":"`+api.NewID()+`"}`).
		Want(t, 422, "No environment of the whole instance has this ID")
	h.Call("PATCH", "/api/instance/settings", `{"general":{}}`).Want(t, 400, `"keys":["general"]`)
	h.Call("PATCH", "/api/instance/settings", `{"defaultEnvironmentId":null}`).Want(t, 200, `"defaultEnvironmentId":null`)
}
