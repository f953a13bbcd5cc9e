package place

// What the tests of this room reach into.

var (
	BranchName     = branchName
	LoseOperations = loseOperations
	LoseServices   = loseServices
)
