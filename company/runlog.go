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

// dueLog notes that the run's node must store its log.
func dueLog(c *ledger.Context, r entity.Run) {
	if r.LogBytes != nil && *r.LogBytes > 0 && core.IsHash(string(r.LogSHA256)) && r.LogKeptAt == 0 {
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
		if of, ok := c.Get(key); !ok || ledger.CompanyID(of) != c.Cmd.Company {
			continue // another command reported it
		}
		c.Delete(key)
		r, ok := entity.RunTable.Get(c.Tx, c.Cmd.Company, l.Run)
		if !ok || len(l.Nodes) == 0 || r.LogBytes == nil || r.LogKeptAt != 0 {
			continue
		}
		if err := CheckBlob(string(r.LogSHA256), *r.LogBytes, l.Nodes); err != nil {
			return nil, err
		}
		RefBlob(c.Tx, r.Company, string(r.LogSHA256), *r.LogBytes, l.Nodes)
		r.LogKeptAt = now
		entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
		c.Set(entity.LogKeptKey(now, r.ID), []byte(string(r.Company)+" "+strconv.FormatInt(*r.LogBytes, 10)))
		total += *r.LogBytes
		kept++
	}
	c.Set(logTotalKey, []byte(strconv.FormatInt(total, 10)))
	c.Record(ledger.Change{Action: "heartbeat.run.logs_kept", EntityType: "company", EntityID: string(c.Cmd.Company),
		Details: core.Object{}.Int("kept", int64(kept)).Int("asked", int64(len(p.Logs))).
			Str("nodeId", c.Cmd.Actor.ID).Close()})
	return nil, nil
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
			UnrefBlob(c.Tx, r.Company, string(r.LogSHA256))
			r.LogKeptAt = 0
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
	if r.LogKeptAt == 0 || r.LogBytes == nil {
		return
	}
	tx.Delete(entity.LogKeptKey(r.LogKeptAt, r.ID))
	tx.Delete(entity.BlobKey(string(r.LogSHA256), r.Company))
	tx.Set(logTotalKey, []byte(strconv.FormatInt(max(keptLogBytes(tx)-*r.LogBytes, 0), 10)))
}
