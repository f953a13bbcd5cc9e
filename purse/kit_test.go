package purse

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A bank is the mesh as its purses see it: the rules on one state.
type bank struct {
	mu       sync.Mutex // guards all below
	tx       *ledger.Tx
	mux      ledger.Mux
	now      time.Time
	height   uint64
	ids      int
	company  ledger.CompanyID
	commands map[string]int
}

type void struct{}

func (void) Get([]byte) ([]byte, bool) { return nil, false }
func (void) Scan([]byte, []byte, bool) iter.Seq2[[]byte, []byte] {
	return func(func(k, v []byte) bool) {}
}

var sessionRows = ledger.NewMeshTable[string, ledger.Session]("session")

func newBank(t testing.TB) *bank {
	b := &bank{tx: ledger.NewTx(void{}), mux: rules.Handlers(), now: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC),
		commands: map[string]int{}}
	b.company = ledger.CompanyID(b.id())
	b.must(t, "company.create", entity.SaveCompany{ID: b.company, Name: new("Acme")}, nil)
	return b
}

func (b *bank) id() string {
	b.ids++
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", b.ids)
}

func (b *bank) agent(t testing.TB, name string) string {
	id := b.id()
	b.must(t, "agent.create", entity.SaveAgent{ID: id, Name: &name, AdapterType: new("process"),
		AdapterConfig: []byte(`{"command":"true"}`)}, nil)
	return id
}

var operator = ledger.Actor{Type: "user", ID: "local-board"}

func (b *bank) apply(by ledger.Actor, session uint64, kind string, payload []byte) ledger.Receipt {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.height++
	b.now = b.now.Add(time.Millisecond)
	if s, ok := ledger.FindSession(b.tx, session); session != 0 && (!ok || s.EndedAt != 0) {
		return ledger.Receipt{Refusal: &ledger.Refusal{Code: ledger.Unavailable, Message: "session is over"}}
	}
	c := &ledger.Context{Tx: b.tx.Child(), Now: b.now, Height: b.height, Session: session,
		Cmd: &ledger.Command{Kind: kind, Company: b.company, Actor: by, Payload: payload}}
	v, err := b.mux[kind](c)
	var no *ledger.Refusal
	if errors.As(err, &no) {
		return ledger.Receipt{Refusal: no}
	} else if err != nil {
		panic(err)
	}
	b.commands[kind]++
	c.Tx.Merge()
	return ledger.Receipt{Value: v, Height: b.height}
}

func (b *bank) must(t testing.TB, kind string, payload, out any) {
	t.Helper()
	r := b.apply(operator, 0, kind, ledger.Marshal(payload))
	if r.Refusal != nil {
		t.Fatalf("%s: %v", kind, r.Refusal)
	}
	if out != nil {
		if err := ledger.Unmarshal(r.Value, out); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bank) limit(t testing.TB, scope entity.ScopeType, id string, w money.WindowKind, amount core.Money) {
	t.Helper()
	b.must(t, "budget.set", money.SetBudget{Type: scope, Scope: id, Window: w, Amount: amount}, nil)
}

func (b *bank) budget(scope entity.ScopeType, id string) money.ScopeBudget {
	b.mu.Lock()
	defer b.mu.Unlock()
	return money.BudgetOf(b.tx, b.company, scope, id, core.TimeOf(b.now))
}

func (b *bank) clock() time.Time { b.mu.Lock(); defer b.mu.Unlock(); return b.now }

func (b *bank) pass(d time.Duration) { b.mu.Lock(); b.now = b.now.Add(d); b.mu.Unlock() }

// A post is a node of the bank: the connection between its purse and the mesh.
type post struct {
	*bank
	t       testing.TB
	id      identity.NodeID
	path    string
	boot    int
	session uint64
	cut     bool // nothing comes through
	deaf    bool // commands come through, answers do not
	holds   bool
	purse   *Purse
	cfg     Config
}

func (b *bank) post(t testing.TB, name string) *post {
	p := &post{bank: b, t: t, id: identity.NodeID(name), path: filepath.Join(t.TempDir(), "purse.log")}
	p.start()
	return p
}

// start opens the purse in a new session.
func (p *post) start() {
	p.t.Helper()
	p.end()
	p.mu.Lock()
	p.height++
	p.session = p.height
	sessionRows.Put(p.tx, ledger.Order(p.session), ledger.Session{ID: p.session, Node: p.id})
	p.mu.Unlock()
	p.holds, p.cut, p.deaf = true, false, false
	cfg := p.cfg
	cfg.Node, cfg.Self, cfg.Path, cfg.Boot, cfg.Now = p, p.id, p.path, fmt.Sprint("boot-", p.boot), p.clock
	cfg.Session = func() uint64 { p.mu.Lock(); defer p.mu.Unlock(); return p.session }
	cfg.Holds = func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.holds }
	var err error
	if p.purse, err = Open(cfg); err != nil {
		p.t.Fatal(err)
	}
}

// end ends the node's session in the mesh, as if the node were lost.
func (p *post) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = false
	if s, ok := ledger.FindSession(p.tx, p.session); ok && s.EndedAt == 0 {
		p.height++
		s.EndedAt = p.height
		sessionRows.Put(p.tx, ledger.Order(p.session), s)
	}
}

// kill drops the purse without closing it. With reboot the machine stops too, and notes of the
// journal that were not synced may be lost.
func (p *post) kill(rng *rand.Rand, reboot bool) {
	j := p.purse.journal
	if reboot {
		p.boot++
		if keep := j.synced + rng.Int64N(j.size-j.synced+1); keep < j.size {
			if err := os.Truncate(p.path, keep); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	_ = j.close()
	p.purse = nil
}

var errCut = errors.New("cut off")

func (p *post) Submit(_ context.Context, c ledger.Command) (ledger.Receipt, error) {
	if p.cut {
		return ledger.Receipt{}, errCut
	}
	r := p.apply(c.Actor, p.session, c.Kind, c.Payload)
	if p.deaf {
		return ledger.Receipt{}, errCut
	}
	return r, nil
}

func (p *post) View(_ context.Context, _ ledger.Read, f func(*ledger.Tx) error) (uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.height, f(p.tx)
}

// look does once what Run does repeatedly.
func (p *post) look() {
	p.purse.retire()
	p.purse.tell(p.t.Context(), func(*stock) bool { return true })
}
