// Package openclaw runs agents of an OpenClaw gateway, over its WebSocket (the
// openclaw_gateway adapter).
//
// A run connects, and answers the gateway's challenge with the token or password and the
// signature of this node's device key. It sends the request agent, waits with agent.wait,
// and receives agent events meanwhile. Frames are JSON text:
// {"type":"req","id","method","params"}, {"type":"res","id","ok","payload"|"error"}
// and {"type":"event","event","payload"}; versions 3 and 4 of the protocol. While a gateway
// reports that it is starting, the run retries for some time.
//
// adapterConfig is {"url" (ws:// or wss://), "authToken", "password", "agentId",
// "sessionKeyStrategy" (issue, fixed or run), "sessionKey", "payloadTemplate",
// "promptTemplate", "disableDeviceAuth", "timeoutSec" (900)}. A gateway that does
// not know this node's device asks its owner to pair it, once.
//
// Addresses that are not public are refused unless the operator lists them, as
// for the http adapter.
package openclaw

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/selvage-mesh/selvage/adapter/live"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/adapter/webcall"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/secret"
)

const (
	oldest, newest = 3, 4 // versions of the protocol
	// maxFrame bounds a frame of the gateway, maxSaid the agent's text that is kept, in bytes.
	maxFrame = 4 << 20
	maxSaid  = 16 << 10
	// dialWait bounds connecting and the handshake.
	dialWait = 15 * time.Second
	// maxStarts bounds the retries while a gateway reports that it is starting, startWait is
	// the wait between two.
	maxStarts = 30
	startWait = 5 * time.Second
	// goodbye bounds the request that cancels a run at the gateway.
	goodbye = 2 * time.Second
)

// The names of this client in the gateway's protocol, for programs that are neither people
// nor devices.
const (
	clientID   = "gateway-client"
	clientMode = "backend"
	role       = "operator"
)

var scopes = []string{"operator.read", "operator.write"}

// Config is what the adapter needs.
type Config struct {
	// Dir has this node's device key: openclaw.key, the 32 bytes of an Ed25519 seed and their
	// SHA-256. A file of the older format, with the seed alone, is accepted. A damaged file is
	// renamed to openclaw.key.damaged, and a new key is drawn; gateways then ask their owners
	// to approve this device again.
	Dir string
	Log *slog.Logger // default: discards
	// Private lists networks that are not public but may be called.
	Private []netip.Prefix
	Wall    func() time.Time // this node's clock; default time.Now
}

// An Adapter runs agents of gateways. It is safe for concurrent use.
type Adapter struct {
	key       ed25519.PrivateKey
	client    *http.Client
	wall      func() time.Time
	live.Runs // cancelling a run sends chat.abort to its gateway
}

// New returns an adapter. It creates the device key if there is none.
func New(conf Config) (*Adapter, error) {
	seed, err := deviceKey(filepath.Join(conf.Dir, "openclaw.key"), conf.Log)
	if err != nil {
		return nil, fmt.Errorf("openclaw adapter: %w", err)
	}
	dialer := &net.Dialer{Timeout: dialWait, Control: webcall.Guard(conf.Private)}
	if conf.Wall == nil {
		conf.Wall = time.Now
	}
	return &Adapter{key: ed25519.NewKeyFromSeed(seed), wall: conf.Wall,
		client: &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: dialWait},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// deviceKey reads the seed of the device key, or draws one.
func deviceKey(path string, log *slog.Logger) ([]byte, error) {
	b, err := os.ReadFile(path)
	if seed := seedIn(b); err == nil && seed != nil {
		return seed, nil
	}
	if err != nil && errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		if log != nil {
			log.Warn("the device key for OpenClaw's gateways is damaged: a new one is drawn; approve this device on the "+
				"gateways again", "file", path, "kept", path+".damaged", "error", err)
		}
		if err := os.Rename(path, path+".damaged"); err != nil {
			return nil, err
		}
	}
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // never fails
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(seed)
	tmp := path + ".new"
	if err := os.WriteFile(tmp, append(bytes.Clone(seed), sum[:]...), 0o600); err != nil {
		return nil, err
	}
	return seed, os.Rename(tmp, path)
}

type config struct {
	URL      string          `json:"url"`
	Token    live.Value      `json:"authToken"`
	Other    live.Value      `json:"token"` // likewise
	Password live.Value      `json:"password"`
	Agent    string          `json:"agentId"`
	Strategy string          `json:"sessionKeyStrategy"`
	Key      string          `json:"sessionKey"`
	Template json.RawMessage `json:"payloadTemplate"`
	Prompt   string          `json:"promptTemplate"`
	NoDevice bool            `json:"disableDeviceAuth"`
	Timeout  *float64        `json:"timeoutSec"`
}

// Settings returns a zero value of what adapterConfig is decoded into.
func Settings() any { return config{} }

// Invoke sends the run to the gateway's agent and waits until it is done.
func (a *Adapter) Invoke(ctx context.Context, inv company.Invocation) company.Outcome {
	var c config
	if err := json.Unmarshal(inv.Config, &c); err != nil {
		return process.Failure("The agent's adapterConfig is malformed")
	}
	bound, ctx, over := process.Within(ctx, &a.Runs, inv, c.Timeout)
	defer over()
	hide := append([]string{string(c.Token), string(c.Other), string(c.Password)}, inv.Secrets...)
	t := &talk{a: a, inv: inv, c: c, red: secret.NewRedactor(hide)}
	err := t.run(ctx)
	return bound.Ended(company.Outcome{}, t.red.Clean(t.said.String()), err, t.red, func(out *company.Outcome) {
		if refused, ok := errors.AsType[*gatewayError](err); ok && refused.unknown() {
			out.ErrorCode = "auth_required"
		}
	}, map[string]any{"sessionKey": t.session, "gatewayRunId": t.gatewayRun})
}

// A talk is the conversation of one run, in one goroutine.
type talk struct {
	a          *Adapter
	inv        company.Invocation
	c          config
	red        *secret.Redactor
	ws         *websocket.Conn
	next       int
	session    string
	gatewayRun string
	said       strings.Builder
}

type frame struct {
	Type    string          `json:"type"`
	ID      string          `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	OK      bool            `json:"ok,omitempty"`
	Event   string          `json:"event,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Error   *gatewayError   `json:"error,omitempty"`
}

type gatewayError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	AfterMs int64  `json:"retryAfterMs"`
	Detail  struct {
		Code string `json:"code"`
	} `json:"details"`
}

// starts reports whether the gateway is starting and asks the client to retry.
func (e *gatewayError) starts() bool { return e.Code == "UNAVAILABLE" }

// unknown reports whether the gateway rejects this node's device or credentials.
func (e *gatewayError) unknown() bool {
	all := strings.ToUpper(e.Code + " " + e.Detail.Code + " " + e.Message)
	return slices.ContainsFunc([]string{"PAIR", "AUTH_", "UNAUTHORIZED"},
		func(s string) bool { return strings.Contains(all, s) })
}

func (e *gatewayError) Error() string {
	return "The gateway refuses: " + e.Message + " (" + e.Code + ")"
}

func (t *talk) run(ctx context.Context) error {
	to, err := url.Parse(t.c.URL)
	if err != nil || to.Scheme != "ws" && to.Scheme != "wss" || to.Host == "" {
		return errors.New("url is missing or not ws:// or wss://")
	}
	token := string(cmp.Or(t.c.Token, t.c.Other))
	head := http.Header{}
	if token != "" {
		head.Set("Authorization", "Bearer "+token)
	}
	t.inv.Log("system", "[selvage] "+to.Scheme+"://"+to.Host+"\n")
	for n := 1; ; n++ {
		err := t.open(ctx, to, head, token)
		if err == nil {
			break
		}
		e, ok := errors.AsType[*gatewayError](err)
		if !ok || !e.starts() || n == maxStarts {
			return err
		}
		if n == 1 {
			t.inv.Log("system", "[selvage] the gateway is starting\n")
		}
		select {
		case <-time.After(min(time.Duration(cmp.Or(max(e.AfterMs, 0), 1000))*time.Millisecond, startWait)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { t.ws.CloseNow() }()
	params, err := t.request()
	if err != nil {
		return err
	}
	var accepted struct {
		Run string `json:"runId"`
	}
	if err := t.call(ctx, "agent", params, &accepted); err != nil {
		return err
	}
	t.gatewayRun = cmp.Or(accepted.Run, t.inv.Run.ID)
	limit, _ := process.Timeout(t.c.Timeout)
	var end struct {
		Status string          `json:"status"`
		Error  json.RawMessage `json:"error"`
		Text   string          `json:"summary"`
	}
	if err := t.call(ctx, "agent.wait", map[string]any{"runId": t.gatewayRun, "timeoutMs": limit.Milliseconds()},
		&end); err != nil {
		if errors.Is(context.Cause(ctx), process.ErrCancelled) || errors.Is(context.Cause(ctx), process.ErrLate) {
			t.abort(to, head, token)
		}
		return err
	}
	switch end.Status {
	case "ok", "done", "completed":
		if t.said.Len() == 0 {
			t.said.WriteString(end.Text[:min(len(end.Text), maxSaid)])
		}
		return nil
	case "timeout":
		return errors.New("the gateway waited no longer for its agent")
	}
	return fmt.Errorf("the gateway's agent ended with %q: %s", end.Status, bytes.Trim(end.Error, `"`))
}

// open connects and authenticates.
func (t *talk) open(ctx context.Context, to *url.URL, head http.Header, token string) error {
	ctx, done := context.WithTimeout(ctx, dialWait)
	defer done()
	ws, _, err := websocket.Dial(ctx, to.String(), &websocket.DialOptions{HTTPClient: t.a.client, HTTPHeader: head})
	if err != nil {
		if errors.Is(err, webcall.ErrPrivate) {
			return webcall.ErrPrivate
		}
		return errors.New("the gateway at " + to.Host + " can not be reached")
	}
	ws.SetReadLimit(maxFrame)
	t.ws = ws
	if err = t.connect(ctx, token); err != nil {
		ws.CloseNow()
	}
	return err
}

// abort cancels the run at the gateway. It uses a new connection, because the old one ended
// with the run.
func (t *talk) abort(to *url.URL, head http.Header, token string) {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	if t.open(ctx, to, head, token) == nil {
		_ = t.call(ctx, "chat.abort", map[string]string{"sessionKey": t.session, "runId": t.gatewayRun},
			nil) // the run may be over
	}
}

// connect answers the challenge.
func (t *talk) connect(ctx context.Context, token string) error {
	var challenge struct {
		Nonce string `json:"nonce"`
		At    int64  `json:"ts"` // by the gateway's clock
	}
	for challenge.Nonce == "" {
		f, err := t.read(ctx)
		if err != nil {
			return errors.New("the gateway sends no challenge")
		}
		if f.Event == "connect.challenge" {
			if json.Unmarshal(f.Payload, &challenge) != nil || challenge.Nonce == "" || strings.ContainsAny(challenge.Nonce,
				"|\r\n\x00") {
				return errors.New("the gateway's challenge is malformed")
			}
		}
	}
	auth := map[string]string{}
	if token != "" {
		auth["token"] = token
	}
	if t.c.Password != "" {
		auth["password"] = string(t.c.Password)
	}
	params := map[string]any{"minProtocol": oldest, "maxProtocol": newest, "role": role, "scopes": scopes, "auth": auth,
		"client": map[string]string{"id": clientID, "displayName": "Selvage", "version": "1", "platform": runtime.GOOS,
			"mode": clientMode}}
	if !t.c.NoDevice {
		params["device"] = t.a.device(challenge.Nonce, token, cmp.Or(challenge.At, t.a.wall().UnixMilli()))
	}
	return t.call(ctx, "connect", params, nil)
}

// device returns the proof that this node is the paired device.
func (a *Adapter) device(nonce, token string, at int64) map[string]any {
	public := a.key.Public().(ed25519.PublicKey)
	sum := sha256.Sum256(public)
	id := hex.EncodeToString(sum[:])
	signed := strings.Join([]string{"v3", id, clientID, clientMode, role, strings.Join(scopes, ","),
		strconv.FormatInt(at, 10), token, nonce, runtime.GOOS, ""}, "|")
	b := base64.RawURLEncoding
	return map[string]any{"id": id, "publicKey": b.EncodeToString(public),
		"signature": b.EncodeToString(ed25519.Sign(a.key, []byte(signed))), "signedAt": at, "nonce": nonce}
}

// request returns the parameters of the method agent.
func (t *talk) request() (map[string]any, error) {
	params := map[string]any{}
	if len(t.c.Template) > 0 && string(t.c.Template) != "null" {
		if err := json.Unmarshal(t.c.Template, &params); err != nil || params == nil {
			return nil, errors.New("payloadTemplate is not an object")
		}
	}
	r := t.inv.Run
	task := cmp.Or(r.Context.TaskID, r.Context.IssueID)
	switch strategy := cmp.Or(t.c.Strategy, "issue"); {
	case strategy == "fixed":
		t.session = cmp.Or(t.c.Key, "selvage")
	case strategy == "issue" && task != "":
		t.session = "selvage:issue:" + task
	default:
		t.session = "selvage:run:" + r.ID
	}
	if t.c.Agent != "" {
		if !strings.HasPrefix(t.session, "agent:") {
			t.session = "agent:" + t.c.Agent + ":" + t.session
		}
		params["agentId"] = t.c.Agent
	}
	before, _ := params["message"].(string)
	message := cmp.Or(t.c.Prompt, "You are agent {{agent.id}} ({{agent.name}}) of company {{company.id}}, and this is "+
		"your run {{run.id}}.\nReason: {{context.wakeReason}}. Issue: {{context.taskId}}.")
	message = t.inv.Fill().Replace(message) + "\n\nContext: " + string(t.inv.Wake)
	if before != "" {
		message = before + "\n\n" + message
	}
	params["message"], params["sessionKey"], params["idempotencyKey"] = message, t.session, r.ID
	return params, nil
}

// call sends a request, and handles events until its answer comes.
func (t *talk) call(ctx context.Context, method string, params, result any) error {
	t.next++
	id := strconv.Itoa(t.next)
	b, err := json.Marshal(frame{Type: "req", ID: id, Method: method, Params: params})
	if err != nil {
		return err
	}
	if err := t.ws.Write(ctx, websocket.MessageText, b); err != nil {
		return errors.New("the gateway broke the connection off")
	}
	for {
		f, err := t.read(ctx)
		switch {
		case err != nil:
			return errors.New("the gateway broke the connection off")
		case f.Type == "event":
			t.hear(f)
		case f.Type == "res" && f.ID == id && !f.OK:
			if f.Error == nil {
				f.Error = &gatewayError{Code: "unknown", Message: method}
			}
			return f.Error
		case f.Type == "res" && f.ID == id:
			if result != nil && json.Unmarshal(f.Payload, result) != nil {
				return errors.New("the gateway's answer to " + method + " is malformed")
			}
			return nil
		}
	}
}

func (t *talk) read(ctx context.Context) (f frame, err error) {
	_, b, err := t.ws.Read(ctx)
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	return f, err
}

// hear handles an event of the agent.
func (t *talk) hear(f frame) {
	if f.Event != "agent" {
		return
	}
	var e struct {
		Run    string `json:"runId"`
		Stream string `json:"stream"`
		Data   struct {
			Delta string `json:"delta"`
			Text  string `json:"text"`
			Phase string `json:"phase"`
			Error string `json:"error"`
		} `json:"data"`
	}
	if json.Unmarshal(f.Payload, &e) != nil || t.gatewayRun != "" && e.Run != t.gatewayRun {
		return
	}
	switch e.Stream {
	case "assistant":
		if e.Data.Delta != "" && t.said.Len()+len(e.Data.Delta) <= maxSaid {
			t.said.WriteString(e.Data.Delta)
			t.inv.Log("stdout", t.red.Clean(e.Data.Delta))
		} else if e.Data.Delta == "" && e.Data.Text != "" {
			t.said.Reset()
			t.said.WriteString(e.Data.Text[:min(len(e.Data.Text), maxSaid)])
			t.inv.Log("stdout", t.red.Clean(e.Data.Text)+"\n")
		}
	case "lifecycle", "error":
		t.inv.Log("system", "[openclaw] "+t.red.Clean(cmp.Or(e.Data.Phase, e.Stream)+" "+e.Data.Error)+"\n")
	}
}

// CheckKey returns an error if the device key in dir is damaged; a node that starts renames it
// and draws another. A missing key is no error.
func CheckKey(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "openclaw.key"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && seedIn(b) == nil {
		err = errors.New("openclaw.key does not have its sum")
	}
	return err
}

// seedIn returns the seed in the bytes of a key file, nil if they are damaged.
func seedIn(b []byte) []byte {
	switch len(b) {
	case ed25519.SeedSize:
		return b
	case ed25519.SeedSize + sha256.Size:
		if seed := b[:ed25519.SeedSize]; sha256.Sum256(seed) == [sha256.Size]byte(b[ed25519.SeedSize:]) {
			return seed
		}
	}
	return nil
}
