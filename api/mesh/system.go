package mesh

import (
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/people"
)

// SystemRoutes answer the requests of clients about the announcement and plugins; there
// are none.
func SystemRoutes() []api.Route {
	rows := []api.Route{
		{Method: "GET", Path: "/api/announcements/current", Tag: "system",
			Summary: "Read the announcement; there is none, no telemetry leaves the mesh", Who: api.Board, Out: api.Null{},
			Handle: func(*api.Request) (api.Response, error) { return api.OK(api.Null{}), nil }},
	}
	for _, path := range []string{"/api/plugins", "/api/plugins/ui-contributions", "/api/plugins/examples",
		"/api/plugins/tools"} {
		rows = append(rows, api.Route{Method: "GET", Path: path, Tag: "system", Summary: "List what there is; nothing yet",
			NobodyAsAgent: path == "/api/plugins", Who: api.Board, Out: []struct{}{},
			Handle: func(*api.Request) (api.Response, error) { return api.OK([]struct{}{}), nil }})
	}
	return rows
}

type allSettings struct {
	General      general      `json:"general"`
	Experimental experimental `json:"experimental"`
	Environment  *string      `json:"defaultEnvironmentId"`
}

type general struct {
	CensorUsername    bool      `json:"censorUsernameInLogs"`
	KeyboardShortcuts bool      `json:"keyboardShortcuts"`
	DataSharing       string    `json:"feedbackDataSharingPreference"`
	BackupRetention   retention `json:"backupRetention"`
	// RunLogs says how long the mesh keeps the logs of runs, and how many bytes.
	RunLogs company.LogRetention `json:"runLogRetention"`
	// RunEvents says how long the mesh keeps the events of runs.
	RunEvents company.EventRetention `json:"runEventRetention"`
	// SignUps says who may sign up, where users can: open, invited or closed.
	SignUps string `json:"signUps"`
}

type retention struct {
	Days   int `json:"dailyDays"`
	Weeks  int `json:"weeklyWeeks"`
	Months int `json:"monthlyMonths"`
}

// generalSettings are the defaults: nothing is shared with anybody.
var generalSettings = general{DataSharing: "not_allowed", BackupRetention: retention{7, 4, 1},
	RunLogs:   company.LogRetention{Days: company.DefaultLogDays, Bytes: company.DefaultLogBytes},
	RunEvents: company.EventRetention{Days: company.DefaultEventDays}, SignUps: people.SignUpsOpen}

// flags are the optional parts of the board's pages: whether each is shown, as bool, or as *bool a
// change of it. The parts that are false have no routes here.
type flags[T bool | *bool] struct {
	Environments                   T `json:"enableEnvironments" nullable:"false"`
	NativeRunner                   T `json:"enableNativeRunner" nullable:"false"`
	ManagedSandboxOnly             T `json:"enableManagedSandboxOnly" nullable:"false"`
	IsolatedWorkspaces             T `json:"enableIsolatedWorkspaces" nullable:"false"`
	IsolatedWorkspacesByDefault    T `json:"enableIsolatedWorkspacesByDefault" nullable:"false"`
	StreamlinedLeftNavigation      T `json:"enableStreamlinedLeftNavigation" nullable:"false"`
	StreamlinedUI                  T `json:"enableStreamlinedUi" nullable:"false"`
	Apps                           T `json:"enableApps" nullable:"false"`
	ChatConnectors                 T `json:"enableChatConnectors" nullable:"false"`
	Pipelines                      T `json:"enablePipelines" nullable:"false"`
	Cases                          T `json:"enableCases" nullable:"false"`
	AgentChat                      T `json:"enableAgentChat" nullable:"false"`
	ConferenceRoomChat             T `json:"enableConferenceRoomChat" nullable:"false"`
	ClassicTaskInterface           T `json:"enableClassicTaskInterface" nullable:"false"`
	IssuePlanDecompositions        T `json:"enableIssuePlanDecompositions" nullable:"false"`
	ExperimentalFileViewer         T `json:"enableExperimentalFileViewer" nullable:"false"`
	ExternalObjects                T `json:"enableExternalObjects" nullable:"false"`
	SmokeLab                       T `json:"enableSmokeLab" nullable:"false"`
	BuiltInAgents                  T `json:"enableBuiltInAgents" nullable:"false"`
	BetaSkills                     T `json:"enableBetaSkills" nullable:"false"`
	Summaries                      T `json:"enableSummaries" nullable:"false"`
	StatusCards                    T `json:"enableStatusCards" nullable:"false"`
	Decisions                      T `json:"enableDecisions" nullable:"false"`
	GoalsSidebarLink               T `json:"enableGoalsSidebarLink" nullable:"false"`
	ServerInfoDebugView            T `json:"enableServerInfoDebugView" nullable:"false"`
	PaperclipDeveloperMode         T `json:"enablePaperclipDeveloperMode" nullable:"false"`
	SimplifiedEnglishInteractions  T `json:"enableSimplifiedEnglishInteractions" nullable:"false"`
	FirstTaskPlanProposal          T `json:"enableFirstTaskPlanProposal" nullable:"false"`
	AutoRestartDevServerWhenIdle   T `json:"autoRestartDevServerWhenIdle" nullable:"false"`
	WorkspaceBranchReconcile       T `json:"enableWorkspaceBranchReconcileForward" nullable:"false"`
	WorkspaceDirtyQuarantineRepair T `json:"enableWorkspaceDirtyQuarantineRepair" nullable:"false"`
	OwnerInstanceAdmin             T `json:"enableOwnerInstanceAdmin" nullable:"false"`
	SandboxDuplexBridge            T `json:"enableSandboxDuplexBridge" nullable:"false"`
	RunnerPreviewIngress           T `json:"enableRunnerPreviewIngress" nullable:"false"`
	WorktreeRunExecution           T `json:"enableWorktreeRunExecution" nullable:"false"`
}

// experimental says which optional parts of the board's pages are shown.
type experimental struct {
	flags[bool]
	WorktreeActivatedAt        *core.Time `json:"worktreeRunExecutionActivatedAt"`
	WorktreeActivationInstance *string    `json:"worktreeRunExecutionActivationInstanceId"`
}

var experimentalSettings = experimental{flags: flags[bool]{StreamlinedLeftNavigation: true, StreamlinedUI: true}}
