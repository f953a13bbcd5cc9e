package mesh

import (
	"encoding/json"
	"net/http"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Levels of a check, from fine to wrong.
const (
	CheckOK   = "ok"
	CheckNote = "note"
	CheckWarn = "warn"
	CheckBad  = "bad"
)

// maxLogLines bounds the lines in one answer.
const maxLogLines = 2000

func OperatorRoutes() []api.Route {
	return []api.Route{
		{Method: "GET", Path: "/api/v1/mesh/autopilot", Tag: "mesh",
			Summary: "Tell how the leader sees the voters, and how many may fail", Who: api.Admin, Out: autopilotInfo{},
			Handle: readAutopilot},
		{Method: "GET", Path: "/api/v1/mesh/doctor", Tag: "mesh",
			Summary: "Tell what is wrong with this node and the mesh, and what to do", Who: api.Admin, Out: []api.Check{},
			Handle: readDoctor},
		{Method: "GET", Path: "/api/v1/mesh/scrub", Tag: "mesh",
			Summary: "Tell how far this node is with reading all that it keeps, and what of it is damaged", Who: api.Admin,
			Out: api.ScrubState{}, Handle: readScrub},
		{Method: "POST", Path: "/api/v1/mesh/scrub", Once: true, Tag: "mesh",
			Summary: "Begin to read all that this node keeps, to find what is damaged", Who: api.Admin, Out: api.ScrubState{},
			Handle: startScrub},
		{Method: "GET", Path: "/api/v1/mesh/logs", Tag: "mesh", Summary: "Read the newest lines of this node's log",
			Who: api.Admin, Out: []api.LogLine{},
			Query: []api.Param{{Name: "after", Type: "integer", Doc: "only lines after this one"},
				{Name: "limit", Type: "integer", Doc: "at most so many"}}, Handle: readLogs},
		{Method: "GET", Path: "/api/v1/mesh/stacks", Tag: "mesh", Summary: "Tell what every goroutine of this node is at",
			Who: api.Admin, Media: []string{"text/plain"}, Handle: readStacks},
		{Method: "POST", Path: "/api/v1/mesh/raft/transfer", Once: true, Tag: "mesh",
			Summary: "Make the leader hand leadership to another voter", Who: api.Admin, Out: raftInfo{},
			Handle: transferLeader},
		{Method: "POST", Path: "/api/v1/mesh/raft/remove/{id}", Once: true, Tag: "mesh",
			Summary: "Take a node's servers out of the consensus group", Who: api.Admin, Out: raftInfo{}, Handle: removeServer},
		{Method: "PATCH", Path: "/api/v1/mesh/nodes/{id}", Tag: "mesh",
			Summary: "Change a node's labels, or whether it votes", Who: api.Admin, In: changeNode{}, Out: member{},
			Handle: changeMeshNode},
	}
}

type autopilotInfo struct {
	consensus.AutopilotState
	Names   map[string]string `json:"names"` // node names by ID
	Warning string            `json:"warning,omitempty"`
}

func readAutopilot(rc *api.Request) (api.Response, error) {
	s := rc.Server
	if s.Cfg.Operator.Autopilot == nil {
		return api.Response{}, errNotHere
	}
	st, err := s.Cfg.Operator.Autopilot(rc.Context())
	out := autopilotInfo{AutopilotState: st, Names: map[string]string{}}
	switch {
	case err != nil && (s.Cfg.Operator.OwnView == nil || rc.Read.Mode == ledger.ReadStrong):
		return api.Response{}, api.Unavailable("No leader tells how the voters are")
	case err != nil:
		st = s.Cfg.Operator.OwnView()
		out.AutopilotState, out.Warning = st, "no leader tells how the voters are: this is what the answering node sees"
	case st.Voters < 3:
		out.Warning = "no failover until a third node"
	}
	err = rc.View(func(tx *ledger.Tx) error {
		for _, v := range st.Seats {
			if n, ok := ledger.FindNode(tx, v.Node); ok {
				out.Names[string(v.Node)] = n.Name
			}
		}
		return nil
	})
	return api.OK(out), err
}

func readDoctor(rc *api.Request) (api.Response, error) {
	s := rc.Server
	if s.Cfg.Operator.Doctor == nil {
		return api.Response{}, errNotHere
	}
	return api.OK(s.Cfg.Operator.Doctor(rc.Context())), nil
}

func readLogs(rc *api.Request) (api.Response, error) {
	s := rc.Server
	after, err := rc.QueryHeight("after")
	if err != nil {
		return api.Response{}, err
	}
	limit, err := rc.QueryInt("limit", 100, 1, maxLogLines)
	if err != nil {
		return api.Response{}, err
	}
	out := []api.LogLine{}
	if s.Cfg.Operator.Logs != nil {
		out = append(out, s.Cfg.Operator.Logs(after, limit)...)
	}
	return api.OK(out), nil
}

// readStacks answers functions and lines, never the contents of arguments.
func readStacks(rc *api.Request) (api.Response, error) {
	return api.Response{Stream: func(w http.ResponseWriter, _ *http.Request) error {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(api.WriteTimeout))
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		return pprof.Lookup("goroutine").WriteTo(w, 1)
	}}, nil
}

func transferLeader(rc *api.Request) (api.Response, error) {
	s := rc.Server
	if s.Cfg.Operator.Transfer == nil {
		return api.Response{}, errNotHere
	}
	if err := s.Cfg.Operator.Transfer(rc.Context()); err != nil {
		return api.Response{}, api.Conflict("Leadership was not handed on: "+err.Error(), nil)
	}
	return readRaft(rc)
}

// removeServer removes a node from the consensus group and leaves it a member. A node
// that is alive asks to be added again.
func removeServer(rc *api.Request) (api.Response, error) {
	s := rc.Server
	if s.Cfg.Unseat == nil {
		return api.Response{}, errNotHere
	}
	id, err := findNode(rc, rc.Path("id"))
	if err != nil {
		return api.Response{}, err
	}
	if err := s.Cfg.Unseat(rc.Context(), id); err != nil {
		return api.Response{}, api.Conflict("The node was not taken out: "+err.Error(), nil)
	}
	return readRaft(rc)
}

type changeNode struct {
	Labels json.RawMessage `json:"labels,omitempty" nullable:"false" doc:"object: a string sets a label, null takes it away"`
	Role   string          `json:"role,omitempty" enum:"voter,observer,auto" doc:"observer never votes; auto leaves it to the autopilot"`
}

func changeMeshNode(rc *api.Request) (api.Response, error) {
	s := rc.Server
	in, err := api.Body[changeNode](rc)
	if err != nil {
		return api.Response{}, err
	}
	id, err := findNode(rc, rc.Path("id"))
	if err != nil {
		return api.Response{}, err
	}
	p := ledger.NodeUpdate{Node: id}
	if len(in.Labels) > 0 {
		var change map[string]*string
		if err := json.Unmarshal(in.Labels, &change); err != nil {
			return api.Response{}, api.Invalid("labels: an object of strings and nulls")
		}
		err := rc.View(func(tx *ledger.Tx) error {
			n, ok := ledger.FindNode(tx, id)
			if !ok {
				return api.NotFound("Node not found")
			}
			labels, err := relabel(n.Labels, change)
			p.Labels = &labels
			return err
		})
		if err != nil {
			return api.Response{}, err
		}
	}
	if role := in.Role; role != "" {
		if role == "auto" {
			role = ""
		}
		p.Role = &role
	}
	if p.Labels == nil && p.Role == nil {
		return api.Response{}, api.Invalid("nothing to change: set labels or role")
	}
	if _, err := rc.Submit(ledger.KindNodeUpdate, "", p); err != nil {
		return api.Response{}, err
	}
	return memberByID(s, rc, id)
}

// relabel applies changes to labels of the form key=value, or key alone.
func relabel(labels []string, change map[string]*string) (out []string, err error) {
	out = []string{} // an empty set; nil would change nothing
	for _, l := range labels {
		key, _, _ := strings.Cut(l, "=")
		if _, ok := change[key]; !ok {
			out = append(out, l)
		}
	}
	for key, v := range change {
		switch {
		case key == "" || strings.ContainsAny(key, "= \t\n"):
			return nil, api.Invalid("labels: %q is no key", key)
		case v == nil:
		case *v == "":
			out = append(out, key)
		default:
			out = append(out, key+"="+*v)
		}
	}
	return out, nil // the ledger sorts them
}

func memberByID(s *api.Server, rc *api.Request, id identity.NodeID) (api.Response, error) {
	var out member
	err := rc.View(func(tx *ledger.Tx) error {
		n, ok := ledger.FindNode(tx, id)
		if !ok {
			return api.NotFound("Node not found")
		}
		out = memberOf(s, n).onDuty(tx)
		if e, ok := people.EndpointOf(tx, string(n.ID)); ok {
			out.Endpoint = &e
		}
		return nil
	})
	return api.OK(out), err
}
