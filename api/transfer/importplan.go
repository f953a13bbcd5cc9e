package transfer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/ledger"
)

// checkTexts applies the length limits of the API's other routes to the package.
func (im *importer) checkTexts() error {
	long := func(what, slug, field string, n, limit int) error {
		if n > limit {
			return api.Unprocessable(fmt.Sprintf("%s %s: its %s is longer than %d bytes", what, slug, field, limit), nil)
		}
		return nil
	}
	for _, i := range im.m.Issues {
		if err := cmp.Or(long("Task", i.Slug, "name", len(i.Title), entity.MaxTitle),
			long("Task", i.Slug, "text", len(Deref(i.Description)), entity.MaxText),
			long("Task", i.Slug, "billing code", len(Deref(i.BillingCode)), 200)); err != nil {
			return err
		}
		for _, d := range i.Documents {
			if err := long("Task", i.Slug, "document "+api.Cut(d.Key, 40), len(d.Body), paper.MaxDocument); err != nil {
				return err
			}
		}
		for n, c := range i.Comments {
			if err := long("Task", i.Slug, "comment "+strconv.Itoa(n+1), len(c.Body), entity.MaxText); err != nil {
				return err
			}
		}
	}
	for _, l := range im.m.Labels {
		if err := long("Label", api.Cut(l.Name, 20), "name", len(l.Name), 48); err != nil {
			return err
		}
	}
	return nil
}

// choose drops the parts that were not selected.
func (im *importer) choose() error {
	var slugs []string
	if len(im.body.Agents) > 0 && string(im.body.Agents) != `"all"` && string(im.body.Agents) != "null" {
		if err := json.Unmarshal(im.body.Agents, &slugs); err != nil {
			return api.Invalid(`Invalid agents: expected "all" or a list of slugs`)
		}
	}
	if !im.include.Agents {
		im.m.Agents = []portable.Agent{}
	} else if len(slugs) > 0 {
		im.m.Agents = slices.DeleteFunc(im.m.Agents, func(a portable.Agent) bool { return !slices.Contains(slugs, a.Slug) })
	}
	if !im.include.Projects {
		im.m.Projects = []portable.Project{}
	}
	if !im.include.Issues {
		im.m.Issues, im.m.Labels = []portable.Issue{}, []portable.Label{}
	}
	if !im.include.Skills {
		im.m.Skills = []portable.Skill{}
	}
	if !im.include.Projects && !im.include.Issues {
		im.m.Goals = []portable.Goal{}
	}
	for n := range im.m.Agents {
		a := &im.m.Agents[n]
		o, ok := im.body.Adapters[a.Slug]
		if !ok {
			continue
		}
		a.AdapterType = o.Type
		if raw := o.Config.Or(nil); len(raw) > 0 {
			a.AdapterConfig = nil
			if err := json.Unmarshal(raw, &a.AdapterConfig); err != nil {
				return api.Invalid("adapterOverrides.%s.adapterConfig: expected an object", api.Cut(a.Slug, 60))
			}
		}
	}
	for _, slug := range slices.Sorted(maps.Keys(im.body.Adapters)) {
		if !slices.ContainsFunc(im.m.Agents, func(a portable.Agent) bool { return a.Slug == slug }) {
			im.warn("adapterOverrides names agent %s, who is not imported.", api.Cut(slug, 60))
		}
	}
	im.m.Includes = im.include
	there := func(slug *string) bool {
		return slug == nil || slices.ContainsFunc(im.m.Agents, func(a portable.Agent) bool { return a.Slug == *slug }) ||
			slices.ContainsFunc(im.m.Projects, func(p portable.Project) bool { return p.Slug == *slug })
	}
	im.m.EnvInputs = slices.DeleteFunc(im.m.EnvInputs, func(e portable.EnvInput) bool {
		return !there(e.Agent) || !there(e.Project) || e.Routine != nil && !slices.ContainsFunc(im.m.Issues,
			func(i portable.Issue) bool { return i.Recurring && i.Slug == *e.Routine })
	})
	return nil
}

// against compares the package with the rows of the target.
func (im *importer) against(tx *ledger.Tx) error {
	im.plan = importPlan{Company: "none", Agents: []agentPlan{}, Projects: []projectPlan{}, Issues: []issuePlan{}}
	if im.created {
		name := im.m.Company.Name
		if n := im.body.Target.NewCompanyName.Value; strings.TrimSpace(n) != "" {
			name = n
		}
		im.company, im.plan.Company = entity.Company{ID: ledger.CompanyID(im.newID()), Name: name}, "create"
		im.againstAgents(nil, nil)
		im.againstProjects(tx, nil)
	} else {
		row, ok := entity.CompanyOf(tx, ledger.CompanyID(strings.ToLower(string(im.body.Target.CompanyID))))
		if !ok {
			return api.NotFound("Company not found")
		}
		im.company = row
		for _, l := range entity.LabelsOf(tx, row.ID) {
			im.labels[l.Name] = l.ID
		}
		for _, g := range entity.GoalsOf(tx, row.ID) {
			im.goals["\x00"+g.Title] = g.ID // goals with the same title are the same goal
		}
		if im.include.Company {
			im.plan.Company = "update"
		}
		agents := entity.AgentsOf(tx, row.ID, true)
		gone := slices.DeleteFunc(slices.Clone(agents),
			func(a entity.Agent) bool { return a.Status != entity.AgentTerminated })
		im.againstAgents(slices.DeleteFunc(agents,
			func(a entity.Agent) bool { return a.Status == entity.AgentTerminated }), gone)
		im.againstProjects(tx, entity.ProjectsOf(tx, row.ID))
	}
	for _, i := range im.m.Issues {
		plan := issuePlan{Slug: i.Slug, Action: "create", Title: i.Title}
		if i.Recurring {
			why := "Recurring task will be imported as a routine."
			plan.Reason = &why
		}
		im.plan.Issues = append(im.plan.Issues, plan)
	}
	return nil
}

// againstAgents compares the agents of the package with those of the target: who works there,
// and who is gone.
func (im *importer) againstAgents(agents, gone []entity.Agent) {
	names := map[string]bool{}
	for _, a := range agents {
		names[nameKey(a.Name)] = true
	}
	for _, a := range im.m.Agents {
		p := agentPlan{Slug: a.Slug, Action: "create", Name: cmp.Or(im.body.NameOverrides[a.Slug], a.Name)}
		if a.Terminated { // reserves no name, and matches only terminated agents
			at := slices.IndexFunc(gone, func(b entity.Agent) bool { return nameKey(b.Name) == nameKey(p.Name) })
			if at >= 0 && im.collision != "rename" {
				why := "Existing slug matched; who has left stays as it was."
				p.Action, p.Reason, p.Existing = "skip", &why, &gone[at].ID
			}
			im.plan.Agents = append(im.plan.Agents, p)
			continue
		}
		key := core.URLKey(p.Name)
		at := slices.IndexFunc(agents, func(b entity.Agent) bool {
			return nameKey(b.Name) == nameKey(p.Name) || b.URLKey() == a.Slug && (key != "" || b.ID == a.Slug)
		})
		if at >= 0 {
			p.Action, p.Reason = im.collide("slug")
			if p.Action == "create" {
				p.Name = freeName(names, p.Name)
			} else {
				p.Existing = &agents[at].ID
			}
		} else if key != "" && names[key] { // several agents may have a name without a key
			p.Name = freeName(names, p.Name)
		}
		names[nameKey(p.Name)] = true
		im.plan.Agents = append(im.plan.Agents, p)
	}
}

// againstProjects compares the projects of the package with those of the target.
func (im *importer) againstProjects(tx *ledger.Tx, projects []entity.Project) {
	names := map[string]bool{}
	there := projectSlugs(projects)
	for _, p := range projects {
		names[nameKey(p.Name)] = true
	}
	for _, p := range im.m.Projects {
		plan := projectPlan{Slug: p.Slug, Action: "create", Name: p.Name}
		if at := slices.IndexFunc(projects, func(b entity.Project) bool {
			if core.URLKey(p.Name) == "" {
				return b.Name == p.Name
			}
			return there[b.ID] == p.Slug
		}); at >= 0 {
			plan.Action, plan.Reason = im.collide("slug")
			if plan.Action == "create" {
				plan.Name = freeName(names, p.Name)
			} else {
				plan.Existing = &projects[at].ID
				taken := map[string]string{}
				for _, w := range place.WorkspacesOf(tx, im.company.ID, projects[at].ID) { // named as an export names them
					if w.RepoURL != "" {
						im.spaces[p.Slug+"/"+slug(taken, w.ID, w.Name, "workspace")] = w.ID
					}
				}
			}
		}
		names[nameKey(plan.Name)] = true
		im.plan.Projects = append(im.plan.Projects, plan)
	}
}

// collide returns what the collision strategy does with a row whose slug exists.
func (im *importer) collide(what string) (action string, reason *string) {
	why := "Existing " + what + " matched; " + im.collision + " strategy."
	switch im.collision {
	case "skip":
		return "skip", &why
	case "replace":
		return "update", &why
	}
	return "create", &why
}

// nameKey is the key by which names are compared: the URL key, or the name itself when
// no letter or digit of it can be in one, as in other scripts.
func nameKey(name string) string { return cmp.Or(core.URLKey(name), name) }

func freeName(taken map[string]bool, name string) string {
	out := name
	for n := 2; taken[nameKey(out)]; n++ {
		out = name + " " + strconv.Itoa(n)
	}
	return out
}
