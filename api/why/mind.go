package why

import (
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/mind"
)

type (
	// A thinking is what the mind of the answering node did since it started. Times are in
	// microseconds.
	thinking struct {
		Node        string    `json:"nodeId"`
		State       string    `json:"state"` // off, resting, ticking
		Leads       bool      `json:"leads"` // only the leader's mind ticks
		Tick        ticks     `json:"tick"`
		Loop        loop      `json:"loop"`
		Impulses    impulses  `json:"impulses"`
		Calibration *measured `json:"calibration"` // null: not measured
	}
	ticks struct {
		Count    uint64 `json:"count"`
		Interval int64  `json:"intervalMicros"`
		Budget   int64  `json:"budgetMicros"` // that one may compute
		Mean     int64  `json:"meanMicros"`
		Max      int64  `json:"maxMicros"`
		Cut      uint64 `json:"cut"`    // stopped at their budget
		Drifts   uint64 `json:"drifts"` // times that the interval changed
	}
	loop struct {
		Sensed    uint64 `json:"sensed"` // impulses
		Embedded  uint64 `json:"embedded"`
		Searched  uint64 `json:"searched"`
		Linked    uint64 `json:"linked"`  // pairs
		Commits   uint64 `json:"commits"` // commands
		Confirmed uint64 `json:"confirmed"`
	}
	impulses struct {
		Waiting      int       `json:"waiting"`
		Room         int       `json:"room"`
		Dropped      uint64    `json:"dropped"` // for lack of room
		Expired      uint64    `json:"expired"`
		Acknowledged uint64    `json:"acknowledged"`
		Last         []impulse `json:"last"` // the newest last, of companies that the asker sees
	}
	impulse struct {
		Kind    mind.Kind        `json:"kind"`
		From    mind.Structure   `json:"from"`
		To      mind.Structure   `json:"to"`
		Company ledger.CompanyID `json:"companyId"`
		Memory  string           `json:"memoryId"`
		At      core.Time        `json:"at"`
		Until   core.Time        `json:"until"`
	}
	measured struct {
		At       core.Time `json:"at"`
		Hash     int64     `json:"hashMicros"`   // 64 KiB
		Sync     int64     `json:"syncMicros"`   // of the disk, 0: not measured
		Search   int64     `json:"searchMicros"` // 500 vectors
		Median   int64     `json:"tickMedianMicros"`
		Tick     int64     `json:"tickMicros"` // 95th percentile
		Interval int64     `json:"intervalMicros"`
	}
)

func think(rc *api.Request) (api.Response, error) {
	s := mind.Stat{State: "off"}
	if rc.Server.Cfg.Mind != nil {
		s = rc.Server.Cfg.Mind()
	}
	out := thinking{Node: string(rc.Server.Cfg.NodeID), State: s.State, Leads: s.Leads,
		Tick: ticks{s.Ticks, s.Interval.Microseconds(), s.Budget.Microseconds(), s.Mean.Microseconds(),
			s.Max.Microseconds(), s.Cut, s.Drifts},
		Loop: loop{s.Sensed, s.Embedded, s.Searched, s.Linked, s.Commits, s.Confirmed},
		Impulses: impulses{Waiting: s.Waiting, Room: s.Room, Dropped: s.Dropped, Expired: s.Expired,
			Acknowledged: s.Acknowledged, Last: []impulse{}}}
	if c := s.Calibration; !c.At.IsZero() {
		out.Calibration = &measured{core.TimeOf(c.At.Truncate(time.Millisecond)), c.CPU.Microseconds(), c.Sync.Microseconds(),
			c.Search.Microseconds(), c.Median.Microseconds(), c.Tick.Microseconds(), c.Interval.Microseconds()}
	}
	err := rc.View(func(tx *ledger.Tx) error {
		for _, i := range s.Last {
			if api.Seen(tx, rc, i.Company) {
				out.Impulses.Last = append(out.Impulses.Last, impulse{i.Kind, i.From, i.To, i.Company, i.Record,
					core.TimeOf(i.At.Truncate(time.Millisecond)), core.TimeOf(i.Until.Truncate(time.Millisecond))})
			}
		}
		return nil
	})
	return api.OK(out), err
}
