package apitest

import (
	"encoding/json"
	"testing"
	"time"

	apitransfer "github.com/selvage-mesh/selvage/api/transfer"
)

// JobEnd follows a job that was accepted to its end.
func (h *Harness) JobEnd(t testing.TB, a Answer) (s apitransfer.JobState) {
	t.Helper()
	var in apitransfer.JobAccepted
	if err := json.Unmarshal(a.Want(t, 202, "").Body, &in); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		s = apitransfer.JobState{}
		if err := json.Unmarshal(h.Call("GET", in.URL, "").Want(t, 200, in.Job.ID).Body, &s); err != nil {
			t.Fatal(err)
		}
		if s.Job.Status != "running" {
			return s
		}
	}
	t.Fatalf("job %s does not end", in.Job.ID)
	return s
}
