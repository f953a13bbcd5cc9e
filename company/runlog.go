package company

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// The executing node writes the log of a run. When the run has ended, the node stores the
// log as a blob on several nodes, under the hash from the closing command:
//
//	run-log-due/<node>/<run>                 its company: a closed log that is not stored yet
//	run-log-kept/<ms, 16 hex digits>/<run>   company and bytes: by age, across companies
//	run-log-total                            bytes of all stored logs
func logDueKey(node, run string) []byte { return ledger.Key("run-log-due", node, run) }

var logTotalKey = ledger.Key("run-log-total")

const (
	// DefaultLogDays is how long run logs are kept, and DefaultLogBytes how much of them the
	// mesh keeps, without a setting.
	DefaultLogDays  = 30
	DefaultLogBytes = 4 << 30
	// MaxKeptLogs bounds the logs of one command.
	MaxKeptLogs = 100
)

// KeepLogs is the payload of run_log.keep, by which a node reports that it copied the logs
// of its runs to other nodes.
type KeepLogs struct {
	Logs []KeptLog `cbor:"1,keyasint"`
}

// A KeptLog is one of these logs. Without nodes it can not be kept: its file is gone, or
// there is no room.
type KeptLog struct {
	Run   string   `cbor:"1,keyasint"`
	Nodes []string `cbor:"2,keyasint,omitempty"`
	// Decided are the nodes with the run's decision log, none when it has none or it can not be kept.
	Decided []string `cbor:"3,keyasint,omitempty"`
	// Late describes the decision log of a run that others than its node have closed, nil for other runs.
	Late *entity.DecisionLog `cbor:"4,keyasint,omitempty"`
}

// SweepLogs is the payload of run_log.sweep, which drops the logs that exceed the
// retention.
type SweepLogs struct{}

const (
	KindRunLogKeep  = "run_log.keep"
	KindRunLogSweep = "run_log.sweep"
)

var runLogKinds = []Kind{
	{Name: KindRunLogKeep, From: FromNode, Weight: Weights.ByNodes, Do: ledger.Typed(keepLogs)},
	{Name: KindRunLogSweep, From: FromNode, Weight: Weights.ByNodes, Do: ledger.Typed(sweepLogs)},
}

// dueLog notes that the run's node must store its log, or its decision log.
func dueLog(c *ledger.Context, r entity.Run) {
	log := r.LogBytes != nil && *r.LogBytes > 0 && core.IsHash(string(r.LogSHA256)) && r.LogKeptAt == 0
	decided := r.Decisions != nil && r.Decisions.Bytes > 0 && r.Decisions.KeptAt == 0
	if log || decided {
		c.Set(logDueKey(r.Node, r.ID), []byte(r.Company))
	}
}

// LogsDue returns at most n runs whose logs a node must store.
func LogsDue(tx *ledger.Tx, node string, n int) (out []entity.Run) {
	prefix := logDueKey(node, "")
	for k, of := range tx.Prefix(prefix) {
		id := string(k[len(prefix):])
		r, ok := entity.RunTable.Get(tx, ledger.CompanyID(of), id)
		if !ok {
			r = entity.Run{ID: id, Company: ledger.CompanyID(of)}
		}
		if out = append(out, r); len(out) == n {
			break
		}
	}
	return out
}

func keepLogs(c *ledger.Context, p KeepLogs) (any, error) {
	if len(p.Logs) == 0 || len(p.Logs) > MaxKeptLogs {
		return nil, ledger.Refuse(ledger.Invalid, nil, "1 to %d logs are needed", MaxKeptLogs)
	}
	now, kept, total := core.TimeOf(c.Now), 0, keptLogBytes(c.Tx)
	for _, l := range p.Logs {
		key := logDueKey(c.Cmd.Actor.ID, l.Run)
		r, there := entity.RunTable.Get(c.Tx, c.Cmd.Company, l.Run)
		of, due := c.Get(key)
		switch {
		case l.Late != nil:
			if !there || r.Node != c.Cmd.Actor.ID || r.Status.Live() || r.Decisions != nil {
				continue
			}
			if !core.IsHash(l.Late.SHA256) || l.Late.Bytes < 0 {
				return nil, ledger.Refuse(ledger.Invalid, nil, "late: a decision log has a size and a SHA-256")
			}
			d := *l.Late
			d.Late, d.KeptAt, d.Lost = true, 0, 0
			r.Decisions = &d
			entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
			dueLog(c, r) // its copies follow
			kept++
			continue
		case !due || ledger.CompanyID(of) != c.Cmd.Company:
			continue // another command reported it
		}
		c.Delete(key)
		if !there {
			continue
		}
		was := keptBytes(r)
		if err := keepLog(c, &r, l); err != nil {
			return nil, err
		}
		if size := keptBytes(r); size > was {
			entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
			c.Set(entity.LogKeptKey(now, r.ID), []byte(string(r.Company)+" "+strconv.FormatInt(size, 10)))
			total += size - was
			kept++
		}
	}
	c.Set(logTotalKey, []byte(strconv.FormatInt(total, 10)))
	c.Record(ledger.Change{Action: "heartbeat.run.logs_kept", EntityType: "company", EntityID: string(c.Cmd.Company),
		Details: core.Object{}.Int("kept", int64(kept)).Int("asked", int64(len(p.Logs))).
			Str("nodeId", c.Cmd.Actor.ID).Close()})
	return nil, nil
}

// keepLog notes which nodes have the logs of a run.
func keepLog(c *ledger.Context, r *entity.Run, l KeptLog) error {
	now, was := core.TimeOf(c.Now), keptOf(*r)
	keep := func(hash string, bytes int64, nodes []string) error {
		if err := CheckBlob(hash, bytes, nodes); err != nil {
			return err
		}
		RefBlob(c.Tx, r.Company, hash, bytes, nodes)
		if was > 0 {
			c.Delete(entity.LogKeptKey(was, r.ID)) // what is kept of a run has one row
		}
		return nil
	}
	if len(l.Nodes) > 0 && r.LogBytes != nil && r.LogKeptAt == 0 {
		if err := keep(string(r.LogSHA256), *r.LogBytes, l.Nodes); err != nil {
			return err
		}
		r.LogKeptAt = now
	}
	if d := r.Decisions; len(l.Decided) > 0 && d != nil && d.KeptAt == 0 {
		if err := keep(d.SHA256, d.Bytes, l.Decided); err != nil {
			return err
		}
		r.Decisions = new(*d)
		r.Decisions.KeptAt = now
	}
	return nil
}

// keptBytes returns how much is kept of a run's logs.
func keptBytes(r entity.Run) (size int64) {
	if r.LogKeptAt != 0 && r.LogBytes != nil {
		size = *r.LogBytes
	}
	if d := r.Decisions; d != nil && d.KeptAt != 0 {
		size += d.Bytes
	}
	return size
}

// keptOf returns since when something of a run's logs is kept, 0 for nothing.
func keptOf(r entity.Run) core.Time {
	if r.Decisions != nil {
		return max(r.LogKeptAt, r.Decisions.KeptAt)
	}
	return r.LogKeptAt
}

func keptLogBytes(tx *ledger.Tx) int64 {
	b, _ := tx.Get(logTotalKey)
	n, _ := strconv.ParseInt(string(b), 10, 64)
	return n
}

// A LogRetention says how long, and how much of, the logs of runs are kept.
type LogRetention struct {
	Days  int64 `json:"days"`
	Bytes int64 `json:"maxBytes"`
}

// LogRetentionOf returns the setting of the mesh.
func LogRetentionOf(tx *ledger.Tx) LogRetention {
	s := struct {
		Keep LogRetention `json:"runLogRetention"`
	}{LogRetention{DefaultLogDays, DefaultLogBytes}}
	_ = json.Unmarshal(SettingsOf(tx, "general").Values, &s) // the API checked it
	return s.Keep
}

type keptLog struct {
	key     string
	company ledger.CompanyID
	run     string
	size    int64
}

// surplusLogs returns the oldest logs that exceed the retention.
func surplusLogs(tx *ledger.Tx, now core.Time, n int) (out []keptLog) {
	keep, total := LogRetentionOf(tx), keptLogBytes(tx)
	before := now - core.Time(keep.Days*int64(24*time.Hour/time.Millisecond))
	prefix := ledger.Key("run-log-kept", "")
	for k, v := range tx.Prefix(prefix) {
		at, run, _ := strings.Cut(string(k[len(prefix):]), "/")
		of, size, _ := strings.Cut(string(v), " ")
		l := keptLog{key: string(k), company: ledger.CompanyID(of), run: run}
		l.size, _ = strconv.ParseInt(size, 10, 64)
		if total <= keep.Bytes && at >= ledger.Order(uint64(max(before, 0))) || len(out) == n {
			break
		}
		out = append(out, l)
		total -= l.size
	}
	return out
}

// LogsToSweep reports whether stored logs exceed the retention.
func LogsToSweep(tx *ledger.Tx, now core.Time) bool { return len(surplusLogs(tx, now, 1)) > 0 }

func sweepLogs(c *ledger.Context, _ SweepLogs) (any, error) {
	list, total := surplusLogs(c.Tx, core.TimeOf(c.Now), MaxKeptLogs), keptLogBytes(c.Tx)
	for _, l := range list {
		c.Delete([]byte(l.key))
		total -= l.size
		if r, ok := entity.RunTable.Get(c.Tx, l.company, l.run); ok {
			if r.LogKeptAt != 0 {
				UnrefBlob(c.Tx, r.Company, string(r.LogSHA256))
				r.LogKeptAt = 0
			}
			if d := r.Decisions; d != nil && d.KeptAt != 0 {
				UnrefBlob(c.Tx, r.Company, d.SHA256)
				r.Decisions = new(*d)
				r.Decisions.KeptAt = 0
			}
			entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
		}
	}
	if len(list) > 0 {
		c.Set(logTotalKey, []byte(strconv.FormatInt(max(total, 0), 10)))
		c.Record(ledger.Change{Action: "instance.run_logs_swept", EntityType: "instance_settings", EntityID: "general",
			Details: core.Object{}.Int("logs", int64(len(list))).Close()})
	}
	return nil, nil
}

// forgetLog removes what is stored about a run's log outside its company.
func forgetLog(tx *ledger.Tx, r entity.Run) {
	tx.Delete(logDueKey(r.Node, r.ID))
	if keptOf(r) == 0 {
		return
	}
	tx.Delete(entity.LogKeptKey(keptOf(r), r.ID))
	if r.LogKeptAt != 0 {
		tx.Delete(entity.BlobKey(string(r.LogSHA256), r.Company))
	}
	if d := r.Decisions; d != nil && d.KeptAt != 0 {
		tx.Delete(entity.BlobKey(d.SHA256, r.Company))
	}
	tx.Set(logTotalKey, []byte(strconv.FormatInt(max(keptLogBytes(tx)-keptBytes(r), 0), 10)))
}
