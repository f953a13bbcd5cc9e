package money

// What the tests of this room reach into.

const (
	BudgetResumed = budgetResumed
	MaxResumed    = maxResumed
	SliceShare    = sliceShare
)

var (
	ApprovalDrafts   = approvalDrafts
	ApprovalsByState = approvalsByState
	LinkedIssues     = linkedIssues
	OverrideOf       = overrideOf
	PutApproval      = putApproval
	PutBudget        = putBudget
	RunCostEvent     = runCostEvent
	ScopeKey         = scopeKey
	WorkToResume     = workToResume
)
