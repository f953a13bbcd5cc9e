package skill

// What the tests of this room reach into.

const (
	MaxSkillPath = maxSkillPath
	MaxToolText  = maxToolText
	ToolDomain   = toolDomain
)

var (
	IsToolName = isToolName
	ToolRows   = toolRows
)
