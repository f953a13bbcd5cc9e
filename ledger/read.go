package ledger

// A ReadMode says how fresh a read must be.
type ReadMode int

const (
	// ReadDefault reads this node's state, at or after Read.AtLeast.
	ReadDefault ReadMode = iota
	// ReadStrong reads a state that holds everything that was acknowledged
	// anywhere in the mesh before the read began.
	ReadStrong
	// ReadStale reads whatever this node has.
	ReadStale
)

// A Read says how to read: in which mode, and at or after which raft index
// (that of the caller's last receipt; 0 is any).
type Read struct {
	Mode    ReadMode
	AtLeast uint64
}
