package a2a

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// list returns a page of the tasks of an agent, or of all that the caller may see, the latest change first. A page
// token is the change and the ID of the last task of the page before.
func list(rc *api.Request, ref string, p listParams) (taskPage, error) {
	size := defaultPage
	if p.Size != nil {
		size = *p.Size
	}
	if size < 1 || size > maxPage {
		return taskPage{}, badParams.as("pageSize: 1 to %d", maxPage)
	}
	if p.Status != "" && !slices.Contains(states, p.Status) && p.Status != "TASK_STATE_UNSPECIFIED" {
		return taskPage{}, badParams.as("status: not a state of a task")
	}
	if p.Status == "TASK_STATE_UNSPECIFIED" {
		p.Status = ""
	}
	var after core.Time
	if p.After != "" {
		at, err := time.Parse(time.RFC3339, p.After)
		if err != nil {
			return taskPage{}, badParams.as("statusTimestampAfter: not a time of RFC 3339")
		}
		after = core.TimeOf(at)
	}
	var from []string
	if p.Token != "" {
		b, err := base64.RawURLEncoding.DecodeString(p.Token)
		if from = strings.SplitN(string(b), " ", 2); err != nil || len(from) != 2 {
			return taskPage{}, badParams.as("pageToken: not one of this list")
		}
	}
	out := taskPage{Tasks: []*Task{}, PageSize: size}
	err := rc.View(func(tx *ledger.Tx) error {
		all, err := issues(tx, rc, cmp.Or(ref, p.Tenant))
		if err != nil {
			return err
		}
		slices.SortFunc(all, func(a, b entity.Issue) int {
			return cmp.Or(cmp.Compare(b.UpdatedAt, a.UpdatedAt), cmp.Compare(b.ID, a.ID))
		})
		begun, last := p.Token == "", entity.Issue{}
		for _, i := range all {
			if p.Context != "" && contextOf(i) != p.Context || i.UpdatedAt < after {
				continue
			}
			var t *Task
			if p.Status != "" {
				if t = new(taskOf(tx, i, view{history: new(0)})); t.Status.State != p.Status {
					continue
				}
			}
			out.Total++
			if !begun {
				at := i.UpdatedAt.String()
				begun = at < from[0] || at == from[0] && i.ID < from[1]
			}
			switch {
			case !begun:
			case len(out.Tasks) < size:
				history := p.History
				if history == nil {
					history = new(0)
				}
				out.Tasks, last = append(out.Tasks, new(taskOf(tx, i, view{history, p.Artifacts, rc.Base()}))), i
			default:
				out.Next = base64.RawURLEncoding.EncodeToString([]byte(last.UpdatedAt.String() + " " + last.ID))
			}
		}
		return nil
	})
	return out, err
}

// issues returns the issues of an agent, or those of all agents that the caller may see, at most maxListed.
func issues(tx *ledger.Tx, rc *api.Request, ref string) (out []entity.Issue, err error) {
	var agents []entity.Agent
	if ref != "" {
		a, err := find(tx, rc, ref)
		if err != nil {
			return nil, err
		}
		agents = append(agents, a)
	} else {
		for _, of := range seen(tx, rc) {
			agents = append(agents, entity.AgentsOf(tx, of.ID, true)...)
		}
	}
	for _, a := range agents {
		for i := range entity.IssuesIn(tx, a.Company, entity.IssuesOf(tx, a.Company, a.ID)) {
			if out = append(out, i); len(out) == maxListed {
				return out, nil
			}
		}
	}
	return out, nil
}
