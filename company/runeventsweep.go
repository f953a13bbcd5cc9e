package company

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// DefaultEventDays is how long the events of runs are kept without a setting: ten years.
	DefaultEventDays = 3650
	// sweptEvents is the number of removed events after which a sweeping command ends.
	sweptEvents = 2048
)

const _ = uint(ledger.MaxTouched - sweptEvents - maxRunEvents - 2)

// An EventRetention says how long the events of runs are kept. The runs themselves stay.
type EventRetention struct {
	Days int64 `json:"days"`
}

// EventRetentionOf returns the setting of the mesh.
func EventRetentionOf(tx *ledger.Tx) EventRetention {
	s := struct {
		Keep EventRetention `json:"runEventRetention"`
	}{EventRetention{DefaultEventDays}}
	_ = json.Unmarshal(SettingsOf(tx, "general").Values, &s) // the API checked it
	return s.Keep
}

// SweepEvents is the payload of run_event.sweep, which removes old events of a company's
// ended runs.
type SweepEvents struct{}

const KindRunEventSweep = "run_event.sweep"

var runEventKinds = []Kind{
	{Name: KindRunEventSweep, From: FromNode, Weight: Weights.ByNodes, Do: ledger.Typed(sweepEvents)},
}

// eventsSweptKey holds the position in the index of all runs up to which events are gone.
// A run that was live when the sweep passed it keeps its events.
func eventsSweptKey(company ledger.CompanyID) []byte {
	return ledger.Key("c", string(company), "run-event-swept")
}

// oldRuns yields the runs of a company that are older than the retention and were not
// swept yet, oldest first, with their position in the index.
func oldRuns(tx *ledger.Tx, company ledger.CompanyID, now core.Time, yield func(at string, r entity.Run) bool) {
	before := now - core.Time(EventRetentionOf(tx).Days*int64(24*time.Hour/time.Millisecond))
	prefix := ledger.Key("c", string(company), "run-time", entity.AllRuns, "")
	swept, _ := tx.Get(eventsSweptKey(company))
	for k := range tx.Scan(append(prefix[:len(prefix):len(prefix)], swept...), ledger.PrefixEnd(prefix), false) {
		at := string(k[len(prefix):])
		_, id, _ := strings.Cut(at, ".")
		if at == string(swept) {
			continue
		}
		if r, ok := entity.RunTable.Get(tx, company, id); ok && (r.CreatedAt >= before || !yield(at, r)) {
			return
		}
	}
}

// EventsToSweep reports whether a company has runs with events to sweep.
func EventsToSweep(tx *ledger.Tx, company ledger.CompanyID, now core.Time) (due bool) {
	oldRuns(tx, company, now, func(string, entity.Run) bool { due = true; return false })
	return due
}

func sweepEvents(c *ledger.Context, _ SweepEvents) (any, error) {
	company, n, last := c.Cmd.Company, 0, ""
	oldRuns(c.Tx, company, core.TimeOf(c.Now), func(at string, r entity.Run) bool {
		last = at
		if !r.Status.Live() {
			for _, e := range entity.EventsOf(c.Tx, company, r.ID, 0, 2*maxRunEvents) {
				c.Delete(entity.RunEventKey(company, r.ID, e.Seq))
				n++
			}
		}
		return n < sweptEvents
	})
	if last != "" {
		c.Set(eventsSweptKey(company), []byte(last))
	}
	if n > 0 {
		c.Record(ledger.Change{Action: "heartbeat.run.events_swept", EntityType: "company", EntityID: string(company),
			Details: core.Object{}.Int("events", int64(n)).Close()})
	}
	return nil, nil
}
