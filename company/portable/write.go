package portable

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Write returns the files of a package: the same manifest and blobs give the
// same bytes. blobs are the contents of m.Blobs by their SHA-256 in hex.
func Write(m Manifest, blobs map[string][]byte) Files {
	files := Files{}
	side := sidecar{Schema: sidecarSchema, Version: SchemaVersion, Labels: m.Labels, Blobs: m.Blobs,
		Assets: m.EmbeddedAssets, Sidebar: m.Sidebar, Structure: m.Structure}
	slices.SortFunc(side.Blobs, func(a, b Blob) int { return cmp.Compare(a.SHA256, b.SHA256) })
	if c := m.Company; c != nil {
		files[companyFile] = page(frontCompany{c.Name, c.Description, companySchema, slugOf(c.Name)}, "")
		side.Company = sidecarCompany{c.LogoPath, c.RequireHireApproval, c.FeedbackSharing, c.BrandColor, c.NoStrategyGate,
			c.AttachmentMaxBytes}
		if c.LogoPath != nil && c.Logo != nil {
			files[*c.LogoPath] = *c.Logo
		}
	}
	for _, g := range m.Goals {
		put(&side.Goals, g.Slug, g)
	}
	for _, a := range m.Agents {
		files[a.Path] = page(frontAgent{Name: a.Name, Title: a.Title, ReportsTo: a.ReportsTo, Skills: a.Skills},
			a.Instructions)
		for name, text := range a.OtherInstructions {
			files[path.Join(path.Dir(a.Path), name)] = Text(text)
		}
		put(&side.Agents, a.Slug, sideAgent{
			Role: a.Role, Icon: a.Icon, Capabilities: a.Capabilities, Adapter: sideAdapter{a.AdapterType, a.AdapterConfig},
			Runtime: a.RuntimeConfig, Permissions: a.Permissions, PermissionGrants: a.PermissionGrants,
			BudgetCents: a.BudgetCents,
			Metadata:    a.Metadata, Inputs: m.inputsOf(func(e EnvInput) bool { return is(e.Agent, a.Slug) }),
			Budgets: a.Budgets, Memories: a.Memories, ContextMode: a.ContextMode, Terminated: a.Terminated,
		})
	}
	for _, p := range m.Projects {
		files[p.Path] = page(frontProject{p.Name, p.Description, p.Owner}, text(p.Description))
		s := sideProject{Lead: p.Lead, TargetDate: p.TargetDate, Color: p.Color, Icon: p.Icon, Status: p.Status,
			Archived: p.Archived, WorkspacePolicy: p.WorkspacePolicy,
			Goals: p.Goals, Budgets: p.Budgets, Inputs: m.inputsOf(func(e EnvInput) bool { return is(e.Project, p.Slug) })}
		for _, w := range p.Workspaces {
			put(&s.Workspaces, w.Key, w)
		}
		put(&side.Projects, p.Slug, s)
	}
	for _, i := range m.Issues {
		files[i.Path] = page(frontTask{i.Title, i.Project, i.Assignee, i.Recurring}, text(i.Description))
		if i.Recurring {
			s := sideRoutine{Status: i.Status, Priority: i.Priority, Goal: i.Goal, Labels: i.Labels, BillingCode: i.BillingCode,
				Folder: i.Folder,
				Inputs: m.inputsOf(func(e EnvInput) bool { return is(e.Routine, i.Slug) })}
			if i.Routine != nil {
				s.Routine = i.Routine.stored()
			}
			put(&side.Routines, i.Slug, s)
			continue
		}
		for _, d := range i.Documents {
			files[d.Path] = Text(d.Body)
		}
		put(&side.Tasks, i.Slug, sideTask{
			Identifier: i.Identifier, Status: i.Status, Priority: i.Priority, Parent: i.Parent, Goal: i.Goal,
			CreatedAt: i.CreatedAt, UpdatedAt: i.UpdatedAt, StartedAt: i.StartedAt, CompletedAt: i.CompletedAt,
			CancelledAt: i.CancelledAt,
			Labels:      i.Labels, BillingCode: i.BillingCode, WorkspaceKey: i.WorkspaceKey,
			WorkspaceSettings: i.WorkspaceSettings,
			AdapterOverrides:  i.AdapterOverrides, Comments: i.Comments, BlockedBy: i.BlockedBy, Documents: i.Documents,
			WorkProducts: i.WorkProducts, Attachments: i.Attachments, Monitor: i.Monitor,
			ExecutionPolicy: i.ExecutionPolicy, Watchdog: i.Watchdog, WorkMode: i.WorkMode, ReviewPolicy: i.ReviewPolicy,
			WorkspacePref: i.WorkspacePref,
		})
	}
	for _, s := range m.Skills {
		for name, text := range s.Files {
			files[path.Join(path.Dir(s.Path), name)] = Text(text)
		}
		if len(s.Comments)+len(s.Inputs)+len(s.Tests) > 0 {
			put(&side.Skills, s.Slug, sideSkill{s.Comments, s.Inputs, s.Tests})
		}
	}
	for _, b := range m.Blobs {
		files[blobPath(b.SHA256)] = File{Data: blobs[b.SHA256], Binary: true, ContentType: b.ContentType}
	}
	files[sidecarFile] = File{Data: quoted(side)}
	if m.Company != nil {
		files[readmeFile] = Text(readme(m))
	}
	return files
}

func blobPath(sum string) string { return "blobs/" + sum }

func put[T any](m *map[string]T, key string, v T) {
	if *m == nil {
		*m = map[string]T{}
	}
	(*m)[key] = v
}

func is(p *string, s string) bool { return p != nil && *p == s }

func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

func (m Manifest) inputsOf(of func(EnvInput) bool) (s sideInputs) {
	for _, e := range m.EnvInputs {
		if of(e) {
			put(&s.Env, e.Key, input{Kind: e.Kind, Requirement: e.Requirement, Description: e.Description})
		}
	}
	return s
}

// stored returns the routine as the sidecar has it, without default values.
func (r Routine) stored() Routine {
	r.Triggers = slices.Clone(r.Triggers)
	for n := range r.Triggers {
		if t := &r.Triggers[n]; !t.Enabled {
			t.Disabled = new(bool)
		}
	}
	return r
}

// slugOf returns the form of a name in paths: in lower case, with dashes for characters that
// are neither letters nor digits.
func slugOf(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return cmp.Or(strings.TrimSuffix(b.String(), "-"), "company")
}

// RootPath returns the name of the folder in which a company's package is put.
func RootPath(company string) string { return slugOf(company) }

// readme returns a README for people who view the package as a repository.
func readme(m Manifest) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", oneLine(m.Company.Name))
	if d := text(m.Company.Description); d != "" {
		fmt.Fprintf(&b, "%s\n\n", oneLine(d))
	}
	b.WriteString("A company of AI agents as a portable package (agentcompanies/v1).\nImport it with `selvage company " +
		"import DIR`.\n")
	if len(m.Agents) > 0 {
		b.WriteString("\n![Org chart](" + ChartFile + ")\n")
		b.WriteString("\n## Agents\n\n| Agent | Role | Reports to |\n|---|---|---|\n")
		for _, a := range m.Agents {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(a.Name), cell(a.Role), cell(cmp.Or(text(a.ReportsTo), "-")))
		}
	}
	if len(m.Projects) > 0 {
		b.WriteString("\n## Projects\n\n")
		for _, p := range m.Projects {
			fmt.Fprintf(&b, "- %s\n", oneLine(p.Name))
		}
	}
	if len(m.EnvInputs) > 0 {
		b.WriteString("\n## Environment to fill in\n\nValues do not travel. After the import, set:\n\n")
		for _, e := range m.EnvInputs {
			fmt.Fprintf(&b, "- `%s` (%s) for %s\n", e.Key, e.Kind, cmp.Or(text(e.Agent), text(e.Project), text(e.Routine)))
		}
	}
	return b.String()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
func cell(s string) string    { return strings.ReplaceAll(oneLine(s), "|", `\|`) }
