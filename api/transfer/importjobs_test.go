package transfer_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	apitransfer "github.com/selvage-mesh/selvage/api/transfer"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/company/transfer"
	"github.com/selvage-mesh/selvage/ledger"
)

// A source holds back the packages until it is released, so that imports of it stay
// running.
type source struct {
	asked, answer chan struct{}
	url           string
}

func newSource(t *testing.T) *source {
	s := &source{asked: make(chan struct{}, 8), answer: make(chan struct{})}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked <- struct{}{}
		select {
		case <-s.answer:
		case <-r.Context().Done():
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

const fromSource = `{"source":{"type":"github","url":"https://github.com/acme/slow"},"target":{"mode":"new_company"}}`

// The answer comes before the import. A person has one job at a time; its end is visible
// to that person only.
func TestAnImportJobGoesOnAfterItsAnswer(t *testing.T) {
	t.Parallel()
	src := newSource(t)
	h := apitest.NewHarness(t, func(c *api.Config) { c.GitHubArchives = src.url })
	job := h.Call("POST", "/api/companies/import?async=1", fromSource).Want(t, 202, `"retryAfterMs":1000`)
	<-src.asked
	var in apitransfer.JobAccepted
	if err := json.Unmarshal(job.Body, &in); err != nil {
		t.Fatal(err)
	}
	h.Call("GET", in.URL, "").Want(t, 200, `"progress":{"phase":"reading"`)
	h.Call("POST", "/api/companies/import?async=1", fromSource).Want(t, 409, in.Job.ID)
	h.Call("POST", "/api/companies/import?async=1", strings.Replace(fromSource, "slow", "other", 1)).
		Want(t, 409, "A different import is already running")
	h.Call("POST", "/api/companies/import?async=1", `{"source":{"type":"inline"}}`).Want(t, 400, "target")
	h.Call("GET", "/api/companies/import/jobs/import-"+api.NewID(), "").Want(t, 404, "Import job not found")
	apitest.View(t, h, func(tx *ledger.Tx) {
		if _, ok := transfer.ImportJobOf(tx, in.Job.ID, "somebody-else"); ok {
			t.Error("a job is shown to others")
		}
	})
	close(src.answer)
	if end := h.JobEnd(t, job); end.Job.Status != "failed" || !strings.Contains(end.Error, "no such repository") ||
		end.Job.EndedAt == nil {
		t.Errorf("%+v", end)
	}
	// When it has ended the next may start, and the same key returns the same job.
	files, _ := portable.Starter("software-studio")
	body := apitest.ImportOf(t, apitransfer.Exported{Files: files}, `{"mode":"new_company","newCompanyName":"Studio"}`, "")
	made := h.Call("POST", "/api/companies/import?async=1", body, "Idempotency-Key: j1")
	end := h.JobEnd(t, made)
	var done apitransfer.Imported
	if err := json.Unmarshal(end.Job.Result, &done); err != nil || end.Job.Status != "succeeded" ||
		done.Company.Action != "created" {
		t.Errorf("%+v %v", end, err)
	}
	if !strings.Contains(string(end.Job.Summary), `"companyId":"`+string(done.Company.ID)+`"`) {
		t.Errorf("in short: %s", end.Job.Summary)
	}
	if again := h.Call("POST", "/api/companies/import?async=1", body, "Idempotency-Key: j1").
		Want(t, 202, ""); string(again.Body) != string(made.Body) {
		t.Errorf("a repetition answers %s, the first %s", again.Body, made.Body)
	}
	if n := strings.Count(string(h.Call("GET", "/api/companies", "").Body), `"issuePrefix"`); n != 1 {
		t.Errorf("%d companies, want 1", n)
	}
}

// A job whose node dies fails on every node, and later commands of that node change
// nothing.
func TestAJobOfALostNodeFails(t *testing.T) {
	t.Parallel()
	src := newSource(t)
	lost := apitest.NewHarness(t, func(c *api.Config) { c.GitHubArchives = src.url })
	other := apitest.NewHarnessOn(t, lost.Node)
	var in apitransfer.JobAccepted
	if err := json.Unmarshal(lost.Call("POST", "/api/companies/import?async=1", fromSource).Want(t, 202, "").Body,
		&in); err != nil {
		t.Fatal(err)
	}
	<-src.asked
	lost.Node.SetFail(errors.New("nobody is reached any more"))
	lost.Close()
	lost.Node.SetFail(nil)
	other.Call("GET", in.URL, "").Want(t, 200, `"status":"running"`)
	sweep := func() {
		self := string(lost.Node.Keys.ID())
		other.SubmitAs(ledger.Actor{Type: "node", ID: self}, ledger.Credential{Kind: "node", ID: self}, "import_job.sweep",
			"", transfer.SweepImportJobs{})
	}
	sweep()
	other.Call("GET", in.URL, "").Want(t, 200, `"status":"running"`)
	lost.Node.Pass(transfer.ImportJobLease + time.Second)
	sweep()
	other.Call("GET", in.URL, "").Want(t, 200, "was lost, and nothing of it was applied")
	// The import of a job that the leader has failed is refused completely.
	name, id := "Late", ledger.CompanyID(api.NewID())
	r, err := lost.Node.Submit(t.Context(), ledger.Command{Kind: "company.import", Company: id,
		Actor: ledger.Actor{Type: "user", ID: api.LocalBoard}, Credential: ledger.Credential{Kind: "local"},
		Payload: ledger.Marshal(transfer.ImportCompany{Job: in.Job.ID, New: true,
			Steps: []transfer.ImportStep{{Kind: "company.create",
				Payload: ledger.Marshal(entity.SaveCompany{ID: id, Name: &name})}}})})
	if err != nil || r.Refusal == nil || r.Refusal.Code != ledger.Conflict {
		t.Errorf("a late import: %+v %v", r, err)
	}
	if got := other.Call("GET", "/api/companies", ""); strings.Contains(string(got.Body), "Late") {
		t.Errorf("left behind: %s", got.Body)
	}
	// An hour later the job is deleted.
	lost.Node.Pass(transfer.ImportJobAge + time.Second)
	sweep()
	other.Call("GET", in.URL, "").Want(t, 404, "Import job not found")
}

// A node that stops ends its jobs at once.
func TestAJobOfANodeThatStopsFails(t *testing.T) {
	t.Parallel()
	src := newSource(t)
	h := apitest.NewHarness(t, func(c *api.Config) { c.GitHubArchives = src.url })
	job := h.Call("POST", "/api/companies/import?async=1", fromSource)
	<-src.asked
	other := apitest.NewHarnessOn(t, h.Node)
	h.Close()
	if end := other.JobEnd(t, job); end.Job.Status != "failed" || !strings.Contains(end.Error, "was stopped") {
		t.Errorf("%+v", end)
	}
}
