package entity

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A RunEvent is one recorded step of a run.
type RunEvent struct {
	ID                    uint64           `cbor:"1,keyasint" json:"id"`
	Company               ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Run                   string           `cbor:"3,keyasint" json:"runId"`
	Agent                 string           `cbor:"4,keyasint" json:"agentId"`
	Seq                   int64            `cbor:"5,keyasint" json:"seq"`
	Type                  string           `cbor:"6,keyasint" json:"eventType"`
	Stream                core.NullText    `cbor:"7,keyasint,omitempty" json:"stream"`
	Level                 core.NullText    `cbor:"8,keyasint,omitempty" json:"level"`
	Color                 core.NullText    `cbor:"9,keyasint,omitempty" json:"color"`
	Message               core.NullText    `cbor:"10,keyasint,omitempty" json:"message"`
	Payload               json.RawMessage  `cbor:"11,keyasint,omitempty" json:"payload"`
	SourceInstance        core.NullText    `cbor:"12,keyasint,omitempty" json:"sourceInstanceId"`
	SourceEvent           core.NullText    `cbor:"13,keyasint,omitempty" json:"sourceEventId"`
	SourceSeq             *int64           `cbor:"14,keyasint,omitempty" json:"sourceSeq"`
	SourcePayloadSHA256   core.NullText    `cbor:"15,keyasint,omitempty" json:"sourcePayloadSha256"`
	ProtocolSchemaVersion core.NullText    `cbor:"16,keyasint,omitempty" json:"protocolSchemaVersion"`
	CreatedAt             core.Time        `cbor:"17,keyasint" json:"createdAt"`
}

// RunEventKey is c/<company>/run-event/<run>/<seq>.
func RunEventKey(company ledger.CompanyID, run string, seq int64) []byte {
	return ledger.Key("c", string(company), "run-event", run, ledger.Order(uint64(seq)))
}

// Live returns the payload of the live event for e. A large payload of e is left out; clients
// read it from the run's events.
func (e RunEvent) Live(r Run) []byte {
	const maxLivePayload = 2 << 10 // an entry stays small
	o := core.Object{}.Str("runId", r.ID).Str("agentId", r.Agent)
	if r.Context.IssueID != "" {
		o = o.Str("issueId", r.Context.IssueID)
	}
	o = o.Int("seq", e.Seq).Str("eventType", e.Type).Null("stream", string(e.Stream)).Null("level", string(e.Level)).
		Null("color", "").Null("message", string(e.Message)).Null("currentToolName", "").Null("lastAssistantSnippet", "").
		Time("lastEventAt", e.CreatedAt)
	if len(e.Payload) == 0 || len(e.Payload) > maxLivePayload {
		return o.Null("payload", "").Close()
	}
	return o.Raw("payload", e.Payload).Close()
}

// EventsOf returns up to limit events of a run after a sequence number.
func EventsOf(tx *ledger.Tx, company ledger.CompanyID, run string, after int64, limit int) []RunEvent {
	out := []RunEvent{}
	prefix := ledger.Key("c", string(company), "run-event", run, "")
	for _, b := range tx.Scan(RunEventKey(company, run, max(after, 0)+1), ledger.PrefixEnd(prefix), false) {
		if len(out) == limit {
			break
		}
		var e RunEvent
		if err := ledger.Unmarshal(b, &e); err != nil {
			panic("company: run event does not decode: " + err.Error())
		}
		out = append(out, e)
	}
	return out
}

func LogKeptKey(at core.Time, run string) []byte {
	return ledger.Key("run-log-kept", ledger.Order(uint64(at)), run)
}
