package place

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// MaxServices bounds the services and commands that one workspace declares.
	MaxServices = 20
	// MaxServiceReadiness bounds the wait for a service to be ready, in seconds.
	MaxServiceReadiness = 600
)

// A DeclaredCommand is a service, or a job that ends by itself, that the board has
// declared for a workspace.
type DeclaredCommand struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Kind      string            `json:"kind"` // service or job
	Command   string            `json:"command"`
	Cwd       string            `json:"cwd"` // below the workspace's folder
	Env       map[string]string `json:"env"`
	Port      DeclaredPort      `json:"port"`
	Readiness struct {
		Type     string `json:"type"` // readiness check: http, tcp or none
		URL      string `json:"urlTemplate"`
		Timeout  int64  `json:"timeoutSec"`
		Interval int64  `json:"intervalMs"`
	} `json:"readiness"`
	Expose struct {
		URL string `json:"urlTemplate"`
	} `json:"expose"`
	Lifecycle  string          `json:"lifecycle"`
	ReuseScope string          `json:"reuseScope"`
	StopPolicy json.RawMessage `json:"stopPolicy"`
	Index      int             `json:"-"` // position among the services
}

// A DeclaredPort is the port of a service: a fixed number, or a free one that the node picks.
type DeclaredPort struct {
	Auto   bool
	Number int64
	EnvKey string // environment variable in which the service gets the port, PORT by default
}

// UnmarshalJSON takes a number, or an object with type, port or value, and envKey.
func (p *DeclaredPort) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &p.Number); err == nil {
		return nil
	}
	var o struct {
		Type   string `json:"type"`
		Port   int64  `json:"port"`
		Value  int64  `json:"value"`
		EnvKey string `json:"envKey"`
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return fmt.Errorf("port is a number or an object: %w", err)
	}
	p.EnvKey, p.Number = o.EnvKey, max(o.Port, o.Value)
	p.Auto = o.Type == "auto" || p.Number == 0
	return nil
}

// DeclaredCommands reads a workspaceRuntime. The error names what is wrong in it.
func DeclaredCommands(runtime json.RawMessage) (out []DeclaredCommand, err error) {
	if len(runtime) == 0 || string(runtime) == "null" {
		return nil, nil
	}
	var r struct {
		Commands []DeclaredCommand `json:"commands"`
		Services []DeclaredCommand `json:"services"`
		Jobs     []DeclaredCommand `json:"jobs"`
	}
	if err := json.Unmarshal(runtime, &r); err != nil {
		return nil, ledger.Refuse(ledger.Invalid, nil, "workspaceRuntime is malformed: %s", core.Snippet(err.Error(), 200))
	}
	for i := range r.Services {
		r.Services[i].Kind = "service"
	}
	for i := range r.Jobs {
		r.Jobs[i].Kind = "job"
	}
	out = slices.Concat(r.Commands, r.Services, r.Jobs)
	if len(out) > MaxServices {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "A workspace declares at most %d services and commands",
			MaxServices)
	}
	bad := func(i int, why string) ([]DeclaredCommand, error) {
		return nil, ledger.Refuse(ledger.Invalid, nil, "workspaceRuntime: command %d %s", i, why)
	}
	index := 0
	seen := map[string]bool{}
	for i := range out {
		d := &out[i]
		d.Kind = cmpOr(d.Kind, "service")
		d.Name = cmpOr(d.Name, d.Kind+"-"+strconv.Itoa(i+1))
		d.ID = cmpOr(d.ID, cmpOr(core.URLKey(d.Name), d.Kind+"-"+strconv.Itoa(i+1)))
		if seen[d.ID] {
			d.ID += "-" + strconv.Itoa(i+1)
		}
		seen[d.ID] = true
		if d.Kind == "service" {
			d.Index = index
			index++
		}
		switch {
		case d.Kind != "service" && d.Kind != "job":
			return bad(i, "is of a kind that is neither service nor job")
		case strings.TrimSpace(d.Command) == "" || len(d.Command) > MaxCommandLine:
			return bad(i, "has no command, or one that is too long")
		case len(d.Name) > entity.MaxName || len(d.ID) > entity.MaxName || len(d.Cwd) > entity.MaxPlacePath ||
			len(d.Env) > conceal.MaxRunSecrets:
			return bad(i, "has texts that are too long, or too many variables")
		case strings.HasPrefix(d.Cwd, "/") || d.Cwd == ".." || strings.HasPrefix(d.Cwd, "../") || strings.Contains(d.Cwd,
			"/../") || strings.HasSuffix(d.Cwd, "/.."):
			return bad(i, "has a cwd that is not below its workspace")
		case d.Port.Number < 0 || d.Port.Number > 65535:
			return bad(i, "has a port that is none")
		case d.Readiness.Timeout < 0 || d.Readiness.Timeout > MaxServiceReadiness || d.Readiness.Interval < 0:
			return bad(i, "waits too long for its readiness")
		case !slices.Contains([]string{"", "http", "tcp", "none"}, d.Readiness.Type):
			return bad(i, "has a readiness check that is not one of http, tcp, none")
		case !slices.Contains([]string{"", "project_workspace", "execution_workspace", "run", "agent"}, d.ReuseScope):
			return bad(i, "has a reuseScope that is not one of project_workspace, execution_workspace, run, agent")
		}
	}
	return out, nil
}

// Spec encodes the declaration. [RuntimeService.Declared] decodes it on the node.
func (d DeclaredCommand) Spec() json.RawMessage {
	env := core.Object{}
	for _, k := range slices.Sorted(maps.Keys(d.Env)) {
		env = env.Str(k, d.Env[k])
	}
	port := core.Object{}.Str("type", "fixed").Int("port", d.Port.Number).Str("envKey", d.Port.EnvKey)
	if d.Port.Auto {
		port = core.Object{}.Str("type", "auto").Str("envKey", d.Port.EnvKey)
	}
	o := core.Object{}.Str("id", d.ID).Str("name", d.Name).Str("kind", d.Kind).Str("command", d.Command).Str("cwd", d.Cwd).
		Raw("env", env.Close()).
		Raw("readiness", core.Object{}.Str("type", d.Readiness.Type).Str("urlTemplate", d.Readiness.URL).Int("timeoutSec",
			d.Readiness.Timeout).Int("intervalMs", d.Readiness.Interval).Close()).
		Raw("expose", core.Object{}.Str("urlTemplate", d.Expose.URL).Close())
	if d.Port.Auto || d.Port.Number > 0 {
		o = o.Raw("port", port.Close())
	}
	return o.Close()
}

// Declared decodes from the service's row what the node has to execute.
func (s RuntimeService) Declared() (d DeclaredCommand) {
	_ = json.Unmarshal(s.Spec, &d) // Spec encoded it
	return d
}
