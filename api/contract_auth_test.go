package api_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/kit"
)

// authPassList are the exchanges of authenticated mode that answer as recorded,
// see passing.
const authPassList = `
01-health
02-companies-unauth
03-session-unauth
04-cli-me-unauth
05-agents-me-unauth
06-plugins-unauth
07-mutate-unauth
08-bad-bearer
09-sign-up
10-sign-in-wrong
11-sign-in
12-session
13-companies-non-admin
14-csrf-no-origin
15-create-before-claim
16-bootstrap-claim
17-create-after-claim
18-health-auth
19-cli-challenge
20-cli-challenge-poll-pending
21-cli-challenge-approve
22-cli-challenge-poll-approved
23-board-key-me
24-board-key-mutate
25-invite-human-viewer
26-sign-up-bob
27-bob-foreign-company
28-bob-foreign-issue
29-bob-accept-invite
30-join-requests
31-join-approve
32-bob-read
33-bob-viewer-write
34-bob-instance-admin
35-members
36-sign-out
37-signin-ratelimit-0
38-signin-ratelimit-11
`

// An authExchange is recorded with the name of the cookie that it set.
type authExchange struct {
	apitest.Exchange
	Cookie *string `json:"setCookie"`
}

// userText are IDs of users as they were recorded.
var userText = regexp.MustCompile(`\b[A-Za-z0-9]{32}\b`)

// The story of authenticated mode told again: Ann signs up, claims the instance,
// invites Bob, and signs out.
func TestRecordedExchangesOfAuthenticatedMode(t *testing.T) {
	all := asRecorded[authExchange](t, signInsFile)
	h := apitest.NewHarnessOn(t, apitest.NewSoloAt(t, people.Authenticated, kit.ClockAt(recordedAt)))
	m := &apitest.Replay{Ids: map[string]string{}, Tokens: map[string]string{}}
	users, secrets := map[string]string{}, map[string]string{} // by what was recorded
	text := func(s string) string {
		for theirs, ours := range secrets {
			s = strings.ReplaceAll(s, theirs, ours)
		}
		return userText.ReplaceAllStringFunc(m.Text(s), func(id string) string {
			if ours, ok := users[id]; ok {
				return ours
			}
			return id
		})
	}
	cookies, board := map[string]string{}, ""
	var exact, nulls, differing, missing []string
	verdicts := map[string]string{}
	plain := make([]apitest.Exchange, len(all))
	for i, e := range all {
		plain[i] = e.Exchange
		name := e.Number + "-" + e.Name
		var headers []string
		for k, v := range e.Request {
			switch {
			case v == "<session cookie>":
				who := "ann"
				if strings.HasPrefix(e.Name, "bob-") {
					who = "bob"
				}
				v = api.SessionCookie + "=" + cookies[who]
			case strings.HasPrefix(v, "Bearer pcp_board_"):
				v = "Bearer " + board
			}
			headers = append(headers, k+": "+v)
		}
		headers = append(headers, "Host: 127.0.0.1:3913")
		body := ""
		if string(e.Body) != "null" {
			body = text(string(e.Body))
		}
		if e.Name == "signin-ratelimit-11" { // ten more came between
			for range 10 {
				h.Call(e.Method, e.Path, body, headers...)
			}
		}
		got := h.Call(e.Method, text(e.Path), body, headers...)
		var recorded, ours any
		_ = json.Unmarshal(e.Answer, &recorded)
		_ = json.Unmarshal(got.Body, &ours)
		m.Learn(recorded, ours)
		learnUsers(users, secrets, recorded, ours)
		cookie := ""
		for _, c := range (&http.Response{Header: got.Header}).Cookies() {
			cookie = c.Name
			switch {
			case c.MaxAge < 0:
			case strings.Contains(body, "bob@"):
				cookies["bob"] = c.Value
			default:
				cookies["ann"] = c.Value
			}
		}
		if o, ok := ours.(map[string]any); ok && o["boardApiToken"] != nil {
			board = o["boardApiToken"].(string)
		}
		c := comparison{m: m}
		if want := e.Cookie; want == nil && cookie != "" || want != nil && cookie != *want {
			c.diff = append(c.diff, "sets the cookie "+cookie)
		}
		switch {
		case got.Status != e.Status:
			c.diff = append(c.diff, "answered "+http.StatusText(got.Status)+" "+api.Cut(string(got.Body), 200))
		default:
			c.values("", recorded, ours)
			for _, tell := range []string{"error", "message", "code"} {
				r, _ := recorded.(map[string]any)
				if told, ok := r[tell].(string); ok && e.Status >= 400 && told != got.Field(t, tell) {
					c.diff = append(c.diff, tell+" "+got.Field(t, tell)+", recorded "+told)
				}
			}
		}
		verdicts[name] = strings.Join(append(c.diff, c.nulls...), "; ")
		switch {
		case got.Status == http.StatusNotFound && strings.Contains(string(got.Body), "API route not found"):
			missing = append(missing, name)
		case len(c.diff) > 0:
			differing = append(differing, name)
		case len(c.nulls) > 0:
			nulls = append(nulls, name)
		default:
			exact = append(exact, name)
		}
	}
	t.Logf("of %d recorded exchanges: %d exact, %d with a null more or less, %d differing, %d without a route", len(all),
		len(exact), len(nulls), len(differing), len(missing))
	for _, name := range slices.Concat(nulls, differing, missing) {
		t.Logf("differs: %s: %s", name, api.Cut(verdicts[name], 300))
	}
	writeScores(t, "http-auth", "With authentication (authenticated)", scoresOf(plain, verdicts, exact, nulls,
		differing, missing))
	known := strings.Fields(authPassList)
	for _, name := range known {
		if !slices.Contains(exact, name) {
			t.Errorf("%s no longer answers as recorded: %s", name, verdicts[name])
		}
	}
	for _, name := range exact {
		if !slices.Contains(known, name) {
			t.Logf("may join the list: %s", name)
		}
	}
}

// learnUsers pairs recorded IDs of users, and tokens that paths and bodies name
// later, with ours.
func learnUsers(users, secrets map[string]string, recorded, ours any) {
	switch r := recorded.(type) {
	case map[string]any:
		o, _ := ours.(map[string]any)
		for k, v := range r {
			theirs, _ := v.(string)
			mine, _ := o[k].(string)
			switch {
			case mine == "" || theirs == "":
			case k == "id" && userText.MatchString(theirs) && len(theirs) == 32:
				users[theirs] = mine
			case k == "token" && strings.HasPrefix(theirs, "pcp_"):
				secrets[theirs] = mine
			}
			learnUsers(users, secrets, v, o[k])
		}
	case []any:
		o, _ := ours.([]any)
		for i, v := range r {
			if i < len(o) {
				learnUsers(users, secrets, v, o[i])
			}
		}
	}
}
