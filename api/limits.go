package api

import (
	"cmp"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/company/paper"
)

const (
	// MaxBody bounds a request's body. A command's payload is at most 256 KiB; JSON needs the
	// rest. Routes for attachments set their own bound.
	MaxBody = 1 << 20
	// MaxDocumentBody bounds a body with a document: its text, of which JSON may escape every
	// byte, and the rest.
	MaxDocumentBody = 2*paper.MaxDocument + 64<<10
	// maxDiscarded bounds how much of a too large body is read and discarded.
	maxDiscarded = 32 << 20
	// smallBody is the largest body that is read into a buffer of its announced size.
	smallBody = 64 << 10
	// MaxDepth bounds the nesting of a body, because decoding is recursive.
	MaxDepth = 64
	// MaxRaw bounds raw JSON, in bytes: two values fit into a command; the rules have finer
	// bounds. MaxItemLength bounds the strings of a list without a bound of its own, in UTF-16
	// units, and MaxMembers the members of a record.
	MaxRaw        = 128 << 10
	MaxItemLength = 1024
	MaxMembers    = 1000
	// MaxIssues bounds the issues in one answer.
	MaxIssues = 64

	// MaxConcurrent bounds the concurrent requests of one node; more get a 503. A session has
	// 1,024 outstanding commands; reads are short.
	MaxConcurrent = 1024
	// MaxStreams bounds event streams and sockets of one node; each holds a
	// goroutine and a page of the feed.
	MaxStreams = 256
	// MaxConns bounds the connections of one listener, busy or idle: far below the usual limit of
	// descriptors on a server, and at about 20 KiB each less than 100 MB of memory.
	MaxConns = 4096
	// MaxHeader bounds a request's headers.
	MaxHeader = 64 << 10

	// headerTimeout bounds sending a request's headers, bodyTimeout its body; idleTimeout closes
	// idle connections.
	headerTimeout = 5 * time.Second
	bodyTimeout   = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	// RequestTimeout bounds the wait for consensus and for reads. It is longer than an election
	// with its retries.
	RequestTimeout = 15 * time.Second
	// PackageTimeout bounds an import or an export: a large company on a busy small machine takes
	// that long.
	PackageTimeout = 90 * time.Second
	// WriteTimeout bounds sending one frame of a stream, or an answer: a slow reader is
	// disconnected and resumes by height.
	WriteTimeout = 10 * time.Second
	// RetryAfter is the Retry-After of a 503: about one election.
	RetryAfter = time.Second
	// Heartbeat keeps streams open through proxies.
	Heartbeat = 15 * time.Second
	// standEvery is how often a stream looks whether its node hears a majority.
	standEvery = time.Second
	// PingEvery is how often live-event sockets are pinged, as recorded.
	PingEvery = 30 * time.Second

	// TailEvery is how often a stream reads what running runs wrote, TailRead how much of one it
	// reads at a time, TailWait how long it waits for the node with the log, and TailPause how
	// long it skips a node that does not answer.
	TailEvery = 200 * time.Millisecond
	TailRead  = 64 << 10
	TailWait  = 2 * time.Second
	TailPause = 2 * time.Second
	// MaxTailedRuns bounds the runs that one stream follows, MaxTailRest the reads for the rest of
	// a log when a run ends, MaxLogFrame the text of one frame.
	MaxTailedRuns = 32
	MaxTailRest   = 16
	MaxLogFrame   = 8 << 10

	// maxKeys bounds the cached agent keys. KeyAge bounds how long a key is cached, in case an
	// invalidation does not reach this node.
	maxKeys = 4096
	KeyAge  = 5 * time.Second
	// maxBehind bounds the requests that wait for this node to catch up before they are
	// authenticated, and catchUpTimeout how long each waits. A healthy follower lags by
	// milliseconds, and invented heights must not block others.
	maxBehind      = 128
	catchUpTimeout = 5 * time.Second
	// ownWait bounds how long a read waits for what its node has already answered.
	ownWait = time.Second
	// maxBearer bounds a bearer token; a run token is about 600 bytes.
	maxBearer = 4096
	// maxIdempotencyKey bounds an Idempotency-Key.
	maxIdempotencyKey = 255
	// maxRequestID bounds an X-Request-Id that is reused.
	maxRequestID = 128
	// maxUploads bounds the concurrent uploads of one node: each has a file, a buffer, and the
	// headers of a part.
	maxUploads = 32
	// UploadTimeout bounds a whole upload: the largest attachment at 2 MB/s. A body that stalls
	// for bodyTimeout ends earlier.
	UploadTimeout = 10 * time.Minute
	// MaxParts, MaxFormField and MultipartRoom bound an upload apart from its file: the number of
	// parts, the bytes of one, and the bytes between them.
	MaxParts      = 16
	MaxFormField  = 1 << 10
	MultipartRoom = 64 << 10
	// MaxImage bounds images, in bytes.
	MaxImage = 10 << 20
	// traceEvery is how often recorded tool calls become entries, one for each run with calls.
	// traceQueue bounds those that wait in between, tracedPaths how much of a path is recorded.
	traceEvery  = 500 * time.Millisecond
	traceQueue  = 4096
	tracedPaths = 180
	// FeedQueue bounds the entries that wait for one stream's writer; then reading the feed waits.
	// An entry is up to 16 KiB, so all streams together hold at most about 150 MB.
	FeedQueue = 32
	// MaxPackage bounds the JSON of an import, which is read into memory: portable.MaxBytes of
	// files, some of them in base64.
	MaxPackage = 64 << 20
	// MaxPackageBlobs bounds the attachments of one export, so that it can be imported again, and
	// MaxPackageWarnings its warnings.
	MaxPackageBlobs    = 32 << 20
	MaxPackageWarnings = 200
	// MaxPackageAssets bounds the files of a package that belong to no issue: each is one step of
	// the import.
	MaxPackageAssets = 200
	// MaxPackageStrategies bounds the approved strategies of a package.
	MaxPackageStrategies = 100
	// MaxPackageCents bounds a budget in a package, like in a body.
	MaxPackageCents = 1_000_000_000_000
	// maxImports bounds the concurrent imports and exports of one node: each may hold a package in
	// memory twice.
	maxImports = 2
)

func KernelBodyOf(status int, body ErrorBody) kernelBody {
	return kernelBody{body, cmp.Or(strings.ToUpper(body.Code), KernelCodes[status], "REFUSED"), body.Error}
}

// A Pace is the progress of a job, which its owner reports to the mesh.
type Pace struct {
	mu sync.Mutex // guards all below
	at JobProgress
}

func (p *Pace) Set(phase string, total int) {
	if p == nil { // nobody follows it
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = JobProgress{Phase: phase, Total: int64(total)}
}

func (p *Pace) Step() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at.Done++
}

func (p *Pace) Now() JobProgress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

const (
	// maxImportJobs bounds the jobs of one node: each holds its package in memory. More get a 503.
	maxImportJobs = 2
	// maxExecuting bounds the callers that wait; others get a 202 at once.
	maxExecuting = 128
	// maxToolsAtWork bounds the concurrent tools of a node: each has its own memory.
	maxToolsAtWork = 8
)

// KernelCodes are the codes of refusals that have none.
var KernelCodes = map[int]string{http.StatusBadRequest: "PARSE_ERROR", http.StatusUnauthorized: "UNAUTHORIZED",
	http.StatusNotFound: "NOT_FOUND", http.StatusForbidden: "FORBIDDEN",
	http.StatusConflict: "CONFLICT", http.StatusTooManyRequests: "TOO_MANY",
	http.StatusPaymentRequired: "BUDGET_EXHAUSTED", http.StatusRequestEntityTooLarge: "PARSE_ERROR",
	http.StatusUnsupportedMediaType: "PARSE_ERROR", http.StatusInternalServerError: "INTERNAL",
	http.StatusServiceUnavailable: "UNAVAILABLE"}

// A kernelBody is a refusal in the form of the kernel's API.
type kernelBody struct {
	ErrorBody
	Code    string `json:"code"`
	Message string `json:"message"`
}

type JobProgress struct {
	Phase string `json:"phase"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
}
