package node

import (
	"context"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/inbox"
	memories "github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/transfer"
	"github.com/selvage-mesh/selvage/ledger"
)

// keepHouse does, while this node leads, the work that is due and that nobody requests:
// it frees scopes whose budget window has passed, and continues deletions whose caller
// has left. Each is a command, so doing it twice is harmless.
func (n *Node) keepHouse(ctx context.Context) {
	every(ctx, choreEvery, func() {
		if !n.consensus.IsLeader() {
			return
		}
		for _, cmd := range n.chores() {
			if ctx.Err() != nil {
				return
			}
			if err := n.carryOut(ctx, cmd); err != nil {
				n.log.Warn("chore", "kind", cmd.Kind, "company", cmd.Company, "error", err)
			}
		}
	})
}

// every calls f periodically until ctx ends, the first time after d at most. The first
// call is at a multiple of beat on the wall clock, so that an idle node wakes once for
// several of them.
func every(ctx context.Context, d time.Duration, f func()) {
	first := d
	if d >= beat {
		first -= time.Duration((time.Now().UnixNano() + int64(d)) % int64(beat))
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(first):
	}
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		f()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// carryOut submits a command of the node itself; a refusal is an error.
func (n *Node) carryOut(ctx context.Context, cmd ledger.Command) error {
	_, err := n.carriedOut(ctx, cmd)
	return err
}

// carriedOut is carryOut, and returns the raft index from which a state has what the command did.
func (n *Node) carriedOut(ctx context.Context, cmd ledger.Command) (index uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, submitTimeout)
	defer cancel()
	receipt, err := n.submit(ctx, cmd)
	if err != nil {
		return 0, err
	}
	return receipt.Index, receipt.Err()
}

// chores returns the commands that are due now, at most maxChores.
func (n *Node) chores() (due []ledger.Command) {
	err := n.ledger.View(func(tx *ledger.Tx) error {
		now := core.TimeOf(n.consensus.Now()) // in an idle mesh the newest entry's time is old
		due = append(due, n.decidedApps(tx, now)...)
		for _, id := range entity.UnfinishedDeletions(tx) {
			due = append(due, n.command(company.KindCompanyDelete, id, company.ChangeCompany{}))
		}
		if company.PartsToSweep(tx, "", now) { // of imports into new companies
			due = append(due, n.command(company.KindPartSweep, "", company.SweepParts{}))
		}
		if transfer.ImportJobsToSweep(tx, now) {
			due = append(due, n.command(transfer.KindImportJobSweep, "", transfer.SweepImportJobs{}))
		}
		if company.LogsToSweep(tx, now) {
			due = append(due, n.command(company.KindRunLogSweep, "", company.SweepLogs{}))
		}
		for _, c := range entity.Companies(tx) {
			if len(due) >= maxChores {
				break
			}
			if money.BudgetsToSweep(tx, c.ID, now) {
				due = append(due, n.command(money.KindBudgetSweep, c.ID, money.SweepBudgets{}))
			}
			if inbox.IssuesToIndex(tx, c.ID) {
				due = append(due, n.command(inbox.KindIssueIndex, c.ID, inbox.IndexIssues{}))
			}
			if file.AttachmentsToSweep(tx, c.ID) {
				due = append(due, n.command(file.KindAttachmentSweep, c.ID, file.SweepAttachments{}))
			}
			if company.ThreadsToSweep(tx, c.ID) {
				due = append(due, n.command(company.KindIssueSweep, c.ID, company.SweepThreads{}))
			}
			if company.EventsToSweep(tx, c.ID, now) {
				due = append(due, n.command(company.KindRunEventSweep, c.ID, company.SweepEvents{}))
			}
			if len(memories.Expiring(tx, c.ID, now, 1)) > 0 {
				due = append(due, n.command(memories.KindExpire, c.ID, memories.Expire{}))
			}
			if len(govern.Lapsing(tx, c.ID, now, 1)) > 0 {
				due = append(due, n.command(govern.KindLapse, c.ID, govern.Lapse{}))
			}
			if company.PartsToSweep(tx, c.ID, now) {
				due = append(due, n.command(company.KindPartSweep, c.ID, company.SweepParts{}))
			}
		}
		return nil
	})
	if err != nil {
		n.log.Warn("chores", "error", err)
	}
	if level := n.levelToRaise(); level > 0 {
		due = append(due, n.command(ledger.KindFeatureRaise, "", ledger.FeatureRaise{Level: level}))
	}
	due = append(due, n.resealing()...)
	return due[:min(len(due), maxChores)]
}
