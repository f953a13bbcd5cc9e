package mcp

import "time"

const (
	// MaxMessage bounds one message of a client: a body of the API is at most
	// 1 MiB, and stands in it as JSON.
	MaxMessage = 2 << 20
	// maxAnswer bounds what a tool reads of an answer; lists are paged, and a
	// model reads less than this.
	maxAnswer = 8 << 20
	// callTimeout bounds one HTTP call; the API itself gives up after 15 s.
	callTimeout = 30 * time.Second
	// maxCalls bounds the tools at work in one process, whoever calls; more wait
	// for at most callWait.
	maxCalls = 64
	callWait = 10 * time.Second
	// waitEvery is how often a workspace service is looked at, for at most
	// maxWait, defaultWait unless the caller says otherwise.
	waitEvery   = time.Second
	defaultWait = 60 * time.Second
	maxWait     = 300 * time.Second
	// maxToolName is what clients of the protocol take for a name.
	maxToolName = 64
	// maxQuery is for some words. Of the tools that are found, defaultFound and at most
	// maxFound are told with their arguments, some 500 bytes each, and maxNames by name.
	maxQuery     = 500
	defaultFound = 5
	maxFound     = 20
	maxNames     = 30
)
