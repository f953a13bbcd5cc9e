// Package companytest is a company in memory, on which tests carry commands out as a node
// does.
package companytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/ledger"
)

// void is the state below a fresh Tx: nothing.
type void struct{}

func (void) Get([]byte) ([]byte, bool) { return nil, false }

func (void) Scan([]byte, []byte, bool) iter.Seq2[[]byte, []byte] {
	return func(func([]byte, []byte) bool) {}
}

// A desk is a company in memory on which commands are carried out as apply
// does: each on a child of the state, kept when it succeeds, and with the next
// height and a clock that goes on by a second.
type Desk struct {
	Tx      *ledger.Tx
	Mux     ledger.Mux
	Company ledger.CompanyID
	Now     time.Time
	Height  uint64
	Serial  int
	Last    []ledger.Change // of the last command that succeeded
}

func NewDesk(t testing.TB) *Desk {
	t.Helper()
	d := &Desk{Tx: ledger.NewTx(void{}), Mux: rules.Handlers(), Company: ledger.CompanyID(UID(1)),
		Now: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)}
	entity.CompanyTable.Put(d.Tx, d.Company, d.Company, entity.Company{ID: d.Company, Name: "Acme", Status: "active",
		IssuePrefix: "ACM", DefaultResponsibleUser: "local-board"})
	return d
}

// UID returns a UUID that is made of n.
func UID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }

func (d *Desk) ID() string { d.Serial++; return UID(1_000 + d.Serial) }

// Agent adds an agent; run gives it a run that is running.
func (d *Desk) Agent(name string) string {
	id := d.ID()
	entity.AgentTable.Put(d.Tx, d.Company, id, entity.Agent{ID: id, Company: d.Company, Name: name,
		Status: entity.AgentIdle})
	return id
}

func (d *Desk) Run(agent string) string {
	id := d.ID()
	d.Height++
	r := entity.Run{ID: id, Company: d.Company, Agent: agent, Status: entity.RunRunning, Source: entity.WakeOnDemand,
		Queue: d.Height, CreatedAt: core.TimeOf(d.Now), StartedAt: core.TimeOf(d.Now)}
	d.StoreRun(r)
	return id
}

// StoreRun writes a live run with the keys by which it is found.
func (d *Desk) StoreRun(r entity.Run) {
	if r.Session != 0 {
		d.Tx.Set(entity.SessionKey(r.Session, r.ID), []byte(r.Company))
	}
	entity.RunTable.Put(d.Tx, r.Company, r.ID, r)
}

func (d *Desk) EndRun(run string) {
	c := d.Context(As{}, "", nil)
	r, _ := entity.RunTable.Get(d.Tx, d.Company, run)
	company.EndRun(c, r, company.Outcome{Status: entity.RunSucceeded})
}

// As is who speaks: the board, or an agent under a run.
type As struct{ Agent, Run string }

var Board = As{}

func (d *Desk) Context(who As, kind string, payload any) *ledger.Context {
	d.Height++
	d.Now = d.Now.Add(time.Second)
	cmd := &ledger.Command{Kind: kind, Company: d.Company, Actor: ledger.Actor{Type: "user", ID: "local-board"},
		Run: who.Run}
	if who.Agent != "" {
		cmd.Actor = ledger.Actor{Type: "agent", ID: who.Agent}
	}
	if payload != nil {
		cmd.Payload = ledger.Marshal(payload)
	}
	return &ledger.Context{Tx: d.Tx, Now: d.Now, Height: d.Height, Cmd: cmd}
}

// Do carries out a command and decodes what it returns into out, if not nil.
func (d *Desk) Do(who As, kind string, payload, out any) error {
	c := d.Context(who, kind, payload)
	c.Tx = d.Tx.Child()
	v, err := d.Mux[kind](c)
	if err != nil {
		return err
	}
	c.Tx.Merge()
	d.Last = c.Changes()
	if out == nil {
		return nil
	}
	reflect.ValueOf(out).Elem().SetZero() // absent keys would keep what was there
	return ledger.Unmarshal(v, out)
}

func (d *Desk) Must(t testing.TB, who As, kind string, payload, out any) {
	t.Helper()
	if err := d.Do(who, kind, payload, out); err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
}

// Issue creates an issue by the board and returns it.
func (d *Desk) Issue(t testing.TB, p company.CreateIssue) entity.Issue {
	t.Helper()
	p.ID = d.ID()
	if p.Title == "" {
		p.Title = "Task " + p.ID
	}
	var r entity.IssueResult
	d.Must(t, Board, "issue.create", p, &r)
	return r.Issue
}

func (d *Desk) Load(id string) entity.Issue {
	i, _ := entity.IssueTable.Get(d.Tx, d.Company, id)
	return i
}

// Refused returns the refusal of err, or fails.
func Refused(t testing.TB, err error) *ledger.Refusal {
	t.Helper()
	var r *ledger.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("got %v, want a refusal", err)
	}
	return r
}

// WantRefusal fails unless err is a refusal with this code and message.
func WantRefusal(t testing.TB, err error, code ledger.Code, message string) *ledger.Refusal {
	t.Helper()
	r := Refused(t, err)
	if r.Code != code || r.Message != message {
		t.Fatalf("got %s %q, want %s %q", r.Code, r.Message, code, message)
	}
	return r
}

func Detail(t testing.TB, r *ledger.Refusal) map[string]any {
	t.Helper()
	m := map[string]any{}
	if err := json.Unmarshal(r.Detail, &m); err != nil {
		t.Fatalf("details %q: %v", r.Detail, err)
	}
	return m
}
