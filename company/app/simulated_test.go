package app_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/app"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/replica"
	"github.com/selvage-mesh/selvage/company/service"
	"github.com/selvage-mesh/selvage/ledger"
)

// A world is one app on three nodes, whose sessions begin and end.
type world struct {
	*companytest.Desk
	t     *testing.T
	rnd   *rand.Rand
	bug   string
	id    string
	nodes map[string]uint64 // session by node; 0: the node is dead
	// All nodes have one name here, and are known by their sessions.
	// started counts the starts of programs by the ID of their hook, ended the records of their ends by command.
	started map[string]int
	asked   map[string]app.Hook
	ended   map[string]int
	story   []string
}

func release(version string, programs ...app.Event) app.Release {
	process := func(word string) company.NewProcess {
		return company.NewProcess{Spec: json.RawMessage(`{"command":["` + word + version + `"]}`), Replicas: 1}
	}
	r := app.Release{Version: version, Digest: strings.Repeat(version[:1], 64), Signer: strings.Repeat("a", 64),
		Manifest: json.RawMessage("{}"), Within: 600_000,
		Services: []app.Service{{Name: "web", Process: process("web"), Contract: company.NewService{Version: version,
			Methods: []company.NewMethod{{Name: "m" + version[:1]}}}}},
		Tools: []company.NewTool{{Name: "sim/look", Version: uint32(version[0] - '0'), Hash: strings.Repeat(version[:1], 64),
			Service: "sim/web", Method: "m" + version[:1]}}}
	if version[0]%2 == 0 { // every other version has a service more
		r.Services = append(r.Services, app.Service{Name: "extra", Process: process("extra"),
			Contract: company.NewService{Version: version, Methods: []company.NewMethod{{Name: "m"}}}})
	}
	for _, e := range programs {
		r.Programs = append(r.Programs, app.Program{Event: e, Process: process(string(e)), Time: 30_000})
	}
	return r
}

func newWorld(t *testing.T, seed uint64, bug string) *world {
	w := &world{Desk: companytest.NewDesk(t), t: t, rnd: rand.New(rand.NewPCG(seed, 21)), bug: bug,
		nodes: map[string]uint64{"a": 0, "b": 0, "c": 0}, started: map[string]int{}, asked: map[string]app.Hook{},
		ended: map[string]int{}}
	for _, n := range []string{"a", "b", "c"} {
		w.nodes[n] = w.Open(n)
	}
	w.id = w.ID()
	return w
}

func (w *world) do(kind string, payload any) error {
	err := w.Do(companytest.Board, kind, payload, nil)
	w.noted(kind, err)
	return err
}

func (w *world) noted(kind string, err error) {
	said := "done"
	if err != nil {
		said = err.Error()
	}
	w.story = append(w.story, kind+": "+said)
	for _, h := range app.Hooks(w.Tx, w.Company, w.id) {
		w.asked[h.ID] = h
	}
	for _, c := range w.Last {
		if err == nil && strings.HasPrefix(c.Action, "app.hook_") {
			w.ended[c.EntityID]++
		}
	}
}

// step does something that may happen.
func (w *world) step() {
	a, there := app.Named(w.Tx, w.Company, "sim")
	all := app.Events
	switch n := w.rnd.IntN(14); {
	case !there:
		w.id = w.ID()
		_ = w.do(app.KindInstall, app.Install{ID: w.id, Name: "sim", Release: release("1.0.0", all...),
			Start: w.rnd.IntN(4) > 0})
	case n == 0:
		_ = w.do(app.KindRemove, app.Change{ID: w.id, From: a.Now.Digest})
	case n == 1:
		_ = w.do(app.KindStop, app.Change{ID: w.id, From: a.Now.Digest})
	case n == 2:
		_ = w.do(app.KindStart, app.Change{ID: w.id, From: a.Now.Digest})
	case n == 3:
		_ = w.do(app.KindRollback, app.Change{ID: w.id})
	case n < 7:
		next := fmt.Sprintf("%d.0.0", a.Now.Version[0]-'0'+1)
		if a.Now.Version[0] < '9' {
			_ = w.do(app.KindUpgrade, app.Upgrade{ID: w.id, From: a.Now.Digest, Release: release(next, all...)})
		}
	case n == 7:
		w.kill()
	default:
		w.serve(false)
	}
}

// kill ends a node, in the middle of whatever it does. Another comes up, or it does again.
func (w *world) kill() {
	node := []string{"a", "b", "c"}[w.rnd.IntN(3)]
	if w.nodes[node] == 0 {
		w.nodes[node] = w.Open(node)
		return
	}
	w.Shut(w.nodes[node])
	w.nodes[node] = 0
	w.noted("node "+node+" dies", nil)
}

// serve is one look of the leader, and of the nodes. calm nodes make all programs end well.
func (w *world) serve(calm bool) {
	w.Now = w.Now.Add(time.Duration(1+w.rnd.IntN(20)) * time.Second)
	for _, d := range replica.All(w.Tx) {
		for i, r := range d.Replicas {
			if r.Over() {
				continue
			}
			if r.Session == 0 || !replica.SessionOpen(w.Tx, r) {
				if w.bug == "the loss is not noticed" && r.Session != 0 {
					continue
				}
				for _, node := range []string{"a", "b", "c"} {
					if s := w.nodes[node]; s != 0 {
						w.noted("place "+d.Name, w.ByLeader(replica.KindPlace, replica.Place{ID: d.ID, Replica: int64(i), Node: "n",
							Session: s}))
						break
					}
				}
				continue
			}
			if !calm && w.rnd.IntN(3) == 0 {
				continue // it takes longer
			}
			report := replica.Report{ID: d.ID, Replica: int64(i), Generation: d.Generation, Session: r.Session,
				State: replica.Running, PID: 7}
			if hook, ok := strings.CutPrefix(d.Name, "app.hook."); ok {
				w.started[hook]++
				report.State = replica.Ended
				if !calm && w.rnd.IntN(4) == 0 {
					report.Exit, report.Error = 1, "it went wrong"
				}
				if !calm && w.rnd.IntN(5) == 0 {
					w.kill() // it ran, and its node dies before it says so
				}
			}
			w.noted("report "+d.Name, w.OfNode("n", r.Session, replica.KindReport, report, nil))
		}
	}
	if w.bug == "nobody looks at hooks" {
		return
	}
	for _, id := range app.Due(w.Tx, w.Company, core.TimeOf(w.Now)) {
		w.noted(app.KindSettle, w.ByLeader(app.KindSettle, app.Change{ID: id}))
	}
}

// check says what is wrong now.
func (w *world) check(atRest bool) string {
	want := map[string]bool{}
	a, there := app.Named(w.Tx, w.Company, "sim")
	services := map[string]string{}
	for _, s := range service.All(w.Tx) {
		services[s.Name] = s.Version
	}
	if there {
		if len(services) != len(a.Now.Services) {
			return fmt.Sprintf("version %s offers the services %v", a.Now.Version, services)
		}
		for _, s := range a.Now.Services {
			if services["sim/"+s.Name] != s.Contract.Version {
				return fmt.Sprintf("version %s offers the services %v", a.Now.Version, services)
			}
			if a.State == app.Running {
				want[a.ServiceProcess(s)] = true
			}
		}
	} else if len(services) > 0 {
		return fmt.Sprintf("a removed app offers %v", services)
	}
	hooks := 0
	for _, h := range w.asked {
		for _, p := range app.Hooks(w.Tx, w.Company, h.App) {
			if p.ID == h.ID && p.Until != 0 {
				want["app.hook."+h.ID] = true
			}
			if p.ID == h.ID {
				hooks++
			}
		}
	}
	for _, d := range replica.All(w.Tx) {
		if !want[d.Name] {
			return fmt.Sprintf("the process %s belongs to nothing", d.Name)
		}
		// Its specification does not name the app, like those of older versions.
		if of := app.OfProcess(w.Tx, w.Company, d.Name); of != "sim" {
			return fmt.Sprintf("the process %s is of the app %q", d.Name, of)
		}
		delete(want, d.Name)
	}
	if len(want) > 0 {
		return fmt.Sprintf("there are no processes %v", want)
	}
	if !atRest {
		return ""
	}
	for _, d := range replica.All(w.Tx) {
		for _, r := range d.Replicas {
			if r.State != replica.Running || !replica.SessionOpen(w.Tx, r) {
				return fmt.Sprintf("the process %s runs nowhere", d.Name)
			}
		}
	}
	if hooks > 0 {
		return fmt.Sprintf("%d programs wait for ever", hooks)
	}
	if there && a.Back != nil && a.Back.Until != 0 {
		return "an upgrade waits for ever"
	}
	if there {
		for _, r := range a.Ran {
			if r.State == app.HookSucceeded && w.started[r.ID] == 0 {
				return fmt.Sprintf("the program %s of height %d succeeded and never ran", r.Event, r.Height)
			}
		}
	}
	return ""
}

// play runs a world to its end, and returns what was found.
func play(t *testing.T, seed uint64, bug string) (found string, w *world) {
	w = newWorld(t, seed, bug)
	for range 80 {
		w.step()
		if found = w.check(false); found != "" {
			return found, w
		}
	}
	for _, node := range []string{"a", "b", "c"} { // then all is well, for half an hour
		if w.nodes[node] == 0 {
			w.nodes[node] = w.Open(node)
		}
	}
	for range 150 {
		w.serve(true)
	}
	return w.check(true), w
}

// Whatever people do to an app, and whichever nodes die meanwhile, what it offers is what its version in use says, its
// programs run at least once, and nothing waits for ever. A seed that fails is printed; bugs that are put in are found.
func TestAppsUnderCommandsAndDeaths(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 20
	}
	ran, taken := 0, 0
	for seed := range seeds {
		found, w := play(t, seed, "")
		if found != "" {
			t.Fatalf("seed %d: %s\n%s", seed, found, strings.Join(w.story[max(0, len(w.story)-40):], "\n"))
		}
		ran += len(w.started)
		for _, line := range w.story {
			if strings.HasPrefix(line, "app.settle: done") {
				taken++
			}
		}
	}
	t.Logf("%d programs ran, %d ends and upgrades were settled", ran, taken)
	if ran < 100 || taken < 100 {
		t.Error("too little happened")
	}
	for _, bug := range []string{"the loss is not noticed", "nobody looks at hooks", "services are left",
		"services are not changed"} {
		if !slices.ContainsFunc(rangeTo(20), func(seed uint64) bool {
			found, _ := playWith(t, seed, bug)
			return found != ""
		}) {
			t.Errorf("the bug %q is not found", bug)
		}
	}
}

func rangeTo(n uint64) (out []uint64) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// playWith plays with a bug in the rules, or in who serves them.
func playWith(t *testing.T, seed uint64, bug string) (string, *world) {
	was := company.Ask.Processes
	defer func() { company.Ask.Processes = was }()
	switch bug {
	case "services are left":
		company.Ask.Processes = leaves{was}
	case "services are not changed":
		company.Ask.Processes = keeps{was}
	}
	return play(t, seed, bug)
}

// leaves ends no process.
type leaves struct{ company.Processes }

func (leaves) EndProcess(*ledger.Context, string) {}

// keeps starts none.
type keeps struct{ company.Processes }

func (keeps) StartProcess(*ledger.Context, company.NewProcess, bool) error { return nil }
