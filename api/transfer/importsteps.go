package transfer

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/company/transfer"
	"github.com/selvage-mesh/selvage/ledger"
)

func (im *importer) step(kind string, payload any) *transfer.ImportStep {
	sealed, err := im.seal(payload)
	if err != nil && im.err == nil {
		im.err = err
	}
	payload = sealed
	im.list = append(im.list, transfer.ImportStep{Kind: kind, Payload: ledger.Marshal(payload)})
	return &im.list[len(im.list)-1]
}

// steps builds the commands in an order in which each finds the rows that it names.
func (im *importer) steps(rc *api.Request) error {
	im.seal = func(payload any) (any, error) { return rc.Sealed(im.company.ID, payload) }
	im.done = Imported{Company: importedCompany{im.company.ID, im.company.Name, "unchanged"}, Agents: []importedRow{},
		Skills: []importedRow{}, Projects: []importedRow{},
		Routines: []importedRoutine{}, EnvInputs: im.m.EnvInputs}
	c := im.m.Company
	switch im.plan.Company {
	case "create":
		nobody := "" // nobody is responsible by default, as in the contract's recordings
		im.step(company.KindCompanyCreate, entity.SaveCompany{ID: im.company.ID, Name: &im.company.Name,
			Description: c.Description, ResponsibleUser: &nobody})
		im.done.Company.Action = "created"
	case "update":
		im.step(company.KindCompanyUpdate, entity.SaveCompany{ID: im.company.ID, Description: c.Description})
		im.done.Company.Action = "updated"
	}
	if im.plan.Company != "none" {
		if err := im.logoSteps(rc); err != nil {
			return err
		}
	}
	if err := im.assetSteps(rc); err != nil {
		return err
	}
	if err := im.structureSteps(rc); err != nil {
		return err
	}
	im.goalSteps()
	if err := im.agentSteps(); err != nil {
		return err
	}
	if err := im.skillSteps(rc); err != nil {
		return err
	}
	if err := im.projectSteps(); err != nil {
		return err
	}
	if err := im.issueSteps(rc); err != nil {
		return err
	}
	im.watchdogSteps()
	im.testSteps()
	if err := im.routineSteps(rc); err != nil {
		return err
	}
	if err := im.strategySteps(); err != nil {
		return err
	}
	if im.created && c.RequireHireApproval { // last: the agents of the package need no approval
		im.step(company.KindCompanyUpdate, entity.SaveCompany{ID: im.company.ID, RequireHireApproval: &c.RequireHireApproval})
	}
	for n, a := range im.m.Agents { // after their work
		if a.Terminated && im.plan.Agents[n].Action == "create" {
			id := im.agents[a.Slug]
			im.step(company.KindAgentTerminate, company.ChangeAgent{Agent: id})
			im.step(company.KindAgentUpdate, entity.SaveAgent{ID: id, Name: &a.Name}) // another agent may have the name now
		}
	}
	for _, id := range im.archived { // after everything in them
		im.step(company.KindProjectUpdate, entity.SaveProject{ID: id, ArchivedAt: &im.at})
	}
	im.rename()
	im.done.ToFillIn, im.done.Warnings = im.toFillIn(), im.warnings
	return nil
}

// goalSteps come first, parents before children. Owners are set with the agents.
func (im *importer) goalSteps() {
	left := slices.Clone(im.m.Goals)
	for len(left) > 0 {
		n := len(left)
		left = slices.DeleteFunc(left, func(g portable.Goal) bool {
			parent := ""
			if g.Parent != nil {
				if parent = im.goals[*g.Parent]; parent == "" {
					return false
				}
			}
			if id := im.goals["\x00"+g.Title]; id != "" {
				im.goals[g.Slug] = id
				return true
			}
			id, level, status := im.newID(), entity.GoalLevel(g.Level), entity.GoalStatus(g.Status)
			im.goals[g.Slug] = id
			s := entity.SaveGoal{ID: id, Title: &g.Title, Description: g.Description, Level: &level, Status: &status}
			if parent != "" {
				s.Parent = &parent
			}
			im.step(company.KindGoalCreate, s)
			return true
		})
		if len(left) == n {
			return // unreachable: portable.Read refuses cycles
		}
	}
}

func rawObject(m map[string]any) (json.RawMessage, error) {
	if m == nil {
		return nil, nil
	}
	return json.Marshal(m)
}

// newIDs returns n IDs in ascending order, so that rows keep the package's order
// although they have the same creation time.
func (im *importer) newIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = im.newID()
	}
	slices.Sort(ids)
	return ids
}

func (im *importer) agentSteps() error {
	ids := im.newIDs(len(im.m.Agents))
	im.done.Agents = make([]importedRow, len(im.m.Agents))
	order := make([]int, len(im.m.Agents)) // terminated agents come last: their names may be in use
	for n := range order {
		order[n] = n
	}
	slices.SortStableFunc(order, func(a, b int) int { return later(im.m.Agents[a].Terminated, im.m.Agents[b].Terminated) })
	for _, n := range order {
		a, p := im.m.Agents[n], im.plan.Agents[n]
		row := importedRow{Slug: a.Slug, Name: p.Name, Reason: p.Reason, Action: map[string]string{"create": "created",
			"update": "updated", "skip": "skipped"}[p.Action]}
		id := ids[n]
		if p.Existing != nil {
			id = *p.Existing
		}
		row.ID = &id
		im.done.Agents[n] = row
		if p.Action == "skip" && a.Terminated {
			im.past[a.Slug] = id // it remains the author of its comments, and gets no work
			continue
		}
		im.agents[a.Slug] = id
		if p.Action == "skip" {
			continue
		}
		s, err := im.agent(a, p, id)
		if err != nil {
			return err
		}
		if p.Action == "update" {
			im.step(company.KindAgentUpdate, s)
		} else {
			im.step(company.KindAgentCreate, s)
		}
		if a.Instructions != "" {
			im.step(skill.KindInstructionsFile, skill.SaveInstructionFile{Agent: id, Path: skill.InstructionsEntry,
				Content: a.Instructions})
		}
		for _, at := range slices.Sorted(maps.Keys(a.OtherInstructions)) {
			im.step(skill.KindInstructionsFile, skill.SaveInstructionFile{Agent: id, Path: at, Content: a.OtherInstructions[at]})
		}
		im.budgetSteps(entity.ScopeAgent, id, a.Budgets)
		if p.Action == "create" {
			im.memorySteps(id, a.Memories)
		}
		im.managers[id] = a.ReportsTo
	}
	// Managers are set when all agents exist.
	for n, a := range im.m.Agents {
		if im.plan.Agents[n].Action == "skip" || a.ReportsTo == nil || im.agents[*a.ReportsTo] == "" {
			continue
		}
		boss := im.agents[*a.ReportsTo]
		im.step(company.KindAgentUpdate, entity.SaveAgent{ID: im.agents[a.Slug], ReportsTo: &boss})
	}
	for _, g := range im.m.Goals {
		if g.Owner != nil && im.agents[*g.Owner] != "" {
			owner := im.agents[*g.Owner]
			im.step(company.KindGoalUpdate, entity.SaveGoal{ID: im.goals[g.Slug], Owner: &owner})
		}
	}
	return nil
}

func (im *importer) agent(a portable.Agent, p agentPlan, id string) (s entity.SaveAgent, err error) {
	s = entity.SaveAgent{ID: id, Name: &p.Name, Role: &a.Role, Title: a.Title, Icon: a.Icon, Capabilities: a.Capabilities,
		AdapterType: &a.AdapterType}
	config := map[string]any{}
	for k, v := range a.AdapterConfig {
		v, left, holes := travelling(v)
		if left {
			im.warn("Agent %s: adapterConfig.%s is hidden in the package and was left out.", a.Slug, k)
		}
		if holes {
			im.warn("Agent %s: adapterConfig.%s names a credential that does not travel; fill it in.", a.Slug, k)
		}
		if v != nil || !left {
			config[k] = v
		}
	}
	if env := im.env(func(e portable.EnvInput) bool { return Deref(e.Agent) == a.Slug }); env != nil {
		config["env"] = env
	}
	config["paperclipSkillSync"] = map[string]any{"desiredSkills": a.Skills}
	if err := json.Unmarshal(skill.ManagedInstructionsConfig(im.company.ID, id, skill.InstructionsEntry),
		&config); err != nil {
		return s, err
	}
	// An import never starts a timer. config["enabled"] counts once runtimeConfig has no
	// value, so it is cleared too.
	if config["enabled"] == true {
		config["enabled"] = false
	}
	if s.AdapterConfig, err = json.Marshal(config); err != nil {
		return s, err
	}
	runtime := map[string]any{}
	for k, v := range a.RuntimeConfig {
		runtime[k] = v
	}
	beat := map[string]any{}
	if b, ok := runtime["heartbeat"].(map[string]any); ok {
		for k, v := range b {
			beat[k] = v
		}
	}
	beat["enabled"] = false
	if beat["maxConcurrentRuns"] == nil {
		beat["maxConcurrentRuns"] = entity.DefaultConcurrentRuns
	}
	runtime["heartbeat"] = beat
	if s.RuntimeConfig, err = json.Marshal(runtime); err != nil {
		return s, err
	}
	if s.Metadata, err = rawObject(a.Metadata); err != nil {
		return s, err
	}
	if a.ContextMode != "" {
		s.ContextMode = &a.ContextMode
	}
	if a.BudgetCents < 0 || a.BudgetCents > api.MaxPackageCents {
		im.warn("Agent %s: a budget of %d cents a month is none that can be set, and was left out.", a.Slug, a.BudgetCents)
	} else if a.BudgetCents > 0 {
		budget := core.Money(a.BudgetCents) * core.Cent
		s.Budget = &budget
	}
	grant := entity.Grant{}
	for key, field := range map[string]**bool{"canCreateAgents": &grant.CreateAgents,
		"canCreateSkills": &grant.CreateSkills, "canAssignTasks": &grant.AssignTasks} {
		if v, ok := a.Permissions[key]; ok {
			*field = &v
		}
	}
	s.Permissions = &grant
	return s, nil
}

// labelIDs returns the IDs of the package's labels by name.
func (im *importer) labelIDs(names []string) (ids []string) {
	for _, l := range names {
		if id := im.labels[l]; id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// env declares the variables of the package with the values that the body gives; others
// can be set later.
func (im *importer) env(of func(portable.EnvInput) bool) map[string]any {
	var env map[string]any
	for _, e := range im.m.EnvInputs {
		if of(e) {
			if env == nil {
				env = map[string]any{}
			}
			value := e.Default
			for _, name := range envNames(e) {
				if v, ok := im.body.Secrets[name]; ok {
					value = v
					break
				}
			}
			env[e.Key] = map[string]any{"type": "plain", "value": value}
		}
	}
	return env
}

// envNames returns the names under which the body may give a variable's value.
func envNames(e portable.EnvInput) []string {
	switch {
	case e.Agent != nil:
		return []string{"agent:" + *e.Agent + ":" + e.Key, e.Key}
	case e.Project != nil:
		return []string{"project:" + *e.Project + ":" + e.Key, e.Key}
	case e.Routine != nil:
		return []string{"routine:" + *e.Routine + ":" + e.Key, e.Key}
	}
	return []string{e.Key}
}

func (im *importer) projectSteps() error {
	ids := im.newIDs(len(im.m.Projects))
	for n, p := range im.m.Projects {
		plan := im.plan.Projects[n]
		row := importedRow{Slug: p.Slug, Name: plan.Name, Reason: plan.Reason, Action: map[string]string{"create": "created",
			"update": "updated", "skip": "skipped"}[plan.Action]}
		id := ids[n]
		if plan.Existing != nil {
			id = *plan.Existing
		}
		im.projects[p.Slug], row.ID = id, &id
		im.done.Projects = append(im.done.Projects, row)
		if plan.Action == "skip" {
			continue
		}
		status := entity.ProjectStatus(p.Status)
		s := entity.SaveProject{ID: id, Name: &plan.Name, Description: p.Description, Status: &status,
			TargetDate: p.TargetDate, Color: p.Color, Icon: p.Icon}
		if p.Lead != nil && im.agents[*p.Lead] != "" {
			lead := im.agents[*p.Lead]
			s.Lead = &lead
		}
		goals := []string{}
		for _, g := range p.Goals {
			if id := im.goals[g]; id != "" {
				goals = append(goals, id)
			}
		}
		if len(goals) > 0 {
			s.Goals = &goals
		}
		if plan.Action == "create" {
			for _, w := range p.Workspaces {
				im.spaces[p.Slug+"/"+w.Key] = im.newID()
			}
		}
		var err error
		if s.WorkspacePolicy, err = im.placed("Project "+p.Slug, p.Slug, p.WorkspacePolicy); err != nil {
			return err
		}
		if s.Env, err = rawObject(im.env(func(e portable.EnvInput) bool { return Deref(e.Project) == p.Slug })); err != nil {
			return err
		}
		if plan.Action == "update" {
			im.step(company.KindProjectUpdate, s)
			continue // its workspaces stay unchanged
		}
		placed := s.WorkspacePolicy
		if _, ok := p.WorkspacePolicy[defaultSpaceKey]; ok {
			s.WorkspacePolicy = nil // it names a workspace that is created below
		}
		im.step(company.KindProjectCreate, s)
		if p.Archived {
			im.archived = append(im.archived, id)
		}
		im.budgetSteps(entity.ScopeProject, id, p.Budgets)
		for _, w := range p.Workspaces {
			space := entity.SaveWorkspace{ID: im.spaces[p.Slug+"/"+w.Key], Project: id, Name: &w.Name, RepoURL: w.RepoURL,
				RepoRef: w.RepoRef, DefaultRef: w.DefaultRef, Visibility: w.Visibility,
				SetupCommand: w.SetupCommand, CleanupCommand: w.CleanupCommand, Primary: &w.Primary}
			if w.SourceType != "" {
				space.SourceType = &w.SourceType
			}
			im.step(company.KindWorkspaceCreate, space)
		}
		if s.WorkspacePolicy == nil && placed != nil {
			im.step(company.KindProjectUpdate, entity.SaveProject{ID: id, WorkspacePolicy: placed})
		}
	}
	return nil
}
