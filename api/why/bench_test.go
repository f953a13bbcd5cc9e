package why_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// BenchmarkWhy asks why issues, comments and entries are there, in a company whose chain
// has a million entries: issues, most of them below the one before, and their comments. SELVAGE_ENTRIES asks for
// another number.
func BenchmarkWhy(b *testing.B) {
	entries, _ := strconv.Atoi(os.Getenv("SELVAGE_ENTRIES"))
	if entries == 0 {
		entries = 1_000_000
	}
	const issues, batch = 1000, 64
	ledger.CheckHot = false
	defer func() { ledger.CheckHot = true }()
	h := apitest.NewHarness(b)
	of := h.Company("Acme")
	var all, names, comments []string
	parent := ""
	for n := range issues {
		body := fmt.Sprintf(`{"title":"Step %d"`, n)
		if n%5 != 0 {
			body += fmt.Sprintf(`,"parentId":%q`, parent)
		}
		a := h.Call("POST", "/api/companies/"+of+"/issues", body+"}").Want(b, 201, "")
		parent = a.Field(b, "id")
		all, names = append(all, parent), append(names, a.Field(b, "identifier"))
	}
	cmds := make([]ledger.Command, batch)
	for n := 0; ; n++ {
		head, _ := h.Node.Ledger.Head()
		if head >= uint64(entries) {
			break
		}
		for k := range cmds {
			p := entity.CreateComment{ID: companytest.UID(1 + n*batch + k), Issue: all[(n*batch+k)%issues], Body: "Looked at it"}
			cmds[k] = ledger.Command{Kind: "comment.create", Company: ledger.CompanyID(of), Actor: ledger.Actor{Type: "user",
				ID: "local-board"},
				Credential: ledger.Credential{Kind: "local"}, Payload: ledger.Marshal(p)}
		}
		if n%200 == 0 {
			comments = append(comments, companytest.UID(1+n*batch))
		}
		h.Node.SubmitMany(cmds)
	}
	head, _ := h.Node.Ledger.Head()
	for b.Loop() {
		var took []time.Duration
		var byKind [3][]time.Duration
		for n := range 1000 {
			entity := []string{names[n*37%issues], "comment:" + comments[n%len(comments)],
				fmt.Sprint("entry:", 2000+uint64(n)*(head-2000)/1000)}[n%3]
			began := time.Now()
			a := h.Call("GET", "/api/v1/why/"+entity+"?companyId="+of, "")
			took = append(took, time.Since(began))
			byKind[n%3] = append(byKind[n%3], took[n])
			a.Want(b, 200, `"edges":[{`)
		}
		slices.Sort(took)
		for k, name := range []string{"issue", "comment", "entry"} {
			slices.Sort(byKind[k])
			b.ReportMetric(float64(byKind[k][len(byKind[k])*95/100].Microseconds()), "µs-p95-"+name)
		}
		b.ReportMetric(float64(head), "entries")
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-p50")
		b.ReportMetric(float64(took[len(took)*95/100].Microseconds()), "µs-p95")
	}
}
