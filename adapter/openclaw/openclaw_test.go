package openclaw

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
)

const token = "claw-canary-0011223344"

// A gateway is the server's side of the protocol.
type gateway struct {
	*httptest.Server
	t       *testing.T
	mode    string
	mu      sync.Mutex
	asked   []map[string]any // params of agent
	greeted int              // number of connections
	aborted chan string
}

func newGateway(t *testing.T, mode string) *gateway {
	g := &gateway{t: t, mode: mode, aborted: make(chan string, 1)}
	g.Server = httptest.NewServer(http.HandlerFunc(g.serve))
	t.Cleanup(g.Close)
	return g
}

func (g *gateway) serve(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer ws.CloseNow()
	ctx := r.Context()
	send := func(v string) { _ = ws.Write(ctx, websocket.MessageText, []byte(v)) }
	send(`{"type":"event","event":"connect.challenge","payload":{"nonce":"n0nce","ts":1}}`)
	for {
		_, b, err := ws.Read(ctx)
		if err != nil {
			return
		}
		var f struct {
			ID, Method string
			Params     map[string]any
		}
		if err := json.Unmarshal(b, &f); err != nil {
			g.t.Error(err)
			return
		}
		ok := func(payload string) {
			send(fmt.Sprintf(`{"type":"res","id":%q,"ok":true,"payload":%s}`, f.ID, payload))
		}
		no := func(code, message string) {
			send(fmt.Sprintf(`{"type":"res","id":%q,"ok":false,"error":{"code":%q,"message":%q}}`, f.ID, code, message))
		}
		switch f.Method {
		case "connect":
			auth, _ := f.Params["auth"].(map[string]any)
			g.mu.Lock()
			g.greeted++
			times := g.greeted
			g.mu.Unlock()
			switch {
			case g.mode == "starting" && times < 3:
				send(fmt.Sprintf(`{"type":"res","id":%q,"ok":false,"error":{"code":"UNAVAILABLE",`+
					`"message":"gateway starting; retry shortly","retryable":true,"retryAfterMs":1}}`, f.ID))
				return
			case g.mode == "newer" || f.Params["minProtocol"] != float64(3) || f.Params["maxProtocol"] != float64(4):
				no("INVALID_REQUEST", "protocol mismatch")
			case g.mode == "mismatch":
				send(fmt.Sprintf(`{"type":"res","id":%q,"ok":false,"error":{"code":"INVALID_REQUEST",`+
					`"message":"not this one","details":{"code":"AUTH_TOKEN_MISMATCH"}}}`, f.ID))
			case g.mode == "unpaired":
				no("NOT_PAIRED", "pairing required")
			case auth["token"] != token || !signed(f.Params):
				no("UNAUTHORIZED", "who are you, with "+fmt.Sprint(auth["token"]))
			default:
				ok(`{"type":"hello-ok","protocol":3}`)
			}
		case "agent":
			g.mu.Lock()
			g.asked = append(g.asked, f.Params)
			g.mu.Unlock()
			ok(`{"runId":"claw-1","status":"accepted"}`)
		case "agent.wait":
			send(`{"type":"event","event":"tick","payload":{}}`)
			send(`{"type":"event","event":"agent","payload":{"runId":"other","stream":"assistant","data":{"delta":"not ours"}}}`)
			send(`{"type":"event","event":"agent","payload":{"runId":"claw-1","stream":"lifecycle","data":{"phase":"start"}}}`)
			send(`{"type":"event","event":"agent","payload":{"runId":"claw-1","stream":"assistant",` +
				`"data":{"delta":"Hello from "}}}`)
			send(`{"type":"event","event":"agent","payload":{"runId":"claw-1","stream":"assistant","data":{"delta":"the claw, ` +
				token + `"}}}`)
			switch g.mode {
			case "error":
				ok(`{"status":"error","error":"it broke"}`)
			case "drop":
				return
			case "hang", "stuck":
			default:
				ok(`{"status":"ok"}`)
			}
		case "chat.abort":
			g.aborted <- fmt.Sprint(f.Params["runId"])
			ok(`{}`)
		}
	}
}

// signed checks the device's signature as a gateway does.
func signed(p map[string]any) bool {
	d, _ := p["device"].(map[string]any)
	public, err := base64.RawURLEncoding.DecodeString(fmt.Sprint(d["publicKey"]))
	sig, sigErr := base64.RawURLEncoding.DecodeString(fmt.Sprint(d["signature"]))
	if err != nil || sigErr != nil || len(public) != ed25519.PublicKeySize {
		return false
	}
	sum := sha256.Sum256(public)
	client, _ := p["client"].(map[string]any)
	text := fmt.Sprintf("v3|%s|%s|%s|operator|operator.read,operator.write|%.0f|%s|n0nce|%s|", hex.EncodeToString(sum[:]),
		client["id"], client["mode"], d["signedAt"], token, client["platform"])
	return d["id"] == hex.EncodeToString(sum[:]) && ed25519.Verify(public, []byte(text), sig)
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func invoke(t *testing.T, g *gateway, private []netip.Prefix, more string,
	change ...func(*company.Invocation)) (company.Outcome, *Adapter, string) {
	t.Helper()
	a, err := New(Config{Dir: t.TempDir(), Private: private})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	log := ""
	inv := company.Invocation{AgentName: "Ada", Wake: []byte(`{"wakeReason":"x"}`), Secrets: []string{token},
		Config: []byte(`{"url":"` + strings.Replace(g.URL, "http", "ws", 1) + `","authToken":"` + token +
			`","agentId":"main","timeoutSec":120` + more + `}`),
		Run: entity.Run{ID: "run-1", Company: "company-1", Agent: "agent-1", Context: entity.RunContext{TaskID: "task-1"}},
		Log: func(_, text string) { mu.Lock(); defer mu.Unlock(); log += text }, Report: func(company.Report) {},
		Authority: func() time.Duration { return shim.BootTime() + time.Hour }}
	for _, f := range change {
		f(&inv)
	}
	if g.mode == "hang" {
		go func() {
			for g.t.Context().Err() == nil {
				mu.Lock()
				there := strings.Contains(log, "the claw")
				mu.Unlock()
				if there {
					a.Cancel("run-1", "")
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		}()
	}
	o := a.Invoke(context.Background(), inv)
	mu.Lock()
	defer mu.Unlock()
	all, _ := json.Marshal(o)
	if strings.Contains(string(all)+log, token) {
		t.Errorf("the token shows: %s %s", all, log)
	}
	return o, a, log
}

func TestAGatewaysAgentDoesARun(t *testing.T) {
	g := newGateway(t, "")
	o, _, log := invoke(t, g, loopback, `,"payloadTemplate":{"message":"Be kind.","thinking":"low"}`)
	if o.Status != entity.RunSucceeded || !strings.HasPrefix(*o.Stdout, "Hello from the claw, ") || !strings.Contains(log,
		"[openclaw] start") || strings.Contains(log, "not ours") {
		t.Fatalf("%+v %s", o, log)
	}
	p := g.asked[0]
	if p["sessionKey"] != "agent:main:selvage:issue:task-1" || p["idempotencyKey"] != "run-1" || p["agentId"] != "main" ||
		p["thinking"] != "low" ||
		!strings.HasPrefix(fmt.Sprint(p["message"]), "Be kind.\n\nYou are agent agent-1 (Ada)") ||
		!strings.Contains(fmt.Sprint(p["message"]), "task-1") {
		t.Errorf("asked with %v", p)
	}
	invoke(t, g, loopback, `,"sessionKeyStrategy":"run"`)
	invoke(t, g, loopback, `,"sessionKeyStrategy":"fixed","sessionKey":"agent:main:mine"`)
	if g.asked[1]["sessionKey"] != "agent:main:selvage:run:run-1" || g.asked[2]["sessionKey"] != "agent:main:mine" {
		t.Errorf("sessions %v, %v", g.asked[1]["sessionKey"], g.asked[2]["sessionKey"])
	}
}

func TestHowItEnds(t *testing.T) {
	for mode, want := range map[string]struct{ code, message string }{
		"error":    {"adapter_failed", `the gateway's agent ended with "error": it broke`},
		"drop":     {"adapter_failed", "the gateway broke the connection off"},
		"newer":    {"adapter_failed", "The gateway refuses: protocol mismatch (INVALID_REQUEST)"},
		"mismatch": {"auth_required", "The gateway refuses: not this one (INVALID_REQUEST)"},
		"unpaired": {"auth_required", "The gateway refuses: pairing required (NOT_PAIRED)"},
	} {
		if o, _, _ := invoke(t, newGateway(t, mode), loopback, ""); o.Status != entity.RunFailed ||
			o.ErrorCode != want.code || o.Error != want.message {
			t.Errorf("%s: %+v", mode, o)
		}
	}
	// While a gateway is starting, the run retries.
	if o, _, log := invoke(t, newGateway(t, "starting"), loopback, ""); o.Status != entity.RunSucceeded ||
		strings.Count(log, "the gateway is starting") != 1 {
		t.Errorf("starting: %+v %s", o, log)
	}
	if o, _, _ := invoke(t, newGateway(t, ""), nil, ""); o.Status != entity.RunFailed || !strings.Contains(o.Error,
		"private or reserved") {
		t.Errorf("a private address: %+v", o)
	}
	until := shim.BootTime() + 600*time.Millisecond
	lease := func(inv *company.Invocation) { inv.Authority = func() time.Duration { return until } }
	if o, _, _ := invoke(t, newGateway(t, "stuck"), loopback, "", lease); o.Status != entity.RunInterrupted ||
		shim.BootTime() > until+time.Minute {
		t.Errorf("without its lease: %+v", o)
	}
	g := newGateway(t, "hang")
	if o, _, _ := invoke(t, g, loopback, ""); o.Status != entity.RunCancelled {
		t.Errorf("cancelled: %+v", o)
	}
	select {
	case run := <-g.aborted:
		if run != "claw-1" {
			t.Errorf("aborted %s", run)
		}
	case <-time.After(time.Minute):
		t.Error("the gateway was not told")
	}
}
