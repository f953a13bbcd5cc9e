package client

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTrustDecidesWhichNodeIsSpokenTo(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(`{}`)) }))
	defer s.Close()
	s.Config.ErrorLog = nil
	raw := s.Certificate().Raw
	sum := sha256.Sum256(raw)
	pin := hex.EncodeToString(sum[:])
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	elsewhere := strings.Replace(s.URL, "127.0.0.1", "localhost", 1) // a host name that is not in the certificate
	for what, c := range map[string]struct {
		url   string
		trust Trust
		ok    bool
	}{
		"nobody":          {s.URL, Trust{}, false},
		"its fingerprint": {s.URL, Trust{Fingerprints: []string{strings.Repeat("0", 64), pin}}, true},
		"with colons": {s.URL, Trust{Fingerprints: []string{"SHA256:" + strings.ToUpper(pin[:2]) + ":" +
			pin[2:]}}, true},
		"another fingerprint":   {s.URL, Trust{Fingerprints: []string{strings.Repeat("0", 64)}}, false},
		"its authority":         {s.URL, Trust{CA: ca}, true},
		"under another name":    {elsewhere, Trust{CA: ca}, false},
		"fingerprint, any name": {elsewhere, Trust{Fingerprints: []string{pin}}, true},
	} {
		cl, err := New(Config{Nodes: []string{c.url}, Trust: c.trust, Attempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		err = cl.Get(t.Context(), "/api/health", nil)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", what, err)
		}
		if bad, is := errors.AsType[*CertificateError](err); !c.ok && (!is || bad.Fingerprint != pin) {
			t.Errorf("%s: %v does not tell the fingerprint", what, err)
		}
		cl.http.CloseIdleConnections()
	}
	for _, bad := range []Trust{{Fingerprints: []string{"abc"}}, {Fingerprints: []string{""}}, {CA: []byte("nothing")}} {
		if _, err := New(Config{Nodes: []string{s.URL}, Trust: bad}); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

func TestSessionsTravelAsCookies(t *testing.T) {
	var seen []http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Clone())
		var in map[string]string
		_ = json.NewDecoder(r.Body).Decode(&in)
		switch {
		case strings.HasSuffix(r.URL.Path, "/sign-in/email") && in["password"] != "right":
			w.WriteHeader(401)
			w.Write([]byte(`{"message":"Invalid email or password","error":"Invalid email or password"}`))
		case strings.HasSuffix(r.URL.Path, "/email"):
			http.SetCookie(w, &http.Cookie{Name: sessionCookie, Value: "secret", HttpOnly: true})
			w.Write([]byte(`{"token":"id","user":{"id":"u","name":"Ann","email":"ann@example.com"}}`))
		default:
			w.Write([]byte(`{}`))
		}
	}))
	defer s.Close()
	cl, err := New(Config{Nodes: []string{s.URL}, Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cl.SignIn(t.Context(), "ann@example.com", "wrong"); err == nil ||
		err.Error() != "Invalid email or password" {
		t.Errorf("a wrong password: %v", err)
	}
	in, err := cl.SignIn(t.Context(), "ann@example.com", "right")
	if err != nil || in.Session != "secret" || in.User.Name != "Ann" {
		t.Fatalf("%+v %v", in, err)
	}
	if up, err := cl.SignUp(t.Context(), "Ann", "ann@example.com", "right", ""); err != nil || up.Session != "secret" {
		t.Errorf("%+v %v", up, err)
	}
	if err := cl.With("", in.Session).SignOut(t.Context()); err != nil {
		t.Error(err)
	}
	last := seen[len(seen)-1]
	if last.Get("Cookie") != sessionCookie+"=secret" || last.Get("Origin") != s.URL || last.Get("Authorization") != "" {
		t.Errorf("by session: %v", last)
	}
	if err := cl.With("key", in.Session).Get(t.Context(), "/", nil); err != nil {
		t.Error(err)
	}
	if last = seen[len(seen)-1]; last.Get("Cookie") != "" || last.Get("Authorization") != "Bearer key" {
		t.Errorf("by key: %v", last)
	}
	if b, err := json.Marshal(in); err != nil || strings.Contains(string(b), "secret") {
		t.Errorf("the session is in %s, %v", b, err)
	}
}
