package live

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// maxAuditCSV bounds the lines of a file; for more, use several with from and to.
const maxAuditCSV = 10_000

var auditColumns = []string{"createdAt", "action", "actorType", "actorId", "agentId", "runId", "responsibleUserId",
	"entityType", "entityId", "issueIdentifier", "issueTitle", "commentExcerpt", "documentKey"}

// auditCSV answers the actions of agents as a CSV file. The download is recorded in the
// activity log.
func auditCSV(rc *api.Request) (api.Response, error) {
	f, err := activityFilter(rc)
	if err != nil {
		return api.Response{}, err
	}
	if f.Actor.Type == "" {
		f.Actor.Type, f.AlsoType = "agent", entity.LeaseEntity
	}
	f.Limit = maxActivityList
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.UseCRLF = true
	_ = w.Write(auditColumns) // writing to a Builder never fails
	rows, cut := 0, false
	of := ledger.CompanyID(strings.ToLower(rc.Path("companyId")))
	err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		for rows < maxAuditCSV {
			list := api.Logged(tx, row.ID, f)
			for _, a := range company.ShowActivity(tx, row.ID, list) {
				identifier, title := "", ""
				if a.EntityType == "issue" {
					if i, ok := entity.IssueOf(tx, row.ID, strings.ToLower(a.EntityID)); ok {
						identifier, title = i.Identifier, i.Title
					}
				}
				line := []string{a.CreatedAt.String(), a.Action, a.ActorType, a.ActorID, string(a.Agent), string(a.Run),
					string(a.ResponsibleUser), a.EntityType, a.EntityID, identifier, title, "", ""}
				for n := range line {
					line[n] = cell(line[n])
				}
				_ = w.Write(line)
				rows++
			}
			if len(list) < f.Limit {
				return nil
			}
			last := list[len(list)-1]
			f.BeforeHeight, f.BeforeNumber = last.Height, last.Number
		}
		cut = true
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	w.Flush()
	who := rc.Actor.ID
	rc.OfNode("audit")
	details, err := json.Marshal(map[string]any{"format": "csv", "rowCount": rows, "truncated": cut, "userId": who})
	if err != nil {
		return api.Response{}, err
	}
	if _, err := rc.Submit(company.KindActivityNote, of, company.Note{Action: "audit.exported", EntityType: "company",
		EntityID: string(of), Details: details}); err != nil {
		return api.Response{}, err
	}
	r := api.Raw("text/csv; charset=utf-8", []byte(b.String()))
	r.Header = http.Header{"Content-Disposition": {`attachment; filename="agent-audit-` + string(of) + `.csv"`}}
	return r, nil
}

// cell escapes a text that a spreadsheet would take for a formula.
func cell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}
