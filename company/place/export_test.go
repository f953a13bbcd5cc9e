package place

// Unexported names that the tests of this package use.

var (
	BranchName     = branchName
	LoseOperations = loseOperations
	LoseServices   = loseServices
)
