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
	// MaxBody bounds a request's body. A command's payload is at most 256 KiB;
	// the rest is JSON's room. Routes for attachments set their own.
	MaxBody = 1 << 20
	// MaxDocumentBody bounds the body with a document: its text, of which JSON may
	// escape every other byte, and the rest.
	MaxDocumentBody = 2*paper.MaxDocument + 64<<10
	// maxDiscarded bounds what is read, and thrown away, of a body that is too large.
	maxDiscarded = 32 << 20
	// smallBody is what is read into a buffer of its announced size.
	smallBody = 64 << 10
	// MaxDepth bounds how deeply a body is nested; decoding is recursive.
	MaxDepth = 64
	// MaxRaw bounds JSON that is taken over as it is, in bytes: two of them fit a
	// command; the rules know finer bounds. MaxItemLength bounds the strings of a
	// list that says nothing of them, in UTF-16 units, and MaxMembers the members of
	// a record.
	MaxRaw        = 128 << 10
	MaxItemLength = 1024
	MaxMembers    = 1000
	// MaxIssues bounds the problems that one answer lists.
	MaxIssues = 64

	// MaxConcurrent bounds the requests at work on one node; more get 503. A
	// session has 1,024 commands outstanding; reads are short.
	MaxConcurrent = 1024
	// MaxStreams bounds event streams and sockets of one node; each holds a
	// goroutine and a page of the feed.
	MaxStreams = 256
	// MaxConns bounds the connections of one listener, at work or idle: well below
	// the descriptors that a process may have on a server, and what they take
	// of memory, about 20 KiB each, is less than 100 MB.
	MaxConns = 4096
	// MaxHeader bounds a request's headers.
	MaxHeader = 64 << 10

	// headerTimeout ends connections that dawdle over their headers, bodyTimeout
	// over their bodies; idleTimeout closes kept connections.
	headerTimeout = 5 * time.Second
	bodyTimeout   = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	// RequestTimeout bounds the wait for consensus and for reads; it is longer
	// than an election with its retries.
	RequestTimeout = 15 * time.Second
	// PackageTimeout bounds an import or an export instead: a large company takes
	// a small machine that is busy so long.
	PackageTimeout = 90 * time.Second
	// WriteTimeout is how long one frame of a stream, or an answer, may take to
	// leave: a slow reader is cut off and resumes by height.
	WriteTimeout = 10 * time.Second
	// RetryAfter is what a 503 asks for: about one election.
	RetryAfter = time.Second
	// Heartbeat keeps streams alive through proxies.
	Heartbeat = 15 * time.Second
	// PingEvery is how often live-event sockets are pinged, as recorded.
	PingEvery = 30 * time.Second

	// TailEvery is how often a stream asks for what running runs wrote, TailRead
	// what it takes of one at a time, TailWait how long it waits for the node that
	// has it, and TailPause how long it leaves one alone that does not answer.
	TailEvery = 200 * time.Millisecond
	TailRead  = 64 << 10
	TailWait  = 2 * time.Second
	TailPause = 2 * time.Second
	// MaxTailedRuns bounds the runs that one stream reads along, MaxTailRest the
	// reads for what is left when a run ends, MaxLogFrame one frame's text.
	MaxTailedRuns = 32
	MaxTailRest   = 16
	MaxLogFrame   = 8 << 10

	// maxKeys bounds remembered agent keys; KeyAge bounds how long one is
	// believed without looking, should an invalidation not reach this node.
	maxKeys = 4096
	KeyAge  = 5 * time.Second
	// maxBehind bounds the requests that wait for this node to catch up before they
	// are authenticated, catchUpTimeout how long each does: a follower that is well
	// lags by milliseconds, and whoever makes heights up holds nothing else up.
	maxBehind      = 128
	catchUpTimeout = 5 * time.Second
	// ownWait bounds how long a read waits for what its node has answered before.
	ownWait = time.Second
	// maxBearer bounds a bearer token; a run token is about 600 bytes.
	maxBearer = 4096
	// maxIdempotencyKey bounds an Idempotency-Key.
	maxIdempotencyKey = 255
	// maxRequestID bounds an X-Request-Id that is taken over.
	maxRequestID = 128
	// maxUploads bounds the uploads of one node at a time: each holds a file, a
	// buffer, and what a part's headers may take.
	maxUploads = 32
	// UploadTimeout bounds a whole upload: the largest attachment at 2 MB/s. A
	// body that stands still for bodyTimeout ends it sooner.
	UploadTimeout = 10 * time.Minute
	// MaxParts, MaxFormField and MultipartRoom bound what an upload has besides
	// its file: parts, the bytes of one, and what lies between them.
	MaxParts      = 16
	MaxFormField  = 1 << 10
	MultipartRoom = 64 << 10
	// MaxImage bounds images, in bytes: they are shown, not kept.
	MaxImage = 10 << 20
	// traceEvery is how often noted tool calls become entries: one for each run
	// that made some. traceQueue bounds those that wait in between, tracedPaths
	// what of a path is noted.
	traceEvery  = 500 * time.Millisecond
	traceQueue  = 4096
	tracedPaths = 180
	// FeedQueue bounds the entries that wait for one stream's writer; the feed
	// itself waits then. An entry tells up to 16 KiB, so all streams together hold
	// at most about 150 MB.
	FeedQueue = 32
	// MaxPackage bounds the JSON of an import, which is read into memory:
	// portable.MaxBytes of files, some of them in base64.
	MaxPackage = 64 << 20
	// MaxPackageBlobs bounds the attachments of one export, so that it can be
	// imported again, and MaxPackageWarnings what is told about one.
	MaxPackageBlobs    = 32 << 20
	MaxPackageWarnings = 200
	// MaxPackageAssets bounds the files of a package that belong to no issue: each is
	// a step of its import.
	MaxPackageAssets = 200
	// MaxPackageStrategies bounds the approved strategies of a package.
	MaxPackageStrategies = 100
	// MaxPackageCents bounds a limit of money in a package, as in a body.
	MaxPackageCents = 1_000_000_000_000
	// maxImports bounds the imports and exports of one node at a time: each may
	// hold a package in memory twice.
	maxImports = 2
)

func KernelBodyOf(status int, body ErrorBody) kernelBody {
	return kernelBody{body, cmp.Or(strings.ToUpper(body.Code), KernelCodes[status], "REFUSED"), body.Error}
}

// A pace is how far a job is, for those who tell the mesh.
type Pace struct {
	mu sync.Mutex // guards all below
	at JobProgress
}

func (p *Pace) Set(phase string, total int) {
	if p == nil { // nobody watches
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
	// maxImportJobs bounds the jobs that one node carries out: each holds its
	// package in memory. More are answered 503.
	maxImportJobs = 2
	// maxExecuting bounds the callers that wait; others get 202 at once.
	maxExecuting = 128
	// maxToolsAtWork bounds the tools that run at once on a node: each has memory of
	// its own.
	maxToolsAtWork = 8
)

// KernelCodes are the codes of refusals that have none of their own.
var KernelCodes = map[int]string{http.StatusBadRequest: "PARSE_ERROR", http.StatusUnauthorized: "UNAUTHORIZED", http.StatusNotFound: "NOT_FOUND", http.StatusForbidden: "FORBIDDEN",
	http.StatusConflict: "CONFLICT", http.StatusTooManyRequests: "TOO_MANY", http.StatusPaymentRequired: "BUDGET_EXHAUSTED", http.StatusRequestEntityTooLarge: "PARSE_ERROR",
	http.StatusUnsupportedMediaType: "PARSE_ERROR", http.StatusInternalServerError: "INTERNAL", http.StatusServiceUnavailable: "UNAVAILABLE"}

// A kernelBody is a refusal of the kernel's API.
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
