package skill

// Unexported names that the tests of this package use.

const (
	MaxSkillPath = maxSkillPath
	MaxToolText  = maxToolText
	ToolDomain   = toolDomain
)

var (
	IsToolName = isToolName
	ToolRows   = toolRows
)
