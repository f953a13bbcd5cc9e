package company

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Callback is what an http agent reported about the end of its run, after it answered
// the request that invoked it. The waiting node turns it into the run's outcome.
type Callback struct {
	Run     string           `cbor:"1,keyasint" json:"runId"`
	Status  entity.RunStatus `cbor:"2,keyasint" json:"status"` // succeeded or failed
	Summary string           `cbor:"3,keyasint,omitempty" json:"summary"`
	Error   string           `cbor:"4,keyasint,omitempty" json:"error"`
	Result  json.RawMessage  `cbor:"5,keyasint,omitempty" json:"result"`
	Usage   *entity.Usage    `cbor:"6,keyasint,omitempty" json:"usage"`
	At      core.Time        `cbor:"7,keyasint" json:"at"`
}

// Clone returns a copy that shares nothing with b.
func (b Callback) Clone() Callback {
	b.Result = append(json.RawMessage(nil), b.Result...)
	if b.Usage != nil {
		b.Usage = new(*b.Usage)
	}
	return b
}

const (
	// maxCallbackText bounds a summary and an error, maxCallbackResult a result, in bytes:
	// they are stored with the run.
	maxCallbackText   = 8 << 10
	maxCallbackResult = 16 << 10
)

var callbacks = ledger.NewTable[string, Callback]("run-callback")

// CallbackOf returns the callback of a run that has not ended.
func CallbackOf(tx *ledger.Tx, company ledger.CompanyID, run string) (Callback, bool) {
	return callbacks.Get(tx, company, run)
}

// callBack handles "run.callback", whose payload is a Callback without its time. A run
// accepts one callback, from its own agent, before it ends.
func callBack(c *ledger.Context, p Callback) (any, error) {
	r, err := RunFor(c, p.Run)
	if err != nil {
		return nil, err
	}
	if c.Cmd.Actor.ID != r.Agent {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "Agent can only tell of its own runs")
	}
	if r.Status != entity.RunRunning {
		return nil, ledger.Refuse(ledger.Conflict, r.Standing(), "The run is %s", r.Status)
	}
	if _, told := CallbackOf(c.Tx, r.Company, r.ID); told {
		return nil, ledger.Refuse(ledger.Conflict, r.Standing(), "The end of the run was reported already")
	}
	if p.Status != entity.RunSucceeded && p.Status != entity.RunFailed {
		return nil, ledger.Refuse(ledger.Invalid, nil, "A run has succeeded or failed")
	}
	if len(p.Summary) > maxCallbackText || len(p.Error) > maxCallbackText || len(p.Result) > maxCallbackResult ||
		len(p.Result) > 0 && !json.Valid(p.Result) {
		return nil, ledger.Refuse(ledger.Unprocessable, nil,
			"A summary and an error have at most %d bytes, a result is JSON of at most %d", maxCallbackText, maxCallbackResult)
	}
	if u := p.Usage; u != nil && (u.InputTokens < 0 || u.OutputTokens < 0 || u.CachedInputTokens < 0) {
		return nil, ledger.Refuse(ledger.Invalid, nil, "Usage can not be negative")
	}
	p.At = core.TimeOf(c.Now)
	c.Record(ledger.Change{Action: "heartbeat.called_back", EntityType: "heartbeat_run", EntityID: r.ID,
		Details: core.Object{}.Str("status", string(p.Status)).Close()})
	return callbacks.Put(c.Tx, r.Company, r.ID, p), nil
}
