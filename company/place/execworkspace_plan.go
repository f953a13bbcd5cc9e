package place

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A workspacePolicy is the part of a project's executionWorkspacePolicy that is implemented.
// Unknown members are ignored.
type workspacePolicy struct {
	Enabled          bool   `json:"enabled"`
	DefaultMode      string `json:"defaultMode"`
	AllowOverride    *bool  `json:"allowIssueOverride"`
	ProjectWorkspace string `json:"defaultProjectWorkspaceId"`
	Strategy         struct {
		Type           string `json:"type"`
		BaseRef        string `json:"baseRef"`
		BranchTemplate string `json:"branchTemplate"`
		ParentDir      string `json:"worktreeParentDir"`

		Provision        string `json:"provisionCommand"`
		RuntimeProvision string `json:"runtimeProvisionCommand"`
		Teardown         string `json:"teardownCommand"`
	} `json:"workspaceStrategy"`
	Runtime json.RawMessage `json:"workspaceRuntime"`
}

// OpenWorkspace finds or creates the execution workspace of a run that starts. Each issue of
// a project with a workspace has one. The node creates the folder.
func OpenWorkspace(c *ledger.Context, r entity.Run) entity.Run {
	i, ok := entity.IssueTable.Get(c.Tx, r.Company, r.Context.IssueID)
	if !ok || i.Project == "" {
		return r
	}
	p, ok := entity.ProjectTable.Get(c.Tx, r.Company, i.Project)
	if !ok {
		return r
	}
	want, ok := planWorkspace(c.Tx, p, i)
	if !ok {
		return r
	}
	now := core.TimeOf(c.Now)
	w, found := workspaceThere(c.Tx, i, want)
	if !found {
		w = want
		w.ID, w.Company, w.SourceIssue, w.Name = core.DerivedID("exec-workspace", r.ID), r.Company, core.NullText(i.ID),
			i.Identifier
		w.OpenedAt, w.CreatedAt = now, now
		c.Set(ExecCompanyKey(w.ID), []byte(w.Company))
	}
	if string(w.Node) != r.Node {
		// Files that exist only on the other node stay there; this node gets what was pushed.
		w.Node, w.Cwd = core.NullText(r.Node), w.begins(c.Tx)
	}
	if found {
		w.Others = slices.DeleteFunc(append(slices.Clone(w.Others), w.Run), func(run string) bool {
			return run == r.ID ||
				!w.worked(c.Tx, run)
		})
	}
	w.Status, w.LastUsedAt, w.UpdatedAt, w.Run, w.Adapter = WorkspaceActive, now, now, r.ID, r.AdapterType
	ExecWorkspaces.Put(c.Tx, w.Company, w.ID, w)
	startDesired(c, w)
	r.ExecutionWorkspace = w.ID
	return r
}

// inheritWorkspace returns i with the execution workspace of issue from, unless i names one
// itself (named). It takes the workspace that from names, else the one that the runs of
// from used last. If i has no project, it also takes the project of from and its workspace
// of the project. If from has no execution workspace yet, only these are taken.
func inheritWorkspace(tx *ledger.Tx, i entity.Issue, from string, named bool) (entity.Issue, error) {
	if from == "" {
		return i, nil
	}
	source, ok := entity.IssueTable.Get(tx, i.Company, from)
	if !ok {
		return i, ledger.Refuse(ledger.NotFound, nil, "Issue to inherit the execution workspace from not found")
	}
	i.Project = cmp.Or(i.Project, source.Project)
	if i.Project != source.Project {
		return i, core.RefuseCode(ledger.Unprocessable, "other_project",
			core.Object{}.Str("inheritExecutionWorkspaceFromIssueId", source.ID).Null("projectId", i.Project).
				Null("sourceProjectId", source.Project).Close(),
			"The execution workspace of %s is of another project; leave projectId out, or do not inherit", source.Identifier)
	}
	i.Workspace = cmp.Or(i.Workspace, source.Workspace)
	if w, ok := WorkspaceOfIssue(tx, source); ok && !named {
		i.ExecutionWorkspace = w.ID
	}
	return i, nil
}

// workspaceThere returns an existing execution workspace of the wanted kind for the runs of
// an issue. It prefers the one that the issue names, if that exists and belongs to the
// issue's project.
func workspaceThere(tx *ledger.Tx, i entity.Issue, want ExecutionWorkspace) (ExecutionWorkspace, bool) {
	if w, ok := namedWorkspace(tx, i); ok {
		return w, true
	}
	for id := range execWorkspaceIssue.IDs(tx, i.Company, i.ID, false) {
		w, ok := ExecWorkspaces.Get(tx, i.Company, id)
		if ok && w.Mode == want.Mode && w.ProjectWorkspace == want.ProjectWorkspace && !w.Status.Over() {
			return w, true
		}
	}
	return ExecutionWorkspace{}, false
}

// begins is the folder of w before its node has reported one; "" if the node chooses it.
func (w ExecutionWorkspace) begins(tx *ledger.Tx) core.NullText {
	if w.Mode == entity.IsolatedWorkspace {
		return ""
	}
	of, _ := Workspaces.Get(tx, w.Company, string(w.ProjectWorkspace))
	return of.Cwd
}

// planWorkspace returns where the runs of an issue have to work. ok is false if the project
// has no workspace.
func planWorkspace(tx *ledger.Tx, p entity.Project, i entity.Issue) (w ExecutionWorkspace, ok bool) {
	var policy workspacePolicy
	_ = json.Unmarshal(p.WorkspacePolicy, &policy) // a policy that does not decode counts as none
	var own struct {
		Mode string `json:"mode"`
	}
	_ = json.Unmarshal(i.WorkspaceSettings, &own)
	var of Workspace
	named := cmpOr(i.Workspace, policy.ProjectWorkspace)
	for _, candidate := range WorkspacesOf(tx, i.Company, p.ID) {
		if !ok || candidate.ID == named {
			of, ok = candidate, true
		}
	}
	if !ok {
		return w, false
	}
	mode := policy.DefaultMode
	if override := cmpOr(own.Mode, i.WorkspacePref); override != "" && (policy.AllowOverride == nil ||
		*policy.AllowOverride) {
		mode = override
	}
	w = ExecutionWorkspace{Project: p.ID, ProjectWorkspace: core.NullText(of.ID), Mode: entity.SharedWorkspace,
		Strategy: "project_primary", Cwd: of.Cwd,
		RepoURL: core.NullText(withoutCredentials(string(of.RepoURL))),
		BaseRef: core.NullText(cmpOr(string(of.RepoRef), string(of.DefaultRef)))}
	if policy.Enabled && entity.WorkspaceMode(mode) == entity.IsolatedWorkspace && (policy.Strategy.Type == "" ||
		policy.Strategy.Type == "git_worktree") {
		w.Mode, w.Strategy, w.Cwd = entity.IsolatedWorkspace, "git_worktree", ""
		w.BaseRef = core.NullText(cmpOr(policy.Strategy.BaseRef, string(w.BaseRef)))
		w.Branch = core.NullText(branchName(cmpOr(policy.Strategy.BranchTemplate, "{{issue.identifier}}-{{slug}}"), p, i))
		w.ParentDir = policy.Strategy.ParentDir
	}
	return w, true
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// withoutCredentials removes user and password from a URL.
func withoutCredentials(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.User == nil {
		return s
	}
	if u.Scheme == "ssh" {
		u.User = url.User(u.User.Username())
	} else {
		u.User = nil
	}
	return u.String()
}

// branchName fills in a template and removes what Git does not accept in a branch name.
func branchName(template string, p entity.Project, i entity.Issue) string {
	name := strings.NewReplacer("{{issue.identifier}}", i.Identifier, "{{issue.id}}", i.ID, "{{issue.title}}", i.Title,
		"{{project.name}}", p.Name, "{{project.id}}", p.ID, "{{slug}}", core.Snippet(core.URLKey(i.Title), 60)).
		Replace(template)
	var b strings.Builder
	last := byte('/')
	for k := range len(name) {
		c := name[k]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_':
		case c == '/' && last != '/' && last != '-', c == '.' && last != '.' && last != '/':
		default:
			if c = '-'; last == '-' || last == '/' {
				continue
			}
		}
		b.WriteByte(c)
		last = c
	}
	name = strings.Trim(core.Snippet(b.String(), MaxBranch), "-./")
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		if part = strings.Trim(strings.TrimSuffix(part, ".lock"), "-."); part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 || strings.HasPrefix(parts[0], "-") {
		return i.Identifier
	}
	return strings.Join(parts, "/")
}
