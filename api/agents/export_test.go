package agents

// Internals that the tests of this package use.

type Hired = hired
type SkillIndex = skillIndex

const (
	Markdown     = markdown
	MaxToolInput = maxToolInput
)

var (
	Adapters = adapters
)
