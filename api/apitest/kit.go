// Package apitest is a server with one node behind it, which tests ask as a client does.
package apitest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/described"
	"github.com/selvage-mesh/selvage/api/routes"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kit"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
	"github.com/selvage-mesh/selvage/ledger/ledgertest"
	"github.com/selvage-mesh/selvage/recall"
)

// Solo is a node without peers: each command is a batch of its own, applied at
// once to a real ledger in memory.
type Solo struct {
	*ledgertest.World
	Wall func() time.Time // its clock
	t    testing.TB

	mu   sync.Mutex // guards all below
	Seq  uint64
	Sess uint64
	now  time.Time
	sent [][]byte // all batches but the founding
	fail error    // what Submit and strong reads return, when set
	Late func()   // what others have done meanwhile: happens once, before the next strong read
}

func NewSolo(t testing.TB) *Solo {
	t.Helper()
	return NewSoloOf(t, "")
}

// NewSoloOf founds a mesh of a mode of authentication.
func NewSoloOf(t testing.TB, mode string) *Solo {
	t.Helper()
	return NewSoloAt(t, mode, kit.Clock(t))
}

// NewSoloAt founds a mesh of a mode of authentication, of a node with a clock.
func NewSoloAt(t testing.TB, mode string, wall func() time.Time) *Solo {
	t.Helper()
	n := &Solo{t: t, Wall: wall, now: wall().UTC().Truncate(time.Millisecond)}
	keys := identity.Derive(sha256.Sum256([]byte("solo")))
	g := ledgertest.Genesis(keys, "solo", n.now)
	g.Auth = mode
	n.World = ledgertest.Found(t, ledger.Config{Mux: rules.Handlers(), Authorize: people.Authorize,
		Gate: govern.Weigh}, keys, g, n.stamp)
	n.Sess = n.OpenSession()
	return n
}

// stamp is the time of the next batch: the clock's, but after what Pass let pass.
func (n *Solo) stamp() time.Time {
	if now := n.Wall().UTC().Truncate(time.Millisecond); now.After(n.now) {
		n.now = now
	}
	return n.now
}

func (n *Solo) Apply(session, seq uint64, c ledger.Command) ledger.Receipt {
	n.t.Helper()
	e := n.Entry(n.Keys, session, seq, c)
	n.sent = append(n.sent, e.Data)
	return n.World.Apply(e)[0]
}

// Batches returns what was handed to the ledger, as it goes over the wire.
func (n *Solo) Batches() [][]byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.sent)
}

func (n *Solo) Submit(_ context.Context, c ledger.Command) (ledger.Receipt, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fail != nil {
		return ledger.Receipt{}, n.fail
	}
	n.Seq++
	return n.Apply(n.Sess, n.Seq, c), nil
}

// SubmitMany submits commands as one batch, which Batches does not have.
func (n *Solo) SubmitMany(cmds []ledger.Command) {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	first := n.Seq + 1
	n.Seq += uint64(len(cmds))
	n.Must(n.Sess, first, cmds...)
}

func (n *Solo) View(ctx context.Context, at ledger.Read, f func(*ledger.Tx) error) (uint64, error) {
	n.mu.Lock()
	fail := n.fail
	n.mu.Unlock()
	if at.Mode == ledger.ReadStrong && fail != nil {
		return 0, fail
	}
	if at.Mode == ledger.ReadStrong && n.Late != nil {
		late := n.Late
		n.Late = nil
		late()
	}
	if at.Mode != ledger.ReadStale && at.AtLeast > 0 {
		if err := n.Ledger.WaitApplied(ctx, at.AtLeast); err != nil {
			return 0, err
		}
	}
	return n.Ledger.Applied(), n.Ledger.View(f)
}

func (n *Solo) Entries(ctx context.Context, after uint64) iter.Seq2[ledger.Entry, error] {
	return n.Ledger.Entries(ctx, after)
}

// Pass lets time pass.
func (n *Solo) Pass(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.now = n.now.Add(d)
}

func (n *Solo) SetFail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail = err
}

// Harness is a server on a solo node, with what it logs.
type Harness struct {
	*api.Server
	T    testing.TB
	Node *Solo
	Log  *safeBuffer
	As   []string // what call shows that is given no headers, or none but Content-Type
	Gate *gate    // of a working harness
	Web  string   // likewise: where it listens
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// Reset forgets what was logged, and gives its memory back.
func (b *safeBuffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b = bytes.Buffer{}
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var TestDataKey = identity.DataKey{7, 7, 7}

func NewHarness(t testing.TB, change ...func(*api.Config)) *Harness {
	t.Helper()
	return NewHarnessOn(t, NewSolo(t), change...)
}

func NewHarnessOn(t testing.TB, n *Solo, change ...func(*api.Config)) *Harness {
	t.Helper()
	log := &safeBuffer{}
	cfg := api.Config{Node: n, Version: version, NodeID: n.Keys.ID(), Mesh: n.Mesh, Sign: n.Keys.Sign,
		DataKeys: func() []identity.DataKey { return []identity.DataKey{TestDataKey} },
		Head:     func() (uint64, uint64) { h, _ := n.Ledger.Head(); return h, n.Ledger.Applied() },
		Verify:   func(ctx context.Context) (ledger.Verified, error) { return n.Ledger.Verify(ctx, nil) },
		Blobs:    newKeeper(t, n.Keys.ID()),
		Recall:   recall.New(recall.Config{View: n.Ledger.View}),
		Wall:     n.Wall,
		Logger:   slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, f := range change {
		f(&cfg)
	}
	cfg.Serves = routes.Serves()
	s, err := api.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	// What a handler looks for its route must name, or neither the description nor a
	// tool has it.
	var told sync.Map
	s.Asked = func(r *api.Route, name string) {
		if !slices.ContainsFunc(r.Query, func(p api.Param) bool { return p.Name == name }) {
			if _, twice := told.LoadOrStore(r.Path+name, true); !twice {
				t.Errorf("%s %s takes ?%s= and does not name it", r.Method, r.Path, name)
			}
		}
	}
	return &Harness{Server: s, T: t, Node: n, Log: log}
}

// newKeeper keeps blobs on this test's disk.
func newKeeper(t testing.TB, self identity.NodeID) *blob.Keeper {
	t.Helper()
	k, err := blob.Open(t.TempDir(), blob.Config{Self: self, Store: blob.StoreConfig{Reserve: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// Dot is a picture of one pixel.
func Dot() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// Answer is what came back.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

func (a Answer) Decode(t testing.TB) (v any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, &v); err != nil {
		t.Fatalf("answer %q: %v", a.Body, err)
	}
	return v
}

// Field returns a member of the answer's object, as text.
func (a Answer) Field(t testing.TB, name string) string {
	t.Helper()
	o, _ := a.Decode(t).(map[string]any)
	if s, ok := o[name].(string); ok {
		return s
	}
	return fmt.Sprint(o[name])
}

// Call sends one request; body is JSON text, headers are "Name: value".
func (h *Harness) Call(method, path, body string, headers ...string) Answer {
	h.T.Helper()
	if len(headers) == 0 || len(headers) == 1 && strings.HasPrefix(headers[0], "Content-Type:") {
		headers = slices.Concat(headers, h.As)
	}
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req := httptest.NewRequest(method, path, r)
	req.Host = "127.0.0.1:3100"
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if err := described.Differs(req, []byte(body), w.Code, w.Header(), w.Body.Bytes()); err != nil {
		h.T.Error(err)
	}
	return Answer{w.Code, w.Header(), w.Body.Bytes()}
}

// Want fails unless the answer has a status and holds a text: of a refusal its code, the path
// of the field, or its message; of others "" is enough.
func (a Answer) Want(t testing.TB, status int, text string) Answer {
	t.Helper()
	if text == "" && status >= http.StatusBadRequest {
		t.Fatalf("a refusal is checked by its status alone: name its code, field or message; it answered %s", a.Body)
	}
	if a.Status != status || !strings.Contains(string(a.Body), text) {
		t.Fatalf("answered %d %s, want %d with %s", a.Status, a.Body, status, text)
	}
	return a
}

// submit carries out a command as the board.
func (h *Harness) SubmitAs(actor ledger.Actor, cred ledger.Credential, kind string, of ledger.CompanyID,
	payload any) ledger.Receipt {
	h.T.Helper()
	r, err := h.Node.Submit(h.T.Context(), ledger.Command{Kind: kind, Company: of, Actor: actor, Credential: cred,
		Payload: ledger.Marshal(payload)})
	if err != nil || r.Refusal != nil {
		h.T.Fatalf("%s: %v %v", kind, err, r.Refusal)
	}
	return r
}

// Company makes a company and returns its ID.
func (h *Harness) Company(name string) string {
	h.T.Helper()
	if h.As != nil {
		return h.Call("POST", "/api/companies", fmt.Sprintf(`{"name":%q}`, name)).Want(h.T, 201, "").Field(h.T, "id")
	}
	id := ledger.CompanyID(api.NewID())
	h.SubmitAs(ledger.Actor{Type: "user", ID: api.LocalBoard}, ledger.Credential{Kind: "local"}, "company.create", id,
		entity.SaveCompany{ID: id, Name: &name})
	return string(id)
}
