package ledger

import (
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/identity"
)

// A Token lets nodes join. Its pre-shared key is here only sealed with the
// mesh's data key, so that any member can answer a joiner.
type Token struct {
	ID        string `cbor:"1,keyasint"`
	Sealed    []byte `cbor:"2,keyasint"` // the PSK, sealed (identity.Seal)
	Uses      uint64 `cbor:"3,keyasint"` // how many nodes may join with it in all
	Used      uint64 `cbor:"4,keyasint,omitempty"`
	Created   int64  `cbor:"5,keyasint"` // ms since 1970
	Expires   int64  `cbor:"6,keyasint"` // ms since 1970
	CreatedBy Actor  `cbor:"7,keyasint"`
	Revoked   int64  `cbor:"8,keyasint,omitempty"`
	Note      string `cbor:"9,keyasint,omitempty"`
	// Owner says that this is an owner key: it is good for any number of nodes
	// until it is revoked. Uses and Expires are 0.
	Owner bool `cbor:"10,keyasint,omitempty"`
}

// Usable reports whether one more node may join with t at a time, in ms.
func (t Token) Usable(now int64) bool {
	return t.Revoked == 0 && (t.Owner || t.Used < t.Uses && now < t.Expires)
}

// TokenCreate is the payload of token.create, by a user; its value is the [Token].
type TokenCreate struct {
	ID     string `cbor:"1,keyasint"`
	Sealed []byte `cbor:"2,keyasint"`
	Uses   uint64 `cbor:"3,keyasint"` // 1 … MaxTokenUses
	TTL    int64  `cbor:"4,keyasint"` // ms, at most MaxTokenTTL
	Note   string `cbor:"5,keyasint,omitempty"`
}

// OwnerAdd is the payload of owner.add, by a user; its value is the [Token].
type OwnerAdd struct {
	ID     string `cbor:"1,keyasint"` // identity.OwnerKey.TokenID
	Sealed []byte `cbor:"2,keyasint"` // the key, sealed as a token's
	Note   string `cbor:"3,keyasint,omitempty"`
}

// TokenRevoke is the payload of token.revoke, by a user.
type TokenRevoke struct {
	ID string `cbor:"1,keyasint"`
}

const (
	MaxTokenUses = 1000
	// MaxTokenTTL bounds how long a key that opens the door may lie about.
	MaxTokenTTL = 30 * 24 * time.Hour
	// MaxTokens bounds the table; those that are no longer usable for keepToken
	// are swept when one is created.
	MaxTokens = 256
	keepToken = 30 * 24 * time.Hour
)

var tokens = NewMeshTable[string, Token]("token")

// FindToken returns a join token.
func FindToken(tx *Tx, id string) (Token, bool) { return tokens.Get(tx, id) }

// Tokens returns all join tokens by ID, also those that are used up.
func Tokens(tx *Tx) []Token {
	var out []Token
	for _, t := range tokens.All(tx) {
		out = append(out, t)
	}
	return out
}

func applyTokenCreate(c *Context, p TokenCreate) (any, error) {
	if err := operator(c); err != nil {
		return nil, err
	}
	switch {
	case p.ID == "" || !validKeyPart(p.ID) || strings.HasPrefix(p.ID, identity.OwnerTokenPrefix):
		return nil, Refuse(Invalid, nil, "malformed token ID")
	case p.Uses < 1 || p.Uses > MaxTokenUses:
		return nil, Refuse(Invalid, nil, "a token has 1 to %d uses", MaxTokenUses)
	case p.TTL <= 0 || p.TTL > MaxTokenTTL.Milliseconds():
		return nil, Refuse(Invalid, nil, "a token lasts at most %d days", int(MaxTokenTTL.Hours()/24))
	case len(p.Sealed) == 0 || len(p.Sealed) > maxSealedBytes:
		return nil, Refuse(Invalid, nil, "malformed token key")
	case p.Note != "" && !plainText(p.Note, maxLabelBytes):
		return nil, Refuse(Invalid, nil, "malformed note")
	}
	if _, ok := FindToken(c.Tx, p.ID); ok {
		return nil, Refuse(Conflict, nil, "there is a token %s already", p.ID)
	}
	if err := roomForToken(c); err != nil {
		return nil, err
	}
	now := c.Now.UnixMilli()
	t := Token{ID: p.ID, Sealed: p.Sealed, Uses: p.Uses, Created: now, Expires: now + p.TTL, CreatedBy: c.Cmd.Actor,
		Note: p.Note}
	tokens.Put(c.Tx, t.ID, t)
	c.Record(Change{Action: "token.created", EntityType: "token", EntityID: t.ID})
	return t, nil
}

// roomForToken sweeps tokens that are long over and refuses when there are too many.
func roomForToken(c *Context) error {
	now, n := c.Now.UnixMilli(), 0
	for id, t := range tokens.All(c.Tx) {
		n++
		if !t.Usable(now) && now-max(t.Expires, t.Revoked) > keepToken.Milliseconds() {
			tokens.Delete(c.Tx, id)
			n--
		}
	}
	if n >= MaxTokens {
		return Refuse(TooMany, nil, "there are %d tokens already", n)
	}
	return nil
}

func applyOwnerAdd(c *Context, p OwnerAdd) (any, error) {
	if err := operator(c); err != nil {
		return nil, err
	}
	return putOwner(c, p)
}

func putOwner(c *Context, p OwnerAdd) (any, error) {
	switch {
	case !strings.HasPrefix(p.ID, identity.OwnerTokenPrefix) || !validKeyPart(p.ID):
		return nil, Refuse(Invalid, nil, "malformed ID of an owner key")
	case len(p.Sealed) == 0 || len(p.Sealed) > maxSealedBytes:
		return nil, Refuse(Invalid, nil, "malformed owner key")
	case p.Note != "" && !plainText(p.Note, maxLabelBytes):
		return nil, Refuse(Invalid, nil, "malformed note")
	}
	old, known := FindToken(c.Tx, p.ID)
	if known && old.Revoked == 0 {
		return nil, Refuse(Conflict, nil, "the mesh has this owner key already")
	}
	if !known {
		if err := roomForToken(c); err != nil {
			return nil, err
		}
	}
	t := Token{ID: p.ID, Sealed: p.Sealed, Used: old.Used, Created: c.Now.UnixMilli(), CreatedBy: c.Cmd.Actor,
		Note: p.Note, Owner: true}
	tokens.Put(c.Tx, t.ID, t)
	c.Record(Change{Action: "owner.added", EntityType: "token", EntityID: t.ID})
	return t, nil
}

func applyTokenRevoke(c *Context, p TokenRevoke) (any, error) {
	if err := operator(c); err != nil {
		return nil, err
	}
	t, ok := FindToken(c.Tx, p.ID)
	if !ok {
		return nil, Refuse(NotFound, nil, "no token %s", p.ID)
	}
	if t.Revoked == 0 {
		t.Revoked = c.Now.UnixMilli()
		tokens.Put(c.Tx, t.ID, t)
		c.Record(Change{Action: "token.revoked", EntityType: "token", EntityID: t.ID})
	}
	return t, nil
}

// byTokenOrOperator allows a member to let in whoever showed it a known token,
// and a user to let in anyone.
func byTokenOrOperator(c *Context, token string) error {
	if token == "" {
		return operator(c)
	}
	if err := trusted(c); err != nil {
		return err
	}
	if _, ok := FindToken(c.Tx, token); !ok {
		return Refuse(Forbidden, nil, "no such join token")
	}
	return nil
}

// mayAdmit is byTokenOrOperator for a node that is new; it uses the token up.
func mayAdmit(c *Context, token string) error {
	if err := byTokenOrOperator(c, token); err != nil || token == "" {
		return err
	}
	t, _ := FindToken(c.Tx, token)
	if !t.Usable(c.Now.UnixMilli()) {
		return Refuse(Forbidden, nil, "the join token was revoked, has expired or is used up")
	}
	t.Used++
	tokens.Put(c.Tx, t.ID, t)
	return nil
}
