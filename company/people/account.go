package people

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// Values of signUps in the general settings: who may sign up.
const (
	// SignUpsOpen lets anybody sign up who reaches the sign-in page.
	SignUpsOpen = "open"
	// SignUpsInvited requires the token of an open invite for people.
	SignUpsInvited = "invited"
	// SignUpsClosed rejects every sign-up.
	SignUpsClosed = "closed"
)

// SignUpsOf returns who may sign up. While the mesh has no user, the answer is
// SignUpsOpen: otherwise nobody could become its first user.
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

// maySignUp rejects a sign-up that the settings do not allow. invite is the SHA-256 of the
// presented token, in hex, or "".
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

// Suspended reports whether an administrator has suspended the user.
func (u User) Suspended() bool { return u.SuspendedAt != 0 }

// SuspendUser is the payload of user.suspend. It ends the user's sign-ins. Their board keys
// are kept, but are rejected until the suspension is lifted.
type SuspendUser struct {
	User    string `cbor:"1,keyasint"`
	Suspend bool   `cbor:"2,keyasint,omitempty"`
}

// errSuspended is the refusal that a suspended user gets.
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
	c.Record(ledger.Change{Action: action, EntityType: "user", EntityID: u.ID, Details: core.Object{}.Int("sessions",
		int64(ended)).Close()})
	return u.shown(), nil
}
