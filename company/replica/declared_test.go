package replica_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/replica"
	"github.com/selvage-mesh/selvage/ledger"
)

func declared(t *testing.T, d *companytest.Desk) replica.Declared {
	t.Helper()
	all := replica.All(d.Tx)
	if len(all) != 1 {
		t.Fatalf("%d declarations, want 1", len(all))
	}
	return all[0]
}

// A replica belongs to one session of a node: only that one reports on it, and when the
// session has ended it waits for another.
func TestAReplicaFollowsItsSession(t *testing.T) {
	d := companytest.NewDesk(t)
	id := d.ID()
	spec := func(s string) json.RawMessage { return json.RawMessage(`{"command":["` + s + `"]}`) }
	d.Must(t, companytest.Board, "process.declare", replica.Declare{ID: id, Name: "web", Spec: spec("a"),
		Replicas: 2}, nil)
	one := d.Open("n")
	place := replica.Place{ID: id, Node: "n", Session: one}
	if err := d.ByLeader("process.place", place); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s was allowed", what)
		}
	}
	refused("placing it twice", d.ByLeader("process.place", place))
	report := replica.Report{ID: id, Generation: 1, Session: one, State: replica.Running, PID: 4}
	if err := d.ByLeader("process.report", report); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*replica.Report){
		"a report of another session":    func(r *replica.Report) { r.Session++ },
		"a report of another generation": func(r *replica.Report) { r.Generation++ },
		"an unknown state":               func(r *replica.Report) { r.State = "asleep" },
		"an unknown replica":             func(r *replica.Report) { r.Replica = 2 },
		"a report on another's":          func(r *replica.Report) { r.Replica = 1 },
	} {
		r := report
		change(&r)
		refused(what, d.ByLeader("process.report", r))
	}
	// A change of the specification counts as a new generation, on the same nodes.
	d.Must(t, companytest.Board, "process.declare", replica.Declare{ID: d.ID(), Name: "web", Spec: spec("b"),
		Replicas: 1}, nil)
	if got := declared(t, d); got.ID != id || got.Generation != 2 || len(got.Replicas) != 1 ||
		got.Replicas[0].State != replica.Placed || got.Replicas[0].Session != one {
		t.Errorf("changed to %+v", got)
	}
	refused("a report of the old generation", d.ByLeader("process.report", report))
	d.Shut(one)
	report.Generation = 2
	refused("a report of an ended session", d.ByLeader("process.report", report))
	refused("placing under an ended session", d.ByLeader("process.place", place))
	two := d.Open("n")
	place.Session = two
	if err := d.ByLeader("process.place", place); err != nil {
		t.Fatal(err)
	}
	report.Session, report.State, report.Error = two, replica.Failed, strings.Repeat("x", 10_000)
	if err := d.ByLeader("process.report", report); err != nil {
		t.Fatal(err)
	}
	got := declared(t, d).Replicas[0]
	if got.Moved != 1 || !got.Over() || len(got.Error) > 600 {
		t.Errorf("the replica is %+v", got)
	}
	d.Shut(two)
	place.Session = d.Open("n")
	refused("placing one that has failed", d.ByLeader("process.place", place))
	d.Must(t, companytest.Board, "process.remove", replica.Remove{ID: id}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, "process.remove", replica.Remove{ID: id}, nil), ledger.NotFound,
		"No process is declared by this name")
}

func TestDeclarationsAreBounded(t *testing.T) {
	d := companytest.NewDesk(t)
	good := replica.Declare{ID: companytest.UID(1), Name: "web", Spec: json.RawMessage(`{}`), Replicas: 1}
	for want, change := range map[string]func(*replica.Declare){
		"id":             func(p *replica.Declare) { p.ID = "x" },
		"name":           func(p *replica.Declare) { p.Name = "a b" },
		"spec":           func(p *replica.Declare) { p.Spec = json.RawMessage(`{`) },
		"replicas":       func(p *replica.Declare) { p.Replicas = replica.MaxReplicas + 1 },
		"labels":         func(p *replica.Declare) { p.Labels = []string{""} },
		"Node not found": func(p *replica.Declare) { p.Node = "nobody" },
		"blob":           func(p *replica.Declare) { p.Module = "x" },
	} {
		p := good
		change(&p)
		if err := d.Do(companytest.Board, "process.declare", p, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", p, err, want)
		}
	}
	names := []string{}
	for n := range replica.MaxDeclared {
		p := good
		p.ID, p.Name = d.ID(), strings.Repeat("a", 1+n%50)+"."+strings.Repeat("b", 1+n/50)
		d.Must(t, companytest.Board, "process.declare", p, nil)
		names = append(names, p.Name)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "process.declare", good, nil), ledger.Conflict,
		"the mesh has 256 declared processes, as many as it may have: remove one")
	all := replica.All(d.Tx)
	if !slices.IsSortedFunc(all, func(a, b replica.Declared) int { return strings.Compare(a.Name, b.Name) }) ||
		len(all) != len(names) {
		t.Error("they are not listed by name")
	}
}
