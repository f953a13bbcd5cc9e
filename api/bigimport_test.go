package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	apitransfer "github.com/selvage-mesh/selvage/api/transfer"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/company/transfer"
	"github.com/selvage-mesh/selvage/ledger"
)

// largePackage is a company of n issues in trees of four, each with comments, every
// second one with a document.
func largePackage(n, comments int) portable.Files {
	files := portable.Files{"COMPANY.md": portable.Text("---\nname: Big\n---\n")}
	var side strings.Builder
	side.WriteString("schema: paperclip/v1\nschemaVersion: 7\ntasks:\n")
	for i := range n {
		at := fmt.Sprintf("tasks/big-%d/", i+1)
		files[at+"TASK.md"] = portable.Text(fmt.Sprintf("---\nname: \"Task %d\"\n---\n%s", i+1,
			strings.Repeat("what is to be done, ", 15)))
		fmt.Fprintf(&side,
			"  big-%d:\n    identifier: BIG-%d\n    status: todo\n    priority: high\n    comments:\n", i+1, i+1)
		for c := range comments {
			fmt.Fprintf(&side, "      - {authorType: user, body: \"%s\"}\n", strings.Repeat(fmt.Sprintf("remark %d: ", c), 20))
		}
		if i%4 > 0 {
			fmt.Fprintf(&side, "    parent: big-%d\n", i-i%4+1)
		}
		if i%2 == 0 {
			files[at+"documents/plan.md"] = portable.Text(strings.Repeat("# plan\n", 60))
			fmt.Fprintf(&side, "    documents: [{key: plan, format: markdown, path: %sdocuments/plan.md}]\n", at)
		}
	}
	files[".paperclip.yaml"] = portable.Text(side.String())
	return files
}

// A company of thousands of issues, comments and documents comes in by one command,
// and goes out and in again as it is.
func TestALargeCompanyTravels(t *testing.T) {
	t.Parallel()
	const n, comments = 1_000, 4
	h, there := apitest.NewHarness(t), apitest.NewHarness(t)
	bring := func(h *apitest.Harness, files portable.Files) (apitransfer.Exported, ledger.CompanyID) {
		var done apitransfer.Imported
		if err := json.Unmarshal(h.Call("POST", "/api/companies/import",
			apitest.ImportOf(t, apitransfer.Exported{Files: files}, `{"mode":"new_company"}`, "")).Want(t, 200, "").Body,
			&done); err != nil {
			t.Fatal(err)
		}
		return h.Export(t, done.Company.ID, everything), done.Company.ID
	}
	first, of := bring(h, largePackage(n, comments))
	said, written := 0, 0
	for _, i := range first.Manifest.Issues {
		said, written = said+len(i.Comments), written+len(i.Documents)
	}
	if len(first.Manifest.Issues) != n || said != n*comments || written != n/2 {
		t.Fatalf("%d issues, %d comments, %d documents came in", len(first.Manifest.Issues), said, written)
	}
	if acts := h.Call("GET", "/api/companies/"+string(of)+"/activity", "").
		Want(t, 200, "company.imported"); strings.Count(string(acts.Body), `"action"`) != 1 {
		t.Errorf("more than one activity of one import: %s", api.Cut(string(acts.Body), 300))
	}
	apitest.View(t, h, func(tx *ledger.Tx) { // what was staged for it is gone with it
		for range tx.Prefix(ledger.Key("c", "", "part", "")) {
			t.Error("a part of the import is still there")
		}
	})
	second, _ := bring(there, first.Files)
	sameFiles(t, first.Files, second.Files)
}

// An import beyond what a mesh takes at once says so, and how much that is, before
// anything of it is sent to the nodes.
func TestAnImportBeyondItsBoundsNamesThem(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	sidecar := func(text string) portable.Files {
		return portable.Files{"COMPANY.md": portable.Text("---\nname: Big\n---\n"), "tasks/a/TASK.md": portable.Text("A"),
			".paperclip.yaml": portable.Text(text)}
	}
	comments := func(n int, body string) portable.Files {
		return sidecar("tasks: {a: {comments: [" + strings.Repeat("{body: "+body+"},", n) + "]}}")
	}
	many := portable.Files{"COMPANY.md": portable.Text("---\nname: Big\n---\n")}
	for n := range portable.MaxFiles {
		many[fmt.Sprintf("notes/%d.md", n)] = portable.Text("")
	}
	before := h.Node.Ledger.Applied()
	for name, c := range map[string]struct {
		files portable.Files
		want  string
	}{
		"parts":  {comments(transfer.MaxImportSteps, "x"), fmt.Sprintf("1 to %d parts", transfer.MaxImportSteps)},
		"values": {sidecar("labels: [" + strings.Repeat("x,", 1_600_000) + "]"), "more than 1500000 values"},
		"files":  {many, fmt.Sprintf("at most %d can be imported", portable.MaxFiles)},
	} {
		t.Run(name, func(t *testing.T) {
			h.Call("POST", "/api/companies/import", apitest.ImportOf(t, apitransfer.Exported{Files: c.files},
				`{"mode":"new_company"}`, "")).Want(t, 422, c.want)
		})
	}
	if now := h.Node.Ledger.Applied(); now != before {
		t.Errorf("refused imports were sent to the nodes: %d, then %d", before, now)
	}
}
