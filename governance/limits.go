package governance

// Bounds of what the gate takes. They also bound what the evaluation of a rule can cost: [Compile] calculates the worst
// cost of a predicate from them.
const (
	// MaxName bounds the names in an act (action, agent, role, company, clearance), in bytes.
	MaxName = 256
	// MaxText bounds free text in an act (path, command, reason), in bytes: a command line of a shell is seldom
	// longer than 4 KiB.
	MaxText = 4 << 10
	// MaxNames bounds each list of names in an act. The longest chain of managers has 64 of them.
	MaxNames = 64
	// MaxAmount bounds the money of an act, in cents: far above every budget, and sums of it do not overflow.
	MaxAmount = 1_000_000_000_000

	// MaxRules bounds a constitution.
	MaxRules = 10_000
	// MaxPredicate bounds the text of a predicate, in bytes.
	MaxPredicate = 2 << 10
	// MaxReason bounds the other texts of a rule, in bytes.
	MaxReason = 500
	// MaxOn bounds the actions and classes that a rule is about.
	MaxOn = 100

	// MaxWorstCost bounds what a predicate may cost in the worst case, in CEL's units: more is refused when the
	// constitution is compiled. A comparison costs about 3, a look through a full list of names about 2,000.
	MaxWorstCost = 1_000_000
	// MaxCost bounds what one evaluation may cost, in the same units; more denies the act. It is about a millisecond.
	MaxCost = 20_000
	// uncountedCost is the worst cost up to which an evaluation is not counted: counting takes longer than such
	// predicates themselves.
	uncountedCost = 5_000

	// maxDepth and maxNodes bound the syntax tree of a predicate.
	maxDepth, maxNodes = 32, 512
	// maxCached bounds the compiled predicates that a [Compiler] keeps.
	maxCached = 2 * MaxRules
)

const _ = uint(MaxCost - uncountedCost) // what is not counted must not be able to exceed the limit
const _ = uint(MaxWorstCost - MaxCost)  // else no evaluation could exceed it
const _ = uint(maxCached - MaxRules)    // one constitution fits
