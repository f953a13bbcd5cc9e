package live

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// newActivity is the body that adds a line to the activity log. The line shows the actor
// that the body names; the entry records the real author.
type newActivity struct {
	ActorType  string                   `json:"actorType,omitempty" enum:"agent,user,system,plugin"`
	ActorID    string                   `json:"actorId" minLength:"1" maxLength:"200"`
	Action     string                   `json:"action" minLength:"1" maxLength:"200" maxBytes:"500"`
	EntityType string                   `json:"entityType" minLength:"1" maxLength:"200" maxBytes:"500"`
	EntityID   string                   `json:"entityId" minLength:"1" maxLength:"200" maxBytes:"500"`
	AgentID    api.Opt[string]          `json:"agentId" format:"uuid"`
	Details    api.Opt[json.RawMessage] `json:"details" maxBytes:"4096"`
}

// An auditRow is an agent's action with the rows that it was about.
type auditRow struct {
	entity.ActivityRow
	Entity auditEntity `json:"entity"`
}

type auditEntity struct {
	Issue    *auditIssue `json:"issue"`
	Comment  *struct{}   `json:"comment"`
	Document *struct{}   `json:"document"`
}

type auditIssue struct {
	ID         string `json:"id"`
	Identifier string `json:"identifier"`
	Title      string `json:"title"`
}

type auditPage struct {
	Items      []auditRow    `json:"items"`
	NextCursor core.NullText `json:"nextCursor"`
	AccessTier string        `json:"accessTier"`
}

const (
	// defaultActivity is the default number of lines in a list.
	defaultActivity = 100
	maxActivityList = 500
)

func ActivityRoutes() []api.Route {
	filters := []api.Param{{Name: "agentId"}, {Name: "entityType"}, {Name: "entityId"}, {Name: "action"}, {Name: "runId"},
		{Name: "actorType"}, {Name: "actorId"}, {Name: "responsibleUserId"},
		{Name: "from", Type: "string", Doc: "ISO time, included"}, {Name: "to", Type: "string", Doc: "ISO time, included"},
		{Name: "limit", Type: "integer", Doc: "at most 500, 100 unless given"},
		{Name: "cursor", Doc: "nextCursor of the page before"}}
	const of = "/api/companies/{companyId}"
	return []api.Route{
		{Method: "GET", Path: of + "/activity", Tag: "activity", Summary: "List what happened, newest first", Query: filters,
			Out: []entity.ActivityRow{}, Handle: listActivity},
		{Method: "POST", Path: of + "/activity", Tag: "activity", Summary: "Add a line to the activity log", Who: api.Board,
			In: newActivity{}, Out: entity.ActivityRow{}, Status: 201, Handle: addActivity},
		{Method: "GET", Path: "/api/issues/{id}/activity", Tag: "activity",
			Summary: "List what happened to an issue, newest first",
			Query:   []api.Param{{Name: "limit", Type: "integer", Doc: "at most so many, up to 500"}},
			Out:     []entity.ActivityRow{}, Handle: issueActivity},
		{Method: "GET", Path: of + "/audit/agent-actions", Tag: "activity", Summary: "List what agents did, a page at a time",
			Who: api.Board, Query: filters, Out: auditPage{}, Handle: listAudit},
		{Method: "GET", Path: of + "/audit/agent-actions.csv", Tag: "activity",
			Summary: "Take along what agents did as a file for a spreadsheet", Media: []string{"text/csv"}, Who: api.Board,
			Query: filters[:len(filters)-2], NoTool: true, Handle: auditCSV},
	}
}

// activityFilter parses the filters of the query.
func activityFilter(rc *api.Request) (f ledger.ActivityFilter, err error) {
	f = ledger.ActivityFilter{EntityType: rc.Query("entityType"), EntityID: rc.Query("entityId"),
		Action: rc.Query("action"), Run: rc.Query("runId"),
		Actor: ledger.Actor{Type: rc.Query("actorType"), ID: rc.Query("actorId")}}
	agent, err := rc.QueryUUID("agentId")
	if err != nil {
		return f, err
	}
	if agent != "" {
		f.Actor = ledger.Actor{Type: "agent", ID: agent}
	}
	if f.From, err = rc.QueryTime("from"); err != nil {
		return f, err
	}
	if f.To, err = rc.QueryTime("to"); err != nil {
		return f, err
	}
	if user := rc.Query("responsibleUserId"); user != "" && f.Actor.Type == "" {
		f.Actor = ledger.Actor{Type: "user", ID: user}
	}
	if f.Actor.Type == "agent" && (f.Actor.ID == "" || !f.From.IsZero()) || f.Run != "" {
		f.AlsoType = entity.LeaseEntity // what a node recorded about the agent's runs
	}
	return f, nil
}

// activityPage is activityFilter with the selected page.
func activityPage(rc *api.Request) (f ledger.ActivityFilter, err error) {
	if f, err = activityFilter(rc); err != nil {
		return f, err
	}
	if f.Limit, err = rc.QueryInt("limit", defaultActivity, 1, maxActivityList); err != nil {
		return f, err
	}
	if cursor := rc.Query("cursor"); cursor != "" {
		if n, err := fmt.Sscanf(cursor, "%d.%d", &f.BeforeHeight, &f.BeforeNumber); n != 2 || err != nil ||
			f.BeforeHeight == 0 || f.BeforeNumber < 0 {
			return f, api.Invalid("Invalid cursor")
		}
	}
	return f, nil
}

func listActivity(rc *api.Request) (api.Response, error) {
	f, err := activityPage(rc)
	if err != nil {
		return api.Response{}, err
	}
	var r api.Response
	err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		r = api.OK(company.ShowActivity(tx, row.ID, api.Logged(tx, row.ID, f)))
		return nil
	})
	return r, err
}

func issueActivity(rc *api.Request) (r api.Response, err error) {
	limit, err := rc.QueryInt("limit", maxActivityList, 1, maxActivityList)
	if err != nil {
		return r, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		i, err := api.FindIssue(tx, rc)
		if err == nil {
			r = api.OK(company.ShowActivity(tx, i.Company, api.Logged(tx, i.Company, ledger.ActivityFilter{EntityType: "issue",
				EntityID: i.ID, Limit: limit})))
		}
		return err
	})
	return r, err
}

func addActivity(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newActivity](rc)
	if err != nil {
		return api.Response{}, err
	}
	if !api.IsUUID(api.CompanyID(rc)) {
		return api.Response{}, api.NotFound("Company not found")
	}
	receipt, err := rc.Submit(company.KindActivityNote, api.CompanyID(rc), company.Note{Action: in.Action,
		EntityType: in.EntityType, EntityID: in.EntityID, Details: in.Details.Or(nil)})
	if err != nil {
		return api.Response{}, err
	}
	var r api.Response
	err = rc.View(func(tx *ledger.Tx) error {
		e, ok := ledger.EntryAt(tx, receipt.Height)
		if !ok {
			return api.NotFound("Activity not found")
		}
		rows := company.ShowActivity(tx, e.Company, ledger.ActivityOf(e))
		if len(rows) != 1 {
			return api.NotFound("Activity not found")
		}
		r = api.OK(rows[0])
		return nil
	})
	return r, err
}

func listAudit(rc *api.Request) (api.Response, error) {
	f, err := activityPage(rc)
	if err != nil {
		return api.Response{}, err
	}
	if f.Actor.Type == "" {
		f.Actor.Type, f.AlsoType = "agent", entity.LeaseEntity
	}
	page := auditPage{Items: []auditRow{}, AccessTier: "full"}
	err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		list := api.Logged(tx, row.ID, f)
		for _, a := range company.ShowActivity(tx, row.ID, list) {
			item := auditRow{ActivityRow: a}
			if a.EntityType == "issue" {
				if i, ok := entity.IssueOf(tx, row.ID, strings.ToLower(a.EntityID)); ok {
					item.Entity.Issue = &auditIssue{i.ID, i.Identifier, i.Title}
				}
			}
			page.Items = append(page.Items, item)
		}
		if len(list) == f.Limit {
			last := list[len(list)-1]
			page.NextCursor = core.NullText(fmt.Sprintf("%d.%d", last.Height, last.Number))
		}
		return nil
	})
	return api.OK(page), err
}
