package inbox

import (
	"cmp"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// IssueFilters are what a list of issues may be narrowed by besides the fields of
// [IssueQuery]. Each is left out when it is empty.
type IssueFilters struct {
	Touched    string // a user: created by them, theirs, or with a comment of theirs
	InInboxOf  string // a user: what they have not put away since it last changed
	UnreadBy   string // a user: touched, with a comment of another since they last looked
	Below      string // an issue: all below it, at any depth
	Agent      string // an agent: created by it, its own, or with a comment of its
	Space      string // an execution workspace
	Workspace  string // a project's workspace
	Origin     string // originKind
	OriginText string // what originKind begins with
	OriginID   string
	WorkMode   string
	NoRoutines bool // without what routines made

	under map[string]bool // what lies below Below
}

// Viewer is whose view of the issues the list is, "" for nobody's.
func (f IssueFilters) Viewer() string { return cmp.Or(f.UnreadBy, cmp.Or(f.Touched, f.InInboxOf)) }

func (f *IssueFilters) any() bool {
	return f.Touched != "" || f.InInboxOf != "" || f.UnreadBy != "" || f.Below != "" || f.Agent != "" || f.Space != "" || f.Workspace != "" ||
		f.Origin != "" || f.OriginText != "" || f.OriginID != "" || f.WorkMode != "" || f.NoRoutines
}

// A standing is what somebody said on an issue last, and others to them.
type standing struct {
	Mine, Others core.Time
}

// look reads what lies below an issue, when a filter asks for that.
func (f *IssueFilters) look(tx *ledger.Tx, of ledger.CompanyID) {
	if f.Below != "" {
		f.under = map[string]bool{}
		for _, id := range entity.Descendants(tx, of, f.Below) {
			f.under[id] = id != f.Below
		}
	}
}

// A Standing is how a user stands to an issue.
type Standing struct {
	Touched  core.Time // when they last read it, said something, made it or had it; 0: never
	External core.Time // the last comment of somebody else
}

// Unread reports whether somebody else has said something since the user looked.
func (s Standing) Unread() bool { return s.Touched != 0 && s.External > s.Touched }

// StandingOf returns how user stands to an issue.
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

// take reports whether the filters let an issue through.
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

// Toucher is the user whose issues are asked for, "" for nobody.
func (f *IssueFilters) Toucher() string { return cmp.Or(f.UnreadBy, f.Touched) }

func (f *IssueFilters) touched(tx *ledger.Tx, i entity.Issue) bool {
	user := f.Toucher()
	return i.CreatedUser == user || i.AssigneeUser == user || spoke(tx, i, userVoice(user))
}
