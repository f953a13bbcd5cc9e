package blob

import "time"

const (
	// MaxBlob bounds one blob, in bytes: the most that a company may allow for an
	// attachment.
	MaxBlob = 1 << 30
	// DefaultMaxBytes bounds all blobs of a node.
	DefaultMaxBytes = 64 << 30
	// DefaultReserve is what stays free on the disk for the log, which must never
	// stop for an attachment, in bytes.
	DefaultReserve = 512 << 20
	// spaceStep is how often, in bytes written, the disk is asked what is free.
	spaceStep = 4 << 20

	// Desired copies of a blob, when there are as many nodes: any one may be lost
	// while another is being repaired.
	desired = 3
	// chunk is what is read and written at once.
	chunk = 64 << 10
	// chunkBytes is what one sum is of, and what a reader of a blob holds in memory:
	// large enough that the sums are little, small enough that a range of a
	// few bytes costs little.
	chunkBytes = 256 << 10
	// wholeBytes bounds a damaged blob that a reader waits for until it is fetched as a
	// whole; a larger one is read through the peer that has it meanwhile.
	wholeBytes = 8 << 20
	// stall is how long one chunk may take between nodes.
	stall = 10 * time.Second
	// slowestDisk is how many bytes of a blob a peer hashes in a second at least, when
	// it is asked to check it.
	slowestDisk = 4 << 20
	// mendTimeout bounds how long a reader waits until peers gave what is damaged here.
	mendTimeout = 30 * time.Second
	// patience is how long an upload waits for the last copies once a majority of
	// them is synced.
	patience = 2 * time.Second
	// maxServing bounds the streams that peers have open here at once, for blobs.
	maxServing = 64
	// maxTries bounds the peers that are asked for one blob.
	maxTries = 16

	// DefaultEvery is how often a node looks after its blobs.
	DefaultEvery = 15 * time.Second
	// DefaultGone is how long a node has to be away before others take over its
	// copies: longer than a restart.
	DefaultGone = 2 * time.Minute
	// DefaultGrace is how long a blob that nothing refers to is kept: an upload
	// is there before the command that refers to it.
	DefaultGrace = time.Hour
	// maxRepairs bounds the blobs that one look fetches, or gives up.
	maxRepairs = 64
	// lookedFor bounds the files that one look asks after, so that those that somebody
	// deleted are missed before they are read.
	lookedFor = 256
)
