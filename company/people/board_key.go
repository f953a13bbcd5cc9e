package people

import (
	"cmp"
	"crypto/subtle"
	"slices"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A BoardKey lets its bearer act as a user. The token is shown once; only its hash is stored.
// A key belongs to no company.
type BoardKey struct {
	ID        string    `cbor:"1,keyasint" json:"id"`
	User      string    `cbor:"2,keyasint" json:"-"`
	Name      string    `cbor:"3,keyasint" json:"name"`
	Hash      string    `cbor:"4,keyasint" json:"-"` // SHA-256 of the token, hex
	CreatedAt core.Time `cbor:"5,keyasint" json:"createdAt"`
	RevokedAt core.Time `cbor:"6,keyasint,omitempty" json:"revokedAt"`
	ExpiresAt core.Time `cbor:"7,keyasint,omitempty" json:"expiresAt"` // 0: never
}

// Valid reports whether the key is accepted at time now.
func (k BoardKey) Valid(now core.Time) bool {
	return k.RevokedAt == 0 && (k.ExpiresAt == 0 || now < k.ExpiresAt)
}

// A Challenge is a program's request to act as a person. It carries the hash of a board key,
// which becomes valid when a person approves the challenge. It belongs to no company.
type Challenge struct {
	ID          string                      `cbor:"1,keyasint"`
	Hash        string                      `cbor:"2,keyasint"` // SHA-256 of the challenge's token, hex
	KeyHash     string                      `cbor:"3,keyasint"` // SHA-256 of the board key's token, hex
	Command     string                      `cbor:"4,keyasint"`
	Client      core.NullText               `cbor:"5,keyasint,omitempty"`
	Access      string                      `cbor:"6,keyasint"` // "board" or "instance_admin_required"
	Company     core.Null[ledger.CompanyID] `cbor:"7,keyasint,omitempty"`
	ApprovedAt  core.Time                   `cbor:"8,keyasint,omitempty"`
	ApprovedBy  core.NullText               `cbor:"9,keyasint,omitempty"`
	Key         core.NullText               `cbor:"10,keyasint,omitempty"` // ID of the board key
	CancelledAt core.Time                   `cbor:"11,keyasint,omitempty"`
	ExpiresAt   core.Time                   `cbor:"12,keyasint"`
	CreatedAt   core.Time                   `cbor:"13,keyasint"`
}

// Status returns the state of the challenge at time now, in the contract's words.
func (h Challenge) Status(now core.Time) string {
	switch {
	case h.CancelledAt != 0:
		return "cancelled"
	case h.ApprovedAt != 0:
		return "approved"
	case now >= h.ExpiresAt:
		return "expired"
	}
	return "pending"
}

// AccessAdmin is the Access of a challenge that only an administrator of the instance may
// approve.
const AccessAdmin = "instance_admin_required"

// Keys of the mesh:
//
//	board-key-token/<hash>       the ID of a board key; gone when it is revoked
//	board-key-user/<user>/<id>   the keys of a user
func BoardTokenKey(hash string) []byte { return ledger.Key("board-key-token", hash) }
func BoardUserKey(user, id string) []byte {
	return ledger.Key("board-key-user", core.HashedUser(user), id)
}

var (
	BoardKeys  = ledger.NewMeshTable[string, BoardKey]("board-key")
	challenges = ledger.NewMeshTable[string, Challenge]("cli-challenge")
)

const (
	// BoardKeyAge is how long a board key is valid unless its maker sets another time.
	// ChallengeAge is how long a challenge can be approved.
	BoardKeyAge  = 30 * 24 * time.Hour
	ChallengeAge = 10 * time.Minute
	// MaxBoardKeys bounds the keys of one user, revoked ones included; at the bound, the
	// oldest key that is no longer valid is deleted. MaxChallenges bounds the pending
	// challenges, because anybody may open one.
	MaxBoardKeys  = 100
	MaxChallenges = 500
	// maxKeyName and maxCommand bound texts, in bytes.
	maxKeyName = 480
	maxCommand = 960
)

// BoardKeyByHash returns the key whose token has the SHA-256 hash (hex), unless it is revoked.
func BoardKeyByHash(tx *ledger.Tx, hash string) (BoardKey, bool) {
	if !core.IsHash(hash) {
		return BoardKey{}, false
	}
	id, ok := tx.Get(BoardTokenKey(hash))
	if !ok {
		return BoardKey{}, false
	}
	k, ok := BoardKeys.Get(tx, string(id))
	return k, ok && k.RevokedAt == 0 && k.Hash == hash
}

// BoardKeyByID returns a key, revoked or not.
func BoardKeyByID(tx *ledger.Tx, id string) (BoardKey, bool) {
	if !core.IsID(id) {
		return BoardKey{}, false
	}
	return BoardKeys.Get(tx, id)
}

// BoardKeysOf returns a user's keys, newest first.
func BoardKeysOf(tx *ledger.Tx, user string) []BoardKey {
	out := []BoardKey{}
	prefix := BoardUserKey(user, "")
	for key := range tx.Prefix(prefix) {
		if k, ok := BoardKeys.Get(tx, string(key[len(prefix):])); ok {
			out = append(out, k)
		}
	}
	slices.SortStableFunc(out, func(a, b BoardKey) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt),
			cmp.Compare(b.ID, a.ID))
	})
	return out
}

// ChallengeByID returns a challenge if hash is the hash of its token.
func ChallengeByID(tx *ledger.Tx, id, hash string) (Challenge, bool) {
	if !core.IsID(id) || !core.IsHash(hash) {
		return Challenge{}, false
	}
	h, ok := challenges.Get(tx, id)
	return h, ok && subtle.ConstantTimeCompare([]byte(h.Hash), []byte(hash)) == 1
}

// CreateBoardKey is the payload of board_key.create. Hash is the SHA-256 of the
// token, in hex.
type CreateBoardKey struct {
	ID        string     `cbor:"1,keyasint"`
	Name      string     `cbor:"2,keyasint"`
	Hash      string     `cbor:"3,keyasint"`
	ExpiresAt *core.Time `cbor:"4,keyasint,omitempty"` // nil: after BoardKeyAge; 0: never
}

// RevokeBoardKey is the payload of board_key.revoke. The key must be the actor's own.
type RevokeBoardKey struct {
	ID string `cbor:"1,keyasint"`
}

// OpenChallenge is the payload of cli_auth.open, which a node gives for the caller.
type OpenChallenge struct {
	ID      string           `cbor:"1,keyasint"`
	Hash    string           `cbor:"2,keyasint"`
	KeyHash string           `cbor:"3,keyasint"`
	Command string           `cbor:"4,keyasint"`
	Client  string           `cbor:"5,keyasint,omitempty"`
	Access  string           `cbor:"6,keyasint"`
	Company ledger.CompanyID `cbor:"7,keyasint,omitempty"`
}

// DecideChallenge is the payload of cli_auth.approve and cli_auth.cancel. On approval, Key
// is the ID of the new board key.
type DecideChallenge struct {
	ID   string `cbor:"1,keyasint"`
	Hash string `cbor:"2,keyasint"`
	Key  string `cbor:"3,keyasint,omitempty"`
}

const (
	KindBoardKeyCreate = "board_key.create"
	KindBoardKeyRevoke = "board_key.revoke"
	KindCliAuthOpen    = "cli_auth.open"
	KindCliAuthApprove = "cli_auth.approve"
	KindCliAuthCancel  = "cli_auth.cancel"
)

var boardKeyKinds = []company.Kind{
	{Name: KindBoardKeyCreate, From: company.FromBoard, Traits: company.Personal | company.EndsKeys,
		Weight: company.Weights.Entering, Do: ledger.Typed(createBoardKey)},
	{Name: KindBoardKeyRevoke, From: company.FromBoard, Traits: company.Personal | company.EndsKeys,
		Weight: company.Weights.Entering, Do: ledger.Typed(revokeBoardKey)},
	{Name: KindCliAuthOpen, From: company.FromNode, Traits: company.EndsKeys, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(openChallenge)},
	{Name: KindCliAuthApprove, From: company.FromBoard, Traits: company.Personal | company.EndsKeys,
		Weight: company.Weights.Entering, Do: ledger.Typed(approveChallenge)},
	{Name: KindCliAuthCancel, From: company.FromNode, Traits: company.EndsKeys, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(cancelChallenge)},
}

func createBoardKey(c *ledger.Context, p CreateBoardKey) (any, error) {
	now := core.TimeOf(c.Now)
	expires := core.TimeOf(c.Now.Add(BoardKeyAge))
	if p.ExpiresAt != nil {
		if expires = *p.ExpiresAt; expires != 0 && expires <= now {
			return nil, ledger.Refuse(ledger.Invalid, nil, "expiresAt is not in the future")
		}
	}
	k, err := addBoardKey(c, BoardKey{ID: p.ID, User: c.Cmd.Actor.ID, Name: p.Name, Hash: p.Hash, CreatedAt: now,
		ExpiresAt: expires})
	if err != nil {
		return nil, err
	}
	c.Record(ledger.Change{Action: "board_api_key.created", EntityType: "board_api_key", EntityID: k.ID,
		Details: core.Object{}.Str("name", k.Name).Time("expiresAt", k.ExpiresAt).Close()})
	return k, nil
}

func addBoardKey(c *ledger.Context, k BoardKey) (BoardKey, error) {
	_, taken := BoardKeys.Get(c.Tx, k.ID)
	switch {
	case !core.IsID(k.ID) || !core.IsHash(k.Hash):
		return k, ledger.Refuse(ledger.Invalid, nil, "malformed key")
	case k.Name == "" || len(k.Name) > maxKeyName:
		return k, ledger.Refuse(ledger.Invalid, nil, "A key needs a name of at most %d bytes", maxKeyName)
	case taken || c.Has(BoardTokenKey(k.Hash)):
		return k, ledger.Refuse(ledger.Conflict, nil, "The key exists already")
	}
	if list := BoardKeysOf(c.Tx, k.User); len(list) >= MaxBoardKeys {
		n := len(list) - 1
		for n >= 0 && list[n].Valid(k.CreatedAt) {
			n--
		}
		if n < 0 {
			return k, ledger.Refuse(ledger.Conflict, nil, "You have %d keys already; revoke one", MaxBoardKeys)
		}
		c.Delete(BoardTokenKey(list[n].Hash))
		c.Delete(BoardUserKey(k.User, list[n].ID))
		BoardKeys.Delete(c.Tx, list[n].ID)
	}
	c.Set(BoardTokenKey(k.Hash), []byte(k.ID))
	c.Set(BoardUserKey(k.User, k.ID), nil)
	BoardKeys.Put(c.Tx, k.ID, k)
	return k, nil
}

func revokeBoardKey(c *ledger.Context, p RevokeBoardKey) (any, error) {
	k, ok := BoardKeyByID(c.Tx, p.ID)
	if !ok || k.User != c.Cmd.Actor.ID {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Board API key not found")
	}
	if k.RevokedAt != 0 {
		return k, nil
	}
	k = endBoardKey(c, k)
	c.Record(ledger.Change{Action: "board_api_key.revoked", EntityType: "board_api_key", EntityID: k.ID,
		Details: core.Object{}.Str("name", k.Name).Close()})
	return k, nil
}

func endBoardKey(c *ledger.Context, k BoardKey) BoardKey {
	k.RevokedAt = core.TimeOf(c.Now)
	c.Delete(BoardTokenKey(k.Hash))
	BoardKeys.Put(c.Tx, k.ID, k)
	return k
}

func openChallenge(c *ledger.Context, p OpenChallenge) (any, error) {
	now, waiting := core.TimeOf(c.Now), 0
	var over []string
	for id, h := range challenges.All(c.Tx) {
		if now >= h.ExpiresAt {
			over = append(over, id)
		} else {
			waiting++
		}
	}
	for _, id := range over {
		challenges.Delete(c.Tx, id)
	}
	switch {
	case !core.IsID(p.ID) || !core.IsHash(p.Hash) || !core.IsHash(p.KeyHash):
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed challenge")
	case p.Command == "" || len(p.Command) > maxCommand || len(p.Client) > maxKeyName:
		return nil, ledger.Refuse(ledger.Invalid, nil, "The challenge's text is empty or too long")
	case p.Access != "board" && p.Access != AccessAdmin:
		return nil, ledger.Refuse(ledger.Invalid, nil, "requestedAccess is board or %s", AccessAdmin)
	case p.Company != "" && !core.IsID(string(p.Company)):
		return nil, ledger.Refuse(ledger.Invalid, nil, "requestedCompanyId: a UUID is needed")
	case waiting >= MaxChallenges:
		return nil, ledger.Refuse(ledger.TooMany, nil, "Too many requests. Please try again later.")
	}
	if _, taken := challenges.Get(c.Tx, p.ID); taken {
		return nil, ledger.Refuse(ledger.Conflict, nil, "The challenge exists already")
	}
	h := Challenge{ID: p.ID, Hash: p.Hash, KeyHash: p.KeyHash, Command: p.Command, Client: core.NullText(p.Client),
		Access: p.Access, Company: core.Null[ledger.CompanyID](p.Company),
		ExpiresAt: core.TimeOf(c.Now.Add(ChallengeAge)), CreatedAt: now}
	challenges.Put(c.Tx, h.ID, h)
	c.Record(ledger.Change{Action: "cli_auth.requested", EntityType: "cli_auth_challenge", EntityID: h.ID,
		Details: core.Object{}.Str("command", h.Command).Null("clientName", string(h.Client)).Close()})
	return h, nil
}

// CanApprove returns nil if the user may approve the challenge, else the reason why not.
func (h Challenge) CanApprove(tx *ledger.Tx, user string) error {
	switch {
	case h.Access == AccessAdmin && !IsAdmin(tx, user):
		return errNotAdmin()
	case h.Company != "" && !MayEnter(tx, ledger.CompanyID(h.Company), user):
		return errNoAccess()
	}
	return nil
}

func errNoChallenge() error {
	return ledger.Refuse(ledger.NotFound, nil, "CLI auth challenge not found")
}

func approveChallenge(c *ledger.Context, p DecideChallenge) (any, error) {
	h, ok := ChallengeByID(c.Tx, p.ID, p.Hash)
	if !ok {
		return nil, errNoChallenge()
	}
	now := core.TimeOf(c.Now)
	switch h.Status(now) {
	case "expired", "cancelled":
		return h, nil // its status says so
	case "approved":
		if string(h.ApprovedBy) == c.Cmd.Actor.ID {
			return h, nil
		}
		return nil, core.Illegal("challengeId", h.ID, h.Status(now), "approved", nil, "CLI auth challenge already approved")
	}
	if err := h.CanApprove(c.Tx, c.Cmd.Actor.ID); err != nil {
		return nil, err
	}
	name := "CLI: " + core.Snippet(h.Command, maxKeyName-10)
	k, err := addBoardKey(c, BoardKey{ID: p.Key, User: c.Cmd.Actor.ID, Name: name, Hash: h.KeyHash, CreatedAt: now,
		ExpiresAt: core.TimeOf(c.Now.Add(BoardKeyAge))})
	if err != nil {
		return nil, err
	}
	h.ApprovedAt, h.ApprovedBy, h.Key = now, core.NullText(k.User), core.NullText(k.ID)
	challenges.Put(c.Tx, h.ID, h)
	c.Record(ledger.Change{Action: "board_api_key.created", EntityType: "board_api_key", EntityID: k.ID,
		Details: core.Object{}.Str("name", k.Name).Str("cliAuthChallengeId", h.ID).Time("expiresAt", k.ExpiresAt).Close()})
	return h, nil
}

func cancelChallenge(c *ledger.Context, p DecideChallenge) (any, error) {
	h, ok := ChallengeByID(c.Tx, p.ID, p.Hash)
	if !ok {
		return nil, errNoChallenge()
	}
	now := core.TimeOf(c.Now)
	if h.Status(now) != "pending" {
		return h, nil
	}
	h.CancelledAt = now
	challenges.Put(c.Tx, h.ID, h)
	c.Record(ledger.Change{Action: "cli_auth.cancelled", EntityType: "cli_auth_challenge", EntityID: h.ID})
	return h, nil
}
