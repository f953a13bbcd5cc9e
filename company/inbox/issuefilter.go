package inbox

import (
	"cmp"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// IssueFilters are further filters of a list of issues, besides those of [IssueQuery]. An
// empty field does not filter.
type IssueFilters struct {
	Touched    string // a user: issues that they created, are assigned or commented on
	InInboxOf  string // a user: issues that they have not archived since the last change
	UnreadBy   string // a user: touched issues with a comment by somebody else since they last looked
	Below      string // an issue: all its descendants
	Agent      string // an agent: issues that it created, is assigned or commented on
	Space      string // an execution workspace
	Workspace  string // a project's workspace
	Origin     string // originKind
	OriginText string // prefix of originKind
	OriginID   string
	WorkMode   string
	NoRoutines bool // without issues made by routines

	under map[string]bool // the descendants of Below
}

// Viewer is the user from whose view the list is made, or "".
func (f IssueFilters) Viewer() string { return cmp.Or(f.UnreadBy, cmp.Or(f.Touched, f.InInboxOf)) }

func (f *IssueFilters) any() bool {
	return f.Touched != "" || f.InInboxOf != "" || f.UnreadBy != "" || f.Below != "" || f.Agent != "" || f.Space != "" ||
		f.Workspace != "" ||
		f.Origin != "" || f.OriginText != "" || f.OriginID != "" || f.WorkMode != "" || f.NoRoutines
}

// A standing is when somebody last commented on an issue, and when others last did.
type standing struct {
	Mine, Others core.Time
}

// look reads the descendants of an issue if a filter needs them.
func (f *IssueFilters) look(tx *ledger.Tx, of ledger.CompanyID) {
	if f.Below != "" {
		f.under = map[string]bool{}
		for _, id := range entity.Descendants(tx, of, f.Below) {
			f.under[id] = id != f.Below
		}
	}
}

// A Standing is how an issue looks to one user: read or unread.
type Standing struct {
	Touched  core.Time // when they last read, commented on, created or were assigned it; 0: never
	External core.Time // the last comment of somebody else
}

// Unread reports whether somebody else has commented since the user last looked.
func (s Standing) Unread() bool { return s.Touched != 0 && s.External > s.Touched }

// StandingOf returns the standing of an issue for a user.
func StandingOf(tx *ledger.Tx, i entity.Issue, user string) Standing {
	return heard(tx, i, userVoice(user)).of(tx, i, user)
}

func (s standing) of(tx *ledger.Tx, i entity.Issue, user string) Standing {
	at := s.Mine
	if r, ok := reads.Get(tx, i.Company, readerKey(i.ID, user)); ok {
		at = max(at, r.ReadAt)
	}
	if i.CreatedUser == user {
		at = max(at, i.CreatedAt)
	}
	return Standing{Touched: at, External: s.Others}
}

// take reports whether an issue passes the filters.
func (f *IssueFilters) take(tx *ledger.Tx, i entity.Issue) bool {
	switch {
	case f.Space != "" && i.ExecutionWorkspace != f.Space, f.Workspace != "" && i.Workspace != f.Workspace,
		f.Origin != "" && i.Origin() != f.Origin, f.OriginText != "" && !strings.HasPrefix(i.Origin(), f.OriginText),
		f.OriginID != "" && i.OriginID != f.OriginID, f.WorkMode != "" && cmp.Or(i.WorkMode, "standard") != f.WorkMode,
		f.NoRoutines && i.OriginKind == entity.OriginRoutine,
		f.Agent != "" && i.CreatedAgent != f.Agent && i.Assignee != f.Agent && !spoke(tx, i, agentVoice(f.Agent)),
		f.Toucher() != "" && !f.touched(tx, i),
		f.UnreadBy != "" && !StandingOf(tx, i, f.UnreadBy).Unread(),
		f.InInboxOf != "" && Archived(tx, i, f.InInboxOf):
		return false
	}
	return f.Below == "" || f.under[i.ID]
}

// Toucher is the user whose touched issues are asked for, or "".
func (f *IssueFilters) Toucher() string { return cmp.Or(f.UnreadBy, f.Touched) }

func (f *IssueFilters) touched(tx *ledger.Tx, i entity.Issue) bool {
	user := f.Toucher()
	return i.CreatedUser == user || i.AssigneeUser == user || spoke(tx, i, userVoice(user))
}
