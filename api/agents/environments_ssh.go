package agents

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/ledger"
)

type environmentBody struct {
	Name        string          `json:"name" minLength:"1" maxLength:"200"`
	Description api.Opt[string] `json:"description" maxLength:"20000"`
	Driver      string          `json:"driver" enum:"local,ssh,sandbox,plugin"`
	Status      string          `json:"status,omitempty" enum:"active,archived" default:"active"`
	Config      json.RawMessage `json:"config,omitempty" types:"object" maxBytes:"32768"`
	Env         json.RawMessage `json:"envVars,omitempty" types:"object" maxBytes:"32768"`
}

type environmentPatch struct {
	Name        *string         `json:"name,omitempty" minLength:"1" maxLength:"200" maxBytes:"500" nullable:"false"`
	Description api.Opt[string] `json:"description" maxLength:"20000"`
	Driver      string          `json:"driver,omitempty" enum:"local,ssh,sandbox,plugin"`
	Status      *string         `json:"status,omitempty" enum:"active,archived" nullable:"false"`
	Config      json.RawMessage `json:"config,omitempty" types:"object" maxBytes:"32768" nullable:"false"`
	Env         json.RawMessage `json:"envVars,omitempty" types:"object" maxBytes:"32768"`
}

type probeConfigBody struct {
	Driver string          `json:"driver" enum:"local,ssh,sandbox,plugin"`
	Config json.RawMessage `json:"config,omitempty" types:"object" maxBytes:"32768"`
}

// A probeResult says whether runs can be executed on a machine, and what it answered.
type probeResult struct {
	OK      bool           `json:"ok"`
	Driver  string         `json:"driver"`
	Summary string         `json:"summary"`
	Details map[string]any `json:"details"`
}

type blastRadius struct {
	ID        string        `json:"environmentId"`
	CanDelete bool          `json:"canDelete"`
	Blocked   core.NullText `json:"blockedReason"`
	Agents    int           `json:"agentCount"`
	Leases    int           `json:"activeLeaseCount"`
}

type environmentSecret struct {
	Path    string          `json:"configPath"`
	Secret  string          `json:"secretId"`
	Version json.RawMessage `json:"version"`
	Name    core.NullText   `json:"secretName"`
	Status  string          `json:"status"` // of the secret, or missing
}

const (
	// probeTime bounds a probe of a machine, dialTime the wait for its connection and its
	// first line.
	probeTime = 15 * time.Second
	dialTime  = 5 * time.Second
	// maxBanner bounds a line that is read, in bytes.
	maxBanner = 255
)

func showEnvironment(e place.NamedEnvironment) environmentRow {
	return environmentRow{ID: e.ID, Name: e.Name, Description: string(e.Description), Driver: e.Driver, Status: e.Status,
		Config: e.SSH(), Company: core.Null[ledger.CompanyID](e.Company), CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt}
}

// errDriver refuses a driver and names the supported ones.
func errDriver(driver string) error {
	return api.Unprocessable("Environments of driver "+driver+" can not be made: the node's own is given, and machines "+
		"are reached over ssh", map[string]any{"drivers": []string{"ssh"}})
}

// noVariables refuses environment variables: no run would receive them.
func noVariables(env json.RawMessage) error {
	if t := strings.TrimSpace(string(env)); t != "" && t != "null" && t != "{}" {
		return api.Unprocessable("envVars: variables are those of agents, projects and routines; an environment has "+
			"none", nil)
	}
	return nil
}

func newEnvironment(rc *api.Request) (api.Response, error) {
	in, err := api.Body[environmentBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	if in.Driver != "ssh" {
		return api.Response{}, errDriver(in.Driver)
	}
	if err := noVariables(in.Env); err != nil {
		return api.Response{}, err
	}
	if !api.IsUUID(api.CompanyID(rc)) {
		return api.Response{}, api.NotFound("Company not found")
	}
	config, err := checkedSSH(orObject(in.Config))
	if err != nil {
		return api.Response{}, err
	}
	p := place.SaveEnvironment{ID: api.NewID(), Name: &in.Name, Description: api.TextOf(in.Description), Driver: in.Driver,
		Status: &in.Status, Config: config, New: true}
	e, err := api.Do[place.NamedEnvironment](rc, place.KindEnvironmentSave, api.CompanyID(rc), p)
	return api.OK(showEnvironment(e)), err
}

// checkedSSH validates a configuration and returns it as it is stored. It refuses
// forbidden content, such as a key, before it is in a command, because commands are
// stored unchanged.
func checkedSSH(b json.RawMessage) (json.RawMessage, error) {
	s, err := place.ReadSSHConfig(b)
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

func orObject(b json.RawMessage) json.RawMessage {
	if len(b) == 0 {
		return json.RawMessage("{}")
	}
	return b
}

// ownEnvironment returns the company of the environment that the path names, if it is
// not built in.
func ownEnvironment(rc *api.Request) (of ledger.CompanyID, err error) {
	_, row, err := environmentFor(rc)
	if err == nil && row.Metadata.Managed {
		err = api.Unprocessable("The node's own environment is given and stays as it is",
			map[string]any{"drivers": []string{"ssh"}})
	}
	return ledger.CompanyID(row.Company), err
}

func patchEnvironment(rc *api.Request) (api.Response, error) {
	in, err := api.Body[environmentPatch](rc)
	if err != nil {
		return api.Response{}, err
	}
	of, err := ownEnvironment(rc)
	if err != nil {
		return api.Response{}, err
	}
	if err := noVariables(in.Env); err != nil {
		return api.Response{}, err
	}
	if len(in.Config) > 0 {
		if in.Config, err = checkedSSH(in.Config); err != nil {
			return api.Response{}, err
		}
	}
	e, err := api.Do[place.NamedEnvironment](rc, place.KindEnvironmentSave, of,
		place.SaveEnvironment{ID: api.PathID(rc, "id"), Name: in.Name, Description: api.TextOf(in.Description),
			Driver: in.Driver, Status: in.Status, Config: in.Config})
	return api.OK(showEnvironment(e)), err
}

func removeEnvironment(rc *api.Request) (api.Response, error) {
	of, err := ownEnvironment(rc)
	if err != nil {
		return api.Response{}, err
	}
	e, err := api.Do[place.NamedEnvironment](rc, place.KindEnvironmentDelete, of,
		place.NameEnvironment{ID: api.PathID(rc, "id")})
	return api.OK(showEnvironment(e)), err
}

func readBlastRadius(rc *api.Request) (api.Response, error) {
	_, row, err := environmentFor(rc)
	out := blastRadius{ID: row.ID, CanDelete: true}
	if row.Metadata.Managed {
		out.CanDelete, out.Blocked = false, "managed_local"
	}
	return api.OK(out), err
}

func listEnvironmentSecrets(rc *api.Request) (api.Response, error) {
	of, row, err := environmentFor(rc)
	if err != nil {
		return api.Response{}, err
	}
	out := []environmentSecret{}
	if s, ok := row.Config.(place.SSHConfig); ok && s.Key != nil {
		ref := environmentSecret{Path: "privateKeySecretRef", Secret: s.Key.Secret, Version: s.Key.Version, Status: "missing"}
		err = rc.View(func(tx *ledger.Tx) error {
			if secret, ok := secret.SecretOf(tx, of.ID, s.Key.Secret); ok {
				ref.Name, ref.Status = core.NullText(secret.Name), secret.Status
			}
			return nil
		})
		out = append(out, ref)
	}
	return api.OK(out), err
}

// probeEnvironment probes the machine of the environment. A caller who may not describe
// environments may not make nodes connect to addresses either; the command checks that.
func probeEnvironment(rc *api.Request) (api.Response, error) {
	of, row, err := environmentFor(rc)
	if err != nil {
		return api.Response{}, err
	}
	if _, err := rc.Submit(place.KindEnvironmentProbe, of.ID, place.NameEnvironment{ID: row.ID}); err != nil {
		return api.Response{}, err
	}
	if s, ok := row.Config.(place.SSHConfig); ok {
		return api.OK(probeSSH(rc, s)), nil
	}
	return api.OK(probeResult{true, "local", "Runs are carried out by the nodes that take them.", map[string]any{}}), nil
}

func probeConfig(rc *api.Request) (api.Response, error) {
	in, err := api.Body[probeConfigBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	if err := api.InCompany(rc, func(*ledger.Tx, entity.Company) error { return nil }); err != nil {
		return api.Response{}, err
	}
	s := place.SSHConfig{}
	switch in.Driver {
	case "local":
		return api.OK(probeResult{true, "local", "Runs are carried out by the nodes that take them.", map[string]any{}}), nil
	case "ssh":
		if s, err = place.ReadSSHConfig(orObject(in.Config)); err != nil {
			return api.Response{}, err
		}
	default:
		return api.OK(probeResult{false, in.Driver, "There is nothing here that carries runs out by " + in.Driver + ".",
			map[string]any{}}), nil
	}
	if _, err := rc.Submit(place.KindEnvironmentProbe, api.CompanyID(rc),
		place.NameEnvironment{Driver: in.Driver}); err != nil {
		return api.Response{}, err
	}
	return api.OK(probeSSH(rc, s)), nil
}

// probeSSH connects to a machine and reads the identification line of its SSH server. It
// does not log in, so ok stays false: no run is executed there.
func probeSSH(rc *api.Request, s place.SSHConfig) probeResult {
	at := net.JoinHostPort(s.Host, strconv.Itoa(s.Port))
	out := probeResult{Driver: "ssh", Details: map[string]any{"host": s.Host, "port": s.Port, "username": s.User,
		"remoteWorkspacePath": s.Path, "reachable": false, "runExecution": "unsupported"}}
	fail := func(why string) probeResult {
		out.Summary = at + " " + why
		return out
	}
	conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(rc.Context(), "tcp", at)
	if err != nil {
		return fail("can not be reached from this node.")
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(dialTime)); err != nil {
		return fail("broke off.")
	}
	lines := bufio.NewReader(io.LimitReader(conn, 8*maxBanner))
	for range 8 { // a server may send lines before its identification
		line, err := lines.ReadString('\n')
		if strings.HasPrefix(line, "SSH-") {
			out.Details["reachable"], out.Details["server"] = true, printable(line)
			return fail("is an SSH server. Runs are not carried out there: each is by the node that takes it.")
		}
		if err != nil {
			break
		}
	}
	return fail("answers, but not as an SSH server.")
}

// printable makes a line from an unknown machine safe to show.
func printable(line string) string {
	line = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, line)
	return line[:min(len(line), maxBanner)]
}

// readLease searches a lease among the latest runs of each company.
func readLease(rc *api.Request) (api.Response, error) {
	id := api.PathID(rc, "leaseId")
	var out *leaseRow
	err := rc.View(func(tx *ledger.Tx) error {
		for _, of := range entity.Companies(tx) {
			if !api.Seen(tx, rc, of.ID) {
				continue
			}
			looked := 0
			for r := range entity.RunsOf(tx, of.ID) {
				if l, ok := r.Lease(); ok && l.ID == id {
					out = &leaseRow{l, of.ID, entity.LocalEnvironment.ID, core.NullText(r.Context.IssueID), r.ID}
					return nil
				}
				if looked++; looked == leasesAmong {
					break
				}
			}
		}
		return api.NotFound("Environment lease not found")
	})
	return api.OK(out), err
}
