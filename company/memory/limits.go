package memory

import (
	"github.com/selvage-mesh/selvage/ledger"
	index "github.com/selvage-mesh/selvage/memory"
)

const (
	// MaxText bounds the bytes of one text: some pages. Longer ones are documents.
	MaxText = index.MaxText
	// MaxRecords and MaxBytes bound what a company remembers, texts and vectors together:
	// every node has all of it on disk, and the words of it in memory.
	MaxRecords = index.MaxRecords
	MaxBytes   = 256 << 20
	// MaxTags and MaxTag bound the tags of a record and one tag, in bytes.
	MaxTags = 16
	MaxTag  = 64
	// MaxLinks bounds the other records that one names.
	MaxLinks = 16
	// MaxImportance is the importance of the most important record.
	MaxImportance = 1000
	// MaxModels bounds the models whose vectors a company has, MaxModel the bytes of a name.
	MaxModels = 4
	MaxModel  = 128
	// MaxForgotten bounds the records that one command forgets, MaxExpired those that one
	// memory.expire removes.
	MaxForgotten = 50
	MaxExpired   = 50
	// MaxReplaced bounds the records whose place one takes.
	MaxReplaced = 32
	// MaxEmbedded bounds the vectors that one command brings: fewer where they are long, as a
	// command has 256 KiB.
	MaxEmbedded = 64
	// MaxChanges is how many changes are kept for indexes that catch up. One that is
	// further behind reads everything.
	MaxChanges = 4096
	// maxBodies bounds the stored payloads of a record that are erased when it is forgotten:
	// the first and the last texts that it had. An update beyond it is refused.
	maxBodies = 64
	// outcomeSnippet bounds what the record of a closed issue has of its description and of
	// its last comment each, in bytes.
	outcomeSnippet = 4 << 10
	// mostRuns bounds the runs of a closed issue that are looked through for those that
	// failed, mostFailures those that are told of, failureSnippet what is told of one.
	mostRuns       = 100
	mostFailures   = 3
	failureSnippet = 400
)

// A record is forgotten with at most keysOf keys: its row, its index, its owner, a change
// that comes and one that goes, the count, its likes on both sides, the payloads, and for
// each record whose place it took the row and two changes.
const keysOf = 8 + MaxLikes + maxBodies + 3*MaxReplaced

const (
	_ = uint(ledger.MaxTouched - keysOf*MaxExpired)
	_ = uint(ledger.MaxTouched - keysOf*MaxForgotten)
	_ = uint(MaxText - 2*outcomeSnippet - mostFailures*(failureSnippet+100) - 2048)
)
