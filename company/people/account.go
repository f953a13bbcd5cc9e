package people

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// Who may sign up, as the general settings say in signUps.
const (
	// SignUpsOpen lets anybody sign up who reaches the sign-in.
	SignUpsOpen = "open"
	// SignUpsInvited asks for the token of an invite for people that can be used.
	SignUpsInvited = "invited"
	// SignUpsClosed lets nobody sign up.
	SignUpsClosed = "closed"
)

// SignUpsOf returns who may sign up. The first user always may: without one,
// nobody could open a closed mesh.
func SignUpsOf(tx *ledger.Tx) string {
	s := struct {
		SignUps string `json:"signUps"`
	}{SignUpsOpen}
	_ = json.Unmarshal(company.SettingsOf(tx, "general").Values, &s) // the API checked it
	if t, _ := userTallies.Get(tx, "all"); t.Users == 0 {
		return SignUpsOpen
	}
	return s.SignUps
}

// maySignUp refuses whom the settings do not let in. Invite is the SHA-256 of the
// token that they brought, in hex, or "".
func maySignUp(c *ledger.Context, invite string) error {
	switch SignUpsOf(c.Tx) {
	case SignUpsOpen:
		return nil
	case SignUpsInvited:
		if i, ok := InviteByHash(c.Tx, invite); ok && i.Open(core.TimeOf(c.Now)) && i.Joins != JoinAgent {
			return nil
		}
		return coded("sign_up_invite_required", "Signing up takes an invite")
	}
	return coded("sign_up_closed", "Nobody can sign up here any more")
}

func coded(code, text string) error {
	err := ledger.Refuse(ledger.Forbidden, nil, "%s", text)
	err.(*ledger.Refusal).ErrCode = code
	return err
}

// Suspended reports whether an administrator has shut a user out.
func (u User) Suspended() bool { return u.SuspendedAt != 0 }

// SuspendUser is the payload of user.suspend. Whoever is suspended is signed out
// everywhere; their board keys stay and open nothing until they are let in again.
type SuspendUser struct {
	User    string `cbor:"1,keyasint"`
	Suspend bool   `cbor:"2,keyasint,omitempty"`
}

// errSuspended is what somebody hears who is shut out.
func errSuspended() error {
	return coded("account_suspended", "This account is suspended")
}

func suspendUser(c *ledger.Context, p SuspendUser) (any, error) {
	if !IsAdmin(c.Tx, c.Cmd.Actor.ID) {
		return nil, errNotAdmin()
	}
	u, ok := UserByID(c.Tx, p.User)
	switch {
	case !ok:
		return nil, ledger.Refuse(ledger.NotFound, nil, "User not found")
	case p.Suspend && u.ID == c.Cmd.Actor.ID:
		return nil, ledger.Refuse(ledger.Conflict, nil, "You can not suspend yourself")
	case p.Suspend == u.Suspended():
		return u.shown(), nil
	case p.Suspend && u.Admin && !otherAdmin(c.Tx, u.ID):
		return nil, ledger.Refuse(ledger.Conflict, nil, "The last administrator of the instance can not be suspended")
	}
	ended, action := 0, "user.resumed"
	u.SuspendedAt, u.UpdatedAt = 0, core.TimeOf(c.Now)
	if p.Suspend {
		u.SuspendedAt, action = core.TimeOf(c.Now), "user.suspended"
		for _, s := range sessionsOf(c.Tx, u.ID) {
			endSession(c, s)
			ended++
		}
	}
	UserTable.Put(c.Tx, u.ID, u)
	c.Record(ledger.Change{Action: action, EntityType: "user", EntityID: u.ID, Details: core.Object{}.Int("sessions", int64(ended)).Close()})
	return u.shown(), nil
}
