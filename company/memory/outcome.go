package memory

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A closed issue leaves a record of what it was about and how it ended: its title, its
// description, the last comment, and what went wrong in its last runs. There is one for an issue; when it is closed
// again, the record is written anew. Where a company has no room, none is left.

const (
	// Outcome is the kind of such a record.
	Outcome = "outcome"
	// outcomeImportance is between a remark and what somebody marked as important.
	outcomeImportance = 400
)

// OutcomeOf is the ID of the record that an issue leaves.
func OutcomeOf(issue string) string { return core.DerivedID("memory-outcome", issue) }

// leaveOutcome is called when an issue is stored: one that was closed leaves a record.
func leaveOutcome(tx *ledger.Tx, was, next entity.Issue) entity.Issue {
	if was.ID == "" || next.ID == "" || was.Status.Terminal() || !next.Status.Terminal() || next.HiddenAt != 0 {
		return next
	}
	old, _ := records.Get(tx, next.Company, OutcomeOf(next.ID))
	r := outcome(tx, next, old.CreatedAt)
	if r.Run == "" {
		r.Run = core.NullText(was.CheckoutRun)
	}
	r.Height = tx.Applying()
	if CountOf(tx, r.Company).fits(old, r) == nil {
		store(tx, old, r)
	}
	return next
}

// outcomeWithout is called when a comment was deleted: the record stops quoting it.
func outcomeWithout(tx *ledger.Tx, cm entity.Comment) {
	old, ok := records.Get(tx, cm.Company, OutcomeOf(cm.Issue))
	i, there := entity.IssueTable.Get(tx, cm.Company, cm.Issue)
	if !ok || !there || string(old.Comment) != cm.ID {
		return
	}
	r := outcome(tx, i, old.CreatedAt)
	r.Run, r.Height, r.UpdatedAt = old.Run, old.Height, cm.UpdatedAt
	store(tx, old, r)
}

// outcome is the record of a closed issue.
func outcome(tx *ledger.Tx, i entity.Issue, created core.Time) Record {
	r := Record{ID: OutcomeOf(i.ID), Company: i.Company, Kind: Outcome, Agent: core.NullText(i.Assignee),
		Project: core.NullText(i.Project), Issue: core.NullText(i.ID),
		Run: core.NullText(i.CheckoutRun), Importance: outcomeImportance, AuthorType: "system", Author: "outcome",
		CreatedAt: created, UpdatedAt: i.UpdatedAt}
	if created == 0 {
		r.CreatedAt = i.UpdatedAt
	}
	text := i.Identifier + " " + string(i.Status) + ": " + i.Title
	if i.Description != "" {
		text += "\n\n" + core.Snippet(i.Description, outcomeSnippet)
	}
	if cm, ok := lastComment(tx, i); ok {
		r.Comment = core.NullText(cm.ID)
		text += "\n\nLast comment: " + core.Snippet(cm.Body, outcomeSnippet)
	}
	text += failures(tx, i)
	r.Text = core.Snippet(strings.ToValidUTF8(strings.Map(printable, text), "�"), MaxText)
	return r
}

// printable drops the control characters that a memory can not have.
func printable(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' {
		return -1
	}
	return r
}

// lastComment returns the newest comment of an issue that was not emptied, among the last
// few.
func lastComment(tx *ledger.Tx, i entity.Issue) (entity.Comment, bool) {
	const few = 20
	prefix, n := entity.Comments.Key(i.Company, i.ID+"."), 0
	for _, b := range tx.Scan(prefix, ledger.PrefixEnd(prefix), true) {
		if cm := core.DecodeRow[entity.Comment](b); cm.DeletedAt == 0 && cm.Body != "" {
			return cm, true
		}
		if n++; n == few {
			break
		}
	}
	return entity.Comment{}, false
}

// failures says how runs of an issue failed, the newest of them.
func failures(tx *ledger.Tx, i entity.Issue) (out string) {
	failed, seen := 0, 0
	for r := range entity.RunsOfIssue(tx, i.Company, i.ID) {
		if seen++; seen > mostRuns {
			break
		}
		if r.Status != entity.RunFailed && r.Status != entity.RunTimedOut && r.Status != entity.RunInterrupted {
			continue
		}
		if failed++; failed > mostFailures {
			continue
		}
		why := string(r.Error)
		if why == "" {
			why = string(r.ErrorCode)
		}
		out += "\n- run " + r.ID + " " + string(r.Status)
		if why != "" {
			out += ": " + core.Snippet(strings.Join(strings.Fields(why), " "), failureSnippet)
		}
	}
	if failed == 0 {
		return ""
	}
	return "\n\nRuns that failed: " + strconv.Itoa(failed) + out
}
