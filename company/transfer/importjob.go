package transfer

import (
	"cmp"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// An ImportJob is an import that continues after its request was answered. One node executes
// it and reports every few seconds; from the row, all nodes can tell its progress.
// The import itself is still one company.import, which also ends the job. A company.import
// whose job is over is refused, so a job that was failed because its node was silent leaves
// no rows.
type ImportJob struct {
	ID        string    `cbor:"1,keyasint"` // import-<UUID>
	By        string    `cbor:"2,keyasint"` // the user who asked for it; shown to nobody else
	Node      string    `cbor:"3,keyasint"`
	Signature string    `cbor:"4,keyasint"` // SHA-256 of the request
	Status    string    `cbor:"5,keyasint"` // running, succeeded or failed
	Phase     string    `cbor:"6,keyasint,omitempty"`
	Done      int64     `cbor:"7,keyasint,omitempty"` // of Total, in the current phase
	Total     int64     `cbor:"8,keyasint,omitempty"`
	Error     string    `cbor:"9,keyasint,omitempty"`
	CreatedAt core.Time `cbor:"10,keyasint"`
	UpdatedAt core.Time `cbor:"11,keyasint"`
	EndedAt   core.Time `cbor:"12,keyasint,omitempty"`
	// Summary and Result are JSON: a summary of the result, and the whole result if it is not
	// too long.
	Summary []byte `cbor:"13,keyasint,omitempty"`
	Result  []byte `cbor:"14,keyasint,omitempty"`
}

// Clone returns a copy that shares no memory with j, as the ledger's cache of
// decoded rows needs it.
func (j ImportJob) Clone() ImportJob {
	j.Summary, j.Result = append([]byte(nil), j.Summary...), append([]byte(nil), j.Result...)
	return j
}

// States of import jobs. Persisted: do not rename.
const (
	JobRunning   = "running"
	JobSucceeded = "succeeded"
	JobFailed    = "failed"
)

const (
	// MaxImportJobs bounds the running jobs of a mesh; each user may have one.
	MaxImportJobs = 32
	// KeptImportJobs bounds the number of finished jobs that are kept, ImportJobAge the time
	// for which one is kept.
	KeptImportJobs = 200
	ImportJobAge   = time.Hour
	// ImportJobLease is how long a node may fail to report on a job: several times the interval
	// of its reports, and longer than an election with its retries.
	ImportJobLease = 40 * time.Second
	// MaxImportResult bounds the stored JSON of a result, in bytes.
	MaxImportResult = 96 << 10
	// maxJobText bounds a phase and an error, in bytes.
	maxJobText = 1 << 10
)

var importJobs = ledger.NewMeshTable[string, ImportJob]("import-job")

// BeginImportJob is the payload of import_job.begin.
type BeginImportJob struct {
	ID        string `cbor:"1,keyasint"`
	Node      string `cbor:"2,keyasint"`
	Signature string `cbor:"3,keyasint"`
}

// TellImportJob is the payload of import_job.progress.
type TellImportJob struct {
	ID    string `cbor:"1,keyasint"`
	Phase string `cbor:"2,keyasint"`
	Done  int64  `cbor:"3,keyasint,omitempty"`
	Total int64  `cbor:"4,keyasint,omitempty"`
}

// FailImportJob is the payload of import_job.fail.
type FailImportJob struct {
	ID    string `cbor:"1,keyasint"`
	Error string `cbor:"2,keyasint"`
}

// SweepImportJobs is the payload of import_job.sweep. It fails the jobs whose node does not
// report, and deletes old finished jobs.
type SweepImportJobs struct{}

const (
	KindImportJobBegin    = "import_job.begin"
	KindImportJobProgress = "import_job.progress"
	KindImportJobFail     = "import_job.fail"
	KindImportJobSweep    = "import_job.sweep"
)

var importJobKinds = []company.Kind{
	{Name: KindImportJobBegin, From: company.FromBoard, Traits: company.Personal, Weight: company.Weights.SetUp,
		Do: ledger.Typed(beginImportJob)},
	{Name: KindImportJobProgress, From: company.FromBoard, Traits: company.Personal, Weight: company.Weights.SetUp,
		Do: ledger.Typed(tellImportJob)},
	{Name: KindImportJobFail, From: company.FromBoard, Traits: company.Personal, Weight: company.Weights.SetUp,
		Do: ledger.Typed(failImportJob)},
	{Name: KindImportJobSweep, From: company.FromNode, Weight: company.Weights.ByNodes, Do: ledger.Typed(sweepImportJobs)},
}

// ImportJobOf returns a job if by is the user who asked for it.
func ImportJobOf(tx *ledger.Tx, id, by string) (ImportJob, bool) {
	j, ok := importJobs.Get(tx, id)
	return j, ok && j.By == by
}

// over reports whether a job has to be failed or deleted at now.
func (j ImportJob) over(now core.Time) bool {
	if j.Status == JobRunning {
		return now-j.UpdatedAt > core.Time(ImportJobLease.Milliseconds())
	}
	return now-j.EndedAt > core.Time(ImportJobAge.Milliseconds())
}

// ImportJobsToSweep reports whether import_job.sweep has something to do.
func ImportJobsToSweep(tx *ledger.Tx, now core.Time) bool {
	for _, j := range importJobs.All(tx) {
		if j.over(now) {
			return true
		}
	}
	return false
}

func (j ImportJob) change(action string) ledger.Change {
	return ledger.Change{Action: action, EntityType: "import_job", EntityID: j.ID, Details: core.Object{}.Str("status",
		j.Status).Null("error", j.Error).Close()}
}

func (j ImportJob) end(status, why string, now core.Time) ImportJob {
	j.Status, j.Error, j.EndedAt, j.UpdatedAt = status, core.Snippet(why, maxJobText), now, now
	return j
}

// beginImportJob starts a job. A user may have one at a time.
func beginImportJob(c *ledger.Context, p BeginImportJob) (any, error) {
	running, oldest, kept := 0, ImportJob{}, 0
	for _, j := range importJobs.All(c.Tx) {
		switch {
		case j.ID == p.ID:
			return nil, ledger.Refuse(ledger.Conflict, nil, "There is an import job of this ID")
		case j.Status != JobRunning:
			if kept++; oldest.ID == "" || j.EndedAt < oldest.EndedAt {
				oldest = j
			}
		case j.By == c.Cmd.Actor.ID && j.Signature == p.Signature:
			return nil, ledger.Refuse(ledger.Conflict, core.Object{}.Str("jobId", j.ID).Str("status", j.Status).Close(),
				"An import is already running for this account")
		case j.By == c.Cmd.Actor.ID:
			return nil, ledger.Refuse(ledger.Conflict, nil,
				"A different import is already running for this account. Wait for it to finish before starting another.")
		default:
			running++
		}
	}
	switch {
	case len(p.ID) < 36 || len(p.ID) > 64 || len(p.Node) > 64 || len(p.Signature) != 64:
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed import job")
	case running >= MaxImportJobs:
		return nil, ledger.Refuse(ledger.TooMany, nil, "%d imports are running; try again when one has ended", running)
	case kept >= KeptImportJobs:
		importJobs.Delete(c.Tx, oldest.ID)
	}
	now := core.TimeOf(c.Now)
	j := ImportJob{ID: p.ID, By: c.Cmd.Actor.ID, Node: p.Node, Signature: p.Signature, Status: JobRunning,
		Phase: "reading", CreatedAt: now, UpdatedAt: now}
	importJobs.Put(c.Tx, j.ID, j)
	c.Record(j.change("import_job.started"))
	return j, nil
}

// runningJob returns a running job of the command's actor.
func runningJob(c *ledger.Context, id string) (ImportJob, error) {
	j, ok := ImportJobOf(c.Tx, id, c.Cmd.Actor.ID)
	if !ok {
		return j, ledger.Refuse(ledger.NotFound, nil, "Import job not found")
	}
	if j.Status != JobRunning {
		return j, ledger.Refuse(ledger.Conflict, core.Object{}.Str("jobId", j.ID).Str("status", j.Status).Close(),
			"The import job is over: %s", cmp.Or(j.Error, j.Status))
	}
	return j, nil
}

// tellImportJob stores the progress of a job. It adds no line to the activity log; the end
// of the job does.
func tellImportJob(c *ledger.Context, p TellImportJob) (any, error) {
	j, err := runningJob(c, p.ID)
	if err != nil {
		return nil, err
	}
	j.Phase, j.Done, j.Total, j.UpdatedAt = core.Snippet(p.Phase, maxJobText), max(p.Done, 0), max(p.Total, 0),
		core.TimeOf(c.Now)
	importJobs.Put(c.Tx, j.ID, j)
	return nil, nil
}

func failImportJob(c *ledger.Context, p FailImportJob) (any, error) {
	j, err := runningJob(c, p.ID)
	if err != nil {
		return nil, err
	}
	j = j.end(JobFailed, p.Error, core.TimeOf(c.Now))
	importJobs.Put(c.Tx, j.ID, j)
	c.Record(j.change("import_job.failed"))
	return nil, nil
}

func sweepImportJobs(c *ledger.Context, _ SweepImportJobs) (any, error) {
	now, failed, gone := core.TimeOf(c.Now), int64(0), []string(nil)
	for _, j := range importJobs.All(c.Tx) {
		switch {
		case !j.over(now):
		case j.Status == JobRunning:
			failed++
			importJobs.Put(c.Tx, j.ID, j.end(JobFailed,
				"The node that carried the import out was lost, and nothing of it was applied; import again", now))
		default:
			gone = append(gone, j.ID)
		}
	}
	for _, id := range gone {
		importJobs.Delete(c.Tx, id)
	}
	if failed > 0 || len(gone) > 0 {
		c.Record(ledger.Change{Action: "import_job.swept", EntityType: "mesh", EntityID: string(c.Mesh),
			Details: core.Object{}.Int("failed", failed).Int("forgotten", int64(len(gone))).Close()})
	}
	return nil, nil
}
