package api

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

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/company/transfer"
	"github.com/selvage-mesh/selvage/ledger"
)

// With ?async=1 an import is a job: what is asked for is read and checked, then the
// answer names the job, and the node goes on. The job is a row of the mesh
// (company.ImportJob), so any node tells how far it is, and the leader ends it when
// its node is gone.

const (
	// importJobTime bounds a job: fetching a package, and bringing its files to
	// the nodes that shall have them.
	importJobTime = 10 * time.Minute
	// importJobBeat is how often a job is told of: several times in a lease.
	importJobBeat = transfer.ImportJobLease / 8
	// importJobLast is how long a node that stops waits to tell the end of a job.
	importJobLast = 2 * time.Second
	// importJobPoll is after what a client is to ask again, in milliseconds.
	importJobPoll = 1000
)

type (
	jobRef struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	}
	// A jobAccepted names a job that goes on.
	jobAccepted struct {
		Error string `json:"error,omitempty"` // of a 409: the same is running already
		Job   jobRef `json:"job"`
		URL   string `json:"statusUrl"`
		Retry int    `json:"retryAfterMs"`
	}
	// A jobState is what became of a job. The error stands in three places, as
	// clients look for it.
	jobState struct {
		Job struct {
			jobRef
			CreatedAt core.Time       `json:"createdAt"`
			UpdatedAt core.Time       `json:"updatedAt"`
			EndedAt   *core.Time      `json:"completedAt,omitempty"`
			Progress  *jobProgress    `json:"progress,omitempty"` // while it runs
			Error     *jobError       `json:"error,omitempty"`
			Summary   json.RawMessage `json:"result,omitempty"`
			Result    json.RawMessage `json:"importResult,omitempty"`
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
		Company  string `json:"companyId"`
		Agents   int    `json:"agentCount"`
		Warnings int    `json:"warningCount"`
		Action   string `json:"companyAction"`
	}
)

func jobURL(id string) string { return "/api/companies/import/jobs/" + id }

func accepted(id string) jobAccepted {
	return jobAccepted{Job: jobRef{id, transfer.JobRunning}, URL: jobURL(id), Retry: importJobPoll}
}

// summary is what came of an import in short.
func (done *imported) summary() jobSummary {
	return jobSummary{done.Company.ID, len(done.Agents), len(done.Warnings), done.Company.Action}
}

// importAsJob answers what is asked for with a job, and goes on with it.
func importAsJob(rc *Request) (Response, error) {
	s := rc.server
	select {
	case s.importJobs <- struct{}{}:
	default:
		return Response{}, Unavailable("This node carries out as many imports as it may; try again")
	}
	started := false
	defer func() {
		if !started {
			<-s.importJobs
		}
	}()
	if err := rc.takeImport(); err != nil { // to hold no more packages in memory than previews and imports together may
		return Response{}, err
	}
	body, files, err := rc.importBody()
	<-s.imports
	if err != nil {
		return Response{}, err
	}
	id := "import-" + rc.ids()()
	if _, ok, err := rc.importJob(id); err != nil {
		return Response{}, err
	} else if ok { // the same request, with its Idempotency-Key, came before
		return Reply(http.StatusAccepted, accepted(id)), nil
	}
	signature := sha256.New()
	raw, _ := rc.RawBody()
	fmt.Fprintf(signature, "%q", rc.HTTP.URL.RequestURI())
	signature.Write(raw)
	_, err = rc.Submit(transfer.KindImportJobBegin, "", transfer.BeginImportJob{ID: id, Node: string(s.cfg.NodeID), Signature: hex.EncodeToString(signature.Sum(nil))})
	if r, ok := errors.AsType[*ledger.Refusal](err); ok {
		var at struct {
			Job string `json:"jobId"`
		}
		if r.Code == ledger.Conflict && json.Unmarshal(r.Detail, &at) == nil && at.Job != "" {
			out := accepted(at.Job)
			out.Error = r.Message
			return Reply(http.StatusConflict, out), nil
		}
	}
	if err != nil {
		return Response{}, err
	}
	started = true
	ctx, cancel := context.WithTimeout(s.ctx, importJobTime)
	job := rc.detached(ctx)
	s.wg.Go(func() {
		defer cancel()
		defer func() { <-s.importJobs }()
		job.carryOut(id, body, files)
	})
	return Reply(http.StatusAccepted, accepted(id)), nil
}

// detached returns a request by the same caller that outlives this one: it has no
// body, no answer, and no Idempotency-Key.
func (rc *Request) detached(ctx context.Context) *Request {
	r := rc.HTTP.Clone(ctx)
	r.Body = http.NoBody
	r.Header.Del(headerIdempotency)
	out := *rc
	out.HTTP, out.w, out.body, out.hasBody, out.submits, out.waits = r, nowhere{}, nil, true, 0, true
	return &out
}

// nowhere takes an answer that nobody waits for.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) WriteHeader(int)             {}

// carryOut carries out a job to its end and tells the mesh how far it is. What
// keeps it from telling its end (the node stops, its caller may not do it any more)
// lets the leader end it.
func (rc *Request) carryOut(id string, body importBody, files portable.Files) {
	rc.job, rc.pace = id, &pace{}
	rc.pace.set("reading", 0)
	ctx, stop := context.WithCancel(rc.Context())
	var beats sync.WaitGroup
	beat := rc.detached(ctx) // before the two go their ways: a request belongs to one goroutine
	beats.Go(func() { beat.tell(id) })
	err := func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				rc.server.log.Error("import job", "job", id, "panic", p)
				err = errors.New("panic")
			}
		}()
		im, err := rc.planWhenFree(body, files)
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
	if rc.server.ctx.Err() != nil {
		why = "The node that carried the import out was stopped, and nothing of it was applied; import again"
	} else if rc.Context().Err() != nil {
		why = "The import took longer than " + importJobTime.String() + ", and nothing of it was applied"
	} else if r, ok := errors.AsType[*ledger.Refusal](err); ok {
		why = r.Message
	} else {
		rc.server.log.Warn("import job", "job", id, "request", rc.ID, "error", err)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(rc.Context()), importJobLast)
	defer cancel()
	if _, err := rc.detached(last).Submit(transfer.KindImportJobFail, "", transfer.FailImportJob{ID: id, Error: why}); err != nil {
		rc.server.log.Warn("end of an import job", "job", id, "error", err)
	}
}

// planWhenFree plans an import when it is the job's turn.
func (rc *Request) planWhenFree(body importBody, files portable.Files) (*importer, error) {
	if err := rc.takeImport(); err != nil {
		return nil, err
	}
	defer func() { <-rc.server.imports }()
	return planImport(rc, body, files)
}

// tell lets the mesh know, again and again, that a job goes on.
func (rc *Request) tell(id string) {
	for tick := time.NewTicker(importJobBeat); ; {
		select {
		case <-rc.Context().Done():
			tick.Stop()
			return
		case <-tick.C:
			at := rc.pace.now()
			if _, err := rc.Submit(transfer.KindImportJobProgress, "", transfer.TellImportJob{ID: id, Phase: at.Phase, Done: at.Done, Total: at.Total}); err != nil {
				rc.server.log.Debug("progress of an import job", "job", id, "error", err)
			}
		}
	}
}

// importJob returns a job of the caller's.
func (rc *Request) importJob(id string) (j transfer.ImportJob, ok bool, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		j, ok = transfer.ImportJobOf(tx, id, rc.Actor.ID)
		return nil
	})
	return j, ok, err
}

func readImportJob(rc *Request) (Response, error) {
	j, ok, err := rc.importJob(strings.ToLower(rc.Path("jobId")))
	if err != nil {
		return Response{}, err
	}
	if !ok {
		return Response{}, NotFound("Import job not found")
	}
	var out jobState
	out.Job.jobRef, out.Job.CreatedAt, out.Job.UpdatedAt = jobRef{j.ID, j.Status}, j.CreatedAt, j.UpdatedAt
	out.Job.Summary, out.Job.Result = j.Summary, j.Result
	if j.Status == transfer.JobRunning {
		out.Retry, out.Job.Progress = importJobPoll, &jobProgress{j.Phase, j.Done, j.Total}
	} else {
		out.Job.EndedAt = &j.EndedAt
	}
	if j.Error != "" {
		out.Job.Error = &jobError{j.Error}
		out.Error, out.Message, out.Reason = j.Error, j.Error, j.Error
	}
	return OK(out), nil
}
