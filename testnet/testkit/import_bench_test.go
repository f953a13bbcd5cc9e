package testkit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkAWriteBesideAnImport imports 5,000 issues with four comments each by one
// command, while a client makes issues of another company on another node, one after
// the other. It tells how long the import took, and of what that client waited for an
// answer the longest and the median. Ask for it with -benchtime=1x.
func BenchmarkAWriteBesideAnImport(b *testing.B) {
	const issues, comments = 5_000, 4
	bed := Mesh(b, 3)
	of := bed.Company("Beside")
	files := map[string]any{"COMPANY.md": "---\nname: Big\n---\n"}
	var side strings.Builder
	side.WriteString("schema: paperclip/v1\nschemaVersion: 7\ntasks:\n")
	for i := range issues {
		files[fmt.Sprintf("tasks/big-%d/TASK.md", i+1)] = fmt.Sprintf("---\nname: \"Task %d\"\n---\n%s", i+1,
			strings.Repeat("what is to be done, ", 15))
		fmt.Fprintf(&side, "  big-%d:\n    identifier: BIG-%d\n    status: todo\n    comments:\n", i+1, i+1)
		for range comments {
			fmt.Fprintf(&side, "      - {authorType: user, body: \"%s\"}\n", strings.Repeat("a remark, ", 20))
		}
	}
	files[".paperclip.yaml"] = side.String()
	body := map[string]any{"source": map[string]any{"type": "inline", "rootPath": "big", "files": files},
		"include": map[string]bool{"company": true, "issues": true}, "target": map[string]any{"mode": "new_company"}}
	for b.Loop() {
		var waits []time.Duration
		again := 0
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				began := time.Now()
				key := fmt.Sprint("Beside ", began.UnixNano())
				for { // asked again when its node's patience ends (503)
					a, err := bed.Call(1, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": key}, nil,
						"Idempotency-Key", key)
					if err == nil && a.Status == 201 {
						break
					}
					if again++; err == nil && a.Status != 503 || time.Since(began) > settle {
						b.Errorf("a write beside the import: %v, %d %s", err, a.Status, a.Body)
						return
					}
				}
				waits = append(waits, time.Since(began))
			}
		}()
		time.Sleep(time.Second)
		began := time.Now()
		bed.Must(0, "POST", "/api/companies/import", body, nil)
		took := time.Since(began)
		time.Sleep(time.Second)
		close(stop)
		<-ended
		slices.Sort(waits)
		b.ReportMetric(float64(again), "asked-again")
		b.ReportMetric(took.Seconds(), "import-s")
		b.ReportMetric(waits[len(waits)-1].Seconds(), "longest-wait-s")
		b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1000, "median-wait-ms")
	}
}
