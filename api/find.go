package api

import (
	"encoding/json"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Finding what paths and queries name.

// Logged returns the activities that f selects, without those for live events only.
func Logged(tx *ledger.Tx, of ledger.CompanyID, f ledger.ActivityFilter) []ledger.Activity {
	var out []ledger.Activity
	want := f.Limit
	for range maxActivityPages {
		page := ledger.Activities(tx, of, f)
		for _, a := range page {
			if !entity.Live(a.Change) && theirs(a, f) {
				out = append(out, a)
			}
			if len(out) == want {
				return out
			}
		}
		if len(page) < f.Limit {
			return out
		}
		last := page[len(page)-1]
		f.BeforeHeight, f.BeforeNumber = last.Height, last.Number
	}
	return out
}

// ByName returns the parameter of routes whose path may have a name instead of an ID.
func ByName() []Param {
	return []Param{{Name: "companyId", Doc: "where to look when the path has a name instead of an ID"}}
}

func FindAgent(rc *Request) (a entity.Agent, err error) {
	err = rc.View(func(tx *ledger.Tx) (err error) { a, err = AgentIn(tx, rc); return err })
	return a, err
}

// Showing answers what show returns for the row that find finds.
func Showing[At, T any](rc *Request, find func(*ledger.Tx, *Request) (At, error),
	show func(*ledger.Tx, At) T) (Response, error) {
	return Viewed(rc, func(tx *ledger.Tx) (v T, err error) {
		at, err := find(tx, rc)
		if err != nil {
			return v, err
		}
		return show(tx, at), nil
	})
}

// OfNode makes the rest of the request the node's own, as a system actor of that name. It
// ignores the Idempotency-Key of nobody: whoever guessed it would see another's secret.
func (rc *Request) OfNode(name string) {
	rc.HTTP.Header.Del(HeaderIdempotency)
	rc.Actor = ledger.Actor{Type: "system", ID: name}
	rc.Credential = ledger.Credential{Kind: "node", ID: string(rc.Server.Cfg.NodeID)}
	rc.Company, rc.KeyID, rc.Run = "", "", ""
}

// Base returns the address under which the caller reached this node.
func (rc *Request) Base() string {
	if rc.Server.secure(rc.HTTP) {
		return "https://" + rc.HTTP.Host
	}
	return "http://" + rc.HTTP.Host
}

// CompanyID returns the company of the path in the form of stored IDs.
func CompanyID(rc *Request) ledger.CompanyID {
	return ledger.CompanyID(strings.ToLower(rc.Path("companyId")))
}

// CompanyIn returns the company of the path.
func CompanyIn(tx *ledger.Tx, rc *Request) (entity.Company, error) {
	row, ok := entity.CompanyOf(tx, CompanyID(rc))
	if !ok {
		return row, NotFound("Company not found")
	}
	return row, nil
}

// InCompany calls f with the path's company, if it exists.
func InCompany(rc *Request, f func(tx *ledger.Tx, row entity.Company) error) error {
	return rc.View(func(tx *ledger.Tx) error {
		row, err := CompanyIn(tx, rc)
		if err != nil {
			return err
		}
		return f(tx, row)
	})
}

// StageParts stages the parts of a long value, before the command that names them.
func StageParts(rc *Request, of ledger.CompanyID, value []byte) (names []string, err error) {
	for _, b := range company.SplitParts(value) {
		if _, err := Do[company.StagedPart](rc, company.KindPartPut, of, company.PutPart{Bytes: b}); err != nil {
			return nil, err
		}
		names = append(names, company.PartName(b))
	}
	return names, nil
}

// Seen reports whether the caller may see the rows of a company.
func Seen(tx *ledger.Tx, rc *Request, of ledger.CompanyID) bool {
	_, ok := entity.CompanyOf(tx, of)
	return ok && rc.Enters(tx, of)
}

// InviteIn returns the invite whose token is in the path. An invite that can not be used any
// more is shown only if it led to a request.
func InviteIn(tx *ledger.Tx, rc *Request) (people.Invite, entity.Company, error) {
	i, ok := people.InviteByHash(tx, HashOf(rc.Path("token")))
	row, there := entity.CompanyOf(tx, i.Company)
	now := core.TimeOf(rc.Now())
	if !ok || !there || i.RevokedAt != 0 || i.AcceptedAt == 0 && now >= i.ExpiresAt {
		return i, row, ErrNoInvite()
	}
	return i, row, nil
}

// FindIssue returns the issue of the path, by ID or identifier. An agent sees its own company
// only.
func FindIssue(tx *ledger.Tx, rc *Request) (entity.Issue, error) {
	ref := rc.Path("id")
	if IsUUID(ref) {
		ref = strings.ToLower(ref)
	}
	i, ok := entity.FindIssue(tx, ref)
	if !ok || !Seen(tx, rc, i.Company) {
		return i, NotFound("Issue not found")
	}
	return i, nil
}

// LocateIssue returns the company and ID of the issue of a command. An agent's company is in
// its credential; otherwise this node's state has it. An issue that it does not have yet,
// because it was just created on another node, is looked up at the leader.
func LocateIssue(rc *Request) (of ledger.CompanyID, id string, err error) {
	if ref := rc.Path("id"); rc.IsAgent() && IsUUID(ref) {
		return rc.Company, strings.ToLower(ref), nil
	}
	look := func(tx *ledger.Tx) error {
		i, err := FindIssue(tx, rc)
		of, id = i.Company, i.ID
		return err
	}
	if err = rc.View(look); err == nil || rc.Read.Mode == ledger.ReadStrong {
		return of, id, err
	}
	rc.Read.Mode = ledger.ReadStrong
	err = rc.View(look)
	return of, id, err
}

// QuerySpan reads from and to; the span includes to.
func QuerySpan(rc *Request) (money.Span, error) {
	from, err := rc.QueryTime("from")
	if err != nil {
		return money.Span{}, err
	}
	to, err := rc.QueryTime("to")
	if err != nil || to.IsZero() {
		return money.Span{From: core.TimeOf(from)}, err
	}
	return money.Span{From: core.TimeOf(from), To: core.TimeOf(to) + 1}, nil
}

func ProjectIn(tx *ledger.Tx, rc *Request) (entity.Project, error) {
	of, err := rc.QueryUUID("companyId")
	if err != nil {
		return entity.Project{}, err
	}
	if rc.IsAgent() {
		of = string(rc.Company)
	}
	p, err := entity.ProjectByRef(tx, ledger.CompanyID(of), rc.Path("id"))
	if err == nil && !Seen(tx, rc, p.Company) {
		return entity.Project{}, NotFound("Project not found")
	}
	return p, err
}

// NewSecret generates a webhook's secret and seals it for its trigger: command and state have
// the sealed form only.
func (rc *Request) NewSecret(of ledger.CompanyID, trigger string) (secret string, sealed []byte, err error) {
	s := rc.Server
	var key identity.DataKey
	if s.Cfg.DataKeys != nil {
		if keys := s.Cfg.DataKeys(); len(keys) > 0 {
			key = keys[0]
		}
	}
	if key == (identity.DataKey{}) {
		return "", nil, Unavailable("This node does not hold the mesh's data key and can not make secrets; ask another node")
	}
	secret = RandomHex(24)
	return secret, identity.Seal(key, conceal.TriggerAAD(string(s.Cfg.Mesh), of, trigger), []byte(secret)), nil
}

// FindRun returns the run of the path.
func FindRun(tx *ledger.Tx, rc *Request) (entity.Run, error) {
	r, ok := entity.RunByID(tx, strings.ToLower(rc.Path("runId")))
	if !ok || !Seen(tx, rc, r.Company) {
		return r, NotFound("Heartbeat run not found")
	}
	return r, nil
}

// RunAt returns the company and ID of the run of the path.
var RunAt = Located(FindRun, func(r entity.Run) (ledger.CompanyID, string) { return r.Company, r.ID })

// Viewed answers the result of f.
func Viewed[T any](rc *Request, f func(*ledger.Tx) (T, error)) (Response, error) {
	var v T
	err := rc.View(func(tx *ledger.Tx) (err error) {
		v, err = f(tx)
		return err
	})
	if err != nil {
		return Response{}, err
	}
	return OK(v), nil
}

func PathID(rc *Request, name string) string { return strings.ToLower(rc.Path(name)) }

// OfCompany answers v for every company that exists.
func OfCompany(v any) func(*Request) (Response, error) {
	return func(rc *Request) (Response, error) {
		return OK(v), InCompany(rc, func(*ledger.Tx, entity.Company) error { return nil })
	}
}

const (
	// maxActivityPages bounds the pages that one request reads to fill its list when many changes
	// are not part of the log.
	maxActivityPages = 20
)

// theirs reports whether a selected activity is shown as one of the actor and the run that f
// asks for.
func theirs(a ledger.Activity, f ledger.ActivityFilter) bool {
	if f.AlsoType == "" || a.EntityType != f.AlsoType {
		return true
	}
	actor, run := entity.DoneBy(a.Actor, a.Run, a.Change)
	return (f.Actor.Type == "" || actor.Type == f.Actor.Type) && (f.Actor.ID == "" || actor.ID == f.Actor.ID) &&
		(f.Run == "" || run == f.Run)
}

// AgentIn returns the agent of the path, by ID, or by name in the caller's company or the
// query's. Agents of other companies are not found.
func AgentIn(tx *ledger.Tx, rc *Request) (entity.Agent, error) {
	of, err := rc.QueryUUID("companyId")
	if err != nil {
		return entity.Agent{}, err
	}
	if rc.IsAgent() {
		of = string(rc.Company)
	}
	a, err := entity.AgentByRef(tx, ledger.CompanyID(of), rc.Path("id"))
	if err == nil && !Seen(tx, rc, a.Company) {
		return entity.Agent{}, NotFound("Agent not found")
	}
	return a, err
}

// Decided submits a decision. When the approved command could not be executed, the answer is
// its refusal, with the approval, which has it too.
func Decided(rc *Request, kind string, a money.Approval, payload any) (Response, error) {
	d, err := Do[money.Decision](rc, kind, a.Company, payload)
	if err != nil {
		return Response{}, err
	}
	if d.Refused != nil {
		details := struct {
			Approval money.Approval  `json:"approval"`
			Details  json.RawMessage `json:"details,omitempty"`
		}{d.Approval, d.Refused.Detail}
		return Response{}, &ledger.Refusal{Code: d.Refused.Code, ErrCode: d.Refused.ErrCode, Message: d.Refused.Message,
			Detail: detailOf(details)}
	}
	return OK(d.Approval), nil
}

// AnswerOf returns the answer of GET of another noun for id, so that a noun always looks the
// same. In path, {} stands for the parameter.
func (rc *Request) AnswerOf(path, id string) (Response, error) {
	for n := range rc.Server.Table {
		route := &rc.Server.Table[n]
		before, rest, _ := strings.Cut(route.Path, "{")
		name, after, _ := strings.Cut(rest, "}")
		if route.Method != "GET" || before+"{}"+after != path {
			continue
		}
		was := rc.HTTP.PathValue(name)
		rc.HTTP.SetPathValue(name, id)
		r, err := route.Handle(rc)
		rc.HTTP.SetPathValue(name, was)
		return r, err
	}
	return Response{}, NotFound("API route not found")
}

func RoutineIn(tx *ledger.Tx, rc *Request) (routine.Routine, error) {
	r, ok := routine.RoutineByID(tx, strings.ToLower(rc.Path("id")))
	if !ok || !Seen(tx, rc, r.Company) {
		return r, NotFound("Routine not found")
	}
	return r, nil
}

// FindRoutine returns the routine of the path with its triggers.
func FindRoutine(rc *Request) (r routine.Routine, triggers []routine.RoutineTrigger, err error) {
	err = rc.View(func(tx *ledger.Tx) (err error) {
		if r, err = RoutineIn(tx, rc); err == nil {
			triggers = routine.TriggersOf(tx, r)
		}
		return err
	})
	return r, triggers, err
}

// A SkillTestRow is a test with its result.
type SkillTestRow struct {
	skill.SkillTest
	Status      string         `json:"status"`
	OutputKey   string         `json:"outputDocumentKey"`
	Output      string         `json:"outputSnapshot"`
	Description string         `json:"harnessIssueDescription"`
	Error       *string        `json:"error"`
	Template    *string        `json:"templateId"`
	Expired     bool           `json:"taskExpired"` // the issue was deleted
	Issue       *skillTestTask `json:"harnessIssue"`
}

func ShowSkillTest(tx *ledger.Tx, t skill.SkillTest) SkillTestRow {
	i, there := entity.IssueOf(tx, t.Company, t.Issue)
	row := SkillTestRow{SkillTest: t, Status: t.Status(i, there), OutputKey: skill.SkillTestOutput, Expired: !there}
	if !there {
		row.Output = t.Output
		return row
	}
	row.Description, row.Issue = i.Description, &skillTestTask{i.ID, i.Identifier, i.Title, i.Status, i.HiddenAt}
	if d, ok := paper.DocumentOf(tx, i, skill.SkillTestOutput); ok {
		row.Output = d.Text(tx)
	}
	return row
}

func ErrNoInvite() error { return NotFound("Invite not found") }

// Invited answers every holder of an invite's token.
func Invited(answer func(*Request) (Response, error)) func(*Request) (Response, error) {
	return func(rc *Request) (Response, error) {
		if err := rc.ViewBySecret(func(tx *ledger.Tx) error { _, _, err := InviteIn(tx, rc); return err }); err != nil {
			return Response{}, err
		}
		return answer(rc)
	}
}

type skillTestTask struct {
	ID         string             `json:"id"`
	Identifier string             `json:"identifier"`
	Title      string             `json:"title"`
	Status     entity.IssueStatus `json:"status"`
	HiddenAt   core.Time          `json:"hiddenAt"`
}
