package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/company/transfer"
	"github.com/selvage-mesh/selvage/ledger"
)

// jobEnd follows a job that was accepted to its end.
func (h *harness) jobEnd(t testing.TB, a answer) (s jobState) {
	t.Helper()
	var in jobAccepted
	if err := json.Unmarshal(a.want(t, 202, "").body, &in); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		s = jobState{}
		if err := json.Unmarshal(h.call("GET", in.URL, "").want(t, 200, in.Job.ID).body, &s); err != nil {
			t.Fatal(err)
		}
		if s.Job.Status != "running" {
			return s
		}
	}
	t.Fatalf("job %s does not end", in.Job.ID)
	return s
}

// A source answers packages only when it is told to, so that imports of it go on.
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

// What is asked for is answered before it is carried out, once for each person at a
// time; its end is seen by whoever asked, and by nobody else.
func TestAnImportJobGoesOnAfterItsAnswer(t *testing.T) {
	t.Parallel()
	src := newSource(t)
	h := newHarness(t, func(c *Config) { c.GitHubArchives = src.url })
	job := h.call("POST", "/api/companies/import?async=1", fromSource).want(t, 202, `"retryAfterMs":1000`)
	<-src.asked
	var in jobAccepted
	if err := json.Unmarshal(job.body, &in); err != nil {
		t.Fatal(err)
	}
	h.call("GET", in.URL, "").want(t, 200, `"progress":{"phase":"reading"`)
	h.call("POST", "/api/companies/import?async=1", fromSource).want(t, 409, in.Job.ID)
	h.call("POST", "/api/companies/import?async=1", strings.Replace(fromSource, "slow", "other", 1)).want(t, 409, "A different import is already running")
	h.call("POST", "/api/companies/import?async=1", `{"source":{"type":"inline"}}`).want(t, 400, "target")
	h.call("GET", "/api/companies/import/jobs/import-"+NewID(), "").want(t, 404, "Import job not found")
	view(t, h, func(tx *ledger.Tx) {
		if _, ok := transfer.ImportJobOf(tx, in.Job.ID, "somebody-else"); ok {
			t.Error("a job is shown to others")
		}
	})
	close(src.answer)
	if end := h.jobEnd(t, job); end.Job.Status != "failed" || !strings.Contains(end.Error, "no such repository") || end.Job.EndedAt == nil {
		t.Errorf("%+v", end)
	}
	// When it is over the next may begin, and the same key gives the same job.
	files, _ := portable.Starter("software-studio")
	body := importOf(t, exported{Files: files}, `{"mode":"new_company","newCompanyName":"Studio"}`, "")
	made := h.call("POST", "/api/companies/import?async=1", body, "Idempotency-Key: j1")
	end := h.jobEnd(t, made)
	var done imported
	if err := json.Unmarshal(end.Job.Result, &done); err != nil || end.Job.Status != "succeeded" || done.Company.Action != "created" {
		t.Errorf("%+v %v", end, err)
	}
	if !strings.Contains(string(end.Job.Summary), `"companyId":"`+done.Company.ID+`"`) {
		t.Errorf("in short: %s", end.Job.Summary)
	}
	if again := h.call("POST", "/api/companies/import?async=1", body, "Idempotency-Key: j1").want(t, 202, ""); string(again.body) != string(made.body) {
		t.Errorf("a repetition answers %s, the first %s", again.body, made.body)
	}
	if n := strings.Count(string(h.call("GET", "/api/companies", "").body), `"issuePrefix"`); n != 1 {
		t.Errorf("%d companies, want 1", n)
	}
}

// A job whose node dies ends as failed wherever it is asked for, and what its node
// may still send changes nothing.
func TestAJobOfALostNodeFails(t *testing.T) {
	t.Parallel()
	src := newSource(t)
	lost := newHarness(t, func(c *Config) { c.GitHubArchives = src.url })
	other := newHarnessOn(t, lost.node)
	var in jobAccepted
	if err := json.Unmarshal(lost.call("POST", "/api/companies/import?async=1", fromSource).want(t, 202, "").body, &in); err != nil {
		t.Fatal(err)
	}
	<-src.asked
	lost.node.setFail(errors.New("nobody is reached any more"))
	lost.Close()
	lost.node.setFail(nil)
	other.call("GET", in.URL, "").want(t, 200, `"status":"running"`)
	sweep := func() {
		self := string(lost.node.keys.ID())
		other.submitAs(ledger.Actor{Type: "node", ID: self}, ledger.Credential{Kind: "node", ID: self}, "import_job.sweep", "", transfer.SweepImportJobs{})
	}
	sweep()
	other.call("GET", in.URL, "").want(t, 200, `"status":"running"`)
	lost.node.pass(transfer.ImportJobLease + time.Second)
	sweep()
	other.call("GET", in.URL, "").want(t, 200, "was lost, and nothing of it was applied")
	// The import of a job that was given up is refused as a whole.
	name, id := "Late", NewID()
	r, err := lost.node.Submit(t.Context(), ledger.Command{Kind: "company.import", Company: id, Actor: ledger.Actor{Type: "user", ID: LocalBoard}, Credential: ledger.Credential{Kind: "local"},
		Payload: ledger.Marshal(transfer.ImportCompany{Job: in.Job.ID, New: true,
			Steps: []transfer.ImportStep{{Kind: "company.create", Payload: ledger.Marshal(company.SaveCompany{ID: id, Name: &name})}}})})
	if err != nil || r.Refusal == nil || r.Refusal.Code != ledger.Conflict {
		t.Errorf("a late import: %+v %v", r, err)
	}
	if got := other.call("GET", "/api/companies", ""); strings.Contains(string(got.body), "Late") {
		t.Errorf("left behind: %s", got.body)
	}
	// In an hour it is forgotten.
	lost.node.pass(transfer.ImportJobAge + time.Second)
	sweep()
	other.call("GET", in.URL, "").want(t, 404, "Import job not found")
}

// A node that stops says at once what becomes of its jobs.
func TestAJobOfANodeThatStopsFails(t *testing.T) {
	t.Parallel()
	src := newSource(t)
	h := newHarness(t, func(c *Config) { c.GitHubArchives = src.url })
	job := h.call("POST", "/api/companies/import?async=1", fromSource)
	<-src.asked
	other := newHarnessOn(t, h.node)
	h.Close()
	if end := other.jobEnd(t, job); end.Job.Status != "failed" || !strings.Contains(end.Error, "was stopped") {
		t.Errorf("%+v", end)
	}
}
