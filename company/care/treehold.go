package care

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A TreeHold is a person's intervention on an issue and everything below it, now and later.
// While a hold of mode pause is active, nothing in the tree is checked out, no agent is woken
// for it, and its runs end. A hold of mode cancel stores the previous statuses, so that a
// restore brings them back. Modes resume and restore have no duration: they release an earlier
// hold.
type TreeHold struct {
	ID            string           `cbor:"1,keyasint" json:"id"`
	Company       ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Root          string           `cbor:"3,keyasint" json:"rootIssueId"`
	Mode          string           `cbor:"4,keyasint" json:"mode"`   // pause, resume, cancel or restore
	Status        string           `cbor:"5,keyasint" json:"status"` // active or released
	Reason        core.NullText    `cbor:"6,keyasint,omitempty" json:"reason"`
	Release       HoldRelease      `cbor:"7,keyasint" json:"releasePolicy"`
	Metadata      json.RawMessage  `cbor:"8,keyasint,omitempty" json:"metadata"`
	CreatedUser   core.NullText    `cbor:"9,keyasint,omitempty" json:"createdByUserId"`
	ReleasedUser  core.NullText    `cbor:"10,keyasint,omitempty" json:"releasedByUserId"`
	ReleasedAt    core.Time        `cbor:"11,keyasint,omitempty" json:"releasedAt"`
	ReleaseReason core.NullText    `cbor:"12,keyasint,omitempty" json:"releaseReason"`
	ReleaseMeta   json.RawMessage  `cbor:"13,keyasint,omitempty" json:"releaseMetadata"`
	Members       []HoldMember     `cbor:"14,keyasint,omitempty" json:"members"` // issues that a cancel or restore moved
	CreatedAt     core.Time        `cbor:"15,keyasint" json:"createdAt"`
	UpdatedAt     core.Time        `cbor:"16,keyasint" json:"updatedAt"`
	Height        uint64           `cbor:"17,keyasint" json:"-"` // of the entry that created it
}

// Clone returns a copy that shares nothing with h.
func (h TreeHold) Clone() TreeHold {
	h.Metadata, h.ReleaseMeta, h.Members = slices.Clone(h.Metadata), slices.Clone(h.ReleaseMeta), slices.Clone(h.Members)
	return h
}

// A HoldRelease says when a hold ends: when somebody releases it, or when the running runs of
// the tree have ended, which are then allowed to finish.
type HoldRelease struct {
	Strategy string        `cbor:"1,keyasint" json:"strategy"` // manual or after_active_runs_finish
	Note     core.NullText `cbor:"2,keyasint,omitempty" json:"note"`
}

// A HoldMember is an issue that a hold moved, and from where.
type HoldMember struct {
	Issue string             `cbor:"1,keyasint" json:"issueId"`
	Was   entity.IssueStatus `cbor:"2,keyasint" json:"statusBefore"`
}

// HoldModes and HoldStrategies list all values, in the contract's order.
var (
	HoldModes      = []string{"pause", "resume", "cancel", "restore"}
	HoldStrategies = []string{"manual", "after_active_runs_finish"}
)

const (
	// MaxTreeHolds bounds the stored holds of one issue: lists show all.
	MaxTreeHolds = 100
	// MaxTreeMoves bounds the issues that one hold, which is one command, cancels or restores, and
	// MaxTreeRuns the runs that it ends. Further queued runs end when they would start.
	MaxTreeMoves = 250
	MaxTreeRuns  = 200
	// MaxHoldText bounds reason, note and metadata, in bytes together.
	MaxHoldText = 16 << 10
)

// Holds are keyed by issue, oldest first. Active ones have a second row, and the pauses of a
// company are counted, so that a company without pauses costs one read:
//
//	tree-hold/<issue>.<height>
//	tree-hold-active/<issue>.<mode>   <issue>.<height>
//	tree-hold-count/<company>
var (
	TreeHolds      = ledger.NewTable[string, TreeHold]("tree-hold")
	treeHoldCounts = ledger.NewTable[ledger.CompanyID, holdCount]("tree-hold-count")
)

type holdCount struct {
	Pauses int `cbor:"1,keyasint"`
}

func ActiveHoldKey(company ledger.CompanyID, issue, mode string) []byte {
	return ledger.Key("c", string(company), "tree-hold-active", issue+"."+mode)
}

// HoldTree is the payload of tree.hold.
type HoldTree struct {
	ID       string          `cbor:"1,keyasint"`
	Issue    string          `cbor:"2,keyasint"`
	Mode     string          `cbor:"3,keyasint"`
	Reason   string          `cbor:"4,keyasint,omitempty"`
	Strategy string          `cbor:"5,keyasint,omitempty"` // empty: manual
	Note     string          `cbor:"6,keyasint,omitempty"`
	Metadata json.RawMessage `cbor:"7,keyasint,omitempty"`
}

// ReleaseTree is the payload of tree.release.
type ReleaseTree struct {
	Issue    string          `cbor:"1,keyasint"`
	Hold     string          `cbor:"2,keyasint"`
	Reason   string          `cbor:"3,keyasint,omitempty"`
	Metadata json.RawMessage `cbor:"4,keyasint,omitempty"`
}

const (
	KindTreeHold    = "tree.hold"
	KindTreeRelease = "tree.release"
)

var treeHoldKinds = []company.Kind{
	{Name: KindTreeHold, From: company.FromBoard, Weight: company.Weights.Halting, Do: ledger.Typed(holdTree)},
	{Name: KindTreeRelease, From: company.FromBoard, Weight: company.Weights.Task, Do: ledger.Typed(releaseTree)},
}

// TreeHoldsOf returns the holds on an issue, newest first.
func TreeHoldsOf(tx *ledger.Tx, i entity.Issue) []TreeHold {
	out := []TreeHold{}
	from := TreeHolds.Key(i.Company, i.ID+".")
	for _, v := range tx.Scan(from, ledger.PrefixEnd(from), true) {
		out = append(out, core.DecodeRow[TreeHold](v))
	}
	return out
}

// ActiveHold returns the active hold of a mode on the issue itself.
func ActiveHold(tx *ledger.Tx, company ledger.CompanyID, issue, mode string) (TreeHold, bool) {
	at, ok := tx.Get(ActiveHoldKey(company, issue, mode))
	if !ok {
		return TreeHold{}, false
	}
	return TreeHolds.Get(tx, company, string(at))
}

// HeldBy returns the pause that holds an issue: its own, or that of the nearest issue above.
func HeldBy(tx *ledger.Tx, i entity.Issue) (TreeHold, bool) {
	if n, ok := treeHoldCounts.Get(tx, i.Company, i.Company); !ok || n.Pauses == 0 || i.ID == "" {
		return TreeHold{}, false
	}
	at := i
	for n := 0; n <= entity.MaxIssueDepth; n++ {
		if h, ok := ActiveHold(tx, i.Company, at.ID, "pause"); ok {
			return h, true
		}
		var ok bool
		if at, ok = entity.IssueTable.Get(tx, i.Company, at.Parent); !ok {
			break
		}
	}
	return TreeHold{}, false
}

// treeHeld refuses work on an issue whose tree is paused.
func treeHeld(tx *ledger.Tx, i entity.Issue) error {
	h, ok := HeldBy(tx, i)
	if !ok {
		return nil
	}
	return core.RefuseCode(ledger.Conflict, "issue_tree_held", core.Object{}.Str("issueId", i.ID).Str("holdId", h.ID).
		Str("rootIssueId", h.Root).Str("mode", h.Mode).
		Null("reason", string(h.Reason)).Str("status", string(i.Status)).Close(), "The issue's tree is on hold")
}

// A TreePlan is what a hold would do.
type TreePlan struct {
	Issues  []TreePlanIssue
	Runs    []entity.Run // live, running first
	Cut     bool         // the tree is larger than the list
	Members int          // issues that would move
}

// A TreePlanIssue is one issue of a tree, and what a hold would do to it.
type TreePlanIssue struct {
	Issue entity.Issue
	Depth int    // below the root
	To    string // its new status, "" when it stays
	Why   string // why it stays: terminal, not_cancelled or not_held
}

// PlanTree returns what a hold of a mode on root would do.
func PlanTree(tx *ledger.Tx, root entity.Issue, mode string) TreePlan {
	var p TreePlan
	was := map[string]entity.IssueStatus{}
	if mode == "restore" {
		h, _ := ActiveHold(tx, root.Company, root.ID, "cancel")
		for _, m := range h.Members {
			was[m.Issue] = m.Was
		}
	}
	type at struct {
		id    string
		depth int
	}
	inTree := map[string]bool{}
	holding := map[string]bool{} // runs that lose an issue of a cancelled tree, whatever they are about
	for queue := []at{{root.ID, 0}}; len(queue) > 0; queue = queue[1:] {
		if len(p.Issues) == entity.MaxSubtree {
			p.Cut = true
			break
		}
		i, ok := entity.IssueTable.Get(tx, root.Company, queue[0].id)
		if !ok {
			continue
		}
		row := TreePlanIssue{Issue: i, Depth: queue[0].depth}
		switch before, moved := was[i.ID]; {
		case mode == "cancel" && i.Status.Terminal():
			row.Why = "terminal"
		case mode == "cancel":
			row.To = string(entity.IssueCancelled)
		case mode == "restore" && (!moved || i.Status != entity.IssueCancelled):
			row.Why = "not_cancelled"
		case mode == "restore":
			row.To = string(restored(before, i))
		case i.Status.Terminal():
			row.Why = "terminal"
		case mode == "resume" && !company.OnHold(tx, i.Company, i.ID):
			row.Why = "not_held"
		}
		if row.To != "" {
			p.Members++
		}
		p.Issues = append(p.Issues, row)
		inTree[i.ID] = true
		if mode == "cancel" && i.CheckoutRun != "" {
			holding[i.CheckoutRun] = true
		}
		for id := range entity.IssuesByParent.IDs(tx, i.Company, i.ID, false) {
			queue = append(queue, at{id, queue[0].depth + 1})
		}
	}
	for _, r := range entity.LiveRunsOf(tx, root.Company) {
		if inTree[r.Context.IssueID] || holding[r.ID] {
			p.Runs = append(p.Runs, r)
		}
	}
	slices.SortStableFunc(p.Runs, func(a, b entity.Run) int { return runOrder(a) - runOrder(b) })
	return p
}

func runOrder(r entity.Run) int {
	if r.Status == entity.RunRunning {
		return 0
	}
	return 1
}

// restored returns the status of a restored issue: todo if it was in progress, because its
// lock is gone.
func restored(was entity.IssueStatus, i entity.Issue) entity.IssueStatus {
	switch was {
	case entity.IssueInProgress:
		return entity.IssueTodo
	case entity.IssueBlocked:
		if len(i.BlockedBy) == 0 {
			return entity.IssueTodo
		}
	}
	return was
}

func holdTree(c *ledger.Context, p HoldTree) (any, error) {
	root, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, company.ErrNoIssue()
	}
	metadata, err := p.check(c, root)
	if err != nil {
		return nil, err
	}
	now := core.TimeOf(c.Now)
	h := TreeHold{ID: p.ID, Company: root.Company, Root: root.ID, Mode: p.Mode, Status: "active",
		Reason:  core.NullText(p.Reason),
		Release: HoldRelease{cmp.Or(p.Strategy, "manual"), core.NullText(p.Note)}, Metadata: metadata, CreatedAt: now,
		UpdatedAt: now, Height: c.Height}
	_, h.CreatedUser = core.ActedBy(c)
	plan := PlanTree(c.Tx, root, p.Mode)
	if plan.Members > MaxTreeMoves {
		return nil, ledger.Refuse(ledger.Unprocessable, core.Object{}.Int("issues", int64(plan.Members)).
			Int("limit", MaxTreeMoves).Close(),
			"A hold moves at most %d issues at once; hold the parts of this tree", MaxTreeMoves)
	}
	switch p.Mode {
	case "pause":
		err = h.pause(c, plan)
	case "cancel":
		endTreeRuns(c, plan, false, "Cancelled: the issue's tree was cancelled")
		h.Members, err = moveTree(c, plan)
	case "resume", "restore":
		other := map[string]string{"resume": "pause", "restore": "cancel"}[p.Mode]
		of, ok := ActiveHold(c.Tx, root.Company, root.ID, other)
		if !ok {
			return nil, ledger.Refuse(ledger.Conflict, core.Object{}.Str("issueId", root.ID).Str("mode", p.Mode).Close(),
				"No active hold of mode %s stands on this issue", other)
		}
		h.Status, h.ReleasedAt, h.ReleasedUser = "released", now, h.CreatedUser
		if p.Mode == "restore" {
			h.Members, err = moveTree(c, plan)
		}
		if err == nil {
			_, err = of.end(c, p.Reason, nil)
		}
	}
	if err != nil {
		return nil, err
	}
	if p.Mode != "pause" {
		h.put(c)
	}
	c.Record(h.change("issue.tree_hold_created"))
	return h, nil
}

func (p HoldTree) check(c *ledger.Context, root entity.Issue) (json.RawMessage, error) {
	switch {
	case !core.IsID(p.ID):
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed ID of a hold")
	case !slices.Contains(HoldModes, p.Mode):
		return nil, ledger.Refuse(ledger.Invalid, nil, "Unknown mode of a hold: %s", p.Mode)
	case p.Strategy != "" && !slices.Contains(HoldStrategies, p.Strategy):
		return nil, ledger.Refuse(ledger.Invalid, nil, "Unknown release strategy: %s", p.Strategy)
	case len(p.Reason)+len(p.Note)+len(p.Metadata) > MaxHoldText:
		return nil, ledger.Refuse(ledger.TooLarge, nil, "A hold has at most %d bytes of text", MaxHoldText)
	}
	if h, ok := ActiveHold(c.Tx, root.Company, root.ID, p.Mode); ok {
		return nil, core.RefuseCode(ledger.Conflict, "issue_tree_held", core.Object{}.Str("issueId", root.ID).
			Str("holdId", h.ID).Str("mode", h.Mode).Close(),
			"An active hold of mode %s stands on this issue already", p.Mode)
	}
	if len(p.Metadata) == 0 {
		return nil, nil
	}
	return core.CheckObject("metadata", p.Metadata, MaxHoldText)
}

// put stores h and drops the oldest released holds beyond the bound.
func (h TreeHold) put(c *ledger.Context) {
	all := TreeHoldsOf(c.Tx, entity.Issue{ID: h.Root, Company: h.Company})
	for n := len(all) - 1; n >= 0 && len(all) >= MaxTreeHolds; n-- {
		if all[n].Status != "active" {
			TreeHolds.Delete(c.Tx, h.Company, all[n].rowKey())
			break
		}
	}
	TreeHolds.Put(c.Tx, h.Company, h.rowKey(), h)
	if h.Status == "active" {
		c.Set(ActiveHoldKey(h.Company, h.Root, h.Mode), []byte(h.rowKey()))
		countPauses(c.Tx, h, 1)
	}
}

func (h TreeHold) rowKey() string { return h.Root + "." + ledger.Order(h.Height) + "." + h.ID }

func countPauses(tx *ledger.Tx, h TreeHold, n int) {
	if h.Mode != "pause" {
		return
	}
	row, _ := treeHoldCounts.Get(tx, h.Company, h.Company)
	row.Pauses += n
	treeHoldCounts.Put(tx, h.Company, h.Company, row)
}

func (h TreeHold) change(action string) ledger.Change {
	return ledger.Change{Action: action, EntityType: "issue", EntityID: h.Root, Details: core.Object{}.Str("holdId", h.ID).
		Str("mode", h.Mode).Str("status", h.Status).
		Str("releaseStrategy", h.Release.Strategy).Null("reason", core.Snippet(string(h.Reason), 500)).Int("movedIssues",
		int64(len(h.Members))).Close()}
}

// pause ends the runs of the tree, or with the other strategy those that have not started.
func (h TreeHold) pause(c *ledger.Context, plan TreePlan) error {
	letFinish := h.Release.Strategy == "after_active_runs_finish"
	if letFinish && (len(plan.Runs) == 0 || plan.Runs[0].Status != entity.RunRunning) {
		return ledger.Refuse(ledger.Unprocessable, nil, "No run is active in this tree; the hold would end at once")
	}
	h.put(c) // stored before the runs end, so that nothing follows them
	endTreeRuns(c, plan, letFinish, "Cancelled: the issue's tree was paused")
	return nil
}

func endTreeRuns(c *ledger.Context, plan TreePlan, letFinish bool, why string) {
	n := 0
	for _, r := range plan.Runs {
		if n == MaxTreeRuns {
			return
		}
		if letFinish && r.Status == entity.RunRunning {
			continue
		}
		if now, ok := entity.RunTable.Get(c.Tx, r.Company, r.ID); ok && now.Status.Live() {
			company.DenyLive(c, now, company.DeniedTreeHold, why)
			n++
		}
	}
}

// moveTree moves the issues of a plan, each with a line in the entry while there is room, and
// notifies their assignees.
func moveTree(c *ledger.Context, plan TreePlan) (moved []HoldMember, err error) {
	for _, row := range plan.Issues {
		i, ok := entity.IssueTable.Get(c.Tx, row.Issue.Company, row.Issue.ID)
		if !ok || row.To == "" || i.Status == entity.IssueStatus(row.To) {
			continue
		}
		next, override, err := i.Move(entity.Move{To: entity.IssueStatus(row.To), Board: true, Routable: true,
			Now: core.TimeOf(c.Now)})
		if err != nil {
			return nil, err
		}
		next.UpdatedAt = core.TimeOf(c.Now)
		company.RecordLive(c, company.UpdatedChange(c, i, next, i.Diff(next), override))
		company.StoreIssue(c.Tx, i, next)
		moved = append(moved, HoldMember{Issue: i.ID, Was: i.Status})
		if err := company.WakeForAssignment(c, i, next); err != nil {
			return nil, err
		}
	}
	return moved, nil
}

// end releases h. After a pause it wakes the assignees of issues in todo or in_progress that
// no other hold pauses.
func (h TreeHold) end(c *ledger.Context, reason string, metadata json.RawMessage) (TreeHold, error) {
	h.Status, h.ReleasedAt, h.UpdatedAt = "released", core.TimeOf(c.Now), core.TimeOf(c.Now)
	h.ReleaseReason, h.ReleaseMeta = core.NullText(reason), metadata
	_, h.ReleasedUser = core.ActedBy(c)
	c.Delete(ActiveHoldKey(h.Company, h.Root, h.Mode))
	TreeHolds.Put(c.Tx, h.Company, h.rowKey(), h)
	countPauses(c.Tx, h, -1)
	if h.Mode != "pause" {
		return h, nil
	}
	n := 0
	for _, id := range entity.Descendants(c.Tx, h.Company, h.Root) {
		i, ok := entity.IssueTable.Get(c.Tx, h.Company, id)
		if !ok || i.Assignee == "" || i.Status != entity.IssueTodo && i.Status != entity.IssueInProgress || i.Held() ||
			company.OnHold(c.Tx, h.Company, id) || len(entity.Unresolved(c.Tx, i)) > 0 {
			continue
		}
		if n++; n > MaxTreeRuns {
			break // the agents' timers find the rest
		}
		if err := company.WakeForIssue(c, i, entity.WakeAutomation, "issue.tree_hold", "issue_tree_resumed", ""); err != nil {
			return h, err
		}
	}
	return h, nil
}

func releaseTree(c *ledger.Context, p ReleaseTree) (any, error) {
	root, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, company.ErrNoIssue()
	}
	all := TreeHoldsOf(c.Tx, root)
	at := slices.IndexFunc(all, func(h TreeHold) bool { return h.ID == p.Hold })
	switch {
	case at < 0:
		return nil, ledger.Refuse(ledger.NotFound, nil, "Issue tree hold not found")
	case all[at].Status != "active":
		return nil, ledger.Refuse(ledger.Conflict, core.Object{}.Str("holdId", p.Hold).Str("status", all[at].Status).Close(),
			"Issue tree hold is already released")
	case len(p.Reason)+len(p.Metadata) > MaxHoldText:
		return nil, ledger.Refuse(ledger.TooLarge, nil, "A hold has at most %d bytes of text", MaxHoldText)
	}
	var metadata json.RawMessage
	if len(p.Metadata) > 0 {
		var err error
		if metadata, err = core.CheckObject("metadata", p.Metadata, MaxHoldText); err != nil {
			return nil, err
		}
	}
	h, err := all[at].end(c, p.Reason, metadata)
	if err != nil {
		return nil, err
	}
	c.Record(h.change("issue.tree_hold_released"))
	return h, nil
}

// settleHold releases the pause that waited for its tree's runs, when r was the last running
// one.
func settleHold(c *ledger.Context, r entity.Run) {
	i, ok := entity.IssueTable.Get(c.Tx, r.Company, r.Context.IssueID)
	if !ok || r.Context.IssueID == "" {
		return
	}
	h, ok := HeldBy(c.Tx, i)
	if !ok || h.Release.Strategy != "after_active_runs_finish" {
		return
	}
	for _, other := range entity.LiveRunsOf(c.Tx, r.Company) {
		if other.ID == r.ID || other.Status != entity.RunRunning {
			continue
		}
		of, ok := entity.IssueTable.Get(c.Tx, r.Company, other.Context.IssueID)
		if g, yes := HeldBy(c.Tx, of); ok && yes && g.ID == h.ID {
			return
		}
	}
	if done, err := h.end(c, "The runs of the tree have ended", nil); err == nil {
		company.RecordLive(c, done.change("issue.tree_hold_released"))
	}
}

// dropHolds removes the holds of an issue that is deleted.
func dropHolds(tx *ledger.Tx, i entity.Issue) {
	for _, mode := range []string{"pause", "cancel"} {
		if h, ok := ActiveHold(tx, i.Company, i.ID, mode); ok {
			tx.Delete(ActiveHoldKey(i.Company, i.ID, mode))
			countPauses(tx, h, -1)
		}
	}
	for k := range tx.Prefix(TreeHolds.Key(i.Company, i.ID+".")) {
		tx.Delete(slices.Clone(k))
	}
}
