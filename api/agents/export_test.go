package agents

// What the tests of this room reach into.

type Hired = hired
type SkillIndex = skillIndex

const (
	Markdown     = markdown
	MaxToolInput = maxToolInput
)

var (
	Adapters = adapters
)
