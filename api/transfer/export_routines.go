package transfer

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/scheduler"
)

// allRoutines exports routines as recurring tasks, with the projects and issues.
func (e *exporter) allRoutines() error {
	if !e.include.Issues || len(e.body.Issues) > 0 {
		return nil
	}
	all := routine.RoutinesOf(e.tx, e.of.ID)
	slices.SortFunc(all, func(a, b routine.Routine) int {
		return cmp.Or(cmp.Compare(a.Title, b.Title), cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, r := range all {
		if len(e.body.Projects) > 0 && r.Project != "" && e.projects[string(r.Project)] == "" {
			continue
		}
		s := slug(e.issues, r.ID, r.Title, "routine")
		status, priority := string(r.Status), string(r.Priority)
		out := portable.Issue{Slug: s, Title: r.Title, Path: "tasks/" + s + "/TASK.md",
			Project: known(e.projects, string(r.Project)), Assignee: known(e.agents, string(r.Assignee)),
			Goal: known(e.goals, string(r.Goal)), Description: api.Optional(r.Description), Recurring: true, Status: &status,
			Priority: &priority, LabelIDs: []string{}, Labels: e.labelNames(r.Labels), BillingCode: api.Optional(r.BillingCode),
			Comments: []portable.Comment{}, BlockedBy: []string{}, Documents: []portable.Document{},
			WorkProducts: []portable.WorkProduct{}, Attachments: []portable.Attachment{},
			Routine: &portable.Routine{Variables: []portable.Variable{}, Triggers: []portable.Trigger{}}}
		if r.Concurrency != routine.RoutineCoalesce {
			out.Routine.Concurrency = &r.Concurrency
		}
		if r.CatchUp != routine.CatchUpSkip {
			out.Routine.CatchUp = &r.CatchUp
		}
		if r.Gate != "always" {
			out.Routine.Gate = &r.Gate
		}
		if r.GateScope != "company" {
			out.Routine.GateScope = &r.GateScope
		}
		for _, v := range r.Variables {
			pv := portable.Variable{Name: v.Name, Label: api.Optional(v.Label), Type: v.Type, Required: v.Required,
				Options: append([]string{}, v.Options...)}
			if len(v.Default) > 0 {
				if err := json.Unmarshal(v.Default, &pv.Default); err != nil {
					return err
				}
			}
			out.Routine.Variables = append(out.Routine.Variables, pv)
		}
		for _, t := range routine.TriggersOf(e.tx, r) {
			out.Routine.Triggers = append(out.Routine.Triggers, portable.Trigger{Kind: t.Kind, Label: api.Optional(t.Label),
				Enabled: t.Enabled, Cron: api.Optional(t.Cron),
				Timezone: api.Optional(t.Zone), SigningMode: api.Optional(t.Signing), ReplayWindow: t.ReplayWindow})
		}
		slices.SortStableFunc(out.Routine.Triggers, func(a, b portable.Trigger) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(Deref(a.Cron), Deref(b.Cron)),
				cmp.Compare(Deref(a.Label), Deref(b.Label)))
		})
		out.Folder = known(e.paths, string(r.Folder))
		out.Routine.Remarks = e.remarks(paper.DescriptionOf(r.Described()), string(r.Description), "Routine "+s)
		e.inputs(any(objectOf(r.Env)), "routine", s, func(in *portable.EnvInput) { in.Routine = &s })
		e.m.Issues = append(e.m.Issues, out)
	}
	return nil
}

// routineSteps create routines from recurring tasks. They are paused until somebody
// resumes them, and webhooks get new secrets.
func (im *importer) routineSteps(rc *api.Request) error {
	for _, i := range im.m.Issues {
		if !i.Recurring {
			continue
		}
		id, rests := im.newID(), routine.RoutinePaused
		if Deref(i.Status) == string(routine.RoutineArchived) {
			rests = routine.RoutineArchived
		}
		s := routine.SaveRoutine{ID: id, Title: &i.Title, Description: i.Description, Status: &rests,
			BillingCode: i.BillingCode}
		var err error
		if s.Env, err = rawObject(im.env(func(e portable.EnvInput) bool { return Deref(e.Routine) == i.Slug })); err != nil {
			return err
		}
		if labels := im.labelIDs(i.Labels); len(labels) > 0 {
			s.Labels = &labels
		}
		if p := entity.Priority(Deref(i.Priority)); slices.Contains(entity.Priorities, p) {
			s.Priority = &p
		}
		if i.Assignee != nil && im.agents[*i.Assignee] != "" {
			s.Assignee = new(im.agents[*i.Assignee])
		}
		if i.Project != nil && im.projects[*i.Project] != "" {
			s.Project = new(im.projects[*i.Project])
		}
		if i.Goal != nil && im.goals[*i.Goal] != "" {
			s.Goal = new(im.goals[*i.Goal])
		}
		if i.Folder != nil && im.folders[routine.FolderRoutines+"/"+*i.Folder] != "" {
			s.Folder = new(im.folders[routine.FolderRoutines+"/"+*i.Folder])
		}
		var triggers []portable.Trigger
		if r := i.Routine; r != nil {
			s.Concurrency, s.CatchUp, s.Gate, s.GateScope, triggers = r.Concurrency, r.CatchUp, r.Gate, r.GateScope, r.Triggers
			list := []routine.RoutineVariable{}
			for _, v := range r.Variables {
				row := routine.RoutineVariable{Name: v.Name, Type: v.Type, Label: core.NullText(Deref(v.Label)), Options: v.Options,
					Required: v.Required}
				if v.Default != nil {
					b, err := json.Marshal(v.Default)
					if err != nil {
						return err
					}
					row.Default = b
				}
				list = append(list, row)
			}
			s.Variables = &list
		}
		im.step(routine.KindRoutineCreate, s)
		if i.Routine != nil {
			im.remarkSteps("routine_annotation", id, "description", company.DocumentOfRoutine(id, 1), i.Routine.Remarks)
		}
		for _, t := range triggers {
			p := routine.SaveTrigger{ID: im.newID(), Routine: id, Kind: t.Kind, Label: t.Label, Enabled: &t.Enabled,
				Cron: t.Cron, Zone: t.Timezone, Signing: t.SigningMode, ReplayWindow: t.ReplayWindow}
			var err error
			switch t.Kind {
			case routine.TriggerSchedule:
				p.Next, err = scheduler.NextRun(Deref(t.Cron), cmp.Or(Deref(t.Timezone), "UTC"), rc.Now())
			case routine.TriggerWebhook:
				p.PublicID = api.RandomHex(12)
				_, p.Sealed, err = rc.NewSecret(im.company.ID, p.ID)
			}
			if err != nil {
				return err
			}
			im.step(routine.KindRoutineTriggerCreate, p)
		}
		im.done.Routines = append(im.done.Routines, importedRoutine{Slug: i.Slug, ID: &id, Action: "created", Title: i.Title,
			Status: string(rests)})
	}
	return nil
}
