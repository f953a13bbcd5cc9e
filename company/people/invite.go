package people

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A JoinType says who may use an invite. Persisted: do not rename.
type JoinType string

const (
	JoinHuman JoinType = "human"
	JoinAgent JoinType = "agent"
	JoinBoth  JoinType = "both" // for invites only
)

// An Invite lets its bearer ask to join a company. The token is shown once; only its hash is
// stored.
type Invite struct {
	ID         string           `cbor:"1,keyasint"`
	Company    ledger.CompanyID `cbor:"2,keyasint"`
	Hash       string           `cbor:"3,keyasint"` // SHA-256 of the token, hex
	Joins      JoinType         `cbor:"4,keyasint"`
	Role       Role             `cbor:"5,keyasint,omitempty"` // of a person who joins by it; "" if no person may
	Defaults   json.RawMessage  `cbor:"6,keyasint,omitempty"` // as given, an object
	Message    core.NullText    `cbor:"7,keyasint,omitempty"`
	InvitedBy  core.NullText    `cbor:"8,keyasint,omitempty"`
	ExpiresAt  core.Time        `cbor:"9,keyasint"`
	RevokedAt  core.Time        `cbor:"10,keyasint,omitempty"`
	AcceptedAt core.Time        `cbor:"11,keyasint,omitempty"`
	Request    string           `cbor:"12,keyasint,omitempty"` // the join request that it was used for
	CreatedAt  core.Time        `cbor:"13,keyasint"`
	UpdatedAt  core.Time        `cbor:"14,keyasint"`
}

// Clone returns a copy that shares no memory with i.
func (i Invite) Clone() Invite {
	i.Defaults = slices.Clone(i.Defaults)
	return i
}

// Open reports whether the invite can be used.
func (i Invite) Open(now core.Time) bool {
	return i.RevokedAt == 0 && i.AcceptedAt == 0 && now < i.ExpiresAt
}

// State returns the state of the invite at time now, in the contract's words.
func (i Invite) State(now core.Time) string {
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

// A JoinStatus is the state of a request to join. Persisted: do not rename.
type JoinStatus string

const (
	JoinPending  JoinStatus = "pending_approval"
	JoinApproved JoinStatus = "approved"
	JoinRejected JoinStatus = "rejected"
)

// A JoinRequest is the request of a person or an agent to join a company.
type JoinRequest struct {
	ID        string           `cbor:"1,keyasint" json:"id"`
	Invite    string           `cbor:"2,keyasint" json:"inviteId"`
	Company   ledger.CompanyID `cbor:"3,keyasint" json:"companyId"`
	Type      JoinType         `cbor:"4,keyasint" json:"requestType"`
	Status    JoinStatus       `cbor:"5,keyasint" json:"status"`
	IP        string           `cbor:"6,keyasint,omitempty" json:"requestIp"`
	User      core.NullText    `cbor:"7,keyasint,omitempty" json:"requestingUserId"`
	Email     core.NullText    `cbor:"8,keyasint,omitempty" json:"requestEmailSnapshot"`
	AgentName core.NullText    `cbor:"9,keyasint,omitempty" json:"agentName"`
	Adapter   core.NullText    `cbor:"10,keyasint,omitempty" json:"adapterType"`
	Abilities core.NullText    `cbor:"11,keyasint,omitempty" json:"capabilities"`
	Defaults  json.RawMessage  `cbor:"12,keyasint,omitempty" json:"agentDefaultsPayload"` // the agent's adapterConfig
	// SHA-256 of the claim secret, hex
	ClaimHash  string        `cbor:"13,keyasint,omitempty" json:"-"`
	ClaimUntil core.Time     `cbor:"14,keyasint,omitempty" json:"claimSecretExpiresAt"`
	ClaimedAt  core.Time     `cbor:"15,keyasint,omitempty" json:"claimSecretConsumedAt"`
	Agent      core.NullText `cbor:"16,keyasint,omitempty" json:"createdAgentId"`
	ApprovedBy core.NullText `cbor:"17,keyasint,omitempty" json:"approvedByUserId"`
	ApprovedAt core.Time     `cbor:"18,keyasint,omitempty" json:"approvedAt"`
	RejectedBy core.NullText `cbor:"19,keyasint,omitempty" json:"rejectedByUserId"`
	RejectedAt core.Time     `cbor:"20,keyasint,omitempty" json:"rejectedAt"`
	CreatedAt  core.Time     `cbor:"21,keyasint" json:"createdAt"`
	UpdatedAt  core.Time     `cbor:"22,keyasint" json:"updatedAt"`
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
func InviteTokenKey(hash string) []byte { return ledger.Key("invite-token", hash) }
func InviteCompanyKey(id string) []byte { return ledger.Key("invite-company", id) }
func JoinCompanyKey(id string) []byte   { return ledger.Key("join-company", id) }

var (
	Invites      = ledger.NewTable[string, Invite]("invite")
	JoinRequests = ledger.NewTable[string, JoinRequest]("join-request").
			Beside(ledger.Indexed(JoinsPending, func(j *JoinRequest) string {
			if j.Status != JoinPending {
				return ""
			}
			return "all"
		}))
	JoinsPending = ledger.NewIndex[string, string]("join-pending")
)

const (
	// InviteAge is how long an invite can be used. ClaimAge is how long an admitted agent
	// may fetch its key.
	InviteAge = 72 * time.Hour
	ClaimAge  = 7 * 24 * time.Hour
	// MaxInvites bounds the invites of a company and MaxJoinRequests its requests. At the
	// bound, the oldest decided one is deleted.
	MaxInvites      = 500
	MaxJoinRequests = 1_000
	// maxInviteText bounds messages and capabilities; maxInviteObject bounds the objects
	// that come with an invite or a request. Both are in bytes.
	maxInviteText   = 16_000
	maxInviteObject = 32 << 10
)

// InviteByHash returns the invite whose token has the SHA-256 hash (hex), also one that can
// no longer be used.
func InviteByHash(tx *ledger.Tx, hash string) (Invite, bool) {
	if !core.IsHash(hash) {
		return Invite{}, false
	}
	id, ok := tx.Get(InviteTokenKey(hash))
	if !ok {
		return Invite{}, false
	}
	return InviteByID(tx, string(id))
}

// InviteByID returns an invite of any company.
func InviteByID(tx *ledger.Tx, id string) (Invite, bool) {
	if !core.IsID(id) {
		return Invite{}, false
	}
	of, ok := tx.Get(InviteCompanyKey(id))
	if !ok {
		return Invite{}, false
	}
	return Invites.Get(tx, ledger.CompanyID(of), id)
}

// InvitesOf returns a company's invites, newest first.
func InvitesOf(tx *ledger.Tx, company ledger.CompanyID) []Invite {
	out := []Invite{}
	for _, i := range Invites.All(tx, company) {
		out = append(out, i)
	}
	slices.SortStableFunc(out, func(a, b Invite) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt),
			cmp.Compare(b.ID, a.ID))
	})
	return out
}

// InviteOf returns an invite of a company.
func InviteOf(tx *ledger.Tx, company ledger.CompanyID, id string) (Invite, bool) {
	return Invites.Get(tx, company, id)
}

// JoinByID returns a request to join, of any company.
func JoinByID(tx *ledger.Tx, id string) (JoinRequest, bool) {
	if !core.IsID(id) {
		return JoinRequest{}, false
	}
	of, ok := tx.Get(JoinCompanyKey(id))
	if !ok {
		return JoinRequest{}, false
	}
	return JoinRequests.Get(tx, ledger.CompanyID(of), id)
}

// JoinsOf returns the requests to join a company, newest first. A status or type that is not
// "" selects the requests that have it.
func JoinsOf(tx *ledger.Tx, company ledger.CompanyID, status JoinStatus, of JoinType) []JoinRequest {
	out := []JoinRequest{}
	add := func(j JoinRequest) {
		if (status == "" || j.Status == status) && (of == "" || j.Type == of) {
			out = append(out, j)
		}
	}
	if status == JoinPending {
		for id := range JoinsPending.IDs(tx, company, "all", false) {
			if j, ok := JoinRequests.Get(tx, company, id); ok {
				add(j)
			}
		}
	} else {
		for _, j := range JoinRequests.All(tx, company) {
			add(j)
		}
	}
	slices.SortStableFunc(out, func(a, b JoinRequest) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
	return out
}

func dropInvite(tx *ledger.Tx, i Invite) {
	tx.Delete(InviteTokenKey(i.Hash))
	tx.Delete(InviteCompanyKey(i.ID))
	Invites.Delete(tx, i.Company, i.ID)
}

func dropJoin(tx *ledger.Tx, j JoinRequest) {
	tx.Delete(JoinCompanyKey(j.ID))
	JoinRequests.Delete(tx, j.Company, j.ID)
}

// Sealed seals the configuration that an agent sends with its request. Approving the request
// makes an agent with that configuration.
func (p AcceptInvite) Sealed(seal conceal.SealFunc) (any, error) {
	var err error
	p.Defaults, err = conceal.SealConfig(p.Defaults, "adapterConfig", func(path, plain string) (string,
		error) {
		return seal(joinedAgent(p.ID), path, plain)
	})
	return p, err
}
