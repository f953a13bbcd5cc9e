package people

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// On the page /cli-auth/<challenge>?token=… a person permits a program to act as them;
// the program shows the address. The page is plain HTML with forms and has no scripts. A
// person who is not signed in signs in on it.
//
// Each form has a token that only this page can know: a MAC keyed by the session's
// cookie, or without sessions by a key of this process. The browser must also report
// that the form came from this host.

// maxPageForm bounds the body of a form.
const maxPageForm = 16 << 10

// approvalView is what the page shows.
type approvalView struct {
	Title, Message      string // Message is an error, or what was done
	Command, Client     string
	Access, CompanyName string
	User                string // who is signed in, or ""
	Token, Word         string
	Pending, CanApprove bool
	Why                 string // why the user can not decide
	Expires             string
}

// page writes the approval page of v. All that comes from elsewhere is escaped: it stands in
// texts and in quoted attributes alone.
func (v approvalView) page() string {
	var b strings.Builder
	put := func(parts ...string) {
		for i, part := range parts {
			if i%2 == 1 { // between pieces of the page
				part = html.EscapeString(part)
			}
			b.WriteString(part)
		}
	}
	put(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, `+
		`initial-scale=1"><title>`, v.Title, `</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:3rem auto;padding:0 `+
		`1rem;color:#1b1b1b;background:#fff}
dt{font-weight:600}dd{margin:0 0 `+
		`.6rem}code{overflow-wrap:anywhere}input{display:block;width:100%;box-sizing:border-box;padding:.5rem;margin:.2rem `+
		`0 .8rem;font:inherit}
button{font:inherit;padding:.5rem 1.2rem;margin-right:.6rem}.note{border-left:4px solid #888;padding:.2rem `+
		`.8rem}</style></head>
<body><h1>`, v.Title, `</h1>
`)
	if v.Message != "" {
		put(`<p class="note" role="status">`, v.Message, "</p>")
	}
	if v.Command != "" {
		put("\n<dl><dt>Program</dt><dd>", cmp.Or(v.Client, "It did not say its name"), "</dd><dt>Command</dt><dd><code>",
			v.Command, "</code></dd>\n<dt>It asks for</dt><dd>", v.Access)
		if v.CompanyName != "" {
			put(", for ", v.CompanyName)
		}
		put("</dd>")
		if v.Pending {
			put("<dt>Until</dt><dd>", v.Expires, "</dd>")
		}
		put("</dl>")
	}
	if v.Pending {
		v.forms(put)
	}
	put("\n</body></html>\n")
	return b.String()
}

// forms writes what a person can do about a challenge.
func (v approvalView) forms(put func(...string)) {
	const form = `<form method="post"><input type="hidden" name="token" value="`
	if v.User == "" {
		put("\n"+form, v.Token,
			`"><label>E-mail address<input type="email" name="email" autocomplete="username" required></label>
<label>Password<input type="password" name="password" autocomplete="current-password" required></label><button `+
				`name="do" value="sign-in">Sign in</button></form>`)
		return
	}
	put("\n<p>You are signed in as ", v.User,
		`. The program will act as you, with all that you may do, until its key is revoked.
Let it in only if it was you who started it.</p>
`)
	if !v.CanApprove {
		put(`<p class="note">`, v.Why, "</p>")
		return
	}
	put(form, v.Token, `"><input type="hidden" name="word" value="`, v.Word, `">
<button name="do" value="approve">Let it in</button><button name="do" value="cancel">Turn it away</button></form>`)
}

// ServeApproval serves the page and its forms.
func ServeApproval(s *api.Server, w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // the URL has a token; with no-referrer the browser would not send Origin
	h.Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost {
		h.Set("Allow", "GET, HEAD, POST")
		showApproval(w, http.StatusMethodNotAllowed, approvalView{Message: "This page takes no such request."})
		return
	}
	rc := &api.Request{HTTP: r, ID: api.IdOf(r), Server: s, Route: &api.Route{Method: r.Method, Path: "/cli-auth/{id}",
		Who: api.Public, Query: []api.Param{{Name: "token"}}}, W: w}
	if err := rc.Open(); err != nil {
		showApproval(w, http.StatusBadRequest, approvalView{Message: said(err)})
		return
	}
	if r.Method == http.MethodPost {
		decidePage(rc)
		return
	}
	view, status := approval(rc, rc.Query("token"))
	showApproval(w, status, view)
}

func showApproval(w http.ResponseWriter, status int, v approvalView) {
	if v.Title == "" {
		v.Title = "Let a program act as you"
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, v.page()) // an error is the client's going away
}

// said returns the text of an error for a person: refusals in full, nothing of failures.
func said(err error) string {
	if r, ok := errors.AsType[*ledger.Refusal](err); ok {
		return r.Message
	}
	return "That did not work; try again."
}

// approval returns the page of a challenge in its current state.
func approval(rc *api.Request, token string) (v approvalView, status int) {
	someone := rc.Authenticate() == nil && rc.IsBoard()
	v = approvalView{Token: token}
	err := rc.ViewBySecret(func(tx *ledger.Tx) error {
		c, ok := people.ChallengeByID(tx, strings.ToLower(rc.Path("id")), api.HashOf(token))
		if !ok {
			return api.ErrNoChallenge()
		}
		v.Command, v.Client, v.Access = c.Command, string(c.Client), "access to the board"
		if c.Access == "instance_admin_required" {
			v.Access = "access to the board as an administrator"
		}
		if row, ok := entity.CompanyOf(tx, ledger.CompanyID(c.Company)); ok {
			v.CompanyName = row.Name
		}
		v.Expires = c.ExpiresAt.Std().Format(time.RFC1123)
		switch state := c.Status(core.TimeOf(rc.Now())); state {
		case "pending":
			v.Pending = true
		case "approved":
			v.Message = "The program was let in. You can close this page."
		default:
			v.Message = "The request is " + state + ". Start the program again."
		}
		if !someone {
			return nil
		}
		p, _ := people.PersonOf(tx, rc.Actor.ID)
		v.User, v.Word = p.Name, pageWord(rc)
		if err := c.CanApprove(tx, rc.Actor.ID); err != nil {
			v.Why = said(err)
		} else {
			v.CanApprove = true
		}
		return nil
	})
	if err != nil {
		return approvalView{Message: said(err)}, http.StatusNotFound
	}
	return v, http.StatusOK
}

// pageWord returns the token of this page's forms for the current session.
func pageWord(rc *api.Request) string {
	key := rc.Server.PageKey[:]
	if token, ok := api.CookieToken(rc.HTTP); ok {
		key = []byte(token)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("selvage/cli-auth-page/v1/" + strings.ToLower(rc.Path("id"))))
	return hex.EncodeToString(mac.Sum(nil))
}

// decidePage executes the action of a form and shows the resulting page.
func decidePage(rc *api.Request) {
	w := rc.W
	rc.HTTP.Body = http.MaxBytesReader(w, rc.HTTP.Body, maxPageForm)
	if err := rc.HTTP.ParseForm(); err != nil {
		showApproval(w, http.StatusBadRequest, approvalView{Message: "The form did not arrive whole."})
		return
	}
	form := rc.HTTP.PostForm
	token := form.Get("token")
	refuse := func(status int, message string) {
		v, _ := approval(rc, token)
		v.Message = message
		showApproval(w, status, v)
	}
	if !api.OwnPage(rc.HTTP) {
		showApproval(w, http.StatusForbidden, approvalView{Message: "The form did not come from this page."})
		return
	}
	switch form.Get("do") {
	case "sign-in":
		if message := signInByForm(rc, form.Get("email"), form.Get("password")); message != "" {
			refuse(http.StatusUnauthorized, message)
			return
		}
	case "approve", "cancel":
		if err := rc.Authenticate(); err != nil || !rc.IsBoard() {
			refuse(http.StatusUnauthorized, "Sign in first.")
			return
		}
		if !hmac.Equal([]byte(form.Get("word")), []byte(pageWord(rc))) {
			refuse(http.StatusForbidden, "The form is of another sign-in; look at the page again.")
			return
		}
		if !rc.Server.TrustsAll() {
			if err := rc.Limited("keys", api.KeyRate, rc.Actor.Type+" "+rc.Actor.ID); err != nil {
				refuse(http.StatusTooManyRequests, said(err))
				return
			}
		}
		kind, p := people.KindCliAuthApprove, people.DecideChallenge{ID: strings.ToLower(rc.Path("id")),
			Hash: api.HashOf(token), Key: api.NewID()}
		if form.Get("do") == "cancel" {
			kind, p.Key = people.KindCliAuthCancel, ""
			rc.OfNode("cli-auth")
		}
		if _, err := rc.Submit(kind, "", p); err != nil {
			refuse(http.StatusConflict, said(err))
			return
		}
	default:
		refuse(http.StatusBadRequest, "The form asks for nothing that this page does.")
		return
	}
	// Redirect, so that the browser's back button repeats nothing.
	w.Header().Set("Location", "/cli-auth/"+strings.ToLower(rc.Path("id"))+"?token="+url.QueryEscape(token))
	w.WriteHeader(http.StatusSeeOther)
}

// signInByForm signs in as the API does. It returns an error text, or "".
func signInByForm(rc *api.Request, email, password string) string {
	b, err := json.Marshal(signInBody{Email: email, Password: password})
	if err != nil {
		return said(err)
	}
	rc.HTTP.Header.Set("Content-Type", "application/json")
	rc.Body, rc.HasBody = b, true
	resp, err := signIn(rc)
	if err != nil {
		return said(err)
	}
	if no, ok := resp.Body.(api.AuthRefusal); ok {
		return no.Message
	}
	return ""
}
