package api

import (
	"context"

	"github.com/selvage-mesh/selvage/adapter/runlog"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kernel"
)

// Questions about the processes of a node.
const (
	ProcessList    = "list" // of one page, by PID
	ProcessFind    = "find"
	ProcessSpawn   = "spawn"
	ProcessSignal  = "signal"
	ProcessElevate = "elevate"
	ProcessEvents  = "events" // of the kernel's log
)

// ProcessPage is how many processes one answer has at most: they fit a frame between nodes.
const ProcessPage = 400

// A ProcessAsk asks a node about its processes.
type ProcessAsk struct {
	Op           string               `json:"op"`
	PID          kernel.PID           `json:"pid,omitempty"`
	More         bool                 `json:"more,omitempty"` // of ProcessList: only above PID
	All          bool                 `json:"all,omitempty"`  // also those that ended lately
	Spec         *kernel.Spec         `json:"spec,omitempty"`
	Signal       string               `json:"signal,omitempty"`
	Capabilities *kernel.Capabilities `json:"capabilities,omitempty"`
	Tail         int                  `json:"tail,omitempty"`
	Level        kernel.EventLevel    `json:"level,omitempty"`
}

// A ProcessAnswer is what the node answers: entries or events, or why not.
type ProcessAnswer struct {
	Entries []kernel.Entry   `json:"entries,omitempty"`
	More    bool             `json:"more,omitempty"` // there are more entries
	Events  []kernel.Event   `json:"events,omitempty"`
	Kind    kernel.ErrorKind `json:"kind,omitempty"`
	Error   string           `json:"error,omitempty"`
}

// Processes asks a node about its processes; an error means that it did not answer.
type Processes func(ctx context.Context, on identity.NodeID, ask ProcessAsk) (ProcessAnswer, error)

// ProcessLogRef names the log of a process on its node.
func ProcessLogRef(pid kernel.PID) string { return runlog.Ref("mesh", "processes", pid.String()) }
