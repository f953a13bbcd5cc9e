package company

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// A JoinType says who may use an invite. Persisted: do not rename.
type JoinType string

const (
	JoinHuman JoinType = "human"
	JoinAgent JoinType = "agent"
	JoinBoth  JoinType = "both" // of invites only
)

// An Invite lets somebody ask to join a company. Its token is made where it is
// asked for and shown once; only its hash is stored.
type Invite struct {
	ID         string          `cbor:"1,keyasint"`
	Company    string          `cbor:"2,keyasint"`
	Hash       string          `cbor:"3,keyasint"` // SHA-256 of the token, hex
	Joins      JoinType        `cbor:"4,keyasint"`
	Role       Role            `cbor:"5,keyasint,omitempty"` // of a person who comes by it; "" when none may
	Defaults   json.RawMessage `cbor:"6,keyasint,omitempty"` // as given, an object
	Message    NullText        `cbor:"7,keyasint,omitempty"`
	InvitedBy  NullText        `cbor:"8,keyasint,omitempty"`
	ExpiresAt  Time            `cbor:"9,keyasint"`
	RevokedAt  Time            `cbor:"10,keyasint,omitempty"`
	AcceptedAt Time            `cbor:"11,keyasint,omitempty"`
	Request    string          `cbor:"12,keyasint,omitempty"` // the join request that it led to
	CreatedAt  Time            `cbor:"13,keyasint"`
	UpdatedAt  Time            `cbor:"14,keyasint"`
}

// Clone returns a copy that shares no memory with i.
func (i Invite) Clone() Invite {
	i.Defaults = slices.Clone(i.Defaults)
	return i
}

// Open reports whether the invite can be used.
func (i Invite) Open(now Time) bool {
	return i.RevokedAt == 0 && i.AcceptedAt == 0 && now < i.ExpiresAt
}

// State names what became of the invite.
func (i Invite) State(now Time) string {
	switch {
	case i.RevokedAt != 0:
		return "revoked"
	case i.AcceptedAt != 0:
		return "accepted"
	case now >= i.ExpiresAt:
		return "expired"
	}
	return "active"
}

// A JoinStatus is what became of a request to join. Persisted: do not rename.
type JoinStatus string

const (
	JoinPending  JoinStatus = "pending_approval"
	JoinApproved JoinStatus = "approved"
	JoinRejected JoinStatus = "rejected"
)

// A JoinRequest is somebody who wants into a company.
type JoinRequest struct {
	ID         string          `cbor:"1,keyasint" json:"id"`
	Invite     string          `cbor:"2,keyasint" json:"inviteId"`
	Company    string          `cbor:"3,keyasint" json:"companyId"`
	Type       JoinType        `cbor:"4,keyasint" json:"requestType"`
	Status     JoinStatus      `cbor:"5,keyasint" json:"status"`
	IP         string          `cbor:"6,keyasint,omitempty" json:"requestIp"`
	User       NullText        `cbor:"7,keyasint,omitempty" json:"requestingUserId"`
	Email      NullText        `cbor:"8,keyasint,omitempty" json:"requestEmailSnapshot"`
	AgentName  NullText        `cbor:"9,keyasint,omitempty" json:"agentName"`
	Adapter    NullText        `cbor:"10,keyasint,omitempty" json:"adapterType"`
	Abilities  NullText        `cbor:"11,keyasint,omitempty" json:"capabilities"`
	Defaults   json.RawMessage `cbor:"12,keyasint,omitempty" json:"agentDefaultsPayload"` // the agent's adapterConfig
	ClaimHash  string          `cbor:"13,keyasint,omitempty" json:"-"`                    // SHA-256 of the claim secret, hex
	ClaimUntil Time            `cbor:"14,keyasint,omitempty" json:"claimSecretExpiresAt"`
	ClaimedAt  Time            `cbor:"15,keyasint,omitempty" json:"claimSecretConsumedAt"`
	Agent      NullText        `cbor:"16,keyasint,omitempty" json:"createdAgentId"`
	ApprovedBy NullText        `cbor:"17,keyasint,omitempty" json:"approvedByUserId"`
	ApprovedAt Time            `cbor:"18,keyasint,omitempty" json:"approvedAt"`
	RejectedBy NullText        `cbor:"19,keyasint,omitempty" json:"rejectedByUserId"`
	RejectedAt Time            `cbor:"20,keyasint,omitempty" json:"rejectedAt"`
	CreatedAt  Time            `cbor:"21,keyasint" json:"createdAt"`
	UpdatedAt  Time            `cbor:"22,keyasint" json:"updatedAt"`
}

// Clone returns a copy that shares no memory with j.
func (j JoinRequest) Clone() JoinRequest {
	j.Defaults = slices.Clone(j.Defaults)
	return j
}

// Keys that span companies:
//
//	invite-token/<hash>   the company and ID of an invite, while it can be used
//	invite-company/<id>   its company
//	join-company/<id>     the company of a request to join
func inviteTokenKey(hash string) []byte { return ledger.Key("invite-token", hash) }
func inviteCompanyKey(id string) []byte { return ledger.Key("invite-company", id) }
func joinCompanyKey(id string) []byte   { return ledger.Key("join-company", id) }

var (
	invites      = ledger.NewTable[Invite]("invite")
	joinRequests = ledger.NewTable[JoinRequest]("join-request").Indexed(joinsPending, func(j *JoinRequest) string {
		if j.Status != JoinPending {
			return ""
		}
		return "all"
	})
	joinsPending = ledger.NewIndex("join-pending")
)

const (
	// InviteAge is how long an invite can be used, ClaimAge how long the one who
	// asked may fetch the key.
	InviteAge = 72 * time.Hour
	ClaimAge  = 7 * 24 * time.Hour
	// MaxInvites bounds the invites of a company, and MaxJoinRequests its requests:
	// the oldest that are settled make room.
	MaxInvites      = 500
	MaxJoinRequests = 1_000
	// maxInviteText bounds messages and capabilities, in bytes; maxInviteObject
	// the objects that come with an invite or a request.
	maxInviteText   = 16_000
	maxInviteObject = 32 << 10
)

// InviteByHash returns the invite whose token has a SHA-256 (hex), also one
// that can not be used any more.
func InviteByHash(tx *ledger.Tx, hash string) (Invite, bool) {
	if !isHash(hash) {
		return Invite{}, false
	}
	id, ok := tx.Get(inviteTokenKey(hash))
	if !ok {
		return Invite{}, false
	}
	return InviteByID(tx, string(id))
}

// InviteByID returns an invite of any company.
func InviteByID(tx *ledger.Tx, id string) (Invite, bool) {
	if !isID(id) {
		return Invite{}, false
	}
	of, ok := tx.Get(inviteCompanyKey(id))
	if !ok {
		return Invite{}, false
	}
	return invites.Get(tx, string(of), id)
}

// InvitesOf returns a company's invites, newest first.
func InvitesOf(tx *ledger.Tx, company string) []Invite {
	out := []Invite{}
	for _, i := range invites.All(tx, company) {
		out = append(out, i)
	}
	slices.SortStableFunc(out, func(a, b Invite) int { return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(b.ID, a.ID)) })
	return out
}

// InviteOf returns an invite of a company.
func InviteOf(tx *ledger.Tx, company, id string) (Invite, bool) { return invites.Get(tx, company, id) }

// JoinByID returns a request to join any company.
func JoinByID(tx *ledger.Tx, id string) (JoinRequest, bool) {
	if !isID(id) {
		return JoinRequest{}, false
	}
	of, ok := tx.Get(joinCompanyKey(id))
	if !ok {
		return JoinRequest{}, false
	}
	return joinRequests.Get(tx, string(of), id)
}

// JoinsOf returns the requests to join a company, newest first; status and type
// narrow them unless they are empty.
func JoinsOf(tx *ledger.Tx, company string, status JoinStatus, of JoinType) []JoinRequest {
	out := []JoinRequest{}
	add := func(j JoinRequest) {
		if (status == "" || j.Status == status) && (of == "" || j.Type == of) {
			out = append(out, j)
		}
	}
	if status == JoinPending {
		for id := range joinsPending.IDs(tx, company, "all", false) {
			if j, ok := joinRequests.Get(tx, company, id); ok {
				add(j)
			}
		}
	} else {
		for _, j := range joinRequests.All(tx, company) {
			add(j)
		}
	}
	slices.SortStableFunc(out, func(a, b JoinRequest) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
	return out
}

func dropInvite(tx *ledger.Tx, i Invite) {
	tx.Delete(inviteTokenKey(i.Hash))
	tx.Delete(inviteCompanyKey(i.ID))
	invites.Delete(tx, i.Company, i.ID)
}

func dropJoin(tx *ledger.Tx, j JoinRequest) {
	tx.Delete(joinCompanyKey(j.ID))
	joinRequests.Delete(tx, j.Company, j.ID)
}

// Sealed seals the configuration of an agent that asks to join, for the agent
// that an approval makes.
func (p AcceptInvite) Sealed(seal SealFunc) (any, error) {
	var err error
	p.Defaults, err = sealConfig(p.Defaults, "adapterConfig", func(path, plain string) (string, error) { return seal(joinedAgent(p.ID), path, plain) })
	return p, err
}
