package webcall

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
)

func invoke(t *testing.T, a *Adapter, config string) company.Outcome {
	t.Helper()
	return invokeUntil(t, a, config, shim.BootTime()+time.Hour)
}

func invokeUntil(t *testing.T, a *Adapter, config string, until time.Duration) company.Outcome {
	t.Helper()
	return a.Invoke(t.Context(), company.Invocation{Config: []byte(config), AgentName: "Ada",
		Wake: []byte(`{"wakeReason":"test"}`), Secrets: []string{"canary"},
		Run: entity.Run{ID: "run-1", Company: "company-1", Agent: "agent-1", AdapterType: "http"},
		Log: func(string, string) {}, Report: func(company.Report) {}, Authority: func() time.Duration { return until }})
}

func local() *Adapter {
	return New(Config{Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
}

func TestACallCarriesTheTemplate(t *testing.T) {
	var got map[string]any
	var header string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Get("X-Key")
		_ = json.NewDecoder(r.Body).Decode(&got)
		fmt.Fprint(w, "thanks for ", header)
	}))
	defer s.Close()
	o := invoke(t, local(),
		fmt.Sprintf(`{"url":%q,"headers":{"X-Key":{"type":"plain","value":"canary"}},`+
			`"payloadTemplate":{"who":"{{agent.id}}","deep":["{{run.id}}"]}}`, s.URL))
	if o.Status != entity.RunSucceeded || *o.Stdout != "thanks for ***REDACTED***" || header != "canary" {
		t.Fatalf("outcome %+v, header %q", o, header)
	}
	if got["who"] != "agent-1" || got["deep"].([]any)[0] != "run-1" || got["agentId"] != "agent-1" ||
		got["context"].(map[string]any)["wakeReason"] != "test" {
		t.Errorf("body %v", got)
	}
}

// An agent that echoes the request reveals no secret: neither a stored one, in any encoding of
// responses, nor one in the configuration.
func TestAnEchoShowsNoSecret(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		fmt.Fprintf(w, "%s %s %s %s %s %s", r.Header.Get("X-Auth"), strings.TrimPrefix(r.Header.Get("X-Api-Key"),
			"Bearer "), password,
			r.URL.Query().Get("access_token"), "bGluZVxjYW5hcnkiMg==", `line\\canary\"2`)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer s.Close()
	var log string
	o := local().Invoke(t.Context(), company.Invocation{Wake: []byte(`{}`), Secrets: []string{`line\canary"2`},
		Config: fmt.Appendf(nil,
			`{"url":%q,"headers":{"X-Auth":"header-canary","X-Api-Key":"Bearer bare-canary","X-Plain":"seen"}}`,
			strings.Replace(s.URL, "http://", "http://ada:password-canary@", 1)+"/?access_token=query-canary&page=7"),
		Log: func(_, text string) { log += text }, Report: func(company.Report) {},
		Authority: func() time.Duration { return shim.BootTime() + time.Hour }})
	for _, canary := range []string{"header-canary", "bare-canary", "password-canary", "query-canary",
		"bGluZVxjYW5hcnkiMg", `canary\"2`} {
		if strings.Contains(log+*o.Stdout+o.Error+string(o.Result), canary) {
			t.Errorf("%s is seen: %s", canary, log)
		}
	}
	if got := strings.Count(*o.Stdout, "***REDACTED***"); got != 6 {
		t.Errorf("the answer hides %d values, want 6: %s", got, *o.Stdout)
	}
}

// Addresses that are not public are refused, by address and by name, and redirects are not
// followed.
func TestWhatIsNotPublicIsNotReached(t *testing.T) {
	a := New(Config{})
	for _, u := range []string{"http://127.0.0.1:9/none", "http://localhost:9/", "http://[::1]:9/", "http://10.0.0.1/",
		"http://169.254.169.254/latest", "http://[::ffff:127.0.0.1]:9/",
		"http://0.0.0.0:9/", "http://100.64.0.1/", "http://[fd00::1]/", "http://[64:ff9b::7f00:1]/",
		"http://[::ffff:169.254.169.254]/latest", "http://[::ffff:10.0.0.1]/", "http://[::127.0.0.1]:9/", "http://[::]:9/",
		"http://[fe80::1]/", "http://[2002:7f00:1::]/", "http://[2001:0:7f00:1::]/",
		"http://[::ffff:0:127.0.0.1]/", "http://[fec0::1]/", "http://172.16.0.1/", "http://192.168.1.1/", "http://224.0.0.1/",
		"http://255.255.255.255/"} {
		o := invoke(t, a, fmt.Sprintf(`{"url":%q,"timeoutMs":60000}`, u))
		if o.Status != entity.RunFailed || o.Error != ErrPrivate.Error() || o.ErrorCode != "adapter_failed" {
			t.Errorf("%s: %+v", u, o)
		}
	}
	reached := false
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer inner.Close()
	outer := httptest.NewServer(http.RedirectHandler(inner.URL, http.StatusTemporaryRedirect))
	defer outer.Close()
	if o := invoke(t, local(), fmt.Sprintf(`{"url":%q}`, outer.URL)); o.Status != entity.RunFailed || reached {
		t.Errorf("a redirect was followed: %+v", o)
	}
}

// The address that is dialled is checked, not an earlier resolution of the name: a name whose
// address changes is refused whenever it resolves to a private one.
func TestANameThatChangesItsMind(t *testing.T) {
	reached := false
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer inner.Close()
	port := strings.TrimPrefix(inner.URL, "http://127.0.0.1:")
	dns, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer dns.Close()
	answers := [][]byte{{127, 0, 0, 1}, {169, 254, 169, 254}, {10, 0, 0, 1}, {0, 0, 0, 0}}
	asked := make(chan struct{}, 64)
	go func() {
		b, n := make([]byte, 512), 0
		for {
			size, from, err := dns.ReadFrom(b)
			if err != nil {
				return
			}
			q := b[:size]
			end := 12
			for q[end] != 0 { // labels of the name
				end += int(q[end]) + 1
			}
			end += 5
			a := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, q[12:end]...)
			if q[end-3] == 1 { // A record; there is no AAAA record
				a[7] = 1
				a = append(append(a, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), answers[n%len(answers)]...)
				n++
				asked <- struct{}{}
			}
			_, _ = dns.WriteTo(a, from)
		}
	}()
	was := net.DefaultResolver
	defer func() { net.DefaultResolver = was }()
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", dns.LocalAddr().String())
	}}
	a := New(Config{})
	for range answers {
		if o := invoke(t, a, fmt.Sprintf(`{"url":"http://inner.example.org:%s/"}`, port)); o.Status != entity.RunFailed ||
			o.Error != ErrPrivate.Error() {
			t.Errorf("%+v", o)
		}
	}
	if reached || len(asked) < len(answers) {
		t.Errorf("reached %v, asked %d times", reached, len(asked))
	}
}

func TestACallThatGoesWrong(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/slow" {
			select {
			case <-r.Context().Done():
			case <-time.After(time.Minute):
			}
			return
		}
		w.WriteHeader(503)
	}))
	defer s.Close()
	for config, want := range map[string]entity.RunStatus{
		fmt.Sprintf(`{"url":%q}`, s.URL):                                  entity.RunFailed,
		fmt.Sprintf(`{"url":%q,"timeoutMs":100}`, s.URL+"/slow?k=secret"): entity.RunTimedOut,
		`{"url":"ftp://example.com/"}`:                                    entity.RunFailed,
		`{"url":"http://127.0.0.1:1/?k=secret"}`:                          entity.RunFailed,
		`{}`:                                                              entity.RunFailed,
	} {
		o := invoke(t, local(), config)
		if o.Status != want || strings.Contains(o.Error, "secret") {
			t.Errorf("%s: %+v", config, o)
		}
	}
	a := local()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for a.Status("run-1") == "" && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		a.Cancel("run-1", "")
	}()
	if o := invoke(t, a, fmt.Sprintf(`{"url":%q}`, s.URL+"/slow")); o.Status != entity.RunCancelled {
		t.Errorf("cancelled: %+v", o)
	}
}

// A call ends with its node's lease, even if the response has begun. Without a lease no call is
// made.
func TestACallEndsWithItsLease(t *testing.T) {
	var asked, late atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked.Store(true)
		late.Store(late.Load() || r.URL.Path == "/late")
		fmt.Fprint(w, "it begins")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	config := fmt.Sprintf(`{"url":%q,"timeoutMs":60000}`, s.URL)
	// on a busy machine the lease ends before the call is made
	for lease := 500 * time.Millisecond; !asked.Load(); lease *= 2 {
		if o := invokeUntil(t, local(), config, shim.BootTime()+lease); o.Status != entity.RunInterrupted ||
			o.ErrorCode != "node_lost" {
			t.Fatalf("its lease ended: %+v", o)
		}
	}
	config = fmt.Sprintf(`{"url":%q,"timeoutMs":60000}`, s.URL+"/late")
	if o := invokeUntil(t, local(), config, shim.BootTime()-1); o.Status != entity.RunInterrupted {
		t.Errorf("without a lease: %+v", o)
	}
	if late.Load() {
		t.Error("a call was made without a lease")
	}
}

// With a callback, the response does not end the run; the posted outcome does.
func TestARunThatIsCalledBack(t *testing.T) {
	t.Parallel()
	const token = "canary-token-0123456789"
	for _, test := range []struct {
		name, config string
		told         *company.Callback
		status       entity.RunStatus
		code, want   string
	}{
		{"it succeeds", "", &company.Callback{Status: entity.RunSucceeded, Summary: "painted, with " + token,
			Result: json.RawMessage(`{"coats":2}`), Usage: &entity.Usage{InputTokens: 7}},
			entity.RunSucceeded, "", `"result":{"coats":2}`},
		{"it fails", "", &company.Callback{Status: entity.RunFailed, Error: "no paint"}, entity.RunFailed, "adapter_failed",
			`"calledBack":true`},
		{"it is not heard of", `,"callbackTimeoutSec":0.3`, nil, entity.RunTimedOut, "timeout", `"effectiveTimeoutMs":300`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var body struct {
				Callback struct{ URL, Token string }
			}
			var asked, told atomic.Bool
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = json.NewDecoder(r.Body).Decode(&body)
				w.WriteHeader(http.StatusAccepted)
				asked.Store(true)
			}))
			defer s.Close()
			a := New(Config{Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, APIURL: "http://127.0.0.1:3100",
				Token: func(entity.Run) (string, error) { return token, nil },
				Told: func(entity.Run) (company.Callback, bool) {
					if test.told == nil || !told.Swap(true) { // not at the first check
						return company.Callback{}, false
					}
					return *test.told, true
				}})
			o := invoke(t, a, `{"url":"`+s.URL+`","callback":true,"callbackUrl":"https://mesh.example/"`+test.config+`}`)
			if o.Status != test.status || o.ErrorCode != test.code || !strings.Contains(string(o.Result), test.want) ||
				strings.Contains(string(o.Result), token) {
				t.Errorf("it ended with %+v, %s", o, o.Result)
			}
			if !asked.Load() || body.Callback.Token != token ||
				body.Callback.URL != "https://mesh.example/api/heartbeat-runs/run-1/callback" {
				t.Errorf("the agent was told %+v", body)
			}
			if test.told != nil && test.told.Usage != nil && (o.Usage == nil || o.Usage.InputTokens != 7) {
				t.Errorf("usage %+v", o.Usage)
			}
		})
	}
}
