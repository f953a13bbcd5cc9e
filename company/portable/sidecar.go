package portable

import (
	"math"
	"reflect"
	"time"

	"go.yaml.in/yaml/v3"
)

// Names of files that occur once in a package.
const (
	companyFile = "COMPANY.md"
	sidecarFile = ".paperclip.yaml"
	readmeFile  = "README.md"
	// ChartFile is the path of the org chart, a PNG that the readme shows.
	ChartFile = "images/org-chart.png"

	logoBase = "images/company-logo"

	companySchema = "agentcompanies/v1"
	sidecarSchema = "paperclip/v1"
)

// sidecar is .paperclip.yaml.
type sidecar struct {
	Schema   string                 `yaml:"schema"`
	Version  int                    `yaml:"schemaVersion"`
	Company  sidecarCompany         `yaml:"company,omitempty"`
	Sidebar  *Sidebar               `yaml:"sidebar,omitempty"`
	Labels   []Label                `yaml:"labels,omitempty"`
	Blobs    []Blob                 `yaml:"blobs,omitempty"`
	Assets   []Asset                `yaml:"embeddedAssets,omitempty"`
	Goals    map[string]Goal        `yaml:"goals,omitempty"`
	Agents   map[string]sideAgent   `yaml:"agents,omitempty"`
	Projects map[string]sideProject `yaml:"projects,omitempty"`
	Tasks    map[string]sideTask    `yaml:"tasks,omitempty"`
	Routines map[string]sideRoutine `yaml:"routines,omitempty"`
	Skills   map[string]sideSkill   `yaml:"skills,omitempty"`

	Structure `yaml:",inline"`
}

// sideSkill is the comments and tests of a skill.
type sideSkill struct {
	Comments []Said       `yaml:"comments,omitempty"`
	Inputs   []SkillInput `yaml:"testInputs,omitempty"`
	Tests    []SkillTest  `yaml:"testRuns,omitempty"`
}

type sidecarCompany struct {
	LogoPath            *string `yaml:"logoPath,omitempty"`
	RequireHireApproval bool    `yaml:"requireBoardApprovalForNewAgents,omitempty"`
	FeedbackSharing     bool    `yaml:"feedbackDataSharingEnabled,omitempty"`
	BrandColor          *string `yaml:"brandColor,omitempty"`
	NoStrategyGate      bool    `yaml:"ceoStartsWithoutStrategy,omitempty"`
	AttachmentMaxBytes  int64   `yaml:"attachmentMaxBytes,omitempty"`
}

type sideAgent struct {
	Role             string            `yaml:"role,omitempty"`
	Icon             *string           `yaml:"icon,omitempty"`
	Capabilities     *string           `yaml:"capabilities,omitempty"`
	Adapter          sideAdapter       `yaml:"adapter"`
	Runtime          map[string]any    `yaml:"runtime,omitempty"`
	Permissions      map[string]bool   `yaml:"permissions,omitempty"`
	PermissionGrants []PermissionGrant `yaml:"permissionGrants,omitempty"`
	BudgetCents      int64             `yaml:"budgetMonthlyCents,omitempty"`
	Metadata         map[string]any    `yaml:"metadata,omitempty"`
	Inputs           sideInputs        `yaml:"inputs,omitempty"`
	Budgets          []Budget          `yaml:"budgetPolicies,omitempty"`
	Memories         []Memory          `yaml:"memories,omitempty"`
	ContextMode      string            `yaml:"contextMode,omitempty"`
	Terminated       bool              `yaml:"terminated,omitempty"`
}

type sideAdapter struct {
	Type   string         `yaml:"type,omitempty"`
	Config map[string]any `yaml:"config,omitempty"`
}

type sideInputs struct {
	Env map[string]input `yaml:"env,omitempty"`
}

type sideProject struct {
	Lead            *string              `yaml:"leadAgentSlug,omitempty"`
	TargetDate      *string              `yaml:"targetDate,omitempty"`
	Color           *string              `yaml:"color,omitempty"`
	Icon            *string              `yaml:"icon,omitempty"`
	Status          string               `yaml:"status,omitempty"`
	Archived        bool                 `yaml:"archived,omitempty"`
	WorkspacePolicy map[string]any       `yaml:"executionWorkspacePolicy,omitempty"`
	Workspaces      map[string]Workspace `yaml:"workspaces,omitempty"`
	Goals           []string             `yaml:"goals,omitempty"`
	Inputs          sideInputs           `yaml:"inputs,omitempty"`
	Budgets         []Budget             `yaml:"budgetPolicies,omitempty"`
}

type sideTask struct {
	Identifier        *string        `yaml:"identifier,omitempty"`
	Status            *string        `yaml:"status,omitempty"`
	Priority          *string        `yaml:"priority,omitempty"`
	Parent            *string        `yaml:"parent,omitempty"`
	Goal              *string        `yaml:"goal,omitempty"`
	CreatedAt         *string        `yaml:"createdAt,omitempty"`
	UpdatedAt         *string        `yaml:"updatedAt,omitempty"`
	StartedAt         *string        `yaml:"startedAt,omitempty"`
	CompletedAt       *string        `yaml:"completedAt,omitempty"`
	CancelledAt       *string        `yaml:"cancelledAt,omitempty"`
	Labels            []string       `yaml:"labels,omitempty"`
	BillingCode       *string        `yaml:"billingCode,omitempty"`
	WorkspaceKey      *string        `yaml:"projectWorkspaceKey,omitempty"`
	WorkspaceSettings map[string]any `yaml:"executionWorkspaceSettings,omitempty"`
	AdapterOverrides  map[string]any `yaml:"assigneeAdapterOverrides,omitempty"`
	Comments          []Comment      `yaml:"comments,omitempty"`
	BlockedBy         []string       `yaml:"blockedBy,omitempty"`
	Documents         []Document     `yaml:"documents,omitempty"`
	WorkProducts      []WorkProduct  `yaml:"workProducts,omitempty"`
	Attachments       []Attachment   `yaml:"attachments,omitempty"`
	Monitor           map[string]any `yaml:"monitor,omitempty"`
	ExecutionPolicy   map[string]any `yaml:"executionPolicy,omitempty"`
	Watchdog          *Watchdog      `yaml:"watchdog,omitempty"`
	WorkMode          *string        `yaml:"workMode,omitempty"`
	ReviewPolicy      *string        `yaml:"reviewPolicy,omitempty"`
	WorkspacePref     *string        `yaml:"executionWorkspacePreference,omitempty"`
}

type sideRoutine struct {
	Status      *string    `yaml:"status,omitempty"`
	Priority    *string    `yaml:"priority,omitempty"`
	Goal        *string    `yaml:"goal,omitempty"`
	Labels      []string   `yaml:"labels,omitempty"`
	BillingCode *string    `yaml:"billingCode,omitempty"`
	Folder      *string    `yaml:"folder,omitempty"`
	Inputs      sideInputs `yaml:"inputs,omitempty"`
	Routine     `yaml:",inline"`
}

// Front matter of the Markdown files.
type frontCompany struct {
	Name        string  `yaml:"name"`
	Description *string `yaml:"description,omitempty"`
	Schema      string  `yaml:"schema,omitempty"`
	Slug        string  `yaml:"slug,omitempty"`
}

type frontAgent struct {
	Name      string   `yaml:"name"`
	Slug      string   `yaml:"slug,omitempty"` // read, but not written: the folder's name is the slug
	Title     *string  `yaml:"title,omitempty"`
	Role      string   `yaml:"role,omitempty"` // read, but not written
	ReportsTo *string  `yaml:"reportsTo,omitempty"`
	Skills    []string `yaml:"skills,omitempty"`
}

type frontProject struct {
	Name        string  `yaml:"name"`
	Description *string `yaml:"description,omitempty"`
	Owner       *string `yaml:"owner,omitempty"`
}

type frontTask struct {
	Name      string  `yaml:"name"`
	Project   *string `yaml:"project,omitempty"`
	Assignee  *string `yaml:"assignee,omitempty"`
	Recurring bool    `yaml:"recurring,omitempty"`
}

type frontTeam struct {
	Name     string   `yaml:"name"`
	Manager  *string  `yaml:"manager,omitempty"`
	Includes []string `yaml:"includes,omitempty"`
	Members  []string `yaml:"members,omitempty"`
}

type frontSkill struct {
	Name        string  `yaml:"name"`
	Description *string `yaml:"description,omitempty"`
}

func (r *reader) sidecar() error {
	f, ok := r.files[sidecarFile]
	if !ok {
		return nil
	}
	if len(f.Data) > MaxSidecar {
		return malformed("%s is longer than %d MiB", sidecarFile, MaxSidecar>>20)
	}
	if n := marks(f.Data); n > maxSidecarMarks {
		return malformed("%s has more than %d values", sidecarFile, maxSidecarMarks)
	}
	if err := yaml.Unmarshal(f.Data, &r.side); err != nil {
		return malformed("%s: %s", sidecarFile, plain(err))
	}
	if unfit(reflect.ValueOf(r.side)) {
		return malformed("%s: a number is none (.nan, .inf), or a key within an object is no text: put it in quotes",
			sidecarFile)
	}
	if r.side.Version > SchemaVersion {
		r.warn("The package has schema version %d; version %d is understood, and what is newer is passed over.",
			r.side.Version, SchemaVersion)
	}
	if s := r.side.Sidebar; s != nil {
		s.Agents, s.Projects = list(s.Agents), list(s.Projects)
	}
	return nil
}

// marks counts the characters that may separate values in YAML. No text has more values.
func marks(b []byte) (n int) {
	for i, c := range b {
		switch c {
		case '\n', ',', '[', '{':
			n++
		case '-', ':', '?':
			if i+1 < len(b) && (b[i+1] == ' ' || b[i+1] == '\t') {
				n++
			}
		}
	}
	return n
}

// unfit reports whether v holds YAML values that JSON does not have, in objects such as
// adapters' configurations, which are JSON everywhere else.
func unfit(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Float64:
		return math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0)
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && unfit(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			if unfit(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return true
		}
		for _, key := range v.MapKeys() {
			if unfit(v.MapIndex(key)) {
				return true
			}
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return false
		}
		for i := range v.NumField() {
			if unfit(v.Field(i)) {
				return true
			}
		}
	}
	return false
}
