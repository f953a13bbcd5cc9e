package post

import "time"

const (
	// MaxMessage bounds a payload, in bytes: a frame between nodes has 16 MiB and the envelope
	// needs some of it.
	MaxMessage = 16<<20 - 16<<10
	// maxName bounds names, IDs and reasons in an envelope, in bytes.
	maxName = 200

	// InboxMessages and InboxBytes are the credits of one inbox: a slow reader of small messages
	// has a thousand, and four of the largest always fit. InboxWaiters bounds the messages that
	// wait for a credit of one inbox.
	InboxMessages = 1024
	InboxBytes    = 64 << 20
	InboxWaiters  = 256
	// refillPart is down to which part of its messages an inbox that was full is read before it lets in
	// who waits: many at once, who then send for a while without waiting. One at a time each message
	// would wait for its sender to be woken, and the inbox would stay full. What is still full at the
	// next tick lets in as many as there is room for, so that a slow reader's senders move on.
	refillPart = 2
	// NodeBytes bounds what all inboxes of a node hold together, what waits for them included.
	NodeBytes = 256 << 20
	// LinkWindow and LinkBytes are the credits of the way to one node: messages that were sent
	// and not answered. LinkWaiters bounds the messages that wait for them.
	LinkWindow  = 1024
	LinkBytes   = 64 << 20
	LinkWaiters = 4096
	// CallsMost bounds the requests of a node that wait for their replies.
	CallsMost = 100_000

	// DeadLetterMost and DeadLetterBytes bound the dead letters of a node; the oldest go first.
	DeadLetterMost  = 10_000
	DeadLetterBytes = 64 << 20

	// A reliable message is tried again ReliableRetries times: FirstRetry after the first attempt,
	// and after twice the pause from then on, at most MostRetry.
	ReliableRetries = 3
	FirstRetry      = 5 * time.Second
	MostRetry       = 30 * time.Second
	// reliableFor is the time of all its attempts together.
	reliableFor = FirstRetry + 2*FirstRetry + 4*FirstRetry + MostRetry
	// HandlerTime is how long a process has for a reliable message that it was handed out, before it gets
	// it again: less than its sender's last pause, so that one whose reader lost it is handed out again.
	HandlerTime = 30 * time.Second
	// takenFor is how long a message that was handed out waits for its acknowledgement before the
	// inbox gives it up: longer than its sender's longest pause.
	takenFor = 2 * MostRetry
	// OutboxMost and OutboxBytes bound the reliable messages of a node that are not acknowledged.
	OutboxMost  = 10_000
	OutboxBytes = 256 << 20
	// SeenMost bounds the IDs of reliable messages that a node remembers to find repetitions: more
	// than the outboxes of ten nodes hold.
	SeenMost = 1 << 17

	// DefaultWait is how long a message may wait for its credits, or a request for its reply.
	DefaultWait = 5 * time.Second
	MaxWait     = 10 * time.Minute
	// DefaultKeep and MaxKeep are how long a durable message is tried.
	DefaultKeep = 24 * time.Hour
	MaxKeep     = 7 * 24 * time.Hour
)

// The largest message must fit an empty inbox and an idle link.
const (
	_ = uint(InboxBytes - MaxMessage)
	_ = uint(LinkBytes - MaxMessage)
)

// retryAfter is the pause after the n-th attempt, from 1.
func retryAfter(n int) time.Duration {
	if n > 4 {
		return MostRetry
	}
	return min(FirstRetry<<(n-1), MostRetry)
}
