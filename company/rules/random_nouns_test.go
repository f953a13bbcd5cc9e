package rules_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// A planned is a document of an issue that users comment on and approve.
type planned struct{ issue, revision, thread string }

// nouns is a player's state of the newer nouns: comments on plans, skills and routines,
// environments and workspaces, duties, and accounts.
type nouns struct {
	plans                                                       []planned
	skills, spaces, machines, comments, said, tests, inputs, on []string // on: routines with a comment thread
	people                                                      []string
	holds                                                       [][2]string
}

// further executes one command of the newer nouns.
func (p *player) further() (kind, broken string) {
	id, who := p.ID(), p.actor()
	plan := func() *planned {
		if len(p.plans) == 0 {
			p.plans = append(p.plans, planned{issue: pick(p, p.issues)})
		}
		return &p.plans[p.rng.IntN(len(p.plans))]
	}
	thread := func() *planned {
		for n := range p.plans {
			if p.plans[n].thread != "" && p.rng.IntN(2) == 0 {
				return &p.plans[n]
			}
		}
		return plan()
	}
	switch p.rng.IntN(24) {
	case 0, 1:
		d := planned{issue: pick(p, p.issues), revision: p.ID()}
		base, had := "", p.done["document.save"]
		if i, ok := entity.IssueTable.Get(p.Tx, p.Company, d.issue); ok {
			if old, ok := paper.DocumentOf(p.Tx, i, "plan"); ok {
				base = old.Latest
			}
		}
		bad := p.command(who, "document.save", d.issue, paper.SaveDocument{Issue: d.issue, Key: "plan", ID: id,
			Revision: d.revision, Base: base, Title: new("Plan"), Format: "markdown", Body: "cut " + id})
		if p.done["document.save"] > had {
			p.plans = append(p.plans, d)
		}
		return "document.save", bad
	case 2:
		d, had := plan(), p.done["annotation.create"]
		bad := p.command(who, "annotation.create", d.issue, paper.AnnotateDocument{ID: id, Issue: d.issue, Key: "plan",
			Revision: d.revision, Number: 1, Exact: "cut", End: 3, MarkdownEnd: 3, Comment: paper.Remark{ID: p.ID(),
				Body: "why"}})
		if p.done["annotation.create"] > had {
			d.thread = id
		}
		return "annotation.create", bad
	case 3:
		d := thread()
		return "annotation.comment", p.command(who, "annotation.comment", d.issue, paper.ChangeAnnotation{Issue: d.issue,
			Key: "plan", Thread: d.thread, Comment: paper.Remark{ID: id, Body: "so"}})
	case 4:
		d := thread()
		return "annotation.update", p.command(who, "annotation.update", d.issue, paper.ChangeAnnotation{Issue: d.issue,
			Key: "plan", Thread: d.thread, Status: []string{"open", "resolved"}[p.rng.IntN(2)]})
	case 5: // a plan is approved, and turned into issues
		d := plan()
		payload, _ := json.Marshal(map[string]any{"version": 1, "prompt": "Agreed?",
			"target": map[string]any{"type": "issue_document", "issueId": d.issue, "key": "plan", "revisionId": d.revision}})
		if bad := p.command(companytest.Board, "interaction.create", d.issue, paper.CreateInteraction{ID: id, Issue: d.issue,
			Kind: paper.Confirmation, Payload: payload}); bad != "" {
			return "interaction.create", bad
		}
		if bad := p.command(companytest.Board, "interaction.accept", d.issue, paper.ResolveInteraction{Issue: d.issue,
			ID: id}); bad != "" {
			return "interaction.accept", bad
		}
		one, two := p.ID(), p.ID()
		had := p.done["plan.decompose"]
		bad := p.command(who, "plan.decompose", d.issue, paper.DecomposePlan{ID: p.ID(), Issue: d.issue, Revision: d.revision,
			Children: []company.CreateIssue{{ID: one, Title: one, Assignee: value(maybe(p, p.agents))},
				{ID: two, Title: two, BlockedBy: []string{"#1"}}}})
		if p.done["plan.decompose"] > had {
			p.issues = append(p.issues, one, two)
		}
		return "plan.decompose", bad
	case 6:
		p.skills = append(p.skills, id)
		return "skill.create", p.command(who, "skill.create", id, skill.SaveSkill{ID: id, Version: p.ID(),
			Slug: new("s" + id), Name: new("Skill " + id), Markdown: new("---\nname: s" + id + "\ndescription: d\n---\nx\n")})
	case 7:
		theSkill := pick(p, p.skills)
		return "skill_comment.create", p.keeps(&p.said, id, "skill_comment.create", func() string {
			return p.command(who, "skill_comment.create", theSkill, skill.SaySkill{ID: id, Skill: theSkill,
				Parent: value(maybe(p, p.said)), Body: "good"})
		})
	case 8:
		theSkill := pick(p, p.skills)
		return "skill_comment.update", p.command(who, "skill_comment.update", theSkill, skill.SaySkill{ID: pick(p, p.said),
			Skill: theSkill, Body: "better", Delete: p.rng.IntN(2) == 0})
	case 9:
		theSkill := pick(p, p.skills)
		return "skill_test.input", p.keeps(&p.inputs, id, "skill_test.input", func() string {
			return p.command(who, "skill_test.input", theSkill, skill.SaveSkillInput{ID: id, Skill: theSkill, Name: new("n"),
				Content: new("c")})
		})
	case 10:
		theSkill, issue := pick(p, p.skills), p.ID()
		had := p.done["skill_test.start"]
		bad := p.command(who, "skill_test.start", theSkill, skill.StartSkillTest{ID: id, Skill: theSkill,
			Agent: pick(p, p.agents), Issue: issue, Input: value(maybe(p, p.inputs)), Content: "try"})
		if p.done["skill_test.start"] > had {
			p.issues, p.tests = append(p.issues, issue), append(p.tests, id)
		}
		return "skill_test.start", bad
	case 11:
		theSkill := pick(p, p.skills)
		if p.rng.IntN(3) == 0 {
			return "skill.delete", p.command(companytest.Board, "skill.delete", theSkill, skill.DeleteSkill{ID: theSkill})
		}
		return "skill_test.forget", p.command(who, "skill_test.forget", theSkill, skill.ForgetSkillTest{Skill: theSkill,
			ID: pick(p, p.tests)})
	case 12:
		project := pick(p, p.projects)
		return "workspace.create", p.keeps(&p.spaces, id, "workspace.create", func() string {
			return p.command(companytest.Board, "workspace.create", project, entity.SaveWorkspace{ID: id, Project: project,
				Name: new("w" + id), RepoURL: new("https://example.com/" + id)})
		})
	case 13:
		project := pick(p, p.projects)
		if p.rng.IntN(2) == 0 {
			return "workspace.delete", p.command(companytest.Board, "workspace.delete", project,
				place.DeleteWorkspace{ID: pick(p, p.spaces), Project: project})
		}
		return "project.delete", p.command(companytest.Board, "project.delete", project, company.DeleteProject{ID: project})
	case 14:
		p.machines = append(p.machines, id)
		return "environment.save", p.command(companytest.Board, "environment.save", id,
			place.SaveEnvironment{ID: id, New: true, Name: new("m" + id), Driver: "ssh",
				Config: json.RawMessage(`{"host":"h.example.com","port":22,"username":"u","remoteWorkspacePath":"/w"}`)})
	case 15:
		machine := pick(p, p.machines)
		return "environment.delete", p.command(companytest.Board, "environment.delete", machine,
			place.NameEnvironment{ID: machine})
	case 16:
		issue := pick(p, p.issues)
		return "comment.create", p.keeps(&p.comments, id, "comment.create", func() string {
			return p.command(who, "comment.create", issue, entity.CreateComment{ID: id, Issue: issue, Body: "word",
				Resume: p.rng.IntN(4) == 0, Interrupt: p.rng.IntN(4) == 0})
		})
	case 17:
		comment, issue := pick(p, p.comments), pick(p, p.issues)
		if at, ok := p.Tx.Get(entity.CommentAtKey(p.Company, comment)); ok && p.rng.IntN(4) > 0 {
			issue, _, _ = strings.Cut(string(at), ".")
		}
		return "comment.delete", p.command(who, "comment.delete", issue, company.DeleteComment{Issue: issue, ID: comment})
	case 18:
		issue := pick(p, p.issues)
		if p.rng.IntN(3) == 0 {
			for of := range care.Watchdogs.All(p.Tx, p.Company) {
				issue = of
				break
			}
			return "watchdog.remove", p.command(who, "watchdog.remove", issue, care.RemoveWatchdog{Issue: issue})
		}
		return "watchdog.set", p.command(who, "watchdog.set", issue, care.SetWatchdog{ID: id, Issue: issue,
			Agent: pick(p, p.agents)})
	case 19:
		issue := pick(p, p.issues)
		at := core.TimeOf(p.Now.Add(time.Duration(p.rng.IntN(7200)) * time.Second))
		return "issue.update", p.command(who, "issue.update", issue, company.UpdateIssue{Issue: issue,
			ExecutionPolicy: json.RawMessage(`{"monitor":{"nextCheckAt":"` + at.String() + `","maxAttempts":5}}`)})
	case 20:
		if due := care.DueMonitors(p.Tx, core.TimeOf(p.Now), 1); len(due) > 0 && p.rng.IntN(2) == 0 {
			return "issue.monitor", p.command(companytest.Board, "issue.monitor", due[0].Issue, due[0].CheckMonitor)
		}
		issue := pick(p, p.issues)
		return "issue.monitor", p.command(who, "issue.monitor", issue, care.CheckMonitor{Issue: issue})
	case 21:
		issue := pick(p, p.issues)
		if len(p.holds) > 0 && p.rng.IntN(2) == 0 {
			h := p.holds[p.rng.IntN(len(p.holds))]
			return "tree.release", p.command(companytest.Board, "tree.release", h[0], care.ReleaseTree{Issue: h[0], Hold: h[1]})
		}
		p.holds = append(p.holds, [2]string{issue, id})
		return "tree.hold", p.command(companytest.Board, "tree.hold", issue, care.HoldTree{ID: id, Issue: issue,
			Mode: care.HoldModes[p.rng.IntN(len(care.HoldModes))]})
	case 22:
		theRoutine := pick(p, p.routines)
		r, ok := routine.Routines.Get(p.Tx, p.Company, theRoutine)
		if !ok {
			return "routine_annotation.create", ""
		}
		if r.Description == "" {
			return "routine.update", p.command(companytest.Board, "routine.update", theRoutine,
				routine.SaveRoutine{ID: theRoutine, Description: new("weld it")})
		}
		d := paper.DescriptionOf(r.Described())
		p.on = append(p.on, theRoutine)
		return "routine_annotation.create", p.command(who, "routine_annotation.create", theRoutine,
			paper.AnnotateDocument{ID: id, Issue: theRoutine, Key: "description", Revision: d.Latest, Number: d.Number,
				Exact: "weld", End: 4, MarkdownEnd: 4, Comment: paper.Remark{ID: p.ID(), Body: "why"}})
	default:
		return p.account(id)
	}
}

// keeps executes a command that makes a row, and stores its ID if the row was made.
func (p *player) keeps(list *[]string, id, kind string, do func() string) string {
	had := p.done[kind]
	bad := do()
	if p.done[kind] > had {
		*list = append(*list, id)
	}
	return bad
}

// account signs users up, suspends them and lifts the suspension.
func (p *player) account(id string) (kind, broken string) {
	if len(p.people) < 3 || p.rng.IntN(6) == 0 {
		p.people = append(p.people, id)
		return "user.create", p.byNode("user.create", id, people.CreateUser{ID: id, Name: "P", Email: id + "@example.com",
			Password: "kept", Session: people.NewSession{ID: p.ID(), Hash: fmt.Sprintf("%064x", len(p.people))}})
	}
	user := pick(p, p.people)
	return "user.suspend", p.command(companytest.Board, "user.suspend", user, people.SuspendUser{User: user,
		Suspend: p.rng.IntN(2) == 0})
}

// byNode executes a command that only a node may give.
func (p *player) byNode(kind, target string, payload any) string {
	c := p.Context(companytest.Board, kind, payload)
	c.Cmd.Actor = ledger.Actor{Type: "system", ID: "auth"}
	return p.carry(c, kind, target)
}

// checkMore returns the rule of the newer nouns that does not hold, or "".
func (p *player) checkMore() string {
	there := func(id string) bool { return p.Tx.Has(entity.IssueTable.Key(p.Company, id)) }
	for id, w := range care.Watchdogs.All(p.Tx, p.Company) {
		if !there(id) || !entity.AgentExists(p.Tx, p.Company, w.Agent) {
			return "a watchdog of what is gone: " + id
		}
	}
	prefix := ledger.Key("issue-monitor", "")
	due := map[string]bool{}
	for k, of := range p.Tx.Prefix(prefix) {
		id := string(k[len(k)-36:])
		if i, ok := entity.IssueTable.Get(p.Tx, ledger.CompanyID(of), id); !ok || !i.Monitors() {
			return "a monitor fires for what does not wait: " + id
		}
		due[id] = true
	}
	for id, i := range entity.IssueTable.All(p.Tx, p.Company) {
		if i.Monitors() != due[id] {
			return "a monitor that does not fire: " + id
		}
	}
	for _, table := range []string{"issue-said", "annotation"} {
		at := ledger.Key("c", string(p.Company), table, "")
		for k := range p.Tx.Prefix(at) {
			owner, _, _ := strings.Cut(string(k[len(at):]), ".")
			_, routine := routine.Routines.Get(p.Tx, p.Company, owner)
			swept := p.Tx.Has(company.ThreadKey(p.Company, owner)) // a node will delete the rest of a deleted issue
			if !there(owner) && !routine && !swept {
				return table + " of what is gone: " + owner
			}
		}
	}
	for id, w := range place.Workspaces.All(p.Tx, p.Company) {
		if !entity.ProjectExists(p.Tx, p.Company, w.Project) {
			return "a workspace of a project that is gone: " + id
		}
	}
	for _, table := range []string{"skill-comment", "skill-test", "skill-test-input"} {
		at := ledger.Key("c", string(p.Company), table, "")
		for k := range p.Tx.Prefix(at) {
			if theSkill, _, _ := strings.Cut(string(k[len(at):]), "."); !p.Tx.Has(skill.SkillRows.Key(p.Company, theSkill)) {
				return table + " of a skill that is gone: " + theSkill
			}
		}
	}
	for _, id := range p.people {
		if u, ok := people.UserByID(p.Tx, id); ok && u.Suspended() && people.Speaks(p.Tx, id) && people.SignsIn(p.Tx) {
			return "a suspended user speaks: " + id
		}
	}
	return ""
}
