package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/kit"
	"github.com/selvage-mesh/selvage/ledger"
)

// Where we answer otherwise on purpose: the status, and the error's text.
var otherwise = map[string]struct {
	status int
	text   string
}{
	"company-create-400-badjson": {400, "Malformed JSON"},
	"issue-create-404-company":   {404, "Company not found"},
	"checkout-budget-paused":     {409, "Agent is paused because its budget hard-stop was reached."},
	// A lock ends with its run, and so does what may be done under it.
	"agent-checkout-with-runid":  {409, "Issue run ownership conflict"},
	"agent-resume-budget-paused": {409, "Agent is paused because its budget hard-stop was reached."},
	"routine-webhook-fire":       {202, ""}, // signing by bearer works
}

// passing are the exchanges that answer as recorded: the same status, keys,
// types of values and error texts; those marked ~ except for nulls, which tell of
// another moment of the story. The
// test fails when one of them stops doing so, and names those that may be added.
var passing = strings.Fields(api.PassList)

// A comparison gathers where an answer differs from the recorded one: keys and
// types of values, and apart from them where only one of the two has a null.
type comparison struct {
	m           *apitest.Replay
	diff, nulls []string
}

func (c *comparison) values(at string, recorded, ours any) {
	switch {
	case recorded == nil && ours == nil:
		return
	case recorded == nil || ours == nil:
		c.nulls = append(c.nulls, fmt.Sprintf("%s is %s, recorded as %s", at, apitest.JsonType(ours),
			apitest.JsonType(recorded)))
		return
	case apitest.JsonType(recorded) != apitest.JsonType(ours):
		c.diff = append(c.diff, fmt.Sprintf("%s is %s, recorded as %s", at, apitest.JsonType(ours),
			apitest.JsonType(recorded)))
		return
	}
	switch r := recorded.(type) {
	case map[string]any:
		o := ours.(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(r)) {
			if v, ok := o[c.m.Text(k)]; ok {
				c.values(at+"."+k, r[k], v)
			} else {
				c.diff = append(c.diff, at+"."+k+" is missing")
			}
		}
	case []any:
		c.lists(at, r, ours.([]any))
	}
}

// lists compares items by their IDs as far as they have one, the first items otherwise.
func (c *comparison) lists(at string, recorded, ours []any) {
	if len(recorded) > 0 && len(ours) == 0 {
		c.diff = append(c.diff, at+" is empty")
	}
	byID := map[string]any{}
	for _, o := range ours {
		if id := idIn(o); id != "" {
			byID[id] = o
		}
	}
	matched := false
	for i, r := range recorded {
		if o, ok := byID[c.m.Text(idIn(r))]; ok {
			matched = true
			c.values(fmt.Sprintf("%s[%d]", at, i), r, o)
		}
	}
	if !matched && len(recorded) > 0 && len(ours) > 0 {
		c.values(at+"[0]", recorded[0], ours[0])
	}
}

func idIn(v any) string {
	o, _ := v.(map[string]any)
	id, _ := o["id"].(string)
	return id
}

// Before these the story waited until every run that had been asked for was
// over, or a pause of the recording shows that they were.
var restsBefore = map[string]bool{
	"issue-runs": true, "heartbeat-invoke": true,
	"heartbeat-run-get": true, "agent-wakeup": true, "issue-assigned-after-run": true, "heartbeat-run-failed-get": true,
	"heartbeat-run-timeout-get": true, "heartbeat-run-http-get": true, "agent-comment-with-runid": true,
	"approval-create-hire":    true,
	"budget-incident-resolve": true, "dashboard": true, "attention": true, "agent-terminate": true, "routine-runs": true,
}

// The runs of the agent that sleeps, as they were recorded.
const (
	sleepersRun  = "18be6bcf-591b-41ea-ba2d-ed092c036516"
	sleepersNext = "ab7bdc93-64d7-47cc-a770-e7bb35e6ef8f"
)

// exportsDiffer are the exports of the story, whose packages hold on purpose less
// than was recorded: see leaveOut, and purposes.
var exportsDiffer = map[string]bool{"export": true, "export-preview": true}

// leaveOut takes out of a recorded export what ours is meant not to have, and
// nothing else: the skills' files where they lay, the program's own among them, the
// documents that the recorded server wrote after each run, and the form of its own
// comments.
func leaveOut(recorded any) {
	e, _ := recorded.(map[string]any)
	files, _ := e["files"].(map[string]any)
	for name := range files {
		if strings.HasPrefix(name, "skills/") || strings.HasSuffix(name, "/documents/continuation-summary.md") {
			delete(files, name)
		}
	}
	m, _ := e["manifest"].(map[string]any)
	issues, _ := m["issues"].([]any)
	for _, i := range issues {
		comments, _ := i.(map[string]any)["comments"].([]any)
		for _, c := range comments {
			if c := c.(map[string]any); c["authorType"] == "system" {
				c["presentation"], c["metadata"] = nil, nil
			}
		}
	}
}

// recordedAt is when the stories begin: what they say of dates, and what was asked for of a day
// or a week, is as it was then.
var recordedAt = time.Date(2026, 11, 21, 3, 6, 12, 0, time.UTC)

// The recorded story told again, in order, to a server on one node that really
// carries out what is asked of its agents.
func TestRecordedExchanges(t *testing.T) {
	all := asRecorded[apitest.Exchange](t, exchangesFile)
	h := apitest.NewWorkingHarnessOn(t, apitest.NewSoloAt(t, "", kit.ClockAt(recordedAt)))
	h.Gate.Shut.Lock()
	m := &apitest.Replay{Ids: map[string]string{}, Tokens: map[string]string{}}
	var exact, nulls, differing, missing []string
	verdicts := map[string]string{}
	for _, e := range all {
		name := e.Number + "-" + e.Name
		switch {
		case restsBefore[e.Name]:
			h.During(h.Rest)
		case e.Name == "live-runs":
			h.During(func() {
				h.Until("the sleeper to write", func(tx *ledger.Tx) bool {
					r, ok := entity.RunByID(tx, m.Text(sleepersRun))
					return ok && r.LastOutputSeq > 0 && r.ProcessPID != nil
				})
			})
		case e.Name == "heartbeat-run-cancelled-get":
			h.Until("the children of the cancelled run to go", func(tx *ledger.Tx) bool {
				r, ok := entity.RunByID(tx, m.Text(sleepersRun))
				return ok && !r.Owed
			})
		case e.Name == "agents-list-running":
			h.During(func() {
				h.Until("the second run of the sleeper", func(tx *ledger.Tx) bool {
					r, ok := entity.RunByID(tx, m.Text(sleepersNext))
					return ok && r.Status == entity.RunRunning
				})
			})
		}
		got, sent := h.Retell(m, e)
		if !sent {
			verdicts[name] = "cannot be sent"
			missing = append(missing, name)
			continue
		}
		var recorded, ours any
		_ = json.Unmarshal(e.Answer, &recorded)
		_ = json.Unmarshal(got.Body, &ours)
		m.Learn(recorded, ours)
		if e.Name == "export" {
			m.KeepPackage(ours)
		}
		if exportsDiffer[e.Name] {
			leaveOut(recorded)
		}
		want := e.Status
		if on, ok := otherwise[e.Name]; ok {
			want, recorded = on.status, map[string]any{}
			if on.text != "" {
				recorded = map[string]any{"error": on.text}
			}
		}
		if shown, ok := recorded.(map[string]any); ok && shown["_nonJson"] != nil { // the status and the type count
			recorded, ours = e.Headers["Content-Type"], got.Header.Get("Content-Type")
			if recorded != ours {
				recorded = nil
			}
		}
		switch {
		case got.Status == http.StatusNotFound && strings.Contains(string(got.Body), "API route not found") &&
			e.Name != "unknown-api-404":
			missing = append(missing, name)
			verdicts[name] = "no such route"
		case got.Status != want:
			differing = append(differing, name)
			verdicts[name] = fmt.Sprintf("answered %d %s, recorded %d", got.Status, api.Cut(string(got.Body), 200), want)
		default:
			c := comparison{m: m}
			c.values("", recorded, ours)
			if r, ok := recorded.(map[string]any); ok && want >= 400 && len(c.diff) == 0 {
				tell := "error"
				if r["code"] != nil {
					tell = "code" // what clients branch on
				}
				if text, _ := r[tell].(string); m.Text(text) != got.Field(t, tell) {
					c.diff = append(c.diff, fmt.Sprintf("%s %q, recorded %q", tell, got.Field(t, tell), text))
				}
			}
			verdicts[name] = strings.Join(append(c.diff, c.nulls...), "; ")
			switch {
			case len(c.diff) > 0:
				differing = append(differing, name)
			case len(c.nulls) > 0:
				nulls = append(nulls, name)
			default:
				exact = append(exact, name)
			}
		}
	}
	t.Logf("of %d recorded exchanges: %d exact, %d with a null more or less, %d differing, %d without a route",
		len(all), len(exact), len(nulls), len(differing), len(missing))
	for _, name := range append(nulls, differing...) {
		t.Logf("differs: %s: %s", name, api.Cut(verdicts[name], 300))
	}
	writeScores(t, "http", "Without authentication (local_trusted)", scoresOf(all, verdicts, exact, nulls,
		differing, missing))
	known := map[string]bool{}
	for _, word := range passing {
		name, mayNull := strings.CutSuffix(word, "~")
		known[name] = true
		if !slices.Contains(exact, name) && !(mayNull && slices.Contains(nulls, name)) {
			t.Errorf("%s no longer answers as recorded: %s", name, verdicts[name])
		}
	}
	for _, name := range exact {
		if _, short, _ := strings.Cut(name, "-"); exportsDiffer[short] {
			continue // exact but for what is left out on purpose
		}
		if !known[name] || slices.Contains(passing, name+"~") {
			t.Logf("may join the list: %s", name)
		}
	}
	for _, name := range nulls {
		if !known[name] {
			t.Logf("may join the list: %s~", name)
		}
	}
}
