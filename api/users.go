package api

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

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// sessionTokenBytes is how much of a session's token is random.
const sessionTokenBytes = 32

// signUpBody makes a user. What is wrong with its fields is answered as sign-in
// pages expect it, so its own rules are bounds that nobody reaches.
type signUpBody struct {
	Name     string      `json:"name" maxLength:"4000"`
	Email    string      `json:"email" maxLength:"4000"`
	Password string      `json:"password" maxLength:"4000"`
	Image    Opt[string] `json:"image" maxLength:"4000"`
	Callback Opt[string] `json:"callbackURL" maxLength:"4000"` // not followed
	Remember Opt[bool]   `json:"rememberMe"`                   // a sign-in lasts company.SessionAge
	Invite   Opt[string] `json:"inviteToken" maxLength:"4000"` // where signing up takes one
}

type passwordBody struct {
	Current string `json:"currentPassword" maxLength:"4000"`
	New     string `json:"newPassword" maxLength:"4000"`
	Others  bool   `json:"revokeOtherSessions,omitempty"` // they end anyhow
}

// signedIn answers a sign-in. Token is the ID of the session, which opens
// nothing: the token itself is in the cookie, out of the reach of scripts.
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
	return signedUser{ID: u.ID, Name: u.Name, Email: u.Email, Image: u.Image, CreatedAt: u.CreatedAt, UpdatedAt: u.UpdatedAt}
}

func refuseAuth(status int, code, text string) (Response, error) {
	return Reply(status, authRefusal{text, code, text}), nil
}

// asAuth answers err in the form that sign-in pages read, if it is one of theirs.
func asAuth(err error) (Response, error) {
	if errors.Is(err, errTooOften) {
		return refuseAuth(http.StatusTooManyRequests, "", errTooOften.Message)
	}
	return Response{}, err
}

type profileBody struct {
	Name  string      `json:"name" minLength:"1" maxLength:"120"`
	Image Opt[string] `json:"image" maxLength:"4000"`
}

// claimInstanceBody may be left out by who claims from the node's own machine.
type claimInstanceBody struct {
	Code Opt[string] `json:"code" maxLength:"200"`
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

func userRoutes() []Route {
	const tag, admins = "auth", "/api/admin/users"
	return []Route{
		{Method: "POST", Path: "/api/auth/sign-up/email", Tag: tag, Summary: "Sign up with an e-mail address and a password", Who: Public, In: signUpBody{}, Out: signedIn{}, NoTool: true, Handle: signUp},
		{Method: "POST", Path: "/api/auth/sign-in/email", Tag: tag, Summary: "Sign in with an e-mail address and a password", Who: Public, In: signInBody{}, Out: signedIn{}, NoTool: true, Handle: signIn},
		{Method: "POST", Path: "/api/auth/sign-out", Tag: tag, Summary: "End the session of the request", Who: Public, NoTool: true, Handle: signOut},
		{Method: "POST", Path: "/api/auth/change-password", Limited: true, Tag: tag, Summary: "Change one's password; other sessions end", Who: Board, In: passwordBody{}, NoTool: true, Handle: changePassword},
		{Method: "GET", Path: "/api/auth/get-session", Tag: tag, Summary: "Tell who is signed in", Who: Board, Out: session{}, Handle: getSession},
		{Method: "GET", Path: "/api/auth/profile", Tag: tag, Summary: "Read the user's profile", Who: Board, Out: user{}, Handle: readProfile},
		{Method: "PATCH", Path: "/api/auth/profile", Limited: true, Tag: tag, Summary: "Change the user's profile", Who: Board, In: profileBody{}, Out: user{}, Handle: updateProfile},
		{Method: "POST", Path: "/api/bootstrap/claim", Limited: true, Tag: tag, Summary: "Become the first administrator of the instance", Who: Board, In: claimInstanceBody{}, Out: claimed{}, NoTool: true, Handle: claimInstance},
		{Method: "GET", Path: admins, Tag: tag, Summary: "List the users", Who: Admin, Query: []Param{{Name: "query", Doc: "only those with this in name or address"},
			{Name: "limit", Type: "integer", Doc: "at most so many"}, {Name: "offset", Type: "integer", Doc: "without the first so many"}}, Out: []adminUser{}, Handle: listUsers},
		{Method: "POST", Path: admins + "/{userId}/promote-instance-admin", Tag: tag, Summary: "Make a user an administrator of the instance", Who: Admin, Out: adminUser{}, NoTool: true, Handle: appoint(true)},
		{Method: "POST", Path: admins + "/{userId}/demote-instance-admin", Tag: tag, Summary: "Make a user no administrator of the instance", Who: Admin, Out: adminUser{}, NoTool: true, Handle: appoint(false)},
		{Method: "POST", Path: "/api/auth/revoke-sessions", Limited: true, Tag: tag, Summary: "End all of one's sign-ins", Who: Board, NoTool: true, Handle: revokeSessions},
		{Method: "POST", Path: admins + "/{userId}/revoke-credentials", Limited: true, Tag: tag, Summary: "End a user's sign-ins and revoke their board keys", Who: Admin, Out: adminUser{}, NoTool: true, Handle: revokeCredentials},
		{Method: "POST", Path: admins + "/{userId}/suspend", Tag: tag, Summary: "Shut a user out: they are signed out and their keys open nothing", Who: Admin, Out: adminUser{}, NoTool: true, Handle: suspend(true)},
		{Method: "POST", Path: admins + "/{userId}/resume", Tag: tag, Summary: "Let a suspended user in again", Who: Admin, Out: adminUser{}, NoTool: true, Handle: suspend(false)},
	}
}

// errLocal answers sign-ins where nobody signs in.
var errLocal = Conflict("Nobody signs in on this mesh: its mode is "+people.LocalTrusted, nil)

// errClaimCode is a 403.
var errClaimCode = Forbidden("Claiming the instance from another machine takes the code in the node's file claim-code")

// newSession draws a session and its token.
func newSession() (s people.NewSession, token string) {
	b := make([]byte, sessionTokenBytes)
	rand.Read(b)
	token = base64.RawURLEncoding.EncodeToString(b)
	return people.NewSession{ID: NewID(), Hash: hashOf(token)}, token
}

func checkPassword(text string) (code, why string) {
	switch {
	case utf8.RuneCountInString(text) < minPassword:
		return "PASSWORD_TOO_SHORT", "Password too short"
	case len(text) > maxPassword || !utf8.ValidString(text):
		return "PASSWORD_TOO_LONG", "Password too long"
	}
	return "", ""
}

func plainAddress(text string) (string, bool) {
	text = people.PlainEmail(text)
	a, err := mail.ParseAddress(text)
	return text, err == nil && a.Address == text && a.Name == "" && len(text) <= people.MaxEmail
}

func signUp(rc *Request) (Response, error) {
	if rc.server.trustsAll() {
		return Response{}, errLocal
	}
	in, err := Body[signUpBody](rc)
	if err != nil {
		return Response{}, err
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
		return Response{}, ValidationError(Custom("Invalid name or image: a name is needed, and neither may be too long", "name"))
	}
	if err := rc.limited("sign-up", signUpRate); err != nil {
		return asAuth(err)
	}
	kept, err := rc.server.hasher.make(rc.Context(), in.Password)
	if err != nil {
		return Response{}, err
	}
	s, token := newSession()
	invite := ""
	if in.Invite.Or("") != "" {
		invite = hashOf(in.Invite.Or(""))
	}
	rc.ofNode("auth")
	u, err := Do[people.User](rc, people.KindUserCreate, "", people.CreateUser{ID: NewID(), Name: name, Email: email, Password: kept, Image: in.Image.Or(""), Session: s, Invite: invite})
	if r, ok := errors.AsType[*ledger.Refusal](err); ok && r.Code == ledger.Conflict {
		return refuseAuth(http.StatusUnprocessableEntity, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL", r.Message)
	}
	if r, ok := errors.AsType[*ledger.Refusal](err); ok && r.Code == ledger.Forbidden {
		return refuseAuth(http.StatusForbidden, strings.ToUpper(r.ErrCode), r.Message)
	}
	if err != nil {
		return Response{}, err
	}
	rc.keepCookie(token)
	return OK(signedIn{Token: s.ID, User: showSigned(u)}), nil
}

// passwordFits reports whether a password is that of the user whom find finds, if any.
// Where it is not by this node's state, the newest is asked: who signed up or changed
// the password on another node a moment ago is known by it here too. It takes as long
// for nobody's address as for a wrong password.
func (rc *Request) passwordFits(password string, find func(*ledger.Tx) (people.User, bool)) (u people.User, fits bool, err error) {
	if _, err = rc.stillTrue(func(tx *ledger.Tx) bool { u, _ = find(tx); return true }); err != nil {
		return u, false, err
	}
	if fits, err = rc.server.hasher.fits(rc.Context(), password, u.Password); err != nil || fits {
		return u, fits, err
	}
	was := u.Password
	changed, err := rc.stillTrue(func(tx *ledger.Tx) bool { u, _ = find(tx); return u.Password != was })
	if err != nil || !changed {
		return u, false, err
	}
	fits, err = rc.server.hasher.fits(rc.Context(), password, u.Password)
	return u, fits, err
}

// signOut ends the session of the cookie, if there is one; the browser forgets it
// in any case.
func signOut(rc *Request) (Response, error) {
	if token, ok := cookieToken(rc.HTTP); ok && !rc.server.trustsAll() {
		switch err := rc.bySession(token); err {
		case nil:
			if _, err := rc.Submit(people.KindUserSignOut, "", people.SignOut{}); err != nil {
				return Response{}, err
			}
		case errNobody:
		default:
			return Response{}, err
		}
	}
	rc.keepCookie("")
	return OK(struct {
		Success bool `json:"success"`
	}{true}), nil
}

func changePassword(rc *Request) (Response, error) {
	in, err := Body[passwordBody](rc)
	if err != nil {
		return Response{}, err
	}
	if code, why := checkPassword(in.New); code != "" {
		return refuseAuth(http.StatusBadRequest, code, why)
	}
	var email string
	if err := rc.View(func(tx *ledger.Tx) error { u, _ := people.UserByID(tx, rc.Actor.ID); email = u.Email; return nil }); err != nil {
		return Response{}, err
	}
	if err := rc.limited("sign-in", signInRate, email); err != nil {
		return asAuth(err)
	}
	if len(in.Current) > maxPassword {
		return refuseAuth(http.StatusBadRequest, "INVALID_PASSWORD", "Invalid password")
	}
	u, fits, err := rc.passwordFits(in.Current, func(tx *ledger.Tx) (people.User, bool) { return people.UserByID(tx, rc.Actor.ID) })
	if err != nil {
		return Response{}, err
	}
	if !fits {
		return refuseAuth(http.StatusBadRequest, "INVALID_PASSWORD", "Invalid password")
	}
	kept, err := rc.server.hasher.make(rc.Context(), in.New)
	if err != nil {
		return Response{}, err
	}
	rc.HTTP.Header.Del(headerIdempotency) // the new hash differs each time
	u, err = Do[people.User](rc, people.KindUserPassword, "", people.ChangePassword{Was: sha256.Sum256([]byte(u.Password)), Password: kept})
	if err != nil {
		return Response{}, err
	}
	return OK(struct {
		Token *string    `json:"token"`
		User  signedUser `json:"user"`
	}{nil, showSigned(u)}), nil
}

// self returns who asks, as others see them.
func (rc *Request) self() (u user, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		p, ok := people.PersonOf(tx, rc.Actor.ID)
		if !ok {
			return errNobody
		}
		u = user(p)
		return nil
	})
	return u, err
}

func getSession(rc *Request) (Response, error) {
	u, err := rc.self()
	if err != nil {
		return Response{}, err
	}
	kind := rc.Credential.Kind
	if kind == "local" {
		kind = "local_implicit"
	}
	return OK(session{Session: sessionID{"paperclip:" + kind + ":" + u.ID, u.ID}, User: u}), nil
}

func readProfile(rc *Request) (Response, error) {
	u, err := rc.self()
	return OK(u), err
}

func updateProfile(rc *Request) (Response, error) {
	in, err := Body[profileBody](rc)
	if err != nil {
		return Response{}, err
	}
	p := people.ChangeUser{Name: new(strings.TrimSpace(in.Name))}
	if in.Image.Set {
		p.Image = new(in.Image.Or(""))
	}
	if _, err := rc.Submit(people.KindUserUpdate, "", p); err != nil {
		return Response{}, err
	}
	return readProfile(rc)
}

// claimInstance makes whoever asks first the administrator. Over the network it
// takes the code that lies on the node's disk: the first to find an open port
// is not the owner yet.
func claimInstance(rc *Request) (Response, error) {
	in, err := Body[claimInstanceBody](rc)
	if err != nil {
		return Response{}, err
	}
	s := rc.server
	if near, _ := Loopback(rc.HTTP.RemoteAddr); s.cfg.ClaimCode != "" && (!near || s.cfg.Proxied) &&
		subtle.ConstantTimeCompare([]byte(in.Code.Or("")), []byte(s.cfg.ClaimCode)) != 1 {
		return Response{}, errClaimCode
	}
	u, err := Do[people.User](rc, people.KindUserClaim, "", people.ClaimInstance{})
	return OK(claimed{true, u.ID}), err
}

func showAdminUser(tx *ledger.Tx, u people.User) adminUser {
	return adminUser{user(u.Person()), u.Admin, len(people.MembershipsOf(tx, u.ID)), u.CreatedAt, u.SuspendedAt}
}

// listUsers lists users whose name or address holds the query's text.
func listUsers(rc *Request) (Response, error) {
	out := []adminUser{}
	want := strings.ToLower(rc.Query("query"))
	err := rc.View(func(tx *ledger.Tx) error {
		all := []people.User{}
		for _, u := range people.Users(tx) {
			if strings.Contains(u.Email, want) || strings.Contains(strings.ToLower(u.Name), want) {
				all = append(all, u)
			}
		}
		all, err := Page(rc, all, maxUsersListed, maxUsersListed)
		for _, u := range all {
			out = append(out, showAdminUser(tx, u))
		}
		return err
	})
	return OK(out), err
}

// maxUsersListed bounds one page of users: each asks for its memberships.
const maxUsersListed = 200

func appoint(admin bool) func(*Request) (Response, error) {
	return func(rc *Request) (Response, error) {
		u, err := Do[people.User](rc, people.KindUserAdmin, "", people.AppointAdmin{User: strings.ToLower(rc.Path("userId")), Admin: admin})
		if err != nil {
			return Response{}, err
		}
		var out adminUser
		err = rc.View(func(tx *ledger.Tx) error { out = showAdminUser(tx, u); return nil })
		return OK(out), err
	}
}

// suspend shuts a user out, or lets them in again.
func suspend(shut bool) func(*Request) (Response, error) {
	return func(rc *Request) (Response, error) {
		u, err := Do[people.User](rc, people.KindUserSuspend, "", people.SuspendUser{User: strings.ToLower(rc.Path("userId")), Suspend: shut})
		if err != nil {
			return Response{}, err
		}
		var out adminUser
		err = rc.View(func(tx *ledger.Tx) error { out = showAdminUser(tx, u); return nil })
		return OK(out), err
	}
}

func revokeSessions(rc *Request) (Response, error) {
	_, err := rc.Submit(people.KindUserRevoke, "", people.EndCredentials{User: rc.Actor.ID})
	return OK(struct {
		Status bool `json:"status"`
	}{true}), err
}

func revokeCredentials(rc *Request) (Response, error) {
	u, err := Do[people.User](rc, people.KindUserRevoke, "", people.EndCredentials{User: strings.ToLower(rc.Path("userId")), Keys: true})
	if err != nil {
		return Response{}, err
	}
	var out adminUser
	err = rc.View(func(tx *ledger.Tx) error { out = showAdminUser(tx, u); return nil })
	return OK(out), err
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
	User        boardName    `json:"user"`
	UserID      string       `json:"userId"`
	Admin       bool         `json:"isInstanceAdmin"`
	Companies   []string     `json:"companyIds"`
	Memberships []membership `json:"memberships"`
	Source      string       `json:"source"`
	KeyID       *string      `json:"keyId"`
}

type boardName struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Email string `json:"email"`
}

type membership struct {
	Company string        `json:"companyId"`
	Role    core.NullText `json:"membershipRole"`
	Status  string        `json:"status"`
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
	Email    string      `json:"email" maxLength:"4000"`
	Password string      `json:"password" maxLength:"4000"`
	Callback Opt[string] `json:"callbackURL" maxLength:"4000"`
	Remember Opt[bool]   `json:"rememberMe"`
}

func signIn(rc *Request) (Response, error) {
	if rc.server.trustsAll() {
		return Response{}, errLocal
	}
	in, err := Body[signInBody](rc)
	if err != nil {
		return Response{}, err
	}
	email := people.PlainEmail(in.Email)
	if err := rc.limited("sign-in", signInRate, email); err != nil {
		return asAuth(err)
	}
	wrong := func() (Response, error) {
		return refuseAuth(http.StatusUnauthorized, "INVALID_EMAIL_OR_PASSWORD", "Invalid email or password")
	}
	if len(in.Password) > maxPassword || len(email) > people.MaxEmail {
		return wrong()
	}
	u, fits, err := rc.passwordFits(in.Password, func(tx *ledger.Tx) (people.User, bool) { return people.UserByEmail(tx, email) })
	if err != nil {
		return Response{}, err
	}
	if !fits {
		return wrong()
	}
	s, token := newSession()
	rc.ofNode("auth")
	u, err = Do[people.User](rc, people.KindUserSignIn, "", people.SignIn{User: u.ID, Password: sha256.Sum256([]byte(u.Password)), Session: s})
	if r, ok := errors.AsType[*ledger.Refusal](err); ok && r.Code == ledger.Unauthorized {
		return wrong()
	}
	if r, ok := errors.AsType[*ledger.Refusal](err); ok && r.Code == ledger.Forbidden {
		return refuseAuth(http.StatusForbidden, strings.ToUpper(r.ErrCode), r.Message)
	}
	if err != nil {
		return Response{}, err
	}
	rc.keepCookie(token)
	return OK(signedIn{Redirect: new(bool), Token: s.ID, User: showSigned(u)}), nil
}
