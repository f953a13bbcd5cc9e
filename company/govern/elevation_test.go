package govern_test

import (
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// An agent asks for a clearance, a person approves, and it counts for commands and for acts at nodes until its end: by
// time, by height, or because it is revoked. A node without a lease does not count it: revocation is in force there
// when the lease ends.
func TestElevationsEnd(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	as := companytest.As{Agent: ada, Run: d.Run(ada)}
	enact(t, d, put(rule("T-1", governance.Critical, `!("labels" in clearances)`, "label.create", "fs.read_file")))
	n := 0
	command := func() error { n++; return do(d, as, "label.create", label(d, "l"+strings.Repeat("x", n))) }
	local := func(at time.Time, adrift bool) error {
		return govern.Judge(d.Tx, govern.Local{Action: "fs.read_file", Agent: ada, Company: d.Company, At: at, Height: 1,
			Adrift: adrift}).Refusal
	}
	want := func(when string, permitted bool) {
		t.Helper()
		if err := command(); (err == nil) != permitted {
			t.Errorf("%s: the command: %v", when, err)
		}
		if err := local(d.Now, false); (err == nil) != permitted {
			t.Errorf("%s: the act at a node: %v", when, err)
		}
		if local(d.Now, true) == nil || local(time.Time{}, false) == nil {
			t.Errorf("%s: a node without a lease or a time counts it", when)
		}
	}
	up := func(p govern.Elevate) govern.Elevate {
		t.Helper()
		p.ID, p.Agent, p.Clearances = d.ID(), ada, []string{"labels"}
		_, approval := refusal(t, do(d, as, govern.KindElevate, p), "approvalId")
		if v := d.Decide(t, "approve", approval); v.Refused != nil {
			t.Fatal(v.Refused)
		}
		return p
	}
	want("before", false)
	p := up(govern.Elevate{Seconds: 600})
	want("approved", true)
	d.Must(t, companytest.Board, govern.KindElevationRevoke, govern.EndElevation{Agent: ada, ID: p.ID}, nil)
	want("revoked", false)
	up(govern.Elevate{Seconds: 600})
	d.Now = d.Now.Add(11 * time.Minute)
	want("after its time", false)
	e := govern.Elevation{Until: 1000, Last: 7}
	for at, status := range map[uint64]string{7: "in_force", 8: "ended"} {
		if got := e.Status(1, at); got != status {
			t.Errorf("at height %d it is %s, want %s", at, got, status)
		}
	}
}

// An elevation does not help to get another one, and an agent asks for nobody else.
func TestElevationsDoNotElevate(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	as := companytest.As{Agent: ada, Run: d.Run(ada)}
	d.Must(t, companytest.Board, govern.KindElevate, govern.Elevate{ID: d.ID(), Agent: ada,
		Clearances: []string{"risk-review", "security-review"}}, nil)
	err := do(d, as, govern.KindElevate, govern.Elevate{ID: d.ID(), Agent: ada, Clearances: []string{"deploy"}})
	if code, by := refusal(t, err, "rule"); code != "approval_required" || by != "GOV-001" {
		t.Errorf("with a cleared risk: %v", err)
	}
	companytest.WantRefusal(t, d.Do(as, govern.KindElevate, govern.Elevate{ID: d.ID(), Agent: bob,
		Clearances: []string{"deploy"}}, nil), ledger.Forbidden, "agentId: an agent asks for itself")
	for _, bad := range []govern.Elevate{{Agent: ada}, {Agent: ada, Clearances: []string{"A b"}},
		{Agent: ada, Clearances: []string{"a"}, Seconds: 86_401}} {
		bad.ID = d.ID()
		if err := d.Do(companytest.Board, govern.KindElevate, bad, nil); err == nil {
			t.Errorf("took %+v", bad)
		}
	}
	for n := 1; n < govern.MaxElevations; n++ {
		d.Must(t, companytest.Board, govern.KindElevate, govern.Elevate{
			ID:         d.ID(),
			Agent:      ada,
			Clearances: []string{"a"},
		}, nil)
	}
	if err := d.Do(companytest.Board, govern.KindElevate, govern.Elevate{ID: d.ID(), Agent: ada,
		Clearances: []string{"a"}}, nil); err == nil || !strings.Contains(err.Error(), "revoke one first") {
		t.Errorf("one more: %v", err)
	}
}
