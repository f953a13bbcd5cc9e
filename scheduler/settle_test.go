package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
)

// A company is paused, or archived, while more of its runs are live than one command
// ends: all end within seconds, also when the leader changes at that moment, and
// those of another company go on.
func TestAPauseEndsAllRunsOfItsCompany(t *testing.T) {
	kinds := []string{"company.pause", "company.archive"}
	if testing.Short() {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			run(t, 3, func(t *testing.T, m *mesh) {
				zed := m.agent(zeta, "zed", "sleep 5m", "")
				other := m.untilStatus(m.invoke(zeta, zed).ID, 5*time.Second, entity.RunRunning)
				for n := range 4 { // the runs of the last are beyond what one command ends
					runtime, runs := `{"placement":{"labels":["nowhere"]}}`, entity.MaxLiveRuns
					if n == 3 {
						runtime, runs = "", 10
					}
					ada := m.agent(acme, fmt.Sprint("ada", n), "sleep 10m", runtime)
					for range runs {
						m.invoke(acme, ada)
					}
				}
				time.Sleep(2 * time.Second)
				if at := m.nodes[0].atWork() + m.nodes[1].atWork() + m.nodes[2].atWork(); at != 11 {
					t.Fatalf("%d runs are at work; the test shows nothing", at)
				}
				m.must(board(kind, acme, company.ChangeCompany{}))
				m.elect(-1)
				time.Sleep(time.Second)
				m.elect(1)
				time.Sleep(3 * time.Second)
				live := 0
				for _, r := range m.runs(acme) {
					if r.Status.Live() || r.Owed {
						live++
					}
				}
				if live != 0 {
					t.Errorf("%d runs are left of a company that rests", live)
				}
				at := 0
				for _, p := range m.nodes {
					at += p.atWork()
				}
				if at != 1 || m.run(other.ID).Status != entity.RunRunning {
					t.Errorf("%d runs are at work, the other company's is %s", at, m.run(other.ID).Status)
				}
			})
		})
	}
}
