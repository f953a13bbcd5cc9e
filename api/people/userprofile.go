package people

import (
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// maxProfileIssues and maxProfileActivity bound the lists of a profile,
	// maxProfileEntries the entries that are searched for them.
	maxProfileIssues   = 10
	maxProfileActivity = 20
	maxProfileEntries  = 500
)

// A userProfile is what a company shows of one of its users.
type userProfile struct {
	User     profileUser          `json:"user"`
	Stats    []profileStats       `json:"stats"`
	Issues   []profileIssue       `json:"recentIssues"`
	Activity []entity.ActivityRow `json:"recentActivity"`
}

type profileUser struct {
	ID       string              `json:"id"`
	Slug     string              `json:"slug"`
	Name     string              `json:"name"`
	Email    string              `json:"email"`
	Image    *string             `json:"image"`
	Role     core.NullText       `json:"membershipRole"`
	Status   people.MemberStatus `json:"membershipStatus"`
	JoinedAt core.Time           `json:"joinedAt"`
}

// profileStats counts a user's actions in a window.
type profileStats struct {
	Key       string `json:"key"` // last7, last30 or all
	Label     string `json:"label"`
	Created   int    `json:"createdIssues"`
	Completed int    `json:"completedIssues"`
	Open      int    `json:"openAssignedIssues"`
	Activity  int    `json:"activityCount"`
}

type profileIssue struct {
	entity.IssueRef
	UpdatedAt core.Time `json:"updatedAt"`
}

func ProfileRoutes() []api.Route {
	return []api.Route{{Method: "GET", Path: "/api/companies/{companyId}/users/{userSlug}/profile", Tag: "members",
		Summary: "Read what a company knows of one of its people",
		Who:     api.Board, Out: userProfile{}, Handle: readUserProfile}}
}

// memberBySlug finds a member by user ID, or by the part of the address before the @. If
// several match, it returns the one who joined first.
func memberBySlug(tx *ledger.Tx, of ledger.CompanyID, slug string) (people.Member, people.Person, bool) {
	for _, m := range people.MembersOf(tx, of) {
		if p, ok := people.PersonOf(tx, m.User); ok && (m.User == slug || strings.EqualFold(api.SlugOf(p), slug)) {
			return m, p, true
		}
	}
	return people.Member{}, people.Person{}, false
}

func readUserProfile(rc *api.Request) (api.Response, error) {
	var out userProfile
	err := api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		m, p, ok := memberBySlug(tx, row.ID, rc.Path("userSlug"))
		if !ok {
			return api.NotFound("User not found")
		}
		out = userProfile{User: profileUser{p.ID, api.SlugOf(p), p.Name, p.Email, p.Image, core.NullText(m.Role), m.Status,
			m.CreatedAt},
			Issues: []profileIssue{}, Activity: []entity.ActivityRow{}}
		now := core.TimeOf(rc.Now())
		day := core.Time((24 * time.Hour).Milliseconds())
		out.Stats = []profileStats{{Key: "last7", Label: "Last 7 days"}, {Key: "last30", Label: "Last 30 days"},
			{Key: "all", Label: "All time"}}
		since := []core.Time{now - 7*day, now - 30*day, 0}
		count := func(at core.Time, n func(*profileStats)) {
			for k := range out.Stats {
				if at >= since[k] {
					n(&out.Stats[k])
				}
			}
		}
		q := inbox.IssueQuery{Limit: entity.MaxIssueLimit}
		q.Touched = p.ID
		for _, i := range inbox.ListIssues(tx, row.ID, q) {
			if i.CreatedUser == p.ID {
				count(i.CreatedAt, func(s *profileStats) { s.Created++ })
			}
			if i.AssigneeUser == p.ID && i.CompletedAt != 0 {
				count(i.CompletedAt, func(s *profileStats) { s.Completed++ })
			}
			if i.AssigneeUser == p.ID && !i.Status.Terminal() {
				count(now, func(s *profileStats) { s.Open++ })
			}
			if len(out.Issues) < maxProfileIssues {
				out.Issues = append(out.Issues, profileIssue{i.Ref(), i.UpdatedAt})
			}
		}
		list := profileEntries(tx, row.ID, p.ID)
		for _, a := range list {
			count(core.TimeOf(a.At), func(s *profileStats) { s.Activity++ })
		}
		out.Activity = append(out.Activity, company.ShowActivity(tx, row.ID, list[:min(len(list), maxProfileActivity)])...)
		return nil
	})
	return api.OK(out), err
}

// profileEntries returns a user's latest actions in a company, newest first.
func profileEntries(tx *ledger.Tx, of ledger.CompanyID, user string) []ledger.Activity {
	return api.Logged(tx, of, ledger.ActivityFilter{Actor: ledger.Actor{Type: "user", ID: user}, Limit: maxProfileEntries})
}
