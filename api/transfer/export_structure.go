package transfer

import (
	"cmp"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/company/skill"
)

// The structure of a company is exported with its work: budgets, folders, definitions of
// user secrets, and the reviewers, watchdogs and monitors of issues. A package does not
// name people: it says only that somebody was a person, and that becomes the importer.

// structure adds what belongs to the company as a whole.
func (e *exporter) structure() error {
	if !e.include.Issues {
		return nil
	}
	e.m.Structure = portable.Structure{Budgets: e.budgets(entity.ScopeCompany, string(e.of.ID)), Folders: e.folders()}
	for _, d := range secret.UserSecretDefinitionsOf(e.tx, e.of.ID) {
		e.m.UserSecrets = append(e.m.UserSecrets, portable.UserSecret{Key: d.Key, Name: d.Name, State: d.Status,
			Guidance: api.Optional(d.Guidance)})
	}
	slices.SortFunc(e.m.UserSecrets, func(a, b portable.UserSecret) int { return cmp.Compare(a.Key, b.Key) })
	return nil
}

// budgets returns the budgets of a scope, except an agent's usual one, which is part of
// the agent.
func (e *exporter) budgets(kind entity.ScopeType, id string) (out []portable.Budget) {
	for _, p := range money.BudgetOf(e.tx, e.of.ID, kind, id, e.at).Policies {
		b := portable.Budget{Window: string(p.Window), Cents: p.Amount.Cents(), Warn: p.WarnPercent, Stop: p.HardStop,
			Notify: p.Notify, Active: p.Active}
		usual := b.Warn == money.DefaultWarnPercent && b.Stop && b.Notify && b.Active
		if usual && (b.Cents == 0 || kind == entity.ScopeAgent && p.Window == money.WindowMonth) {
			continue
		}
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b portable.Budget) int { return cmp.Compare(a.Window, b.Window) })
	return out
}

// folders returns all folders, parents before children.
func (e *exporter) folders() (out []portable.Folder) {
	all := routine.FoldersOf(e.tx, e.of.ID, "")
	for _, f := range all {
		e.paths[f.ID] = folderPath(all, f)
		out = append(out, portable.Folder{Kind: f.Kind, Path: e.paths[f.ID], Name: f.Name, Color: api.Optional(f.Color),
			Position: f.Position})
	}
	slices.SortFunc(out, func(a, b portable.Folder) int {
		return cmp.Or(cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Path, b.Path))
	})
	return out
}

// folderPath returns the slugs from the root to a folder.
func folderPath(all []routine.Folder, f routine.Folder) string {
	path := f.Slug
	for range routine.MaxFolderDepth {
		at := slices.IndexFunc(all, func(o routine.Folder) bool { return o.ID == string(f.Parent) })
		if at < 0 {
			break
		}
		f = all[at]
		path = f.Slug + "/" + path
	}
	return path
}

// strategies exports the strategies that the board has approved. Without an approved
// one, a CEO can only draft strategies.
func (e *exporter) strategies() error {
	if !e.include.Issues {
		return nil
	}
	q := money.ApprovalQuery{Types: []money.ApprovalType{money.ApprovalStrategy},
		Statuses: []money.ApprovalStatus{money.ApprovalApproved}, Limit: api.MaxPackageStrategies}
	all := money.ApprovalsOf(e.tx, e.of.ID, q)
	if len(all) == api.MaxPackageStrategies {
		e.warn("Of the approved strategies the newest %d travel.", api.MaxPackageStrategies)
	}
	for _, a := range slices.Backward(all) {
		s := portable.Strategy{Agent: known(e.agents, string(a.RequestedByAgent)), Payload: e.scrub("The strategy",
			objectOf(conceal.RedactConfig(a.Payload))),
			Note: api.Optional(redactedText(a.DecisionNote)), Tasks: []string{}}
		for i := range money.IssuesOfApproval(e.tx, e.of.ID, a.ID) {
			if t := known(e.issues, i.ID); t != nil {
				s.Tasks = append(s.Tasks, *t)
			}
		}
		slices.Sort(s.Tasks)
		e.m.Strategies = append(e.m.Strategies, s)
	}
	return nil
}

// memories returns an agent's memories without those that look like secrets.
func (e *exporter) memories(agent string) (out []portable.Memory) {
	if !e.include.Issues {
		return nil
	}
	for _, m := range skill.MemoriesOf(e.tx, e.of.ID, agent) {
		out = append(out, portable.Memory{Key: m.Key, Value: conceal.RedactText(m.Value)})
	}
	return out
}

// watched fills in the reviewers, the watchdog and the monitor of an issue.
func (e *exporter) watched(i entity.Issue, out *portable.Issue) {
	if w, ok := care.WatchdogOf(e.tx, i.Company, i.ID); ok {
		if s := known(e.agents, w.Agent); s != nil {
			out.Watchdog = &portable.Watchdog{Agent: *s, Instructions: api.Optional(redactedText(w.Instructions))}
		} else {
			e.warn("Task %s: who watches it does not travel.", out.Slug)
		}
	}
	policy := e.scrub("Task "+out.Slug, objectOf(conceal.RedactConfig(i.ExecutionPolicy)))
	out.Monitor, _ = policy["monitor"].(map[string]any)
	delete(policy, "monitor")
	if stages, ok := policy["stages"].([]any); ok {
		if policy["stages"] = e.stages(stages, out.Slug); len(policy["stages"].([]any)) == 0 {
			delete(policy, "stages")
		}
	}
	if len(policy) > 0 {
		out.ExecutionPolicy = policy
	}
}

// stages returns the stages of an execution policy whose participants are exported.
func (e *exporter) stages(list []any, task string) []any {
	out := []any{}
	for n, s := range list {
		stage, _ := s.(map[string]any)
		delete(stage, "id")
		there, _ := stage["participants"].([]any)
		kept, person := []any{}, false
		for _, p := range there {
			who, _ := p.(map[string]any)
			if who["type"] == "user" {
				if !person {
					kept, person = append(kept, map[string]any{"type": "user"}), true
				}
				continue
			}
			id, _ := who["agentId"].(string)
			if s := known(e.agents, id); s != nil {
				kept = append(kept, map[string]any{"type": "agent", "agentSlug": *s})
			} else {
				e.warn("Task %s: a participant of stage %d does not travel.", task, n+1)
			}
		}
		if len(kept) == 0 {
			e.warn("Task %s: stage %d was left out, as nobody of it travels.", task, n+1)
			continue
		}
		stage["participants"] = kept
		out = append(out, stage)
	}
	return out
}

// tests returns the test runs of a skill, oldest first.
func (e *exporter) tests(s skill.Skill) (out []portable.SkillTest) {
	names := map[string]string{}
	for _, in := range skill.SkillInputsOf(e.tx, s) {
		names[in.ID] = in.Name
	}
	for _, t := range slices.Backward(skill.SkillTestsOf(e.tx, s)) {
		shown := api.ShowSkillTest(e.tx, t)
		row := portable.SkillTest{Input: known(names, string(t.Input)), Content: t.Content, Agent: known(e.agents, t.Agent),
			Task: known(e.issues, t.Issue), Status: shown.Status}
		if row.Task == nil {
			if row.Status == "queued" || row.Status == "running" {
				e.warn("Skill %s: a test that goes on was left out.", s.Slug)
				continue
			}
			if len(shown.Output) > skill.MaxSkillInput {
				e.warn("Skill %s: the output of a test was cut.", s.Slug)
			}
			row.Output = api.Optional(api.Cut(shown.Output, skill.MaxSkillInput))
		}
		out = append(out, row)
	}
	return out
}
