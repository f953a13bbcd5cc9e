package testkit

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
)

// What the access policy says of a node holds on a mesh, whichever node is asked: a person whom it names spawns,
// elevates, kills, declares and revokes nothing there. A declared process that runs there is not started again once it
// has ended, and says why; one that may run anywhere goes to another node. The same acts on another node happen, and
// once the denial is taken back they happen here too.
func TestTheGateKeepsPeopleFromANode(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3, working(t.TempDir()))
	shut, open := b.Nodes[1], b.Nodes[2]
	at := core.NodePath(string(shut.ID()))
	sleep := []string{"/bin/sleep", "600"}
	spawn := func(on int, node string, out any) (Answer, error) {
		return b.Ask(on, "POST", "/api/v1/processes", map[string]any{"command": sleep, "node": node}, out)
	}
	type instance struct {
		Node, State, Error, Address string
		Restarts                    int64
	}
	replicaOf := func(name string) (one instance) {
		var d struct{ Instances []instance }
		b.Must(0, "GET", "/api/v1/declared-processes/"+name, nil, &d)
		if len(d.Instances) == 1 {
			one = d.Instances[0]
		}
		return one
	}
	declare := func(name, node string) (Answer, error) {
		return b.Ask(0, "PUT", "/api/v1/declared-processes/"+name, map[string]any{"command": sleep, "node": node,
			"replicas": 1, "restart": "one_for_one"}, nil)
	}
	var p struct{ Address string }
	if a, err := spawn(0, shut.Name(), &p); err != nil || a.Status/100 != 2 {
		t.Fatalf("before anything is said of the node: %v %s", err, a.Body)
	}
	if a, err := declare("keeper", shut.Name()); err != nil || a.Status/100 != 2 {
		t.Fatalf("before anything is said of the node: %v %s", err, a.Body)
	}
	b.Until("the declared process runs", func() bool { return replicaOf("keeper").State == "running" })
	b.Must(0, "POST", "/api/v1/tree/grants", map[string]any{"path": at, "subject": "user:" + api.LocalBoard,
		"deny": true}, nil)

	process := "/api/v1/processes/" + url.PathEscape(p.Address)
	more := map[string]any{"resource_limits": map[string]any{"max_memory_bytes": 1 << 29}}
	elevation := map[string]any{"capabilities": more, "reason": "a larger index"}
	acts := []struct {
		what, method, path string
		body               any
	}{
		{"spawn", "POST", "/api/v1/processes", map[string]any{"command": sleep, "node": shut.Name()}},
		{"elevate", "POST", process + "/elevate", elevation},
		{"kill", "POST", process + "/kill", map[string]any{}},
		{"declare", "PUT", "/api/v1/declared-processes/other", map[string]any{"command": sleep, "node": shut.Name(),
			"replicas": 1}},
		{"cordon", "POST", "/api/v1/mesh/nodes/" + string(shut.ID()) + "/cordon", map[string]any{}},
		{"revoke", "POST", "/api/v1/mesh/nodes/" + string(shut.ID()) + "/revoke", map[string]any{"reason": "test"}},
	}
	for on := range b.Nodes {
		for _, x := range acts {
			a, err := b.Ask(on, x.method, x.path, x.body, nil, b.Seen()...)
			if err != nil || a.Status != http.StatusForbidden || !strings.Contains(string(a.Body), "ACCESS-POLICY") ||
				!strings.Contains(string(a.Body), at) {
				t.Errorf("%s by n%d: %v %d %s", x.what, on+1, err, a.Status, a.Body)
			}
		}
	}
	if a, err := spawn(1, open.Name(), nil); err != nil || a.Status/100 != 2 {
		t.Errorf("spawn on another node: %v %s", err, a.Body)
	}
	type member struct{ ID, Status string }
	var members []member
	b.Must(0, "GET", "/api/v1/mesh/members", nil, &members)
	if at := slices.IndexFunc(members, func(m member) bool { return m.ID == string(shut.ID()) }); at < 0 ||
		members[at].Status == "revoked" {
		t.Errorf("the members are %+v", members)
	}

	// The process ends by itself: nobody asks for its restart, so its node asks.
	var e struct {
		Machine int `json:"machine_pid"`
	}
	b.Must(0, "GET", "/api/v1/processes/"+url.PathEscape(replicaOf("keeper").Address), nil, &e)
	if e.Machine <= 0 {
		t.Fatalf("the process has no process ID of the system: %+v", e)
	}
	if err := syscall.Kill(e.Machine, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.Until("the process is not started again, and says why", func() bool {
		r := replicaOf("keeper")
		return r.State == "failed" && strings.Contains(r.Error, "access policy") && strings.Contains(r.Error, at)
	})
	if a, err := declare("free", ""); err != nil || a.Status/100 != 2 {
		t.Fatalf("a process that may run anywhere: %v %s", err, a.Body)
	}
	b.Until("it runs", func() bool { return replicaOf("free").State == "running" })
	if r := replicaOf("free"); r.Node == shut.Name() {
		t.Errorf("it runs on the closed node: %+v", r)
	}

	b.Must(0, "DELETE", "/api/v1/tree/grants?path="+url.QueryEscape(at)+"&subject="+
		url.QueryEscape("user:"+api.LocalBoard), nil, nil)
	for _, x := range acts[:3] {
		if a, err := b.Ask(2, x.method, x.path, x.body, nil, b.Seen()...); err != nil || a.Status/100 != 2 {
			t.Errorf("%s after the denial was taken back: %v %d %s", x.what, err, a.Status, a.Body)
		}
	}
	var replayed struct{ Replayed, Differ int }
	b.Must(0, "POST", "/api/v1/govern/replay", map[string]any{}, &replayed)
	if replayed.Replayed == 0 || replayed.Differ != 0 {
		t.Errorf("decided again: %+v", replayed)
	}
}
