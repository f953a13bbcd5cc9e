package company

import (
	"time"
)

const (
	// DefaultIssueLimit and MaxIssueLimit bound a list of issues, as the contract does.
	DefaultIssueLimit = 500
	MaxIssueLimit     = 1000
	// MaxIssueDepth bounds the chain of parents, so that walking it is short.
	MaxIssueDepth = 64
	// MaxRequestDepth bounds how often work is delegated on, also where the chain of
	// parents does not show it: an agent may say how deep its request is.
	MaxRequestDepth = MaxIssueDepth
	// MaxSubtree bounds what one cost summary or move of a subtree walks.
	MaxSubtree = 5_000
	// MaxChildren and MaxBlocked bound the sub-issues of one issue and the issues
	// that wait for it: deleting it changes them all in one command.
	MaxChildren = 400
	MaxBlocked  = 300
	// MaxBlockers bounds what one issue waits for; a checkout reads all of them.
	MaxBlockers = 50
	// MaxBlockerWalk bounds the search for a cycle among blockers.
	MaxBlockerWalk = 2_000
	// MaxIssueLabels bounds the labels of one issue, MaxLabels those of a company.
	MaxIssueLabels = 50
	MaxLabels      = 1_000
	// MaxComments bounds the comments of one issue: deleting it deletes them all
	// in one command, at three keys for a comment.
	MaxComments = 2_000
	// DefaultCommentLimit and MaxCommentLimit bound a list of comments.
	DefaultCommentLimit = 500
	MaxCommentLimit     = MaxComments
	// MaxTitle, MaxText and MaxDescriptor are in bytes. A text leaves room for the
	// rest of its command, which the ledger bounds at 256 KiB.
	MaxTitle      = 2_000
	MaxText       = 200_000
	MaxDescriptor = 16_000
	// DuplicateWindow is how long the same title and text, while the issue is
	// open, is taken for the same request: agents retry and wake twice.
	DuplicateWindow = 2 * time.Minute
	// MaxReads bounds the readers and archivers kept for one issue.
	MaxReads = 200
)
