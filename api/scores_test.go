package api_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
)

// scoreFile is made from the replays by `make contract`, a part for each set of
// recordings between marks of its own.
const scoreFile = "../docs/contract.md"

var writeContract = flag.Bool("contract.write", false, "write "+scoreFile+" from the replays")

// A score is how one exchange is answered.
type score struct {
	name     string // 097-issue-checkout
	endpoint string // POST /api/issues/{}/checkout
	how      scoreKind
	why      string // what differs
}

type scoreKind int

const (
	isExact scoreKind = iota
	onPurpose
	moment // a null more or less: the replay tells it at another moment
	differs
	isMissing
)

// purposes say why an exchange is answered otherwise, or is not replayed. What
// is not here has no excuse yet.
var purposes = map[string]string{
	"company-create-400-badjson": "Malformed JSON is a 400, not a 500.",
	"issue-create-404-company":   "An unknown company is a 404, not a 500.",
	"checkout-budget-paused": "A paused agent or one over its budget takes no work: 409, as " +
		"heartbeat/invoke answers.",
	"agent-resume-budget-paused": "An agent over its limit resumes when its budget is raised: 409 naming the limit.",
	"agent-checkout-with-runid":  "A lock ends with its run: a checkout under a run that is over is a 409.",
	"issue-child-create":         "A child takes the billing code of its parent.",
	"issue-delete":               "A child takes the billing code of its parent.",
	"routine-webhook-fire":       "A webhook signed by bearer works, where the recorded server refuses it.",
	"issue-after-checkout":       "Which run had ended by then, and was asked again, depends on how fast runs are.",
	"issue-release":              "No run has started on the issue by then: a checkout by the board wakes nobody here.",
	"issue-force-release":        "No run has started on the issue by then: a checkout by the board wakes nobody here.",
	"issue-assigned-after-run": "The recorded server tries for 2.5 minutes longer before it blocks what its " +
		"agent leaves undecided.",
	"heartbeat-run-cancelled-get": "The log of a cancelled run is closed too, with its length and hash.",
	"heartbeat-run-http-get":      "A run that goes by HTTP has no scratch folder.",
	"budgets-overview-2":          "Follows from 211: the agent stays paused until its budget is raised.",
	"export-preview": "Skills lie at skills/<slug> (specification §21): the recorded path holds " +
		"the company's prefix, which an import may change, and a package is to come back byte-equal; the " +
		"program's own skills, which the recorded server can not import again, do not travel. Documents are what " +
		"people and agents write: no run leaves one of its own.",
	"export": "Documents are what people and agents write, so that no run leaves a " +
		"continuation summary, and comments of the program itself have no form of their own.",
	"import-preview": "Comments of the recorded server's own have a form that ours have not; the " +
		"sidecar, which the recording cuts, is that of our export.",
	"import-existing-skip-preview": "Comments of the recorded server's own have a form that ours have not; the " +
		"sidecar, which the recording cuts, is that of our export.",
}

var pathValue = regexp.MustCompile(`/(?:[0-9a-f]{8}-[0-9a-f-]{27}|[A-Z]{2,6}-\d+|not-a-uuid)`)

func scoresOf(all []apitest.Exchange, verdicts map[string]string, exact, nulls, differing, missing []string) []score {
	var out []score
	for _, e := range all {
		name := e.Number + "-" + e.Name
		path, _, _ := strings.Cut(e.Path, "?")
		s := score{name: name, endpoint: e.Method + " " + pathValue.ReplaceAllString(path, "/{}"), why: verdicts[name]}
		_, meant := otherwise[e.Name]
		meant = meant || exportsDiffer[e.Name]
		switch {
		case slices.Contains(exact, name) && meant:
			s.how = onPurpose
		case slices.Contains(exact, name):
			s.how = isExact
		case slices.Contains(nulls, name):
			s.how = moment
		case slices.Contains(differing, name):
			s.how = differs
		case slices.Contains(missing, name):
			s.how = isMissing
		}
		out = append(out, s)
	}
	return out
}

// writeScores prints the scoreboard of a set of recordings, fails when an
// exchange that the file lists as exact is so no more, and with -contract.write
// writes its part of the file anew.
func writeScores(t *testing.T, part, title string, scores []score) {
	t.Helper()
	board := boardOf(part, title, scores)
	first, _, _ := strings.Cut(board[strings.Index(board, "| of"):], "\n\n")
	t.Logf("%s\n%s", title, first)
	old, err := os.ReadFile(scoreFile)
	if err != nil && !*writeContract {
		t.Fatalf("%v (make contract writes it)", err)
	}
	begin, end := "<!-- begin "+part+" -->\n", "<!-- end "+part+" -->\n"
	before, rest, found := strings.Cut(string(old), begin)
	within, after, _ := strings.Cut(rest, end)
	if *writeContract {
		if !found {
			before, after = string(old), ""
			if before == "" {
				before = scoreIntro
			}
		}
		if err := os.WriteFile(scoreFile, []byte(before+begin+board+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	_, listed, _ := strings.Cut(within, "### Exact\n")
	worse := 0
	for _, s := range scores {
		if s.how != isExact && s.how != onPurpose && slices.Contains(strings.Fields(listed), s.name) {
			t.Errorf("%s lists %s as exact; it no longer is: %s", scoreFile, s.name, s.why)
			worse++
		}
	}
	if within != board && worse == 0 {
		t.Logf("%s is out of date: make contract", scoreFile)
	}
}

const scoreIntro = `# How recorded exchanges are answered

Made by ` + "`make contract`" + ` from a replay of every recorded exchange against a fresh node; not written by hand.
*Exact* means the same status, the same keys and types of values, the same error text. *Another moment* means ` +
	`that only a
null stands where a value was recorded, or the other way round: the replay tells it at another moment. *On purpose* are
answers that are meant to differ.

`

func boardOf(part, title string, scores []score) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", title)
	count := func(of []score, how scoreKind) (n int) {
		for _, s := range of {
			if s.how == how {
				n++
			}
		}
		return n
	}
	ends := map[string][]score{}
	for _, s := range scores {
		ends[s.endpoint] = append(ends[s.endpoint], s)
	}
	var whole, partly, none int
	for _, of := range ends {
		switch good := count(of, isExact) + count(of, onPurpose); {
		case good == len(of):
			whole++
		case count(of, isMissing) == len(of):
			none++
		default:
			partly++
		}
	}
	fmt.Fprintf(&b, "| of | exact | on purpose | another moment | differing | missing |\n|---|---|---|---|---|---|\n")
	fmt.Fprintf(&b, "| %d exchanges | %d | %d | %d | %d | %d |\n", len(scores), count(scores, isExact),
		count(scores, onPurpose),
		count(scores, moment), count(scores, differs), count(scores, isMissing))
	fmt.Fprintf(&b, "| %d endpoints | %d | | | %d | %d |\n\n", len(ends), whole, partly, none)
	fmt.Fprintf(&b, "### Not exact\n\n| exchange | request | answer | reason |\n|---|---|---|---|\n")
	words := map[scoreKind]string{onPurpose: "on purpose", moment: "another moment", differs: "differs",
		isMissing: "missing"}
	for _, s := range scores {
		if s.how == isExact {
			continue
		}
		_, plain, _ := strings.Cut(s.name, "-")
		why := cmp.Or(purposes[plain], tidyReason(s))
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", s.name, s.endpoint, words[s.how], why)
	}
	fmt.Fprintf(&b, "\n### Exact\n\n")
	for _, end := range slices.Sorted(maps.Keys(ends)) {
		var names []string
		for _, s := range ends[end] {
			if s.how == isExact || s.how == onPurpose {
				names = append(names, s.name)
			}
		}
		if len(names) > 0 {
			fmt.Fprintf(&b, "- `%s`: %s\n", end, strings.Join(names, " "))
		}
	}
	b.WriteString("\n")
	return b.String()
}

// tidyReason makes a verdict fit for a table: without the IDs of one replay.
func tidyReason(s score) string {
	if s.how == isMissing && s.why == "no such route" {
		return "not built yet"
	}
	text := apitest.UuidText.ReplaceAllString(s.why, "…")
	text, _, _ = strings.Cut(text, "{")
	if parts := strings.Split(text, "; "); len(parts) > 3 {
		text = strings.Join(parts[:3], "; ") + fmt.Sprintf("; and %d more", len(parts)-3)
	}
	return strings.ReplaceAll(api.Cut(strings.TrimSpace(text), 240), "|", "\\|")
}
