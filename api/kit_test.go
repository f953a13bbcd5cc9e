package api

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

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// solo is a node without peers: each command is a batch of its own, applied at
// once to a real ledger in memory.
type solo struct {
	t      testing.TB
	keys   *identity.Keys
	ledger *ledger.Ledger
	mesh   identity.MeshID

	mu    sync.Mutex // guards all below
	index uint64
	seq   uint64
	sess  uint64
	now   time.Time
	sent  [][]byte // all batches
	fail  error    // what Submit and strong reads return, when set
	late  func()   // what others have done meanwhile: happens once, before the next strong read
}

func newSolo(t testing.TB) *solo {
	t.Helper()
	return newSoloOf(t, "")
}

// newSoloOf founds a mesh of a mode of authentication.
func newSoloOf(t testing.TB, mode string) *solo {
	t.Helper()
	db, err := store.Open("db", store.Options{FS: vfs.NewMem(), Small: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(ledger.Config{Span: db.Span('s'), Mux: rules.Handlers(), Authorize: people.Authorize})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	n := &solo{t: t, keys: identity.Derive(sha256.Sum256([]byte("solo"))), ledger: l, now: time.Now().UTC().Truncate(time.Millisecond)}
	g := ledger.Genesis{Name: "solo", Level: ledger.FeatureLevel, CreatedAt: n.now.UnixMilli(),
		Founder: ledger.NewNode{Key: n.keys.Public(), SealCert: n.keys.Certificate(identity.ForSeal).Encode(), Name: "solo"},
		Wrapped: ledger.NodeKeys{Node: n.keys.ID(), Epoch: 1, Data: []byte("data"), Gossip: []byte("gossip")}, Auth: mode}
	n.mesh = identity.MeshIDOf(ledger.Marshal(g))
	self := ledger.Actor{Type: "node", ID: string(n.keys.ID())}
	mine := ledger.Credential{Kind: "node", ID: string(n.keys.ID())}
	for _, c := range []ledger.Command{
		{Kind: ledger.KindGenesis, Actor: self, Credential: mine, Payload: ledger.Marshal(g)},
		{Kind: ledger.KindSessionOpen, Actor: self, Credential: mine, Payload: ledger.Marshal(ledger.SessionOpen{Incarnation: "life-1", Nonce: "first"})},
	} {
		r := n.apply(0, 0, c)
		if r.Refusal != nil {
			t.Fatal(r.Refusal)
		}
		n.sess = r.Height
	}
	return n
}

func (n *solo) apply(session, seq uint64, c ledger.Command) ledger.Receipt {
	n.t.Helper()
	b := ledger.EncodeBatch(n.mesh, n.keys.ID(), session, seq, seq, []ledger.Command{c}, n.keys.Sign)
	if now := time.Now().UTC().Truncate(time.Millisecond); now.After(n.now) {
		n.now = now
	}
	ledger.StampBatch(b, n.now)
	n.sent = append(n.sent, b)
	n.index++
	rs, err := ledger.DecodeReceipts(n.ledger.ApplyBatch([]ledger.LogEntry{{Index: n.index, Term: 1, Data: b}})[0])
	if err != nil {
		n.t.Fatal(err)
	}
	return rs[0]
}

// batches returns what was handed to the ledger, as it goes over the wire.
func (n *solo) batches() [][]byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.sent)
}

func (n *solo) Submit(_ context.Context, c ledger.Command) (ledger.Receipt, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fail != nil {
		return ledger.Receipt{}, n.fail
	}
	n.seq++
	return n.apply(n.sess, n.seq, c), nil
}

func (n *solo) View(ctx context.Context, at ledger.Read, f func(*ledger.Tx) error) (uint64, error) {
	n.mu.Lock()
	fail := n.fail
	n.mu.Unlock()
	if at.Mode == ledger.ReadStrong && fail != nil {
		return 0, fail
	}
	if at.Mode == ledger.ReadStrong && n.late != nil {
		late := n.late
		n.late = nil
		late()
	}
	if at.Mode != ledger.ReadStale && at.AtLeast > 0 {
		if err := n.ledger.WaitApplied(ctx, at.AtLeast); err != nil {
			return 0, err
		}
	}
	return n.ledger.Applied(), n.ledger.View(f)
}

func (n *solo) Entries(ctx context.Context, after uint64) iter.Seq2[ledger.Entry, error] {
	return n.ledger.Entries(ctx, after)
}

// pass lets time pass.
func (n *solo) pass(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.now = n.now.Add(d)
}

func (n *solo) setFail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail = err
}

// harness is a server on a solo node, with what it logs.
type harness struct {
	*Server
	t    testing.TB
	node *solo
	log  *safeBuffer
	as   []string // what call shows that is given no headers, or none but Content-Type
	gate *gate    // of a working harness
	web  string   // likewise: where it listens
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

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var testDataKey = identity.DataKey{7, 7, 7}

func newHarness(t testing.TB, change ...func(*Config)) *harness {
	t.Helper()
	return newHarnessOn(t, newSolo(t), change...)
}

func newHarnessOn(t testing.TB, n *solo, change ...func(*Config)) *harness {
	t.Helper()
	log := &safeBuffer{}
	cfg := Config{Node: n, Version: "test", NodeID: n.keys.ID(), Mesh: n.mesh,
		DataKeys: func() []identity.DataKey { return []identity.DataKey{testDataKey} },
		Head:     func() (uint64, uint64) { h, _ := n.ledger.Head(); return h, n.ledger.Applied() },
		Verify:   func(ctx context.Context) (ledger.Verified, error) { return n.ledger.Verify(ctx, nil) },
		Blobs:    newKeeper(t, n.keys.ID()),
		Logger:   slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, f := range change {
		f(&cfg)
	}
	cfg.Serves = Serves()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	// What a handler looks for its route must name, or neither the description nor a
	// tool has it.
	var told sync.Map
	s.asked = func(r *Route, name string) {
		if !slices.ContainsFunc(r.Query, func(p Param) bool { return p.Name == name }) {
			if _, twice := told.LoadOrStore(r.Path+name, true); !twice {
				t.Errorf("%s %s takes ?%s= and does not name it", r.Method, r.Path, name)
			}
		}
	}
	return &harness{Server: s, t: t, node: n, log: log}
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

// dot is a picture of one pixel.
func dot() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) decode(t testing.TB) (v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("answer %q: %v", a.body, err)
	}
	return v
}

// field returns a member of the answer's object, as text.
func (a answer) field(t testing.TB, name string) string {
	t.Helper()
	o, _ := a.decode(t).(map[string]any)
	if s, ok := o[name].(string); ok {
		return s
	}
	return fmt.Sprint(o[name])
}

// call sends one request; body is JSON text, headers are "Name: value".
func (h *harness) call(method, path, body string, headers ...string) answer {
	h.t.Helper()
	if len(headers) == 0 || len(headers) == 1 && strings.HasPrefix(headers[0], "Content-Type:") {
		headers = slices.Concat(headers, h.as)
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
	return answer{w.Code, w.Header(), w.Body.Bytes()}
}

// want fails unless the answer has a status and, unless it is "", holds a text.
func (a answer) want(t testing.TB, status int, text string) answer {
	t.Helper()
	if a.status != status || !strings.Contains(string(a.body), text) {
		t.Fatalf("answered %d %s, want %d with %s", a.status, a.body, status, text)
	}
	return a
}

// submit carries out a command as the board.
func (h *harness) submitAs(actor ledger.Actor, cred ledger.Credential, kind, of string, payload any) ledger.Receipt {
	h.t.Helper()
	r, err := h.node.Submit(h.t.Context(), ledger.Command{Kind: kind, Company: of, Actor: actor, Credential: cred, Payload: ledger.Marshal(payload)})
	if err != nil || r.Refusal != nil {
		h.t.Fatalf("%s: %v %v", kind, err, r.Refusal)
	}
	return r
}

// company makes a company and returns its ID.
func (h *harness) company(name string) string {
	h.t.Helper()
	if h.as != nil {
		return h.call("POST", "/api/companies", fmt.Sprintf(`{"name":%q}`, name)).want(h.t, 201, "").field(h.t, "id")
	}
	id := NewID()
	h.submitAs(ledger.Actor{Type: "user", ID: LocalBoard}, ledger.Credential{Kind: "local"}, "company.create", id, company.SaveCompany{ID: id, Name: &name})
	return id
}
