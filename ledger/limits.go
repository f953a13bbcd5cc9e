package ledger

import "time"

const (
	// maxNameBytes bounds kinds; they are dotted words such as "issue.checkout".
	maxNameBytes = 64
	// MaxIdempotencyKey bounds an Idempotency-Key and the other free text of a
	// command header; clients send UUIDs or short digests.
	MaxIdempotencyKey = 255
	// MaxIdempotencyRows bounds the remembered keys of one company; the oldest
	// are forgotten first. At 10 keyed requests a second a day has 864,000; a
	// row takes about 300 bytes, so this is 30 MB.
	MaxIdempotencyRows = 100_000
	// idempotencySweep bounds how many forgotten rows one new row takes away, so
	// that apply stays short while the table shrinks faster than it grows.
	idempotencySweep = 4

	// maxMillis bounds times so that a year always has four digits.
	maxMillis = 253_402_300_799_999

	// MaxStep is how far beyond the elapsed time a leader may advance the
	// mesh's clock with one stamp.
	MaxStep = 500 * time.Millisecond

	// MaxChanges and MaxChangeBytes bound the summary of one entry.
	MaxChanges     = 256
	MaxChangeBytes = 16 << 10
	// maxReasonBytes bounds the reason of a denial in an entry.
	maxReasonBytes = 512

	// DigestEvery is the distance, in raft indexes, of the digests that voters
	// compare; digestsKept of them are remembered, so that a follower that is
	// behind still meets one.
	DigestEvery = 256
	digestsKept = 64

	// feedPage bounds what the feed reads at once while it keeps Restore out.
	feedPage = 256

	// DefaultRowCacheBytes bounds the rows that apply keeps in memory.
	DefaultRowCacheBytes = 16 << 20
	// DefaultDecodedBytes bounds the rows that apply keeps decoded as well, by about
	// what they take.
	DefaultDecodedBytes = 16 << 20
	// DefaultReadCacheBytes bounds the rows that views share. Lists and repeated
	// reads of the same company, agents, goals and runs are what it is for. What they
	// decode to is counted.
	DefaultReadCacheBytes = 16 << 20
	// wideTimes is how much more these three hold while much is written.
	wideTimes = 3
	// readShards spreads the locks of that cache, readSlots the memory of when keys
	// were written: 64 × 256 slots, so a write hides few rows but its own.
	readShards = 64
	readSlots  = 256
	// readIDs bounds a scan that is kept; longer ones are for lists.
	readIDs = 128
	// risingTables bounds the tables whose last key is known.
	risingTables = 4096

	// recentEntries is how many entries stay in memory for the feed: what is
	// entered in the second or so that its slowest regular reader lags behind.
	// recentBytes bounds what they take, as an entry may list 16 KiB of changes. Up
	// to twice as much is kept between two times that old ones are dropped.
	recentEntries = 2048
	recentBytes   = 2 << 20
	// entryOverhead and changeOverhead are what an entry and each of its changes take
	// beside their texts.
	entryOverhead  = 512
	changeOverhead = 96

	// resetWrites is the size from which an overlay's map is made anew.
	resetWrites = 4096

	// prefetchMin is the number of unread keys from which reading them in
	// parallel is worth the goroutines; prefetchWorkers read them.
	prefetchMin     = 16
	prefetchWorkers = 4
	prefetchKeys    = 8 * MaxBatchCommands

	// rememberedActors bounds the marks of actors whose keys apply remembers.
	rememberedActors = 4096

	// MaxActivity bounds one page of activity, maxActivityScan what a filter may
	// pass over to fill it.
	MaxActivity     = 1000
	maxActivityScan = 200_000
)

const _ = uint(MaxOutstanding - MaxBatchCommands) // a full batch fits the window
