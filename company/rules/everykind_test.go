package rules_test

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/app"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/cron"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/company/push"
	"github.com/selvage-mesh/selvage/company/replica"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/company/service"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/company/topic"
	"github.com/selvage-mesh/selvage/company/transfer"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	index "github.com/selvage-mesh/selvage/memory"
)

// tellsNothing are the kinds that leave no line in the activity log, with the reason. Every
// other executed command leaves exactly one line of its own.
var tellsNothing = map[string]string{
	"run.place":           "where a run goes is told live, and by its lease when it starts",
	"run.return":          "a run that goes back to the queue as it was; told live",
	"run.report":          "how far a run is; told live, and by its end",
	"timer.tick":          "the run that it wakes is told live, and by its lease when it starts",
	"import_job.progress": "how far an import is; its beginning and its end are told",
	"part.put":            "bytes that are nothing yet; what they become part of is told",
}

// alreadyTold is the lines of a command that continues what another one has logged.
const alreadyTold = ""

// A storyteller executes one command after the other on a company, and after each checks the
// lines that it left and that the rules hold.
type storyteller struct {
	*player
	t       testing.TB
	told    map[string]int
	keys    *identity.Keys
	node    string
	session uint64
	quiet   bool                                      // checks nothing after a command
	before  func(c *ledger.Context)                   // called before a command; may be nil
	after   func(kind, own string, c *ledger.Context) // called after a command; may be nil
}

func newStory(t *testing.T, told map[string]int) *storyteller {
	s := &storyteller{player: &player{Desk: companytest.NewDesk(t)}, t: t, told: told,
		keys: identity.Derive(sha256.Sum256([]byte("n")))}
	s.node = string(s.keys.ID())
	ledger.NewMeshTable[string, ledger.Node]("node").Put(s.Tx, s.node, ledger.Node{ID: s.keys.ID(), Key: s.keys.Public()})
	s.session = s.newSession()
	return s
}

func (s *storyteller) newSession() uint64 {
	s.Height++
	companytest.SessionRows.Put(s.Tx, ledger.Order(s.Height), ledger.Session{ID: s.Height, Node: s.keys.ID()})
	return s.Height
}

// ofMesh reports whether a kind is about the mesh, and not about a company.
func ofMesh(kind string) bool {
	noun, _, _ := strings.Cut(kind, ".")
	return slices.Contains([]string{"mesh", "node", "user", "instance", "board_key", "cli_auth", "import_job",
		"resource_tree", "process", "service", "amendment"}, noun)
}

// by executes a command for the board or an agent. lines are the actions of the lines that it
// leaves, its own first.
func (s *storyteller) by(who companytest.As, kind string, payload any, lines string, out ...any) {
	s.t.Helper()
	s.carryOut(s.Context(who, kind, payload), kind, lines, out)
}

// byNode executes a command for the node.
func (s *storyteller) byNode(kind string, payload any, lines string, out ...any) {
	s.t.Helper()
	c := s.Context(companytest.Board, kind, payload)
	c.Cmd.Actor, c.Cmd.Credential, c.Session = ledger.Actor{Type: "node", ID: s.node}, ledger.Credential{Kind: "node",
		ID: s.node}, s.session
	s.carryOut(c, kind, lines, out)
}

// byUser executes a command for a user who is signed in.
func (s *storyteller) byUser(user, session, kind string, payload any, lines string, out ...any) {
	s.t.Helper()
	c := s.Context(companytest.Board, kind, payload)
	c.Cmd.Actor, c.Cmd.Credential = ledger.Actor{Type: "user", ID: user}, ledger.Credential{Kind: "session", ID: session}
	s.carryOut(c, kind, lines, out)
}

func (s *storyteller) carryOut(c *ledger.Context, kind, lines string, out []any) {
	s.t.Helper()
	column := map[string]company.Givers{"user": company.FromBoard, "agent": company.FromAgent, "node": company.FromNode,
		"system": company.FromNode}[c.Cmd.Actor.Type]
	if row, _ := company.KindOf(kind); row.From&column == 0 {
		s.t.Fatalf("%s is not for a %s", kind, c.Cmd.Actor.Type)
	}
	if ofMesh(kind) {
		c.Cmd.Company = ""
	}
	if s.before != nil {
		s.before(c)
	}
	c.Mesh, c.Origin, c.Tx = "m", s.keys.ID(), s.Tx.Child()
	v, err := s.Mux[kind](c)
	if err != nil {
		s.t.Fatalf("%s: %v", kind, err)
	}
	c.Tx.Merge()
	s.told[kind]++
	var got []string
	for _, ch := range c.Changes() {
		if !entity.Live(ch) {
			got = append(got, ch.Action)
		}
		if ch.EntityType == "" || ch.EntityID == "" || len(ch.Details) > 0 && !json.Valid(ch.Details) {
			s.t.Errorf("%s leaves a line about nothing, or no JSON: %+v", kind, ch)
		}
	}
	own, besides, _ := strings.Cut(lines, " & ")
	want := strings.Fields(besides)
	if besides == "leases" { // one line for each of the runs that the command handles
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
		if bad := booksOf(s.Tx, companytest.UID(1), string(s.Company)).wrong(companytest.UID(1),
			string(s.Company)); bad != "" {
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

// Each kind of command that a node knows is executed at least once, leaves exactly one line of
// its own in the activity log, and breaks no rule. A new kind fails this test until a story
// uses it.
func TestEveryKindLeavesOneLine(t *testing.T) {
	t.Parallel()
	told := map[string]int{}
	for _, story := range stories {
		t.Run(story.of, func(t *testing.T) { story.tell(newStory(t, told)) })
	}
	for _, kind := range rules.Handlers().Kinds() {
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

// stories together use every kind of command.
var stories = []struct {
	of   string
	tell func(*storyteller)
}{{"companies", tellOfCompanies}, {"issues", tellOfIssues}, {"documents", tellOfDocuments},
	{"interactions", tellOfInteractions}, {"agents", tellOfAgents},
	{"approvals", tellOfApprovals}, {"access", tellOfAccess}, {"people", tellOfPeople}, {"money", tellOfMoney},
	{"runs", tellOfRuns},
	{"workspaces", tellOfWorkspaces}, {"routines", tellOfRoutines}, {"skills", tellOfSkills}, {"secrets", tellOfSecrets},
	{"the mesh", tellOfTheMesh},
	{"imports", tellOfImports}, {"upkeep", tellOfUpkeep}, {"memories", tellOfMemories},
	{"the resource tree", tellOfTheTree}, {"webhooks of tasks", tellOfHooks}, {"apps", tellOfApps},
	{"governance", tellOfGovernance},
	{"topics", tellOfTopics}, {"the clock", tellOfTheClock}, {"services", tellOfServices}}

func tellOfTheTree(s *storyteller) {
	s.by(companytest.Board, "resource_tree.grant", rules.SaveTreeGrant{Path: "/apps", Subject: "user:ada",
		Role: "operator", Delegate: true}, "resource_tree.granted")
	s.by(companytest.Board, "resource_tree.grant", rules.SaveTreeGrant{Path: "/kernel", Subject: "*", Deny: true},
		"resource_tree.granted")
	s.by(companytest.Board, "resource_tree.revoke", rules.DropTreeGrant{Path: "/apps", Subject: "user:ada"},
		"resource_tree.revoked")
	s.byNode("resource_tree.commit", rules.CommitTree{}, "resource_tree.committed")
}

func tellOfApps(s *storyteller) {
	id, agent := s.ID(), s.ID()
	hash := strings.Repeat("a", 64)
	step := func(kind string, payload any) app.Step { return app.Step{Kind: kind, Payload: ledger.Marshal(payload)} }
	release := func(version string) app.Release {
		return app.Release{Version: version, Digest: strings.Repeat(version[:1], 64), Signer: hash,
			Manifest: json.RawMessage("{}"), Within: 600_000,
			Parts: []app.Part{{Kind: "agent", Name: "ada", ID: agent}}}
	}
	hire := entity.SaveAgent{ID: agent, Name: new("watch/ada"), Role: new("engineer"), AdapterType: new("process")}
	s.by(companytest.Board, "app.install", app.Install{ID: id, Name: "watch", Release: release("1.0.0"), Start: true,
		Steps: []app.Step{step("agent.create", hire), step("issue.create", company.CreateIssue{ID: s.ID(), Title: "Set up",
			Status: entity.IssueTodo, Assignee: agent})}}, "app.installed")
	up := func(from, to string) app.Upgrade {
		return app.Upgrade{ID: id, From: strings.Repeat(from, 64), Release: release(to), Before: release(to).Parts,
			Steps: []app.Step{step("agent.update", entity.SaveAgent{ID: agent, Title: new(to)})},
			Back:  []app.Step{step("agent.update", entity.SaveAgent{ID: agent, Title: new(from)})}}
	}
	s.by(companytest.Board, "app.upgrade", up("1", "2.0.0"), "app.upgraded")
	s.Now = s.Now.Add(11 * time.Minute)
	s.byNode("app.settle", app.Change{ID: id}, "app.upgrade_kept")
	s.by(companytest.Board, "app.upgrade", up("2", "3.0.0"), "app.upgraded")
	s.by(companytest.Board, "app.rollback", app.Change{ID: id}, "app.rolled_back")
	s.by(companytest.Board, "app.stop", app.Change{ID: id, From: strings.Repeat("2", 64),
		Steps: []app.Step{step("agent.pause", company.ChangeAgent{Agent: agent})}}, "app.stopped")
	s.by(companytest.Board, "app.start", app.Change{ID: id, From: strings.Repeat("2", 64),
		Steps: []app.Step{step("agent.resume", company.ChangeAgent{Agent: agent})}}, "app.started")
	s.by(companytest.Board, "app.remove", app.Change{ID: id, From: strings.Repeat("2", 64),
		Steps: []app.Step{step("agent.terminate", company.ChangeAgent{Agent: agent})}}, "app.removed")
	tellOfOffers(s)
}

// tellOfOffers tells of an app with a service, a tool of it, and programs of hooks.
func tellOfOffers(s *storyteller) {
	id, hash := s.ID(), strings.Repeat("b", 64)
	process := company.NewProcess{Spec: json.RawMessage(`{"command":["true"]}`), Replicas: 1}
	service := app.Service{Name: "web", Process: process, Contract: company.NewService{Version: "1",
		Methods: []company.NewMethod{{Name: "look"}}}}
	release := app.Release{Version: "1.0.0", Digest: hash, Signer: hash, Manifest: json.RawMessage("{}"),
		Services: []app.Service{service},
		Tools:    []company.NewTool{{Name: "served/look", Version: 1, Hash: hash, Service: "served/web", Method: "look"}},
		Programs: []app.Program{{Event: app.OnInstall, Process: process, Time: 1000}, {Event: app.OnRemove, Process: process,
			Time: 1000}}}
	s.by(companytest.Board, "app.install", app.Install{ID: id, Name: "served", Release: release, Start: true},
		"app.installed")
	s.by(companytest.Board, "app.call", app.Call{App: "served", Service: "web", Method: "look", Input: hash},
		"app.service_called")
	s.by(companytest.Board, "tool.execute", skill.ExecuteTool{Name: "served/look", Input: hash}, "tool.executed")
	s.Now = s.Now.Add(11 * time.Minute)
	s.byNode("app.settle", app.Change{ID: id}, "app.hook_timed_out")
	s.by(companytest.Board, "app.remove", app.Change{ID: id, From: hash}, "app.removed")
	if all := processesOfApps(s.Tx); len(all) != 1 {
		s.t.Errorf("after the removal there are the processes %v, want the program of on_remove alone", all)
	}
	s.Now = s.Now.Add(11 * time.Minute)
	s.byNode("app.settle", app.Change{ID: id}, "app.hook_timed_out")
	if all := processesOfApps(s.Tx); len(all) != 0 {
		s.t.Errorf("of a removed app the processes %v are left", all)
	}
}

// processesOfApps returns the names of the processes of apps.
func processesOfApps(tx *ledger.Tx) (out []string) {
	for _, d := range replica.All(tx) {
		if strings.HasPrefix(d.Name, "app.") {
			out = append(out, d.Name)
		}
	}
	return out
}

func tellOfHooks(s *storyteller) {
	i := s.Issue(s.t, company.CreateIssue{})
	var one, two string
	s.by(companytest.Board, "push.set", push.Set{ID: s.ID(), Issue: i.ID, Name: "mine", URL: "https://example.com/hook",
		Scheme: "Bearer", Auth: json.RawMessage(`{"token":{"$sealed":"c2VhbGVk"}}`)}, "issue.push_set", &one)
	s.by(companytest.Board, "push.set", push.Set{ID: s.ID(), Issue: i.ID, Name: "mine", URL: "https://example.com/hook"},
		"issue.push_set", &one)
	s.by(companytest.Board, "push.set", push.Set{ID: s.ID(), Issue: i.ID, URL: "https://example.com/other"},
		"issue.push_set", &two)
	s.byNode("push.told", push.Tell{ID: one, Digest: "a"}, "issue.push_told")
	s.byNode("push.told", push.Tell{ID: one, Digest: "b", Failed: true, Last: true}, "issue.push_failed")
	s.by(companytest.Board, "push.delete", push.Delete{ID: two}, "issue.push_removed")
}

func tellOfCompanies(s *storyteller) {
	other := s.ID()
	s.Company = ledger.CompanyID(other)
	s.by(companytest.Board, "company.create", entity.SaveCompany{ID: ledger.CompanyID(other), Name: new("Other")},
		"company.created")
	s.by(companytest.Board, "company.update", entity.SaveCompany{Description: new("d")}, "company.updated")
	s.by(companytest.Board, "company.branding", entity.SaveCompany{BrandColor: new("#123456")}, "company.branding_updated")
	s.by(companytest.Board, "company.pause", company.ChangeCompany{}, "company.paused")
	s.by(companytest.Board, "company.resume", company.ChangeCompany{}, "company.resumed")
	s.by(companytest.Board, "activity.note", company.Note{Action: "lunch.eaten", EntityType: "lunch", EntityID: "1"},
		"lunch.eaten")
	root, goal := s.ID(), s.ID()
	s.by(companytest.Board, "goal.create", entity.SaveGoal{ID: root, Title: new("Root"),
		Level: new(entity.GoalLevel("company"))}, "goal.created")
	s.by(companytest.Board, "goal.create", entity.SaveGoal{ID: goal, Title: new("Team"),
		Level: new(entity.GoalLevel("team")), Parent: &root}, "goal.created")
	s.by(companytest.Board, "goal.update", entity.SaveGoal{ID: goal, Title: new("Team A")}, "goal.updated")
	project, space := s.ID(), s.ID()
	s.by(companytest.Board, "project.create", entity.SaveProject{ID: project, Name: new("Site"), Goals: &[]string{goal}},
		"project.created")
	s.by(companytest.Board, "project.create", entity.SaveProject{ID: s.ID(), Name: new("Yard"),
		More: []entity.SaveWorkspace{{ID: s.ID(), RepoURL: new("https://example.com/a")}}}, "project.created")
	s.by(companytest.Board, "project.update", entity.SaveProject{ID: project, Name: new("Site 2")}, "project.updated")
	s.by(companytest.Board, "workspace.create", entity.SaveWorkspace{ID: space, Project: project,
		RepoURL: new("https://example.com/r")}, "project.workspace_created")
	s.by(companytest.Board, "workspace.update", entity.SaveWorkspace{ID: space, Project: project, Name: new("w")},
		"project.workspace_updated")
	s.by(companytest.Board, "workspace.delete", place.DeleteWorkspace{ID: space, Project: project},
		"project.workspace_deleted")
	s.by(companytest.Board, "resource.join", people.JoinResource{Kind: "project", ID: project, State: "joined"},
		"resource_membership.updated")
	s.by(companytest.Board, "project.delete", company.DeleteProject{ID: project}, "project.deleted")
	s.by(companytest.Board, "goal.delete", company.DeleteGoal{ID: goal}, "goal.deleted")
	s.by(companytest.Board, "sidebar.order", company.OrderSidebar{Ordered: []string{other}}, "sidebar_preferences.updated")
	var folder routine.Folder
	s.by(companytest.Board, "folder.save", routine.SaveFolder{ID: s.ID(), New: true, Kind: routine.FolderRoutines,
		Name: new("Daily")}, "folder.created", &folder)
	r := s.Routine(s.t, s.Agent("Ada"), nil)
	s.by(companytest.Board, "folder.file", routine.FileItem{Kind: routine.FolderRoutines, Item: r.ID, Folder: folder.ID},
		"folder.item_moved")
	s.by(companytest.Board, "folder.delete", routine.DeleteFolder{ID: folder.ID}, "folder.deleted")
	label := s.ID()
	s.by(companytest.Board, "label.create", company.CreateLabel{ID: label, Name: "bug", Color: "#ff0000"}, "label.created")
	s.by(companytest.Board, "label.update", company.ChangeLabel{ID: label, Name: new("fault")}, "label.updated")
	s.by(companytest.Board, "label.delete", company.DeleteLabel{ID: label}, "label.deleted")
	late := s.Agent("Late")
	for range company.MaxStoppedRuns + 1 { // more than one pause ends
		s.Run(late)
	}
	s.by(companytest.Board, "company.pause", company.ChangeCompany{}, "company.paused & leases")
	s.byNode("company.settle", company.SettleCompany{}, "company.settled & leases")
	s.by(companytest.Board, "company.resume", company.ChangeCompany{}, "company.resumed")
	s.by(companytest.Board, "company.archive", company.ChangeCompany{}, "company.archived")
	s.by(companytest.Board, "company.delete", company.ChangeCompany{}, "company.deleted")
}

func tellOfIssues(s *storyteller) {
	ada := s.Hired("Ada")
	at := companytest.As{Agent: ada, Run: s.Run(ada)}
	id, comment := s.ID(), s.ID()
	s.by(companytest.Board, "issue.create", company.CreateIssue{ID: id, Title: "T", Status: entity.IssueTodo},
		"issue.created")
	s.by(companytest.Board, "issue.create", company.CreateIssue{ID: s.ID(), Title: "Like T", InheritFrom: id},
		"issue.created")
	s.by(at, "issue.checkout", company.CheckOutIssue{Issue: id, Agent: ada,
		Expected: []entity.IssueStatus{entity.IssueTodo}}, "issue.checked_out")
	s.by(at, "comment.create", entity.CreateComment{ID: comment, Issue: id, Body: "word"}, "issue.comment_added")
	s.by(companytest.Board, "issue.vote", inbox.CastVote{Issue: id, TargetType: "issue_comment", Target: comment,
		Vote: "up"}, "issue.feedback_vote_saved")
	s.by(at, "comment.delete", company.DeleteComment{Issue: id, ID: comment}, "issue.comment_deleted")
	s.by(at, "issue.release", company.ReleaseIssue{Issue: id}, "issue.released")
	s.by(at, "issue.checkout", company.CheckOutIssue{Issue: id, Agent: ada,
		Expected: []entity.IssueStatus{entity.IssueTodo}}, "issue.checked_out")
	s.by(companytest.Board, "issue.force_release", company.ForceReleaseIssue{Issue: id, ClearAssignee: true},
		"issue.admin_force_release")
	s.by(companytest.Board, "issue.read", inbox.MarkIssue{Issue: id}, "issue.read_marked")
	s.by(companytest.Board, "issue.unread", inbox.MarkIssue{Issue: id}, "issue.read_unmarked")
	s.by(companytest.Board, "issue.archive", inbox.MarkIssue{Issue: id}, "issue.inbox_archived")
	s.by(companytest.Board, "issue.unarchive", inbox.MarkIssue{Issue: id}, "issue.inbox_unarchived")
	s.by(companytest.Board, "inbox.dismiss", inbox.Dismiss{Key: "run:1"}, "inbox.dismissed")
	s.by(companytest.Board, "inbox.restore", inbox.Dismiss{Key: "run:1"}, "inbox.restored")
	s.by(companytest.Board, "watchdog.set", care.SetWatchdog{ID: s.ID(), Issue: id, Agent: ada}, "issue.watchdog_created")
	s.by(companytest.Board, "watchdog.remove", care.RemoveWatchdog{Issue: id}, "issue.watchdog_removed")
	hold := s.ID()
	s.by(companytest.Board, "tree.hold", care.HoldTree{ID: hold, Issue: id, Mode: "pause"}, "issue.tree_hold_created")
	s.by(companytest.Board, "tree.release", care.ReleaseTree{Issue: id, Hold: hold}, "issue.tree_hold_released")
	due := core.TimeOf(s.Now.Add(time.Hour))
	s.by(companytest.Board, "issue.update", company.UpdateIssue{Issue: id, Status: entity.IssueInProgress, Assignee: &ada,
		ExecutionPolicy: json.RawMessage(`{"monitor":{"nextCheckAt":"` + due.String() + `","maxAttempts":5}}`)},
		"issue.updated")
	s.by(companytest.Board, "issue.monitor", care.CheckMonitor{Issue: id}, "issue.monitor_triggered")

	// Comments that wait for the end of the current run.
	queued := s.Issue(s.t, company.CreateIssue{Assignee: ada, Status: entity.IssueBacklog})
	at = s.OnIssue(s.t, ada, queued)
	one, two := s.ID(), s.ID()
	s.by(companytest.Board, "comment.create", entity.CreateComment{ID: one, Issue: queued.ID, Body: "one"},
		"issue.comment_added")
	s.by(companytest.Board, "comment.create", entity.CreateComment{ID: two, Issue: queued.ID, Body: "two"},
		"issue.comment_added")
	change := func(f func(*company.ChangeQueue)) company.ChangeQueue {
		q, _ := company.QueueOf(s.Tx, s.Load(queued.ID))
		p := company.ChangeQueue{Issue: queued.ID, Queue: q.Run.ID, Revision: q.Revision()}
		f(&p)
		return p
	}
	s.by(companytest.Board, "queue.edit", change(func(p *company.ChangeQueue) { p.Comment, p.Body = one, "uno" }),
		"issue.queued_comment_edited")
	s.by(companytest.Board, "queue.order", change(func(p *company.ChangeQueue) { p.Order = []string{two, one} }),
		"issue.queued_comments_ordered")
	s.by(companytest.Board, "queue.drop", change(func(p *company.ChangeQueue) { p.Comment = two }),
		"issue.comment_deleted")
	s.by(companytest.Board, "queue.interrupt", change(func(p *company.ChangeQueue) { p.Target = at.Run }),
		"issue.queued_comments_interrupted & issue.lock_released environment.lease_released")
	s.OnIssue(s.t, ada, queued)
	s.by(companytest.Board, "comment.create", entity.CreateComment{ID: s.ID(), Issue: queued.ID, Body: "stop",
		Interrupt: true}, "issue.comment_added & heartbeat.cancelled issue.lock_released environment.lease_released")
	s.by(companytest.Board, "issue.update", company.UpdateIssue{Issue: queued.ID, Status: entity.IssueDone},
		"issue.updated")
	s.by(companytest.Board, "comment.create", entity.CreateComment{ID: s.ID(), Issue: queued.ID, Body: "go on",
		Resume: true}, "issue.comment_added & issue.updated")

	theFile := s.File("x")
	var attached file.Attached
	s.by(companytest.Board, "attachment.create", file.CreateAttachment{Issue: id, ID: s.ID(), File: theFile},
		"issue.attachment_added", &attached)
	s.by(companytest.Board, "attachment.delete", file.DeleteAttachment{ID: attached.Attachment.ID},
		"issue.attachment_removed")
	s.by(companytest.Board, "asset.create", file.CreateAsset{File: s.File("y")}, "asset.created")
	var product file.WorkProduct
	s.by(companytest.Board, "product.create", file.SaveProduct{ID: s.ID(), Issue: id, Type: new("commit"),
		Provider: new("git"), Title: new("c")}, "issue.work_product_created", &product)
	s.by(companytest.Board, "product.update", file.SaveProduct{ID: product.ID, Status: new("merged")},
		"issue.work_product_updated")
	s.by(companytest.Board, "product.delete", file.DeleteProduct{ID: product.ID}, "issue.work_product_deleted")

	// A stalled issue: no agent works on it.
	left := s.Issue(s.t, company.CreateIssue{Status: entity.IssueTodo, Assignee: ada})
	for r := range entity.RunsOfIssue(s.Tx, s.Company, left.ID) {
		c := s.Context(companytest.As{}, "", nil)
		company.EndRun(c, r, company.Outcome{Status: entity.RunCancelled})
	}
	s.Now = s.Now.Add(48 * time.Hour)
	s.byNode("issue.recover", care.RecoverIssue{Issue: left.ID}, "issue.continued")
	for r := range entity.RunsOfIssue(s.Tx, s.Company, left.ID) {
		c := s.Context(companytest.As{}, "", nil)
		company.EndRun(c, r, company.Outcome{Status: entity.RunCancelled})
		break
	}
	s.Now = s.Now.Add(48 * time.Hour)
	s.byNode("issue.recover", care.RecoverIssue{Issue: left.ID}, "issue.updated & issue.comment_added")
	s.by(companytest.Board, "issue.resolve_recovery", care.ResolveRecovery{Issue: left.ID, Outcome: "restored",
		Status: entity.IssueTodo}, "issue.recovery_action_resolved")
	s.by(companytest.Board, "issue.delete", company.DeleteIssue{Issue: id}, "issue.deleted")
}

func tellOfDocuments(s *storyteller) {
	issue, revision := s.Agreed(s.t)
	second := s.ID()
	s.by(companytest.Board, "document.save", paper.SaveDocument{Issue: issue, Key: "plan", ID: s.ID(), Revision: second,
		Base: revision, Format: "markdown", Body: "1. cut"}, "issue.document_updated")
	s.by(companytest.Board, "document.restore", paper.RestoreDocument{Issue: issue, Key: "plan", Revision: revision,
		ID: s.ID()}, "issue.document_restored")
	s.by(companytest.Board, "document.lock", paper.ChangeDocument{Issue: issue, Key: "plan"}, "issue.document_locked")
	s.by(companytest.Board, "document.unlock", paper.ChangeDocument{Issue: issue, Key: "plan"}, "issue.document_unlocked")
	d, _ := paper.DocumentOf(s.Tx, s.Load(issue), "plan")
	thread := s.ID()
	s.by(companytest.Board, "annotation.create", paper.AnnotateDocument{ID: thread, Issue: issue, Key: "plan",
		Revision: d.Latest, Number: 3, Exact: "1.", End: 2, MarkdownEnd: 2, Comment: paper.Remark{ID: s.ID(), Body: "why"}},
		"issue.document_annotation_created")
	s.by(companytest.Board, "annotation.comment", paper.ChangeAnnotation{Issue: issue, Key: "plan", Thread: thread,
		Comment: paper.Remark{ID: s.ID(), Body: "so"}}, "issue.document_annotation_commented")
	s.by(companytest.Board, "annotation.update", paper.ChangeAnnotation{Issue: issue, Key: "plan", Thread: thread,
		Status: "resolved"}, "issue.document_annotation_updated")
	s.Agree(s.t, issue, d.Latest)
	s.by(companytest.Board, "plan.decompose", paper.DecomposePlan{ID: s.ID(), Issue: issue, Revision: d.Latest,
		Children: []company.CreateIssue{{ID: s.ID(), Title: "one"}}},
		"issue.accepted_plan_decomposition_updated & issue.child_created")
	s.by(companytest.Board, "document.delete", paper.ChangeDocument{Issue: issue, Key: "plan"}, "issue.document_deleted")
}

func tellOfInteractions(s *storyteller) {
	ada := s.Hired("Ada")
	i := s.Issue(s.t, company.CreateIssue{Status: entity.IssueTodo})
	asked := func(kind, payload string) string {
		in := s.Asks(s.t, companytest.As{Agent: ada, Run: s.Run(ada)}, i.ID, kind, payload)
		return in.ID
	}
	id := s.ID()
	s.by(companytest.Board, "interaction.create", paper.CreateInteraction{ID: id, Issue: i.ID, Kind: paper.SuggestTasks,
		Payload: json.RawMessage(companytest.FourTasks)}, "issue.thread_interaction_created")
	s.by(companytest.Board, "interaction.accept", paper.ResolveInteraction{Issue: i.ID, ID: id},
		"issue.thread_interaction_accepted & issue.created issue.created issue.created")
	question := `{"version":1,"questions":[{"id":"q","prompt":"Which?","selectionMode":"single","required":false,` +
		`"options":[{"id":"a","label":"A"},{"id":"b","label":"B"}]}]}`
	s.by(companytest.Board, "interaction.answer", paper.ResolveInteraction{Issue: i.ID,
		ID: asked(paper.AskQuestions, question), Answers: []paper.Answer{{Question: "q", Options: []string{"a"}}}},
		"issue.thread_interaction_answered")
	s.by(companytest.Board, "interaction.reject", paper.ResolveInteraction{Issue: i.ID,
		ID: asked(paper.Confirmation, `{"version":1,"prompt":"Go?"}`), Reason: "no"}, "issue.thread_interaction_rejected")
	s.by(companytest.Board, "interaction.cancel", paper.ResolveInteraction{Issue: i.ID,
		ID: asked(paper.AskQuestions, question)}, "issue.thread_interaction_cancelled")
	s.by(companytest.Board, "interaction.withdraw", paper.ResolveInteraction{Issue: i.ID,
		ID: asked(paper.Confirmation, `{"version":1,"prompt":"Go on?"}`)}, "issue.thread_interaction_cancelled")
	s.by(companytest.Board, "interaction.skip", paper.ResolveInteraction{Issue: i.ID,
		ID: asked(paper.AskQuestions, question)}, "issue.thread_interaction_cancelled")
	s.by(companytest.Board, "interaction.judge", paper.ResolveInteraction{Issue: i.ID,
		ID:     asked(paper.ItemVerdicts, `{"version":1,"prompt":"Keep?","items":[{"id":"x","label":"X"}]}`),
		Judged: []paper.Verdict{{Item: "x", Verdict: "approve"}}}, "issue.thread_interaction_answered")
}

func tellOfAgents(s *storyteller) {
	ada := s.ID()
	s.by(companytest.Board, "agent.create", entity.SaveAgent{ID: ada, Name: new("Ada"), AdapterType: new("process"),
		AdapterConfig: json.RawMessage(`{"command":"true"}`),
		RuntimeConfig: json.RawMessage(`{"heartbeat":{"enabled":true,"intervalSec":60,"wakeOnDemand":true}}`)},
		"agent.created")
	s.by(companytest.Board, "agent.update", entity.SaveAgent{ID: ada, Title: new("Dr"),
		AdapterConfig: json.RawMessage(`{"command":"false"}`)}, "agent.updated")
	list := entity.RevisionsOf(s.Tx, s.Company, ada)
	s.by(companytest.Board, "agent.rollback", company.RollbackAgent{Agent: ada, Revision: list[0].ID},
		"agent.config_rolled_back")
	yes := true
	s.by(companytest.Board, "agent.permissions", company.GrantAgent{Agent: ada, Grant: entity.Grant{CreateAgents: &yes}},
		"agent.permissions_updated")
	s.by(companytest.Board, "agent.pause", company.ChangeAgent{Agent: ada}, "agent.paused")
	s.by(companytest.Board, "agent.resume", company.ChangeAgent{Agent: ada}, "agent.resumed")
	key := s.ID()
	s.by(companytest.Board, "agent_key.create", people.CreateKey{ID: key, Agent: ada, Name: "k",
		Hash: companytest.HexHash("a")}, "agent.key_created")
	s.by(companytest.Board, "agent_key.revoke", people.RevokeKey{ID: key, Agent: ada}, "agent.key_revoked")
	s.by(companytest.Board, "instructions.file", skill.SaveInstructionFile{Agent: ada, Path: "AGENTS.md", Content: "do"},
		"agent.instructions_file_updated")
	s.by(companytest.Board, "instructions.set", skill.SetInstructions{Agent: ada, Mode: new("external"),
		Root: new("/srv/ada"), Entry: new("A.md")}, "agent.instructions_bundle_updated")
	sk := s.Skill(s.t, "weld")
	s.by(companytest.Board, "agent.skills", skill.SyncSkills{Agent: ada, Mode: "replace", Keys: []string{sk.Slug}},
		"agent.skills_synced")
	s.by(companytest.Board, "agent.reset_session", company.ResetSession{Agent: ada}, "agent.runtime_session_reset")
	s.by(companytest.Board, "memory.put", skill.PutMemory{Agent: ada, Key: "page.0", Value: "x"}, "agent.memory_put")
	s.by(companytest.Board, "memory.delete", skill.DropMemory{Agent: ada, Key: "page.0"}, "agent.memory_deleted")
	letter := s.ID()
	s.by(companytest.Board, "message.send", skill.SendMessage{ID: letter, To: ada, Payload: json.RawMessage(`1`)},
		"agent.message_sent")
	s.by(companytest.As{Agent: ada, Run: s.Run(ada)}, "message.take", skill.TakeMessages{Agent: ada,
		IDs: []string{letter}}, "agent.messages_taken")
	s.by(companytest.As{Agent: ada, Run: s.Run(ada)}, "tool.trace",
		skill.TraceTools{Calls: []skill.ToolCall{{Tool: "paperclipMe", Method: "GET", Path: "/api/agents/me", Status: 200,
			At: core.TimeOf(s.Now)}}}, "mcp.tool_called")
	tm, ok := entity.TimerOf(s.Tx, s.Company, ada)
	if !ok {
		s.t.Fatal("no timer")
	}
	s.Now = s.Now.Add(time.Hour)
	s.byNode("timer.tick", company.Tick{Agent: ada, Seq: tm.Seq}, "")
	s.by(companytest.Board, "agent.wake", entity.Wake{Agent: ada, Source: entity.WakeOnDemand, TriggerDetail: "manual",
		Wakeup: s.ID(), Run: s.ID()}, "heartbeat.invoked")
	s.by(companytest.Board, "agent.terminate", company.ChangeAgent{Agent: ada},
		"agent.terminated & environment.lease_released environment.lease_released")
	s.by(companytest.Board, "agent.delete", company.ChangeAgent{Agent: ada}, "agent.deleted")
	file := s.File("\x00asm")
	deploy := skill.DeployTool{Name: "count", Description: "Count words", Effect: skill.ToolEffect{Risk: 100}, File: file,
		Version: 1, Signer: s.node}
	deploy.Signature = skill.ToolStatement{Mesh: "m", Company: s.Company, Name: deploy.Name, Version: 1,
		Hash: file.SHA256}.Sign(s.keys)
	s.by(companytest.Board, "tool.deploy", deploy, "tool.deployed")
	s.by(companytest.Board, "tool.execute", skill.ExecuteTool{Name: "count", Input: companytest.HexHash("a")},
		"tool.executed")
	s.by(companytest.Board, "tool.revoke", skill.RevokeTool{Name: "count", Version: 1, Reason: "old"}, "tool.revoked")
}

func tellOfApprovals(s *storyteller) {
	i := s.Issue(s.t, company.CreateIssue{})
	ask := func() string {
		id := s.ID()
		s.by(companytest.Board, "approval.create", money.CreateApproval{ID: id, Type: money.ApprovalRequest,
			Payload: json.RawMessage(`{"title":"T"}`)}, "approval.created")
		return id
	}
	first, second, third := ask(), ask(), ask()
	s.by(companytest.Board, "approval.link", money.LinkApproval{Approval: first, Issue: i.ID}, "issue.approval_linked")
	s.by(companytest.Board, "approval.comment", money.CommentApproval{ID: s.ID(), Approval: first, Body: "why?"},
		"approval.comment_added")
	s.by(companytest.Board, "approval.revise", money.DecideApproval{Approval: first, Note: "more"},
		"approval.revision_requested")
	s.by(companytest.Board, "approval.resubmit", money.ResubmitApproval{Approval: first,
		Payload: json.RawMessage(`{"title":"T 2"}`)}, "approval.resubmitted")
	s.by(companytest.Board, "approval.unlink", money.LinkApproval{Approval: first, Issue: i.ID}, "issue.approval_unlinked")
	s.by(companytest.Board, "approval.approve", money.DecideApproval{Approval: first}, "approval.approved")
	s.by(companytest.Board, "approval.reject", money.DecideApproval{Approval: second}, "approval.rejected")
	s.by(companytest.Board, "approval.cancel", money.DecideApproval{Approval: third}, "approval.cancelled")
	yes, chief, hire := true, s.Boss(s.t), s.ID()
	s.Must(s.t, companytest.Board, "company.update", entity.SaveCompany{RequireHireApproval: &yes}, nil)
	s.by(chief, "agent.hire", money.HireAgent{Agent: entity.SaveAgent{ID: s.ID(), Name: new("Bob"),
		AdapterType: new("process")}, Approval: hire}, "agent.hire_created & approval.created")
	s.by(companytest.Board, "approval.approve", money.DecideApproval{Approval: hire},
		"approval.approved & agent.hire_approved approval.requester_wakeup_queued")
}

func tellOfAccess(s *storyteller) {
	invite, gone := people.Invite{}, people.Invite{}
	s.by(companytest.Board, "invite.create", people.CreateInvite{ID: s.ID(), Hash: companytest.HexHash("6"),
		Joins: people.JoinBoth}, "invite.created", &invite)
	s.by(companytest.Board, "invite.create", people.CreateInvite{ID: s.ID(), Hash: companytest.HexHash("7"),
		Joins: people.JoinBoth}, "invite.created", &gone)
	s.by(companytest.Board, "invite.revoke", people.RevokeInvite{ID: gone.ID}, "invite.revoked")
	request := s.ID()
	s.byNode("invite.accept", people.AcceptInvite{ID: request, Hash: companytest.HexHash("6"), Type: people.JoinAgent,
		AgentName: "J", Adapter: "http", ClaimHash: companytest.HexHash("8")}, "join.requested")
	s.by(companytest.Board, "join.approve", people.DecideJoin{ID: request}, "join.approved & agent.created")
	s.byNode("join.claim", people.ClaimKey{ID: request, ClaimHash: companytest.HexHash("8"), Key: s.ID(),
		Hash: companytest.HexHash("9")}, "agent_api_key.claimed & agent.key_created")
	s.by(companytest.Board, "invite.create", people.CreateInvite{ID: s.ID(), Hash: companytest.HexHash("5"),
		Joins: people.JoinBoth}, "invite.created")
	request = s.ID()
	s.byNode("invite.accept", people.AcceptInvite{ID: request, Hash: companytest.HexHash("5"), Type: people.JoinAgent,
		AgentName: "K", Adapter: "http", ClaimHash: companytest.HexHash("4")}, "join.requested")
	s.by(companytest.Board, "join.reject", people.DecideJoin{ID: request}, "join.rejected")
	m := s.Enlist("u2", people.RoleOperator)
	s.by(companytest.Board, "member.update", people.ChangeMember{ID: m.ID, Role: new(people.RoleViewer)},
		"company_member.updated")
	s.by(companytest.Board, "member.archive", people.ArchiveMember{ID: m.ID}, "company_member.archived")
	k := people.BoardKey{}
	s.by(companytest.Board, "board_key.create", people.CreateBoardKey{ID: s.ID(), Name: "ci",
		Hash: companytest.HexHash("b")}, "board_api_key.created", &k)
	s.by(companytest.Board, "board_key.revoke", people.RevokeBoardKey{ID: k.ID}, "board_api_key.revoked")
	open := func(n string) (c people.Challenge) {
		s.byNode("cli_auth.open", people.OpenChallenge{ID: s.ID(), Hash: companytest.HexHash(n),
			KeyHash: companytest.HexHash("f" + n)[:64], Command: "login", Access: "board"}, "cli_auth.requested", &c)
		return c
	}
	one, two := open("c"), open("d")
	s.by(companytest.Board, "cli_auth.approve", people.DecideChallenge{ID: one.ID, Hash: companytest.HexHash("c"),
		Key: s.ID()}, "board_api_key.created")
	s.byNode("cli_auth.cancel", people.DecideChallenge{ID: two.ID, Hash: companytest.HexHash("d")}, "cli_auth.cancelled")
}

func tellOfPeople(s *storyteller) {
	s.by(companytest.Board, "instance.settings", company.PatchSettings{Section: "general",
		Values: json.RawMessage(`{"signUps":"open"}`)}, "instance.settings.general_updated")
	s.by(companytest.Board, "instance.auth", people.SetAuth{Mode: people.Authenticated}, "instance.auth_mode_changed")
	s.byNode("instance.endpoint", people.SetEndpoint{URL: "https://n.example.com"}, "node.endpoint_changed")
	ann, bob := s.ID(), s.ID()
	inAnn, inBob := s.ID(), s.ID()
	s.byNode("user.create", people.CreateUser{ID: ann, Name: "Ann", Email: "ann@example.com", Password: "kept",
		Session: people.NewSession{ID: inAnn, Hash: companytest.HexHash("1")}}, "user.created")
	s.byNode("user.create", people.CreateUser{ID: bob, Name: "Bob", Email: "bob@example.com", Password: "kept",
		Session: people.NewSession{ID: inBob, Hash: companytest.HexHash("2")}}, "user.created")
	s.byUser(ann, inAnn, "user.claim", people.ClaimInstance{}, "instance.claimed")
	s.byUser(ann, inAnn, "user.admin", people.AppointAdmin{User: bob, Admin: true}, "instance_admin.promoted")
	s.byUser(ann, inAnn, "member.set", people.SetMember{User: bob, Role: people.RoleViewer}, "company_member.access_set")
	s.byUser(ann, inAnn, "user.update", people.ChangeUser{Name: new("Anna")}, "user.updated")
	s.byUser(ann, inAnn, "user.password", people.ChangePassword{Was: sha256.Sum256([]byte("kept")), Password: "other"},
		"user.password_changed")
	s.byNode("user.sign_in", people.SignIn{User: bob, Password: sha256.Sum256([]byte("kept")),
		Session: people.NewSession{ID: s.ID(), Hash: companytest.HexHash("3")}}, "user.signed_in")
	s.byUser(bob, inBob, "user.sign_out", people.SignOut{}, "user.signed_out")
	s.byUser(ann, inAnn, "user.suspend", people.SuspendUser{User: bob, Suspend: true}, "user.suspended")
	s.byUser(ann, inAnn, "user.revoke", people.EndCredentials{User: ann}, "user.credentials_revoked")
}

func tellOfMoney(s *storyteller) {
	ada := s.Hired("Ada")
	s.by(companytest.Board, "cost.report", money.ReportCost{Event: money.CostEvent{ID: s.ID(), Agent: ada, Provider: "p",
		Model: "m", Cost: core.Cents(10), OccurredAt: core.TimeOf(s.Now)}}, "cost.reported")
	s.by(companytest.Board, "budget.set", money.SetBudget{Type: entity.ScopeAgent, Scope: ada, Amount: core.Cents(100)},
		"budget.policy_upserted")
	s.by(companytest.Board, "cost.report", money.ReportCost{Event: money.CostEvent{ID: s.ID(), Agent: ada, Provider: "p",
		Model: "m", Cost: core.Cents(90), OccurredAt: core.TimeOf(s.Now)}},
		"cost.reported & approval.created budget.hard_threshold_crossed")
	in := money.OpenIncidents(s.Tx, s.Company, core.TimeOf(s.Now))
	s.by(companytest.Board, "budget.resolve", money.ResolveIncident{Incident: in[0].ID, Action: "raise_budget_and_resume",
		Amount: new(core.Cents(5000))}, "budget.incident_resolved & approval.approved budget.policy_upserted")
	reservation := func() money.Reservation {
		var r money.Reservation
		s.byNode("budget.reserve", money.Reserve{ID: s.ID(), Agent: ada, Want: core.Cents(50),
			Until: core.TimeOf(s.Now.Add(time.Hour))}, "budget.reserved", &r)
		return r
	}
	one, two := reservation(), reservation()
	s.byNode("budget.settle", money.Settle{Reservation: one.ID, Calls: []money.Metered{s.Call(core.Cents(30))},
		Close: true}, "cost.metered")
	s.byNode("budget.settle", money.Settle{Reservation: two.ID, Uncertain: true}, "budget.uncertain")
	s.by(companytest.Board, "budget.writeoff", money.WriteOff{Reservation: two.ID}, "budget.written_off")
	s.by(companytest.Board, "finance.book", money.FinanceEvent{ID: s.ID(), Kind: "platform_fee", Biller: "x",
		Amount: core.Cents(1), OccurredAt: core.TimeOf(s.Now)}, "finance_event.reported")
	s.by(companytest.Board, "cost.report", money.ReportCost{Event: money.CostEvent{ID: s.ID(), Agent: ada, Provider: "p",
		Model: "m", Cost: core.Cents(5000), OccurredAt: core.TimeOf(s.Now)}},
		"cost.reported & approval.created budget.hard_threshold_crossed")
	s.Now = s.Now.Add(40 * 24 * time.Hour)
	s.by(companytest.Board, "budget.sweep", money.SweepBudgets{}, "budget.scope_resumed & approval.approved")
	provider := s.ID()
	s.by(companytest.Board, "model_provider.save", money.SaveModelProvider{ID: provider, Create: true, Name: new("vllm"),
		Kind: new(money.ModelKind("openai")), BaseURL: new("http://127.0.0.1:8000/v1")}, "model_provider.created")
	s.by(companytest.Board, "model_provider.remove", money.DropModelProvider{ID: provider}, "model_provider.removed")
	s.by(companytest.Board, "model_price.set", money.SetModelPrice{Price: money.ModelPrice{Model: "m", Input: 5,
		Output: 6}}, "model_price.set")
	s.by(companytest.Board, "model_price.remove", money.DropModelPrice{Model: "m"}, "model_price.removed")
}

func tellOfRuns(s *storyteller) {
	ada := s.Hired("Ada")
	i := s.Issue(s.t, company.CreateIssue{Status: entity.IssueBacklog, Assignee: ada})
	wake := func() string {
		id := s.ID()
		s.by(companytest.Board, "agent.wake", entity.Wake{Agent: ada, Source: entity.WakeOnDemand, TriggerDetail: "manual",
			Issue: i.ID, Wakeup: s.ID(), Run: id}, "heartbeat.invoked")
		return id
	}
	run := wake()
	s.byNode("run.unplaced", company.Unplaced{Run: run, Why: company.Placement{Run: run, At: core.TimeOf(s.Now)}},
		"heartbeat.run.waiting")
	s.byNode("run.place", company.Place{Run: run, Node: s.node, Session: s.session}, "")
	s.byNode("run.return", company.Return{Run: run, Reason: "full"}, "")
	s.byNode("run.place", company.Place{Run: run, Node: s.node, Session: s.session}, "")
	s.byNode("run.start", company.Start{Run: run, LogStore: "local_file", LogRef: "x"}, "environment.lease_acquired")
	s.byNode("run.report", company.Report{Run: run, Phase: entity.PhaseExecute, PID: 7, Group: 7,
		Events: []company.ReportEvent{{Type: "adapter.invoke", Level: "info", Message: "m"}}}, "")
	s.by(companytest.As{Agent: ada, Run: run}, "run.callback", company.Callback{Run: run, Status: entity.RunSucceeded,
		Summary: "done"}, "heartbeat.called_back")
	s.by(companytest.Board, "run.watch", care.DecideWatch{ID: s.ID(), Run: run, Decision: "continue"},
		"heartbeat.watchdog_decision_recorded")
	size := int64(4)
	s.byNode("run.finish", company.Finish{Run: run, Outcome: company.Outcome{Status: entity.RunFailed,
		ErrorCode: "upstream", Transient: true}, LogBytes: &size, LogSHA256: companytest.HexHash("a")},
		"environment.lease_released")
	s.by(companytest.Board, "run.retry_now", company.RetryNow{Issue: i.ID}, "issue.scheduled_retry_triggered")
	s.byNode("run_log.keep", company.KeepLogs{Logs: []company.KeptLog{{Run: run, Nodes: []string{s.node}}}},
		"heartbeat.run.logs_kept")
	retry, _ := company.RetryOf(s.Tx, s.Load(i.ID))
	s.by(companytest.Board, "run.cancel", company.Cancel{Run: retry.ID, Reason: "no"}, "heartbeat.cancelled")
	run = wake()
	s.byNode("run.place", company.Place{Run: run, Node: s.node, Session: s.session}, "")
	s.byNode("run.start", company.Start{Run: run, LogStore: "local_file", LogRef: "x"}, "environment.lease_acquired")
	s.by(companytest.Board, "run.cancel", company.Cancel{Run: run, Reason: "no"},
		"heartbeat.cancelled & environment.lease_released")
	s.byNode("run.cost", money.TellCost{Run: run, Cost: entity.RunCost{Provider: "p", Model: "m",
		Usage: entity.Usage{InputTokens: 5}, Cost: core.Cents(3), Priced: true}}, "cost.reported")
	s.byNode("run.finish", company.Finish{Run: run, Outcome: company.Outcome{Status: entity.RunCancelled}}, alreadyTold)
	run = wake()
	s.byNode("run.place", company.Place{Run: run, Node: s.node, Session: s.session}, "")
	s.byNode("run.start", company.Start{Run: run, LogStore: "local_file", LogRef: "x"}, "environment.lease_acquired")
	s.byNode("node.lost", entity.NodeLost{Node: s.node, Session: s.session},
		"node.lost & session.ended environment.lease_released")
	s.byNode("run.lost", company.TellLoss{Run: run, Why: "it could not run for 9.1 s: load 31"},
		"heartbeat.loss_explained")
	s.Now = s.Now.Add(400 * 24 * time.Hour)
	s.byNode("run_log.sweep", company.SweepLogs{}, "instance.run_logs_swept")
	s.Now = s.Now.Add(company.DefaultEventDays * 24 * time.Hour)
	s.byNode("run_event.sweep", company.SweepEvents{}, "heartbeat.run.events_swept")
}

func tellOfWorkspaces(s *storyteller) {
	_, r, w := s.Space(s.t, "One")
	for _, id := range []string{r.ID} { // on this node
		s.Tx.Delete(entity.SessionKey(r.Session, id))
		r.Node, r.Session = s.node, s.session
		s.StoreRun(r)
		w.Node = core.NullText(s.node)
		place.ExecWorkspaces.Put(s.Tx, s.Company, w.ID, w)
	}
	s.byNode("exec_workspace.realize", place.RealizeWorkspace{ID: w.ID, Run: r.ID, Cwd: "/n1/other"},
		"execution_workspace.realized")
	s.by(companytest.Board, "exec_workspace.update", place.UpdateExecutionWorkspace{ID: w.ID,
		Config: &place.WorkspaceConfig{
			Runtime: json.RawMessage(`{"services":[{"name":"Web","command":"npm start","port":80}],` +
				`"jobs":[{"name":"Build","command":"make"}]}`)}}, "execution_workspace.updated")
	op := s.ID()
	s.byNode("workspace_op.start", place.StartOperation{ID: op, Workspace: w.ID, Run: r.ID,
		Phase: place.OperationProvision, Name: "setupCommand", Command: "make", Cwd: "/n1/tree", LogRef: "x"},
		"workspace_operation.started")
	s.byNode("workspace_op.finish", place.FinishOperation{ID: op, ExitCode: new(int64)}, "workspace_operation.finished")
	s.by(companytest.Board, "workspace_op.request", place.ControlServices{Operation: s.ID(), Workspace: w.ID,
		Action: "run", Command: "build"}, "workspace_operation.requested")
	s.by(companytest.Board, "runtime_service.control", place.ControlServices{Operation: s.ID(), Workspace: w.ID,
		Action: "start"}, "workspace_operation.finished")
	web := place.ServicesOf(s.Tx, s.Company, w.ID)[0]
	s.byNode("runtime_service.report", place.ReportService{ID: web.ID, Generation: 1, Status: place.ServiceRunning,
		Health: "healthy", Port: 80, PID: 7}, "runtime_service.running")
	machine := s.ID()
	s.by(companytest.Board, "environment.save", place.SaveEnvironment{ID: machine, New: true, Name: new("m"),
		Driver: "ssh", Config: json.RawMessage(`{"host":"h.example.com","port":22,"username":"u",` +
			`"remoteWorkspacePath":"/w"}`)}, "environment.created")
	s.by(companytest.Board, "environment.probe", place.NameEnvironment{ID: machine}, "environment.probed")
	s.by(companytest.Board, "environment.delete", place.NameEnvironment{ID: machine}, "environment.deleted")
	c := s.Context(companytest.As{}, "", nil)
	company.EndRun(c, r, company.Outcome{Status: entity.RunSucceeded})
	r, _ = entity.RunTable.Get(s.Tx, s.Company, r.ID)
	s.Tx.Delete(entity.SessionKey(r.Session, r.ID))
	r.Owed = false
	entity.RunTable.Put(s.Tx, s.Company, r.ID, r)
	archived := place.WorkspaceArchived
	s.by(companytest.Board, "exec_workspace.update", place.UpdateExecutionWorkspace{ID: w.ID, Status: &archived},
		"execution_workspace.updated")
	s.byNode("exec_workspace.cleaned", place.CleanWorkspace{ID: w.ID}, "execution_workspace.cleaned")
}

func tellOfRoutines(s *storyteller) {
	ada := s.Hired("Ada")
	r := routine.Routine{}
	s.by(companytest.Board, "routine.create", routine.SaveRoutine{ID: s.ID(), Title: new("Report"),
		Description: new("weld it"), Assignee: &ada}, "routine.created", &r)
	first := r.Revision
	s.by(companytest.Board, "routine.update", routine.SaveRoutine{ID: r.ID, Title: new("Report 2")}, "routine.updated")
	s.by(companytest.Board, "routine.restore", routine.RestoreRoutine{ID: r.ID, Revision: first},
		"routine.revision_restored")
	s.by(companytest.Board, "routine.run", routine.FireRoutine{Routine: r.ID, Run: s.ID(), Source: "manual"},
		"routine.run_triggered & issue.created")
	r, _ = routine.Routines.Get(s.Tx, s.Company, r.ID)
	d, thread := paper.DescriptionOf(r.Described()), s.ID()
	s.by(companytest.Board, "routine_annotation.create", paper.AnnotateDocument{ID: thread, Issue: r.ID,
		Key: "description", Revision: d.Latest, Number: d.Number, Exact: "weld", End: 4, MarkdownEnd: 4,
		Comment: paper.Remark{ID: s.ID(), Body: "why"}}, "routine.description_annotation_created")
	s.by(companytest.Board, "routine_annotation.comment", paper.ChangeAnnotation{Issue: r.ID, Key: "description",
		Thread: thread, Comment: paper.Remark{ID: s.ID(), Body: "so"}}, "routine.description_annotation_commented")
	s.by(companytest.Board, "routine_annotation.update", paper.ChangeAnnotation{Issue: r.ID, Key: "description",
		Thread: thread, Status: "resolved"}, "routine.description_annotation_updated")
	hook, clock := s.ID(), s.ID()
	s.by(companytest.Board, "routine_trigger.create", routine.SaveTrigger{ID: hook, Routine: r.ID,
		Kind: routine.TriggerWebhook, Signing: new("bearer"), PublicID: strings.Repeat("ab", 12), Sealed: []byte("sealed")},
		"routine.trigger_created")
	s.by(companytest.Board, "routine_trigger.update", routine.SaveTrigger{ID: hook, Label: new("hook")},
		"routine.trigger_updated")
	s.by(companytest.Board, "routine_trigger.rotate", routine.SaveTrigger{ID: hook, Sealed: []byte("again")},
		"routine.trigger_secret_rotated")
	s.byNode("routine.fire", routine.FireRoutine{Run: s.ID(), Trigger: hook, Source: "webhook",
		Payload: json.RawMessage(`{}`)}, "routine.run_triggered")
	due := core.TimeOf(s.Now.Add(time.Hour))
	s.by(companytest.Board, "routine_trigger.create", routine.SaveTrigger{ID: clock, Routine: r.ID,
		Kind: routine.TriggerSchedule, Cron: new("0 9 * * *"), Zone: new("UTC"), Next: due}, "routine.trigger_created")
	s.Now = s.Now.Add(time.Hour + time.Minute)
	s.byNode("routine.tick", routine.TickRoutine{Trigger: clock, Due: due, Next: due + money.MsPerDay},
		"routine.run_triggered")
	s.by(companytest.Board, "routine_trigger.delete", routine.SaveTrigger{ID: hook}, "routine.trigger_deleted")
	s.by(companytest.Board, "routine.delete", routine.ChangeRoutine{ID: r.ID}, "routine.deleted")
}

func tellOfSkills(s *storyteller) {
	ada := s.Hired("Ada")
	sk := skill.Skill{}
	s.by(companytest.Board, "skill.create", skill.SaveSkill{ID: s.ID(), Version: s.ID(), Slug: new("weld"),
		Name: new("Weld"), Markdown: new("---\nname: weld\ndescription: d\n---\nx\n")}, "company.skill_created", &sk)
	s.by(companytest.Board, "skill.update", skill.SaveSkill{ID: sk.ID, Tagline: new("t")}, "company.skill_updated")
	s.by(companytest.Board, "skill.file", skill.SaveSkillFile{Skill: sk.ID, Path: "references/a.md", Content: "x",
		Version: s.ID()}, "company.skill_file_updated")
	s.by(companytest.Board, "skill.rename", skill.RenameSkill{Skill: sk.ID, Name: "Welding", Slug: "welding"},
		"company.skill_renamed")
	s.by(companytest.Board, "skill.star", skill.StarSkill{Skill: sk.ID, Star: true}, "company.skill_starred")
	s.by(companytest.Board, "skill.version", skill.VersionSkill{Skill: sk.ID, ID: s.ID(), Label: "one"},
		"company.skill_version_created")
	sk, _ = skill.SkillRows.Get(s.Tx, s.Company, sk.ID)
	s.by(companytest.Board, "skill.reset", skill.ResetSkill{Skill: sk.ID, To: skill.SkillVersionsOf(s.Tx, sk)[0].ID,
		Version: s.ID()}, "company.skill_reset")
	s.by(companytest.Board, "skill.fork", skill.ForkSkill{ID: s.ID(), Version: s.ID(), Source: sk.ID, Slug: "solder",
		Name: "Solder"}, "company.skill_forked")
	said, input, test := s.ID(), s.ID(), s.ID()
	s.by(companytest.Board, "skill_comment.create", skill.SaySkill{ID: said, Skill: sk.ID, Body: "good"},
		"company.skill_comment_created")
	s.by(companytest.Board, "skill_comment.update", skill.SaySkill{ID: said, Skill: sk.ID, Body: "better"},
		"company.skill_comment_updated")
	s.by(companytest.Board, "skill_test.input", skill.SaveSkillInput{ID: input, Skill: sk.ID, Name: new("n"),
		Content: new("c")}, "company.skill_test_input_created")
	s.by(companytest.Board, "skill_test.start", skill.StartSkillTest{ID: test, Skill: sk.ID, Agent: ada, Issue: s.ID(),
		Input: input, Content: "try"}, "company.skill_test_run_created & issue.created")
	s.by(companytest.Board, "skill_test.forget", skill.ForgetSkillTest{Skill: sk.ID, ID: test},
		"company.skill_test_run_deleted")
	s.by(companytest.Board, "skill_test.keep", skill.KeepSkillTest{ID: s.ID(), Skill: sk.ID, Content: "c",
		Status: "succeeded", Output: "o"}, "company.skill_test_run_kept")
	s.by(companytest.Board, "skill.delete", skill.DeleteSkill{ID: sk.ID}, "company.skill_deleted")
}

func tellOfSecrets(s *storyteller) {
	id, def := s.ID(), s.ID()
	s.by(companytest.Board, "secret.create", secret.SaveSecret{ID: id, Name: "token", Sealed: []byte("one")},
		"secret.created")
	s.by(companytest.Board, "secret.rotate", secret.RotateSecret{ID: id, Version: 2, Sealed: []byte("two")},
		"secret.rotated")
	s.by(companytest.Board, "secret.update", secret.PatchSecret{ID: id, Description: new("d")}, "secret.updated")
	ada := s.Hired("Ada")
	run := s.Run(ada)
	r, _ := entity.RunTable.Get(s.Tx, s.Company, run)
	r.Node, r.Session = s.node, s.session
	s.StoreRun(r)
	s.byNode("secret.access", secret.UseSecrets{Run: run,
		Uses: []secret.SecretUse{{Secret: id, Version: 2, Path: "env.A"}}}, "secret.accessed")
	s.byNode("secret.reseal", conceal.Reseal{Type: "secret", ID: id, Version: 2, Old: []string{"dHdv"},
		New: []string{"bmV3"}}, "secret.resealed")
	s.by(companytest.Board, "secret.delete", secret.DropSecret{ID: id}, "secret.deleted")
	s.by(companytest.Board, "user_secret.define", secret.SaveUserSecretDefinition{ID: def, Key: "github",
		Name: new("GitHub")}, "user_secret_definition.created")
	s.by(companytest.Board, "user_secret.redefine", secret.SaveUserSecretDefinition{ID: def, Guidance: new("ask")},
		"user_secret_definition.updated")
	s.by(companytest.Board, "user_secret.undefine", secret.DropSecret{ID: def}, "user_secret_definition.deleted")
}

func tellOfTheMesh(s *storyteller) {
	declared := companytest.UID(77)
	s.by(companytest.Board, "process.spawn", replica.Order{Node: s.node, Name: "web", Backend: "native"},
		"process.spawn_ordered")
	s.by(companytest.Board, "process.elevate", replica.Order{Node: s.node, PID: 3, Why: "a larger index"},
		"process.elevate_ordered")
	s.by(companytest.Board, "process.kill", replica.Order{Node: s.node, PID: 3, Signal: "TERM"}, "process.kill_ordered")
	s.by(companytest.Board, "process.declare", replica.Declare{ID: declared, Name: "web",
		Spec: json.RawMessage(`{"command":["sleep","9"]}`), Replicas: 2}, "process.declared")
	s.byNode("process.place", replica.Place{ID: declared, Node: s.node, Session: s.session}, "process.placed")
	s.byNode("process.report", replica.Report{ID: declared, Generation: 1, Session: s.session, State: replica.Running,
		PID: 7}, "process.running")
	s.by(companytest.Board, "process.remove", replica.Remove{ID: declared}, "process.removed")
	s.by(companytest.Board, "node.cordon", company.Cordon{Node: s.node, Reason: "repairs"}, "node.cordoned")
	s.by(companytest.Board, "node.uncordon", company.Uncordon{Node: s.node}, "node.uncordoned")
	ada := s.Hired("Ada")
	busy := func() {
		for range company.MaxStoppedRuns + 1 { // more than one stop ends
			id := s.Run(ada)
			r, _ := entity.RunTable.Get(s.Tx, s.Company, id)
			r.Node, r.Session, r.Owed = s.node, s.session, true
			s.StoreRun(r)
		}
	}
	busy()
	s.by(companytest.Board, "mesh.stop", company.StopAll{Reason: "drill"}, "mesh.stopped & leases")
	s.byNode("mesh.quiesce", company.Quiesce{}, "mesh.quiesced & environment.lease_released")
	s.by(companytest.Board, "mesh.resume", company.ResumeAll{}, "mesh.resumed")
	busy()
	s.by(companytest.Board, "company.pause", company.ChangeCompany{}, "company.paused & leases")
	s.byNode("company.settle", company.SettleCompany{}, "company.settled & environment.lease_released")
	s.by(companytest.Board, "company.resume", company.ChangeCompany{}, "company.resumed")
}

func tellOfImports(s *storyteller) {
	job, other := s.ID(), s.ID()
	s.by(companytest.Board, "import_job.begin", transfer.BeginImportJob{ID: job, Node: s.node,
		Signature: companytest.HexHash("a")}, "import_job.started")
	s.by(companytest.Board, "import_job.progress", transfer.TellImportJob{ID: job, Phase: "applying", Done: 1,
		Total: 2}, "")
	s.by(companytest.Board, "company.import", transfer.ImportCompany{Job: job,
		Steps: []transfer.ImportStep{{Kind: "label.create",
			Payload: ledger.Marshal(company.CreateLabel{ID: s.ID(), Name: "bug", Color: "#ff0000"})},
			{Kind: "issue.create", Payload: ledger.Marshal(company.CreateIssue{ID: s.ID(), Title: "T"})}}}, "company.imported")
	s.by(companytest.Board, "import_job.begin", transfer.BeginImportJob{ID: other, Node: s.node,
		Signature: companytest.HexHash("b")}, "import_job.started")
	s.by(companytest.Board, "import_job.fail", transfer.FailImportJob{ID: other, Error: "no"}, "import_job.failed")
	s.Now = s.Now.Add(400 * 24 * time.Hour)
	s.byNode("import_job.sweep", transfer.SweepImportJobs{}, "import_job.swept")
}

func tellOfUpkeep(s *storyteller) {
	part := []byte("a part")
	s.by(companytest.Board, "part.put", company.PutPart{Bytes: part}, "")
	i := s.Issue(s.t, company.CreateIssue{})
	s.Attach(s.t, companytest.Board, i.ID, "x")
	s.Must(s.t, companytest.Board, "document.save", paper.SaveDocument{Issue: i.ID, Key: "plan", ID: s.ID(),
		Revision: s.ID(), Format: "markdown", Body: "x"}, nil)
	s.Must(s.t, companytest.Board, "issue.delete", company.DeleteIssue{Issue: i.ID}, nil)
	s.byNode("attachment.sweep", file.SweepAttachments{}, "issue.attachments_swept")
	s.byNode("issue.sweep", company.SweepThreads{}, "issue.thread_swept")
	s.byNode("issue.index", inbox.IndexIssues{}, "company.issues_indexed")
	s.Now = s.Now.Add(400 * 24 * time.Hour)
	s.byNode("part.sweep", company.SweepParts{}, "company.parts_swept")
}

func tellOfMemories(s *storyteller) {
	ada := s.Hired("Ada")
	at := companytest.As{Agent: ada, Run: s.Run(ada)}
	project, issue, comment := s.Project("Site"), s.Issue(s.t, company.CreateIssue{}), s.ID()
	s.by(companytest.Board, "comment.create", entity.CreateComment{ID: comment, Issue: issue.ID, Body: "Globex pays late"},
		"issue.comment_added")
	mine, shared, later := s.ID(), s.ID(), s.ID()
	s.by(companytest.Board, "memory.add", memory.Save{ID: shared, Text: new("Globex pays late"), Agent: ada,
		Issue: issue.ID, Comment: comment, Project: &project}, "memory.added")
	s.by(at, "memory.add", memory.Save{ID: mine, Text: new("the key is under the mat"), Private: new(true),
		Links: &[]string{shared}}, "memory.added")
	s.by(companytest.Board, "memory.add", memory.Save{ID: later, Text: new("frozen until Monday"),
		ExpiresAt: new(core.TimeOf(s.Now.Add(10 * time.Second)))}, "memory.added")
	s.by(at, "memory.update", memory.Save{ID: mine, Text: new("the key is with Bob"), Importance: new(int64(700)),
		Project: &project}, "memory.updated")
	s.by(companytest.Board, "memory.configure", memory.Configure{Model: "box/mini", Agent: ada}, "memory.configured")
	vector, _ := index.Pack([]float32{1, 2, 3, 4, 5, 6, 7, 8})
	s.byNode("memory.embed", memory.Embed{Model: "box/mini@1",
		Vectors: []memory.Embedded{{ID: shared, Text: memory.TextDigest("Globex pays late"), Vector: vector}}},
		"memory.embedded")
	s.byNode("memory.link", memory.Link{Through: 2, Renewed: []string{shared},
		Pairs: []memory.Pair{{A: mine, B: shared, Weight: 800}}}, "memory.linked")
	s.by(at, "memory.forget", memory.Forget{IDs: []string{mine}}, "memory.forgotten")
	s.Now = s.Now.Add(time.Minute)
	s.byNode("memory.expire", memory.Expire{}, "memory.expired")
	s.by(companytest.Board, "issue.update", company.UpdateIssue{Issue: issue.ID, Status: entity.IssueDone},
		"issue.updated")
}

func tellOfGovernance(s *storyteller) {
	s.by(companytest.Board, govern.KindPlace, govern.SetPlace{Class: new(governance.Staging)}, "governance.place_set")
	deny := governance.Rule{ID: "T-1", Branch: governance.Executive, Severity: governance.Blocking,
		On: []string{"label.create"}, When: `rank != "board"`, Reason: "{act} is for people"}
	var a govern.Amendment
	s.by(companytest.Board, govern.KindPropose, govern.Propose{Title: "labels",
		Change: governance.Change{Put: []governance.Rule{deny}}}, "governance.proposed", &a)
	s.by(companytest.Board, govern.KindSign, govern.Sign{Amendment: a.ID}, "governance.signed")
	s.by(companytest.Board, govern.KindEnact, govern.NameAmendment{Amendment: a.ID}, "governance.amended")
	s.by(companytest.Board, govern.KindPropose,
		govern.Propose{Title: "none", Change: governance.Change{Drop: []string{"T-1"}}}, "governance.proposed", &a)
	s.by(companytest.Board, govern.KindWithdraw, govern.NameAmendment{Amendment: a.ID}, "governance.withdrawn")
	s.by(companytest.Board, govern.KindFilters, govern.SetFilters{On: new(true)}, "governance.filters_set")
	ada := s.Hired("Ada")
	c := s.Context(companytest.As{Agent: ada, Run: s.Run(ada)}, "label.create", company.CreateLabel{ID: s.ID(),
		Name: "bug", Color: "#ff0000"})
	if err := govern.Weigh(c); err == nil {
		s.t.Error("the rule does not speak")
	}
	s.Now = s.Now.Add(govern.WaitFor + time.Minute)
	s.byNode(govern.KindLapse, govern.Lapse{}, "governance.lapsed & approval.rejected")
	s.by(companytest.Board, govern.KindForgetPast, govern.ForgetPast{Agent: ada}, "governance.past_forgotten")
	d, _, _ := govern.WeighLocal(s.Tx, govern.Local{Action: "exec", Agent: ada, Company: s.Company})
	s.byNode(govern.KindRecord, govern.Record{Decisions: []govern.Decision{d}}, "governance.recorded")
	up := govern.Elevate{ID: s.ID(), Agent: ada, Clearances: []string{"deploy"}, Seconds: 60, Reason: "a release"}
	s.by(companytest.Board, govern.KindElevate, up, "capability.elevated")
	s.by(companytest.Board, govern.KindElevationRevoke, govern.EndElevation{Agent: ada, ID: up.ID}, "capability.revoked")
	at := companytest.As{Agent: ada, Run: s.Run(ada)}
	for n, kind := range []string{govern.KindPermitUse, govern.KindPermitRevoke} {
		ask := govern.AskPermit{ID: s.ID(), Agent: ada, Action: "fs.read_file",
			Arguments: govern.ArgumentsOf([]byte{byte(n)})}
		s.by(at, govern.KindPermit, ask, "governance.permitted")
		if kind == govern.KindPermitUse {
			s.by(at, kind, govern.UsePermit{Permit: ask.ID, Agent: ada, Action: ask.Action, Arguments: ask.Arguments},
				"governance.permit_used")
		} else {
			s.by(companytest.Board, kind, govern.EndPermit{Permit: ask.ID}, "governance.permit_revoked")
		}
	}
}

func tellOfTopics(s *storyteller) {
	s.by(companytest.Board, "topic.publish", topic.Publish{Topic: "build.done", Text: "green"}, "topic.published")
	s.byNode("topic.publish", topic.Publish{Topic: "build.done", Text: `{"ok":true}`, JSON: true, From: "n1:7"},
		"topic.published")
	s.by(companytest.Board, "topic.keep", topic.Keep{Topic: "build.done", Messages: 5}, "topic.kept")
	s.by(companytest.Board, "topic.subscribe", topic.Subscribe{Name: "ci", Pattern: "build.*", From: new(uint64)},
		"topic.subscribed")
	s.by(companytest.Board, "topic.acknowledge", topic.Acknowledge{Name: "ci", Height: 1}, "topic.acknowledged")
	s.by(companytest.Board, "topic.unsubscribe", topic.Unsubscribe{Name: "ci"}, "topic.unsubscribed")
	s.by(companytest.Board, "topic.delete", topic.Delete{Topic: "build.done"}, "topic.deleted")
}

func tellOfTheClock(s *storyteller) {
	now := core.TimeOf(s.Now)
	save := cron.Save{Name: "report", Cron: "0 3 * * *", Zone: "UTC", Topic: "reports.due", Next: now}
	s.by(companytest.Board, "cron.save", save, "cron.saved")
	s.by(companytest.Board, "cron.run", cron.Change{Name: "report"}, "topic.published & cron.run")
	s.byNode("cron.tick", cron.Tick{Name: "report", Due: now, Next: now + 60_000}, "topic.published & cron.fired")
	s.by(companytest.Board, "cron.pause", cron.Change{Name: "report"}, "cron.paused")
	s.by(companytest.Board, "cron.resume", cron.Change{Name: "report", Next: now + 60_000}, "cron.resumed")
	s.by(companytest.Board, "cron.remove", cron.Change{Name: "report"}, "cron.removed")
}

func tellOfServices(s *storyteller) {
	s.by(companytest.Board, "service.register", service.Register{Name: "adder", Version: "1", Provider: "sums",
		Methods: []service.Method{{Name: "add"}}}, "service.registered")
	s.by(companytest.Board, "service.remove", service.Remove{Name: "adder"}, "service.removed")
}
