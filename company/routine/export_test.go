package routine

// What the tests of this room reach into.

const (
	KeptRoutineRevisions = keptRoutineRevisions
	KeptRoutineRuns      = keptRoutineRuns
)

var (
	CheckVariables = checkVariables
	RoutineIssues  = routineIssues
)
