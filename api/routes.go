package api

import (
	"github.com/selvage-mesh/selvage/api/mcp"
)

// Serves collects the rows of all nouns, and what is none of theirs.
func Serves() Table {
	var all []Route
	for _, rows := range [][]Route{
		healthRoutes(),
		systemRoutes(),
		adapterRoutes(),
		meshRoutes(), admissionRoutes(), backupRoutes(), operatorRoutes(),
		eventRoutes(),
		runRoutes(),
		recoveryRoutes(),
		dismissalRoutes(),
		timelineRoutes(),
		pageRoutes(),
		voteRoutes(),
		feedbackRoutes(),
		treeHoldRoutes(),
		issueWatchRoutes(), diagnosticRoutes(),
		executionRoutes(),
		companyRoutes(),
		agentRoutes(),
		keyRoutes(),
		goalRoutes(),
		projectRoutes(),
		workspaceRoutes(), runtimeServiceRoutes(),
		environmentRoutes(),
		orgRoutes(),
		dashboardRoutes(),
		activityRoutes(), schedulerRoutes(),
		issueRoutes(), extractRoutes(),
		checkoutRoutes(),
		commentRoutes(),
		documentRoutes(),
		annotationRoutes(), decompositionRoutes(), runnerGoalRoutes(),
		interactionRoutes(),
		productRoutes(),
		labelRoutes(),
		costRoutes(),
		budgetRoutes(), reservationRoutes(), schedulingRoutes(),
		financeRoutes(),
		approvalRoutes(),
		hireRoutes(), agentApproveRoutes(),
		attentionRoutes(),
		exportRoutes(),
		importRoutes(), transferRoutes(),
		assetRoutes(),
		routineRoutes(),
		routineAnnotationRoutes(),
		folderRoutes(),
		textRoutes(),
		skillRoutes(),
		skillVersionRoutes(),
		skillSourceRoutes(), skillReviewRoutes(),
		secretRoutes(),
		userSecretRoutes(),
		settingsRoutes(),
		instructionRoutes(),
		boardKeyRoutes(),
		userRoutes(),
		accessRoutes(),
		memberRoutes(),
		inviteRoutes(), inviteHelpRoutes(),
		profileRoutes(), teamRoutes(), absentRoutes(),
		modelRoutes(),
		executeRoutes(), toolRoutes(), memoryRoutes(),
	} {
		all = append(all, rows...)
	}
	return Table{Routes: all, Handlers: []Handler{{"/llm/", serveModelCall}, {"/cli-auth/{id}", serveApproval}}}
}

// Tools returns the MCP tools that a node of this version offers, for clients
// that run without one.
func Tools(version string) ([]*mcp.Tool, error) {
	doc, err := Describe(version)
	if err != nil {
		return nil, err
	}
	return toolsOf(doc)
}

// Describe returns the OpenAPI document (JSON) of a node of this version, likewise.
func Describe(version string) ([]byte, error) {
	return describe(version, Serves().Routes)
}
