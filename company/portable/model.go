// Package portable is the format in which a company is moved between meshes: a folder of
// Markdown with YAML front matter (agentcompanies/v1), and one sidecar for data that only a
// control plane has (paperclip/v1). It reads and writes that format; it knows nothing of
// rows, and a package never contains the value of a secret.
package portable

import "github.com/selvage-mesh/selvage/ledger"

// SchemaVersion is the sidecar's version. A newer one is read with a warning.
const SchemaVersion = 7

// A Manifest is the content of a package besides its files: what a client sees of an export,
// and from which an import is planned. Field names are the contract's; lists are never null.
type Manifest struct {
	SchemaVersion  int        `json:"schemaVersion"`
	GeneratedAt    string     `json:"generatedAt"` // RFC 3339
	Source         *Source    `json:"source"`
	Includes       Includes   `json:"includes"`
	Company        *Company   `json:"company"`
	Sidebar        *Sidebar   `json:"sidebar"`
	Labels         []Label    `json:"labels"`
	Blobs          []Blob     `json:"blobs"`
	EmbeddedAssets []Asset    `json:"embeddedAssets"`
	Agents         []Agent    `json:"agents"`
	Skills         []Skill    `json:"skills"`
	Projects       []Project  `json:"projects"`
	Goals          []Goal     `json:"goals"`
	Teams          []Team     `json:"teams"`
	Issues         []Issue    `json:"issues"` // recurring ones are templates of routines
	EnvInputs      []EnvInput `json:"envInputs"`
	Structure
}

// A Structure is how a company is organised, apart from its agents and issues. It extends
// the format, and is included with the issues.
type Structure struct {
	Budgets     []Budget     `json:"budgetPolicies,omitempty" yaml:"budgetPolicies,omitempty"` // of the company
	Folders     []Folder     `json:"folders,omitempty" yaml:"folders,omitempty"`
	UserSecrets []UserSecret `json:"userSecrets,omitempty" yaml:"userSecrets,omitempty"`
	Strategies  []Strategy   `json:"strategies,omitempty" yaml:"strategies,omitempty"` // the oldest first
}

// A Strategy is a strategy that the board has approved.
type Strategy struct {
	Agent   *string        `json:"agentSlug" yaml:"agent,omitempty"` // who drafted it
	Payload map[string]any `json:"payload" yaml:"payload"`
	Note    *string        `json:"decisionNote" yaml:"decisionNote,omitempty"`
	Tasks   []string       `json:"issueSlugs" yaml:"tasks,omitempty"` // issues that are linked to it
}

// A Budget is a limit on spending per window, without the amount spent.
type Budget struct {
	Window string `json:"windowKind" yaml:"windowKind"`
	Cents  int64  `json:"amount" yaml:"amount"`
	Warn   int64  `json:"warnPercent" yaml:"warnPercent"`
	Stop   bool   `json:"hardStopEnabled" yaml:"hardStopEnabled"`
	Notify bool   `json:"notifyEnabled" yaml:"notifyEnabled"`
	Active bool   `json:"isActive" yaml:"isActive"`
}

// A Folder groups routines or skills. Its path is made of the slugs of its parent folders and
// its own.
type Folder struct {
	Kind     string  `json:"kind" yaml:"kind"`
	Path     string  `json:"path" yaml:"path"`
	Name     string  `json:"name" yaml:"name"`
	Color    *string `json:"color,omitempty" yaml:"color,omitempty"`
	Position int64   `json:"position" yaml:"position"`
}

// A UserSecret defines a secret that each user may have. No user's value is included.
type UserSecret struct {
	Key      string  `json:"key" yaml:"key"`
	Name     string  `json:"name" yaml:"name"`
	State    string  `json:"state" yaml:"state"` // active, disabled, archived
	Guidance *string `json:"usageGuidance,omitempty" yaml:"usageGuidance,omitempty"`
}

// A Source says which company an export was made from.
type Source struct {
	CompanyID   ledger.CompanyID `json:"companyId"`
	CompanyName string           `json:"companyName"`
}

// Includes are the parts that a package contains, or that a request asks for.
type Includes struct {
	Company  bool `json:"company"`
	Agents   bool `json:"agents"`
	Projects bool `json:"projects"`
	Issues   bool `json:"issues"`
	Skills   bool `json:"skills"`
}

// A Company is COMPANY.md and the company part of the sidecar.
type Company struct {
	Path                string  `json:"path"`
	Name                string  `json:"name"`
	Description         *string `json:"description"`
	LogoPath            *string `json:"logoPath"`
	RequireHireApproval bool    `json:"requireBoardApprovalForNewAgents"`
	FeedbackSharing     bool    `json:"feedbackDataSharingEnabled"`
	FeedbackConsentAt   *string `json:"feedbackDataSharingConsentAt"`
	FeedbackConsentBy   *string `json:"feedbackDataSharingConsentByUserId"`
	FeedbackTerms       *string `json:"feedbackDataSharingTermsVersion"`
	// Extensions of the format.
	BrandColor         *string `json:"brandColor"`
	NoStrategyGate     bool    `json:"ceoStartsWithoutStrategy,omitempty"`
	AttachmentMaxBytes int64   `json:"attachmentMaxBytes,omitempty"` // 0: the default
	Logo               *File   `json:"-"`                            // the file at LogoPath
}

// A Sidebar is the order of the board's sidebar, by slug.
type Sidebar struct {
	Agents   []string `json:"agents" yaml:"agents,omitempty"`
	Projects []string `json:"projects" yaml:"projects,omitempty"`
}

// A Label is the definition of a label; issues refer to it by name.
type Label struct {
	Name  string `json:"name" yaml:"name"`
	Color string `json:"color" yaml:"color"`
}

// A Blob is the index entry of a file under blobs/, which is named by its hash.
type Blob struct {
	SHA256      string `json:"sha256" yaml:"sha256"`
	ContentType string `json:"contentType" yaml:"contentType"`
	ByteSize    int64  `json:"byteSize" yaml:"byteSize"`
}

// An Asset is a file of the company that belongs to no issue, such as a picture in a text.
// Texts refer to it by ID, as /api/assets/<id>/content; an import gives it another ID and
// changes the texts. An extension of the format.
type Asset struct {
	ID          string  `json:"id" yaml:"id"`
	SHA256      string  `json:"sha256" yaml:"sha256"` // of a blob
	ContentType string  `json:"contentType" yaml:"contentType"`
	ByteSize    int64   `json:"byteSize" yaml:"byteSize"`
	Filename    *string `json:"filename" yaml:"filename,omitempty"`
	Namespace   string  `json:"namespace" yaml:"namespace"`
}

// An Agent is agents/<slug>/AGENTS.md and its part of the sidecar. It has no data that is
// bound to a machine or secret: commands, paths, environment.
type Agent struct {
	Slug               string            `json:"slug"`
	Name               string            `json:"name"`
	Path               string            `json:"path"`
	Skills             []string          `json:"skills"`
	Role               string            `json:"role"`
	Title              *string           `json:"title"`
	Icon               *string           `json:"icon"`
	Capabilities       *string           `json:"capabilities"`
	ReportsTo          *string           `json:"reportsToSlug"`
	ReportsToAgent     *string           `json:"reportsToExistingAgentId"`
	ReportsToAgentSlug *string           `json:"reportsToExistingAgentSlug"`
	AdapterType        string            `json:"adapterType"`
	AdapterConfig      map[string]any    `json:"adapterConfig"`
	RuntimeConfig      map[string]any    `json:"runtimeConfig"`
	Permissions        map[string]bool   `json:"permissions"`
	PermissionGrants   []PermissionGrant `json:"permissionGrants"`
	BudgetCents        int64             `json:"budgetMonthlyCents"`
	Metadata           map[string]any    `json:"metadata"`
	Instructions       string            `json:"-"`                        // the body of AGENTS.md
	OtherInstructions  map[string]string `json:"-"`                        // further files beside AGENTS.md, by path
	Budgets            []Budget          `json:"budgetPolicies,omitempty"` // besides the default monthly one
	Memories           []Memory          `json:"memories,omitempty"`
	ContextMode        string            `json:"contextMode,omitempty"` // fat; "" is the default, thin
	Terminated         bool              `json:"terminated,omitempty"`  // included only because its past work is
}

// A Memory is a text that an agent stores under a key.
type Memory struct {
	Key   string `json:"key" yaml:"key"`
	Value string `json:"value" yaml:"value"`
}

// A PermissionGrant is one permission of an agent.
type PermissionGrant struct {
	Key   string         `json:"permissionKey" yaml:"permissionKey"`
	Scope map[string]any `json:"scope" yaml:"scope,omitempty"`
}

// A Skill is a folder below skills/.
type Skill struct {
	Key           string         `json:"key"`
	Slug          string         `json:"slug"`
	Name          string         `json:"name"`
	Path          string         `json:"path"`
	Description   *string        `json:"description"`
	SourceType    string         `json:"sourceType"`
	SourceLocator *string        `json:"sourceLocator"`
	SourceRef     *string        `json:"sourceRef"`
	TrustLevel    *string        `json:"trustLevel"`
	Compatibility string         `json:"compatibility"`
	Metadata      map[string]any `json:"metadata"`
	Inventory     []SkillFile    `json:"fileInventory"`
	Comments      []Said         `json:"comments,omitempty"`
	Inputs        []SkillInput   `json:"testInputs,omitempty"`
	Tests         []SkillTest    `json:"testRuns,omitempty"` // the oldest first
	// by path below the skill's folder; SKILL.md with its front matter
	Files map[string]string `json:"-"`
}

// A SkillFile is one file of a skill.
type SkillFile struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
}

// A Project is projects/<slug>/PROJECT.md and its part of the sidecar.
type Project struct {
	Slug            string         `json:"slug"`
	Name            string         `json:"name"`
	Path            string         `json:"path"`
	Description     *string        `json:"description"`
	Owner           *string        `json:"ownerAgentSlug"`
	Lead            *string        `json:"leadAgentSlug"`
	TargetDate      *string        `json:"targetDate"`
	Color           *string        `json:"color"`
	Icon            *string        `json:"icon"`
	Status          string         `json:"status"`
	Archived        bool           `json:"archived,omitempty"`
	Env             map[string]any `json:"env"` // always nil: see EnvInput
	WorkspacePolicy map[string]any `json:"executionWorkspacePolicy"`
	Workspaces      []Workspace    `json:"workspaces"`
	Metadata        map[string]any `json:"metadata"`
	Goals           []string       `json:"goalSlugs"`
	Budgets         []Budget       `json:"budgetPolicies,omitempty"`
}

// A Workspace is the part of a project's workspace that is valid on other machines: a
// repository, never a local path.
type Workspace struct {
	Key            string         `json:"key" yaml:"-"`
	Name           string         `json:"name" yaml:"name"`
	SourceType     string         `json:"sourceType" yaml:"sourceType,omitempty"`
	RepoURL        *string        `json:"repoUrl" yaml:"repoUrl,omitempty"`
	RepoRef        *string        `json:"repoRef" yaml:"repoRef,omitempty"`
	DefaultRef     *string        `json:"defaultRef" yaml:"defaultRef,omitempty"`
	Visibility     *string        `json:"visibility" yaml:"visibility,omitempty"`
	SetupCommand   *string        `json:"setupCommand" yaml:"setupCommand,omitempty"`
	CleanupCommand *string        `json:"cleanupCommand" yaml:"cleanupCommand,omitempty"`
	Metadata       map[string]any `json:"metadata" yaml:"metadata,omitempty"`
	Primary        bool           `json:"isPrimary" yaml:"isPrimary,omitempty"`
}

// A Goal is in the sidecar only: an extension of the format.
type Goal struct {
	Slug        string  `json:"slug" yaml:"-"`
	Title       string  `json:"title" yaml:"title"`
	Description *string `json:"description" yaml:"description,omitempty"`
	Level       string  `json:"level" yaml:"level"`
	Status      string  `json:"status" yaml:"status"`
	Parent      *string `json:"parentSlug" yaml:"parent,omitempty"`
	Owner       *string `json:"ownerAgentSlug" yaml:"owner,omitempty"`
}

// A Team is teams/<slug>/TEAM.md. An import stores no row for it: its members without a
// manager report to the team's manager.
type Team struct {
	Slug    string   `json:"slug"`
	Name    string   `json:"name"`
	Path    string   `json:"path"`
	Manager *string  `json:"managerSlug"`
	Members []string `json:"memberSlugs"`
}

// An Issue is a TASK.md and its part of the sidecar. With Recurring it is a routine.
type Issue struct {
	Slug              string         `json:"slug"`
	Identifier        *string        `json:"identifier"`
	Title             string         `json:"title"`
	Path              string         `json:"path"`
	Project           *string        `json:"projectSlug"`
	WorkspaceKey      *string        `json:"projectWorkspaceKey"`
	Assignee          *string        `json:"assigneeAgentSlug"`
	Description       *string        `json:"description"`
	Recurring         bool           `json:"recurring"`
	Routine           *Routine       `json:"routine"`
	LegacyRecurrence  map[string]any `json:"legacyRecurrence"`
	Status            *string        `json:"status"`
	Priority          *string        `json:"priority"`
	LabelIDs          []string       `json:"labelIds"` // always empty: labels are referred to by name
	Labels            []string       `json:"labelNames"`
	BillingCode       *string        `json:"billingCode"`
	WorkspaceSettings map[string]any `json:"executionWorkspaceSettings"`
	AdapterOverrides  map[string]any `json:"assigneeAdapterOverrides"`
	Comments          []Comment      `json:"comments"`
	BlockedBy         []string       `json:"blockedBy"` // slugs
	Documents         []Document     `json:"documents"`
	WorkProducts      []WorkProduct  `json:"workProducts"`
	Monitor           map[string]any `json:"monitor"`
	Attachments       []Attachment   `json:"attachments"`
	Parent            *string        `json:"parentSlug"`
	Goal              *string        `json:"goalSlug"`
	CreatedAt         *string        `json:"createdAt"`
	UpdatedAt         *string        `json:"updatedAt"`
	StartedAt         *string        `json:"startedAt"`
	CompletedAt       *string        `json:"completedAt"`
	CancelledAt       *string        `json:"cancelledAt"`
	Metadata          map[string]any `json:"metadata"`
	ExecutionPolicy   map[string]any `json:"executionPolicy,omitempty"` // without its monitor; agents by slug
	Watchdog          *Watchdog      `json:"watchdog,omitempty"`
	WorkMode          *string        `json:"workMode,omitempty"`
	ReviewPolicy      *string        `json:"reviewPolicy,omitempty"`
	WorkspacePref     *string        `json:"executionWorkspacePreference,omitempty"`
	Folder            *string        `json:"folderPath,omitempty"` // of a routine
}

// A Watchdog is an agent that is woken when an issue stalls.
type Watchdog struct {
	Agent        string  `json:"agentSlug" yaml:"agent"`
	Instructions *string `json:"instructions" yaml:"instructions,omitempty"`
}

// A Routine is the recurring part of an issue.
type Routine struct {
	Concurrency *string    `json:"concurrencyPolicy" yaml:"concurrencyPolicy,omitempty"`
	CatchUp     *string    `json:"catchUpPolicy" yaml:"catchUpPolicy,omitempty"`
	Gate        *string    `json:"activityGatePolicy,omitempty" yaml:"activityGatePolicy,omitempty"`
	GateScope   *string    `json:"activityGateScope,omitempty" yaml:"activityGateScope,omitempty"`
	Variables   []Variable `json:"variables" yaml:"variables,omitempty"`
	Triggers    []Trigger  `json:"triggers" yaml:"triggers,omitempty"`
	Remarks     []Remark   `json:"remarks,omitempty" yaml:"remarks,omitempty"` // on the routine's text
}

// A Variable is a variable that a routine's text may use.
type Variable struct {
	Name     string   `json:"name" yaml:"name"`
	Label    *string  `json:"label" yaml:"label,omitempty"`
	Type     string   `json:"type" yaml:"type"`
	Default  any      `json:"defaultValue" yaml:"defaultValue,omitempty"`
	Required bool     `json:"required" yaml:"required"`
	Options  []string `json:"options" yaml:"options,omitempty"`
}

// A Trigger fires a routine. A webhook's secret is not included.
type Trigger struct {
	Kind         string  `json:"kind" yaml:"kind"`
	Label        *string `json:"label" yaml:"label,omitempty"`
	Enabled      bool    `json:"enabled" yaml:"-"`
	Disabled     *bool   `json:"-" yaml:"enabled,omitempty"` // false in the sidecar if it is off
	Cron         *string `json:"cronExpression" yaml:"cronExpression,omitempty"`
	Timezone     *string `json:"timezone" yaml:"timezone,omitempty"`
	SigningMode  *string `json:"signingMode" yaml:"signingMode,omitempty"`
	ReplayWindow *int64  `json:"replayWindowSec" yaml:"replayWindowSec,omitempty"`
}

// A Comment is a comment on an issue. IDs of users are not included.
type Comment struct {
	Body         string         `json:"body" yaml:"body"`
	AuthorType   string         `json:"authorType" yaml:"authorType"`
	AuthorAgent  *string        `json:"authorAgentSlug" yaml:"authorAgentSlug,omitempty"`
	AuthorUser   *string        `json:"authorUserId" yaml:"-"`
	Presentation map[string]any `json:"presentation" yaml:"presentation,omitempty"`
	Metadata     map[string]any `json:"metadata" yaml:"metadata,omitempty"`
	CreatedAt    *string        `json:"createdAt" yaml:"createdAt,omitempty"`
}

// A Document is a file below an issue's documents folder.
type Document struct {
	Key    string `json:"key" yaml:"key"`
	Title  string `json:"title" yaml:"title,omitempty"`
	Format string `json:"format" yaml:"format"`
	Path   string `json:"path" yaml:"path"`
	Body   string `json:"-" yaml:"-"`

	Remarks []Remark `json:"remarks,omitempty" yaml:"remarks,omitempty"`
}

// A Remark is a comment thread on a passage of a text: of a document, or of a routine.
type Remark struct {
	Status        string `json:"status" yaml:"status"` // open or resolved
	Exact         string `json:"exact" yaml:"exact"`
	Before        string `json:"prefix,omitempty" yaml:"prefix,omitempty"`
	After         string `json:"suffix,omitempty" yaml:"suffix,omitempty"`
	Start         int64  `json:"normalizedStart" yaml:"normalizedStart"`
	End           int64  `json:"normalizedEnd" yaml:"normalizedEnd"`
	MarkdownStart int64  `json:"markdownStart" yaml:"markdownStart"`
	MarkdownEnd   int64  `json:"markdownEnd" yaml:"markdownEnd"`
	Said          []Said `json:"comments" yaml:"comments"`
}

// A Said is one comment on a text or a skill.
type Said struct {
	Body        string  `json:"body" yaml:"body"`
	AuthorAgent *string `json:"authorAgentSlug" yaml:"authorAgentSlug,omitempty"`
	// index, from 0, of the earlier comment to which it replies
	Answers *int `json:"answersIndex,omitempty" yaml:"answersIndex,omitempty"`
}

// A SkillInput is a text with which agents test a skill.
type SkillInput struct {
	Name    string `json:"name" yaml:"name"`
	Content string `json:"content" yaml:"content"`
}

// A SkillTest is the result of a test of a skill. If the test's issue is in the package, its
// content is there.
type SkillTest struct {
	Input   *string `json:"inputName,omitempty" yaml:"input,omitempty"` // of the skill's
	Content string  `json:"content" yaml:"content"`
	Agent   *string `json:"agentSlug,omitempty" yaml:"agent,omitempty"`
	Task    *string `json:"issueSlug,omitempty" yaml:"task,omitempty"`
	Status  string  `json:"status" yaml:"status"`
	Output  *string `json:"output,omitempty" yaml:"output,omitempty"`
}

// A WorkProduct is what an issue produced.
type WorkProduct struct {
	Type         string         `json:"type" yaml:"type"`
	Provider     string         `json:"provider" yaml:"provider"`
	ExternalID   *string        `json:"externalId" yaml:"externalId,omitempty"`
	Title        string         `json:"title" yaml:"title"`
	URL          *string        `json:"url" yaml:"url,omitempty"`
	Status       string         `json:"status" yaml:"status"`
	ReviewState  string         `json:"reviewState" yaml:"reviewState,omitempty"`
	Primary      bool           `json:"isPrimary" yaml:"isPrimary,omitempty"`
	HealthStatus string         `json:"healthStatus" yaml:"healthStatus,omitempty"`
	Summary      *string        `json:"summary" yaml:"summary,omitempty"`
	Metadata     map[string]any `json:"metadata" yaml:"metadata,omitempty"`
}

// An Attachment is a file of an issue; its bytes are a blob of the package. Texts may refer
// to it by ID, as to an [Asset].
type Attachment struct {
	ID           string  `json:"id,omitempty" yaml:"id,omitempty"`
	SHA256       string  `json:"sha256" yaml:"sha256"`
	ContentType  string  `json:"contentType" yaml:"contentType"`
	Filename     *string `json:"originalFilename" yaml:"originalFilename,omitempty"`
	ByteSize     int64   `json:"byteSize" yaml:"byteSize"`
	CommentIndex *int    `json:"commentIndex" yaml:"commentIndex,omitempty"`
}

// An EnvInput declares an environment variable whose value the importer may set. Values are
// never included, so DefaultValue is empty in packages that we write.
type EnvInput struct {
	Key         string  `json:"key"`
	Description string  `json:"description"`
	Agent       *string `json:"agentSlug"`
	Project     *string `json:"projectSlug"`
	Routine     *string `json:"routineSlug,omitempty"`
	Kind        string  `json:"kind"`        // secret, plain
	Requirement string  `json:"requirement"` // optional, required
	Default     string  `json:"defaultValue"`
	Portability string  `json:"portability"` // portable, system_dependent
}

// input is an EnvInput in the sidecar's format.
type input struct {
	Kind        string `yaml:"kind"`
	Requirement string `yaml:"requirement"`
	Default     string `yaml:"default"`
	Description string `yaml:"description,omitempty"`
	Portability string `yaml:"portability,omitempty"`
}
