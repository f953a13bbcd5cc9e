package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/api/transfer"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/ledger"
)

// What waits for a later issue, or for a part of its own, does so after an import,
// under the number that it had; what waited for what is done is open again; a circle,
// which no company has, is broken and told of.
func TestBlockersComeThroughAnImport(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	files := portable.Files{
		"COMPANY.md": portable.Text("---\nname: Acme\n---\n"),
		".paperclip.yaml": portable.Text(`tasks:
  later: {identifier: ACM-1, status: blocked, blockedBy: [sixth]}
  whole: {identifier: ACM-2, status: blocked, blockedBy: [part]}
  part: {identifier: ACM-3, status: todo, parent: whole}
  open: {identifier: ACM-4, status: blocked, blockedBy: [finished]}
  finished: {identifier: ACM-5, status: done}
  sixth: {identifier: ACM-6, status: backlog}
  one: {identifier: ACM-7, status: blocked, blockedBy: [other]}
  other: {identifier: ACM-8, status: blocked, blockedBy: [one]}
`),
	}
	for _, slug := range []string{"later", "whole", "part", "open", "finished", "sixth", "one", "other"} {
		files["tasks/"+slug+"/TASK.md"] = portable.Text("---\nname: " + slug + "\n---\n")
	}
	raw, err := json.Marshal(files)
	if err != nil {
		t.Fatal(err)
	}
	var done transfer.Imported
	body := fmt.Sprintf(`{"source":{"type":"inline","files":%s},"include":{"company":true,"issues":true},`+
		`"target":{"mode":"new_company"}}`, raw)
	if err := json.Unmarshal(h.Call("POST", "/api/companies/import", body).Want(t, 200, "").Body, &done); err != nil {
		t.Fatal(err)
	}
	if len(done.Warnings) != 1 || !strings.Contains(done.Warnings[0], "Task one: its blockers wait for each other") {
		t.Errorf("warnings %q", done.Warnings)
	}
	got := map[string]string{}
	apitest.View(t, h, func(tx *ledger.Tx) {
		for _, i := range inbox.ListIssues(tx, done.Company.ID, inbox.IssueQuery{Limit: 100}) {
			by := []string{}
			for _, b := range entity.Blockers(tx, i) {
				by = append(by, b.Title)
			}
			got[i.Title] = fmt.Sprint(i.Identifier, " ", i.Status, " ", by)
		}
	})
	want := map[string]string{"later": "ACM-1 blocked [sixth]", "whole": "ACM-2 blocked [part]", "part": "ACM-3 todo []",
		"open": "ACM-4 todo [finished]", "finished": "ACM-5 done []",
		"sixth": "ACM-6 backlog []", "one": "ACM-7 todo []", "other": "ACM-8 blocked [one]"}
	for _, title := range slices.Sorted(maps.Keys(want)) {
		if got[title] != want[title] {
			t.Errorf("%s is %q, want %q", title, got[title], want[title])
		}
	}
}
