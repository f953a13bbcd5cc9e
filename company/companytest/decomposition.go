package companytest

import (
	"encoding/json"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/paper"
)

// Agreed makes an issue whose plan was agreed on, and returns it with the revision.
func (d *Desk) Agreed(t testing.TB) (issue, revision string) {
	t.Helper()
	issue, revision = d.ID(), d.ID()
	d.Must(t, Board, "issue.create", company.CreateIssue{ID: issue, Title: "Plan it", Status: entity.IssueTodo}, nil)
	d.Must(t, Board, "document.save", paper.SaveDocument{Issue: issue, Key: "plan", ID: d.ID(), Revision: revision,
		Title: new("Plan"), Format: "markdown", Body: "1. draw 2. cut"}, nil)
	return issue, revision
}

func (d *Desk) Agree(t testing.TB, issue, revision string) {
	t.Helper()
	ask := d.ID()
	payload, _ := json.Marshal(map[string]any{"version": 1, "prompt": "Agreed?",
		"target": map[string]any{"type": "issue_document", "issueId": issue, "key": "plan", "revisionId": revision}})
	d.Must(t, Board, "interaction.create", paper.CreateInteraction{ID: ask, Issue: issue, Kind: paper.Confirmation,
		Payload: payload}, nil)
	d.Must(t, Board, "interaction.accept", paper.ResolveInteraction{Issue: issue, ID: ask}, nil)
}
