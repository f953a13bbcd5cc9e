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
		{Method: "GET", Path: "/api/announcements/current", Tag: "system", Summary: "Read the announcement; there is none, no telemetry leaves the mesh", Who: api.Board,
			Handle: func(*api.Request) (api.Response, error) { return api.OK(nil), nil }},
	}
	for _, path := range []string{"/api/plugins", "/api/plugins/ui-contributions", "/api/plugins/examples", "/api/plugins/tools"} {
		rows = append(rows, api.Route{Method: "GET", Path: path, Tag: "system", Summary: "List what there is; nothing yet", NobodyAsAgent: path == "/api/plugins", Who: api.Board, Out: []struct{}{},
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
	RunLogs: company.LogRetention{Days: company.DefaultLogDays, Bytes: company.DefaultLogBytes}, RunEvents: company.EventRetention{Days: company.DefaultEventDays}, SignUps: people.SignUpsOpen}

// experimental says which optional parts of the board's pages are shown. The parts that
// are false have no routes here.
type experimental struct {
	Environments                   bool       `json:"enableEnvironments"`
	NativeRunner                   bool       `json:"enableNativeRunner"`
	ManagedSandboxOnly             bool       `json:"enableManagedSandboxOnly"`
	IsolatedWorkspaces             bool       `json:"enableIsolatedWorkspaces"`
	IsolatedWorkspacesByDefault    bool       `json:"enableIsolatedWorkspacesByDefault"`
	StreamlinedLeftNavigation      bool       `json:"enableStreamlinedLeftNavigation"`
	StreamlinedUI                  bool       `json:"enableStreamlinedUi"`
	Apps                           bool       `json:"enableApps"`
	ChatConnectors                 bool       `json:"enableChatConnectors"`
	Pipelines                      bool       `json:"enablePipelines"`
	Cases                          bool       `json:"enableCases"`
	AgentChat                      bool       `json:"enableAgentChat"`
	ConferenceRoomChat             bool       `json:"enableConferenceRoomChat"`
	ClassicTaskInterface           bool       `json:"enableClassicTaskInterface"`
	IssuePlanDecompositions        bool       `json:"enableIssuePlanDecompositions"`
	ExperimentalFileViewer         bool       `json:"enableExperimentalFileViewer"`
	ExternalObjects                bool       `json:"enableExternalObjects"`
	SmokeLab                       bool       `json:"enableSmokeLab"`
	BuiltInAgents                  bool       `json:"enableBuiltInAgents"`
	BetaSkills                     bool       `json:"enableBetaSkills"`
	Summaries                      bool       `json:"enableSummaries"`
	StatusCards                    bool       `json:"enableStatusCards"`
	Decisions                      bool       `json:"enableDecisions"`
	GoalsSidebarLink               bool       `json:"enableGoalsSidebarLink"`
	ServerInfoDebugView            bool       `json:"enableServerInfoDebugView"`
	PaperclipDeveloperMode         bool       `json:"enablePaperclipDeveloperMode"`
	SimplifiedEnglishInteractions  bool       `json:"enableSimplifiedEnglishInteractions"`
	FirstTaskPlanProposal          bool       `json:"enableFirstTaskPlanProposal"`
	AutoRestartDevServerWhenIdle   bool       `json:"autoRestartDevServerWhenIdle"`
	WorkspaceBranchReconcile       bool       `json:"enableWorkspaceBranchReconcileForward"`
	WorkspaceDirtyQuarantineRepair bool       `json:"enableWorkspaceDirtyQuarantineRepair"`
	OwnerInstanceAdmin             bool       `json:"enableOwnerInstanceAdmin"`
	SandboxDuplexBridge            bool       `json:"enableSandboxDuplexBridge"`
	RunnerPreviewIngress           bool       `json:"enableRunnerPreviewIngress"`
	WorktreeRunExecution           bool       `json:"enableWorktreeRunExecution"`
	WorktreeActivatedAt            *core.Time `json:"worktreeRunExecutionActivatedAt"`
	WorktreeActivationInstance     *string    `json:"worktreeRunExecutionActivationInstanceId"`
}

var experimentalSettings = experimental{StreamlinedLeftNavigation: true, StreamlinedUI: true}
