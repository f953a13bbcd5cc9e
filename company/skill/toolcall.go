package skill

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// MaxTracedCalls bounds the calls in one entry, so that its lines stay a few KiB.
	MaxTracedCalls = 32
	// maxCallText bounds the name and the path of a call, in bytes.
	maxCallText = 200
)

// A ToolCall is one call that an agent made through a tool.
type ToolCall struct {
	Tool   string    `cbor:"1,keyasint" json:"tool"`
	Method string    `cbor:"2,keyasint" json:"method"`
	Path   string    `cbor:"3,keyasint" json:"path"` // without the query
	Status int       `cbor:"4,keyasint" json:"status"`
	At     core.Time `cbor:"5,keyasint" json:"at"`         // by the clock of the node that served the call
	Took   int64     `cbor:"6,keyasint" json:"durationMs"` // until the answer
}

// TraceTools is the payload of "tool.trace": calls that an agent made through tools, oldest
// first. It only adds lines of the agent and its run to the activity log, so that one query
// shows what an agent read and wrote, and when.
type TraceTools struct {
	Calls   []ToolCall `cbor:"1,keyasint"`
	Omitted int64      `cbor:"2,keyasint,omitempty"` // number of calls that did not fit
}

const KindToolTrace = "tool.trace"

var toolCallKinds = []company.Kind{
	{Name: KindToolTrace, From: company.FromAgent, Traits: company.FencesItself | company.AfterRun | company.SeldomWork,
		Weight: company.Weights.Reporting, Do: ledger.Typed(traceTools)},
}

func traceTools(c *ledger.Context, p TraceTools) (any, error) {
	if len(p.Calls) == 0 || len(p.Calls) > MaxTracedCalls || p.Omitted < 0 {
		return nil, ledger.Refuse(ledger.Invalid, nil, "A trace tells of 1 to %d calls", MaxTracedCalls)
	}
	calls := make([]json.RawMessage, len(p.Calls))
	for i, t := range p.Calls {
		if t.Tool == "" || len(t.Tool) > maxCallText || len(t.Method) > maxCallText || len(t.Path) > maxCallText ||
			t.Took < 0 {
			return nil, ledger.Refuse(ledger.Invalid, nil, "A traced call has a tool, a method and a path of at most %d bytes",
				maxCallText)
		}
		b, err := json.Marshal(t)
		if err != nil {
			return nil, ledger.Refuse(ledger.Invalid, nil, "A traced call must be JSON")
		}
		calls[i] = b
	}
	list, err := json.Marshal(calls)
	if err != nil {
		return nil, ledger.Refuse(ledger.Invalid, nil, "Traced calls must be JSON")
	}
	c.Record(ledger.Change{Action: "mcp.tool_called", EntityType: "agent", EntityID: c.Cmd.Actor.ID,
		Details: core.Object{}.Raw("calls", list).Int("omitted", p.Omitted).Close()})
	return nil, nil
}
