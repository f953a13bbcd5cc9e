package api

// What the tests of this room reach into.

type Bounds = bounds
type Field = field
type Hasher = hasher
type KeyCache = keyCache
type Limits = limits
type Plan = plan
type Shape = shape
type Traced = traced
type Tracer = tracer
type Traces = traces

const (
	GuidPattern    = guidPattern
	HeaderRun      = headerRun
	InternalError  = internalError
	IsAny          = isAny
	IsBool         = isBool
	IsFloat        = isFloat
	IsInt          = isInt
	IsList         = isList
	IsMap          = isMap
	IsRaw          = isRaw
	IsString       = isString
	IsStruct       = isStruct
	IsTime         = isTime
	IsUint         = isUint
	MaxBearer      = maxBearer
	MaxBehind      = maxBehind
	MaxBuckets     = maxBuckets
	MaxHashMemory  = maxHashMemory
	MaxHashThreads = maxHashThreads
	MaxHashTime    = maxHashTime
	MaxHashWaiting = maxHashWaiting
	MaxHashing     = maxHashing
	MaxKeys        = maxKeys
	MaxLooks       = maxLooks
	PassList       = passList
	TraceQueue     = traceQueue
)

var (
	Decoy         = decoy
	NewHasher     = newHasher
	NotNow        = notNow
	ParseHash     = parseHash
	RequestDigest = requestDigest
)

// Len returns the number of connections.
func (c *conns) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}
