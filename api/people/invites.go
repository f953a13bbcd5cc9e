package people

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	inviteTokenPrefix = "pcp_invite_"
	claimTokenPrefix  = "pcp_claim_"
	inviteTokenBytes  = 32
	// maxInvites bounds a page of invites, defaultInvites is the default.
	defaultInvites = 20
	maxInvites     = 100
)

// newInvite is the body that makes an invite.
type newInvite struct {
	Joins    string                   `json:"allowedJoinTypes,omitempty" enum:"human,agent,both" default:"both"`
	Role     api.Opt[string]          `json:"humanRole" enum:"owner,admin,operator,viewer"`
	Defaults api.Opt[json.RawMessage] `json:"defaultsPayload" maxBytes:"32768"`
	Message  api.Opt[string]          `json:"agentMessage" maxLength:"4000"`
}

// acceptBody is the body of a request to join.
type acceptBody struct {
	Type         string                   `json:"requestType" enum:"human,agent"`
	AgentName    string                   `json:"agentName,omitempty" minLength:"1" maxLength:"120"`
	AdapterType  string                   `json:"adapterType,omitempty" minLength:"1" maxLength:"100"`
	Capabilities api.Opt[string]          `json:"capabilities" maxLength:"4000"`
	Defaults     api.Opt[json.RawMessage] `json:"agentDefaultsPayload" maxBytes:"32768"`
}

// claimBody is the body that claims an agent's first key.
type claimBody struct {
	Secret string `json:"claimSecret" minLength:"16" maxLength:"256"`
}

// An inviteRow is an invite as the board sees it.
type inviteRow struct {
	ID             string           `json:"id"`
	Company        ledger.CompanyID `json:"companyId"`
	Type           string           `json:"inviteType"`
	TokenHash      string           `json:"tokenHash"`
	Joins          people.JoinType  `json:"allowedJoinTypes"`
	Defaults       json.RawMessage  `json:"defaultsPayload"`
	ExpiresAt      core.Time        `json:"expiresAt"`
	InvitedBy      core.NullText    `json:"invitedByUserId"`
	RevokedAt      core.Time        `json:"revokedAt"`
	AcceptedAt     core.Time        `json:"acceptedAt"`
	CreatedAt      core.Time        `json:"createdAt"`
	UpdatedAt      core.Time        `json:"updatedAt"`
	CompanyName    string           `json:"companyName"`
	InviteMessage  core.NullText    `json:"inviteMessage"`
	HumanRole      core.NullText    `json:"humanRole"`
	State          string           `json:"state"` // active, accepted, revoked or expired
	InvitedByUser  *people.Person   `json:"invitedByUser"`
	RelatedJoin    core.NullText    `json:"relatedJoinRequestId"`
	Token          string           `json:"token,omitempty"` // with the members below only in the answer that created it
	InvitePath     string           `json:"invitePath,omitempty"`
	InviteURL      string           `json:"inviteUrl,omitempty"`
	OnboardingPath string           `json:"onboardingTextPath,omitempty"`
	OnboardingURL  string           `json:"onboardingTextUrl,omitempty"`
}

type inviteList struct {
	Invites    []inviteRow `json:"invites"`
	NextOffset *int        `json:"nextOffset"`
}

// An invitation is an invite as the holder of its token sees it.
type invitation struct {
	ID             string           `json:"id"`
	Company        ledger.CompanyID `json:"companyId"`
	CompanyName    string           `json:"companyName"`
	CompanyLogo    core.NullText    `json:"companyLogoUrl"`
	Type           string           `json:"inviteType"`
	Joins          people.JoinType  `json:"allowedJoinTypes"`
	HumanRole      core.NullText    `json:"humanRole"`
	ExpiresAt      core.Time        `json:"expiresAt"`
	InvitePath     string           `json:"invitePath"`
	InviteURL      string           `json:"inviteUrl"`
	OnboardPath    string           `json:"onboardingPath"`
	OnboardURL     string           `json:"onboardingUrl"`
	OnboardTxtPath string           `json:"onboardingTextPath"`
	OnboardTxtURL  string           `json:"onboardingTextUrl"`
	SkillPath      string           `json:"skillIndexPath"`
	SkillURL       string           `json:"skillIndexUrl"`
	Message        core.NullText    `json:"inviteMessage"`
	InvitedBy      core.NullText    `json:"invitedByUserName"`
	JoinStatus     core.NullText    `json:"joinRequestStatus"`
	JoinType       core.NullText    `json:"joinRequestType"`
}

// A joinRow is a request to join as the board sees it in a list.
type joinRow struct {
	people.JoinRequest
	Requester  *people.Person `json:"requesterUser"`
	ApprovedBy *people.Person `json:"approvedByUser"`
	RejectedBy *people.Person `json:"rejectedByUser"`
	Invite     *joinInvite    `json:"invite"`
}

type joinInvite struct {
	ID         string          `json:"id"`
	Type       string          `json:"inviteType"`
	Joins      people.JoinType `json:"allowedJoinTypes"`
	HumanRole  core.NullText   `json:"humanRole"`
	Message    core.NullText   `json:"inviteMessage"`
	CreatedAt  core.Time       `json:"createdAt"`
	ExpiresAt  core.Time       `json:"expiresAt"`
	RevokedAt  core.Time       `json:"revokedAt"`
	AcceptedAt core.Time       `json:"acceptedAt"`
	InvitedBy  *people.Person  `json:"invitedByUser"`
}

// A joinAnswer is the answer to an agent's request to join.
type joinAnswer struct {
	people.JoinRequest
	ClaimSecret string      `json:"claimSecret"`
	ClaimPath   string      `json:"claimApiKeyPath"`
	Onboarding  *onboarding `json:"onboarding"`
	Diagnostics []struct{}  `json:"diagnostics"`
}

type claimedKey struct {
	KeyID     string    `json:"keyId"`
	Token     string    `json:"token"`
	AgentID   string    `json:"agentId"`
	CreatedAt core.Time `json:"createdAt"`
}

const companyJoin = "company_join"

func InviteRoutes() []api.Route {
	const tag, of, by, one = "members", "/api/companies/{companyId}", "/api/invites/{token}",
		"/api/companies/{companyId}/join-requests/{requestId}"
	return []api.Route{
		{Method: "GET", Path: of + "/invites", Tag: tag, Summary: "List invites, newest first", Who: api.Board,
			Out: inviteList{}, Handle: listInvites,
			Query: []api.Param{{Name: "state", Doc: "active, accepted, revoked or expired"}, {Name: "limit", Type: "integer"},
				{Name: "offset", Type: "integer"}}},
		{Method: "POST", Path: of + "/invites", Limited: true, Tag: tag,
			Summary: "Invite people or agents; the token is shown once", Who: api.Board, In: newInvite{}, Out: inviteRow{},
			Status: 201, Handle: createInvite},
		{Method: "POST", Path: "/api/invites/{inviteId}/revoke", Limited: true, Tag: tag, Summary: "Revoke an invite",
			Who: api.Board, Out: inviteRow{}, Handle: revokeInvite},
		{Method: "GET", Path: by, Tag: tag, Summary: "Read an invite by its token", Who: api.Public, Out: invitation{},
			NoTool: true, Handle: readInvite},
		{Method: "GET", Path: by + "/onboarding", Tag: tag, Summary: "Read how to join", Who: api.Public,
			Out: inviteOnboarding{}, NoTool: true, Handle: readOnboarding},
		{Method: "GET", Path: by + "/onboarding.txt", Tag: tag, Summary: "Read how to join, as text",
			Media: []string{"text/plain"}, Who: api.Public, NoTool: true, Handle: readOnboardingText},
		{Method: "POST", Path: by + "/accept", Limited: true, Tag: tag, Summary: "Ask to join", Who: api.Public,
			In: acceptBody{}, Out: api.Either{joinAnswer{}, people.JoinRequest{}}, Status: 202, NoTool: true,
			Handle: acceptInvite},
		{Method: "GET", Path: of + "/join-requests", Tag: tag, Summary: "List requests to join, newest first", Who: api.Board,
			Out: []joinRow{}, Handle: listJoins,
			Query: []api.Param{{Name: "status", Doc: "pending_approval, approved or rejected"},
				{Name: "requestType", Doc: "human or agent"}}},
		{Method: "POST", Path: one + "/approve", Tag: tag, Summary: "Let somebody in", Who: api.Board,
			Out: people.JoinRequest{}, Handle: decideJoin(people.KindJoinApprove)},
		{Method: "POST", Path: one + "/reject", Tag: tag, Summary: "Turn somebody away", Who: api.Board,
			Out: people.JoinRequest{}, Handle: decideJoin(people.KindJoinReject)},
		{Method: "POST", Path: "/api/join-requests/{requestId}/claim-api-key", Limited: true, Tag: tag,
			Summary: "Fetch the first key of an agent that was let in, once", Who: api.Public, In: claimBody{},
			Out: claimedKey{}, Status: 201, NoTool: true, Handle: claimKey},
	}
}

// defaultsOf returns the defaults of an invite: those given, and the role of a person.
func defaultsOf(i people.Invite) json.RawMessage {
	out := map[string]any{}
	if len(i.Defaults) > 0 {
		json.Unmarshal(conceal.RedactConfig(i.Defaults), &out) // an object or absent
	}
	if i.Role != "" {
		type grant struct {
			Scope      *struct{}         `json:"scope"`
			Permission entity.Permission `json:"permissionKey"`
		}
		grants := []grant{}
		for _, p := range people.GrantsOf(i.Role) {
			grants = append(grants, grant{nil, p})
		}
		out["human"] = map[string]any{"role": i.Role, "grants": grants}
	}
	if len(out) == 0 {
		return api.RawJSON(nil)
	}
	b, _ := json.Marshal(out)
	return b
}

func showInvite(tx *ledger.Tx, i people.Invite, now core.Time) inviteRow {
	row, _ := entity.CompanyOf(tx, i.Company)
	return inviteRow{ID: i.ID, Company: i.Company, Type: companyJoin, TokenHash: i.Hash, Joins: i.Joins,
		Defaults: defaultsOf(i), ExpiresAt: i.ExpiresAt,
		InvitedBy: i.InvitedBy, RevokedAt: i.RevokedAt, AcceptedAt: i.AcceptedAt, CreatedAt: i.CreatedAt,
		UpdatedAt: i.UpdatedAt, CompanyName: row.Name,
		InviteMessage: i.Message, HumanRole: core.NullText(i.Role), State: i.State(now),
		InvitedByUser: personOf(tx, string(i.InvitedBy)), RelatedJoin: core.NullText(i.Request)}
}

func listInvites(rc *api.Request) (r api.Response, err error) {
	limit, err := rc.QueryInt("limit", defaultInvites, 1, maxInvites)
	if err != nil {
		return r, err
	}
	offset, err := rc.QueryInt("offset", 0, 0, people.MaxInvites)
	if err != nil {
		return r, err
	}
	out := inviteList{Invites: []inviteRow{}}
	err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		now, at := core.TimeOf(rc.Now()), 0
		for _, i := range people.InvitesOf(tx, row.ID) {
			if state := rc.Query("state"); state != "" && i.State(now) != state {
				continue
			}
			if at++; at <= offset {
				continue
			}
			if len(out.Invites) == limit {
				out.NextOffset = new(offset + limit)
				break
			}
			out.Invites = append(out.Invites, showInvite(tx, i, now))
		}
		return nil
	})
	return api.OK(out), err
}

func createInvite(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newInvite](rc)
	if err != nil {
		return api.Response{}, err
	}
	row, err := invite(rc, in)
	return api.OK(row), err
}

// invite creates an invite to the company of the path; the returned row has the token.
func invite(rc *api.Request, in newInvite) (row inviteRow, err error) {
	of := api.CompanyID(rc)
	token := inviteTokenPrefix + base64.RawURLEncoding.EncodeToString(rc.Secret("invite", inviteTokenBytes))
	p := people.CreateInvite{ID: api.NewID(), Hash: api.HashOf(token), Joins: people.JoinType(in.Joins),
		Role: people.Role(in.Role.Or("")), Message: in.Message.Or("")}
	if in.Defaults.Set && !in.Defaults.Null {
		p.Defaults = in.Defaults.Value
	}
	i, err := api.Do[people.Invite](rc, people.KindInviteCreate, of, p)
	if err != nil {
		return row, err
	}
	if i.Hash != p.Hash {
		return row, api.Conflict("The invite was made by an earlier request; its token can not be shown again",
			map[string]string{"inviteId": i.ID})
	}
	err = rc.View(func(tx *ledger.Tx) error { row = showInvite(tx, i, core.TimeOf(rc.Now())); return nil })
	row.Token, row.InvitePath, row.OnboardingPath = token, "/invite/"+token, "/api/invites/"+token+"/onboarding.txt"
	row.InviteURL, row.OnboardingURL = rc.Base()+row.InvitePath, rc.Base()+row.OnboardingPath
	rc.SetHeader("Cache-Control", "no-store")
	return row, err
}

func revokeInvite(rc *api.Request) (api.Response, error) {
	of, id := ledger.CompanyID(""), strings.ToLower(rc.Path("inviteId"))
	err := rc.View(func(tx *ledger.Tx) error {
		i, ok := people.InviteByID(tx, id)
		if !ok || !api.Seen(tx, rc, i.Company) {
			return api.ErrNoInvite()
		}
		of = i.Company
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	i, err := api.Do[people.Invite](rc, people.KindInviteRevoke, of, people.RevokeInvite{ID: id})
	if err != nil {
		return api.Response{}, err
	}
	var r api.Response
	err = rc.View(func(tx *ledger.Tx) error { r = api.OK(showInvite(tx, i, core.TimeOf(rc.Now()))); return nil })
	return r, err
}

func readInvite(rc *api.Request) (api.Response, error) {
	var out invitation
	err := rc.ViewBySecret(func(tx *ledger.Tx) error {
		i, row, err := api.InviteIn(tx, rc)
		if err != nil {
			return err
		}
		token, base := rc.Path("token"), rc.Base()
		path := "/api/invites/" + token
		out = invitation{ID: i.ID, Company: i.Company, CompanyName: row.Name, Type: companyJoin, Joins: i.Joins,
			HumanRole: core.NullText(i.Role), ExpiresAt: i.ExpiresAt,
			InvitePath: "/invite/" + token, InviteURL: base + "/invite/" + token, OnboardPath: path + "/onboarding",
			OnboardURL:     base + path + "/onboarding",
			OnboardTxtPath: path + "/onboarding.txt", OnboardTxtURL: base + path + "/onboarding.txt", SkillPath: path +
				"/skills/index", SkillURL: base + path + "/skills/index", Message: i.Message}
		if p := personOf(tx, string(i.InvitedBy)); p != nil {
			out.InvitedBy = core.NullText(p.Name)
		}
		if row.LogoAsset != "" {
			out.CompanyLogo = core.NullText(path + "/logo")
		}
		if j, ok := people.JoinByID(tx, i.Request); ok {
			out.JoinStatus, out.JoinType = core.NullText(j.Status), core.NullText(j.Type)
		}
		return nil
	})
	return api.OK(out), err
}

func acceptInvite(rc *api.Request) (api.Response, error) {
	in, err := api.Body[acceptBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	var i people.Invite
	if err := rc.ViewBySecret(func(tx *ledger.Tx) (err error) {
		i, _, err = api.InviteIn(tx,
			rc)
		return err
	}); err != nil {
		return api.Response{}, err
	}
	if i.AcceptedAt != 0 {
		return api.Response{}, api.ErrNoInvite()
	}
	p := people.AcceptInvite{ID: api.NewID(), Hash: i.Hash, Type: people.JoinType(in.Type)}
	if host, _, err := net.SplitHostPort(rc.HTTP.RemoteAddr); err == nil {
		p.IP = host
	}
	if p.Type == people.JoinHuman {
		if err := rc.Authenticate(); err != nil || !rc.IsBoard() {
			return api.Response{}, api.Unauthorized("Human invite acceptance requires authenticated user")
		}
		j, err := api.Do[people.JoinRequest](rc, people.KindInviteAccept, i.Company, p)
		return api.OK(j), err
	}
	rc.OfNode("invite")
	if p.AgentName = in.AgentName; p.AgentName == "" {
		return api.Response{}, api.Invalid("agentName is required for agent join requests")
	}
	p.Adapter, p.Abilities = in.AdapterType, in.Capabilities.Or("")
	if in.Defaults.Set && !in.Defaults.Null {
		p.Defaults = in.Defaults.Value
		if issues := api.AdapterIssues(p.Adapter, p.Defaults, []any{"agentDefaultsPayload"}); len(issues) > 0 {
			return api.Response{}, api.ValidationError(issues...)
		}
	}
	secret := claimTokenPrefix + hex.EncodeToString(rc.Secret("claim", api.TokenBytes))
	p.ClaimHash = api.HashOf(secret)
	j, err := api.Do[people.JoinRequest](rc, people.KindInviteAccept, i.Company, p)
	if err != nil {
		return api.Response{}, err
	}
	rc.SetHeader("Cache-Control", "no-store")
	return api.OK(joinAnswer{showJoin(j), secret, claimPath(j.ID), onboardingOf(rc, i), []struct{}{}}), nil
}

func claimPath(request string) string { return "/api/join-requests/" + request + "/claim-api-key" }

// showJoin returns a request without its secrets.
func showJoin(j people.JoinRequest) people.JoinRequest {
	if len(j.Defaults) > 0 {
		j.Defaults = conceal.RedactConfig(j.Defaults)
	} else {
		j.Defaults = api.RawJSON(nil)
	}
	return j
}

func listJoins(rc *api.Request) (api.Response, error) {
	out := []joinRow{}
	status := people.JoinStatus(rc.Query("status"))
	switch status {
	case "", people.JoinPending, people.JoinApproved, people.JoinRejected:
	default:
		return api.Response{}, api.Invalid("Invalid status: expected pending_approval, approved or rejected")
	}
	of := people.JoinType(rc.Query("requestType"))
	if of != "" && of != people.JoinHuman && of != people.JoinAgent {
		return api.Response{}, api.Invalid("Invalid requestType: expected human or agent")
	}
	err := api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		if !rc.Trusted() && !people.MayManage(tx, row.ID, rc.Actor.ID, entity.ApproveJoins) {
			return api.Forbidden("Missing permission: " + string(entity.ApproveJoins))
		}
		for _, j := range people.JoinsOf(tx, row.ID, status, of) {
			line := joinRow{JoinRequest: showJoin(j), Requester: personOf(tx, string(j.User)),
				ApprovedBy: personOf(tx, string(j.ApprovedBy)), RejectedBy: personOf(tx, string(j.RejectedBy))}
			if i, ok := people.InviteOf(tx, row.ID, j.Invite); ok {
				line.Invite = &joinInvite{i.ID, companyJoin, i.Joins, core.NullText(i.Role), i.Message, i.CreatedAt, i.ExpiresAt,
					i.RevokedAt, i.AcceptedAt, personOf(tx, string(i.InvitedBy))}
			}
			out = append(out, line)
		}
		return nil
	})
	return api.OK(out), err
}

func decideJoin(kind string) func(*api.Request) (api.Response, error) {
	return func(rc *api.Request) (api.Response, error) {
		j, err := api.Do[people.JoinRequest](rc, kind, api.CompanyID(rc),
			people.DecideJoin{ID: strings.ToLower(rc.Path("requestId"))})
		return api.OK(showJoin(j)), err
	}
}

func claimKey(rc *api.Request) (api.Response, error) {
	in, err := api.Body[claimBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	var j people.JoinRequest
	err = rc.ViewBySecret(func(tx *ledger.Tx) error {
		var ok bool
		if j, ok = people.JoinByID(tx, strings.ToLower(rc.Path("requestId"))); !ok {
			return api.NotFound("Join request not found")
		}
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	rc.OfNode("join-claim")
	token := api.TokenPrefix + hex.EncodeToString(rc.Secret("agent-key", api.TokenBytes))
	k, err := api.Do[people.AgentKey](rc, people.KindJoinClaim, j.Company,
		people.ClaimKey{ID: j.ID, ClaimHash: api.HashOf(in.Secret), Key: api.NewID(), Hash: api.HashOf(token)})
	if err != nil {
		return api.Response{}, err
	}
	rc.SetHeader("Cache-Control", "no-store")
	return api.OK(claimedKey{k.ID, token, k.Agent, k.CreatedAt}), nil
}
