package company

import "github.com/selvage-mesh/selvage/ledger"

// registrars add the handlers of each noun, in the order of the files.
var registrars = []func(ledger.Mux){
	registerCompanies,
	registerAgents,
	registerGoals,
	registerProjects,
	registerExecutionWorkspaces,
	registerOperations,
	registerServices,
	registerKeys,
	registerActivity,
	registerIssues,
	registerCheckout, registerMonitors, registerWatchdogs, registerCommentQueues,
	registerComments,
	registerParts,
	registerDocuments,
	registerAnnotations, registerDecompositions, registerEnvironments, registerSkillReviews,
	registerThreads,
	registerInteractions,
	registerProducts,
	registerLabels,
	registerTools,
	registerReadState, registerIndexing,
	registerCosts,
	registerBudgets,
	registerReservations,
	registerFinance,
	registerWakeup,
	registerRoutines,
	registerFolders,
	registerRun,
	registerRunLogs, registerRunEvents,
	registerHalt,
	registerDuty,
	registerRecovery,
	registerDismissals,
	registerVotes,
	registerMemberships,
	registerTreeHolds,
	registerSession,
	registerToolCalls,
	registerImport, registerImportJobs,
	registerSkills,
	registerSkillVersions,
	registerMemories,
	registerApprovals,
	registerHires,
	registerAssets,
	registerSecrets,
	registerUserSecrets,
	registerSettings,
	registerInstructions,
	registerMembers,
	registerInvites,
	registerBoardKeys,
	registerModels,
	registerUsers,
	registerAccess,
}

// Handlers returns the handlers of all company commands.
func Handlers() ledger.Mux {
	m := ledger.Mux{}
	for _, register := range registrars {
		register(m)
	}
	return m
}
