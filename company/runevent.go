package company

import (
	"strconv"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// maxRunEvents bounds the events of one run. Later ones are dropped, except the one that
// ends the run.
const maxRunEvents = 1000

// eventCounterKey counts the events of a company: the contract wants unique integer IDs.
func eventCounterKey(company ledger.CompanyID) []byte {
	return ledger.Key("c", string(company), "run-event-count")
}

// addEvent stores an event of r and returns r with the next sequence number.
func addEvent(c *ledger.Context, r entity.Run, kind, level, message string, payload []byte) entity.Run {
	if r.NextEventSeq > maxRunEvents && r.Status.Live() {
		return r
	}
	var n uint64
	if b, ok := c.Get(eventCounterKey(r.Company)); ok {
		n, _ = strconv.ParseUint(string(b), 10, 64)
	}
	n++
	c.Set(eventCounterKey(r.Company), strconv.AppendUint(nil, n, 10))
	e := entity.RunEvent{ID: n, Company: r.Company, Run: r.ID, Agent: r.Agent, Seq: r.NextEventSeq, Type: kind,
		Stream: "system", Level: core.NullText(level), Message: core.NullText(message), Payload: payload,
		CreatedAt: core.TimeOf(c.Now)}
	c.Set(entity.RunEventKey(r.Company, r.ID, e.Seq), ledger.Marshal(e))
	r.NextEventSeq++
	RecordLive(c, ledger.Change{Action: "heartbeat.run.event", EntityType: "heartbeat_run", EntityID: r.ID,
		Details: e.Live(r)})
	return r
}
