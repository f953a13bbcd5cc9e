// Package a2a serves the Agent2Agent protocol 1.0: cards that say which agents there are, and tasks, each of which is
// an issue of a company with its runs.
//
// A card is under /.well-known/agent-card.json for the mesh, and under /a2a/AGENT/.well-known/agent-card.json for one
// agent. Both bindings of the protocol over HTTP, JSON-RPC and HTTP+JSON, are under /a2a and /a2a/AGENT. AGENT is the
// ID of an agent, COMPANY.NAME, or a name where the caller sees one company; COMPANY is the company's ID or the prefix
// of its issues. Under /a2a the tenant, the metadata's "agent", or the only company's CEO says which agent is meant.
//
// The ID of a task is the ID of its issue. The methods of version 0.3 (message/send and so on) are understood too, and
// answered in the form of that version.
package a2a

import (
	"time"

	"github.com/selvage-mesh/selvage/api"
)

const (
	// Version is the version of the protocol.
	Version = "1.0"
	// maxBody bounds a request: a message may carry files.
	maxBody = 8 << 20
	// maxParts bounds the parts of a message, maxFiles the files among them, maxText the text that they make, as an
	// issue's description.
	maxParts = 64
	maxFiles = 8
	maxText  = 150_000
	// maxWait bounds how long message/send waits for the end of a task; then it answers with the task as it is.
	maxWait = 10 * time.Minute
	// maxHistory bounds the messages of a task, maxArtifacts its artifacts, and maxInline the bytes of a file within an
	// answer; a larger one is linked.
	maxHistory   = 100
	maxArtifacts = 100
	maxInline    = 256 << 10
	maxInlineAll = 1 << 20
	// defaultPage and maxPage bound a page of tasks, maxListed the issues that are looked at for a list.
	defaultPage = 50
	maxPage     = 100
	maxListed   = 10_000
	// maxListedAgents bounds the agents that the card of the mesh lists.
	maxListedAgents = 500
	// maxContext bounds a contextId, in bytes.
	maxContext = 200
)

// Handlers serve the bindings of the protocol. They are not in the description of the API: the protocol describes them.
func Handlers() []api.Handler {
	return []api.Handler{{Pattern: Root, Serve: serve}, {Pattern: Root + "/", Serve: serve}}
}

// Root is the path below which the protocol is served.
const Root = "/a2a"
