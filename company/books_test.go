package company

import (
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// Books are all rows of a state with what follows from them: every key by which a
// row is found, and its value. They are made anew from the rows alone, so that what
// the rules kept up by themselves can be compared.
type books struct {
	tx   *ledger.Tx
	want map[string]string // by key
	may  map[string]bool   // keys that may be there besides
}

// bookFamilies are the keys of a company that are no rows, each of which follows
// from rows; spanning are those that lie outside of companies.
var (
	bookFamilies = []string{"agent-urlkey", "agent-manager", "agent-status", "approval-status-type", "approval-by-issue", "issue-by-approval", "approval-by-agent",
		"asset-created", "asset-object", "attachment-issue", "budget-incident-status", "comment-at", "comment-request", "cost-agent", "cost-id",
		"exec-workspace-created", "exec-workspace-issue", "exec-workspace-of", "goal-parent", "goal-root", "interaction-pending", "interaction-request", "join-pending",
		"issue-assignee", "issue-project", "issue-goal", "issue-parent", "issue-label", "issue-blocks", "issue-held", "issue-status", "issue-touch", "issue-count",
		"agent-key-agent", "part-staged", "work-product-issue", "workspace-project", "reservation-open", "reservation-done", "routine-trigger-of", "routine-issue",
		"routine-run-order", "routine-run-once", "run-time", "run-agent", "run-issue", "run-live", "runtime-service-of", "secret-name", "secret-key", "secret-user",
		"workspace-op-of", "workspace-op-run", "watchdog-agent", "tree-hold-active", "wakeup-order", "wakeup-once"}
	bookSpanning = []string{"i", "approval-company", "blob", "board-key-token", "board-key-user", "exec-workspace-company", "exec-cleanup", "invite-token", "invite-company", "join-company",
		"issue-company", "issue-identifier", "issue-monitor", "agent-key-company", "agent-key-token", "label-company", "routine-due", "routine-public",
		"run-company", "sched", "run-log-kept", "runtime-service-company", "runtime-service-node", "workspace-op-company", "workspace-op-node",
		"user-email", "user-session-token", "user-session-of"}
)

func (b *books) key(key []byte, value string) { b.want[string(key)] = value }
func (b *books) index(company, name, value, id string) {
	b.key(ledger.Key("c", company, name, value, id), "")
}
func (b *books) some(company, name, value, id string) {
	if value != "" {
		b.index(company, name, value, id)
	}
}
func (b *books) owned(company, id string) { b.key(ownerKey(id), company) }

// booksOf makes the books of some companies, and of the mesh.
func booksOf(tx *ledger.Tx, of ...string) *books {
	of = slices.Compact(slices.Sorted(slices.Values(of)))
	b := &books{tx: tx, want: map[string]string{}, may: map[string]bool{}}
	blobs := map[string]uint32{}
	for _, c := range of {
		b.work(c)
		b.people(c)
		b.runs(c, blobs)
		b.files(c, blobs)
		b.money(c)
		b.places(c)
		b.routines(c)
	}
	for key, refs := range blobs {
		got, _ := tx.Get([]byte(key))
		b.want[key] = string(got)
		if got != nil && decodeRow[BlobRef](got).Refs != refs {
			b.want[key] = fmt.Sprintf("%d references", refs)
		}
	}
	for id, k := range boardKeys.All(tx) {
		b.key(boardUserKey(k.User, id), "")
		if k.RevokedAt == 0 {
			b.key(boardTokenKey(k.Hash), id)
		}
	}
	for id, u := range users.All(tx) {
		b.key(emailKey(u.Email), id)
	}
	for id, s := range userSessions.All(tx) {
		b.key(sessionTokenKey(s.Hash), id)
		b.key(userSessionKey(s.User, id), "")
	}
	return b
}

// work is what there is to do: goals, projects, issues, and what is said on them.
func (b *books) work(c string) {
	tx := b.tx
	var oldest Goal
	for id, g := range goals.All(tx, c) {
		b.owned(c, id)
		b.some(c, "goal-parent", string(g.Parent), id)
		if g.root() && (oldest.ID == "" || g.CreatedAt < oldest.CreatedAt) {
			oldest = g
		}
	}
	if oldest.ID != "" {
		b.key(rootGoalKey(c), oldest.ID)
	}
	for id := range projects.All(tx, c) {
		b.owned(c, id)
	}
	for id, w := range workspaces.All(tx, c) {
		b.owned(c, id)
		b.index(c, "workspace-project", w.Project, id)
	}
	for id := range labels.All(tx, c) {
		b.key(labelCompanyKey(id), c)
	}
	for id := range folders.All(tx, c) {
		b.owned(c, id)
	}
	for id := range namedEnvironments.All(tx, c) {
		b.owned(c, id)
	}
	counts := map[IssueStatus]int{}
	for id, i := range issues.All(tx, c) {
		b.key(issueCompanyKey(id), c)
		b.key(identifierKey(i.Identifier), c+"/"+id)
		hidden := ""
		if i.HiddenAt != 0 {
			hidden = "\x01"
		} else {
			counts[i.Status]++
		}
		b.key(issueStatusKey(i), hidden)
		b.some(c, "issue-assignee", i.assigned(), id)
		b.some(c, "issue-project", i.Project, id)
		b.some(c, "issue-goal", i.Goal, id)
		b.some(c, "issue-parent", i.Parent, id)
		b.some(c, "issue-held", i.CheckoutRun, id)
		for _, l := range i.Labels {
			b.index(c, "issue-label", l, id)
		}
		for _, other := range i.BlockedBy {
			b.index(c, "issue-blocks", other, id)
		}
		b.some(c, "issue-touch", hands("made", "user", i.CreatedUser), id)
		b.some(c, "issue-touch", hands("made", "agent", i.CreatedAgent), id)
		b.some(c, "issue-touch", hands("has", "user", i.AssigneeUser), id)
		if i.monitors() {
			b.key(monitorKey(i), c)
		}
		if i.OriginKind == OriginRoutine && !i.Status.Terminal() && tx.Has(routines.Key(c, i.OriginID)) {
			b.index(c, "routine-issue", i.OriginID, id)
		}
	}
	if !maps.Equal(counts, CountIssues(tx, c)) {
		b.want[string(issueCountKey(c))] = fmt.Sprint(counts)
	} else {
		b.may[string(issueCountKey(c))] = true
	}
	said := map[string]uint64{}
	prefix := comments.Key(c, "")
	for k, v := range tx.Prefix(prefix) {
		cm := decodeRow[Comment](v)
		row := string(k[len(prefix):])
		b.key(commentAtKey(c, cm.ID), row)
		if cm.ClientRequest != "" {
			b.key(commentRequestKey(c, cm.Issue, string(cm.ClientRequest)), row)
		}
		if cm.DeletedAt == 0 {
			said[cm.Issue+"."+cm.voice()]++
		}
	}
	for key, row := range saidOn.All(tx, c) {
		issue, who, _ := strings.Cut(key, ".")
		b.index(c, "issue-touch", "said."+who, issue)
		if row.Count != said[key] && who != otherVoices {
			b.want[string(saidOn.Key(c, key))] = fmt.Sprintf("%d comments", said[key])
		}
		delete(said, key)
	}
	for key := range said {
		b.want[string(saidOn.Key(c, key))] = "somebody spoke"
	}
	prefix = interactions.Key(c, "")
	for k, v := range tx.Prefix(prefix) {
		in := decodeRow[Interaction](v)
		if in.Status == "pending" {
			b.index(c, "interaction-pending", in.Issue, ledger.Order(in.Seq))
		}
		if in.IdempotencyKey != "" {
			b.key(interactionRequestKey(c, in.Issue, string(in.IdempotencyKey)), string(k[len(prefix):]))
		}
	}
	for id, a := range approvals.All(tx, c) {
		b.key(approvalCompanyKey(id), c)
		b.index(c, "approval-status-type", a.state(), a.ref())
		for issue := range issuesByApproval.IDs(tx, c, id, false) {
			b.index(c, "approval-by-issue", issue, a.ref())
			if tx.Has(issues.Key(c, issue)) {
				b.index(c, "issue-by-approval", id, issue)
			}
		}
		if a.Agent != "" && agentExists(tx, c, string(a.Agent)) {
			b.index(c, "approval-by-agent", string(a.Agent), id)
		}
	}
	for id, w := range watchdogs.All(tx, c) {
		b.index(c, "watchdog-agent", w.Agent, id)
	}
	prefix = treeHolds.Key(c, "")
	for k, v := range tx.Prefix(prefix) {
		if h := decodeRow[TreeHold](v); h.Status == "active" && (h.Mode == "pause" || h.Mode == "cancel") {
			b.key(activeHoldKey(c, h.Root, h.Mode), string(k[len(prefix):]))
		}
	}
}

// people are agents, members, and those who want to be.
func (b *books) people(c string) {
	tx := b.tx
	for id, a := range agents.All(tx, c) {
		b.owned(c, id)
		b.index(c, "agent-urlkey", a.URLKey(), id)
		b.index(c, "agent-manager", managerValue(a), id)
		b.index(c, "agent-status", string(a.Status), id)
	}
	for id, k := range agentKeys.All(tx, c) {
		b.key(keyCompanyKey(id), c)
		b.index(c, "agent-key-agent", k.Agent, id)
		if k.RevokedAt == 0 {
			b.key(tokenKey(k.Hash), id)
		}
	}
	for id, i := range invites.All(tx, c) {
		b.key(inviteCompanyKey(id), c)
		b.key(inviteTokenKey(i.Hash), id)
	}
	for id, j := range joinRequests.All(tx, c) {
		b.key(joinCompanyKey(id), c)
		if j.Status == JoinPending {
			b.index(c, "join-pending", "all", id)
		}
	}
	for id, s := range secrets.All(tx, c) {
		b.owned(c, id)
		if s.Scope == "company" {
			b.index(c, "secret-name", url.PathEscape(s.Name), id)
			b.index(c, "secret-key", strings.ToLower(s.Key), id)
		} else {
			b.index(c, "secret-user", string(s.Definition)+"."+url.PathEscape(string(s.Owner)), id)
		}
	}
}

// runs are runs with what wakes, keeps and places them.
func (b *books) runs(c string, blobs map[string]uint32) {
	tx := b.tx
	for id, r := range runs.All(tx, c) {
		b.key(runCompanyKey(id), c)
		b.index(c, "run-time", allRuns, r.ref())
		b.index(c, "run-agent", r.Agent, r.ref())
		b.some(c, "run-issue", r.Context.IssueID, r.ref())
		if r.Status.Live() {
			b.index(c, "run-live", r.Agent, id)
		}
		switch {
		case r.Status.Live() && r.Session == 0 && r.Status != RunRunning:
			b.key(queueKey(r), string(queueValue(r)))
		case r.Session != 0 && (r.Status.Live() || r.Owed):
			b.key(sessionKey(r.Session, id), c)
		case r.Session != 0 && r.ControlDeadlineAt != 0: // what stands for a node in tests owes nothing
			b.may[string(sessionKey(r.Session, id))] = true
		}
		if r.LogKeptAt != 0 {
			b.may[string(logKeptKey(r.LogKeptAt, id))] = true
			blobs[string(blobKey(string(r.LogSHA256), c))]++
		}
	}
	ordered := map[string]bool{}
	for k, id := range tx.Prefix(ledger.Key("c", c, "wakeup-order", "")) {
		if tx.Has(wakeups.Key(c, string(id))) {
			b.key(slices.Clone(k), string(id))
			ordered[string(id)] = true
		}
	}
	for id, u := range wakeups.All(tx, c) {
		if !ordered[id] {
			b.key(wakeupOrderKey(c, u.Agent, 0), id)
		}
		if u.IdempotencyKey != "" {
			b.key(wakeupOnceKey(c, u.Agent, string(u.IdempotencyKey)), id)
		}
	}
}

func (b *books) files(c string, blobs map[string]uint32) {
	tx := b.tx
	for id, a := range assets.All(tx, c) {
		b.owned(c, id)
		b.key(objectKey(c, a.ObjectKey), id)
		b.index(c, "asset-created", ledger.Order(uint64(a.CreatedAt)), id)
		blobs[string(blobKey(a.SHA256, c))]++
	}
	for id, a := range attachments.All(tx, c) {
		b.owned(c, id)
		b.index(c, "attachment-issue", a.Issue, id)
	}
	for id, w := range products.All(tx, c) {
		b.owned(c, id)
		b.index(c, "work-product-issue", w.Issue, id)
	}
	staged := uint64(0)
	for name, p := range parts.All(tx, c) {
		if p.Refs == 0 {
			b.index(c, "part-staged", ledger.Order(uint64(p.At)), name)
			staged += uint64(len(p.Bytes))
		}
	}
	if total, _ := partTotals.Get(tx, c, totalKey); total.Staged != staged {
		b.want[string(partTotals.Key(c, totalKey))] = fmt.Sprintf("%d bytes staged", staged)
	}
}

func (b *books) money(c string) {
	tx := b.tx
	for row, e := range costEvents.All(tx, c) {
		b.key(costIDKey(c, e.ID), row)
		b.index(c, "cost-agent", e.Agent, row)
	}
	for id, in := range incidents.All(tx, c) {
		b.index(c, "budget-incident-status", in.Status, id)
	}
	for id, r := range reservations.All(tx, c) {
		switch r.Status {
		case ReservationOpen:
			b.index(c, "reservation-open", r.Node, id)
		case ReservationSettled:
			b.index(c, "reservation-done", allDone, r.doneRef())
		}
	}
}

// places are working trees with what goes on in them.
func (b *books) places(c string) {
	tx := b.tx
	for id, w := range execWorkspaces.All(tx, c) {
		b.key(execCompanyKey(id), c)
		b.index(c, "exec-workspace-created", ledger.Order(uint64(w.CreatedAt)), id)
		if !w.Gone {
			b.some(c, "exec-workspace-of", string(w.SourceIssue), id)
			b.some(c, "exec-workspace-of", w.Project, id)
			if w.Status != WorkspaceArchived {
				b.some(c, "exec-workspace-issue", string(w.SourceIssue), id)
			}
		}
		b.may[string(execCleanupKey(string(w.Node), id))] = true
		if w.CleanupEligibleAt == 0 {
			delete(b.may, string(execCleanupKey(string(w.Node), id)))
		}
	}
	for id, s := range services.All(tx, c) {
		b.key(serviceCompanyKey(id), c)
		b.index(c, "runtime-service-of", s.Place, id)
		b.may[string(serviceNodeKey(string(s.Node), id))] = true
	}
	for id, o := range operations.All(tx, c) {
		b.key(operationCompanyKey(id), c)
		b.index(c, "workspace-op-of", o.Place, id)
		b.some(c, "workspace-op-run", string(o.Run), id)
		b.may[string(operationNodeKey(string(o.Node), id))] = true
	}
}

func (b *books) routines(c string) {
	tx := b.tx
	for id := range routines.All(tx, c) {
		b.owned(c, id)
	}
	for id, t := range routineTriggers.All(tx, c) {
		b.owned(c, id)
		b.index(c, "routine-trigger-of", t.Routine, id)
		if t.PublicID != "" {
			b.key(publicTriggerKey(string(t.PublicID)), c+"/"+id)
		}
		if t.Due != 0 {
			b.key(routineDueKey(t), c)
		}
	}
	for id, r := range routineRuns.All(tx, c) {
		b.key(routineRunOrderKey(c, r.Routine, r.Number), id)
		if r.IdempotencyKey != "" {
			b.key(routineOnceKey(c, r.Routine, string(r.IdempotencyKey)), id)
		}
	}
}

// kept are the keys of all families.
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
		if !strings.HasSuffix(string(prefix), "/") { // a key of its own
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

// wrong compares what is kept with what follows from the rows.
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

// Each way in which a key and its row can part is seen.
func TestTheBooksSeeWhatParted(t *testing.T) {
	t.Parallel()
	s := newStory(t, map[string]int{})
	tellOfIssues(s)
	if bad := booksOf(s.tx, s.company).wrong(s.company); bad != "" {
		t.Fatal(bad)
	}
	n := 0
	for _, family := range bookFamilies {
		for k := range s.tx.Prefix(ledger.Key("c", s.company, family, "")) {
			tx := s.tx.Child()
			if tx.Delete(k); booksOf(tx, s.company).wrong(s.company) == "" {
				t.Errorf("%s is gone and nobody sees it", k)
			}
			n++
			break
		}
		tx := s.tx.Child()
		if tx.Set(ledger.Key("c", s.company, family, uid(7), uid(8)), nil); booksOf(tx, s.company).wrong(s.company) == "" {
			t.Errorf("a key of %s without a row, and nobody sees it", family)
		}
	}
	if n < 12 {
		t.Errorf("only %d families were tried", n)
	}
}
