package company

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// A planned is a document of an issue that people remark on and agree on.
type planned struct{ issue, revision, thread string }

// nouns are the newer ones of a player: what people leave on plans, skills and
// routines, machines and workspaces, who looks after what, and accounts.
type nouns struct {
	plans                                                       []planned
	skills, spaces, machines, comments, said, tests, inputs, on []string // on: routines with a remark
	people                                                      []string
	holds                                                       [][2]string
}

// further plays one of the newer commands.
func (p *player) further() (kind, broken string) {
	id, who := p.id(), p.actor()
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
		d := planned{issue: pick(p, p.issues), revision: p.id()}
		base, had := "", p.done["document.save"]
		if i, ok := issues.Get(p.tx, p.company, d.issue); ok {
			if old, ok := DocumentOf(p.tx, i, "plan"); ok {
				base = old.Latest
			}
		}
		bad := p.command(who, "document.save", d.issue, SaveDocument{Issue: d.issue, Key: "plan", ID: id, Revision: d.revision, Base: base, Title: new("Plan"), Format: "markdown", Body: "cut " + id})
		if p.done["document.save"] > had {
			p.plans = append(p.plans, d)
		}
		return "document.save", bad
	case 2:
		d, had := plan(), p.done["annotation.create"]
		bad := p.command(who, "annotation.create", d.issue, AnnotateDocument{ID: id, Issue: d.issue, Key: "plan", Revision: d.revision, Number: 1, Exact: "cut", End: 3, MarkdownEnd: 3, Comment: Remark{ID: p.id(), Body: "why"}})
		if p.done["annotation.create"] > had {
			d.thread = id
		}
		return "annotation.create", bad
	case 3:
		d := thread()
		return "annotation.comment", p.command(who, "annotation.comment", d.issue, ChangeAnnotation{Issue: d.issue, Key: "plan", Thread: d.thread, Comment: Remark{ID: id, Body: "so"}})
	case 4:
		d := thread()
		return "annotation.update", p.command(who, "annotation.update", d.issue, ChangeAnnotation{Issue: d.issue, Key: "plan", Thread: d.thread, Status: []string{"open", "resolved"}[p.rng.IntN(2)]})
	case 5: // a plan is agreed on, and turned into issues
		d := plan()
		payload, _ := json.Marshal(map[string]any{"version": 1, "prompt": "Agreed?", "target": map[string]any{"type": "issue_document", "issueId": d.issue, "key": "plan", "revisionId": d.revision}})
		if bad := p.command(board, "interaction.create", d.issue, CreateInteraction{ID: id, Issue: d.issue, Kind: Confirmation, Payload: payload}); bad != "" {
			return "interaction.create", bad
		}
		if bad := p.command(board, "interaction.accept", d.issue, ResolveInteraction{Issue: d.issue, ID: id}); bad != "" {
			return "interaction.accept", bad
		}
		one, two := p.id(), p.id()
		had := p.done["plan.decompose"]
		bad := p.command(who, "plan.decompose", d.issue, DecomposePlan{ID: p.id(), Issue: d.issue, Revision: d.revision, Children: []CreateIssue{{ID: one, Title: one, Assignee: value(maybe(p, p.agents))}, {ID: two, Title: two, BlockedBy: []string{"#1"}}}})
		if p.done["plan.decompose"] > had {
			p.issues = append(p.issues, one, two)
		}
		return "plan.decompose", bad
	case 6:
		p.skills = append(p.skills, id)
		return "skill.create", p.command(who, "skill.create", id, SaveSkill{ID: id, Version: p.id(), Slug: new("s" + id), Name: new("Skill " + id), Markdown: new("---\nname: s" + id + "\ndescription: d\n---\nx\n")})
	case 7:
		skill := pick(p, p.skills)
		return "skill_comment.create", p.keeps(&p.said, id, "skill_comment.create", func() string {
			return p.command(who, "skill_comment.create", skill, SaySkill{ID: id, Skill: skill, Parent: value(maybe(p, p.said)), Body: "good"})
		})
	case 8:
		skill := pick(p, p.skills)
		return "skill_comment.update", p.command(who, "skill_comment.update", skill, SaySkill{ID: pick(p, p.said), Skill: skill, Body: "better", Delete: p.rng.IntN(2) == 0})
	case 9:
		skill := pick(p, p.skills)
		return "skill_test.input", p.keeps(&p.inputs, id, "skill_test.input", func() string {
			return p.command(who, "skill_test.input", skill, SaveSkillInput{ID: id, Skill: skill, Name: new("n"), Content: new("c")})
		})
	case 10:
		skill, issue := pick(p, p.skills), p.id()
		had := p.done["skill_test.start"]
		bad := p.command(who, "skill_test.start", skill, StartSkillTest{ID: id, Skill: skill, Agent: pick(p, p.agents), Issue: issue, Input: value(maybe(p, p.inputs)), Content: "try"})
		if p.done["skill_test.start"] > had {
			p.issues, p.tests = append(p.issues, issue), append(p.tests, id)
		}
		return "skill_test.start", bad
	case 11:
		skill := pick(p, p.skills)
		if p.rng.IntN(3) == 0 {
			return "skill.delete", p.command(board, "skill.delete", skill, DeleteSkill{ID: skill})
		}
		return "skill_test.forget", p.command(who, "skill_test.forget", skill, ForgetSkillTest{Skill: skill, ID: pick(p, p.tests)})
	case 12:
		project := pick(p, p.projects)
		return "workspace.create", p.keeps(&p.spaces, id, "workspace.create", func() string {
			return p.command(board, "workspace.create", project, SaveWorkspace{ID: id, Project: project, Name: new("w" + id), RepoURL: new("https://example.com/" + id)})
		})
	case 13:
		project := pick(p, p.projects)
		if p.rng.IntN(2) == 0 {
			return "workspace.delete", p.command(board, "workspace.delete", project, DeleteWorkspace{ID: pick(p, p.spaces), Project: project})
		}
		return "project.delete", p.command(board, "project.delete", project, DeleteProject{ID: project})
	case 14:
		p.machines = append(p.machines, id)
		return "environment.save", p.command(board, "environment.save", id, SaveEnvironment{ID: id, New: true, Name: new("m" + id), Driver: "ssh", Config: json.RawMessage(`{"host":"h.example.com","port":22,"username":"u","remoteWorkspacePath":"/w"}`)})
	case 15:
		machine := pick(p, p.machines)
		return "environment.delete", p.command(board, "environment.delete", machine, NameEnvironment{ID: machine})
	case 16:
		issue := pick(p, p.issues)
		return "comment.create", p.keeps(&p.comments, id, "comment.create", func() string {
			return p.command(who, "comment.create", issue, CreateComment{ID: id, Issue: issue, Body: "word", Resume: p.rng.IntN(4) == 0, Interrupt: p.rng.IntN(4) == 0})
		})
	case 17:
		comment, issue := pick(p, p.comments), pick(p, p.issues)
		if at, ok := p.tx.Get(commentAtKey(p.company, comment)); ok && p.rng.IntN(4) > 0 {
			issue, _, _ = strings.Cut(string(at), ".")
		}
		return "comment.delete", p.command(who, "comment.delete", issue, DeleteComment{Issue: issue, ID: comment})
	case 18:
		issue := pick(p, p.issues)
		if p.rng.IntN(3) == 0 {
			for of := range watchdogs.All(p.tx, p.company) {
				issue = of
				break
			}
			return "watchdog.remove", p.command(who, "watchdog.remove", issue, RemoveWatchdog{Issue: issue})
		}
		return "watchdog.set", p.command(who, "watchdog.set", issue, SetWatchdog{ID: id, Issue: issue, Agent: pick(p, p.agents)})
	case 19:
		issue := pick(p, p.issues)
		at := TimeOf(p.now.Add(time.Duration(p.rng.IntN(7200)) * time.Second))
		return "issue.update", p.command(who, "issue.update", issue, UpdateIssue{Issue: issue, ExecutionPolicy: json.RawMessage(`{"monitor":{"nextCheckAt":"` + at.String() + `","maxAttempts":5}}`)})
	case 20:
		if due := DueMonitors(p.tx, TimeOf(p.now), 1); len(due) > 0 && p.rng.IntN(2) == 0 {
			return "issue.monitor", p.command(board, "issue.monitor", due[0].Issue, due[0].CheckMonitor)
		}
		issue := pick(p, p.issues)
		return "issue.monitor", p.command(who, "issue.monitor", issue, CheckMonitor{Issue: issue})
	case 21:
		issue := pick(p, p.issues)
		if len(p.holds) > 0 && p.rng.IntN(2) == 0 {
			h := p.holds[p.rng.IntN(len(p.holds))]
			return "tree.release", p.command(board, "tree.release", h[0], ReleaseTree{Issue: h[0], Hold: h[1]})
		}
		p.holds = append(p.holds, [2]string{issue, id})
		return "tree.hold", p.command(board, "tree.hold", issue, HoldTree{ID: id, Issue: issue, Mode: HoldModes[p.rng.IntN(len(HoldModes))]})
	case 22:
		routine := pick(p, p.routines)
		r, ok := routines.Get(p.tx, p.company, routine)
		if !ok {
			return "routine_annotation.create", ""
		}
		if r.Description == "" {
			return "routine.update", p.command(board, "routine.update", routine, SaveRoutine{ID: routine, Description: new("weld it")})
		}
		d := DescriptionOf(r.Described())
		p.on = append(p.on, routine)
		return "routine_annotation.create", p.command(who, "routine_annotation.create", routine, AnnotateDocument{ID: id, Issue: routine, Key: "description", Revision: d.Latest, Number: d.Number, Exact: "weld", End: 4, MarkdownEnd: 4, Comment: Remark{ID: p.id(), Body: "why"}})
	default:
		return p.account(id)
	}
}

// keeps carries out what makes a row, and remembers the row if it was made.
func (p *player) keeps(list *[]string, id, kind string, do func() string) string {
	had := p.done[kind]
	bad := do()
	if p.done[kind] > had {
		*list = append(*list, id)
	}
	return bad
}

// account signs people up, shuts them out and lets them in again.
func (p *player) account(id string) (kind, broken string) {
	if len(p.people) < 3 || p.rng.IntN(6) == 0 {
		p.people = append(p.people, id)
		return "user.create", p.byNode("user.create", id, CreateUser{ID: id, Name: "P", Email: id + "@example.com", Password: "kept", Session: NewSession{p.id(), fmt.Sprintf("%064x", len(p.people))}})
	}
	user := pick(p, p.people)
	return "user.suspend", p.command(board, "user.suspend", user, SuspendUser{User: user, Suspend: p.rng.IntN(2) == 0})
}

// byNode carries out what only a node may ask for.
func (p *player) byNode(kind, target string, payload any) string {
	c := p.context(board, kind, payload)
	c.Cmd.Actor = ledger.Actor{Type: "system", ID: "auth"}
	return p.carry(c, kind, target)
}

// checkMore returns which rule of the newer nouns does not hold, or "".
func (p *player) checkMore() string {
	there := func(id string) bool { return p.tx.Has(issues.Key(p.company, id)) }
	for id, w := range watchdogs.All(p.tx, p.company) {
		if !there(id) || !agentExists(p.tx, p.company, w.Agent) {
			return "a watchdog of what is gone: " + id
		}
	}
	prefix := ledger.Key("issue-monitor", "")
	due := map[string]bool{}
	for k, of := range p.tx.Prefix(prefix) {
		id := string(k[len(k)-36:])
		if i, ok := issues.Get(p.tx, string(of), id); !ok || !i.monitors() {
			return "a monitor fires for what does not wait: " + id
		}
		due[id] = true
	}
	for id, i := range issues.All(p.tx, p.company) {
		if i.monitors() != due[id] {
			return "a monitor that does not fire: " + id
		}
	}
	for _, table := range []string{"issue-said", "annotation"} {
		at := ledger.Key("c", p.company, table, "")
		for k := range p.tx.Prefix(at) {
			owner, _, _ := strings.Cut(string(k[len(at):]), ".")
			_, routine := routines.Get(p.tx, p.company, owner)
			swept := p.tx.Has(threadKey(p.company, owner)) // a node removes what is left of a deleted issue
			if !there(owner) && !routine && !swept {
				return table + " of what is gone: " + owner
			}
		}
	}
	for id, w := range workspaces.All(p.tx, p.company) {
		if !projectExists(p.tx, p.company, w.Project) {
			return "a workspace of a project that is gone: " + id
		}
	}
	for _, table := range []string{"skill-comment", "skill-test", "skill-test-input"} {
		at := ledger.Key("c", p.company, table, "")
		for k := range p.tx.Prefix(at) {
			if skill, _, _ := strings.Cut(string(k[len(at):]), "."); !p.tx.Has(skillRows.Key(p.company, skill)) {
				return table + " of a skill that is gone: " + skill
			}
		}
	}
	for _, id := range p.people {
		if u, ok := UserByID(p.tx, id); ok && u.Suspended() && Speaks(p.tx, id) && SignsIn(p.tx) {
			return "a suspended user speaks: " + id
		}
	}
	return ""
}
