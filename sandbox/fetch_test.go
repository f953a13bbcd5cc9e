package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// A host is on the list with its port, or is below a name that is.
func TestHostsThatAreListed(t *testing.T) {
	t.Parallel()
	e := Egress{Hosts: []string{"api.example.com", "*.example.org", "Upper.example.net", "box:8080", "10.0.0.1"}}
	for at, want := range map[string]bool{
		"https://api.example.com/x": true, "http://api.example.com:80/": true, "https://api.example.com:443/": true,
		"https://API.example.com./":     true,
		"https://api.example.com:8443/": false, "http://api.example.com:443/": false, "https://example.com/": false,
		"https://api.example.com.evil.net/": false,
		"https://a.example.org/":            true, "https://a.b.example.org/": true, "https://example.org/": false,
		"https://evilexample.org/": false, "https://.example.org/": false,
		"https://upper.example.net/": true, "http://box:8080/": true, "http://box/": false, "http://10.0.0.1/": true,
		"http://10.0.0.2/":                  false,
		"https://api.example.com@evil.net/": false, "https:///": false,
	} {
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.allows(u); got != want {
			t.Errorf("%s: %v", at, got)
		}
	}
}

func fetchWith(t *testing.T, e Egress, request string) (map[string]any, *HostError) {
	t.Helper()
	answer, err := Fetch(e)(t.Context(), json.RawMessage(request))
	var no *HostError
	if err != nil && !errors.As(err, &no) {
		t.Fatalf("%s: %v", request, err)
	}
	got, _ := answer.(map[string]any)
	return got, no
}

// What is fetched is what was asked for, without redirects, and no more than its bound;
// each try is told.
func TestWhatIsFetched(t *testing.T) {
	t.Parallel()
	var host string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "http://"+host+"/there", http.StatusFound)
		case "/there":
			t.Error("a redirect was followed")
		case "/bytes":
			_, _ = w.Write([]byte{0xff, 0, 1})
		case "/much":
			_, _ = w.Write(make([]byte, maxFetched+1))
		default:
			fmt.Fprint(w, r.Method, " ", r.Header.Get("X-A"), " ", r.Host == host)
		}
	}))
	defer web.Close()
	host = strings.TrimPrefix(web.URL, "http://")
	var seen []string
	e := Egress{Hosts: []string{host}, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Seen: func(method, host string, status int) {
			seen = append(seen, fmt.Sprint(method, " ", status))
		}}
	for _, c := range []struct{ request, want, code string }{
		{`{"url":%q,"method":"POST","headers":{"X-A":"b","Host":"other"},"body":"x"}`, `"body":"POST b true"`, ""},
		{`{"url":"%s/away"}`, `"status":302`, ""},
		{`{"url":"%s/bytes"}`, `"bodyBase64":"/wAB"`, ""},
		{`{"url":"%s/much"}`, "", "TooLarge"},
		{`{"url":"%s","method":"A B"}`, "", "BadRequest"},
		{`{"url":"file://%s"}`, "", "BadRequest"},
		{`{"url":"http://other.%s"}`, "", string(HostCallDenied)},
		{`["%s"]`, "", "BadRequest"},
	} {
		got, no := fetchWith(t, e, fmt.Sprintf(c.request, web.URL))
		b, _ := json.Marshal(got)
		if (no == nil) != (c.code == "") || no != nil && no.Code != c.code || !strings.Contains(string(b), c.want) {
			t.Errorf("%s: %.200s %v", c.request, b, no)
		}
	}
	if strings.Join(seen, ", ") != "POST 200, GET 302, GET 200, GET 200" {
		t.Errorf("told of %q", seen)
	}
}

// No address that is private is reached, in whichever form it is written.
func TestFetchesOfPrivateAddresses(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1:9", "localhost:9", "[::1]:9", "10.0.0.1", "169.254.169.254",
		"[::ffff:169.254.169.254]", "[::ffff:127.0.0.1]:9", "[::127.0.0.1]:9", "0.0.0.0:9", "[::]:9",
		"[fe80::1]", "[fd00::1]", "[2002:7f00:1::]", "[64:ff9b::7f00:1]", "100.64.0.1", "192.168.0.1", "172.31.0.1",
		"224.0.0.1"} {
		u := "http://" + host + "/"
		if _, no := fetchWith(t, Egress{Hosts: []string{host, strings.Trim(host, "[]"), strings.NewReplacer("[", "", "]:9",
			":9").Replace(host)}}, fmt.Sprintf(`{"url":%q}`, u)); no == nil || no.Code != string(HostCallDenied) ||
			!strings.Contains(no.Message, "private") {
			t.Errorf("%s: %v", host, no)
		}
	}
}
