package routine

// Unexported names that the tests of this package use.

const (
	KeptRoutineRevisions = keptRoutineRevisions
	KeptRoutineRuns      = keptRoutineRuns
)

var (
	CheckVariables = checkVariables
	RoutineIssues  = routineIssues
)
