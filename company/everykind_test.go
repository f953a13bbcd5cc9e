package company

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// tellsNothing are the kinds that leave no line in the activity log, each with
// the reason. Whatever else is carried out leaves exactly one line of its own.
var tellsNothing = map[string]string{
	"run.place":           "where a run goes is told live, and by its lease when it starts",
	"run.return":          "a run that goes back to the queue as it was; told live",
	"run.report":          "how far a run is; told live, and by its end",
	"timer.tick":          "the run that it wakes is told live, and by its lease when it starts",
	"import_job.progress": "how far an import is; its beginning and its end are told",
	"part.put":            "bytes that are nothing yet; what they become part of is told",
}

// alreadyTold are the lines of what only takes up what another command told.
const alreadyTold = ""

// A storyteller carries out one command after the other on a company and looks,
// after each, at the lines that it left and whether the rules hold.
type storyteller struct {
	*player
	t       testing.TB
	told    map[string]int
	keys    *identity.Keys
	node    string
	session uint64
	quiet   bool                                      // nobody looks after each command
	before  func(c *ledger.Context)                   // a command is carried out; may be nil
	after   func(kind, own string, c *ledger.Context) // one was; may be nil
}

func newStory(t *testing.T, told map[string]int) *storyteller {
	s := &storyteller{player: &player{desk: newDesk(t)}, t: t, told: told, keys: identity.Derive(sha256.Sum256([]byte("n")))}
	s.node = string(s.keys.ID())
	ledger.NewMeshTable[ledger.Node]("node").Put(s.tx, s.node, ledger.Node{ID: s.keys.ID(), Key: s.keys.Public()})
	s.session = s.newSession()
	return s
}

func (s *storyteller) newSession() uint64 {
	s.height++
	sessionRows.Put(s.tx, ledger.Order(s.height), ledger.Session{ID: s.height, Node: s.keys.ID()})
	return s.height
}

// ofMesh reports whether a kind is about the mesh, and not about a company.
func ofMesh(kind string) bool {
	noun, _, _ := strings.Cut(kind, ".")
	return slices.Contains([]string{"mesh", "node", "user", "instance", "board_key", "cli_auth", "import_job"}, noun)
}

// by carries a command out for the board or an agent; lines are the actions of
// the lines that it leaves, its own first.
func (s *storyteller) by(who as, kind string, payload any, lines string, out ...any) {
	s.t.Helper()
	s.carryOut(s.context(who, kind, payload), kind, lines, out)
}

// byNode carries one out for the node.
func (s *storyteller) byNode(kind string, payload any, lines string, out ...any) {
	s.t.Helper()
	c := s.context(board, kind, payload)
	c.Cmd.Actor, c.Cmd.Credential, c.Session = ledger.Actor{Type: "node", ID: s.node}, ledger.Credential{Kind: "node", ID: s.node}, s.session
	s.carryOut(c, kind, lines, out)
}

// byUser carries one out for a person who is signed in.
func (s *storyteller) byUser(user, session, kind string, payload any, lines string, out ...any) {
	s.t.Helper()
	c := s.context(board, kind, payload)
	c.Cmd.Actor, c.Cmd.Credential = ledger.Actor{Type: "user", ID: user}, ledger.Credential{Kind: "session", ID: session}
	s.carryOut(c, kind, lines, out)
}

func (s *storyteller) carryOut(c *ledger.Context, kind, lines string, out []any) {
	s.t.Helper()
	column := map[string]Givers{"user": FromBoard, "agent": FromAgent, "node": FromNode, "system": FromNode}[c.Cmd.Actor.Type]
	if row, _ := KindOf(kind); row.From&column == 0 {
		s.t.Fatalf("%s is not for a %s", kind, c.Cmd.Actor.Type)
	}
	if ofMesh(kind) {
		c.Cmd.Company = ""
	}
	if s.before != nil {
		s.before(c)
	}
	c.Mesh, c.Origin, c.Tx = "m", s.keys.ID(), s.tx.Child()
	v, err := s.mux[kind](c)
	if err != nil {
		s.t.Fatalf("%s: %v", kind, err)
	}
	c.Tx.Merge()
	s.told[kind]++
	var got []string
	for _, ch := range c.Changes() {
		if !Live(ch) {
			got = append(got, ch.Action)
		}
		if ch.EntityType == "" || ch.EntityID == "" || len(ch.Details) > 0 && !json.Valid(ch.Details) {
			s.t.Errorf("%s leaves a line about nothing, or no JSON: %+v", kind, ch)
		}
	}
	own, besides, _ := strings.Cut(lines, " & ")
	want := strings.Fields(besides)
	if besides == "leases" { // of as many runs as one command tells of
		want, got = nil, slices.DeleteFunc(got, func(action string) bool { return action == "environment.lease_released" })
	}
	silent := tellsNothing[kind] != "" || own == alreadyTold && s.told[kind] > 1
	if !silent {
		want = append(want, own)
	}
	slices.Sort(want)
	sorted := slices.Sorted(slices.Values(got))
	if !slices.Equal(sorted, want) || !silent && occurs(got, own) != 1 {
		s.t.Errorf("%s leaves %q, want %q", kind, strings.Join(got, " "), lines)
	}
	if !s.quiet {
		if bad := s.check() + s.checkMore(); bad != "" {
			s.t.Fatalf("after %s: %s", kind, bad)
		}
		if bad := booksOf(s.tx, uid(1), s.company).wrong(uid(1), s.company); bad != "" {
			s.t.Fatalf("after %s: %s", kind, bad)
		}
	}
	for _, o := range out {
		if err := ledger.Unmarshal(v, o); err != nil {
			s.t.Fatal(err)
		}
	}
	if s.after != nil {
		s.after(kind, own, c)
	}
}

func occurs(list []string, of string) (n int) {
	for _, x := range list {
		if x == of {
			n++
		}
	}
	return n
}

// Each kind of command that a node knows is carried out at least once, leaves
// exactly one line of its own in the activity log, and no rule broken. A new
// kind is missed here until a story tells of it.
func TestEveryKindLeavesOneLine(t *testing.T) {
	t.Parallel()
	told := map[string]int{}
	for _, story := range stories {
		t.Run(story.of, func(t *testing.T) { story.tell(newStory(t, told)) })
	}
	for _, kind := range Handlers().Kinds() {
		if told[kind] == 0 {
			t.Errorf("no story tells of %s", kind)
		}
	}
	for kind := range tellsNothing {
		if told[kind] == 0 {
			t.Errorf("%s is among those that leave no line, and there is no such command", kind)
		}
	}
}

// stories are all there are; together they tell of each kind.
var stories = []struct {
	of   string
	tell func(*storyteller)
}{{"companies", tellOfCompanies}, {"issues", tellOfIssues}, {"documents", tellOfDocuments}, {"interactions", tellOfInteractions}, {"agents", tellOfAgents},
	{"approvals", tellOfApprovals}, {"access", tellOfAccess}, {"people", tellOfPeople}, {"money", tellOfMoney}, {"runs", tellOfRuns},
	{"workspaces", tellOfWorkspaces}, {"routines", tellOfRoutines}, {"skills", tellOfSkills}, {"secrets", tellOfSecrets}, {"the mesh", tellOfTheMesh},
	{"imports", tellOfImports}, {"upkeep", tellOfUpkeep}}

func tellOfCompanies(s *storyteller) {
	other := s.id()
	s.company = other
	s.by(board, "company.create", SaveCompany{ID: other, Name: new("Other")}, "company.created")
	s.by(board, "company.update", SaveCompany{Description: new("d")}, "company.updated")
	s.by(board, "company.branding", SaveCompany{BrandColor: new("#123456")}, "company.branding_updated")
	s.by(board, "company.pause", ChangeCompany{}, "company.paused")
	s.by(board, "company.resume", ChangeCompany{}, "company.resumed")
	s.by(board, "activity.note", Note{Action: "lunch.eaten", EntityType: "lunch", EntityID: "1"}, "lunch.eaten")
	root, goal := s.id(), s.id()
	s.by(board, "goal.create", SaveGoal{ID: root, Title: new("Root"), Level: new(GoalLevel("company"))}, "goal.created")
	s.by(board, "goal.create", SaveGoal{ID: goal, Title: new("Team"), Level: new(GoalLevel("team")), Parent: &root}, "goal.created")
	s.by(board, "goal.update", SaveGoal{ID: goal, Title: new("Team A")}, "goal.updated")
	project, space := s.id(), s.id()
	s.by(board, "project.create", SaveProject{ID: project, Name: new("Site"), Goals: &[]string{goal}}, "project.created")
	s.by(board, "project.create", SaveProject{ID: s.id(), Name: new("Yard"), More: []SaveWorkspace{{ID: s.id(), RepoURL: new("https://example.com/a")}}}, "project.created")
	s.by(board, "project.update", SaveProject{ID: project, Name: new("Site 2")}, "project.updated")
	s.by(board, "workspace.create", SaveWorkspace{ID: space, Project: project, RepoURL: new("https://example.com/r")}, "project.workspace_created")
	s.by(board, "workspace.update", SaveWorkspace{ID: space, Project: project, Name: new("w")}, "project.workspace_updated")
	s.by(board, "workspace.delete", DeleteWorkspace{ID: space, Project: project}, "project.workspace_deleted")
	s.by(board, "resource.join", JoinResource{Kind: "project", ID: project, State: "joined"}, "resource_membership.updated")
	s.by(board, "project.delete", DeleteProject{ID: project}, "project.deleted")
	s.by(board, "goal.delete", DeleteGoal{ID: goal}, "goal.deleted")
	s.by(board, "sidebar.order", OrderSidebar{Ordered: []string{other}}, "sidebar_preferences.updated")
	var folder Folder
	s.by(board, "folder.save", SaveFolder{ID: s.id(), New: true, Kind: FolderRoutines, Name: new("Daily")}, "folder.created", &folder)
	r := s.routine(s.t, s.agent("Ada"), nil)
	s.by(board, "folder.file", FileItem{Kind: FolderRoutines, Item: r.ID, Folder: folder.ID}, "folder.item_moved")
	s.by(board, "folder.delete", DeleteFolder{ID: folder.ID}, "folder.deleted")
	label := s.id()
	s.by(board, "label.create", CreateLabel{ID: label, Name: "bug", Color: "#ff0000"}, "label.created")
	s.by(board, "label.delete", DeleteLabel{ID: label}, "label.deleted")
	late := s.agent("Late")
	for range maxStoppedRuns + 1 { // more than pausing ends at once
		s.run(late)
	}
	s.by(board, "company.pause", ChangeCompany{}, "company.paused & leases")
	s.byNode("company.settle", SettleCompany{}, "company.settled & leases")
	s.by(board, "company.resume", ChangeCompany{}, "company.resumed")
	s.by(board, "company.archive", ChangeCompany{}, "company.archived")
	s.by(board, "company.delete", ChangeCompany{}, "company.deleted")
}

func tellOfIssues(s *storyteller) {
	ada := s.hired("Ada")
	at := as{ada, s.run(ada)}
	id, comment := s.id(), s.id()
	s.by(board, "issue.create", CreateIssue{ID: id, Title: "T", Status: IssueTodo}, "issue.created")
	s.by(board, "issue.create", CreateIssue{ID: s.id(), Title: "Like T", InheritFrom: id}, "issue.created")
	s.by(at, "issue.checkout", CheckOutIssue{Issue: id, Agent: ada, Expected: []IssueStatus{IssueTodo}}, "issue.checked_out")
	s.by(at, "comment.create", CreateComment{ID: comment, Issue: id, Body: "word"}, "issue.comment_added")
	s.by(board, "issue.vote", CastVote{Issue: id, TargetType: "issue_comment", Target: comment, Vote: "up"}, "issue.feedback_vote_saved")
	s.by(at, "comment.delete", DeleteComment{Issue: id, ID: comment}, "issue.comment_deleted")
	s.by(at, "issue.release", ReleaseIssue{Issue: id}, "issue.released")
	s.by(at, "issue.checkout", CheckOutIssue{Issue: id, Agent: ada, Expected: []IssueStatus{IssueTodo}}, "issue.checked_out")
	s.by(board, "issue.force_release", ForceReleaseIssue{Issue: id, ClearAssignee: true}, "issue.admin_force_release")
	s.by(board, "issue.read", MarkIssue{Issue: id}, "issue.read_marked")
	s.by(board, "issue.unread", MarkIssue{Issue: id}, "issue.read_unmarked")
	s.by(board, "issue.archive", MarkIssue{Issue: id}, "issue.inbox_archived")
	s.by(board, "issue.unarchive", MarkIssue{Issue: id}, "issue.inbox_unarchived")
	s.by(board, "inbox.dismiss", Dismiss{Key: "run:1"}, "inbox.dismissed")
	s.by(board, "inbox.restore", Dismiss{Key: "run:1"}, "inbox.restored")
	s.by(board, "watchdog.set", SetWatchdog{ID: s.id(), Issue: id, Agent: ada}, "issue.watchdog_created")
	s.by(board, "watchdog.remove", RemoveWatchdog{Issue: id}, "issue.watchdog_removed")
	hold := s.id()
	s.by(board, "tree.hold", HoldTree{ID: hold, Issue: id, Mode: "pause"}, "issue.tree_hold_created")
	s.by(board, "tree.release", ReleaseTree{Issue: id, Hold: hold}, "issue.tree_hold_released")
	due := TimeOf(s.now.Add(time.Hour))
	s.by(board, "issue.update", UpdateIssue{Issue: id, Status: IssueInProgress, Assignee: &ada, ExecutionPolicy: json.RawMessage(`{"monitor":{"nextCheckAt":"` + due.String() + `","maxAttempts":5}}`)}, "issue.updated")
	s.by(board, "issue.monitor", CheckMonitor{Issue: id}, "issue.monitor_triggered")

	// Comments that wait for the run at work to end.
	queued := s.issue(s.t, CreateIssue{Assignee: ada, Status: IssueBacklog})
	at = s.onIssue(s.t, ada, queued)
	one, two := s.id(), s.id()
	s.by(board, "comment.create", CreateComment{ID: one, Issue: queued.ID, Body: "one"}, "issue.comment_added")
	s.by(board, "comment.create", CreateComment{ID: two, Issue: queued.ID, Body: "two"}, "issue.comment_added")
	change := func(f func(*ChangeQueue)) ChangeQueue {
		q, _ := QueueOf(s.tx, s.load(queued.ID))
		p := ChangeQueue{Issue: queued.ID, Queue: q.Run.ID, Revision: q.Revision()}
		f(&p)
		return p
	}
	s.by(board, "queue.edit", change(func(p *ChangeQueue) { p.Comment, p.Body = one, "uno" }), "issue.queued_comment_edited")
	s.by(board, "queue.order", change(func(p *ChangeQueue) { p.Order = []string{two, one} }), "issue.queued_comments_ordered")
	s.by(board, "queue.drop", change(func(p *ChangeQueue) { p.Comment = two }), "issue.comment_deleted")
	s.by(board, "queue.interrupt", change(func(p *ChangeQueue) { p.Target = at.run }), "issue.queued_comments_interrupted & issue.lock_released environment.lease_released")
	s.onIssue(s.t, ada, queued)
	s.by(board, "comment.create", CreateComment{ID: s.id(), Issue: queued.ID, Body: "stop", Interrupt: true}, "issue.comment_added & heartbeat.cancelled issue.lock_released environment.lease_released")
	s.by(board, "issue.update", UpdateIssue{Issue: queued.ID, Status: IssueDone}, "issue.updated")
	s.by(board, "comment.create", CreateComment{ID: s.id(), Issue: queued.ID, Body: "go on", Resume: true}, "issue.comment_added & issue.updated")

	file := s.file("x")
	var attached Attached
	s.by(board, "attachment.create", CreateAttachment{Issue: id, ID: s.id(), File: file}, "issue.attachment_added", &attached)
	s.by(board, "attachment.delete", DeleteAttachment{ID: attached.Attachment.ID}, "issue.attachment_removed")
	s.by(board, "asset.create", CreateAsset{File: s.file("y")}, "asset.created")
	var product WorkProduct
	s.by(board, "product.create", SaveProduct{ID: s.id(), Issue: id, Type: new("commit"), Provider: new("git"), Title: new("c")}, "issue.work_product_created", &product)
	s.by(board, "product.update", SaveProduct{ID: product.ID, Status: new("merged")}, "issue.work_product_updated")
	s.by(board, "product.delete", DeleteProduct{ID: product.ID}, "issue.work_product_deleted")

	// An issue that nothing brings on.
	left := s.issue(s.t, CreateIssue{Status: IssueTodo, Assignee: ada})
	for r := range RunsOfIssue(s.tx, s.company, left.ID) {
		c := s.context(as{}, "", nil)
		endRun(c, r, Outcome{Status: RunCancelled})
	}
	s.now = s.now.Add(48 * time.Hour)
	s.byNode("issue.recover", RecoverIssue{Issue: left.ID}, "issue.continued")
	for r := range RunsOfIssue(s.tx, s.company, left.ID) {
		c := s.context(as{}, "", nil)
		endRun(c, r, Outcome{Status: RunCancelled})
		break
	}
	s.now = s.now.Add(48 * time.Hour)
	s.byNode("issue.recover", RecoverIssue{Issue: left.ID}, "issue.updated & issue.comment_added")
	s.by(board, "issue.resolve_recovery", ResolveRecovery{Issue: left.ID, Outcome: "restored", Status: IssueTodo}, "issue.recovery_action_resolved")
	s.by(board, "issue.delete", DeleteIssue{Issue: id}, "issue.deleted")
}

func tellOfDocuments(s *storyteller) {
	issue, revision := s.agreed(s.t)
	second := s.id()
	s.by(board, "document.save", SaveDocument{Issue: issue, Key: "plan", ID: s.id(), Revision: second, Base: revision, Format: "markdown", Body: "1. cut"}, "issue.document_updated")
	s.by(board, "document.restore", RestoreDocument{Issue: issue, Key: "plan", Revision: revision, ID: s.id()}, "issue.document_restored")
	s.by(board, "document.lock", ChangeDocument{Issue: issue, Key: "plan"}, "issue.document_locked")
	s.by(board, "document.unlock", ChangeDocument{Issue: issue, Key: "plan"}, "issue.document_unlocked")
	d, _ := DocumentOf(s.tx, s.load(issue), "plan")
	thread := s.id()
	s.by(board, "annotation.create", AnnotateDocument{ID: thread, Issue: issue, Key: "plan", Revision: d.Latest, Number: 3, Exact: "1.", End: 2, MarkdownEnd: 2, Comment: Remark{ID: s.id(), Body: "why"}}, "issue.document_annotation_created")
	s.by(board, "annotation.comment", ChangeAnnotation{Issue: issue, Key: "plan", Thread: thread, Comment: Remark{ID: s.id(), Body: "so"}}, "issue.document_annotation_commented")
	s.by(board, "annotation.update", ChangeAnnotation{Issue: issue, Key: "plan", Thread: thread, Status: "resolved"}, "issue.document_annotation_updated")
	s.agree(s.t, issue, d.Latest)
	s.by(board, "plan.decompose", DecomposePlan{ID: s.id(), Issue: issue, Revision: d.Latest, Children: []CreateIssue{{ID: s.id(), Title: "one"}}}, "issue.accepted_plan_decomposition_updated & issue.child_created")
	s.by(board, "document.delete", ChangeDocument{Issue: issue, Key: "plan"}, "issue.document_deleted")
}

func tellOfInteractions(s *storyteller) {
	ada := s.hired("Ada")
	i := s.issue(s.t, CreateIssue{Status: IssueTodo})
	asked := func(kind, payload string) string {
		in := s.asks(s.t, as{ada, s.run(ada)}, i.ID, kind, payload)
		return in.ID
	}
	id := s.id()
	s.by(board, "interaction.create", CreateInteraction{ID: id, Issue: i.ID, Kind: SuggestTasks, Payload: json.RawMessage(fourTasks)}, "issue.thread_interaction_created")
	s.by(board, "interaction.accept", ResolveInteraction{Issue: i.ID, ID: id}, "issue.thread_interaction_accepted & issue.created issue.created issue.created")
	question := `{"version":1,"questions":[{"id":"q","prompt":"Which?","selectionMode":"single","required":false,"options":[{"id":"a","label":"A"},{"id":"b","label":"B"}]}]}`
	s.by(board, "interaction.answer", ResolveInteraction{Issue: i.ID, ID: asked(AskQuestions, question), Answers: []Answer{{Question: "q", Options: []string{"a"}}}}, "issue.thread_interaction_answered")
	s.by(board, "interaction.reject", ResolveInteraction{Issue: i.ID, ID: asked(Confirmation, `{"version":1,"prompt":"Go?"}`), Reason: "no"}, "issue.thread_interaction_rejected")
	s.by(board, "interaction.cancel", ResolveInteraction{Issue: i.ID, ID: asked(AskQuestions, question)}, "issue.thread_interaction_cancelled")
	s.by(board, "interaction.withdraw", ResolveInteraction{Issue: i.ID, ID: asked(Confirmation, `{"version":1,"prompt":"Go on?"}`)}, "issue.thread_interaction_cancelled")
	s.by(board, "interaction.skip", ResolveInteraction{Issue: i.ID, ID: asked(AskQuestions, question)}, "issue.thread_interaction_cancelled")
	s.by(board, "interaction.judge", ResolveInteraction{Issue: i.ID, ID: asked(ItemVerdicts, `{"version":1,"prompt":"Keep?","items":[{"id":"x","label":"X"}]}`), Judged: []Verdict{{Item: "x", Verdict: "approve"}}}, "issue.thread_interaction_answered")
}

func tellOfAgents(s *storyteller) {
	ada := s.id()
	s.by(board, "agent.create", SaveAgent{ID: ada, Name: new("Ada"), AdapterType: new("process"), AdapterConfig: json.RawMessage(`{"command":"true"}`),
		RuntimeConfig: json.RawMessage(`{"heartbeat":{"enabled":true,"intervalSec":60,"wakeOnDemand":true}}`)}, "agent.created")
	s.by(board, "agent.update", SaveAgent{ID: ada, Title: new("Dr"), AdapterConfig: json.RawMessage(`{"command":"false"}`)}, "agent.updated")
	list := RevisionsOf(s.tx, s.company, ada)
	s.by(board, "agent.rollback", RollbackAgent{Agent: ada, Revision: list[0].ID}, "agent.config_rolled_back")
	yes := true
	s.by(board, "agent.permissions", GrantAgent{Agent: ada, Grant: Grant{CreateAgents: &yes}}, "agent.permissions_updated")
	s.by(board, "agent.pause", ChangeAgent{Agent: ada}, "agent.paused")
	s.by(board, "agent.resume", ChangeAgent{Agent: ada}, "agent.resumed")
	key := s.id()
	s.by(board, "agent_key.create", CreateKey{ID: key, Agent: ada, Name: "k", Hash: hexHash("a")}, "agent.key_created")
	s.by(board, "agent_key.revoke", RevokeKey{ID: key, Agent: ada}, "agent.key_revoked")
	s.by(board, "instructions.file", SaveInstructionFile{Agent: ada, Path: "AGENTS.md", Content: "do"}, "agent.instructions_file_updated")
	s.by(board, "instructions.set", SetInstructions{Agent: ada, Mode: new("external"), Root: new("/srv/ada"), Entry: new("A.md")}, "agent.instructions_bundle_updated")
	sk := s.skill(s.t, "weld")
	s.by(board, "agent.skills", SyncSkills{Agent: ada, Mode: "replace", Keys: []string{sk.Slug}}, "agent.skills_synced")
	s.by(board, "agent.reset_session", ResetSession{Agent: ada}, "agent.runtime_session_reset")
	s.by(board, "memory.put", PutMemory{ada, "page.0", "x"}, "agent.memory_put")
	s.by(board, "memory.delete", DropMemory{ada, "page.0"}, "agent.memory_deleted")
	letter := s.id()
	s.by(board, "message.send", SendMessage{ID: letter, To: ada, Payload: json.RawMessage(`1`)}, "agent.message_sent")
	s.by(as{ada, s.run(ada)}, "message.take", TakeMessages{ada, []string{letter}}, "agent.messages_taken")
	s.by(as{ada, s.run(ada)}, "tool.trace", TraceTools{Calls: []ToolCall{{Tool: "paperclipMe", Method: "GET", Path: "/api/agents/me", Status: 200, At: TimeOf(s.now)}}}, "mcp.tool_called")
	tm, ok := TimerOf(s.tx, s.company, ada)
	if !ok {
		s.t.Fatal("no timer")
	}
	s.now = s.now.Add(time.Hour)
	s.byNode("timer.tick", Tick{Agent: ada, Seq: tm.Seq}, "")
	s.by(board, "agent.wake", Wake{Agent: ada, Source: WakeOnDemand, TriggerDetail: "manual", Wakeup: s.id(), Run: s.id()}, "heartbeat.invoked")
	s.by(board, "agent.terminate", ChangeAgent{Agent: ada}, "agent.terminated & environment.lease_released environment.lease_released")
	s.by(board, "agent.delete", ChangeAgent{Agent: ada}, "agent.deleted")
	file := s.file("\x00asm")
	deploy := DeployTool{Name: "count", Description: "Count words", Effect: ToolEffect{Risk: 100}, File: file, Version: 1, Signer: s.node}
	deploy.Signature = ToolStatement{"m", s.company, deploy.Name, 1, file.SHA256}.Sign(s.keys)
	s.by(board, "tool.deploy", deploy, "tool.deployed")
	s.by(board, "tool.execute", ExecuteTool{Name: "count", Input: hexHash("a")}, "tool.executed")
	s.by(board, "tool.revoke", RevokeTool{Name: "count", Version: 1, Reason: "old"}, "tool.revoked")
}

func tellOfApprovals(s *storyteller) {
	i := s.issue(s.t, CreateIssue{})
	ask := func() string {
		id := s.id()
		s.by(board, "approval.create", CreateApproval{ID: id, Type: ApprovalRequest, Payload: json.RawMessage(`{"title":"T"}`)}, "approval.created")
		return id
	}
	first, second, third := ask(), ask(), ask()
	s.by(board, "approval.link", LinkApproval{Approval: first, Issue: i.ID}, "issue.approval_linked")
	s.by(board, "approval.comment", CommentApproval{ID: s.id(), Approval: first, Body: "why?"}, "approval.comment_added")
	s.by(board, "approval.revise", DecideApproval{Approval: first, Note: "more"}, "approval.revision_requested")
	s.by(board, "approval.resubmit", ResubmitApproval{Approval: first, Payload: json.RawMessage(`{"title":"T 2"}`)}, "approval.resubmitted")
	s.by(board, "approval.unlink", LinkApproval{Approval: first, Issue: i.ID}, "issue.approval_unlinked")
	s.by(board, "approval.approve", DecideApproval{Approval: first}, "approval.approved")
	s.by(board, "approval.reject", DecideApproval{Approval: second}, "approval.rejected")
	s.by(board, "approval.cancel", DecideApproval{Approval: third}, "approval.cancelled")
	yes, chief, hire := true, s.boss(s.t), s.id()
	s.must(s.t, board, "company.update", SaveCompany{RequireHireApproval: &yes}, nil)
	s.by(chief, "agent.hire", HireAgent{Agent: SaveAgent{ID: s.id(), Name: new("Bob"), AdapterType: new("process")}, Approval: hire}, "agent.hire_created & approval.created")
	s.by(board, "approval.approve", DecideApproval{Approval: hire}, "approval.approved & agent.hire_approved approval.requester_wakeup_queued")
}

func tellOfAccess(s *storyteller) {
	invite, gone := Invite{}, Invite{}
	s.by(board, "invite.create", CreateInvite{ID: s.id(), Hash: hexHash("6"), Joins: JoinBoth}, "invite.created", &invite)
	s.by(board, "invite.create", CreateInvite{ID: s.id(), Hash: hexHash("7"), Joins: JoinBoth}, "invite.created", &gone)
	s.by(board, "invite.revoke", RevokeInvite{ID: gone.ID}, "invite.revoked")
	request := s.id()
	s.byNode("invite.accept", AcceptInvite{ID: request, Hash: hexHash("6"), Type: JoinAgent, AgentName: "J", Adapter: "http", ClaimHash: hexHash("8")}, "join.requested")
	s.by(board, "join.approve", DecideJoin{ID: request}, "join.approved & agent.created")
	s.byNode("join.claim", ClaimKey{ID: request, ClaimHash: hexHash("8"), Key: s.id(), Hash: hexHash("9")}, "agent_api_key.claimed & agent.key_created")
	s.by(board, "invite.create", CreateInvite{ID: s.id(), Hash: hexHash("5"), Joins: JoinBoth}, "invite.created")
	request = s.id()
	s.byNode("invite.accept", AcceptInvite{ID: request, Hash: hexHash("5"), Type: JoinAgent, AgentName: "K", Adapter: "http", ClaimHash: hexHash("4")}, "join.requested")
	s.by(board, "join.reject", DecideJoin{ID: request}, "join.rejected")
	m := s.enlist("u2", RoleOperator)
	s.by(board, "member.update", ChangeMember{ID: m.ID, Role: new(RoleViewer)}, "company_member.updated")
	s.by(board, "member.archive", ArchiveMember{ID: m.ID}, "company_member.archived")
	k := BoardKey{}
	s.by(board, "board_key.create", CreateBoardKey{ID: s.id(), Name: "ci", Hash: hexHash("b")}, "board_api_key.created", &k)
	s.by(board, "board_key.revoke", RevokeBoardKey{ID: k.ID}, "board_api_key.revoked")
	open := func(n string) (c Challenge) {
		s.byNode("cli_auth.open", OpenChallenge{ID: s.id(), Hash: hexHash(n), KeyHash: hexHash("f" + n)[:64], Command: "login", Access: "board"}, "cli_auth.requested", &c)
		return c
	}
	one, two := open("c"), open("d")
	s.by(board, "cli_auth.approve", DecideChallenge{ID: one.ID, Hash: hexHash("c"), Key: s.id()}, "board_api_key.created")
	s.byNode("cli_auth.cancel", DecideChallenge{ID: two.ID, Hash: hexHash("d")}, "cli_auth.cancelled")
}

func tellOfPeople(s *storyteller) {
	s.by(board, "instance.settings", PatchSettings{Section: "general", Values: json.RawMessage(`{"signUps":"open"}`)}, "instance.settings.general_updated")
	s.by(board, "instance.auth", SetAuth{Mode: Authenticated}, "instance.auth_mode_changed")
	s.byNode("instance.endpoint", SetEndpoint{URL: "https://n.example.com"}, "node.endpoint_changed")
	ann, bob := s.id(), s.id()
	inAnn, inBob := s.id(), s.id()
	s.byNode("user.create", CreateUser{ID: ann, Name: "Ann", Email: "ann@example.com", Password: "kept", Session: NewSession{inAnn, hexHash("1")}}, "user.created")
	s.byNode("user.create", CreateUser{ID: bob, Name: "Bob", Email: "bob@example.com", Password: "kept", Session: NewSession{inBob, hexHash("2")}}, "user.created")
	s.byUser(ann, inAnn, "user.claim", ClaimInstance{}, "instance.claimed")
	s.byUser(ann, inAnn, "user.admin", AppointAdmin{User: bob, Admin: true}, "instance_admin.promoted")
	s.byUser(ann, inAnn, "member.set", SetMember{User: bob, Role: RoleViewer}, "company_member.access_set")
	s.byUser(ann, inAnn, "user.update", ChangeUser{Name: new("Anna")}, "user.updated")
	s.byUser(ann, inAnn, "user.password", ChangePassword{Was: sha256.Sum256([]byte("kept")), Password: "other"}, "user.password_changed")
	s.byNode("user.sign_in", SignIn{User: bob, Password: sha256.Sum256([]byte("kept")), Session: NewSession{s.id(), hexHash("3")}}, "user.signed_in")
	s.byUser(bob, inBob, "user.sign_out", SignOut{}, "user.signed_out")
	s.byUser(ann, inAnn, "user.suspend", SuspendUser{User: bob, Suspend: true}, "user.suspended")
	s.byUser(ann, inAnn, "user.revoke", EndCredentials{User: ann}, "user.credentials_revoked")
}

func tellOfMoney(s *storyteller) {
	ada := s.hired("Ada")
	s.by(board, "cost.report", ReportCost{CostEvent{ID: s.id(), Agent: ada, Provider: "p", Model: "m", Cost: Cents(10), OccurredAt: TimeOf(s.now)}}, "cost.reported")
	s.by(board, "budget.set", SetBudget{Type: ScopeAgent, Scope: ada, Amount: Cents(100)}, "budget.policy_upserted")
	s.by(board, "cost.report", ReportCost{CostEvent{ID: s.id(), Agent: ada, Provider: "p", Model: "m", Cost: Cents(90), OccurredAt: TimeOf(s.now)}}, "cost.reported & approval.created budget.hard_threshold_crossed")
	in := OpenIncidents(s.tx, s.company, TimeOf(s.now))
	s.by(board, "budget.resolve", ResolveIncident{Incident: in[0].ID, Action: "raise_budget_and_resume", Amount: new(Cents(5000))}, "budget.incident_resolved & approval.approved budget.policy_upserted")
	reservation := func() Reservation {
		var r Reservation
		s.byNode("budget.reserve", Reserve{ID: s.id(), Agent: ada, Want: Cents(50), Until: TimeOf(s.now.Add(time.Hour))}, "budget.reserved", &r)
		return r
	}
	one, two := reservation(), reservation()
	s.byNode("budget.settle", Settle{Reservation: one.ID, Calls: []Metered{s.call(Cents(30))}, Close: true}, "cost.metered")
	s.byNode("budget.settle", Settle{Reservation: two.ID, Uncertain: true}, "budget.uncertain")
	s.by(board, "budget.writeoff", WriteOff{Reservation: two.ID}, "budget.written_off")
	s.by(board, "finance.book", FinanceEvent{ID: s.id(), Kind: "platform_fee", Biller: "x", Amount: Cents(1), OccurredAt: TimeOf(s.now)}, "finance_event.reported")
	s.by(board, "cost.report", ReportCost{CostEvent{ID: s.id(), Agent: ada, Provider: "p", Model: "m", Cost: Cents(5000), OccurredAt: TimeOf(s.now)}}, "cost.reported & approval.created budget.hard_threshold_crossed")
	s.now = s.now.Add(40 * 24 * time.Hour)
	s.by(board, "budget.sweep", SweepBudgets{}, "budget.scope_resumed & approval.approved")
	provider := s.id()
	s.by(board, "model_provider.save", SaveModelProvider{ID: provider, Create: true, Name: new("vllm"), Kind: new(ModelKind("openai")), BaseURL: new("http://127.0.0.1:8000/v1")}, "model_provider.created")
	s.by(board, "model_provider.remove", DropModelProvider{ID: provider}, "model_provider.removed")
	s.by(board, "model_price.set", SetModelPrice{ModelPrice{Model: "m", Input: 5, Output: 6}}, "model_price.set")
	s.by(board, "model_price.remove", DropModelPrice{Model: "m"}, "model_price.removed")
}

func tellOfRuns(s *storyteller) {
	ada := s.hired("Ada")
	i := s.issue(s.t, CreateIssue{Status: IssueBacklog, Assignee: ada})
	wake := func() string {
		id := s.id()
		s.by(board, "agent.wake", Wake{Agent: ada, Source: WakeOnDemand, TriggerDetail: "manual", Issue: i.ID, Wakeup: s.id(), Run: id}, "heartbeat.invoked")
		return id
	}
	run := wake()
	s.byNode("run.unplaced", Unplaced{Run: run, Why: Placement{Run: run, At: TimeOf(s.now)}}, "heartbeat.run.waiting")
	s.byNode("run.place", Place{Run: run, Node: s.node, Session: s.session}, "")
	s.byNode("run.return", Return{Run: run, Reason: "full"}, "")
	s.byNode("run.place", Place{Run: run, Node: s.node, Session: s.session}, "")
	s.byNode("run.start", Start{Run: run, LogStore: "local_file", LogRef: "x"}, "environment.lease_acquired")
	s.byNode("run.report", Report{Run: run, Phase: PhaseExecute, PID: 7, Group: 7, Events: []ReportEvent{{Type: "adapter.invoke", Level: "info", Message: "m"}}}, "")
	s.by(as{ada, run}, "run.callback", Callback{Run: run, Status: RunSucceeded, Summary: "done"}, "heartbeat.called_back")
	s.by(board, "run.watch", DecideWatch{ID: s.id(), Run: run, Decision: "continue"}, "heartbeat.watchdog_decision_recorded")
	size := int64(4)
	s.byNode("run.finish", Finish{Run: run, Outcome: Outcome{Status: RunFailed, ErrorCode: "upstream", Transient: true}, LogBytes: &size, LogSHA256: hexHash("a")}, "environment.lease_released")
	s.by(board, "run.retry_now", RetryNow{Issue: i.ID}, "issue.scheduled_retry_triggered")
	s.byNode("run_log.keep", KeepLogs{Logs: []KeptLog{{Run: run, Nodes: []string{s.node}}}}, "heartbeat.run.logs_kept")
	retry, _ := RetryOf(s.tx, s.load(i.ID))
	s.by(board, "run.cancel", Cancel{Run: retry.ID, Reason: "no"}, "heartbeat.cancelled")
	run = wake()
	s.byNode("run.place", Place{Run: run, Node: s.node, Session: s.session}, "")
	s.byNode("run.start", Start{Run: run, LogStore: "local_file", LogRef: "x"}, "environment.lease_acquired")
	s.by(board, "run.cancel", Cancel{Run: run, Reason: "no"}, "heartbeat.cancelled & environment.lease_released")
	s.byNode("run.cost", TellCost{run, RunCost{Provider: "p", Model: "m", Usage: Usage{InputTokens: 5}, Cost: Cents(3), Priced: true}}, "cost.reported")
	s.byNode("run.finish", Finish{Run: run, Outcome: Outcome{Status: RunCancelled}}, alreadyTold)
	run = wake()
	s.byNode("run.place", Place{Run: run, Node: s.node, Session: s.session}, "")
	s.byNode("run.start", Start{Run: run, LogStore: "local_file", LogRef: "x"}, "environment.lease_acquired")
	s.byNode("node.lost", NodeLost{Node: s.node, Session: s.session}, "node.lost & session.ended environment.lease_released")
	s.byNode("run.lost", TellLoss{Run: run, Why: "it could not run for 9.1 s: load 31"}, "heartbeat.loss_explained")
	s.now = s.now.Add(400 * 24 * time.Hour)
	s.byNode("run_log.sweep", SweepLogs{}, "instance.run_logs_swept")
	s.now = s.now.Add(DefaultEventDays * 24 * time.Hour)
	s.byNode("run_event.sweep", SweepEvents{}, "heartbeat.run.events_swept")
}

func tellOfWorkspaces(s *storyteller) {
	_, r, w := s.space(s.t, "One")
	for _, id := range []string{r.ID} { // on this node
		s.tx.Delete(sessionKey(r.Session, id))
		r.Node, r.Session = s.node, s.session
		s.storeRun(r)
		w.Node = NullText(s.node)
		execWorkspaces.Put(s.tx, s.company, w.ID, w)
	}
	s.byNode("exec_workspace.realize", RealizeWorkspace{ID: w.ID, Run: r.ID, Cwd: "/n1/other"}, "execution_workspace.realized")
	s.by(board, "exec_workspace.update", UpdateExecutionWorkspace{ID: w.ID, Config: &WorkspaceConfig{Runtime: json.RawMessage(`{"services":[{"name":"Web","command":"npm start","port":80}],"jobs":[{"name":"Build","command":"make"}]}`)}}, "execution_workspace.updated")
	op := s.id()
	s.byNode("workspace_op.start", StartOperation{ID: op, Workspace: w.ID, Run: r.ID, Phase: OperationProvision, Name: "setupCommand", Command: "make", Cwd: "/n1/tree", LogRef: "x"}, "workspace_operation.started")
	s.byNode("workspace_op.finish", FinishOperation{ID: op, ExitCode: new(int64)}, "workspace_operation.finished")
	s.by(board, "workspace_op.request", ControlServices{Operation: s.id(), Workspace: w.ID, Action: "run", Command: "build"}, "workspace_operation.requested")
	s.by(board, "runtime_service.control", ControlServices{Operation: s.id(), Workspace: w.ID, Action: "start"}, "workspace_operation.finished")
	web := ServicesOf(s.tx, s.company, w.ID)[0]
	s.byNode("runtime_service.report", ReportService{ID: web.ID, Generation: 1, Status: ServiceRunning, Health: "healthy", Port: 80, PID: 7}, "runtime_service.running")
	machine := s.id()
	s.by(board, "environment.save", SaveEnvironment{ID: machine, New: true, Name: new("m"), Driver: "ssh", Config: json.RawMessage(`{"host":"h.example.com","port":22,"username":"u","remoteWorkspacePath":"/w"}`)}, "environment.created")
	s.by(board, "environment.probe", NameEnvironment{ID: machine}, "environment.probed")
	s.by(board, "environment.delete", NameEnvironment{ID: machine}, "environment.deleted")
	c := s.context(as{}, "", nil)
	endRun(c, r, Outcome{Status: RunSucceeded})
	r, _ = runs.Get(s.tx, s.company, r.ID)
	s.tx.Delete(sessionKey(r.Session, r.ID))
	r.Owed = false
	runs.Put(s.tx, s.company, r.ID, r)
	archived := WorkspaceArchived
	s.by(board, "exec_workspace.update", UpdateExecutionWorkspace{ID: w.ID, Status: &archived}, "execution_workspace.updated")
	s.byNode("exec_workspace.cleaned", CleanWorkspace{ID: w.ID}, "execution_workspace.cleaned")
}

func tellOfRoutines(s *storyteller) {
	ada := s.hired("Ada")
	r := Routine{}
	s.by(board, "routine.create", SaveRoutine{ID: s.id(), Title: new("Report"), Description: new("weld it"), Assignee: &ada}, "routine.created", &r)
	first := r.Revision
	s.by(board, "routine.update", SaveRoutine{ID: r.ID, Title: new("Report 2")}, "routine.updated")
	s.by(board, "routine.restore", RestoreRoutine{ID: r.ID, Revision: first}, "routine.revision_restored")
	s.by(board, "routine.run", FireRoutine{Routine: r.ID, Run: s.id(), Source: "manual"}, "routine.run_triggered & issue.created")
	r, _ = routines.Get(s.tx, s.company, r.ID)
	d, thread := DescriptionOf(r.Described()), s.id()
	s.by(board, "routine_annotation.create", AnnotateDocument{ID: thread, Issue: r.ID, Key: "description", Revision: d.Latest, Number: d.Number, Exact: "weld", End: 4, MarkdownEnd: 4, Comment: Remark{ID: s.id(), Body: "why"}}, "routine.description_annotation_created")
	s.by(board, "routine_annotation.comment", ChangeAnnotation{Issue: r.ID, Key: "description", Thread: thread, Comment: Remark{ID: s.id(), Body: "so"}}, "routine.description_annotation_commented")
	s.by(board, "routine_annotation.update", ChangeAnnotation{Issue: r.ID, Key: "description", Thread: thread, Status: "resolved"}, "routine.description_annotation_updated")
	hook, clock := s.id(), s.id()
	s.by(board, "routine_trigger.create", SaveTrigger{ID: hook, Routine: r.ID, Kind: TriggerWebhook, Signing: new("bearer"), PublicID: strings.Repeat("ab", 12), Sealed: []byte("sealed")}, "routine.trigger_created")
	s.by(board, "routine_trigger.update", SaveTrigger{ID: hook, Label: new("hook")}, "routine.trigger_updated")
	s.by(board, "routine_trigger.rotate", SaveTrigger{ID: hook, Sealed: []byte("again")}, "routine.trigger_secret_rotated")
	s.byNode("routine.fire", FireRoutine{Run: s.id(), Trigger: hook, Source: "webhook", Payload: json.RawMessage(`{}`)}, "routine.run_triggered")
	due := TimeOf(s.now.Add(time.Hour))
	s.by(board, "routine_trigger.create", SaveTrigger{ID: clock, Routine: r.ID, Kind: TriggerSchedule, Cron: new("0 9 * * *"), Zone: new("UTC"), Next: due}, "routine.trigger_created")
	s.now = s.now.Add(time.Hour + time.Minute)
	s.byNode("routine.tick", TickRoutine{Trigger: clock, Due: due, Next: due + msPerDay}, "routine.run_triggered")
	s.by(board, "routine_trigger.delete", SaveTrigger{ID: hook}, "routine.trigger_deleted")
	s.by(board, "routine.delete", ChangeRoutine{ID: r.ID}, "routine.deleted")
}

func tellOfSkills(s *storyteller) {
	ada := s.hired("Ada")
	sk := Skill{}
	s.by(board, "skill.create", SaveSkill{ID: s.id(), Version: s.id(), Slug: new("weld"), Name: new("Weld"), Markdown: new("---\nname: weld\ndescription: d\n---\nx\n")}, "company.skill_created", &sk)
	s.by(board, "skill.update", SaveSkill{ID: sk.ID, Tagline: new("t")}, "company.skill_updated")
	s.by(board, "skill.file", SaveSkillFile{Skill: sk.ID, Path: "references/a.md", Content: "x", Version: s.id()}, "company.skill_file_updated")
	s.by(board, "skill.rename", RenameSkill{Skill: sk.ID, Name: "Welding", Slug: "welding"}, "company.skill_renamed")
	s.by(board, "skill.star", StarSkill{Skill: sk.ID, Star: true}, "company.skill_starred")
	s.by(board, "skill.version", VersionSkill{Skill: sk.ID, ID: s.id(), Label: "one"}, "company.skill_version_created")
	sk, _ = skillRows.Get(s.tx, s.company, sk.ID)
	s.by(board, "skill.reset", ResetSkill{Skill: sk.ID, To: SkillVersionsOf(s.tx, sk)[0].ID, Version: s.id()}, "company.skill_reset")
	s.by(board, "skill.fork", ForkSkill{ID: s.id(), Version: s.id(), Source: sk.ID, Slug: "solder", Name: "Solder"}, "company.skill_forked")
	said, input, test := s.id(), s.id(), s.id()
	s.by(board, "skill_comment.create", SaySkill{ID: said, Skill: sk.ID, Body: "good"}, "company.skill_comment_created")
	s.by(board, "skill_comment.update", SaySkill{ID: said, Skill: sk.ID, Body: "better"}, "company.skill_comment_updated")
	s.by(board, "skill_test.input", SaveSkillInput{ID: input, Skill: sk.ID, Name: new("n"), Content: new("c")}, "company.skill_test_input_created")
	s.by(board, "skill_test.start", StartSkillTest{ID: test, Skill: sk.ID, Agent: ada, Issue: s.id(), Input: input, Content: "try"}, "company.skill_test_run_created & issue.created")
	s.by(board, "skill_test.forget", ForgetSkillTest{Skill: sk.ID, ID: test}, "company.skill_test_run_deleted")
	s.by(board, "skill_test.keep", KeepSkillTest{ID: s.id(), Skill: sk.ID, Content: "c", Status: "succeeded", Output: "o"}, "company.skill_test_run_kept")
	s.by(board, "skill.delete", DeleteSkill{ID: sk.ID}, "company.skill_deleted")
}

func tellOfSecrets(s *storyteller) {
	id, def := s.id(), s.id()
	s.by(board, "secret.create", SaveSecret{ID: id, Name: "token", Sealed: []byte("one")}, "secret.created")
	s.by(board, "secret.rotate", RotateSecret{ID: id, Version: 2, Sealed: []byte("two")}, "secret.rotated")
	s.by(board, "secret.update", PatchSecret{ID: id, Description: new("d")}, "secret.updated")
	ada := s.hired("Ada")
	run := s.run(ada)
	r, _ := runs.Get(s.tx, s.company, run)
	r.Node, r.Session = s.node, s.session
	s.storeRun(r)
	s.byNode("secret.access", UseSecrets{Run: run, Uses: []SecretUse{{Secret: id, Version: 2, Path: "env.A"}}}, "secret.accessed")
	s.byNode("secret.reseal", Reseal{Type: "secret", ID: id, Version: 2, Old: []string{"dHdv"}, New: []string{"bmV3"}}, "secret.resealed")
	s.by(board, "secret.delete", DropSecret{ID: id}, "secret.deleted")
	s.by(board, "user_secret.define", SaveUserSecretDefinition{ID: def, Key: "github", Name: new("GitHub")}, "user_secret_definition.created")
	s.by(board, "user_secret.redefine", SaveUserSecretDefinition{ID: def, Guidance: new("ask")}, "user_secret_definition.updated")
	s.by(board, "user_secret.undefine", DropSecret{ID: def}, "user_secret_definition.deleted")
}

func tellOfTheMesh(s *storyteller) {
	s.by(board, "node.cordon", Cordon{Node: s.node, Reason: "repairs"}, "node.cordoned")
	s.by(board, "node.uncordon", Uncordon{Node: s.node}, "node.uncordoned")
	ada := s.hired("Ada")
	busy := func() {
		for range maxStoppedRuns + 1 { // more than a stop ends at once
			id := s.run(ada)
			r, _ := runs.Get(s.tx, s.company, id)
			r.Node, r.Session, r.Owed = s.node, s.session, true
			s.storeRun(r)
		}
	}
	busy()
	s.by(board, "mesh.stop", StopAll{Reason: "drill"}, "mesh.stopped & leases")
	s.byNode("mesh.quiesce", Quiesce{}, "mesh.quiesced & environment.lease_released")
	s.by(board, "mesh.resume", ResumeAll{}, "mesh.resumed")
	busy()
	s.by(board, "company.pause", ChangeCompany{}, "company.paused & leases")
	s.byNode("company.settle", SettleCompany{}, "company.settled & environment.lease_released")
	s.by(board, "company.resume", ChangeCompany{}, "company.resumed")
}

func tellOfImports(s *storyteller) {
	job, other := s.id(), s.id()
	s.by(board, "import_job.begin", BeginImportJob{ID: job, Node: s.node, Signature: hexHash("a")}, "import_job.started")
	s.by(board, "import_job.progress", TellImportJob{ID: job, Phase: "applying", Done: 1, Total: 2}, "")
	s.by(board, "company.import", ImportCompany{Job: job, Steps: []ImportStep{{Kind: "label.create", Payload: ledger.Marshal(CreateLabel{ID: s.id(), Name: "bug", Color: "#ff0000"})},
		{Kind: "issue.create", Payload: ledger.Marshal(CreateIssue{ID: s.id(), Title: "T"})}}}, "company.imported")
	s.by(board, "import_job.begin", BeginImportJob{ID: other, Node: s.node, Signature: hexHash("b")}, "import_job.started")
	s.by(board, "import_job.fail", FailImportJob{ID: other, Error: "no"}, "import_job.failed")
	s.now = s.now.Add(400 * 24 * time.Hour)
	s.byNode("import_job.sweep", SweepImportJobs{}, "import_job.swept")
}

func tellOfUpkeep(s *storyteller) {
	part := []byte("a part")
	s.by(board, "part.put", PutPart{Bytes: part}, "")
	i := s.issue(s.t, CreateIssue{})
	s.attach(s.t, board, i.ID, "x")
	s.must(s.t, board, "document.save", SaveDocument{Issue: i.ID, Key: "plan", ID: s.id(), Revision: s.id(), Format: "markdown", Body: "x"}, nil)
	s.must(s.t, board, "issue.delete", DeleteIssue{Issue: i.ID}, nil)
	s.byNode("attachment.sweep", SweepAttachments{}, "issue.attachments_swept")
	s.byNode("issue.sweep", SweepThreads{}, "issue.thread_swept")
	s.byNode("issue.index", IndexIssues{}, "company.issues_indexed")
	s.now = s.now.Add(400 * 24 * time.Hour)
	s.byNode("part.sweep", SweepParts{}, "company.parts_swept")
}
