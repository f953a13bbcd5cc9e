package people

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/mail"
	"strings"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// sessionTokenBytes is the number of random bytes in a session's token.
const sessionTokenBytes = 32

// signUpBody creates a user. Handlers report invalid fields in the form that sign-in
// pages expect, so the bounds here are far above theirs.
type signUpBody struct {
	Name     string          `json:"name" maxLength:"4000"`
	Email    string          `json:"email" maxLength:"4000"`
	Password string          `json:"password" maxLength:"4000"`
	Image    api.Opt[string] `json:"image" maxLength:"4000"`
	Callback api.Opt[string] `json:"callbackURL" maxLength:"4000"` // ignored
	Remember api.Opt[bool]   `json:"rememberMe"`                   // ignored: every session lasts company.SessionAge
	Invite   api.Opt[string] `json:"inviteToken" maxLength:"4000"` // used where sign-up needs an invite
}

type passwordBody struct {
	Current string `json:"currentPassword" maxLength:"4000"`
	New     string `json:"newPassword" maxLength:"4000"`
	Others  bool   `json:"revokeOtherSessions,omitempty"` // ignored: other sessions always end
}

// signedIn is the answer to a sign-in. Token is the ID of the session, not a credential:
// the token is in the cookie, which scripts can not read.
type signedIn struct {
	Redirect *bool      `json:"redirect,omitempty"`
	Token    string     `json:"token"`
	User     signedUser `json:"user"`
}

type signedUser struct {
	ID        string        `json:"id"`
	Name      string        `json:"name"`
	Email     string        `json:"email"`
	Verified  bool          `json:"emailVerified"`
	Image     core.NullText `json:"image"`
	CreatedAt core.Time     `json:"createdAt"`
	UpdatedAt core.Time     `json:"updatedAt"`
}

func showSigned(u people.User) signedUser {
	return signedUser{ID: u.ID, Name: u.Name, Email: u.Email, Image: u.Image, CreatedAt: u.CreatedAt,
		UpdatedAt: u.UpdatedAt}
}

func refuseAuth(status int, code, text string) (api.Response, error) {
	return api.Reply(status, api.AuthRefusal{Message: text, Code: code, Error: text}), nil
}

// asAuth answers err in the form that sign-in pages read, or returns it if it has none.
func asAuth(err error) (api.Response, error) {
	if errors.Is(err, api.ErrTooOften) {
		return refuseAuth(http.StatusTooManyRequests, "", api.ErrTooOften.Message)
	}
	return api.Response{}, err
}

type profileBody struct {
	Name  string          `json:"name" minLength:"1" maxLength:"120"`
	Image api.Opt[string] `json:"image" maxLength:"4000"`
}

// claimInstanceBody may be omitted by a caller on the node's own machine.
type claimInstanceBody struct {
	Code api.Opt[string] `json:"code" maxLength:"200"`
}

type claimed struct {
	Claimed bool   `json:"claimed"`
	User    string `json:"userId"`
}

type adminUser struct {
	user
	Admin     bool      `json:"isInstanceAdmin"`
	Companies int       `json:"activeCompanyMembershipCount"`
	CreatedAt core.Time `json:"createdAt"`
	Suspended core.Time `json:"suspendedAt"`
}

func UserRoutes() []api.Route {
	const tag, admins = "auth", "/api/admin/users"
	return []api.Route{
		{Method: "POST", Path: "/api/auth/sign-up/email", Tag: tag, Summary: "Sign up with an e-mail address and a password",
			Who: api.Public, In: signUpBody{}, Out: signedIn{}, NoTool: true, Handle: signUp},
		{Method: "POST", Path: "/api/auth/sign-in/email", Tag: tag, Summary: "Sign in with an e-mail address and a password",
			Who: api.Public, In: signInBody{}, Out: signedIn{}, NoTool: true, Handle: signIn},
		{Method: "POST", Path: "/api/auth/sign-out", Tag: tag, Summary: "End the session of the request", Who: api.Public,
			Out: signedOut{}, NoTool: true, Handle: signOut},
		{Method: "POST", Path: "/api/auth/change-password", Limited: true, Tag: tag,
			Summary: "Change one's password; other sessions end", Who: api.Board, In: passwordBody{}, Out: passwordChanged{},
			NoTool: true, Handle: changePassword},
		{Method: "GET", Path: "/api/auth/get-session", Tag: tag, Summary: "Tell who is signed in", Who: api.Board,
			Out: session{}, Handle: getSession},
		{Method: "GET", Path: "/api/auth/profile", Tag: tag, Summary: "Read the user's profile", Who: api.Board, Out: user{},
			Handle: readProfile},
		{Method: "PATCH", Path: "/api/auth/profile", Limited: true, Tag: tag, Summary: "Change the user's profile",
			Who: api.Board, In: profileBody{}, Out: user{}, Handle: updateProfile},
		{Method: "POST", Path: "/api/bootstrap/claim", Limited: true, Tag: tag,
			Summary: "Become the first administrator of the instance", Who: api.Board, In: claimInstanceBody{}, Out: claimed{},
			NoTool: true, Handle: claimInstance},
		{Method: "GET", Path: admins, Tag: tag, Summary: "List the users", Who: api.Admin,
			Query: []api.Param{{Name: "query", Doc: "only those with this in name or address"},
				{Name: "limit", Type: "integer", Doc: "at most so many"}, {Name: "offset", Type: "integer",
					Doc: "without the first so many"}}, Out: []adminUser{}, Handle: listUsers},
		{Method: "POST", Path: admins + "/{userId}/promote-instance-admin", Tag: tag,
			Summary: "Make a user an administrator of the instance", Who: api.Admin, Out: adminUser{}, NoTool: true,
			Handle: appoint(true)},
		{Method: "POST", Path: admins + "/{userId}/demote-instance-admin", Tag: tag,
			Summary: "Make a user no administrator of the instance", Who: api.Admin, Out: adminUser{}, NoTool: true,
			Handle: appoint(false)},
		{Method: "POST", Path: "/api/auth/revoke-sessions", Limited: true, Tag: tag, Summary: "End all of one's sign-ins",
			Who: api.Board, Out: sessionsRevoked{}, NoTool: true, Handle: revokeSessions},
		{Method: "POST", Path: admins + "/{userId}/revoke-credentials", Limited: true, Tag: tag,
			Summary: "End a user's sign-ins and revoke their board keys", Who: api.Admin, Out: adminUser{}, NoTool: true,
			Handle: revokeCredentials},
		{Method: "POST", Path: admins + "/{userId}/suspend", Tag: tag,
			Summary: "Shut a user out: they are signed out and their keys open nothing", Who: api.Admin, Out: adminUser{},
			NoTool: true, Handle: suspend(true)},
		{Method: "POST", Path: admins + "/{userId}/resume", Tag: tag, Summary: "Let a suspended user in again",
			Who: api.Admin, Out: adminUser{}, NoTool: true, Handle: suspend(false)},
	}
}

// errLocal refuses sign-ins in local_trusted mode.
var errLocal = api.Conflict("Nobody signs in on this mesh: its mode is "+people.LocalTrusted, nil)

// errClaimCode refuses a claim over the network without the code (403).
var errClaimCode = api.Forbidden("Claiming the instance from another machine takes the code in the node's file " +
	"claim-code")

// newSession creates a session and its random token.
func newSession() (s people.NewSession, token string) {
	b := make([]byte, sessionTokenBytes)
	rand.Read(b)
	token = base64.RawURLEncoding.EncodeToString(b)
	return people.NewSession{ID: api.NewID(), Hash: api.HashOf(token)}, token
}

func checkPassword(text string) (code, why string) {
	switch {
	case utf8.RuneCountInString(text) < api.MinPassword:
		return "PASSWORD_TOO_SHORT", "Password too short"
	case len(text) > api.MaxPassword || !utf8.ValidString(text):
		return "PASSWORD_TOO_LONG", "Password too long"
	}
	return "", ""
}

func plainAddress(text string) (string, bool) {
	text = people.PlainEmail(text)
	a, err := mail.ParseAddress(text)
	return text, err == nil && a.Address == text && a.Name == "" && len(text) <= people.MaxEmail
}

func signUp(rc *api.Request) (api.Response, error) {
	if rc.Server.TrustsAll() {
		return api.Response{}, errLocal
	}
	in, err := api.Body[signUpBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	email, ok := plainAddress(in.Email)
	if !ok {
		return refuseAuth(http.StatusBadRequest, "INVALID_EMAIL", "Invalid email")
	}
	if code, why := checkPassword(in.Password); code != "" {
		return refuseAuth(http.StatusBadRequest, code, why)
	}
	name := strings.TrimSpace(in.Name)
	if name == "" || len(name) > people.MaxUserName || len(in.Image.Or("")) > people.MaxUserImage {
		return api.Response{}, api.ValidationError(api.Custom("Invalid name or image: a name is needed, and neither may "+
			"be too long", "name"))
	}
	if err := rc.Limited("sign-up", api.SignUpRate); err != nil {
		return asAuth(err)
	}
	kept, err := rc.Server.Hasher.Make(rc.Context(), in.Password)
	if err != nil {
		return api.Response{}, err
	}
	s, token := newSession()
	invite := ""
	if in.Invite.Or("") != "" {
		invite = api.HashOf(in.Invite.Or(""))
	}
	rc.OfNode("auth")
	u, err := api.Do[people.User](rc, people.KindUserCreate, "", people.CreateUser{ID: api.NewID(), Name: name,
		Email: email, Password: kept, Image: in.Image.Or(""), Session: s, Invite: invite})
	if r, ok := errors.AsType[*ledger.Refusal](err); ok && r.Code == ledger.Conflict {
		return refuseAuth(http.StatusUnprocessableEntity, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL", r.Message)
	}
	if r, ok := errors.AsType[*ledger.Refusal](err); ok && r.Code == ledger.Forbidden {
		return refuseAuth(http.StatusForbidden, strings.ToUpper(r.ErrCode), r.Message)
	}
	if err != nil {
		return api.Response{}, err
	}
	rc.KeepCookie(token)
	return api.OK(signedIn{Token: s.ID, User: showSigned(u)}), nil
}

// passwordFits reports whether a password is that of the user that find returns. If it
// does not match in this node's state, the newest state is read: the user may have
// signed up or changed the password on another node a moment ago. An unknown address
// takes as long as a wrong password.
func passwordFits(rc *api.Request, password string, find func(*ledger.Tx) (people.User, bool)) (u people.User,
	fits bool, err error) {
	if _, err = rc.StillTrue(func(tx *ledger.Tx) bool { u, _ = find(tx); return true }); err != nil {
		return u, false, err
	}
	if fits, err = rc.Server.Hasher.Fits(rc.Context(), password, u.Password); err != nil || fits {
		return u, fits, err
	}
	was := u.Password
	changed, err := rc.StillTrue(func(tx *ledger.Tx) bool { u, _ = find(tx); return u.Password != was })
	if err != nil || !changed {
		return u, false, err
	}
	fits, err = rc.Server.Hasher.Fits(rc.Context(), password, u.Password)
	return u, fits, err
}

// signedOut is the answer to a sign-out.
type signedOut struct {
	Success bool `json:"success"`
}

// signOut ends the session of the cookie, if there is one, and always deletes the
// cookie.
func signOut(rc *api.Request) (api.Response, error) {
	if token, ok := api.CookieToken(rc.HTTP); ok && !rc.Server.TrustsAll() {
		switch err := rc.BySession(token); err {
		case nil:
			if _, err := rc.Submit(people.KindUserSignOut, "", people.SignOut{}); err != nil {
				return api.Response{}, err
			}
		case api.ErrNobody:
		default:
			return api.Response{}, err
		}
	}
	rc.KeepCookie("")
	return api.OK(signedOut{true}), nil
}

// passwordChanged has no token: the session that changed the password goes on.
type passwordChanged struct {
	Token *string    `json:"token"`
	User  signedUser `json:"user"`
}

func changePassword(rc *api.Request) (api.Response, error) {
	in, err := api.Body[passwordBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	if code, why := checkPassword(in.New); code != "" {
		return refuseAuth(http.StatusBadRequest, code, why)
	}
	var email string
	if err := rc.View(func(tx *ledger.Tx) error {
		u, _ := people.UserByID(tx,
			rc.Actor.ID)
		email = u.Email
		return nil
	}); err != nil {
		return api.Response{}, err
	}
	if err := rc.Limited("sign-in", api.SignInRate, email); err != nil {
		return asAuth(err)
	}
	if len(in.Current) > api.MaxPassword {
		return refuseAuth(http.StatusBadRequest, "INVALID_PASSWORD", "Invalid password")
	}
	u, fits, err := passwordFits(rc, in.Current, func(tx *ledger.Tx) (people.User, bool) {
		return people.UserByID(tx,
			rc.Actor.ID)
	})
	if err != nil {
		return api.Response{}, err
	}
	if !fits {
		return refuseAuth(http.StatusBadRequest, "INVALID_PASSWORD", "Invalid password")
	}
	kept, err := rc.Server.Hasher.Make(rc.Context(), in.New)
	if err != nil {
		return api.Response{}, err
	}
	rc.HTTP.Header.Del(api.HeaderIdempotency) // the new hash differs each time
	u, err = api.Do[people.User](rc, people.KindUserPassword, "",
		people.ChangePassword{Was: sha256.Sum256([]byte(u.Password)), Password: kept})
	if err != nil {
		return api.Response{}, err
	}
	return api.OK(passwordChanged{nil, showSigned(u)}), nil
}

// self returns the caller as other users see them.
func self(rc *api.Request) (u user, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		p, ok := people.PersonOf(tx, rc.Actor.ID)
		if !ok {
			return api.ErrNobody
		}
		u = user(p)
		return nil
	})
	return u, err
}

func getSession(rc *api.Request) (api.Response, error) {
	u, err := self(rc)
	if err != nil {
		return api.Response{}, err
	}
	kind := rc.Credential.Kind
	if kind == "local" {
		kind = "local_implicit"
	}
	return api.OK(session{Session: sessionID{"paperclip:" + kind + ":" + u.ID, u.ID}, User: u}), nil
}

func readProfile(rc *api.Request) (api.Response, error) {
	u, err := self(rc)
	return api.OK(u), err
}

func updateProfile(rc *api.Request) (api.Response, error) {
	in, err := api.Body[profileBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	p := people.ChangeUser{Name: new(strings.TrimSpace(in.Name))}
	if in.Image.Set {
		p.Image = new(in.Image.Or(""))
	}
	if _, err := rc.Submit(people.KindUserUpdate, "", p); err != nil {
		return api.Response{}, err
	}
	return readProfile(rc)
}

// claimInstance makes the first caller the administrator. Over the network the caller
// needs the code from a file on the node: whoever finds an open port first need not be
// the owner.
func claimInstance(rc *api.Request) (api.Response, error) {
	in, err := api.Body[claimInstanceBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	s := rc.Server
	if near, _ := api.Loopback(rc.HTTP.RemoteAddr); s.Cfg.ClaimCode != "" && (!near || s.Cfg.Proxied) &&
		subtle.ConstantTimeCompare([]byte(in.Code.Or("")), []byte(s.Cfg.ClaimCode)) != 1 {
		return api.Response{}, errClaimCode
	}
	u, err := api.Do[people.User](rc, people.KindUserClaim, "", people.ClaimInstance{})
	return api.OK(claimed{true, u.ID}), err
}

func showAdminUser(tx *ledger.Tx, u people.User) adminUser {
	return adminUser{user(u.Person()), u.Admin, len(people.MembershipsOf(tx, u.ID)), u.CreatedAt, u.SuspendedAt}
}

// listUsers lists users whose name or address contains the query's text.
func listUsers(rc *api.Request) (api.Response, error) {
	out := []adminUser{}
	want := strings.ToLower(rc.Query("query"))
	err := rc.View(func(tx *ledger.Tx) error {
		all := []people.User{}
		for _, u := range people.Users(tx) {
			if strings.Contains(u.Email, want) || strings.Contains(strings.ToLower(u.Name), want) {
				all = append(all, u)
			}
		}
		all, err := api.Page(rc, all, maxUsersListed, maxUsersListed)
		for _, u := range all {
			out = append(out, showAdminUser(tx, u))
		}
		return err
	})
	return api.OK(out), err
}

// maxUsersListed bounds a page of users; each needs a read of its memberships.
const maxUsersListed = 200

func appoint(admin bool) func(*api.Request) (api.Response, error) {
	return func(rc *api.Request) (api.Response, error) {
		u, err := api.Do[people.User](rc, people.KindUserAdmin, "",
			people.AppointAdmin{User: strings.ToLower(rc.Path("userId")), Admin: admin})
		if err != nil {
			return api.Response{}, err
		}
		var out adminUser
		err = rc.View(func(tx *ledger.Tx) error { out = showAdminUser(tx, u); return nil })
		return api.OK(out), err
	}
}

// suspend returns the handler that suspends a user, or ends the suspension.
func suspend(shut bool) func(*api.Request) (api.Response, error) {
	return func(rc *api.Request) (api.Response, error) {
		u, err := api.Do[people.User](rc, people.KindUserSuspend, "",
			people.SuspendUser{User: strings.ToLower(rc.Path("userId")), Suspend: shut})
		if err != nil {
			return api.Response{}, err
		}
		var out adminUser
		err = rc.View(func(tx *ledger.Tx) error { out = showAdminUser(tx, u); return nil })
		return api.OK(out), err
	}
}

// sessionsRevoked is the answer when all of a user's sign-ins have ended.
type sessionsRevoked struct {
	Status bool `json:"status"`
}

func revokeSessions(rc *api.Request) (api.Response, error) {
	_, err := rc.Submit(people.KindUserRevoke, "", people.EndCredentials{User: rc.Actor.ID})
	return api.OK(sessionsRevoked{true}), err
}

func revokeCredentials(rc *api.Request) (api.Response, error) {
	u, err := api.Do[people.User](rc, people.KindUserRevoke, "",
		people.EndCredentials{User: strings.ToLower(rc.Path("userId")), Keys: true})
	if err != nil {
		return api.Response{}, err
	}
	var out adminUser
	err = rc.View(func(tx *ledger.Tx) error { out = showAdminUser(tx, u); return nil })
	return api.OK(out), err
}

type user struct {
	ID    string  `json:"id"`
	Email string  `json:"email"`
	Name  string  `json:"name"`
	Image *string `json:"image"`
}

type session struct {
	Session sessionID `json:"session"`
	User    user      `json:"user"`
	Sentry  *string   `json:"sentryDsn"` // always null: no telemetry
}

type sessionID struct {
	ID   string `json:"id"`
	User string `json:"userId"`
}

type boardAccess struct {
	User        boardName          `json:"user"`
	UserID      string             `json:"userId"`
	Admin       bool               `json:"isInstanceAdmin"`
	Companies   []ledger.CompanyID `json:"companyIds"`
	Memberships []membership       `json:"memberships"`
	Source      string             `json:"source"`
	KeyID       *string            `json:"keyId"`
}

type boardName struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Email string `json:"email"`
}

type membership struct {
	Company ledger.CompanyID `json:"companyId"`
	Role    core.NullText    `json:"membershipRole"`
	Status  string           `json:"status"`
}

type directory struct {
	Users []directoryUser `json:"users"`
}

type directoryUser struct {
	Principal string `json:"principalId"`
	Status    string `json:"status"`
	User      user   `json:"user"`
}

type signInBody struct {
	Email    string          `json:"email" maxLength:"4000"`
	Password string          `json:"password" maxLength:"4000"`
	Callback api.Opt[string] `json:"callbackURL" maxLength:"4000"`
	Remember api.Opt[bool]   `json:"rememberMe"`
}

func signIn(rc *api.Request) (api.Response, error) {
	if rc.Server.TrustsAll() {
		return api.Response{}, errLocal
	}
	in, err := api.Body[signInBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	email := people.PlainEmail(in.Email)
	if err := rc.Limited("sign-in", api.SignInRate, email); err != nil {
		return asAuth(err)
	}
	wrong := func() (api.Response, error) {
		return refuseAuth(http.StatusUnauthorized, "INVALID_EMAIL_OR_PASSWORD", "Invalid email or password")
	}
	if len(in.Password) > api.MaxPassword || len(email) > people.MaxEmail {
		return wrong()
	}
	u, fits, err := passwordFits(rc, in.Password, func(tx *ledger.Tx) (people.User,
		bool) {
		return people.UserByEmail(tx, email)
	})
	if err != nil {
		return api.Response{}, err
	}
	if !fits {
		return wrong()
	}
	s, token := newSession()
	rc.OfNode("auth")
	u, err = api.Do[people.User](rc, people.KindUserSignIn, "",
		people.SignIn{User: u.ID, Password: sha256.Sum256([]byte(u.Password)), Session: s})
	if r, ok := errors.AsType[*ledger.Refusal](err); ok && r.Code == ledger.Unauthorized {
		return wrong()
	}
	if r, ok := errors.AsType[*ledger.Refusal](err); ok && r.Code == ledger.Forbidden {
		return refuseAuth(http.StatusForbidden, strings.ToUpper(r.ErrCode), r.Message)
	}
	if err != nil {
		return api.Response{}, err
	}
	rc.KeepCookie(token)
	return api.OK(signedIn{Redirect: new(bool), Token: s.ID, User: showSigned(u)}), nil
}
