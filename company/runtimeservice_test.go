package company

import (
	"encoding/json"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

func TestDeclaredCommands(t *testing.T) {
	t.Parallel()
	got, err := DeclaredCommands(json.RawMessage(`{"services":[{"name":"Web App","command":"npm start","port":{"type":"auto","envKey":"WEB"}},{"command":"x","port":80}],
		"jobs":[{"id":"build","name":"Build","command":"make"}],"commands":[{"kind":"job","name":"Web App","command":"y"}]}`))
	if err != nil || len(got) != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	ids := ""
	for _, d := range got {
		ids += d.Kind + ":" + d.ID + " "
	}
	if ids != "job:web-app service:web-app-2 service:service-3 job:build " || !got[1].Port.Auto || got[1].Port.EnvKey != "WEB" || got[2].Port.Number != 80 || got[2].Index != 1 {
		t.Errorf("%s%+v", ids, got)
	}
	for _, bad := range []string{`[]`, `{"services":[{}]}`, `{"services":[{"command":"x","cwd":"/etc"}]}`, `{"services":[{"command":"x","cwd":"a/../../b"}]}`,
		`{"services":[{"command":"x","port":99999}]}`, `{"services":[{"command":"x","port":"80"}]}`, `{"services":[{"command":"x","readiness":{"type":"exec"}}]}`,
		`{"services":[{"command":"x","readiness":{"timeoutSec":100000}}]}`, `{"commands":[{"kind":"cron","command":"x"}]}`, `{"services":[{"command":"x","reuseScope":"all"}]}`} {
		if _, err := DeclaredCommands(json.RawMessage(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// Whatever is declared, what a node reads back is what was checked.
func FuzzDeclaredCommands(f *testing.F) {
	f.Add([]byte(`{"services":[{"name":"Web","command":"npm start","port":{"type":"auto"},"env":{"A":"b"},"readiness":{"type":"http"}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := DeclaredCommands(b)
		if err != nil {
			return
		}
		for _, d := range list {
			back := RuntimeService{Spec: d.spec()}.Declared()
			if back.ID == "" || back.Command == "" || back.Kind != d.Kind || back.Port.Auto != d.Port.Auto || back.Port.Number != d.Port.Number || len(back.Env) != len(d.Env) {
				t.Fatalf("%+v comes back as %+v", d, back)
			}
		}
	})
}

func TestServicesAreControlled(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i, r, w := d.space(t, "One")
	ask := func(action string) ControlServices {
		return ControlServices{Operation: d.id(), Workspace: w.ID, Action: action}
	}
	wantRefusal(t, d.do(board, "runtime_service.control", ask("start"), nil), ledger.Unprocessable, "")
	config := &WorkspaceConfig{Runtime: json.RawMessage(`{"services":[{"name":"Web","command":"npm start","port":80},{"name":"Run","command":"x","reuseScope":"run"}],"jobs":[{"name":"Build","command":"make"}]}`)}
	d.must(t, board, "exec_workspace.update", UpdateExecutionWorkspace{ID: w.ID, Config: config}, nil)
	who := as{r.Agent, r.ID}
	wantRefusal(t, d.do(as{agent: r.Agent}, "runtime_service.control", ask("start"), nil), ledger.Forbidden, "")
	wantRefusal(t, d.do(board, "runtime_service.control", ask("dance"), nil), ledger.Invalid, "")
	d.must(t, who, "runtime_service.control", ask("start"), nil)
	on := ServicesOn(d.tx, "n1")
	if len(on) != 2 || on[0].Desired != "running" || on[0].Status != ServiceStarting || on[0].Generation != 1 {
		t.Fatalf("the node is to keep %+v", on)
	}
	web := ServicesOf(d.tx, d.company, w.ID)[0]
	told := func(node string, gen uint64, status ServiceStatus) error {
		return d.byNode(node, "runtime_service.report", ReportService{ID: web.ID, Generation: gen, Status: status, Health: "healthy", Port: 80, PID: 7})
	}
	wantRefusal(t, told("n2", 1, ServiceRunning), ledger.Forbidden, "")
	if err := told("n1", 1, ServiceRunning); err != nil {
		t.Fatal(err)
	}
	d.must(t, board, "runtime_service.control", ask("start"), nil)
	if s, _ := ServiceByID(d.tx, web.ID); s.Generation != 1 || s.Status != ServiceRunning {
		t.Errorf("starting what runs made it %+v", s)
	}
	again := ask("restart")
	again.Command = "web"
	d.must(t, board, "runtime_service.control", again, nil)
	wantRefusal(t, told("n1", 1, ServiceStopped), ledger.Conflict, "")
	if err := told("n1", 2, ServiceRunning); err != nil {
		t.Fatal(err)
	}

	// A lost node's services are gone, and begin again when it is back.
	loseServices(d.context(board, "", nil), "n1")
	if s, _ := ServiceByID(d.tx, web.ID); s.Status != ServiceStopped || s.Desired != "running" || s.Port != nil || len(ServicesOn(d.tx, "n1")) != 2 {
		t.Errorf("of a lost node: %+v", s)
	}
	// One of a run ends with it.
	d.endRun(r.ID)
	for _, s := range ServicesOn(d.tx, "n1") {
		if want := map[string]string{"Web": "running", "Run": "stopped"}[s.Name]; s.Desired != want {
			t.Errorf("after its run %s is %s, want %s", s.Name, s.Desired, want)
		}
	}
	d.must(t, board, "runtime_service.control", ask("stop"), nil)
	if on := ServicesOn(d.tx, "n1"); len(on) > 0 {
		t.Errorf("stopped while the node is away: %+v", on)
	}

	job := ControlServices{Operation: d.id(), Workspace: w.ID, Action: "run", Command: "build"}
	d.must(t, board, "workspace_op.request", job, nil)
	if due := OperationsOn(d.tx, "n1"); len(due) != 1 || due[0].Job != "build" || due[0].LogRef != "" || due[0].Command != "make" {
		t.Errorf("asked for: %+v", due)
	}
	d.must(t, board, "issue.delete", DeleteIssue{Issue: i.ID}, nil)
	if _, ok := ServiceByID(d.tx, web.ID); ok {
		t.Error("a service outlived its workspace")
	}
}

// What governance says no to keeps a service from being at work and wanted: it is
// not started then, and begins again by itself afterwards, if nobody stopped it.
func TestServicesRestWithWhatTheyBelongTo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rest, wake func(t *testing.T, d *desk, issue string)
		want       Denial
	}{
		"a pause of the company": {
			func(t *testing.T, d *desk, _ string) { d.must(t, board, "company.pause", ChangeCompany{}, nil) },
			func(t *testing.T, d *desk, _ string) { d.must(t, board, "company.resume", ChangeCompany{}, nil) }, DeniedCompany},
		"the emergency stop": {
			func(t *testing.T, d *desk, _ string) { d.must(t, board, "mesh.stop", StopAll{}, nil) },
			func(t *testing.T, d *desk, _ string) { d.must(t, board, "mesh.resume", ResumeAll{}, nil) }, DeniedMeshStopped},
		"a hold of the tree": {
			func(t *testing.T, d *desk, i string) {
				d.must(t, board, "tree.hold", HoldTree{ID: d.id(), Issue: i, Mode: "pause"}, nil)
			},
			func(t *testing.T, d *desk, i string) {
				d.must(t, board, "tree.hold", HoldTree{ID: d.id(), Issue: i, Mode: "resume"}, nil)
			}, DeniedTreeHold},
		"a hold that lets runs finish": {
			func(t *testing.T, d *desk, i string) {
				d.must(t, board, "tree.hold", HoldTree{ID: d.id(), Issue: i, Mode: "pause", Strategy: "after_active_runs_finish"}, nil)
			}, nil, ""},
		"a pause of the agent": {
			func(t *testing.T, d *desk, _ string) {
				d.must(t, board, "agent.pause", ChangeAgent{Agent: AgentsOf(d.tx, d.company, false)[0].ID}, nil)
			}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			i, _, w := d.space(t, "One")
			config := &WorkspaceConfig{Runtime: json.RawMessage(`{"services":[{"name":"Web","command":"npm start"}]}`)}
			d.must(t, board, "exec_workspace.update", UpdateExecutionWorkspace{ID: w.ID, Config: config}, nil)
			ask := func(action string) ControlServices {
				return ControlServices{Operation: d.id(), Workspace: w.ID, Action: action}
			}
			d.must(t, board, "runtime_service.control", ask("start"), nil)
			wanted := func(want Denial) {
				t.Helper()
				if on := ServicesOn(d.tx, "n1"); len(on) != 1 || on[0].Desired != "running" || on[0].Denied != want {
					t.Errorf("the node is to keep %+v, want one denied for %q", on, want)
				}
			}
			wanted("")
			c.rest(t, d, i.ID)
			wanted(c.want)
			if c.want == "" {
				d.must(t, board, "runtime_service.control", ask("start"), nil)
				return
			}
			one := ServicesOf(d.tx, d.company, w.ID)[0]
			if err := d.byNode("n1", "runtime_service.report", ReportService{ID: one.ID, Generation: 1, Status: ServiceStopped, Health: "unknown", Error: ServiceDenial(c.want)}); err != nil {
				t.Fatal(err)
			}
			if one, _ = ServiceByID(d.tx, one.ID); one.Status != ServiceStopped || one.Error == "" {
				t.Errorf("it is shown as %+v", one)
			}
			for _, action := range []string{"start", "restart"} {
				wantRefusal(t, d.do(board, "runtime_service.control", ask(action), nil), ledger.Conflict, ServiceDenial(c.want))
			}
			wanted(c.want)
			c.wake(t, d, i.ID)
			wanted("")
			c.rest(t, d, i.ID)
			d.must(t, board, "runtime_service.control", ask("stop"), nil)
			c.wake(t, d, i.ID)
			if on := ServicesOn(d.tx, "n1"); len(on) > 0 {
				t.Errorf("what was stopped meanwhile is to be kept: %+v", on)
			}
		})
	}
}
