package entity

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// maxQueueRead bounds the keys that one look reads from a company's queue: those of forty
	// agents with as many live runs as they may have.
	maxQueueRead = 40 * MaxLiveRuns
)

func QueueKey(r Run) []byte {
	turn := r.Turn
	if turn == 0 {
		turn = r.Queue
	}
	return ledger.Key("sched", "queue", string(r.Company), ledger.Order(turn), r.ID)
}

func QueueValue(r Run) []byte {
	return strconv.AppendInt(append([]byte(r.Agent), ' '), int64(r.ScheduledRetryAt), 10)
}

// A Depth is how much waits in the queue of runs.
type Depth struct {
	Queued  int           // they wait for a node, for their agent, or for the end of another run
	Retries int           // their time has not come
	Oldest  time.Duration // how long the oldest queued run has waited
}

const (
	// maxQueueCounted bounds the runs of one company that QueueDepth counts, and
	// queueOldest those of which it reads how long they have waited: the first of the
	// queue have waited longest, but for what is urgent, which is never many.
	maxQueueCounted = 10_000
	queueOldest     = 20
)

// QueueDepth counts the runs that wait, for figures.
func QueueDepth(tx *ledger.Tx, now core.Time) (d Depth) {
	prefix := ledger.Key("sched", "queue", "")
	for from := prefix; ; {
		of, n := "", 0
		for k, v := range tx.Scan(from, ledger.PrefixEnd(prefix), false) {
			company, run := parseQueueKey(k[len(prefix):])
			if of == "" {
				of = string(company)
			}
			if company != ledger.CompanyID(of) || n == maxQueueCounted {
				break
			}
			n++
			_, after, _ := strings.Cut(string(v), " ")
			if at, _ := strconv.ParseInt(after, 10, 64); core.Time(at) > now {
				d.Retries++
				continue
			}
			d.Queued++
			if n > queueOldest {
				continue
			}
			if r, ok := RunTable.Get(tx, company, run); ok {
				waited := time.Duration(max(now-max(r.CreatedAt, r.ScheduledRetryAt), 0)) * time.Millisecond
				d.Oldest = max(d.Oldest, waited)
			}
		}
		if of == "" {
			return d
		}
		from = ledger.PrefixEnd(ledger.Key("sched", "queue", of, ""))
	}
}

func parseQueueKey(rest []byte) (company ledger.CompanyID, run string) {
	of, ref, _ := strings.Cut(string(rest), "/")
	_, id, _ := strings.Cut(ref, "/")
	return ledger.CompanyID(of), id
}

// QueuedRuns returns up to limit queued runs whose agents have room for them: one of each
// company in turn, in the order of each company's queue. It begins after the company last,
// so that all companies are served. perCompany bounds the runs of one company. A run that
// waits for its own agent, or for the end of another run, is skipped and blocks no other.
func QueuedRuns(tx *ledger.Tx, now core.Time, last ledger.CompanyID, limit, perCompany int) []Run {
	type queue struct {
		company ledger.CompanyID
		runs    []Run
	}
	var queues []queue
	prefix := ledger.Key("sched", "queue", "")
	for from := prefix; ; {
		var q queue
		read := 0
		room := map[string]int{} // by agent
		for k, v := range tx.Scan(from, ledger.PrefixEnd(prefix), false) {
			of, run := parseQueueKey(k[len(prefix):])
			if q.company == "" {
				q.company = of
			}
			if of != q.company || read == maxQueueRead || len(q.runs) == perCompany {
				break
			}
			read++
			agent, after, told := strings.Cut(string(v), " ")
			var r Run
			if !told {
				var ok bool
				if r, ok = RunTable.Get(tx, of, run); !ok {
					continue
				}
				agent, after = r.Agent, strconv.FormatInt(int64(r.ScheduledRetryAt), 10)
			}
			if at, _ := strconv.ParseInt(after, 10, 64); core.Time(at) > now {
				continue
			}
			left, known := room[agent]
			if !known {
				left = RoomForRuns(tx, of, agent)
			}
			if room[agent] = left - 1; left <= 0 {
				continue
			}
			if told {
				var ok bool
				if r, ok = RunTable.Get(tx, of, run); !ok {
					continue
				}
			}
			if string(QueueKey(r)) != string(k) || r.Session != 0 || !r.Status.Live() {
				room[agent]++
				continue
			}
			if r.Deferred(tx) || r.HeldUp(tx) {
				room[agent]++
				continue
			}
			q.runs = append(q.runs, r)
		}
		if q.company == "" {
			break
		}
		queues = append(queues, q)
		from = ledger.PrefixEnd(ledger.Key("sched", "queue", string(q.company), ""))
	}
	if n := slices.IndexFunc(queues, func(q queue) bool { return q.company > last }); n > 0 {
		queues = slices.Concat(queues[n:], queues[:n])
	}
	var out []Run
	for n, more := 0, true; more && len(out) < limit; n++ {
		more = false
		for _, q := range queues {
			if n < len(q.runs) && len(out) < limit {
				out, more = append(out, q.runs[n]), true
			}
		}
	}
	return out
}

// HeldUp reports whether an ended run still holds the issue of r, because its node has not
// confirmed that its processes are gone. It lasts until the node confirms, or is lost.
func (r Run) HeldUp(tx *ledger.Tx) bool {
	if r.Context.IssueID == "" {
		return false
	}
	i, ok := IssueTable.Get(tx, r.Company, r.Context.IssueID)
	if !ok || i.CheckoutRun == "" || i.CheckoutRun == r.ID {
		return false
	}
	holder, ok := RunTable.Get(tx, r.Company, i.CheckoutRun)
	return ok && holder.Owed && !holder.Status.Live()
}

// RoomForRuns returns how many more runs of an agent may run. A deleted or stopped agent has
// room for all, so that its queued runs are started and then cancelled.
func RoomForRuns(tx *ledger.Tx, company ledger.CompanyID, agent string) int {
	a, ok := Wakeable(tx, company, agent)
	if !ok || a.Stopped(tx) != "" {
		return MaxLiveRuns
	}
	return a.Policy().MaxConcurrentRuns - PlacedRuns(tx, a)
}
