package place_test

import (
	"encoding/json"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestDeclaredCommands(t *testing.T) {
	t.Parallel()
	got, err := place.DeclaredCommands(
		json.RawMessage(`{"services":[{"name":"Web App","command":"npm start","port":{"type":"auto",` +
			`"envKey":"WEB"}},{"command":"x","port":80}],
		"jobs":[{"id":"build","name":"Build","command":"make"}],"commands":[{"kind":"job","name":"Web App","command":"y"}]}`))
	if err != nil || len(got) != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	ids := ""
	for _, d := range got {
		ids += d.Kind + ":" + d.ID + " "
	}
	if ids != "job:web-app service:web-app-2 service:service-3 job:build " || !got[1].Port.Auto ||
		got[1].Port.EnvKey != "WEB" || got[2].Port.Number != 80 || got[2].Index != 1 {
		t.Errorf("%s%+v", ids, got)
	}
	for _, bad := range []string{`[]`, `{"services":[{}]}`, `{"services":[{"command":"x","cwd":"/etc"}]}`,
		`{"services":[{"command":"x","cwd":"a/../../b"}]}`,
		`{"services":[{"command":"x","port":99999}]}`, `{"services":[{"command":"x","port":"80"}]}`,
		`{"services":[{"command":"x","readiness":{"type":"exec"}}]}`,
		`{"services":[{"command":"x","readiness":{"timeoutSec":100000}}]}`, `{"commands":[{"kind":"cron","command":"x"}]}`,
		`{"services":[{"command":"x","reuseScope":"all"}]}`} {
		if _, err := place.DeclaredCommands(json.RawMessage(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// For any declaration, a node decodes exactly what was checked.
func FuzzDeclaredCommands(f *testing.F) {
	f.Add([]byte(`{"services":[{"name":"Web","command":"npm start","port":{"type":"auto"},"env":{"A":"b"},` +
		`"readiness":{"type":"http"}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := place.DeclaredCommands(b)
		if err != nil {
			return
		}
		for _, d := range list {
			back := place.RuntimeService{Spec: d.Spec()}.Declared()
			if back.ID == "" || back.Command == "" || back.Kind != d.Kind || back.Port.Auto != d.Port.Auto ||
				back.Port.Number != d.Port.Number || len(back.Env) != len(d.Env) {
				t.Fatalf("%+v comes back as %+v", d, back)
			}
		}
	})
}

func TestServicesAreControlled(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	i, r, w := d.Space(t, "One")
	ask := func(action string) place.ControlServices {
		return place.ControlServices{Operation: d.ID(), Workspace: w.ID, Action: action}
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "runtime_service.control", ask("start"), nil), ledger.Unprocessable,
		"The workspace has no runtime services")
	config := &place.WorkspaceConfig{
		Runtime: json.RawMessage(`{"services":[{"name":"Web","command":"npm start","port":80},{"name":"Run",` +
			`"command":"x","reuseScope":"run"}],"jobs":[{"name":"Build","command":"make"}]}`)}
	d.Must(t, companytest.Board, "exec_workspace.update", place.UpdateExecutionWorkspace{ID: w.ID, Config: config}, nil)
	who := companytest.As{Agent: r.Agent, Run: r.ID}
	companytest.WantRefusal(t, d.Do(companytest.As{Agent: r.Agent}, "runtime_service.control", ask("start"), nil),
		ledger.Forbidden, "An agent writes on issues under a run of its own that is still going on; this request named none.")
	companytest.WantRefusal(t, d.Do(companytest.Board, "runtime_service.control", ask("dance"), nil), ledger.Invalid,
		"Unknown action: dance")
	d.Must(t, who, "runtime_service.control", ask("start"), nil)
	on := place.ServicesOn(d.Tx, "n1")
	if len(on) != 2 || on[0].Desired != "running" || on[0].Status != place.ServiceStarting || on[0].Generation != 1 {
		t.Fatalf("the node is to keep %+v", on)
	}
	web := place.ServicesOf(d.Tx, d.Company, w.ID)[0]
	told := func(node string, gen uint64, status place.ServiceStatus) error {
		return d.ByNode(node, "runtime_service.report", place.ReportService{ID: web.ID, Generation: gen, Status: status,
			Health: "healthy", Port: 80, PID: 7})
	}
	companytest.WantRefusal(t, told("n2", 1, place.ServiceRunning), ledger.Forbidden, "only its node reports on a service")
	if err := told("n1", 1, place.ServiceRunning); err != nil {
		t.Fatal(err)
	}
	d.Must(t, companytest.Board, "runtime_service.control", ask("start"), nil)
	if s, _ := place.ServiceByID(d.Tx, web.ID); s.Generation != 1 || s.Status != place.ServiceRunning {
		t.Errorf("starting what runs made it %+v", s)
	}
	again := ask("restart")
	again.Command = "web"
	d.Must(t, companytest.Board, "runtime_service.control", again, nil)
	companytest.WantRefusal(t, told("n1", 1, place.ServiceStopped), ledger.Conflict, "the service was started anew")
	if err := told("n1", 2, place.ServiceRunning); err != nil {
		t.Fatal(err)
	}

	// The services of a lost node have ended, and are started again when it returns.
	place.LoseServices(d.Context(companytest.Board, "", nil), "n1")
	if s, _ := place.ServiceByID(d.Tx, web.ID); s.Status != place.ServiceStopped || s.Desired != "running" ||
		s.Port != nil || len(place.ServicesOn(d.Tx, "n1")) != 2 {
		t.Errorf("of a lost node: %+v", s)
	}
	// A service of a run ends with the run.
	d.EndRun(r.ID)
	for _, s := range place.ServicesOn(d.Tx, "n1") {
		if want := map[string]string{"Web": "running", "Run": "stopped"}[s.Name]; s.Desired != want {
			t.Errorf("after its run %s is %s, want %s", s.Name, s.Desired, want)
		}
	}
	d.Must(t, companytest.Board, "runtime_service.control", ask("stop"), nil)
	if on := place.ServicesOn(d.Tx, "n1"); len(on) > 0 {
		t.Errorf("stopped while the node is away: %+v", on)
	}

	job := place.ControlServices{Operation: d.ID(), Workspace: w.ID, Action: "run", Command: "build"}
	d.Must(t, companytest.Board, "workspace_op.request", job, nil)
	if due := place.OperationsOn(d.Tx, "n1"); len(due) != 1 || due[0].Job != "build" || due[0].LogRef != "" ||
		due[0].Command != "make" {
		t.Errorf("asked for: %+v", due)
	}
	d.Must(t, companytest.Board, "issue.delete", company.DeleteIssue{Issue: i.ID}, nil)
	if _, ok := place.ServiceByID(d.Tx, web.ID); ok {
		t.Error("a service outlived its workspace")
	}
}

// While governance forbids it, a service does not run and is not started. Afterwards it is
// started again without a request, unless somebody stopped it.
func TestServicesRestWithWhatTheyBelongTo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rest, wake func(t *testing.T, d *companytest.Desk, issue string)
		want       company.Denial
	}{
		"a pause of the company": {
			func(t *testing.T, d *companytest.Desk, _ string) {
				d.Must(t, companytest.Board, "company.pause", company.ChangeCompany{}, nil)
			},
			func(t *testing.T, d *companytest.Desk, _ string) {
				d.Must(t, companytest.Board, "company.resume", company.ChangeCompany{}, nil)
			}, company.DeniedCompany},
		"the emergency stop": {
			func(t *testing.T, d *companytest.Desk, _ string) {
				d.Must(t, companytest.Board, "mesh.stop", company.StopAll{}, nil)
			},
			func(t *testing.T, d *companytest.Desk, _ string) {
				d.Must(t, companytest.Board, "mesh.resume", company.ResumeAll{}, nil)
			}, company.DeniedMeshStopped},
		"a hold of the tree": {
			func(t *testing.T, d *companytest.Desk, i string) {
				d.Must(t, companytest.Board, "tree.hold", care.HoldTree{ID: d.ID(), Issue: i, Mode: "pause"}, nil)
			},
			func(t *testing.T, d *companytest.Desk, i string) {
				d.Must(t, companytest.Board, "tree.hold", care.HoldTree{ID: d.ID(), Issue: i, Mode: "resume"}, nil)
			}, company.DeniedTreeHold},
		"a hold that lets runs finish": {
			func(t *testing.T, d *companytest.Desk, i string) {
				d.Must(t, companytest.Board, "tree.hold", care.HoldTree{ID: d.ID(), Issue: i, Mode: "pause",
					Strategy: "after_active_runs_finish"}, nil)
			}, nil, ""},
		"a pause of the agent": {
			func(t *testing.T, d *companytest.Desk, _ string) {
				d.Must(t, companytest.Board, "agent.pause",
					company.ChangeAgent{Agent: entity.AgentsOf(d.Tx, d.Company, false)[0].ID}, nil)
			}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := companytest.NewDesk(t)
			i, _, w := d.Space(t, "One")
			config := &place.WorkspaceConfig{Runtime: json.RawMessage(`{"services":[{"name":"Web","command":"npm start"}]}`)}
			d.Must(t, companytest.Board, "exec_workspace.update", place.UpdateExecutionWorkspace{ID: w.ID, Config: config}, nil)
			ask := func(action string) place.ControlServices {
				return place.ControlServices{Operation: d.ID(), Workspace: w.ID, Action: action}
			}
			d.Must(t, companytest.Board, "runtime_service.control", ask("start"), nil)
			wanted := func(want company.Denial) {
				t.Helper()
				if on := place.ServicesOn(d.Tx, "n1"); len(on) != 1 || on[0].Desired != "running" || on[0].Denied != want {
					t.Errorf("the node is to keep %+v, want one denied for %q", on, want)
				}
			}
			wanted("")
			c.rest(t, d, i.ID)
			wanted(c.want)
			if c.want == "" {
				d.Must(t, companytest.Board, "runtime_service.control", ask("start"), nil)
				return
			}
			one := place.ServicesOf(d.Tx, d.Company, w.ID)[0]
			if err := d.ByNode("n1", "runtime_service.report", place.ReportService{ID: one.ID, Generation: 1,
				Status: place.ServiceStopped, Health: "unknown", Error: place.ServiceDenial(c.want)}); err != nil {
				t.Fatal(err)
			}
			if one, _ = place.ServiceByID(d.Tx, one.ID); one.Status != place.ServiceStopped || one.Error == "" {
				t.Errorf("it is shown as %+v", one)
			}
			for _, action := range []string{"start", "restart"} {
				companytest.WantRefusal(t, d.Do(companytest.Board, "runtime_service.control", ask(action), nil), ledger.Conflict,
					place.ServiceDenial(c.want))
			}
			wanted(c.want)
			c.wake(t, d, i.ID)
			wanted("")
			c.rest(t, d, i.ID)
			d.Must(t, companytest.Board, "runtime_service.control", ask("stop"), nil)
			c.wake(t, d, i.ID)
			if on := place.ServicesOn(d.Tx, "n1"); len(on) > 0 {
				t.Errorf("what was stopped meanwhile is to be kept: %+v", on)
			}
		})
	}
}
