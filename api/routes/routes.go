// Package routes is all routes in one table.
package routes

import (
	"sync"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/a2a"
	"github.com/selvage-mesh/selvage/api/agents"
	"github.com/selvage-mesh/selvage/api/apps"
	"github.com/selvage-mesh/selvage/api/govern"
	"github.com/selvage-mesh/selvage/api/ipc"
	"github.com/selvage-mesh/selvage/api/live"
	"github.com/selvage-mesh/selvage/api/mcp"
	"github.com/selvage-mesh/selvage/api/memory"
	"github.com/selvage-mesh/selvage/api/mesh"
	"github.com/selvage-mesh/selvage/api/money"
	"github.com/selvage-mesh/selvage/api/people"
	"github.com/selvage-mesh/selvage/api/process"
	"github.com/selvage-mesh/selvage/api/routine"
	"github.com/selvage-mesh/selvage/api/run"
	"github.com/selvage-mesh/selvage/api/secret"
	"github.com/selvage-mesh/selvage/api/transfer"
	"github.com/selvage-mesh/selvage/api/weftos"
	"github.com/selvage-mesh/selvage/api/why"
	"github.com/selvage-mesh/selvage/api/work"
)

// Serves collects the rows of all nouns, and what is none of theirs.
func Serves() api.Table {
	var all []api.Route
	for _, rows := range [][]api.Route{
		mesh.HealthRoutes(),
		mesh.SystemRoutes(),
		agents.AdapterRoutes(),
		mesh.MeshRoutes(), mesh.AdmissionRoutes(), mesh.BackupRoutes(), mesh.OperatorRoutes(),
		live.EventRoutes(),
		ipc.TopicRoutes(),
		ipc.MessageRoutes(),
		ipc.LinkRoutes(),
		run.RunRoutes(),
		work.RecoveryRoutes(),
		work.DismissalRoutes(),
		work.TimelineRoutes(),
		api.PageRoutes(),
		work.VoteRoutes(),
		work.FeedbackRoutes(),
		work.TreeHoldRoutes(),
		work.IssueWatchRoutes(), run.DiagnosticRoutes(),
		work.ExecutionRoutes(),
		work.CompanyRoutes(),
		agents.AgentRoutes(),
		agents.KeyRoutes(),
		work.GoalRoutes(),
		work.ProjectRoutes(),
		work.WorkspaceRoutes(), work.RuntimeServiceRoutes(),
		agents.EnvironmentRoutes(),
		agents.OrgRoutes(),
		live.DashboardRoutes(),
		live.ActivityRoutes(), mesh.SchedulerRoutes(),
		work.IssueRoutes(), work.ExtractRoutes(),
		work.CheckoutRoutes(),
		work.CommentRoutes(),
		work.DocumentRoutes(),
		work.AnnotationRoutes(), work.DecompositionRoutes(), run.RunnerGoalRoutes(),
		work.InteractionRoutes(),
		work.ProductRoutes(),
		work.LabelRoutes(),
		money.CostRoutes(),
		money.BudgetRoutes(), money.ReservationRoutes(), mesh.SchedulingRoutes(),
		money.FinanceRoutes(),
		money.ApprovalRoutes(),
		agents.HireRoutes(), agents.AgentApproveRoutes(),
		work.AttentionRoutes(),
		transfer.ExportRoutes(),
		transfer.ImportRoutes(), transfer.TransferRoutes(),
		work.AssetRoutes(),
		routine.RoutineRoutes(),
		work.RoutineAnnotationRoutes(),
		work.FolderRoutes(),
		agents.TextRoutes(),
		agents.SkillRoutes(),
		agents.SkillVersionRoutes(),
		agents.SkillSourceRoutes(), agents.SkillReviewRoutes(),
		secret.SecretRoutes(),
		secret.UserSecretRoutes(),
		mesh.SettingsRoutes(), mesh.OfferRoutes(),
		agents.InstructionRoutes(),
		people.BoardKeyRoutes(),
		people.UserRoutes(),
		api.AccessRoutes(),
		people.MemberRoutes(),
		people.InviteRoutes(), people.InviteHelpRoutes(),
		people.ProfileRoutes(), transfer.TeamRoutes(), api.AbsentRoutes(),
		money.ModelRoutes(),
		run.ExecuteRoutes(), agents.ToolRoutes(), agents.MemoryRoutes(), memory.Routes(), govern.Routes(), why.Routes(),
		weftos.CapabilityRoutes(), weftos.CompanyRoutes(), weftos.TreeRoutes(),
		process.Routes(), process.CronRoutes(), process.ServiceRoutes(),
		a2a.Routes(),
		apps.Routes(),
	} {
		all = append(all, rows...)
	}
	handlers := []api.Handler{{Pattern: "/llm/", Serve: money.ServeModelCall},
		{Pattern: "/cli-auth/{id}", Serve: people.ServeApproval}}
	handlers = append(handlers, a2a.Handlers()...)
	return api.Table{Routes: all, Handlers: handlers, Describe: Describe}
}

// Tools returns the MCP tools that a node of this version offers, for clients
// that run without one.
func Tools(version string) ([]*mcp.Tool, error) {
	doc, err := Describe(version)
	if err != nil {
		return nil, err
	}
	return api.ToolsOf(doc)
}

// Describe returns the OpenAPI document (JSON) of a node of this version, likewise. The caller
// must not change it.
func Describe(version string) ([]byte, error) {
	write := sync.OnceValues(func() ([]byte, error) { return api.Describe(version, Serves().Routes) })
	one, _ := documents.LoadOrStore(version, write)
	return one.(func() ([]byte, error))()
}

// documents has what Describe returns, by version: writing one takes a third of a second, and all
// servers of a program have the same.
var documents sync.Map
