package rules_test

import (
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/ledger"
)

// Books are all rows of a state and everything that follows from them: every index key and its
// value. They are computed from the rows alone, to compare them with the indexes that the
// rules maintain.
type books struct {
	tx   *ledger.Tx
	want map[string]string // by key
	may  map[string]bool   // further keys that may exist
}

// bookFamilies are the keys of a company that are not rows; each follows from rows. spanning
// are such keys outside companies.
var (
	bookFamilies = []string{"agent-urlkey", "agent-manager", "agent-status", "approval-status-type", "approval-by-issue",
		"issue-by-approval", "approval-by-agent",
		"asset-created", "asset-object", "attachment-issue", "budget-incident-status", "comment-at", "comment-request",
		"cost-agent", "cost-id",
		"exec-workspace-created", "exec-workspace-issue", "exec-workspace-of", "goal-parent", "goal-root", "memory-expiry",
		"interaction-pending", "interaction-request", "join-pending",
		"issue-assignee", "issue-project", "issue-goal", "issue-parent", "issue-label", "issue-blocks", "issue-held",
		"issue-status", "issue-touch", "issue-count",
		"agent-key-agent", "part-staged", "work-product-issue", "workspace-project", "reservation-open", "reservation-done",
		"routine-trigger-of", "routine-issue",
		"routine-run-order", "routine-run-once", "run-time", "run-agent", "run-issue", "run-live", "runtime-service-of",
		"secret-name", "secret-key", "secret-user",
		"workspace-op-of", "workspace-op-run", "watchdog-agent", "tree-hold-active", "wakeup-order", "wakeup-once"}
	bookSpanning = []string{"i", "approval-company", "blob", "board-key-token", "board-key-user", "exec-workspace-company",
		"exec-cleanup", "invite-token", "invite-company", "join-company",
		"issue-company", "issue-identifier", "issue-monitor", "agent-key-company", "agent-key-token", "label-company",
		"routine-due", "routine-public",
		"run-company", "sched", "run-log-kept", "runtime-service-company", "runtime-service-node", "workspace-op-company",
		"workspace-op-node",
		"user-email", "user-session-token", "user-session-of"}
)

func (b *books) key(key []byte, value string) { b.want[string(key)] = value }
func (b *books) index(company ledger.CompanyID, name, value, id string) {
	b.key(ledger.Key("c", string(company), name, value, id), "")
}
func (b *books) some(company ledger.CompanyID, name, value, id string) {
	if value != "" {
		b.index(company, name, value, id)
	}
}
func (b *books) owned(company ledger.CompanyID, id string) { b.key(core.OwnerKey(id), string(company)) }

// booksOf computes the books of some companies, and of the mesh.
func booksOf(tx *ledger.Tx, of ...string) *books {
	of = slices.Compact(slices.Sorted(slices.Values(of)))
	b := &books{tx: tx, want: map[string]string{}, may: map[string]bool{}}
	blobs := map[string]uint32{}
	for _, c := range of {
		b.work(c)
		b.people(c)
		b.runs(c, blobs)
		b.files(ledger.CompanyID(c), blobs)
		b.money(ledger.CompanyID(c))
		b.places(c)
		b.routines(c)
		b.memories(c)
	}
	for key, refs := range blobs {
		got, _ := tx.Get([]byte(key))
		b.want[key] = string(got)
		if got != nil && core.DecodeRow[company.BlobRef](got).Refs != refs {
			b.want[key] = fmt.Sprintf("%d references", refs)
		}
	}
	for id, k := range people.BoardKeys.All(tx) {
		b.key(people.BoardUserKey(k.User, id), "")
		if k.RevokedAt == 0 {
			b.key(people.BoardTokenKey(k.Hash), id)
		}
	}
	for id, u := range people.UserTable.All(tx) {
		b.key(people.EmailKey(u.Email), id)
	}
	for id, s := range people.UserSessions.All(tx) {
		b.key(people.SessionTokenKey(s.Hash), id)
		b.key(people.UserSessionKey(s.User, id), "")
	}
	return b
}

// work computes the keys of goals, projects, issues, and the comments on them.
func (b *books) work(c string) {
	tx := b.tx
	var oldest entity.Goal
	for id, g := range entity.Goals.All(tx, ledger.CompanyID(c)) {
		b.owned(ledger.CompanyID(c), id)
		b.some(ledger.CompanyID(c), "goal-parent", string(g.Parent), id)
		if g.Root() && (oldest.ID == "" || g.CreatedAt < oldest.CreatedAt) {
			oldest = g
		}
	}
	if oldest.ID != "" {
		b.key(entity.RootGoalKey(ledger.CompanyID(c)), oldest.ID)
	}
	for id := range entity.ProjectTable.All(tx, ledger.CompanyID(c)) {
		b.owned(ledger.CompanyID(c), id)
	}
	for id, w := range place.Workspaces.All(tx, ledger.CompanyID(c)) {
		b.owned(ledger.CompanyID(c), id)
		b.index(ledger.CompanyID(c), "workspace-project", w.Project, id)
	}
	for id := range entity.Labels.All(tx, ledger.CompanyID(c)) {
		b.key(entity.LabelCompanyKey(id), c)
	}
	for id := range routine.Folders.All(tx, ledger.CompanyID(c)) {
		b.owned(ledger.CompanyID(c), id)
	}
	for id := range place.NamedEnvironments.All(tx, ledger.CompanyID(c)) {
		b.owned(ledger.CompanyID(c), id)
	}
	counts := map[entity.IssueStatus]int{}
	for id, i := range entity.IssueTable.All(tx, ledger.CompanyID(c)) {
		b.key(entity.IssueCompanyKey(id), c)
		b.key(entity.IdentifierKey(i.Identifier), c+"/"+id)
		hidden := ""
		if i.HiddenAt != 0 {
			hidden = "\x01"
		} else {
			counts[i.Status]++
		}
		b.key(entity.IssueStatusKey(i), hidden)
		b.some(ledger.CompanyID(c), "issue-assignee", i.Assigned(), id)
		b.some(ledger.CompanyID(c), "issue-project", i.Project, id)
		b.some(ledger.CompanyID(c), "issue-goal", i.Goal, id)
		b.some(ledger.CompanyID(c), "issue-parent", i.Parent, id)
		b.some(ledger.CompanyID(c), "issue-held", i.CheckoutRun, id)
		for _, l := range i.Labels {
			b.index(ledger.CompanyID(c), "issue-label", l, id)
		}
		for _, other := range i.BlockedBy {
			b.index(ledger.CompanyID(c), "issue-blocks", other, id)
		}
		b.some(ledger.CompanyID(c), "issue-touch", inbox.Hands("made", "user", i.CreatedUser), id)
		b.some(ledger.CompanyID(c), "issue-touch", inbox.Hands("made", "agent", i.CreatedAgent), id)
		b.some(ledger.CompanyID(c), "issue-touch", inbox.Hands("has", "user", i.AssigneeUser), id)
		if i.Monitors() {
			b.key(care.MonitorKey(i), c)
		}
		if i.OriginKind == entity.OriginRoutine && !i.Status.Terminal() &&
			tx.Has(routine.Routines.Key(ledger.CompanyID(c), i.OriginID)) {
			b.index(ledger.CompanyID(c), "routine-issue", i.OriginID, id)
		}
	}
	if !maps.Equal(counts, entity.CountIssues(tx, ledger.CompanyID(c))) {
		b.want[string(entity.IssueCountKey(ledger.CompanyID(c)))] = fmt.Sprint(counts)
	} else {
		b.may[string(entity.IssueCountKey(ledger.CompanyID(c)))] = true
	}
	said := map[string]uint64{}
	prefix := entity.Comments.Key(ledger.CompanyID(c), "")
	for k, v := range tx.Prefix(prefix) {
		cm := core.DecodeRow[entity.Comment](v)
		row := string(k[len(prefix):])
		b.key(entity.CommentAtKey(ledger.CompanyID(c), cm.ID), row)
		if cm.ClientRequest != "" {
			b.key(entity.CommentRequestKey(ledger.CompanyID(c), cm.Issue, string(cm.ClientRequest)), row)
		}
		if cm.DeletedAt == 0 {
			said[cm.Issue+"."+inbox.Voice(cm)]++
		}
	}
	for key, row := range inbox.SaidOn.All(tx, ledger.CompanyID(c)) {
		issue, who, _ := strings.Cut(key, ".")
		b.index(ledger.CompanyID(c), "issue-touch", "said."+who, issue)
		if row.Count != said[key] && who != inbox.OtherVoices {
			b.want[string(inbox.SaidOn.Key(ledger.CompanyID(c), key))] = fmt.Sprintf("%d comments", said[key])
		}
		delete(said, key)
	}
	for key := range said {
		b.want[string(inbox.SaidOn.Key(ledger.CompanyID(c), key))] = "somebody spoke"
	}
	prefix = paper.Interactions.Key(ledger.CompanyID(c), "")
	for k, v := range tx.Prefix(prefix) {
		in := core.DecodeRow[paper.Interaction](v)
		if in.Status == "pending" {
			b.index(ledger.CompanyID(c), "interaction-pending", in.Issue, ledger.Order(in.Seq))
		}
		if in.IdempotencyKey != "" {
			b.key(paper.InteractionRequestKey(ledger.CompanyID(c), in.Issue, string(in.IdempotencyKey)), string(k[len(prefix):]))
		}
	}
	for id, a := range money.Approvals.All(tx, ledger.CompanyID(c)) {
		b.key(money.ApprovalCompanyKey(id), c)
		b.index(ledger.CompanyID(c), "approval-status-type", a.State(), a.Ref())
		for issue := range money.IssuesByApproval.IDs(tx, ledger.CompanyID(c), id, false) {
			b.index(ledger.CompanyID(c), "approval-by-issue", issue, a.Ref())
			if tx.Has(entity.IssueTable.Key(ledger.CompanyID(c), issue)) {
				b.index(ledger.CompanyID(c), "issue-by-approval", id, issue)
			}
		}
		if a.Agent != "" && entity.AgentExists(tx, ledger.CompanyID(c), string(a.Agent)) {
			b.index(ledger.CompanyID(c), "approval-by-agent", string(a.Agent), id)
		}
	}
	for id, w := range care.Watchdogs.All(tx, ledger.CompanyID(c)) {
		b.index(ledger.CompanyID(c), "watchdog-agent", w.Agent, id)
	}
	prefix = care.TreeHolds.Key(ledger.CompanyID(c), "")
	for k, v := range tx.Prefix(prefix) {
		if h := core.DecodeRow[care.TreeHold](v); h.Status == "active" && (h.Mode == "pause" || h.Mode == "cancel") {
			b.key(care.ActiveHoldKey(ledger.CompanyID(c), h.Root, h.Mode), string(k[len(prefix):]))
		}
	}
}

// people computes the keys of agents, members, invites and requests to join.
func (b *books) people(c string) {
	tx := b.tx
	for id, a := range entity.AgentTable.All(tx, ledger.CompanyID(c)) {
		b.owned(ledger.CompanyID(c), id)
		b.index(ledger.CompanyID(c), "agent-urlkey", a.URLKey(), id)
		b.index(ledger.CompanyID(c), "agent-manager", entity.ManagerValue(a), id)
		b.index(ledger.CompanyID(c), "agent-status", string(a.Status), id)
	}
	for id, k := range people.AgentKeys.All(tx, ledger.CompanyID(c)) {
		b.key(people.KeyCompanyKey(id), c)
		b.index(ledger.CompanyID(c), "agent-key-agent", k.Agent, id)
		if k.RevokedAt == 0 {
			b.key(people.TokenKey(k.Hash), id)
		}
	}
	for id, i := range people.Invites.All(tx, ledger.CompanyID(c)) {
		b.key(people.InviteCompanyKey(id), c)
		b.key(people.InviteTokenKey(i.Hash), id)
	}
	for id, j := range people.JoinRequests.All(tx, ledger.CompanyID(c)) {
		b.key(people.JoinCompanyKey(id), c)
		if j.Status == people.JoinPending {
			b.index(ledger.CompanyID(c), "join-pending", "all", id)
		}
	}
	for id, s := range secret.Secrets.All(tx, ledger.CompanyID(c)) {
		b.owned(ledger.CompanyID(c), id)
		if s.Scope == "company" {
			b.index(ledger.CompanyID(c), "secret-name", url.PathEscape(s.Name), id)
			b.index(ledger.CompanyID(c), "secret-key", strings.ToLower(s.Key), id)
		} else {
			b.index(ledger.CompanyID(c), "secret-user", string(s.Definition)+"."+url.PathEscape(string(s.Owner)), id)
		}
	}
}

// runs computes the keys of runs, their wakes, logs and placement.
func (b *books) runs(c string, blobs map[string]uint32) {
	tx := b.tx
	for id, r := range entity.RunTable.All(tx, ledger.CompanyID(c)) {
		b.key(entity.RunCompanyKey(id), c)
		b.index(ledger.CompanyID(c), "run-time", entity.AllRuns, r.Ref())
		b.index(ledger.CompanyID(c), "run-agent", r.Agent, r.Ref())
		b.some(ledger.CompanyID(c), "run-issue", r.Context.IssueID, r.Ref())
		if r.Status.Live() {
			b.index(ledger.CompanyID(c), "run-live", r.Agent, id)
		}
		switch {
		case r.Status.Live() && r.Session == 0 && r.Status != entity.RunRunning:
			b.key(entity.QueueKey(r), string(entity.QueueValue(r)))
		case r.Session != 0 && (r.Status.Live() || r.Owed):
			b.key(entity.SessionKey(r.Session, id), c)
		case r.Session != 0 && r.ControlDeadlineAt != 0: // the fixture that stands for a node never sets Owed
			b.may[string(entity.SessionKey(r.Session, id))] = true
		}
		if d := r.Decisions; d != nil && d.KeptAt != 0 {
			b.may[string(entity.LogKeptKey(max(r.LogKeptAt, d.KeptAt), id))] = true
			blobs[string(entity.BlobKey(d.SHA256, ledger.CompanyID(c)))]++
		}
		if r.LogKeptAt != 0 {
			b.may[string(entity.LogKeptKey(r.LogKeptAt, id))] = true
			blobs[string(entity.BlobKey(string(r.LogSHA256), ledger.CompanyID(c)))]++
		}
	}
	ordered := map[string]bool{}
	for k, id := range tx.Prefix(ledger.Key("c", c, "wakeup-order", "")) {
		if tx.Has(entity.Wakeups.Key(ledger.CompanyID(c), string(id))) {
			b.key(slices.Clone(k), string(id))
			ordered[string(id)] = true
		}
	}
	for id, u := range entity.Wakeups.All(tx, ledger.CompanyID(c)) {
		if !ordered[id] {
			b.key(entity.WakeupOrderKey(ledger.CompanyID(c), u.Agent, 0), id)
		}
		if u.IdempotencyKey != "" {
			b.key(entity.WakeupOnceKey(ledger.CompanyID(c), u.Agent, string(u.IdempotencyKey)), id)
		}
	}
}

func (b *books) files(c ledger.CompanyID, blobs map[string]uint32) {
	tx := b.tx
	for id, a := range file.Assets.All(tx, c) {
		b.owned(c, id)
		b.key(file.ObjectKey(c, a.ObjectKey), id)
		b.index(c, "asset-created", ledger.Order(uint64(a.CreatedAt)), id)
		blobs[string(entity.BlobKey(a.SHA256, c))]++
	}
	for id, a := range file.Attachments.All(tx, c) {
		b.owned(c, id)
		b.index(c, "attachment-issue", a.Issue, id)
	}
	for id, w := range file.Products.All(tx, c) {
		b.owned(c, id)
		b.index(c, "work-product-issue", w.Issue, id)
	}
	staged := uint64(0)
	for name, p := range company.Parts.All(tx, c) {
		if p.Refs == 0 {
			b.index(c, "part-staged", ledger.Order(uint64(p.At)), name)
			staged += uint64(len(p.Bytes))
		}
	}
	if total, _ := company.PartTotals.Get(tx, c, company.TotalKey); total.Staged != staged {
		b.want[string(company.PartTotals.Key(c, company.TotalKey))] = fmt.Sprintf("%d bytes staged", staged)
	}
}

func (b *books) money(c ledger.CompanyID) {
	tx := b.tx
	for row, e := range money.CostEvents.All(tx, c) {
		b.key(money.CostIDKey(c, e.ID), row)
		b.index(c, "cost-agent", e.Agent, row)
	}
	for id, in := range money.Incidents.All(tx, c) {
		b.index(c, "budget-incident-status", in.Status, id)
	}
	for id, r := range money.Reservations.All(tx, c) {
		switch r.Status {
		case money.ReservationOpen:
			b.index(c, "reservation-open", r.Node, id)
		case money.ReservationSettled:
			b.index(c, "reservation-done", money.AllDone, r.DoneRef())
		}
	}
}

// places computes the keys of execution workspaces, services and operations.
func (b *books) places(c string) {
	tx := b.tx
	for id, w := range place.ExecWorkspaces.All(tx, ledger.CompanyID(c)) {
		b.key(place.ExecCompanyKey(id), c)
		b.index(ledger.CompanyID(c), "exec-workspace-created", ledger.Order(uint64(w.CreatedAt)), id)
		if !w.Gone {
			b.some(ledger.CompanyID(c), "exec-workspace-of", string(w.SourceIssue), id)
			b.some(ledger.CompanyID(c), "exec-workspace-of", w.Project, id)
			if w.Status != place.WorkspaceArchived {
				b.some(ledger.CompanyID(c), "exec-workspace-issue", string(w.SourceIssue), id)
			}
		}
		b.may[string(place.ExecCleanupKey(string(w.Node), id))] = true
		if w.CleanupEligibleAt == 0 {
			delete(b.may, string(place.ExecCleanupKey(string(w.Node), id)))
		}
	}
	for id, s := range place.Services.All(tx, ledger.CompanyID(c)) {
		b.key(place.ServiceCompanyKey(id), c)
		b.index(ledger.CompanyID(c), "runtime-service-of", s.Place, id)
		b.may[string(place.ServiceNodeKey(string(s.Node), id))] = true
	}
	for id, o := range place.Operations.All(tx, ledger.CompanyID(c)) {
		b.key(place.OperationCompanyKey(id), c)
		b.index(ledger.CompanyID(c), "workspace-op-of", o.Place, id)
		b.some(ledger.CompanyID(c), "workspace-op-run", string(o.Run), id)
		b.may[string(place.OperationNodeKey(string(o.Node), id))] = true
	}
}

func (b *books) routines(c string) {
	tx := b.tx
	for id := range routine.Routines.All(tx, ledger.CompanyID(c)) {
		b.owned(ledger.CompanyID(c), id)
	}
	for id, t := range routine.RoutineTriggers.All(tx, ledger.CompanyID(c)) {
		b.owned(ledger.CompanyID(c), id)
		b.index(ledger.CompanyID(c), "routine-trigger-of", t.Routine, id)
		if t.PublicID != "" {
			b.key(routine.PublicTriggerKey(string(t.PublicID)), c+"/"+id)
		}
		if t.Due != 0 {
			b.key(routine.RoutineDueKey(t), c)
		}
	}
	for id, r := range routine.RoutineRuns.All(tx, ledger.CompanyID(c)) {
		b.key(routine.RoutineRunOrderKey(ledger.CompanyID(c), r.Routine, r.Number), id)
		if r.IdempotencyKey != "" {
			b.key(routine.RoutineOnceKey(ledger.CompanyID(c), r.Routine, string(r.IdempotencyKey)), id)
		}
	}
}

// memories computes the keys of memories and their counters.
func (b *books) memories(c string) {
	var sum memory.Count
	memory.Each(b.tx, ledger.CompanyID(c), func(r memory.Record) bool {
		b.owned(ledger.CompanyID(c), r.ID)
		if r.ExpiresAt != 0 {
			b.index(ledger.CompanyID(c), "memory-expiry", ledger.Order(uint64(r.ExpiresAt)), r.ID)
		}
		sum.Records++
		sum.Bytes += int64(len(r.Text) + len(r.Vector))
		return true
	})
	if n := memory.CountOf(b.tx, ledger.CompanyID(c)); n.Records != sum.Records || n.Bytes != sum.Bytes {
		b.want[string(ledger.Key("c", c, "memory-count", "total"))] = fmt.Sprintf("%d records, %d bytes",
			sum.Records, sum.Bytes)
	}
}

// kept returns the existing keys of all families.
func (b *books) kept(of []string) map[string]bool {
	var prefixes [][]byte
	for _, c := range of {
		for _, family := range bookFamilies {
			prefixes = append(prefixes, ledger.Key("c", c, family, ""), ledger.Key("c", c, family))
		}
	}
	for _, family := range bookSpanning {
		prefixes = append(prefixes, ledger.Key(family, ""))
	}
	seen := map[string]bool{}
	for _, prefix := range prefixes {
		if !strings.HasSuffix(string(prefix), "/") { // a single key
			if _, ok := b.tx.Get(prefix); ok {
				seen[string(prefix)] = true
			}
			continue
		}
		for k := range b.tx.Prefix(prefix) {
			seen[string(k)] = true
		}
	}
	return seen
}

// wrong returns a difference between the stored keys and those that follow from the rows.
func (b *books) wrong(of ...string) string {
	for _, k := range slices.Sorted(maps.Keys(b.kept(of))) {
		if _, ok := b.want[k]; !ok && !b.may[k] {
			return "a key without its row: " + plain(k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(b.want)) {
		if v, ok := b.tx.Get([]byte(k)); !ok || string(v) != b.want[k] {
			return fmt.Sprintf("a row without its key: %s is %q (%v), want %q", plain(k), v, ok, b.want[k])
		}
	}
	return ""
}

func plain(k string) string {
	for _, r := range k {
		if r < ' ' || r > '~' {
			return hex.EncodeToString([]byte(k))
		}
	}
	return k
}

// Each way in which a key can differ from its row is found.
func TestTheBooksSeeWhatParted(t *testing.T) {
	t.Parallel()
	s := newStory(t, map[string]int{})
	tellOfIssues(s)
	if bad := booksOf(s.Tx, string(s.Company)).wrong(string(s.Company)); bad != "" {
		t.Fatal(bad)
	}
	n := 0
	for _, family := range bookFamilies {
		for k := range s.Tx.Prefix(ledger.Key("c", string(s.Company), family, "")) {
			tx := s.Tx.Child()
			if tx.Delete(k); booksOf(tx, string(s.Company)).wrong(string(s.Company)) == "" {
				t.Errorf("%s is gone and nobody sees it", k)
			}
			n++
			break
		}
		tx := s.Tx.Child()
		if tx.Set(ledger.Key("c", string(s.Company), family, companytest.UID(7), companytest.UID(8)), nil); booksOf(tx,
			string(s.Company)).wrong(string(s.Company)) == "" {
			t.Errorf("a key of %s without a row, and nobody sees it", family)
		}
	}
	if n < 12 {
		t.Errorf("only %d families were tried", n)
	}
}
