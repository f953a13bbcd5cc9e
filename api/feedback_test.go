package api

import "testing"

func TestFeedbackIsHandedOnOnlyWithConsent(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := h.company("Acme")
	in := "/api/companies/" + of
	issue := "/api/issues/" + h.issueOf(of, "Write it")
	comment := h.call("POST", issue+"/comments", `{"body":"What I found"}`).want(t, 201, "").field(t, "id")
	h.call("POST", issue+"/feedback-votes", `{"targetType":"issue_comment","targetId":"`+comment+`","vote":"down","reason":"wrong","allowSharing":true}`).want(t, 201, `"allowSharing":true`)
	h.call("GET", issue+"/feedback-traces", "").want(t, 200, "[]")
	h.call("GET", in, "").want(t, 200, `"feedbackDataSharingEnabled":false,"feedbackDataSharingConsentAt":null`)
	h.call("PATCH", in, `{"feedbackDataSharingEnabled":true,"feedbackDataSharingTermsVersion":"v1"}`).want(t, 200, `"feedbackDataSharingEnabled":true`).
		want(t, 200, `"feedbackDataSharingConsentByUserId":"`+LocalBoard+`","feedbackDataSharingTermsVersion":"v1"`)
	trace := h.call("GET", issue+"/feedback-traces", "").want(t, 200, `"status":"local_only"`).decode(t).([]any)[0].(map[string]any)["traceId"].(string)
	h.call("GET", in+"/feedback-traces", "").want(t, 200, trace)
	h.call("GET", "/api/feedback-traces/"+trace, "").want(t, 200, `"vote":"down"`)
	h.call("GET", "/api/feedback-traces/"+trace+"/bundle", "").want(t, 200, `"targetText":"What I found"`)
	h.call("GET", "/api/feedback-traces/"+NewID(), "").want(t, 404, "Feedback trace not found")
	h.call("PATCH", in, `{"feedbackDataSharingEnabled":false}`).want(t, 200, `"feedbackDataSharingConsentAt":null`)
	h.call("GET", "/api/feedback-traces/"+trace, "").want(t, 404, "")

	h.call("GET", "/api/instance/settings", "").want(t, 200, `"defaultEnvironmentId":null`)
	h.call("PATCH", "/api/instance/settings", `{"defaultEnvironmentId":"`+NewID()+`"}`).want(t, 422, "")
	h.call("PATCH", "/api/instance/settings", `{"general":{}}`).want(t, 400, "")
	h.call("PATCH", "/api/instance/settings", `{"defaultEnvironmentId":null}`).want(t, 200, `"defaultEnvironmentId":null`)
}
