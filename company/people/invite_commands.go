package people

import (
	"crypto/subtle"
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// CreateInvite is the payload of invite.create. Hash is the SHA-256 of the
// token, in hex.
type CreateInvite struct {
	ID       string          `cbor:"1,keyasint"`
	Hash     string          `cbor:"2,keyasint"`
	Joins    JoinType        `cbor:"3,keyasint"`
	Role     Role            `cbor:"4,keyasint,omitempty"` // operator by default
	Defaults json.RawMessage `cbor:"5,keyasint,omitempty"`
	Message  string          `cbor:"6,keyasint,omitempty"`
}

// RevokeInvite is the payload of invite.revoke.
type RevokeInvite struct {
	ID string `cbor:"1,keyasint"`
}

// AcceptInvite is the payload of invite.accept. Hash is the hash of the invite's token.
// ClaimHash is the hash of the secret by which an agent fetches its key. A person gives the
// command themselves; for an agent, which does not exist yet, the node gives it.
type AcceptInvite struct {
	ID        string          `cbor:"1,keyasint"`
	Hash      string          `cbor:"2,keyasint"`
	Type      JoinType        `cbor:"3,keyasint"`
	IP        string          `cbor:"4,keyasint,omitempty"`
	AgentName string          `cbor:"5,keyasint,omitempty"`
	Adapter   string          `cbor:"6,keyasint,omitempty"`
	Abilities string          `cbor:"7,keyasint,omitempty"`
	Defaults  json.RawMessage `cbor:"8,keyasint,omitempty"`
	ClaimHash string          `cbor:"9,keyasint,omitempty"`
}

// DecideJoin is the payload of join.approve and join.reject.
type DecideJoin struct {
	ID string `cbor:"1,keyasint"`
}

// joinedAgent is the ID of the agent that is made when a request is approved.
func joinedAgent(request string) string { return core.DerivedID("join", request) }

// ClaimKey is the payload of join.claim: the claim secret's hash, and the ID
// and hash of the agent's first key.
type ClaimKey struct {
	ID        string `cbor:"1,keyasint"`
	ClaimHash string `cbor:"2,keyasint"`
	Key       string `cbor:"3,keyasint"`
	Hash      string `cbor:"4,keyasint"`
}

const (
	KindInviteCreate = "invite.create"
	KindInviteRevoke = "invite.revoke"
	KindInviteAccept = "invite.accept"
	KindJoinApprove  = "join.approve"
	KindJoinReject   = "join.reject"
	KindJoinClaim    = "join.claim"
)

var inviteKinds = []company.Kind{
	{Name: KindInviteCreate, From: company.FromBoard, Needs: entity.InviteUsers, Weight: company.Weights.Admitting,
		Do: ledger.Typed(createInvite)},
	{Name: KindInviteRevoke, From: company.FromBoard, Needs: entity.InviteUsers, Weight: company.Weights.Admitting,
		Do: ledger.Typed(revokeInvite)},
	{Name: KindInviteAccept, From: company.FromBoard | company.FromNode, Traits: company.Invited,
		Weight: company.Weights.Admitting, Do: ledger.Typed(acceptInvite)},
	{Name: KindJoinApprove, From: company.FromBoard, Needs: entity.ApproveJoins, Weight: company.Weights.Admitting,
		Do: ledger.Typed(approveJoin)},
	{Name: KindJoinReject, From: company.FromBoard, Needs: entity.ApproveJoins, Weight: company.Weights.Admitting,
		Do: ledger.Typed(rejectJoin)},
	{Name: KindJoinClaim, From: company.FromNode, Weight: company.Weights.ByNodes, Do: ledger.Typed(claimJoin)},
}

func errNoInvite() error { return ledger.Refuse(ledger.NotFound, nil, "Invite not found") }
func errNoJoin() error   { return ledger.Refuse(ledger.NotFound, nil, "Join request not found") }

func createInvite(c *ledger.Context, p CreateInvite) (any, error) {
	company := c.Cmd.Company
	switch {
	case !core.IsID(p.ID) || !core.IsHash(p.Hash):
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed invite")
	case p.Joins != JoinHuman && p.Joins != JoinAgent && p.Joins != JoinBoth:
		return nil, ledger.Refuse(ledger.Invalid, nil, "allowedJoinTypes is human, agent or both")
	case p.Role != "" && !slices.Contains(MemberRoles, p.Role):
		return nil, ledger.Refuse(ledger.Invalid, nil, "There is no role %q", p.Role)
	case len(p.Message) > maxInviteText:
		return nil, ledger.Refuse(ledger.TooLarge, nil, "agentMessage is longer than %d bytes", maxInviteText)
	case c.Has(InviteCompanyKey(p.ID)) || c.Has(InviteTokenKey(p.Hash)):
		return nil, ledger.Refuse(ledger.Conflict, nil, "The invite exists already")
	}
	defaults, err := core.CheckObject("defaultsPayload", p.Defaults, maxInviteObject)
	if err != nil {
		return nil, err
	}
	if p.Joins == JoinAgent {
		p.Role = ""
	} else if p.Role == "" {
		p.Role = RoleOperator
	}
	if err := mayRaise(c, p.Role); err != nil {
		return nil, err
	}
	now := core.TimeOf(c.Now)
	if err := roomForInvite(c.Tx, company, now); err != nil {
		return nil, err
	}
	i := Invite{ID: p.ID, Company: company, Hash: p.Hash, Joins: p.Joins, Role: p.Role, Defaults: defaults,
		Message:   core.NullText(p.Message),
		InvitedBy: core.NullText(c.Cmd.Actor.ID), ExpiresAt: core.TimeOf(c.Now.Add(InviteAge)), CreatedAt: now,
		UpdatedAt: now}
	c.Set(InviteCompanyKey(i.ID), []byte(company))
	c.Set(InviteTokenKey(i.Hash), []byte(i.ID))
	Invites.Put(c.Tx, company, i.ID, i)
	c.Record(ledger.Change{Action: "invite.created", EntityType: "invite", EntityID: i.ID,
		Details: core.Object{}.Str("inviteType", "company_join").
			Str("allowedJoinTypes", string(i.Joins)).Null("humanRole", string(i.Role)).Time("expiresAt", i.ExpiresAt).
			Bool("hasAgentMessage", i.Message != "").Close()})
	return i, nil
}

// roomForInvite deletes the oldest invite that can no longer be used if the company is at
// the bound.
func roomForInvite(tx *ledger.Tx, company ledger.CompanyID, now core.Time) error {
	list := InvitesOf(tx, company)
	if len(list) < MaxInvites {
		return nil
	}
	for _, i := range slices.Backward(list) {
		if !i.Open(now) {
			dropInvite(tx, i)
			return nil
		}
	}
	return ledger.Refuse(ledger.Conflict, nil, "The company has %d open invites already; revoke one", MaxInvites)
}

func revokeInvite(c *ledger.Context, p RevokeInvite) (any, error) {
	i, ok := Invites.Get(c.Tx, c.Cmd.Company, p.ID)
	switch {
	case !core.IsID(p.ID) || !ok:
		return nil, errNoInvite()
	case i.AcceptedAt != 0:
		return nil, core.Illegal("inviteId", i.ID, i.State(core.TimeOf(c.Now)), "revoked", nil, "Invite already consumed")
	case i.RevokedAt != 0:
		return i, nil
	}
	i.RevokedAt, i.UpdatedAt = core.TimeOf(c.Now), core.TimeOf(c.Now)
	Invites.Put(c.Tx, i.Company, i.ID, i)
	c.Record(ledger.Change{Action: "invite.revoked", EntityType: "invite", EntityID: i.ID})
	return i, nil
}

func acceptInvite(c *ledger.Context, p AcceptInvite) (any, error) {
	now := core.TimeOf(c.Now)
	i, ok := InviteByHash(c.Tx, p.Hash)
	if !ok || i.Company != c.Cmd.Company || !i.Open(now) {
		return nil, errNoInvite()
	}
	switch {
	case !core.IsID(p.ID) || c.Has(JoinCompanyKey(p.ID)):
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed request")
	case p.Type != JoinHuman && p.Type != JoinAgent:
		return nil, ledger.Refuse(ledger.Invalid, nil, "requestType is human or agent")
	case i.Joins != JoinBoth && i.Joins != p.Type:
		return nil, ledger.Refuse(ledger.Invalid, nil, "Invite does not allow %s joins", string(p.Type))
	case len(p.AgentName) > entity.MaxName || len(p.Adapter) > 100 || len(p.IP) > 100:
		return nil, ledger.Refuse(ledger.TooLarge, nil, "The request's text is too long")
	case len(p.Abilities) > maxInviteText:
		return nil, ledger.Refuse(ledger.TooLarge, nil, "capabilities is longer than %d bytes", maxInviteText)
	}
	defaults, err := core.CheckObject("agentDefaultsPayload", p.Defaults, maxInviteObject)
	if err != nil {
		return nil, err
	}
	if err := roomForJoin(c.Tx, i.Company); err != nil {
		return nil, err
	}
	j := JoinRequest{ID: p.ID, Invite: i.ID, Company: i.Company, Type: p.Type, Status: JoinPending, IP: p.IP,
		CreatedAt: now, UpdatedAt: now}
	details := core.Object{}.Str("inviteId", i.ID).Str("requestType", string(j.Type))
	if p.Type == JoinHuman {
		if err := joinPerson(c, i, &j); err != nil {
			return nil, err
		}
	} else {
		switch {
		case p.AgentName == "":
			return nil, ledger.Refuse(ledger.Invalid, nil, "agentName is required for agent join requests")
		case !core.IsHash(p.ClaimHash):
			return nil, ledger.Refuse(ledger.Invalid, nil, "malformed claim secret")
		}
		j.AgentName, j.Adapter, j.Abilities, j.Defaults = core.NullText(p.AgentName), core.NullText(p.Adapter),
			core.NullText(p.Abilities), defaults
		j.ClaimHash, j.ClaimUntil = p.ClaimHash, core.TimeOf(c.Now.Add(ClaimAge))
		details = details.Str("agentName", p.AgentName)
	}
	i.AcceptedAt, i.UpdatedAt, i.Request = now, now, j.ID
	Invites.Put(c.Tx, i.Company, i.ID, i)
	putJoin(c.Tx, j)
	c.Record(ledger.Change{Action: "join.requested", EntityType: "join_request", EntityID: j.ID,
		Details: details.Str("status", string(j.Status)).Close()})
	return j, nil
}

// joinPerson admits a person at once, because the author of an invite with a role has
// decided already. If the author may not admit people, the request stays pending.
func joinPerson(c *ledger.Context, i Invite, j *JoinRequest) error {
	user := c.Cmd.Actor.ID
	person, ok := PersonOf(c.Tx, user)
	if !core.IsBoard(c) || !ok {
		return ledger.Refuse(ledger.Unauthorized, nil, "Human invite acceptance requires authenticated user")
	}
	if m, ok := MembershipOf(c.Tx, i.Company, user); ok && m.Status == MemberActive {
		return ledger.Refuse(ledger.Conflict, nil, "You already belong to this company")
	}
	j.User, j.Email = core.NullText(user), core.NullText(person.Email)
	if !MayManage(c.Tx, i.Company, string(i.InvitedBy), entity.ApproveJoins) {
		return nil
	}
	if err := admit(c, user, i.Role, nil); err != nil {
		return err
	}
	j.Status, j.ApprovedBy, j.ApprovedAt = JoinApproved, i.InvitedBy, j.CreatedAt
	return nil
}

func putJoin(tx *ledger.Tx, j JoinRequest) {
	tx.Set(JoinCompanyKey(j.ID), []byte(j.Company))
	JoinRequests.Put(tx, j.Company, j.ID, j)
}

func roomForJoin(tx *ledger.Tx, company ledger.CompanyID) error {
	list := JoinsOf(tx, company, "", "")
	if len(list) < MaxJoinRequests {
		return nil
	}
	for _, j := range slices.Backward(list) {
		if j.Status != JoinPending {
			dropJoin(tx, j)
			return nil
		}
	}
	return ledger.Refuse(ledger.Conflict, nil, "%d requests to join wait already", MaxJoinRequests)
}

func pendingJoin(c *ledger.Context, id string, to JoinStatus) (JoinRequest, error) {
	j, ok := JoinRequests.Get(c.Tx, c.Cmd.Company, id)
	switch {
	case !core.IsID(id) || !ok:
		return j, errNoJoin()
	case j.Status != JoinPending:
		return j, core.Illegal("joinRequestId", j.ID, j.Status, to, nil, "Join request is not pending")
	}
	return j, nil
}

func approveJoin(c *ledger.Context, p DecideJoin) (any, error) {
	j, err := pendingJoin(c, p.ID, JoinApproved)
	if err != nil {
		return nil, err
	}
	row, err := company.Present(c)
	if err != nil {
		return nil, err
	}
	details := core.Object{}.Str("requestType", string(j.Type))
	if j.Type == JoinHuman {
		role := RoleOperator
		if i, ok := Invites.Get(c.Tx, j.Company, j.Invite); ok && i.Role != "" {
			role = i.Role
		}
		if err := mayRaise(c, role); err != nil {
			return nil, err
		}
		if err := admit(c, string(j.User), role, nil); err != nil {
			return nil, err
		}
	} else {
		a, err := company.MakeAgent(c, row, j.draft(), entity.AgentIdle)
		if err != nil {
			return nil, err
		}
		j.Agent = core.NullText(a.ID)
		details = details.Str("createdAgentId", a.ID)
	}
	now := core.TimeOf(c.Now)
	j.Status, j.ApprovedBy, j.ApprovedAt, j.UpdatedAt = JoinApproved, core.NullText(c.Cmd.Actor.ID), now, now
	putJoin(c.Tx, j)
	c.Record(ledger.Change{Action: "join.approved", EntityType: "join_request", EntityID: j.ID, Details: details.Close()})
	return j, nil
}

// draft is the agent that a request describes.
func (j JoinRequest) draft() entity.SaveAgent {
	p := entity.SaveAgent{ID: joinedAgent(j.ID), Name: new(string(j.AgentName)), AdapterConfig: j.Defaults}
	if j.Adapter != "" {
		p.AdapterType = new(string(j.Adapter))
	}
	if j.Abilities != "" {
		p.Capabilities = new(string(j.Abilities))
	}
	return p
}

func rejectJoin(c *ledger.Context, p DecideJoin) (any, error) {
	j, err := pendingJoin(c, p.ID, JoinRejected)
	if err != nil {
		return nil, err
	}
	now := core.TimeOf(c.Now)
	j.Status, j.RejectedBy, j.RejectedAt, j.UpdatedAt = JoinRejected, core.NullText(c.Cmd.Actor.ID), now, now
	putJoin(c.Tx, j)
	c.Record(ledger.Change{Action: "join.rejected", EntityType: "join_request", EntityID: j.ID,
		Details: core.Object{}.Str("requestType", string(j.Type)).Close()})
	return j, nil
}

// standing is the detail of the refusal when a request's key is not handed out.
func (j JoinRequest) standing() []byte {
	return core.Object{}.Str("joinRequestId", j.ID).Str("status", string(j.Status)).Time("claimExpiresAt", j.ClaimUntil).
		Time("claimedAt", j.ClaimedAt).Close()
}

func claimJoin(c *ledger.Context, p ClaimKey) (any, error) {
	j, ok := JoinRequests.Get(c.Tx, c.Cmd.Company, p.ID)
	now := core.TimeOf(c.Now)
	switch {
	case !core.IsID(p.ID) || !ok:
		return nil, errNoJoin()
	case j.Type != JoinAgent:
		return nil, ledger.Refuse(ledger.Invalid, nil, "Only agent join requests can claim API keys")
	case subtle.ConstantTimeCompare([]byte(p.ClaimHash), []byte(j.ClaimHash)) != 1:
		return nil, ledger.Refuse(ledger.Forbidden, nil, "Invalid claim secret")
	case j.Status != JoinApproved || j.Agent == "":
		return nil, ledger.Refuse(ledger.Conflict, j.standing(), "Join request must be approved before key claim")
	case j.ClaimedAt != 0:
		return nil, ledger.Refuse(ledger.Conflict, j.standing(), "Claim secret already used")
	case now >= j.ClaimUntil:
		return nil, ledger.Refuse(ledger.Conflict, j.standing(), "Claim secret expired")
	}
	k, err := createKey(c, CreateKey{ID: p.Key, Agent: string(j.Agent), Name: "initial-join-key", Hash: p.Hash})
	if err != nil {
		return nil, err
	}
	j.ClaimedAt, j.UpdatedAt = now, now
	putJoin(c.Tx, j)
	c.Record(ledger.Change{Action: "agent_api_key.claimed", EntityType: "agent_api_key", EntityID: p.Key,
		Details: core.Object{}.Str("agentId", string(j.Agent)).Str("joinRequestId", j.ID).Close()})
	return k, nil
}
