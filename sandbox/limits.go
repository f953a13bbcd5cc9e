package sandbox

import "time"

// What a call gets when it asks for nothing else: the numbers of the contract.
const (
	DefaultFuel      = 1_000_000
	DefaultMemory    = 16 << 20
	DefaultTime      = 30 * time.Second
	DefaultModule    = 10 << 20
	DefaultOutput    = 64 << 10
	DefaultHostCalls = 10_000
)

// What a call may ask for at most.
const (
	// MaxMemory keeps a guest's addresses well inside 32 bits, and one guest well
	// inside a small machine.
	MaxMemory = 1 << 30
	// MaxFuel is decades of work; it keeps sums inside 63 bits.
	MaxFuel = 1 << 60
	// MaxOutput bounds what is kept of a stream.
	MaxOutput = 16 << 20
	// MaxTime bounds every call.
	MaxTime = 24 * time.Hour
	// maxStart bounds arguments and environment together; a guest reads them at
	// once, for the price of one call.
	maxStart = 256 << 10
	// maxDirs bounds the directories that a call may be given.
	maxDirs = 16
)

// Limits of a module, looked at before it is compiled. They are wide: large
// programs of Go, Rust and C stay far below. Together they bound what the
// compiler can be made to do.
const (
	maxTypes     = 10_000
	maxParams    = 256    // of a function type, and as many results
	maxImports   = 256    // WASI has 46 functions
	maxFunctions = 50_000 // a Go program with net/http has 12,000
	maxGlobals   = 10_000
	maxExports   = 10_000
	maxSegments  = 50_000  // of data and of elements, each
	maxTables    = 4       // tables of one module
	maxElements  = 1 << 17 // of all tables together at the start, and of each one when grown
	maxBody      = 1 << 20 // bytes of one function; compile time grows faster than this
	maxLocals    = 10_000  // of one function, parameters included
	maxNesting   = 10_000  // of blocks; Go nests one for every call in a function
	maxTargets   = 10_000  // of one br_table
	maxAllTarget = 1 << 17 // of all br_tables of a function together
	maxName      = 1 << 10 // bytes of the name of an import or an export
)

// Metering.
const (
	// slice is the fuel that is handed out at once: under a millisecond of work,
	// so neither deadlines nor Go's garbage collector, which can not stop compiled
	// code, wait longer.
	slice = 250_000
	// maxAhead is what a point charges at most for instructions that it may not
	// reach, maxBegin where a function begins, which is less often than a loop turns
	// (for what a function of Go then does again, its turns charge exactly that),
	// and mergeRun the longest run that is charged ahead. Smaller is more exact and
	// slower.
	maxAhead = 128
	maxBegin = 4 * maxAhead
	mergeRun = 48
	// perTurn says, as a shift, which part of the cost of a loop's turn the beginning
	// of its function may add to it, so that a call charges once: Go's functions are
	// such loops, in which nearly all is charged ahead.
	perTurn = 3
	// costHost is what calling the host costs, costGrow growing memory or a table,
	// costEach each element of a list that the host is given,
	// costRange what an instruction on a range costs before its length counts.
	costHost  = 64
	costGrow  = 512
	costEach  = 8
	costRange = 8
	// perRange is how many bytes or elements of a range cost a unit, as a shift.
	perRange = 6
	// maxStack is the stack that recursive functions may use, in estimated bytes; it
	// is looked at with the fuel. The runtime's own ceiling is 50 MB, and it doubles.
	// perStack is how many bytes of it cost a unit, as a shift: within one slice it
	// grows by no more than stackSlice.
	maxStack   = 8 << 20
	perStack   = 6
	stackSlice = slice << perStack
	// maxShown bounds the mutable globals of a module whose state is kept; compilers
	// use fewer than ten.
	maxShown = 64
	// frameBytes is what a frame takes without locals.
	frameBytes = 64
)

const _ = uint(48<<20 - maxStack - stackSlice) // the runtime's own ceiling is out of reach

// Compilation.
const (
	// inProcess is the size of a metered module up to which it is compiled in this
	// process: it takes about as long as starting another.
	inProcess = 64 << 10
	// DefaultCompileTime bounds what a compilation takes of a processor, compileMemory
	// what a child may allocate. A child is nice: on a busy machine it gets a tenth of
	// a processor or less, so that it may last compileBusy times as long.
	DefaultCompileTime = 60 * time.Second
	compileMemory      = 1 << 30
	compileBusy        = 10
	// compilesAtOnce bounds compilations that run side by side.
	compilesAtOnce = 2
	// maxLoaded bounds modules that stay compiled in memory while nobody uses them.
	maxLoaded = 32
)

// Host calls.
const (
	maxMethod  = 128     // bytes of a method's name
	maxRequest = 1 << 20 // bytes of a request
	maxAnswer  = 4 << 20 // bytes of an answer
)
