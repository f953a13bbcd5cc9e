package store

import "time"

const (
	// DefaultCacheBytes and SmallCacheBytes bound the block cache. It holds the
	// rows of some 100,000 issues: apply reads most rows it changes cold. The cache
	// grows with use, so an idle node stays far below it, and it shrinks while a
	// memtable is flushed, as Pebble takes the room of memtables from it.
	DefaultCacheBytes = 48 << 20
	SmallCacheBytes   = 8 << 20
	// wideTimes that is what it may take on top while much is written, see [Store.Widen].
	wideTimes = 3

	// DefaultMemTableBytes and SmallMemTableBytes bound one memtable; up to
	// memTables of them wait for a flush before writers are held up. They are
	// large because much of what is written is short-lived (outcomes, the log's
	// tail): what dies in the memtable is never compacted. A memtable takes
	// memory as it fills, so an idle node has little.
	DefaultMemTableBytes = 64 << 20
	SmallMemTableBytes   = 2 << 20
	memTables            = 3
	// earlyFlushBytes is what is written to a memtable before it is flushed while the
	// store is not wide: the rest of a large one is never touched then.
	earlyFlushBytes = 12 << 20

	// DefaultReserveBytes stays free on the disk: below it new work is refused
	// (see [Store.Writable]) while the raft log can still take what is under way.
	DefaultReserveBytes = 256 << 20
	SmallReserveBytes   = 64 << 20

	// ballastBytes is a file that is given up when a write meets a full disk
	// after all (something else filled it), so that the write can be repeated:
	// Pebble ends the process when its log or manifest can not be written.
	ballastBytes = 16 << 20

	// smallCommitBytes is what a synced commit may hold and still pass when the
	// reserve is used up: raft's vote and term, which raft must never fail to save.
	smallCommitBytes = 512

	// measureEvery and measureBytes say how old a reading of the free space may
	// be. At 1 GB/s measureBytes are written in 8 ms, far less than the reserve.
	measureEvery = time.Second
	measureBytes = 8 << 20
	// lookEvery is the same while the disk is full: everybody who is refused waits
	// for the look that finds room. A look takes microseconds.
	lookEvery = 50 * time.Millisecond

	// DefaultSlowAfter is how long one disk operation may take before
	// [Options.OnSlowDisk] hears of it.
	DefaultSlowAfter = 2 * time.Second

	// markSyncEvery is how old the mark on the disk may be while the log grows. It
	// counts only after a power loss; a sync with each commit would double their cost.
	markSyncEvery = time.Second

	// maxOptionsBytes bounds how much of a file of options is looked at; ours have 3 KB.
	maxOptionsBytes = 1 << 20

	// tableBytes is the size at which Replace begins another table.
	tableBytes = 32 << 20

	// rawLevels is how many of the upper levels are not compressed.
	rawLevels = 4

	// maxOpenFiles bounds the descriptors of tables; a mesh node needs few.
	maxOpenFiles = 500
	smallMaxOpen = 128
)

const _ = uint(SmallReserveBytes - 2*ballastBytes) // giving up the ballast must not look like recovery
