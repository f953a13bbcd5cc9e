package api

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

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

const ownOrigin = "Origin: http://127.0.0.1:3100"

// people are a harness where everybody signs in.
func peopled(t testing.TB, change ...func(*Config)) *harness {
	t.Helper()
	return newHarnessOn(t, newSoloOf(t, people.Authenticated), change...)
}

// cookieOf returns the session that an answer sets, as a header and bare.
func (a answer) cookieOf(t testing.TB) (header, token string, c *http.Cookie) {
	t.Helper()
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		if c.Name == sessionCookie {
			return "Cookie: " + sessionCookie + "=" + c.Value, c.Value, c
		}
	}
	t.Fatalf("no session in %v", a.header)
	return "", "", nil
}

// signUp makes a user and returns the session's header and the user's ID.
func (h *harness) signUp(name string) (cookie, id string) {
	h.t.Helper()
	a := h.call("POST", "/api/auth/sign-up/email", `{"name":"`+name+`","email":"`+name+`@example.com","password":"password of `+name+`"}`).want(h.t, 200, "")
	cookie, _, _ = a.cookieOf(h.t)
	return cookie, a.decode(h.t).(map[string]any)["user"].(map[string]any)["id"].(string)
}

// admin signs up Ann, who claims the instance.
func (h *harness) admin() (cookie string) {
	h.t.Helper()
	cookie, _ = h.signUp("Ann")
	h.call("POST", "/api/bootstrap/claim", `{}`, cookie, ownOrigin).want(h.t, 200, `"claimed":true`)
	return cookie
}

// join makes a user a member of a company.
func (h *harness) join(of, admin, name string, r people.Role) (cookie, id string) {
	h.t.Helper()
	cookie, id = h.signUp(name)
	invite := h.call("POST", "/api/companies/"+of+"/invites", `{"allowedJoinTypes":"human","humanRole":"`+string(r)+`"}`, admin, ownOrigin).want(h.t, 201, "").field(h.t, "token")
	h.call("POST", "/api/invites/"+invite+"/accept", `{"requestType":"human"}`, cookie, ownOrigin).want(h.t, 202, "approved")
	return cookie, id
}

func TestCookiesOfSessions(t *testing.T) {
	h := peopled(t)
	a := h.call("POST", "/api/auth/sign-up/email", `{"name":"Ann","email":"ANN@example.com ","password":"password of Ann"}`).want(t, 200, `"ann@example.com"`)
	cookie, token, c := a.cookieOf(t)
	if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Secure || c.Path != "/" || c.MaxAge != int(people.SessionAge/time.Second) || len(token) < 40 {
		t.Errorf("cookie %+v", c)
	}
	if strings.Contains(string(a.body), token) {
		t.Error("the answer shows the token to scripts")
	}
	h.call("GET", "/api/auth/get-session", "", cookie).want(t, 200, `"Ann"`)
	for _, bad := range []string{"", "x", token + "x", strings.Repeat("a", 9000), token[1:]} {
		h.call("GET", "/api/auth/get-session", "", "Cookie: "+sessionCookie+"="+bad).want(t, 401, "Board authentication required")
	}
	h.call("GET", "/api/auth/get-session", "", cookie+"; "+sessionCookie+"="+token).want(t, 401, "")
	// A bearer goes before the cookie; a wrong one is not made good by it.
	h.call("GET", "/api/auth/get-session", "", cookie, "Authorization: Bearer "+token).want(t, 401, "did not verify")

	out := h.call("POST", "/api/auth/sign-out", `{}`, cookie, ownOrigin).want(t, 200, `"success":true`)
	if _, v, c := out.cookieOf(t); v != "" || c.MaxAge >= 0 {
		t.Errorf("sign-out leaves the cookie %+v", c)
	}
	h.call("GET", "/api/auth/get-session", "", cookie).want(t, 401, "")
	h.call("POST", "/api/auth/sign-out", `{}`, cookie, ownOrigin).want(t, 200, "") // again

	// Over TLS, and behind a proxy that encrypts, browsers keep it for TLS alone.
	secure := func(h *harness, more func(*http.Request)) bool {
		r := httptest.NewRequest("POST", "/api/auth/sign-in/email", strings.NewReader(`{"email":"ann@example.com","password":"password of Ann"}`))
		r.Host = "127.0.0.1:3100"
		r.Header.Set("Content-Type", "application/json")
		more(r)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		_, _, c := answer{w.Code, w.Header(), w.Body.Bytes()}.want(t, 200, "").cookieOf(t)
		return c.Secure
	}
	forwarded := func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") }
	if !secure(h, func(r *http.Request) { r.TLS = &tls.ConnectionState{} }) || secure(h, forwarded) {
		t.Error("over TLS the cookie is not secure, or whoever says https is believed")
	}
	behind := newHarnessOn(t, h.node, func(c *Config) { c.Proxied = true })
	if !secure(behind, forwarded) {
		t.Error("behind a proxy that encrypts the cookie is not secure")
	}
}

func TestSessionsExpire(t *testing.T) {
	h := peopled(t)
	now := time.Now()
	who := holder{actor: ledger.Actor{Type: "user", ID: NewID()}, cred: ledger.Credential{Kind: "session", ID: NewID()}, until: core.TimeOf(now.Add(-time.Millisecond))}
	h.keys.keep([32]byte{1}, who, h.keys.generation(), 0, now)
	if _, ok := h.keys.find([32]byte{1}, 0, now); ok {
		t.Error("a remembered session opens after its end")
	}
	if s := (people.UserSession{ExpiresAt: core.TimeOf(now)}); s.Valid(core.TimeOf(now)) {
		t.Error("a session is good at its end")
	}
}

// What a browser sends along from other pages changes nothing.
func TestChangesBySessionComeFromOwnPages(t *testing.T) {
	h := peopled(t)
	ann := h.admin()
	for what, c := range map[string]struct {
		headers []string
		ok      bool
	}{
		"its own page":              {[]string{ownOrigin}, true},
		"its own page by referer":   {[]string{"Referer: http://127.0.0.1:3100/companies"}, true},
		"nothing":                   {nil, false},
		"another host":              {[]string{"Origin: http://evil.example"}, false},
		"another port":              {[]string{"Origin: http://127.0.0.1:3101"}, false},
		"null":                      {[]string{"Origin: null"}, false},
		"another scheme":            {[]string{"Origin: file://127.0.0.1:3100"}, false},
		"the host as a user":        {[]string{"Origin: http://127.0.0.1:3100@evil.example"}, false},
		"referer of another":        {[]string{"Referer: http://evil.example/?http://127.0.0.1:3100"}, false},
		"origin goes first":         {[]string{"Origin: http://evil.example", "Referer: http://127.0.0.1:3100/"}, false},
		"told by the browser":       {[]string{ownOrigin, "Sec-Fetch-Site: cross-site"}, false},
		"own, told by the browser":  {[]string{ownOrigin, "Sec-Fetch-Site: same-origin"}, true},
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
				path, body = "/api/board-api-keys/"+NewID(), ""
			}
			a := h.call(method, path, body, append([]string{ann}, c.headers...)...)
			if refused := a.status == 403 && strings.Contains(string(a.body), "trusted browser origin"); refused == c.ok {
				t.Errorf("%s from %s: %d %s", method, what, a.status, a.body)
			}
		}
	}
	h.call("GET", "/api/auth/get-session", "", ann, "Origin: http://evil.example").want(t, 200, "") // browsers keep the answer from that page
	key := h.call("POST", "/api/board-api-keys", `{"name":"k"}`, ann, ownOrigin).want(t, 201, "").field(t, "token")
	h.call("POST", "/api/companies", `{"name":"By key"}`, "Authorization: Bearer "+key).want(t, 201, "")
}

func TestSignUpAndSignInRefuse(t *testing.T) {
	h := peopled(t)
	h.signUp("Ann")
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
		if a := h.call("POST", "/api/auth/sign-up/email", body); a.status != want {
			t.Errorf("sign-up with %.60s: %d %s, want %d", body, a.status, a.body, want)
		}
	}
	for _, body := range []string{`{"email":"ann@example.com","password":"wrong"}`, `{"email":"nobody@example.com","password":"password of Ann"}`,
		`{"email":"ann@example.com","password":"` + strings.Repeat("x", 4000) + `"}`} {
		a := h.call("POST", "/api/auth/sign-in/email", body).want(t, 401, "INVALID_EMAIL_OR_PASSWORD")
		if strings.Contains(a.header.Get("Set-Cookie"), sessionCookie) {
			t.Error("a cookie with the refusal")
		}
	}
	local := newHarness(t)
	local.call("POST", "/api/auth/sign-up/email", `{"name":"B","email":"b@example.com","password":"long enough"}`).want(t, 409, "local_trusted")
	local.call("POST", "/api/auth/sign-in/email", `{"email":"b@example.com","password":"long enough"}`).want(t, 409, "local_trusted")
	local.call("POST", "/api/bootstrap/claim", `{}`).want(t, 409, "")
}

func TestTooManySignIns(t *testing.T) {
	h := peopled(t)
	h.signUp("Ann")
	in := func(email string) answer {
		return h.call("POST", "/api/auth/sign-in/email", `{"email":"`+email+`","password":"wrong password"}`)
	}
	for range signInRate.Burst {
		in("ann@example.com").want(t, 401, "")
	}
	a := in("ann@example.com").want(t, 429, "Too many requests")
	if after := a.header.Get("Retry-After"); after == "" || after == "0" {
		t.Errorf("Retry-After %q", after)
	}
	in("other@example.com").want(t, 429, "") // the source counts, whomever it tries
	for i := 0; ; i++ {
		a := h.call("POST", "/api/cli-auth/challenges", `{"command":"flood"}`)
		if a.status == 429 {
			if i < keyRate.Burst/2 {
				t.Errorf("refused after %d", i)
			}
			break
		}
		if a.want(t, 201, ""); i > 3*keyRate.Burst {
			t.Fatal("nobody stops a flood of challenges")
		}
	}
	h.call("GET", "/api/health", "").want(t, 200, "") // others go on
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
		if lower := strings.ToLower(name); strings.HasSuffix(lower, "token") && name != "publicShareToken" || strings.HasSuffix(lower, "claimsecret") || strings.HasSuffix(lower, "secretmaterial") {
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
		"POST /api/secrets/{id}/rotate":                                          "a value that is handed to runs, and opens nothing here",
		"POST /api/companies/{companyId}/me/user-secrets/{secretId}/rotate":      "likewise",
		"POST /api/companies/{companyId}/tools/{name}/versions/{version}/revoke": "a program, and no credential",
		"POST /api/v1/mesh/nodes/{id}/revoke":                                    "a member goes, and no credential of a caller",
	}
	words := []string{"keys", "board-api-keys", "owner-keys", "tokens", "claim", "claim-api-key", "challenges", "invites", "invite-prompt", "revoke", "revoke-sessions", "revoke-current",
		"revoke-credentials", "change-password", "rotate", "rotate-secret"}
	found := 0
	for _, r := range newHarness(t).Routes() {
		if r.Method == "GET" {
			continue
		}
		about := ""
		for _, part := range strings.Split(r.Path, "/") {
			if slices.Contains(words, part) {
				about = part
			}
		}
		if tokens := credentialsIn(reflect.TypeOf(r.Out), map[reflect.Type]bool{}); about == "" && len(tokens) > 0 {
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
	var l limits
	now := time.Unix(1_000_000, 0)
	r := rate{3, 10 * time.Second}
	ask := func(at time.Duration, want bool, after time.Duration) {
		t.Helper()
		if ok, a := l.allow("a", r, now.Add(at)); ok != want || a != after {
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
	if ok, _ := l.allow("b", r, now); !ok {
		t.Error("another name waits for the first")
	}
	for i := range 3 * maxBuckets {
		l.allow(fmt.Sprint(i), r, now.Add(time.Hour))
		if len(l.buckets) > maxBuckets {
			t.Fatalf("%d buckets", len(l.buckets))
		}
	}
}

func TestSourcesOfRequests(t *testing.T) {
	plain, behind := &Server{}, &Server{cfg: Config{Proxied: true}}
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
		if got := plain.source(r); got != c.direct {
			t.Errorf("%s: %s, want %s", c.remote, got, c.direct)
		}
		if got := behind.source(r); got != c.proxied {
			t.Errorf("%s for %s: %s, want %s", c.remote, c.forwarded, got, c.proxied)
		}
	}
}

// However many sign in at once, few passwords are hashed at a time, and who finds
// too many before them is told so.
func TestHashingIsBounded(t *testing.T) {
	h := newHasher()
	var now, most, done, refused atomic.Int64
	hold := make(chan struct{})
	var wg sync.WaitGroup
	const all = 3 * maxHashWaiting
	for range all {
		wg.Go(func() {
			err := h.turn(t.Context(), func() {
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
	for refused.Load() < all-maxHashWaiting {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	close(hold)
	wg.Wait()
	if most.Load() > maxHashing || done.Load() != maxHashWaiting {
		t.Errorf("%d at a time, %d done, %d refused", most.Load(), done.Load(), refused.Load())
	}
	full := hasher{make(chan struct{}), make(chan struct{}, 1), new(atomic.Uint64)}
	if err := full.turn(ctx, func() { t.Error("ran") }); !errors.Is(err, context.Canceled) {
		t.Errorf("whoever went away waits: %v", err)
	}
}

func TestPasswordsAreKeptAsHashes(t *testing.T) {
	h := newHasher()
	kept, err := h.make(t.Context(), "correct horse")
	if err != nil || !strings.HasPrefix(kept, "$argon2id$v=19$m=19456,t=2,p=1$") || strings.Contains(kept, "horse") {
		t.Fatal(kept, err)
	}
	other, _ := h.make(t.Context(), "correct horse")
	if other == kept {
		t.Error("the same password is kept the same way twice")
	}
	for password, want := range map[string]bool{"correct horse": true, "correct horse ": false, "": false, "Correct horse": false} {
		if fits, err := h.fits(t.Context(), password, kept); fits != want || err != nil {
			t.Errorf("%q fits: %v %v", password, fits, err)
		}
	}
	if fits, err := h.fits(t.Context(), "anything", ""); fits || err != nil {
		t.Errorf("nobody's password fits: %v %v", fits, err)
	}
	if _, err := h.fits(t.Context(), "x", "$argon2id$v=19$m=9999999,t=2,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA"); err == nil {
		t.Error("a kept hash that asks for ten gigabytes is tried")
	}
}

func FuzzParseHash(f *testing.F) {
	f.Add(decoy)
	f.Add("$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA")
	f.Add("$argon2id$v=19$m=-1,t=1,p=1$$")
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := parseHash(text)
		if ok && (p.memory > maxHashMemory || p.time > maxHashTime || p.threads > maxHashThreads || p.time == 0 || p.threads == 0 || len(p.salt) < 8 || len(p.sum) < 16 || len(p.sum) > 64) {
			t.Errorf("%q is read as %+v", text, p)
		}
	})
}

func TestClaimingFromElsewhereTakesTheCode(t *testing.T) {
	claim := func(h *harness, cookie, from, body string) answer {
		r := httptest.NewRequest("POST", "/api/bootstrap/claim", strings.NewReader(body))
		r.Host, r.RemoteAddr = "127.0.0.1:3100", from
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Origin", "http://127.0.0.1:3100")
		r.Header.Set("Cookie", strings.TrimPrefix(cookie, "Cookie: "))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return answer{w.Code, w.Header(), w.Body.Bytes()}
	}
	coded := func(c *Config) { c.ClaimCode = "THECODE" }
	h := peopled(t, coded)
	ann, _ := h.signUp("Ann")
	claim(h, ann, "192.0.2.9:1", `{}`).want(t, 403, "claim-code")
	claim(h, ann, "192.0.2.9:1", `{"code":"THECODe"}`).want(t, 403, "claim-code")
	claim(h, ann, "192.0.2.9:1", `{"code":""}`).want(t, 403, "claim-code")
	claim(h, ann, "192.0.2.9:1", `{"code":"THECODE"}`).want(t, 200, "")
	h = peopled(t, coded)
	ann, _ = h.signUp("Ann")
	claim(h, ann, "127.0.0.1:1", `{}`).want(t, 200, "")
	h = peopled(t, coded, func(c *Config) { c.Proxied = true }) // everybody comes from loopback
	ann, _ = h.signUp("Ann")
	claim(h, ann, "127.0.0.1:1", `{}`).want(t, 403, "claim-code")
}

// A mesh goes from trust to sign-ins and back, and each request sees it at once.
func TestTheModeChanges(t *testing.T) {
	h := newHarness(t)
	of := h.company("Acme")
	key := "Authorization: Bearer " + h.call("POST", "/api/board-api-keys", `{"name":"k"}`).want(t, 201, "").field(t, "token")
	h.call("GET", "/api/companies/"+of, "", key).want(t, 200, "")
	h.call("PUT", "/api/v1/mesh/auth", `{"mode":"open"}`).want(t, 400, "mode")
	h.call("PUT", "/api/v1/mesh/auth", `{"mode":"authenticated"}`).want(t, 200, "authenticated")
	h.call("GET", "/api/companies", "").want(t, 403, "Board access required")
	h.call("GET", "/api/issues/ACM-1", "").want(t, 401, "Board authentication required")
	h.call("PUT", "/api/v1/mesh/auth", `{"mode":"local_trusted"}`).want(t, 401, "")
	h.call("GET", "/api/companies", "", key).want(t, 401, "")
	ann := h.admin()
	h.call("GET", "/api/companies/"+of, "", ann).want(t, 200, "Acme") // what was there is the administrator's
	h.call("PUT", "/api/v1/mesh/auth", `{"mode":"local_trusted"}`, ann, ownOrigin).want(t, 200, "")
	h.call("GET", "/api/companies", "").want(t, 200, "Acme")
	h.call("GET", "/api/companies", "", ann).want(t, 200, "Acme") // on loopback everybody is the board

	// From elsewhere nobody is served then, whatever they show.
	r := httptest.NewRequest("GET", "/api/health", nil)
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 3100}))
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
	Node
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
	n := newSolo(t)
	other := newHarnessOn(t, n)
	var once sync.Once
	h := newHarnessOn(t, n, func(c *Config) {
		head := c.Head
		c.Head = func() (uint64, uint64) {
			once.Do(func() {
				if a := other.call("PUT", "/api/v1/mesh/auth", `{"mode":"authenticated"}`); a.status != 200 {
					t.Errorf("%d %s", a.status, a.body)
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
	h := newHarness(t, func(c *Config) {
		slow = &slowReader{Node: c.Node, held: make(chan struct{}), released: make(chan struct{})}
		c.Node = slow
	})
	h.company("Acme")
	var both sync.WaitGroup
	slow.armed.Store(true)
	both.Go(func() { h.learnMode(t.Context(), 0) })
	<-slow.held
	changed := make(chan struct{})
	both.Go(func() {
		defer close(changed)
		if a := h.call("PUT", "/api/v1/mesh/auth", `{"mode":"authenticated"}`); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
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
	h := peopled(t)
	ann := h.admin()
	of := h.call("POST", "/api/companies", `{"name":"Acme"}`, ann, ownOrigin).want(t, 201, "").field(t, "id")
	bob, _ := h.join(of, ann, "Bob", people.RoleViewer)
	eve, id := h.join(of, ann, "Eve", people.RoleViewer)
	at := h.serve()
	open := func(cookie string) (over <-chan error) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", at.URL+"/api/companies/"+of+"/events", nil)
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
	h.call("POST", "/api/auth/sign-out", `{}`, bob, ownOrigin).want(t, 200, "")
	members := h.call("GET", "/api/companies/"+of+"/members", "", ann).decode(t).(map[string]any)["members"].([]any)
	for _, m := range members {
		if m := m.(map[string]any); m["principalId"] == id {
			h.call("POST", "/api/companies/"+of+"/members/"+m["id"].(string)+"/archive", `{}`, ann, ownOrigin).want(t, 200, "")
		}
	}
	for what, over := range map[string]<-chan error{"signed out": signedOut, "taken out": takenOut} {
		select {
		case <-over:
		case <-time.After(patience):
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
	h := peopled(t)
	secrets := map[string]string{"password": "canary-password-1", "new password": "canary-password-2", "wrong password": "canary-password-3", "code": "CANARYCODE"}
	h.cfg.ClaimCode = secrets["code"]
	var told []string // answers, without the cookie
	say := func(method, path, body string, headers ...string) answer {
		a := h.call(method, path, body, headers...)
		shown := fmt.Sprint(a.status, string(a.body))
		for k, v := range a.header {
			if k != "Set-Cookie" {
				shown += fmt.Sprint(k, v)
			}
		}
		told = append(told, shown)
		return a
	}
	up := say("POST", "/api/auth/sign-up/email", `{"name":"Ann","email":"ann@example.com","password":"canary-password-1"}`).want(t, 200, "")
	first, token, _ := up.cookieOf(t)
	secrets["session"] = token
	in := say("POST", "/api/auth/sign-in/email", `{"email":"ann@example.com","password":"canary-password-1"}`, "Idempotency-Key: k").want(t, 200, "")
	_, secrets["second session"], _ = in.cookieOf(t)
	say("POST", "/api/auth/sign-in/email", `{"email":"ann@example.com","password":"canary-password-3"}`).want(t, 401, "")
	say("POST", "/api/auth/sign-in/email", `{"email":"ann@example.com","password":"canary-password-1","surplus":{"a":`).want(t, 400, "")
	say("POST", "/api/auth/sign-in/email", `{"email":1,"password":["canary-password-1"]}`).want(t, 400, "")
	say("POST", "/api/auth/sign-up/email", `{"name":"Ann","email":"ann@example.com","password":"canary-password-2"}`).want(t, 422, "")
	say("POST", "/api/bootstrap/claim", `{"code":"CANARYCODE"}`, first, ownOrigin).want(t, 200, "")
	say("POST", "/api/auth/change-password", `{"currentPassword":"canary-password-3","newPassword":"canary-password-2"}`, first, ownOrigin).want(t, 400, "")
	h.node.setFail(errors.New("canary-free failure"))
	say("POST", "/api/auth/change-password", `{"currentPassword":"canary-password-1","newPassword":"canary-password-2"}`, first, ownOrigin).want(t, 500, "")
	h.node.setFail(nil)
	say("POST", "/api/auth/change-password", `{"currentPassword":"canary-password-1","newPassword":"canary-password-2"}`, first, ownOrigin).want(t, 200, "")
	for _, path := range []string{"/api/auth/get-session", "/api/cli-auth/me", "/api/auth/profile", "/api/admin/users", "/api/v1/mesh/ledger/entries", "/api/v1/mesh/members", "/metrics"} {
		say("GET", path, "", first)
	}
	say("GET", "/api/auth/get-session", "", "Cookie: "+sessionCookie+"="+secrets["second session"]).want(t, 401, "") // the password changed
	say("GET", "/api/auth/get-session?token="+secrets["second session"], "").want(t, 401, "")
	delete(secrets, "query")
	var rows strings.Builder
	if err := h.node.ledger.View(func(tx *ledger.Tx) error {
		for k, v := range tx.Prefix(nil) {
			rows.Write(k)
			rows.Write(v)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	head, _ := h.node.ledger.Head()
	for e, err := range h.node.ledger.Entries(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		rows.Write(ledger.Marshal(e))
		if e.Height == head {
			break
		}
	}
	for _, batch := range h.node.batches() {
		rows.Write(batch)
	}
	for what, secret := range secrets {
		for where, text := range map[string]string{"rows and commands": rows.String(), "log": h.log.String(), "answers": strings.Join(told, "\n")} {
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
	h := peopled(t)
	cookie, _ := h.signUp("Ann")
	const was, now = "password of Ann", "another of Ann's"
	signIn := func(password string) answer {
		return h.call("POST", "/api/auth/sign-in/email", `{"email":"ann@example.com","password":"`+password+`"}`)
	}
	change := func(from, to string) answer {
		return h.call("POST", "/api/auth/change-password", `{"currentPassword":"`+from+`","newPassword":"`+to+`"}`, cookie, ownOrigin)
	}
	h.node.late = func() { change(was, now).want(t, 200, "") }
	signIn(now).want(t, 200, "")
	signIn(was).want(t, 401, `"INVALID_EMAIL_OR_PASSWORD"`)
	h.node.late = func() { change(now, was).want(t, 200, "") }
	change(was, now).want(t, 200, "")
	h.node.setFail(errors.New("no quorum"))
	signIn("neither of them").want(t, 401, `"INVALID_EMAIL_OR_PASSWORD"`)
}

// What is shown in place of a credential, and was made on another node a moment ago, is
// good here too.
func TestASecretThatWasMadeOnAnotherNodeOpensHere(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := h.company("Acme")
	elsewhere := func(c ledger.Command) func() {
		return func() {
			if r, err := h.node.Submit(t.Context(), c); err != nil || r.Err() != nil {
				t.Error(err, r.Err())
			}
		}
	}
	invited := func(token string) func() {
		return elsewhere(ledger.Command{Kind: "invite.create", Company: of, Actor: ledger.Actor{Type: "user", ID: LocalBoard}, Credential: ledger.Credential{Kind: "local"},
			Payload: ledger.Marshal(people.CreateInvite{ID: NewID(), Hash: hashOf(token), Joins: "agent"})})
	}
	const joins = `{"requestType":"agent","agentName":"Ada","adapterType":"process"}`
	h.node.late = invited("one")
	h.call("POST", "/api/invites/one/accept", joins).want(t, 202, `"claimSecret"`)
	h.node.late = invited("two")
	h.call("GET", "/api/invites/two", "").want(t, 200, `"companyName":"Acme"`)
	h.node.late = invited("three")
	h.call("GET", "/api/invites/three/onboarding.txt", "").want(t, 200, "Acme")
	id := NewID()
	h.node.late = elsewhere(ledger.Command{Kind: "cli_auth.open", Actor: ledger.Actor{Type: "system", ID: "cli-auth"}, Credential: ledger.Credential{Kind: "node", ID: string(h.node.keys.ID())},
		Payload: ledger.Marshal(people.OpenChallenge{ID: id, Hash: hashOf("shown"), KeyHash: hashOf("key"), Command: "selvage", Access: "board"})})
	h.call("GET", "/api/cli-auth/challenges/"+id+"?token=shown", "").want(t, 200, `"pending"`)
	h.node.setFail(errors.New("no quorum"))
	h.call("POST", "/api/invites/none/accept", joins).want(t, 404, "Invite not found")
}
