package api_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestCookiesOfSessions(t *testing.T) {
	h := apitest.Peopled(t)
	a := h.Call("POST", "/api/auth/sign-up/email",
		`{"name":"Ann","email":"ANN@example.com ","password":"password of Ann"}`).Want(t, 200, `"ann@example.com"`)
	cookie, token, c := a.CookieOf(t)
	if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Secure || c.Path != "/" ||
		c.MaxAge != int(people.SessionAge/time.Second) || len(token) < 40 {
		t.Errorf("cookie %+v", c)
	}
	if strings.Contains(string(a.Body), token) {
		t.Error("the answer shows the token to scripts")
	}
	h.Call("GET", "/api/auth/get-session", "", cookie).Want(t, 200, `"Ann"`)
	for _, bad := range []string{"", "x", token + "x", strings.Repeat("a", 9000), token[1:]} {
		h.Call("GET", "/api/auth/get-session", "", "Cookie: "+api.SessionCookie+"="+bad).
			Want(t, 401, "Board authentication required")
	}
	h.Call("GET", "/api/auth/get-session", "", cookie+"; "+api.SessionCookie+"="+token).
		Want(t, 401, "Board authentication required")
	// A bearer goes before the cookie; a wrong one is not made good by it.
	h.Call("GET", "/api/auth/get-session", "", cookie, "Authorization: Bearer "+token).Want(t, 401, "did not verify")

	out := h.Call("POST", "/api/auth/sign-out", `{}`, cookie, apitest.OwnOrigin).Want(t, 200, `"success":true`)
	if _, v, c := out.CookieOf(t); v != "" || c.MaxAge >= 0 {
		t.Errorf("sign-out leaves the cookie %+v", c)
	}
	h.Call("GET", "/api/auth/get-session", "", cookie).Want(t, 401, "Board authentication required")
	h.Call("POST", "/api/auth/sign-out", `{}`, cookie, apitest.OwnOrigin).Want(t, 200, "") // again

	// Over TLS, and behind a proxy that encrypts, browsers keep it for TLS alone.
	secure := func(h *apitest.Harness, more func(*http.Request)) bool {
		r := httptest.NewRequest("POST", "/api/auth/sign-in/email",
			strings.NewReader(`{"email":"ann@example.com","password":"password of Ann"}`))
		r.Host = "127.0.0.1:3100"
		r.Header.Set("Content-Type", "application/json")
		more(r)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		_, _, c := apitest.Answer{Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()}.Want(t, 200, "").CookieOf(t)
		return c.Secure
	}
	forwarded := func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") }
	if !secure(h, func(r *http.Request) { r.TLS = &tls.ConnectionState{} }) || secure(h, forwarded) {
		t.Error("over TLS the cookie is not secure, or whoever says https is believed")
	}
	behind := apitest.NewHarnessOn(t, h.Node, func(c *api.Config) { c.Proxied = true })
	if !secure(behind, forwarded) {
		t.Error("behind a proxy that encrypts the cookie is not secure")
	}
}

func TestSessionsExpire(t *testing.T) {
	h := apitest.Peopled(t)
	now := h.Node.Wall()
	who := api.Holder{Actor: ledger.Actor{Type: "user", ID: api.NewID()}, Cred: ledger.Credential{Kind: "session",
		ID: api.NewID()}, Until: core.TimeOf(now.Add(-time.Millisecond))}
	h.Keys.Keep([32]byte{1}, who, h.Keys.Generation(), 0, now)
	if _, ok := h.Keys.Find([32]byte{1}, 0, now); ok {
		t.Error("a remembered session opens after its end")
	}
	if s := (people.UserSession{ExpiresAt: core.TimeOf(now)}); s.Valid(core.TimeOf(now)) {
		t.Error("a session is good at its end")
	}
}

// What a browser sends along from other pages changes nothing.
func TestChangesBySessionComeFromOwnPages(t *testing.T) {
	h := apitest.Peopled(t)
	ann := h.Admin()
	for what, c := range map[string]struct {
		headers []string
		ok      bool
	}{
		"its own page":              {[]string{apitest.OwnOrigin}, true},
		"its own page by referer":   {[]string{"Referer: http://127.0.0.1:3100/companies"}, true},
		"nothing":                   {nil, false},
		"another host":              {[]string{"Origin: http://evil.example"}, false},
		"another port":              {[]string{"Origin: http://127.0.0.1:3101"}, false},
		"null":                      {[]string{"Origin: null"}, false},
		"another scheme":            {[]string{"Origin: file://127.0.0.1:3100"}, false},
		"the host as a user":        {[]string{"Origin: http://127.0.0.1:3100@evil.example"}, false},
		"referer of another":        {[]string{"Referer: http://evil.example/?http://127.0.0.1:3100"}, false},
		"origin goes first":         {[]string{"Origin: http://evil.example", "Referer: http://127.0.0.1:3100/"}, false},
		"told by the browser":       {[]string{apitest.OwnOrigin, "Sec-Fetch-Site: cross-site"}, false},
		"own, told by the browser":  {[]string{apitest.OwnOrigin, "Sec-Fetch-Site: same-origin"}, true},
		"sibling, told by browsers": {[]string{"Origin: http://127.0.0.1:3101", "Sec-Fetch-Site: same-site"}, false},
	} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			path, body := "/api/companies", `{"name":"A company"}`
			switch method {
			case "PUT":
				path, body = "/api/v1/mesh/auth", `{"mode":"authenticated"}`
			case "PATCH":
				path, body = "/api/auth/profile", `{"name":"Ann"}`
			case "DELETE":
				path, body = "/api/board-api-keys/"+api.NewID(), ""
			}
			a := h.Call(method, path, body, append([]string{ann}, c.headers...)...)
			if refused := a.Status == 403 && strings.Contains(string(a.Body), "trusted browser origin"); refused == c.ok {
				t.Errorf("%s from %s: %d %s", method, what, a.Status, a.Body)
			}
		}
	}
	h.Call("GET", "/api/auth/get-session", "", ann, "Origin: http://evil.example").
		Want(t, 200, "") // browsers keep the answer from that page
	key := h.Call("POST", "/api/board-api-keys", `{"name":"k"}`, ann, apitest.OwnOrigin).Want(t, 201, "").Field(t, "token")
	h.Call("POST", "/api/companies", `{"name":"By key"}`, "Authorization: Bearer "+key).Want(t, 201, "")
}

func TestSignUpAndSignInRefuse(t *testing.T) {
	h := apitest.Peopled(t)
	h.SignUp("Ann")
	for body, want := range map[string]int{
		`{"name":"B","email":"no","password":"long enough"}`:                                     400,
		`{"name":"B","email":"B <b@example.com>","password":"long enough"}`:                      400,
		`{"name":"B","email":"b@example.com","password":"short"}`:                                400,
		`{"name":"B","email":"b@example.com","password":"` + strings.Repeat("x", 129) + `"}`:     400,
		`{"name":" ","email":"b@example.com","password":"long enough"}`:                          400,
		`{"name":"B","email":"Ann@Example.com","password":"long enough"}`:                        422,
		`{"name":"B","email":"` + strings.Repeat("b", 260) + `@x.com","password":"long enough"}`: 400,
		`{"name":"B"`: 400,
		`[]`:          400,
	} {
		if a := h.Call("POST", "/api/auth/sign-up/email", body); a.Status != want {
			t.Errorf("sign-up with %.60s: %d %s, want %d", body, a.Status, a.Body, want)
		}
	}
	for _, body := range []string{`{"email":"ann@example.com","password":"wrong"}`,
		`{"email":"nobody@example.com","password":"password of Ann"}`,
		`{"email":"ann@example.com","password":"` + strings.Repeat("x", 4000) + `"}`} {
		a := h.Call("POST", "/api/auth/sign-in/email", body).Want(t, 401, "INVALID_EMAIL_OR_PASSWORD")
		if strings.Contains(a.Header.Get("Set-Cookie"), api.SessionCookie) {
			t.Error("a cookie with the refusal")
		}
	}
	local := apitest.NewHarness(t)
	local.Call("POST", "/api/auth/sign-up/email", `{"name":"B","email":"b@example.com","password":"long enough"}`).
		Want(t, 409, "local_trusted")
	local.Call("POST", "/api/auth/sign-in/email", `{"email":"b@example.com","password":"long enough"}`).
		Want(t, 409, "local_trusted")
	local.Call("POST", "/api/bootstrap/claim", `{}`).Want(t, 409, "Only a user who signed up can do this")
}

func TestTooManySignIns(t *testing.T) {
	h := apitest.Peopled(t)
	h.SignUp("Ann")
	in := func(email string) apitest.Answer {
		return h.Call("POST", "/api/auth/sign-in/email", `{"email":"`+email+`","password":"wrong password"}`)
	}
	for range api.SignInRate.Burst {
		in("ann@example.com").Want(t, 401, `"code":"INVALID_EMAIL_OR_PASSWORD"`)
	}
	a := in("ann@example.com").Want(t, 429, "Too many requests")
	if after := a.Header.Get("Retry-After"); after == "" || after == "0" {
		t.Errorf("Retry-After %q", after)
	}
	in("other@example.com").Want(t, 429,
		"Too many requests. Please try again later.") // the source counts, whomever it tries
	for i := 0; ; i++ {
		a := h.Call("POST", "/api/cli-auth/challenges", `{"command":"flood"}`)
		if a.Status == 429 {
			if i < api.KeyRate.Burst/2 {
				t.Errorf("refused after %d", i)
			}
			break
		}
		if a.Want(t, 201, ""); i > 3*api.KeyRate.Burst {
			t.Fatal("nobody stops a flood of challenges")
		}
	}
	h.Call("GET", "/api/health", "").Want(t, 200, "") // others go on
}

// credentialsIn lists the members of an answer that hold a credential.
func credentialsIn(t reflect.Type, seen map[reflect.Type]bool) (names []string) {
	for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct || seen[t] {
		return nil
	}
	seen[t] = true
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if lower := strings.ToLower(name); strings.HasSuffix(lower, "token") && name != "publicShareToken" &&
			name != "fencingToken" || strings.HasSuffix(lower, "claimsecret") || strings.HasSuffix(lower, "secretmaterial") {
			names = append(names, name)
		}
		names = append(names, credentialsIn(t.Field(i).Type, seen)...)
	}
	return names
}

// Each route that makes a credential, takes one away or trades one for another
// has a rate: what its path or its answer says of keys is not passed over.
func TestKeyManagementIsLimited(t *testing.T) {
	free := map[string]string{
		"POST /api/auth/sign-up/email": "signUpRate", "POST /api/auth/sign-in/email": "signInRate",
		"POST /api/secrets/{id}/rotate": "a value that is handed to " +
			"runs, and opens nothing here",
		"POST /api/companies/{companyId}/me/user-secrets/{secretId}/rotate":      "likewise",
		"POST /api/companies/{companyId}/tools/{name}/versions/{version}/revoke": "a program, and no credential",
		"POST /api/v1/mesh/nodes/{id}/revoke": "a member goes, and no " +
			"credential of a caller",
		"POST /api/v1/govern/permits":                "a permit for one act opens nothing without a credential",
		"POST /api/v1/govern/permits/{id}/revoke":    "likewise",
		"POST /api/v1/govern/elevations/{id}/revoke": "a clearance, which rules read, and no credential",
		"POST /api/v1/govern/use":                    "likewise; its answer has no token",
	}
	words := []string{"keys", "board-api-keys", "owner-keys", "tokens", "claim", "claim-api-key", "challenges", "invites",
		"invite-prompt", "revoke", "revoke-sessions", "revoke-current",
		"revoke-credentials", "change-password", "rotate", "rotate-secret"}
	found := 0
	for _, r := range apitest.NewHarness(t).Routes() {
		if r.Method == "GET" {
			continue
		}
		about := ""
		for _, part := range strings.Split(r.Path, "/") {
			if slices.Contains(words, part) {
				about = part
			}
		}
		several, _ := r.Out.(api.Either)
		var tokens []string
		for _, out := range append(several, r.Out) {
			tokens = append(tokens, credentialsIn(reflect.TypeOf(out), map[reflect.Type]bool{})...)
		}
		if about == "" && len(tokens) > 0 {
			about = "its answer, with " + strings.Join(tokens, ", ")
		}
		if about == "" {
			continue
		}
		if found++; !r.Limited && free[r.Method+" "+r.Path] == "" {
			t.Errorf("%s %s has no rate, and is about credentials: %s", r.Method, r.Path, about)
		}
	}
	if found < 20 {
		t.Errorf("only %d routes are about credentials", found)
	}
}

func TestLimitsLetThroughWhatTheySay(t *testing.T) {
	var l api.Limits
	now := time.Unix(1_000_000, 0)
	r := api.Rate{Burst: 3, Every: 10 * time.Second}
	ask := func(at time.Duration, want bool, after time.Duration) {
		t.Helper()
		if ok, a := l.Allow("a", r, now.Add(at)); ok != want || a != after {
			t.Errorf("at %s: %v after %s, want %v after %s", at, ok, a, want, after)
		}
	}
	for range 3 {
		ask(0, true, 0)
	}
	ask(0, false, 10*time.Second)
	ask(4*time.Second, false, 6*time.Second)
	ask(10*time.Second, true, 0)
	ask(10*time.Second, false, 10*time.Second)
	for range 3 {
		ask(time.Hour, true, 0)
	}
	ask(time.Hour, false, 10*time.Second)
	if ok, _ := l.Allow("b", r, now); !ok {
		t.Error("another name waits for the first")
	}
	for i := range 3 * api.MaxBuckets {
		l.Allow(fmt.Sprint(i), r, now.Add(time.Hour))
		if len(l.Buckets) > api.MaxBuckets {
			t.Fatalf("%d buckets", len(l.Buckets))
		}
	}
}

func TestSourcesOfRequests(t *testing.T) {
	plain, behind := &api.Server{}, &api.Server{Cfg: api.Config{Proxied: true}}
	for _, c := range []struct{ remote, forwarded, direct, proxied string }{
		{"192.0.2.1:99", "", "192.0.2.1", "192.0.2.1"},
		{"192.0.2.1:99", "10.0.0.1, 198.51.100.7", "192.0.2.1", "198.51.100.7"},
		{"192.0.2.1:99", "nonsense", "192.0.2.1", "192.0.2.1"},
		{"[2001:db8:1:2:3::4]:99", "", "2001:db8:1:2::/64", "2001:db8:1:2::/64"},
		{"[::ffff:192.0.2.1]:99", "::ffff:192.0.2.9", "192.0.2.1", "192.0.2.9"},
		{"pipe", "", "pipe", "pipe"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.remote
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := plain.Source(r); got != c.direct {
			t.Errorf("%s: %s, want %s", c.remote, got, c.direct)
		}
		if got := behind.Source(r); got != c.proxied {
			t.Errorf("%s for %s: %s, want %s", c.remote, c.forwarded, got, c.proxied)
		}
	}
}

// However many sign in at once, few passwords are hashed at a time, and who finds
// too many before them is told so.
func TestHashingIsBounded(t *testing.T) {
	h := api.NewHasher()
	var now, most, done, refused atomic.Int64
	hold := make(chan struct{})
	var wg sync.WaitGroup
	const all = 3 * api.MaxHashWaiting
	for range all {
		wg.Go(func() {
			err := h.Turn(t.Context(), func() {
				n := now.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				<-hold
				now.Add(-1)
				done.Add(1)
			})
			if no, ok := errors.AsType[*ledger.Refusal](err); ok && no.Code == ledger.Unavailable {
				refused.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	for refused.Load() < all-api.MaxHashWaiting {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	close(hold)
	wg.Wait()
	if most.Load() > api.MaxHashing || done.Load() != api.MaxHashWaiting {
		t.Errorf("%d at a time, %d done, %d refused", most.Load(), done.Load(), refused.Load())
	}
	full := api.Hasher{Turns: make(chan struct{}), Waiting: make(chan struct{}, 1), Hashed: new(atomic.Uint64)}
	if err := full.Turn(ctx, func() { t.Error("ran") }); !errors.Is(err, context.Canceled) {
		t.Errorf("whoever went away waits: %v", err)
	}
}

func TestPasswordsAreKeptAsHashes(t *testing.T) {
	h := api.NewHasher()
	kept, err := h.Make(t.Context(), "correct horse")
	if err != nil || !strings.HasPrefix(kept, "$argon2id$v=19$m=19456,t=2,p=1$") || strings.Contains(kept, "horse") {
		t.Fatal(kept, err)
	}
	other, _ := h.Make(t.Context(), "correct horse")
	if other == kept {
		t.Error("the same password is kept the same way twice")
	}
	for password, want := range map[string]bool{"correct horse": true, "correct horse ": false, "": false,
		"Correct horse": false} {
		if fits, err := h.Fits(t.Context(), password, kept); fits != want || err != nil {
			t.Errorf("%q fits: %v %v", password, fits, err)
		}
	}
	if fits, err := h.Fits(t.Context(), "anything", ""); fits || err != nil {
		t.Errorf("nobody's password fits: %v %v", fits, err)
	}
	if _, err := h.Fits(t.Context(), "x",
		"$argon2id$v=19$m=9999999,t=2,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA"); err == nil {
		t.Error("a kept hash that asks for ten gigabytes is tried")
	}
}

func FuzzParseHash(f *testing.F) {
	f.Add(api.Decoy)
	f.Add("$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA")
	f.Add("$argon2id$v=19$m=-1,t=1,p=1$$")
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := api.ParseHash(text)
		if ok && (p.Memory > api.MaxHashMemory || p.Time > api.MaxHashTime || p.Threads > api.MaxHashThreads || p.Time == 0 ||
			p.Threads == 0 || len(p.Salt) < 8 || len(p.Sum) < 16 || len(p.Sum) > 64) {
			t.Errorf("%q is read as %+v", text, p)
		}
	})
}

func TestClaimingFromElsewhereTakesTheCode(t *testing.T) {
	claim := func(h *apitest.Harness, cookie, from, body string) apitest.Answer {
		r := httptest.NewRequest("POST", "/api/bootstrap/claim", strings.NewReader(body))
		r.Host, r.RemoteAddr = "127.0.0.1:3100", from
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Origin", "http://127.0.0.1:3100")
		r.Header.Set("Cookie", strings.TrimPrefix(cookie, "Cookie: "))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return apitest.Answer{Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()}
	}
	coded := func(c *api.Config) { c.ClaimCode = "THECODE" }
	h := apitest.Peopled(t, coded)
	ann, _ := h.SignUp("Ann")
	claim(h, ann, "192.0.2.9:1", `{}`).Want(t, 403, "claim-code")
	claim(h, ann, "192.0.2.9:1", `{"code":"THECODe"}`).Want(t, 403, "claim-code")
	claim(h, ann, "192.0.2.9:1", `{"code":""}`).Want(t, 403, "claim-code")
	claim(h, ann, "192.0.2.9:1", `{"code":"THECODE"}`).Want(t, 200, "")
	h = apitest.Peopled(t, coded)
	ann, _ = h.SignUp("Ann")
	claim(h, ann, "127.0.0.1:1", `{}`).Want(t, 200, "")
	h = apitest.Peopled(t, coded, func(c *api.Config) { c.Proxied = true }) // everybody comes from loopback
	ann, _ = h.SignUp("Ann")
	claim(h, ann, "127.0.0.1:1", `{}`).Want(t, 403, "claim-code")
}

// A mesh goes from trust to sign-ins and back, and each request sees it at once.
func TestTheModeChanges(t *testing.T) {
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	key := "Authorization: Bearer " + h.Call("POST", "/api/board-api-keys", `{"name":"k"}`).Want(t, 201, "").
		Field(t, "token")
	h.Call("GET", "/api/companies/"+of, "", key).Want(t, 200, "")
	h.Call("PUT", "/api/v1/mesh/auth", `{"mode":"open"}`).Want(t, 400, "mode")
	h.Call("PUT", "/api/v1/mesh/auth", `{"mode":"authenticated"}`).Want(t, 200, "authenticated")
	h.Call("GET", "/api/companies", "").Want(t, 403, "Board access required")
	h.Call("GET", "/api/issues/ACM-1", "").Want(t, 401, "Board authentication required")
	h.Call("PUT", "/api/v1/mesh/auth", `{"mode":"local_trusted"}`).Want(t, 401, "Board authentication required")
	h.Call("GET", "/api/companies", "", key).Want(t, 401, "Agent token did not verify; obtain fresh credentials and retry")
	ann := h.Admin()
	h.Call("GET", "/api/companies/"+of, "", ann).Want(t, 200, "Acme") // what was there is the administrator's
	h.Call("PUT", "/api/v1/mesh/auth", `{"mode":"local_trusted"}`, ann, apitest.OwnOrigin).Want(t, 200, "")
	h.Call("GET", "/api/companies", "").Want(t, 200, "Acme")
	h.Call("GET", "/api/companies", "", ann).Want(t, 200, "Acme") // on loopback everybody is the board

	// From elsewhere nobody is served then, whatever they show.
	r := httptest.NewRequest("GET", "/api/health", nil)
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1),
		Port: 3100}))
	r.Host = "127.0.0.1:3100"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 403 {
		t.Errorf("over the network: %d %s", w.Code, w.Body)
	}
}

// slowReader is a node one of whose reads takes long: held is closed when it has
// read, and it returns when released is.
type slowReader struct {
	api.Node
	armed          atomic.Bool
	held, released chan struct{}
}

func (n *slowReader) View(ctx context.Context, at ledger.Read, f func(*ledger.Tx) error) (uint64, error) {
	index, err := n.Node.View(ctx, at, f)
	if n.armed.CompareAndSwap(true, false) {
		close(n.held)
		<-n.released
	}
	return index, err
}

// A change of the mode while a server begins is not missed: it knows which
// changes it will hear of before it looks how things are.
func TestTheModeChangesAtTheStart(t *testing.T) {
	t.Parallel()
	n := apitest.NewSolo(t)
	other := apitest.NewHarnessOn(t, n)
	var once sync.Once
	h := apitest.NewHarnessOn(t, n, func(c *api.Config) {
		head := c.Head
		c.Head = func() (uint64, uint64) {
			once.Do(func() {
				if a := other.Call("PUT", "/api/v1/mesh/auth", `{"mode":"authenticated"}`); a.Status != 200 {
					t.Errorf("%d %s", a.Status, a.Body)
				}
			})
			return head()
		}
	})
	if got := h.Mode(); got != people.Authenticated {
		t.Errorf("mode %q", got)
	}
}

// A read of the mode that began before a change does not outlive it.
func TestTheModeIsTheNewest(t *testing.T) {
	t.Parallel()
	var slow *slowReader
	h := apitest.NewHarness(t, func(c *api.Config) {
		slow = &slowReader{Node: c.Node, held: make(chan struct{}), released: make(chan struct{})}
		c.Node = slow
	})
	h.Company("Acme")
	var both sync.WaitGroup
	slow.armed.Store(true)
	both.Go(func() { h.LearnMode(t.Context(), 0) })
	<-slow.held
	changed := make(chan struct{})
	both.Go(func() {
		defer close(changed)
		if a := h.Call("PUT", "/api/v1/mesh/auth", `{"mode":"authenticated"}`); a.Status != 200 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
	select {
	case <-changed:
	case <-time.After(300 * time.Millisecond): // it waits for the slow one
	}
	close(slow.released)
	both.Wait()
	if got := h.Mode(); got != people.Authenticated {
		t.Errorf("mode %q", got)
	}
}

// A stream ends with the credential that opened it.
func TestStreamsEndWithTheirCredential(t *testing.T) {
	t.Parallel()
	h := apitest.Peopled(t)
	ann := h.Admin()
	of := ledger.CompanyID(h.Call("POST", "/api/companies", `{"name":"Acme"}`, ann, apitest.OwnOrigin).Want(t, 201, "").
		Field(t, "id"))
	bob, _ := h.Join(of, ann, "Bob", people.RoleViewer)
	eve, id := h.Join(of, ann, "Eve", people.RoleViewer)
	at := h.Serve()
	open := func(cookie string) (over <-chan error) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", at.URL+"/api/companies/"+string(of)+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Cookie", strings.TrimPrefix(cookie, "Cookie: "))
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		lines := bufio.NewReader(resp.Body)
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { _, err := io.Copy(io.Discard, lines); done <- err }()
		return done
	}
	signedOut, takenOut, stays := open(bob), open(eve), open(ann)
	h.Call("POST", "/api/auth/sign-out", `{}`, bob, apitest.OwnOrigin).Want(t, 200, "")
	members := h.Call("GET", "/api/companies/"+string(of)+"/members", "", ann).
		Decode(t).(map[string]any)["members"].([]any)
	for _, m := range members {
		if m := m.(map[string]any); m["principalId"] == id {
			h.Call("POST", "/api/companies/"+string(of)+"/members/"+m["id"].(string)+"/archive", `{}`, ann, apitest.OwnOrigin).
				Want(t, 200, "")
		}
	}
	for what, over := range map[string]<-chan error{"signed out": signedOut, "taken out": takenOut} {
		select {
		case <-over:
		case <-time.After(apitest.Patience):
			t.Errorf("who was %s goes on reading", what)
		}
	}
	select {
	case err := <-stays:
		t.Errorf("another's stream ended: %v", err)
	default:
	}
}

// Passwords and tokens of sessions are nowhere: not in rows, entries, log lines or
// answers, and commands carry hashes.
func TestPasswordsAndSessionsAreKeptNowhere(t *testing.T) {
	h := apitest.Peopled(t)
	secrets := map[string]string{"password": "canary-password-1", "new password": "canary-password-2",
		"wrong password": "canary-password-3", "code": "CANARYCODE"}
	h.Cfg.ClaimCode = secrets["code"]
	var told []string // answers, without the cookie
	say := func(method, path, body string, headers ...string) apitest.Answer {
		a := h.Call(method, path, body, headers...)
		shown := fmt.Sprint(a.Status, string(a.Body))
		for k, v := range a.Header {
			if k != "Set-Cookie" {
				shown += fmt.Sprint(k, v)
			}
		}
		told = append(told, shown)
		return a
	}
	up := say("POST", "/api/auth/sign-up/email",
		`{"name":"Ann","email":"ann@example.com","password":"canary-password-1"}`).Want(t, 200, "")
	first, token, _ := up.CookieOf(t)
	secrets["session"] = token
	in := say("POST", "/api/auth/sign-in/email", `{"email":"ann@example.com","password":"canary-password-1"}`,
		"Idempotency-Key: k").Want(t, 200, "")
	_, secrets["second session"], _ = in.CookieOf(t)
	say("POST", "/api/auth/sign-in/email", `{"email":"ann@example.com","password":"canary-password-3"}`).
		Want(t, 401, `"code":"INVALID_EMAIL_OR_PASSWORD"`)
	say("POST", "/api/auth/sign-in/email", `{"email":"ann@example.com","password":"canary-password-1","surplus":{"a":`).
		Want(t, 400, "Malformed JSON")
	say("POST", "/api/auth/sign-in/email", `{"email":1,"password":["canary-password-1"]}`).Want(t, 400, `"path":["email"]`)
	say("POST", "/api/auth/sign-up/email", `{"name":"Ann","email":"ann@example.com","password":"canary-password-2"}`).
		Want(t, 422, `"code":"USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"`)
	say("POST", "/api/bootstrap/claim", `{"code":"CANARYCODE"}`, first, apitest.OwnOrigin).Want(t, 200, "")
	say("POST", "/api/auth/change-password", `{"currentPassword":"canary-password-3","newPassword":"canary-password-2"}`,
		first, apitest.OwnOrigin).Want(t, 400, `"code":"INVALID_PASSWORD"`)
	h.Node.SetFail(errors.New("canary-free failure"))
	say("POST", "/api/auth/change-password", `{"currentPassword":"canary-password-1","newPassword":"canary-password-2"}`,
		first, apitest.OwnOrigin).Want(t, 500, "Internal server error")
	h.Node.SetFail(nil)
	say("POST", "/api/auth/change-password", `{"currentPassword":"canary-password-1","newPassword":"canary-password-2"}`,
		first, apitest.OwnOrigin).Want(t, 200, "")
	for _, path := range []string{"/api/auth/get-session", "/api/cli-auth/me", "/api/auth/profile", "/api/admin/users",
		"/api/v1/mesh/ledger/entries", "/api/v1/mesh/members", "/metrics"} {
		say("GET", path, "", first)
	}
	say("GET", "/api/auth/get-session", "", "Cookie: "+api.SessionCookie+"="+secrets["second session"]).
		Want(t, 401, "Board authentication required") // the password changed
	say("GET", "/api/auth/get-session?token="+secrets["second session"], "").Want(t, 401, "Board authentication required")
	delete(secrets, "query")
	var rows strings.Builder
	if err := h.Node.Ledger.View(func(tx *ledger.Tx) error {
		for k, v := range tx.Prefix(nil) {
			rows.Write(k)
			rows.Write(v)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	head, _ := h.Node.Ledger.Head()
	for e, err := range h.Node.Ledger.Entries(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		rows.Write(ledger.Marshal(e))
		if e.Height == head {
			break
		}
	}
	for _, batch := range h.Node.Batches() {
		rows.Write(batch)
	}
	for what, secret := range secrets {
		for where, text := range map[string]string{"rows and commands": rows.String(), "log": h.Log.String(),
			"answers": strings.Join(told, "\n")} {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("the %s is in the %s: …%q", what, where, text[max(0, i-80):i])
			}
		}
	}
}

// Who changed the password on another node a moment ago is let in by the new one here,
// and not by the old one.
func TestAPasswordThatWasChangedOnAnotherNodeOpensHere(t *testing.T) {
	t.Parallel()
	h := apitest.Peopled(t)
	cookie, _ := h.SignUp("Ann")
	const was, now = "password of Ann", "another of Ann's"
	signIn := func(password string) apitest.Answer {
		return h.Call("POST", "/api/auth/sign-in/email", `{"email":"ann@example.com","password":"`+password+`"}`)
	}
	change := func(from, to string) apitest.Answer {
		return h.Call("POST", "/api/auth/change-password", `{"currentPassword":"`+from+`","newPassword":"`+to+`"}`, cookie,
			apitest.OwnOrigin)
	}
	h.Node.Late = func() { change(was, now).Want(t, 200, "") }
	signIn(now).Want(t, 200, "")
	signIn(was).Want(t, 401, `"INVALID_EMAIL_OR_PASSWORD"`)
	h.Node.Late = func() { change(now, was).Want(t, 200, "") }
	change(was, now).Want(t, 200, "")
	h.Node.SetFail(errors.New("no quorum"))
	signIn("neither of them").Want(t, 401, `"INVALID_EMAIL_OR_PASSWORD"`)
}

// What is shown in place of a credential, and was made on another node a moment ago, is
// good here too.
func TestASecretThatWasMadeOnAnotherNodeOpensHere(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	elsewhere := func(c ledger.Command) func() {
		return func() {
			if r, err := h.Node.Submit(t.Context(), c); err != nil || r.Err() != nil {
				t.Error(err, r.Err())
			}
		}
	}
	invited := func(token string) func() {
		return elsewhere(ledger.Command{Kind: "invite.create", Company: of, Actor: ledger.Actor{Type: "user",
			ID: api.LocalBoard}, Credential: ledger.Credential{Kind: "local"},
			Payload: ledger.Marshal(people.CreateInvite{ID: api.NewID(), Hash: api.HashOf(token), Joins: "agent"})})
	}
	const joins = `{"requestType":"agent","agentName":"Ada","adapterType":"process"}`
	h.Node.Late = invited("one")
	h.Call("POST", "/api/invites/one/accept", joins).Want(t, 202, `"claimSecret"`)
	h.Node.Late = invited("two")
	h.Call("GET", "/api/invites/two", "").Want(t, 200, `"companyName":"Acme"`)
	h.Node.Late = invited("three")
	h.Call("GET", "/api/invites/three/onboarding.txt", "").Want(t, 200, "Acme")
	id := api.NewID()
	h.Node.Late = elsewhere(ledger.Command{Kind: "cli_auth.open", Actor: ledger.Actor{Type: "system", ID: "cli-auth"},
		Credential: ledger.Credential{Kind: "node", ID: string(h.Node.Keys.ID())},
		Payload: ledger.Marshal(people.OpenChallenge{ID: id, Hash: api.HashOf("shown"), KeyHash: api.HashOf("key"),
			Command: "selvage", Access: "board"})})
	h.Call("GET", "/api/cli-auth/challenges/"+id+"?token=shown", "").Want(t, 200, `"pending"`)
	h.Node.SetFail(errors.New("no quorum"))
	h.Call("POST", "/api/invites/none/accept", joins).Want(t, 404, "Invite not found")
}
