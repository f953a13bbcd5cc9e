package plugin

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/app"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Source is a version of an app that is to be installed.
type Source struct {
	Company  ledger.CompanyID
	Archive  Archive
	Manifest Manifest
	Settings map[string]string          // those that were given, with the defaults
	Modules  map[string]string          // IDs of assets by the path of a module
	Stored   map[string]company.NewFile // the bytes of modules by path
	// Kept are secret settings that keep their value; they have none here.
	Kept map[string]bool
	// Signed returns the version of a tool that a module, or a method of a service, with a hash is, and what signs it.
	Signed func(name, hash string, module bool) (version uint32, signature []byte, signer string)
}

// A Planner plans the steps of a change.
type Planner struct {
	Company ledger.CompanyID
	App     string
	NewID   func() string
	// Next returns when a schedule fires next.
	Next func(cron, zone string) (core.Time, error)
	// Seal seals the secrets of a payload.
	Seal func(payload any) (any, error)
	// MayPause reports whether an agent can be paused, MayResume whether it can be resumed.
	MayPause, MayResume func(agent string) bool

	steps []app.Step
	err   error
}

func (p *Planner) step(kind string, payload any) {
	payload, err := p.Seal(payload)
	if err != nil && p.err == nil {
		p.err = err
	}
	p.steps = append(p.steps, app.Step{Kind: kind, Payload: ledger.Marshal(payload)})
}

// take returns the steps that were planned.
func (p *Planner) take() ([]app.Step, error) {
	steps, err := p.steps, p.err
	p.steps, p.err = nil, nil
	return steps, err
}

// Release returns what is stored about a source whose parts are known.
func (s Source) Release(parts []app.Part) (app.Release, error) {
	manifest, err := json.Marshal(s.Manifest)
	if err != nil {
		return app.Release{}, err
	}
	plain := map[string]string{}
	for _, set := range s.Manifest.Settings {
		if v, ok := s.Settings[set.Name]; ok && !set.Secret {
			plain[set.Name] = v
		}
	}
	settings, err := json.Marshal(plain)
	if err != nil {
		return app.Release{}, err
	}
	r := app.Release{Version: s.Manifest.Version, Digest: s.Archive.Digest, Signer: s.Archive.Signer, Manifest: manifest,
		Settings:     settings,
		Capabilities: s.Manifest.Capabilities.Words(), Parts: parts, Within: core.Time(s.Manifest.within().Milliseconds())}
	for _, at := range slices.Sorted(maps.Keys(s.Modules)) {
		r.Modules = append(r.Modules, app.Module{Path: at, Asset: s.Modules[at]})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Manifest.Dependencies)) {
		r.Needs = append(r.Needs, app.Need{App: name, Range: s.Manifest.Dependencies[name]})
	}
	return r, s.offers(&r)
}

// Check returns what is wrong with the settings.
func (s Source) Check() (p Problems) {
	known := map[string]bool{}
	for _, set := range s.Manifest.Settings {
		known[set.Name] = true
		if s.Settings[set.Name] == "" && !set.Optional && !s.Kept[set.Name] {
			p = append(p, fmt.Sprintf("settings.%s: required: %s", set.Name, set.About))
		}
		if len(s.Settings[set.Name]) > maxText {
			p = append(p, fmt.Sprintf("settings.%s: at most %d bytes", set.Name, maxText))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		if !known[name] {
			p = append(p, fmt.Sprintf("settings.%s: the app has no such setting", name))
		}
	}
	for _, v := range s.Manifest.Services {
		if _, err := s.service(v); err != nil {
			p = append(p, fmt.Sprintf("services.%s: %v", v.Name, err))
		}
	}
	for _, r := range s.Manifest.Routines {
		if _, err := core.ParseCron(s.fill(r.Cron)); err != nil {
			p = append(p, fmt.Sprintf("routines.%s.cron: %v", r.ID, err))
		}
	}
	return p
}

// fill puts the settings into a text.
func (s Source) fill(text string) string {
	return hole.ReplaceAllStringFunc(text, func(h string) string {
		name := h[2 : len(h)-1]
		if s.Settings[name] == "" && s.Kept[name] {
			return keeps
		}
		return s.Settings[name]
	})
}

// keeps is the mark of a value that stays as it is.
const keeps = "***REDACTED***"

// filled puts the settings into a configuration.
func (s Source) filled(v any) any {
	switch v := v.(type) {
	case string:
		return s.fill(v)
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			out[k] = s.filled(x)
		}
		return out
	case []any:
		out := []any{}
		for _, x := range v {
			out = append(out, s.filled(x))
		}
		return out
	}
	return v
}

// adapterConfig returns the configuration of an agent.
func (s Source) adapterConfig(a Agent) (json.RawMessage, error) {
	config, _ := s.filled(map[string]any(a.Config)).(map[string]any)
	if config == nil {
		config = map[string]any{}
	}
	if a.Script != "" {
		config["command"], config["args"] = "/bin/sh", []any{"-c", string(s.Archive.Files[a.Script])}
	}
	if a.Module != "" {
		config["module"] = "asset:" + s.Modules[a.Module]
	}
	return json.Marshal(config)
}

// Name returns the name under which a part is known in the company.
func (p *Planner) Name(part string) string { return p.App + "/" + part }

// slug returns the slug of a skill.
func (p *Planner) slug(part string) string { return core.URLKey("app-" + p.App + "-" + part) }

func find(parts []app.Part, kind, name string) (int, bool) {
	i := slices.IndexFunc(parts, func(x app.Part) bool { return x.Kind == kind && x.Name == name })
	return i, i >= 0
}

// Change plans the steps from one version (nil parts: none) to another, for an app that works or rests. It returns the
// parts that there are then.
func (p *Planner) Change(was []app.Part, to Source, works bool) (steps []app.Step, parts []app.Part, err error) {
	parts = slices.Clone(was)
	for _, s := range to.Manifest.Skills {
		text := string(to.Archive.Files[s.File])
		name := s.Name
		if name == "" {
			name = p.Name(s.ID)
		}
		if i, ok := find(parts, "skill", s.ID); ok {
			p.step(skill.KindSkillUpdate, skill.SaveSkill{ID: parts[i].ID, Name: &name, Description: &s.About, Markdown: &text,
				Version: p.NewID()})
			parts[i].Gone = false
			continue
		}
		id, slug := p.NewID(), p.slug(s.ID)
		p.step(skill.KindSkillCreate, skill.SaveSkill{ID: id, Slug: &slug, Name: &name, Description: &s.About,
			Markdown: &text, Version: p.NewID(), Author: &to.Manifest.Author})
		parts = append(parts, app.Part{Kind: "skill", Name: s.ID, ID: id})
	}
	for _, a := range to.Manifest.Agents {
		if parts, err = p.agent(parts, a, to, works); err != nil {
			return nil, nil, err
		}
	}
	// Routines are made anew, with their schedules.
	for _, x := range was {
		if x.Kind == "routine" {
			p.step(routine.KindRoutineDelete, routine.ChangeRoutine{ID: x.ID})
		}
	}
	parts = slices.DeleteFunc(parts, func(x app.Part) bool { return x.Kind == "routine" })
	for _, r := range to.Manifest.Routines {
		if parts, err = p.routine(parts, r, to, works); err != nil {
			return nil, nil, err
		}
	}
	for i, x := range parts {
		switch {
		case x.Kind == "agent" && !slices.ContainsFunc(to.Manifest.Agents,
			func(a Agent) bool { return a.ID == x.Name }) && !x.Gone:
			if p.MayPause(x.ID) {
				p.step(company.KindAgentPause, company.ChangeAgent{Agent: x.ID})
			}
			parts[i].Gone = true
		case x.Kind == "skill" && !slices.ContainsFunc(to.Manifest.Skills, func(s Skill) bool { return s.ID == x.Name }):
			parts[i].Gone = true // its text stays, and no agent of the app wants it
		}
	}
	steps, err = p.take()
	return steps, parts, err
}

// agent plans an agent of the new version.
func (p *Planner) agent(parts []app.Part, a Agent, to Source, works bool) ([]app.Part, error) {
	config, err := to.adapterConfig(a)
	if err != nil {
		return nil, err
	}
	var runtime json.RawMessage
	if len(a.Runtime) > 0 {
		if runtime, err = json.Marshal(to.filled(map[string]any(a.Runtime))); err != nil {
			return nil, err
		}
	}
	name := p.Name(a.ID)
	save := entity.SaveAgent{Name: &name, Role: &a.Role, Title: &a.Title, Capabilities: &a.About, AdapterType: &a.Adapter,
		AdapterConfig: config, RuntimeConfig: runtime}
	if a.BudgetCents > 0 {
		save.Budget = new(core.Cents(a.BudgetCents))
	}
	var keys []string
	for _, s := range a.Skills {
		if _, own := find(parts, "skill", s); own {
			s = "company/" + string(p.Company) + "/" + p.slug(s)
		}
		keys = append(keys, s)
	}
	starts := works && (a.AutoStart == nil || *a.AutoStart)
	i, there := find(parts, "agent", a.ID)
	if !there {
		save.ID, save.Skills = p.NewID(), keys
		if a.Instructions != "" {
			save.Instructions = entity.InstructionsIn("",
				map[string]string{skill.InstructionsEntry: to.fill(string(to.Archive.Files[a.Instructions]))})
		}
		p.step(company.KindAgentCreate, save)
		if !starts {
			p.step(company.KindAgentPause, company.ChangeAgent{Agent: save.ID})
		}
		return append(parts, app.Part{Kind: "agent", Name: a.ID, ID: save.ID}), nil
	}
	save.ID = parts[i].ID
	p.step(company.KindAgentUpdate, save)
	p.step(skill.KindAgentSkills, skill.SyncSkills{Agent: save.ID, Mode: "replace", Keys: keys})
	if a.Instructions != "" {
		p.step(skill.KindInstructionsFile, skill.SaveInstructionFile{Agent: save.ID, Path: skill.InstructionsEntry,
			Content: to.fill(string(to.Archive.Files[a.Instructions]))})
	}
	if parts[i].Gone && starts && p.MayResume(save.ID) {
		p.step(company.KindAgentResume, company.ChangeAgent{Agent: save.ID})
	}
	parts[i].Gone = false
	return parts, nil
}

// routine plans a routine of the new version, with its schedule.
func (p *Planner) routine(parts []app.Part, r Routine, to Source, works bool) ([]app.Part, error) {
	i, ok := find(parts, "agent", r.Agent)
	if !ok {
		return nil, fmt.Errorf("routine %s: no agent %s", r.ID, r.Agent)
	}
	id, status := p.NewID(), routine.RoutinePaused
	if works {
		status = routine.RoutineActive
	}
	title, task := to.fill(r.Title), to.fill(r.Task)
	p.step(routine.KindRoutineCreate, routine.SaveRoutine{ID: id, Title: &title, Description: &task,
		Assignee: &parts[i].ID, Status: &status})
	cron, zone, on := to.fill(r.Cron), to.fill(r.Zone), true
	if zone == "" {
		zone = "UTC"
	}
	next, err := p.Next(cron, zone)
	if err != nil {
		return nil, fmt.Errorf("routine %s: %w", r.ID, err)
	}
	p.step(routine.KindRoutineTriggerCreate, routine.SaveTrigger{ID: p.NewID(), Routine: id, Kind: routine.TriggerSchedule,
		Enabled: &on, Cron: &cron, Zone: &zone, Next: next})
	return append(parts, app.Part{Kind: "routine", Name: r.ID, ID: id}), nil
}

// Hook plans the issue of a hook. An agent of the app gets it, or nobody.
func (p *Planner) Hook(h *Hook, parts []app.Part, m Manifest, to Source) {
	if h == nil || h.Title == "" {
		return
	}
	i := company.CreateIssue{ID: p.NewID(), Title: to.fill(h.Title), Description: to.fill(h.Task),
		Status: entity.IssueTodo, AllowDuplicate: true}
	if len(m.Agents) > 0 && parts != nil {
		name := h.Agent
		if name == "" {
			name = m.Agents[0].ID
		}
		if at, ok := find(parts, "agent", name); ok {
			i.Assignee = parts[at].ID
		}
	}
	p.step(company.KindIssueCreate, i)
}

// Take returns the steps that were planned besides those of a change.
func (p *Planner) Take() ([]app.Step, error) { return p.take() }

// Start plans that an app works.
func (p *Planner) Start(a app.App, m Manifest, routines func(id string) []routine.TriggerNext) {
	active := routine.RoutineActive
	for _, x := range a.Now.Parts {
		switch {
		case x.Gone:
		case x.Kind == "agent":
			i := slices.IndexFunc(m.Agents, func(d Agent) bool { return d.ID == x.Name })
			if i >= 0 && (m.Agents[i].AutoStart == nil || *m.Agents[i].AutoStart) && p.MayResume(x.ID) {
				p.step(company.KindAgentResume, company.ChangeAgent{Agent: x.ID})
			}
		case x.Kind == "routine":
			p.step(routine.KindRoutineUpdate, routine.SaveRoutine{ID: x.ID, Status: &active, Next: routines(x.ID)})
		}
	}
}

// Stop plans that an app rests.
func (p *Planner) Stop(a app.App) {
	paused := routine.RoutinePaused
	for _, x := range a.Now.Parts {
		switch {
		case x.Kind == "routine":
			p.step(routine.KindRoutineUpdate, routine.SaveRoutine{ID: x.ID, Status: &paused})
		case x.Kind == "agent" && p.MayPause(x.ID):
			p.step(company.KindAgentPause, company.ChangeAgent{Agent: x.ID})
		}
	}
}

// Remove plans that nothing of an app is left but its history. there reports whether a part still exists.
func (p *Planner) Remove(a app.App, there func(app.Part) bool) {
	for _, x := range slices.Backward(a.Now.Parts) {
		switch {
		case !there(x):
		case x.Kind == "routine":
			p.step(routine.KindRoutineDelete, routine.ChangeRoutine{ID: x.ID})
		case x.Kind == "agent":
			p.step(company.KindAgentTerminate, company.ChangeAgent{Agent: x.ID})
		case x.Kind == "skill":
			p.step(skill.KindSkillDelete, skill.DeleteSkill{ID: x.ID})
		}
	}
}

// ReadStored reads the manifest of a release as it is stored.
func ReadStored(r app.Release) (m Manifest, settings map[string]string, err error) {
	if err = json.Unmarshal(r.Manifest, &m); err == nil && len(r.Settings) > 0 {
		err = json.Unmarshal(r.Settings, &settings)
	}
	return m, settings, err
}

// Secrets returns the names of the secret settings.
func (m Manifest) Secrets() map[string]bool {
	out := map[string]bool{}
	for _, s := range m.Settings {
		if s.Secret {
			out[s.Name] = true
		}
	}
	return out
}

// Title returns a name with the version, for people.
func (m Manifest) Title() string { return strings.TrimSpace(m.Name + " " + m.Version) }
