package mcp

import "time"

const (
	// MaxMessage bounds one message of a client: it contains an API body of at most 1 MiB as
	// JSON.
	MaxMessage = 2 << 20
	// maxAnswer bounds what a tool reads of an answer. Lists are paged, and a model reads
	// less than this.
	maxAnswer = 8 << 20
	// callTimeout bounds one HTTP call; the API itself times out after 15 s.
	callTimeout = 30 * time.Second
	// maxCalls bounds the concurrent tool calls in one process, of all callers; further ones
	// wait for at most callWait.
	maxCalls = 64
	callWait = 10 * time.Second
	// waitEvery is the polling interval of a workspace service. maxWait bounds the wait,
	// defaultWait is the default.
	waitEvery   = time.Second
	defaultWait = 60 * time.Second
	maxWait     = 300 * time.Second
	// maxToolName is the longest name that clients of the protocol accept.
	maxToolName = 64
	// maxQuery bounds a query, in bytes. An answer describes defaultFound and at most
	// maxFound tools with their arguments, some 500 bytes each, and names at most maxNames
	// more.
	maxQuery     = 500
	defaultFound = 5
	maxFound     = 20
	maxNames     = 30
	// maxOffers bounds the tools of a company that are listed, maxOfferBytes what they say.
	maxOffers     = 64
	maxOfferBytes = 64 << 10
)
