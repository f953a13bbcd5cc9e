package transfer

import (
	"encoding/json"
	"path"
	"slices"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// structureSteps create the company's structure. Existing rows of the target stay
// unchanged.
func (im *importer) structureSteps(rc *api.Request) error {
	if !im.include.Issues {
		return nil
	}
	var defined []secret.UserSecretDefinition
	err := rc.View(func(tx *ledger.Tx) error {
		all := routine.FoldersOf(tx, im.company.ID, "")
		for _, f := range all {
			im.folders[f.Kind+"/"+folderPath(all, f)] = f.ID
		}
		defined = secret.UserSecretDefinitionsOf(tx, im.company.ID)
		return nil
	})
	if err != nil {
		return err
	}
	if im.created {
		im.budgetSteps(entity.ScopeCompany, string(im.company.ID), im.m.Budgets)
	}
	for _, f := range im.m.Folders {
		key, parent := f.Kind+"/"+f.Path, ""
		if im.folders[key] != "" {
			continue
		}
		if dir := path.Dir(f.Path); dir != "." {
			if parent = im.folders[f.Kind+"/"+dir]; parent == "" {
				im.warn("Folder %s lies in one that is not in the package, and was left out.", f.Path)
				continue
			}
		}
		slug := path.Base(f.Path)
		s := routine.SaveFolder{ID: im.newID(), New: true, Kind: f.Kind, Name: &f.Name, Slug: &slug, Color: f.Color,
			Position: &f.Position}
		if parent != "" {
			s.Parent = &parent
		}
		im.folders[key] = s.ID
		im.step(routine.KindFolderSave, s)
	}
	for _, d := range im.m.UserSecrets {
		if slices.ContainsFunc(defined, func(o secret.UserSecretDefinition) bool { return o.Key == d.Key }) {
			continue
		}
		im.step(secret.KindUserSecretDefine, secret.SaveUserSecretDefinition{ID: im.newID(), Key: d.Key, Name: &d.Name,
			Status: &d.State, Guidance: d.Guidance})
	}
	return nil
}

// budgetSteps set the budgets of a scope.
func (im *importer) budgetSteps(kind entity.ScopeType, id string, list []portable.Budget) {
	for _, b := range list {
		if !slices.Contains(money.WindowKinds, money.WindowKind(b.Window)) || b.Cents < 0 || b.Cents > api.MaxPackageCents ||
			b.Warn < 1 || b.Warn > 99 {
			im.warn("A limit of %s for %d cents is none that can be set, and was left out.", api.Cut(b.Window, 40), b.Cents)
			continue
		}
		im.step(money.KindBudgetSet, money.SetBudget{Type: kind, Scope: id, Window: money.WindowKind(b.Window),
			Amount:      core.Money(b.Cents) * core.Cent,
			WarnPercent: &b.Warn, HardStop: &b.Stop, Notify: &b.Notify, Active: &b.Active})
	}
}

// strategySteps create the approved strategies, with the importer as the approver. An
// existing company keeps its own.
func (im *importer) strategySteps() error {
	if !im.created || !im.include.Issues {
		return nil
	}
	for _, s := range im.m.Strategies[:min(len(im.m.Strategies), api.MaxPackageStrategies)] {
		p := money.CreateApproval{ID: im.newID(), Type: money.ApprovalStrategy}
		if s.Agent != nil {
			p.Agent = im.agents[*s.Agent]
		}
		var err error
		if p.Payload, err = rawObject(s.Payload); err != nil {
			return err
		}
		if p.Payload == nil {
			p.Payload = json.RawMessage("{}")
		}
		for _, t := range s.Tasks {
			if id := im.issues[t]; id != "" {
				p.Issues = append(p.Issues, id)
			}
		}
		im.step(money.KindApprovalCreate, p)
		im.step(money.KindApprovalApprove, money.DecideApproval{Approval: p.ID, Note: Deref(s.Note)})
	}
	return nil
}

// memorySteps create the memories of an agent that the import creates.
func (im *importer) memorySteps(agent string, list []portable.Memory) {
	for _, m := range list {
		im.step(skill.KindMemoryPut, skill.PutMemory{Agent: agent, Key: m.Key, Value: m.Value})
	}
}

// policy combines an execution policy and its monitor for the target.
func (im *importer) policy(rc *api.Request, i portable.Issue) (json.RawMessage, error) {
	all := map[string]any{}
	for k, v := range i.ExecutionPolicy {
		all[k] = v
	}
	if len(i.Monitor) > 0 {
		all["monitor"] = i.Monitor
	}
	stages, _ := all["stages"].([]any)
	kept := []any{}
	for n, s := range stages {
		stage, _ := s.(map[string]any)
		list, _ := stage["participants"].([]any)
		people := []any{}
		for _, p := range list {
			who, _ := p.(map[string]any)
			slug, _ := who["agentSlug"].(string)
			switch {
			case who["type"] == "user":
				people = append(people, map[string]any{"type": "user", "userId": rc.Actor.ID})
			case im.agents[slug] != "":
				people = append(people, map[string]any{"type": "agent", "agentId": im.agents[slug]})
			default:
				im.warn("Task %s: a participant of stage %d is not in the package.", i.Slug, n+1)
			}
		}
		if len(people) == 0 {
			im.warn("Task %s: stage %d has nobody to decide it, and was left out.", i.Slug, n+1)
			continue
		}
		next := map[string]any{}
		for k, v := range stage {
			next[k] = v
		}
		next["participants"] = people
		kept = append(kept, next)
	}
	if delete(all, "stages"); len(kept) > 0 {
		all["stages"] = kept
	}
	if len(all) == 0 {
		return nil, nil
	}
	b, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	if b, err = api.CheckedPolicy(b); err != nil {
		return nil, api.Unprocessable("Task "+i.Slug+": its execution policy or monitor is none that an issue can "+
			"have: "+api.Cut(err.Error(), 200), nil)
	}
	return b, api.RawBounds(b)
}

// kind copies how an issue is to be worked on, as far as this version knows it.
func (im *importer) kind(i portable.Issue, s *company.CreateIssue) {
	if mode := Deref(i.WorkMode); slices.Contains([]string{"", "standard", "ask", "planning", "skill_test"}, mode) {
		s.WorkMode = mode
	} else {
		im.warn("Task %s: work mode %s is not known here.", i.Slug, api.Cut(mode, 40))
	}
	if p := Deref(i.ReviewPolicy); slices.Contains([]string{"", "anyone", "not_creator", "human_only"}, p) {
		s.ReviewPolicy = p
	} else {
		im.warn("Task %s: review policy %s is not known here.", i.Slug, api.Cut(p, 40))
	}
	if p := Deref(i.WorkspacePref); len(p) <= 40 {
		s.WorkspacePref = p
	}
}

// watchdogSteps set the watchdogs of the package's issues.
func (im *importer) watchdogSteps() {
	for _, i := range im.m.Issues {
		if w := i.Watchdog; w != nil && im.issues[i.Slug] != "" && im.agents[w.Agent] != "" {
			im.step(care.KindWatchdogSet, care.SetWatchdog{ID: im.newID(), Issue: im.issues[i.Slug], Agent: im.agents[w.Agent],
				Instructions: w.Instructions})
		}
	}
}

// testSteps create the test runs of the skills that the import creates.
func (im *importer) testSteps() {
	for _, s := range im.m.Skills {
		theSkill := im.skills[s.Slug]
		if theSkill == "" {
			continue
		}
		for _, t := range s.Tests {
			p := skill.KeepSkillTest{ID: im.newID(), Skill: theSkill, Input: im.skillInputs[s.Slug+"/"+Deref(t.Input)],
				Content: t.Content, Status: t.Status, Output: Deref(t.Output)}
			if t.Agent != nil {
				p.Agent = im.agents[*t.Agent]
			}
			if t.Task != nil {
				p.Issue = im.issues[*t.Task]
			}
			if p.Status == "queued" || p.Status == "running" { // no run continues it here
				p.Status = "cancelled"
			}
			im.step(skill.KindSkillTestKeep, p)
		}
	}
}
