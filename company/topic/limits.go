package topic

import (
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// A scope is the mesh, or one company.
const (
	// MaxTopics, MaxSubscriptions and MaxBytes bound what a scope has: every node keeps it.
	MaxTopics        = 1_000
	MaxSubscriptions = 1_000
	MaxBytes         = 256 << 20
	// MaxText bounds the bytes of one message; longer ones are blobs.
	MaxText = 64 << 10
	// MaxFrom bounds the bytes of the sender's address.
	MaxFrom = 128
	// KeepMessages, KeepBytes and KeepFor are how much of a topic is kept unless it says
	// otherwise; MostMessages, MostBytes and MostFor are what it may say.
	KeepMessages = 10_000
	KeepBytes    = 16 << 20
	KeepFor      = 7 * 24 * time.Hour
	MostMessages = 100_000
	MostBytes    = 64 << 20
	MostFor      = 366 * 24 * time.Hour
	// maxPruned bounds the messages that one command deletes: the rest goes with the next.
	maxPruned = 500
	// MaxPage bounds the messages of one read.
	MaxPage = 1_000
)

const (
	_ = uint(ledger.MaxPayload - MaxText - 4096) // a message fits a command
	_ = uint(ledger.MaxTouched - maxPruned - 10)
)
