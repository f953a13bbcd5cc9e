package cause

const (
	// DefaultDepth and DefaultNodes bound a walk that says nothing; MaxDepth and MaxNodes
	// bound every walk. A node takes a few reads, so the largest walk stays below 50 ms.
	DefaultDepth = 12
	DefaultNodes = 100
	MaxDepth     = 64
	MaxNodes     = 1_000
	// MaxEdges bounds the edges of one node in one direction, so that one busy node does not
	// take the whole walk.
	MaxEdges = 64
	// maxReads bounds the rows and entries that one node reads to find its edges. What is
	// beyond counts as cut off.
	maxReads = 500
	// maxSearch bounds the nodes that the search for a path visits, for each of its attempts.
	maxSearch = 1_000
	// maxID bounds an ID in bytes: two UUIDs and a height.
	maxID = 128
	// maxLabel bounds the text that names a node, in bytes.
	maxLabel = 120
)
