//go:build measure

package clients

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/testnet/testkit"
)

const (
	// fuzzSeconds is for how long requests are made up; SELVAGE_FUZZ says otherwise.
	fuzzSeconds = "120"
	// fuzzSeed is what they are made from; SELVAGE_FUZZ_SEED says otherwise.
	fuzzSeed = "17"
	// fuzzExamples bounds the requests of an operation in one pass over all.
	fuzzExamples = "20"
	// fuzzDone is how many answers of 200 and of 400 there are at least, when something was tried.
	fuzzDone = 100
	// fuzzOutside matches the paths that end the node, or whose answer does not end.
	fuzzOutside = `/mesh/(auth|leave|stop)$|/(revoke|cordon|drain|events|stream)$|/events/`
)

// fuzzConfig has the statuses by which what the description forbids may be answered: 413 is that of a
// body that is too large before it is a list that is too long. A node that is flooded says 503.
const fuzzConfig = `[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 503]
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429, 503]
`

// Requests that schemathesis makes up from the description, right ones and wrong ones: none makes
// a node fail, wrong ones are refused, and what is answered is as it is described.
func TestNothingThatIsMadeUpMakesANodeFail(t *testing.T) {
	st, err := filepath.Abs("../../.cache/schemathesis/v/bin/st")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(st); err != nil {
		t.Skip("schemathesis is not installed; `make soak` does it (needs python3, pip and a registry)")
	}
	seconds, seed := cmp.Or(os.Getenv("SELVAGE_FUZZ"), fuzzSeconds), cmp.Or(os.Getenv("SELVAGE_FUZZ_SEED"), fuzzSeed)
	if _, err := strconv.Atoi(seconds); err != nil {
		t.Fatalf("SELVAGE_FUZZ is %q: give a number of seconds", seconds)
	}
	t.Logf("SELVAGE_FUZZ=%s SELVAGE_FUZZ_SEED=%s", seconds, seed)
	b := testkit.Mesh(t, 1)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "schemathesis.toml"), []byte(fuzzConfig+fuzzRows(t, b)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), st, "run", b.URL(0, "/openapi.json"), "--seed", seed, "--workers", "1",
		"--max-time", seconds,
		"--phases", "coverage,fuzzing", "--max-examples", fuzzExamples, "--continue-on-failure", "--request-timeout", "60",
		"--warnings", "off",
		"--exclude-path-regex", fuzzOutside,
		"--checks", "not_a_server_error,status_code_conformance,content_type_conformance,"+
			"response_schema_conformance,negative_data_rejection")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("schemathesis: %v\n%s", err, out)
	}
	done := answered(string(b.Must(0, "GET", "/metrics", nil, nil).Body))
	t.Logf("answered by status: %v\n%s", done, out[max(0, len(out)-1500):])
	if done["200"] < fuzzDone || done["400"] < fuzzDone {
		t.Errorf("answered by status %v: want at least %d of each of 200 and 400, or little was tried", done, fuzzDone)
	}
}

// answered counts the answers of a node by their status.
func answered(metrics string) map[string]int {
	out := map[string]int{}
	for _, line := range regexp.MustCompile(`(?m)^selvage_http_requests_total\{.*status="(\d+)".*\} (\S+)$`).
		FindAllStringSubmatch(metrics, -1) {
		n, _ := strconv.ParseFloat(line[2], 64)
		out[line[1]] += int(n)
	}
	return out
}

// fuzzRows makes a row of most nouns, and names them as the parameters of the operations, so that requests
// get past the question whether the row is there. What ends a row gets a name that nobody has.
func fuzzRows(t *testing.T, b *testkit.Bed) string {
	t.Helper()
	company := b.Company("Fuzzed")
	in := "/api/companies/" + company
	made := func(path string, body map[string]any) string {
		var row struct{ ID string }
		b.Must(0, "POST", path, body, &row, testkit.Strong...)
		return row.ID
	}
	agent := b.Agent(company)
	goal := made(in+"/goals", map[string]any{"title": "Goal"})
	project := made(in+"/projects", map[string]any{"name": "Project"})
	issue := made(in+"/issues", map[string]any{"title": "Issue", "projectId": project, "goalId": goal})
	ids := map[string]string{
		"companies": company, "agents": agent.ID, "heartbeat-runs": agent.Run, "goals": goal, "projects": project,
		"issues":   issue,
		"comments": made("/api/issues/"+issue+"/comments", map[string]any{"body": "Comment"}),
		"labels":   made(in+"/labels", map[string]any{"name": "label", "color": "#ff0000"}),
		"secrets":  made(in+"/secrets", map[string]any{"name": "SECRET", "value": "x"}),
		"routines": made(in+"/routines", map[string]any{"title": "Routine", "assigneeAgentId": agent.ID}),
		"approvals": made(in+"/approvals", map[string]any{"type": "request_board_approval",
			"payload": map[string]any{"title": "Approval"}}),
		"documents": "plan", "keys": agent.KeyID,
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	b.Must(0, "GET", "/openapi.json", nil, &doc)
	var config strings.Builder
	for path, operations := range doc.Paths {
		parts := strings.Split(path, "/")
		var values []string
		for i, part := range parts {
			if id := ids[parts[max(0, i-1)]]; strings.HasPrefix(part, "{") && id != "" {
				values = append(values, fmt.Sprintf("%q = %q", "path."+strings.Trim(part, "{}"), id))
			}
		}
		for method := range operations {
			last := parts[len(parts)-1]
			ends := method == "delete" || slices.Contains([]string{"terminate", "archive", "cancel"}, last)
			if len(values) > 0 && !ends {
				fmt.Fprintf(&config, "[[operations]]\ninclude-name = %q\nparameters = { %s }\n", strings.ToUpper(method)+" "+path,
					strings.Join(values, ", "))
			}
		}
	}
	return config.String()
}
