package people

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A User is a person who signs in. It belongs to no company; see [Member].
type User struct {
	ID        string        `cbor:"1,keyasint"`
	Name      string        `cbor:"2,keyasint"`
	Email     string        `cbor:"3,keyasint"` // in lower case; no two users share one
	Image     core.NullText `cbor:"4,keyasint,omitempty"`
	Password  string        `cbor:"5,keyasint,omitempty"` // the API's hash of the password, never the password itself
	Admin     bool          `cbor:"6,keyasint,omitempty"` // administers the instance
	CreatedAt core.Time     `cbor:"7,keyasint"`
	UpdatedAt core.Time     `cbor:"8,keyasint"`
	// SuspendedAt is when an administrator suspended the user; 0 if they may sign in.
	SuspendedAt core.Time `cbor:"9,keyasint,omitempty"`
}

// Person returns the user as others see them.
func (u User) Person() Person {
	p := Person{ID: u.ID, Email: u.Email, Name: u.Name}
	if u.Image != "" {
		p.Image = new(string(u.Image))
	}
	return p
}

// shown is what commands about the user return. It has no password hash, because receipts
// are stored.
func (u User) shown() User { u.Password = ""; return u }

// A UserSession is a sign-in that has not ended. Only the hash of its token is stored.
type UserSession struct {
	ID        string    `cbor:"1,keyasint"`
	User      string    `cbor:"2,keyasint"`
	Hash      string    `cbor:"3,keyasint"` // SHA-256 of the token, hex
	CreatedAt core.Time `cbor:"4,keyasint"`
	ExpiresAt core.Time `cbor:"5,keyasint"`
}

// Valid reports whether the session is accepted at time now.
func (s UserSession) Valid(now core.Time) bool { return now < s.ExpiresAt }

// Keys of the mesh:
//
//	user-email/<hash>            the ID of the user with an address
//	user-session-token/<hash>    the ID of a session
//	user-session-of/<user>/<id>  the sessions of a user

// instance-claim               the ID of the user who claimed the instance
func EmailKey(email string) []byte          { return ledger.Key("user-email", emailHash(email)) }
func SessionTokenKey(hash string) []byte    { return ledger.Key("user-session-token", hash) }
func UserSessionKey(user, id string) []byte { return ledger.Key("user-session-of", user, id) }
func claimKey() []byte                      { return ledger.Key("instance-claim") }

func emailHash(email string) string {
	h := sha256.Sum256([]byte(email))
	return hex.EncodeToString(h[:])
}

type userTally struct {
	Users uint64 `cbor:"1,keyasint"`
}

var (
	UserTable    = ledger.NewMeshTable[string, User]("user")
	UserSessions = ledger.NewMeshTable[string, UserSession]("user-session")
	userTallies  = ledger.NewMeshTable[string, userTally]("user-tally")
)

const (
	// MaxUsers bounds the users of a mesh; lists read all of them.
	MaxUsers = 5_000
	// MaxUserSessions bounds the sessions of one user. At the bound, the oldest is deleted.
	MaxUserSessions = 30
	// SessionAge is how long a session is valid.
	SessionAge = 7 * 24 * time.Hour
	// MaxUserName, MaxEmail and MaxUserImage bound texts, in bytes.
	MaxUserName  = 480
	MaxEmail     = 254
	MaxUserImage = 4_000
	// maxPassword bounds the stored hash of a password, in bytes.
	maxPassword = 300
)

// UserByID returns a user.
func UserByID(tx *ledger.Tx, id string) (User, bool) {
	if !core.IsID(id) {
		return User{}, false
	}
	return UserTable.Get(tx, id)
}

// UserByEmail returns the user with an address; case does not matter.
func UserByEmail(tx *ledger.Tx, email string) (User, bool) {
	id, ok := tx.Get(EmailKey(PlainEmail(email)))
	if !ok {
		return User{}, false
	}
	return UserTable.Get(tx, string(id))
}

// PlainEmail returns an address in the form in which it is stored and compared.
func PlainEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// Users returns all users, oldest first.
func Users(tx *ledger.Tx) []User {
	out := []User{}
	for _, u := range UserTable.All(tx) {
		out = append(out, u.shown())
	}
	slices.SortStableFunc(out, func(a, b User) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt),
			cmp.Compare(a.ID, b.ID))
	})
	return out
}

// Claimed reports whether the instance has its first administrator.
func Claimed(tx *ledger.Tx) bool { return tx.Has(claimKey()) }

// SessionByID returns a session, also an expired one.
func SessionByID(tx *ledger.Tx, id string) (UserSession, bool) {
	if !core.IsID(id) {
		return UserSession{}, false
	}
	return UserSessions.Get(tx, id)
}

// SessionByHash returns the session whose token has the SHA-256 hash (hex).
func SessionByHash(tx *ledger.Tx, hash string) (UserSession, bool) {
	if !core.IsHash(hash) {
		return UserSession{}, false
	}
	id, ok := tx.Get(SessionTokenKey(hash))
	if !ok {
		return UserSession{}, false
	}
	return UserSessions.Get(tx, string(id))
}

// NewSession is the session that a command opens. Hash is the SHA-256 of its token, in hex.
type NewSession struct {
	ID   string `cbor:"1,keyasint"`
	Hash string `cbor:"2,keyasint"`
}

// CreateUser is the payload of user.create, which a node gives for a person who signs up.
type CreateUser struct {
	ID       string     `cbor:"1,keyasint"`
	Name     string     `cbor:"2,keyasint"`
	Email    string     `cbor:"3,keyasint"`
	Password string     `cbor:"4,keyasint"`
	Image    string     `cbor:"5,keyasint,omitempty"`
	Session  NewSession `cbor:"6,keyasint"`
	Invite   string     `cbor:"7,keyasint,omitempty"` // SHA-256 of the token of an invite, hex
}

// SignIn is the payload of user.sign_in, which a node gives after it has checked the
// password. Password identifies the stored hash that was checked: if the password has
// changed since, the sign-in is refused.
type SignIn struct {
	User     string     `cbor:"1,keyasint"`
	Password [32]byte   `cbor:"2,keyasint"` // SHA-256 of User.Password
	Session  NewSession `cbor:"3,keyasint"`
}

// SignOut is the payload of user.sign_out, which ends the session of the command.
type SignOut struct{}

// ClaimInstance is the payload of user.claim: the actor becomes the first administrator.
type ClaimInstance struct{}

// ChangeUser is the payload of user.update. It changes the actor.
type ChangeUser struct {
	Name  *string `cbor:"1,keyasint,omitempty"`
	Image *string `cbor:"2,keyasint,omitempty"` // "" removes it
}

// ChangePassword is the payload of user.password. It changes the actor's password, after a
// node has checked the old one, and ends the user's other sessions.
type ChangePassword struct {
	Was      [32]byte `cbor:"1,keyasint"` // SHA-256 of User.Password
	Password string   `cbor:"2,keyasint"`
}

// AppointAdmin is the payload of user.admin.
type AppointAdmin struct {
	User  string `cbor:"1,keyasint"`
	Admin bool   `cbor:"2,keyasint,omitempty"`
}

// EndCredentials is the payload of user.revoke. It ends the user's sessions and, with Keys,
// revokes their board keys. The user and administrators may give it.
type EndCredentials struct {
	User string `cbor:"1,keyasint"`
	Keys bool   `cbor:"2,keyasint,omitempty"`
}

const (
	KindUserCreate   = "user.create"
	KindUserSignIn   = "user.sign_in"
	KindUserSignOut  = "user.sign_out"
	KindUserClaim    = "user.claim"
	KindUserUpdate   = "user.update"
	KindUserPassword = "user.password"
	KindUserAdmin    = "user.admin"
	KindUserRevoke   = "user.revoke"
	KindUserSuspend  = "user.suspend"
)

var userKinds = []company.Kind{
	{Name: KindUserCreate, From: company.FromNode, Traits: company.Personal | company.EndsKeys,
		Weight: company.Weights.ByNodes, Do: ledger.Typed(createUser)},
	{Name: KindUserSignIn, From: company.FromNode, Traits: company.Personal | company.EndsKeys,
		Weight: company.Weights.ByNodes, Do: ledger.Typed(signIn)},
	{Name: KindUserSignOut, From: company.FromBoard, Traits: company.Personal | company.EndsKeys,
		Weight: company.Weights.Entering, Do: ledger.Typed(signOut)},
	{Name: KindUserClaim, From: company.FromBoard, Traits: company.Personal | company.EndsKeys,
		Weight: company.Weights.Entering, Do: ledger.Typed(claimInstance)},
	{Name: KindUserUpdate, From: company.FromBoard, Traits: company.Personal | company.EndsKeys,
		Weight: company.Weights.Entering, Do: ledger.Typed(changeUser)},
	{Name: KindUserPassword, From: company.FromBoard, Traits: company.Personal | company.EndsKeys,
		Weight: company.Weights.Entering, Do: ledger.Typed(changePassword)},
	{Name: KindUserAdmin, From: company.FromBoard, Traits: company.Personal | company.EndsKeys,
		Weight: company.Weights.Empowering, Do: ledger.Typed(appointAdmin)},
	{Name: KindUserRevoke, From: company.FromBoard, Traits: company.Personal | company.EndsKeys,
		Weight: company.Weights.Halting, Do: ledger.Typed(endCredentials)},
	{Name: KindUserSuspend, From: company.FromBoard, Traits: company.Personal | company.EndsKeys,
		Weight: company.Weights.Halting, Do: ledger.Typed(suspendUser)},
}

func checkUserText(name, image string) error {
	switch {
	case strings.TrimSpace(name) == "" || len(name) > MaxUserName || !utf8.ValidString(name):
		return ledger.Refuse(ledger.Invalid, nil, "A user needs a name of at most %d bytes", MaxUserName)
	case len(image) > MaxUserImage:
		return ledger.Refuse(ledger.Invalid, nil, "image is longer than %d bytes", MaxUserImage)
	}
	return nil
}

func createUser(c *ledger.Context, p CreateUser) (any, error) {
	if !SignsIn(c.Tx) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "Nobody can sign in while the mode is %s", LocalTrusted)
	}
	if err := checkUserText(p.Name, p.Image); err != nil {
		return nil, err
	}
	if err := maySignUp(c, p.Invite); err != nil {
		return nil, err
	}
	_, taken := UserTable.Get(c.Tx, p.ID)
	t, _ := userTallies.Get(c.Tx, "all")
	switch {
	case !core.IsID(p.ID) || taken || p.Password == "" || len(p.Password) > maxPassword:
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed user")
	case p.Email != PlainEmail(p.Email) || p.Email == "" || len(p.Email) > MaxEmail || !strings.Contains(p.Email, "@"):
		return nil, ledger.Refuse(ledger.Invalid, nil, "email is not an address")
	case c.Has(EmailKey(p.Email)):
		return nil, ledger.Refuse(ledger.Conflict, nil, "User already exists. Use another email.")
	case t.Users >= MaxUsers:
		return nil, ledger.Refuse(ledger.TooMany, nil, "The mesh has %d users already", MaxUsers)
	}
	now := core.TimeOf(c.Now)
	u := User{ID: p.ID, Name: p.Name, Email: p.Email, Image: core.NullText(p.Image), Password: p.Password, CreatedAt: now,
		UpdatedAt: now}
	if err := openSession(c, u.ID, p.Session); err != nil {
		return nil, err
	}
	userTallies.Put(c.Tx, "all", userTally{t.Users + 1})
	c.Set(EmailKey(u.Email), []byte(u.ID))
	UserTable.Put(c.Tx, u.ID, u)
	c.Record(ledger.Change{Action: "user.created", EntityType: "user", EntityID: u.ID})
	return u.shown(), nil
}

// openSession adds a session. It deletes the user's expired sessions and, at the bound, the
// oldest one.
func openSession(c *ledger.Context, user string, p NewSession) error {
	_, taken := SessionByID(c.Tx, p.ID)
	if !core.IsID(p.ID) || !core.IsHash(p.Hash) || taken || c.Has(SessionTokenKey(p.Hash)) {
		return ledger.Refuse(ledger.Invalid, nil, "malformed session")
	}
	now := core.TimeOf(c.Now)
	list := sessionsOf(c.Tx, user)
	for i, s := range list {
		if !s.Valid(now) || len(list)-i >= MaxUserSessions {
			endSession(c, s)
		}
	}
	s := UserSession{ID: p.ID, User: user, Hash: p.Hash, CreatedAt: now, ExpiresAt: core.TimeOf(c.Now.Add(SessionAge))}
	UserSessions.Put(c.Tx, s.ID, s)
	c.Set(SessionTokenKey(s.Hash), []byte(s.ID))
	c.Set(UserSessionKey(user, s.ID), nil)
	return nil
}

// sessionsOf returns a user's sessions, the oldest first.
func sessionsOf(tx *ledger.Tx, user string) []UserSession {
	var out []UserSession
	prefix := UserSessionKey(user, "")
	for key := range tx.Prefix(prefix) {
		if s, ok := UserSessions.Get(tx, string(key[len(prefix):])); ok {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b UserSession) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return out
}

func endSession(c *ledger.Context, s UserSession) {
	UserSessions.Delete(c.Tx, s.ID)
	c.Delete(SessionTokenKey(s.Hash))
	c.Delete(UserSessionKey(s.User, s.ID))
}

func signIn(c *ledger.Context, p SignIn) (any, error) {
	u, ok := UserByID(c.Tx, p.User)
	if !ok || sha256.Sum256([]byte(u.Password)) != p.Password || !SignsIn(c.Tx) {
		return nil, ledger.Refuse(ledger.Unauthorized, nil, "Invalid email or password")
	}
	if u.Suspended() {
		return nil, errSuspended()
	}
	if err := openSession(c, u.ID, p.Session); err != nil {
		return nil, err
	}
	c.Record(ledger.Change{Action: "user.signed_in", EntityType: "user", EntityID: u.ID})
	return u.shown(), nil
}

func signOut(c *ledger.Context, _ SignOut) (any, error) {
	s, ok := SessionByID(c.Tx, c.Cmd.Credential.ID)
	if !ok || c.Cmd.Credential.Kind != "session" {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "There is no session to end")
	}
	endSession(c, s)
	c.Record(ledger.Change{Action: "user.signed_out", EntityType: "user", EntityID: s.User})
	return nil, nil
}

// selfUser returns the user who gives the command; the local board is no user.
func selfUser(c *ledger.Context) (User, error) {
	u, ok := UserByID(c.Tx, c.Cmd.Actor.ID)
	if !ok {
		return u, ledger.Refuse(ledger.Conflict, nil, "Only a user who signed up can do this")
	}
	return u, nil
}

func claimInstance(c *ledger.Context, _ ClaimInstance) (any, error) {
	u, err := selfUser(c)
	if err != nil {
		return nil, err
	}
	if by, ok := c.Get(claimKey()); ok {
		if string(by) == u.ID && u.Admin {
			return u.shown(), nil
		}
		return nil, ledger.Refuse(ledger.Conflict, nil, "The instance has its first administrator already")
	}
	c.Set(claimKey(), []byte(u.ID))
	u.Admin, u.UpdatedAt = true, core.TimeOf(c.Now)
	UserTable.Put(c.Tx, u.ID, u)
	c.Record(ledger.Change{Action: "instance.claimed", EntityType: "user", EntityID: u.ID})
	return u.shown(), nil
}

func changeUser(c *ledger.Context, p ChangeUser) (any, error) {
	u, err := selfUser(c)
	if err != nil {
		return nil, err
	}
	if p.Name != nil {
		u.Name = *p.Name
	}
	if p.Image != nil {
		u.Image = core.NullText(*p.Image)
	}
	if err := checkUserText(u.Name, string(u.Image)); err != nil {
		return nil, err
	}
	u.UpdatedAt = core.TimeOf(c.Now)
	UserTable.Put(c.Tx, u.ID, u)
	c.Record(ledger.Change{Action: "user.updated", EntityType: "user", EntityID: u.ID})
	return u.shown(), nil
}

func changePassword(c *ledger.Context, p ChangePassword) (any, error) {
	u, err := selfUser(c)
	switch {
	case err != nil:
		return nil, err
	case c.Cmd.Credential.Kind != "session":
		return nil, ledger.Refuse(ledger.Forbidden, nil, "Only a user who signed in with a password can change it")
	case sha256.Sum256([]byte(u.Password)) != p.Was:
		return nil, ledger.Refuse(ledger.Conflict, nil, "The password was changed by someone else")
	case p.Password == "" || len(p.Password) > maxPassword:
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed password")
	}
	u.Password, u.UpdatedAt = p.Password, core.TimeOf(c.Now)
	UserTable.Put(c.Tx, u.ID, u)
	for _, s := range sessionsOf(c.Tx, u.ID) {
		if s.ID != c.Cmd.Credential.ID {
			endSession(c, s)
		}
	}
	c.Record(ledger.Change{Action: "user.password_changed", EntityType: "user", EntityID: u.ID})
	return u.shown(), nil
}

func endCredentials(c *ledger.Context, p EndCredentials) (any, error) {
	if p.User != c.Cmd.Actor.ID && !IsAdmin(c.Tx, c.Cmd.Actor.ID) {
		return nil, errNotAdmin()
	}
	u, ok := UserByID(c.Tx, p.User)
	if !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "User not found")
	}
	ended, revoked := 0, 0
	for _, s := range sessionsOf(c.Tx, u.ID) {
		endSession(c, s)
		ended++
	}
	for _, k := range BoardKeysOf(c.Tx, u.ID) {
		if p.Keys && k.RevokedAt == 0 {
			endBoardKey(c, k)
			revoked++
		}
	}
	c.Record(ledger.Change{Action: "user.credentials_revoked", EntityType: "user", EntityID: u.ID,
		Details: core.Object{}.Int("sessions", int64(ended)).Int("boardKeys", int64(revoked)).Close()})
	return u.shown(), nil
}

func appointAdmin(c *ledger.Context, p AppointAdmin) (any, error) {
	if !IsAdmin(c.Tx, c.Cmd.Actor.ID) {
		return nil, errNotAdmin()
	}
	u, ok := UserByID(c.Tx, p.User)
	if !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "User not found")
	}
	if u.Admin == p.Admin {
		return u.shown(), nil
	}
	if !p.Admin && !otherAdmin(c.Tx, u.ID) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "The last administrator of the instance can not lose the role")
	}
	u.Admin, u.UpdatedAt = p.Admin, core.TimeOf(c.Now)
	UserTable.Put(c.Tx, u.ID, u)
	action := "instance_admin.promoted"
	if !p.Admin {
		action = "instance_admin.demoted"
	}
	c.Record(ledger.Change{Action: action, EntityType: "user", EntityID: u.ID})
	return u.shown(), nil
}

func otherAdmin(tx *ledger.Tx, beside string) bool {
	for id, u := range UserTable.All(tx) {
		if u.Admin && id != beside && !u.Suspended() {
			return true
		}
	}
	return false
}
