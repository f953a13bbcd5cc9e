package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/company/transfer"
	"github.com/selvage-mesh/selvage/ledger"
)

// With ?async=1 an import is a job. The node reads and checks the request, answers with
// the job's ID, and then carries it out. The job is a row of the state
// (company.ImportJob): any node reports its progress, and the leader fails it when its
// node is lost.

const (
	// importJobTime bounds a job: fetching the package, and storing its files on their
	// nodes.
	importJobTime = 10 * time.Minute
	// importJobBeat is how often a job's lease is renewed: several times in a lease.
	importJobBeat = transfer.ImportJobLease / 8
	// importJobLast bounds how long a node that stops waits to record the end of a job.
	importJobLast = 2 * time.Second
	// importJobPoll is the interval at which a client is to poll, in milliseconds.
	importJobPoll = 1000
)

type (
	jobRef struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	}
	// JobAccepted names a job that was started.
	JobAccepted struct {
		Error string `json:"error,omitempty"` // with 409: the same import is running already
		Job   jobRef `json:"job"`
		URL   string `json:"statusUrl"`
		Retry int    `json:"retryAfterMs"`
	}
	// JobState is the state of a job. The error is in three members, because clients read
	// different ones.
	JobState struct {
		Job struct {
			jobRef
			CreatedAt core.Time        `json:"createdAt"`
			UpdatedAt core.Time        `json:"updatedAt"`
			EndedAt   *core.Time       `json:"completedAt,omitempty"`
			Progress  *api.JobProgress `json:"progress,omitempty"` // while it runs
			Error     *jobError        `json:"error,omitempty"`
			Summary   json.RawMessage  `json:"result,omitempty"`
			Result    json.RawMessage  `json:"importResult,omitempty"`
		} `json:"job"`
		Retry   int    `json:"retryAfterMs,omitempty"` // while it runs
		Error   string `json:"error,omitempty"`
		Message string `json:"message,omitempty"`
		Reason  string `json:"reason,omitempty"`
	}
	jobError struct {
		Message string `json:"message"`
	}
	jobSummary struct {
		Company  ledger.CompanyID `json:"companyId"`
		Agents   int              `json:"agentCount"`
		Warnings int              `json:"warningCount"`
		Action   string           `json:"companyAction"`
	}
)

func jobURL(id string) string { return "/api/companies/import/jobs/" + id }

func accepted(id string) JobAccepted {
	return JobAccepted{Job: jobRef{id, transfer.JobRunning}, URL: jobURL(id), Retry: importJobPoll}
}

// summary returns the outcome of an import in short.
func (done *Imported) summary() jobSummary {
	return jobSummary{done.Company.ID, len(done.Agents), len(done.Warnings), done.Company.Action}
}

// importAsJob starts an import as a job and answers with its ID.
func importAsJob(rc *api.Request) (api.Response, error) {
	s := rc.Server
	select {
	case s.ImportJobs <- struct{}{}:
	default:
		return api.Response{}, api.Unavailable("This node carries out as many imports as it may; try again")
	}
	started := false
	defer func() {
		if !started {
			<-s.ImportJobs
		}
	}()
	if err := takeImport(rc); err != nil { // jobs share the limit on packages in memory with previews and imports
		return api.Response{}, err
	}
	body, files, err := bodyOfImport(rc)
	<-s.Imports
	if err != nil {
		return api.Response{}, err
	}
	id := "import-" + rc.Ids()()
	if _, ok, err := importJob(rc, id); err != nil {
		return api.Response{}, err
	} else if ok { // an earlier request with this Idempotency-Key
		return api.Reply(http.StatusAccepted, accepted(id)), nil
	}
	signature := sha256.New()
	raw, _ := rc.RawBody()
	fmt.Fprintf(signature, "%q", rc.HTTP.URL.RequestURI())
	signature.Write(raw)
	_, err = rc.Submit(transfer.KindImportJobBegin, "", transfer.BeginImportJob{ID: id, Node: string(s.Cfg.NodeID),
		Signature: hex.EncodeToString(signature.Sum(nil))})
	if r, ok := errors.AsType[*ledger.Refusal](err); ok {
		var at struct {
			Job string `json:"jobId"`
		}
		if r.Code == ledger.Conflict && json.Unmarshal(r.Detail, &at) == nil && at.Job != "" {
			out := accepted(at.Job)
			out.Error = r.Message
			return api.Reply(http.StatusConflict, out), nil
		}
	}
	if err != nil {
		return api.Response{}, err
	}
	started = true
	ctx, cancel := context.WithTimeout(s.Ctx, importJobTime)
	job := detached(rc, ctx)
	s.Wg.Go(func() {
		defer cancel()
		defer func() { <-s.ImportJobs }()
		carryOut(job, id, body, files)
	})
	return api.Reply(http.StatusAccepted, accepted(id)), nil
}

// detached returns a request by the same caller that outlives rc. It has no body, no
// answer, and no Idempotency-Key.
func detached(rc *api.Request, ctx context.Context) *api.Request {
	r := rc.HTTP.Clone(ctx)
	r.Body = http.NoBody
	r.Header.Del(api.HeaderIdempotency)
	out := *rc
	out.HTTP, out.W, out.Body, out.HasBody, out.Submits, out.Waits = r, nowhere{}, nil, true, 0, true
	return &out
}

// nowhere discards an answer.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) WriteHeader(int)             {}

// carryOut runs a job to its end and records its progress. If it can not record the end
// (the node stops, the caller has lost the permission), the leader ends the job.
func carryOut(rc *api.Request, id string, body importBody, files portable.Files) {
	rc.Job, rc.Pace = id, &api.Pace{}
	rc.Pace.Set("reading", 0)
	ctx, stop := context.WithCancel(rc.Context())
	var beats sync.WaitGroup
	beat := detached(rc, ctx) // before the goroutine starts: a request belongs to one goroutine
	beats.Go(func() { tell(beat, id) })
	err := func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				rc.Server.Log.Error("import job", "job", id, "panic", p)
				err = errors.New("panic")
			}
		}()
		im, err := planWhenFree(rc, body, files)
		if err != nil {
			return err
		}
		_, err = im.carryOut(rc)
		return err
	}()
	stop()
	beats.Wait()
	if err == nil {
		return // company.import has ended the job
	}
	why := "The import failed for a reason inside the node; its log has it under " + rc.ID
	if rc.Server.Ctx.Err() != nil {
		why = "The node that carried the import out was stopped, and nothing of it was applied; import again"
	} else if rc.Context().Err() != nil {
		why = "The import took longer than " + importJobTime.String() + ", and nothing of it was applied"
	} else if r, ok := errors.AsType[*ledger.Refusal](err); ok {
		why = r.Message
	} else {
		rc.Server.Log.Warn("import job", "job", id, "request", rc.ID, "error", err)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(rc.Context()), importJobLast)
	defer cancel()
	if _, err := detached(rc, last).Submit(transfer.KindImportJobFail, "", transfer.FailImportJob{ID: id,
		Error: why}); err != nil {
		rc.Server.Log.Warn("end of an import job", "job", id, "error", err)
	}
}

// planWhenFree plans an import as soon as a slot is free.
func planWhenFree(rc *api.Request, body importBody, files portable.Files) (*importer, error) {
	if err := takeImport(rc); err != nil {
		return nil, err
	}
	defer func() { <-rc.Server.Imports }()
	return planImport(rc, body, files)
}

// tell renews a job's lease until its context ends.
func tell(rc *api.Request, id string) {
	for tick := time.NewTicker(importJobBeat); ; {
		select {
		case <-rc.Context().Done():
			tick.Stop()
			return
		case <-tick.C:
			at := rc.Pace.Now()
			if _, err := rc.Submit(transfer.KindImportJobProgress, "", transfer.TellImportJob{ID: id, Phase: at.Phase,
				Done: at.Done, Total: at.Total}); err != nil {
				rc.Server.Log.Debug("progress of an import job", "job", id, "error", err)
			}
		}
	}
}

// importJob returns a job if it is the caller's.
func importJob(rc *api.Request, id string) (j transfer.ImportJob, ok bool, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		j, ok = transfer.ImportJobOf(tx, id, rc.Actor.ID)
		return nil
	})
	return j, ok, err
}

func readImportJob(rc *api.Request) (api.Response, error) {
	j, ok, err := importJob(rc, strings.ToLower(rc.Path("jobId")))
	if err != nil {
		return api.Response{}, err
	}
	if !ok {
		return api.Response{}, api.NotFound("Import job not found")
	}
	var out JobState
	out.Job.jobRef, out.Job.CreatedAt, out.Job.UpdatedAt = jobRef{j.ID, j.Status}, j.CreatedAt, j.UpdatedAt
	out.Job.Summary, out.Job.Result = j.Summary, j.Result
	if j.Status == transfer.JobRunning {
		out.Retry, out.Job.Progress = importJobPoll, &api.JobProgress{Phase: j.Phase, Done: j.Done, Total: j.Total}
	} else {
		out.Job.EndedAt = &j.EndedAt
	}
	if j.Error != "" {
		out.Job.Error = &jobError{j.Error}
		out.Error, out.Message, out.Reason = j.Error, j.Error, j.Error
	}
	return api.OK(out), nil
}
