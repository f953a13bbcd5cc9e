package agents

import (
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/ledger"
)

// An environmentRow is an environment as answers show it. One is built in: the node
// itself executes the runs. The others are machines that a company has described.
type environmentRow struct {
	ID          string                      `json:"id"`
	Name        string                      `json:"name"`
	Description string                      `json:"description"`
	Driver      string                      `json:"driver"`
	Status      string                      `json:"status"`
	Config      any                         `json:"config"`
	EnvVars     struct{}                    `json:"envVars"`
	Metadata    environmentMetadata         `json:"metadata"`
	Company     core.Null[ledger.CompanyID] `json:"companyId"` // null: belongs to the mesh
	CreatedAt   core.Time                   `json:"createdAt"`
	UpdatedAt   core.Time                   `json:"updatedAt"`
}

type environmentMetadata struct {
	Default bool `json:"defaultForInstance"`
	Managed bool `json:"managedByPaperclip"` // built in: it can not be changed
}

// localEnvironment is the built-in environment of a company, with the company's creation
// time.
func localEnvironment(of entity.Company) environmentRow {
	e := entity.LocalEnvironment
	return environmentRow{ID: e.ID, Name: e.Name,
		Description: "Runs are carried out by the node that takes them, on its own machine.", Driver: e.Driver,
		Status: "active", Config: struct{}{}, Metadata: environmentMetadata{true, true}, CreatedAt: of.CreatedAt,
		UpdatedAt: of.CreatedAt}
}

// A support says which drivers an adapter, or the mesh, supports: "supported" or
// "unsupported".
type support struct {
	Local   string `json:"local"`
	SSH     string `json:"ssh"`
	Sandbox string `json:"sandbox"`
	Plugin  string `json:"plugin"`
}

type adapterSupport struct {
	Type    string          `json:"adapterType"`
	Drivers support         `json:"drivers"`
	Sandbox sandboxVerdicts `json:"sandboxProviders"`
}

// sandboxVerdicts are about the sandbox providers that clients ask for. There is none;
// the provider that clients test with is reported as absent.
type sandboxVerdicts struct {
	Fake string `json:"fake"`
}

type sandboxProviders struct {
	Fake sandboxProvider `json:"fake"`
}

type sandboxProvider struct {
	Status           string   `json:"status"`
	SavedProbe       bool     `json:"supportsSavedProbe"`
	UnsavedProbe     bool     `json:"supportsUnsavedProbe"`
	RunExecution     bool     `json:"supportsRunExecution"`
	ReusableLeases   bool     `json:"supportsReusableLeases"`
	InteractiveSetup bool     `json:"supportsInteractiveSetup"`
	ConnectionTypes  []string `json:"interactiveSetupConnectionTypes"`
	TemplateCapture  bool     `json:"supportsTemplateCapture"`
	TemplateDelete   bool     `json:"supportsTemplateDelete"`
	LoginPTY         bool     `json:"supportsLoginPty"`
	DisplayName      string   `json:"displayName"`
	Source           string   `json:"source"`
}

type environmentCapabilities struct {
	Adapters []adapterSupport `json:"adapters"`
	Drivers  support          `json:"drivers"`
	Sandbox  sandboxProviders `json:"sandboxProviders"`
}

// A leaseRow is a run's lease of its environment.
type leaseRow struct {
	entity.EnvironmentLease
	Company     ledger.CompanyID `json:"companyId"`
	Environment string           `json:"environmentId"`
	Issue       core.NullText    `json:"issueId"`
	Run         string           `json:"heartbeatRunId"`
}

// maxLeases bounds the list of leases, leasesAmong the latest runs that are searched for
// them.
const (
	maxLeases   = 200
	leasesAmong = 1000
)

func EnvironmentRoutes() []api.Route {
	const tag, one = "environments", "/api/environments/{id}"
	return []api.Route{
		{Method: "GET", Path: "/api/companies/{companyId}/environments", Tag: tag,
			Summary: "List the environments that runs can be carried out in", Out: []environmentRow{},
			Handle: func(rc *api.Request) (r api.Response, err error) {
				err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
					out := []environmentRow{localEnvironment(row)}
					for _, e := range place.EnvironmentsOf(tx, row.ID) {
						out = append(out, showEnvironment(e))
					}
					r = api.OK(out)
					return nil
				})
				return r, err
			}},
		{Method: "GET", Path: "/api/companies/{companyId}/environments/capabilities", Tag: tag,
			Summary: "Tell what adapters can do in which environment",
			Out:     environmentCapabilities{}, Handle: api.OfCompany(capabilities())},
		{Method: "POST", Path: "/api/companies/{companyId}/environments", Tag: tag,
			Summary: "Describe a machine that is reached over ssh", Who: api.Board, In: environmentBody{}, Out: environmentRow{},
			Status: 201, Handle: newEnvironment},
		{Method: "POST", Path: "/api/companies/{companyId}/environments/probe-config", Once: true, Tag: tag,
			Summary: "Look whether a machine answers, without keeping it", Who: api.Board, In: probeConfigBody{},
			Out: probeResult{}, NoTool: true, Timeout: probeTime, Handle: probeConfig},
		{Method: "GET", Path: one, Tag: tag, Summary: "Read an environment", Out: environmentRow{},
			Handle: func(rc *api.Request) (api.Response, error) {
				_, row, err := environmentFor(rc)
				return api.OK(row), err
			}},
		{Method: "PATCH", Path: one, Tag: tag, Summary: "Change an environment; the given one stays as it is", Who: api.Board,
			In: environmentPatch{}, Out: environmentRow{}, NoTool: true, Handle: patchEnvironment},
		{Method: "DELETE", Path: one, Tag: tag, Summary: "Delete an environment; the given one stays", Who: api.Board,
			Out: environmentRow{}, NoTool: true, Handle: removeEnvironment},
		{Method: "GET", Path: one + "/delete-blast-radius", Tag: tag, Summary: "Tell what uses an environment",
			Out: blastRadius{}, Handle: readBlastRadius},
		{Method: "POST", Path: one + "/probe", Once: true, Tag: tag,
			Summary: "Look whether the machine of an environment answers", Who: api.Board, Out: probeResult{}, NoTool: true,
			Timeout: probeTime, Handle: probeEnvironment},
		{Method: "GET", Path: "/api/environment-leases/{leaseId}", Tag: tag,
			Summary: "Read the lease that a run holds, or held, on its environment", Out: leaseRow{}, Handle: readLease},
		{Method: "GET", Path: one + "/leases", Tag: tag,
			Summary: "List the leases that runs hold, or held, on an environment", Out: []leaseRow{},
			Query:  []api.Param{{Name: "status", Doc: "active, released, expired or failed, comma separated"}},
			Handle: listLeases},
		{Method: "GET", Path: one + "/secret-refs", Tag: tag,
			Summary: "List the secrets that an environment refers to, without values", Out: []environmentSecret{},
			Handle: listEnvironmentSecrets},
	}
}

func capabilities() environmentCapabilities {
	const no = "unsupported"
	only := support{"supported", no, no, no}
	c := environmentCapabilities{Drivers: only,
		Sandbox: sandboxProviders{sandboxProvider{Status: no, ConnectionTypes: []string{}, DisplayName: "Fake",
			Source: "builtin"}}}
	for _, a := range adapters {
		c.Adapters = append(c.Adapters, adapterSupport{a.Type, only, sandboxVerdicts{no}})
	}
	return c
}

// environmentFor returns the environment that the path names and its company. The
// built-in environment is shown for the caller's company, and for any company when a
// person asks.
func environmentFor(rc *api.Request) (of entity.Company, row environmentRow, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		id := api.PathID(rc, "id")
		if e, ok := place.EnvironmentByID(tx, id); ok && api.Seen(tx, rc, e.Company) {
			of, _ = entity.CompanyOf(tx, e.Company)
			row = showEnvironment(e)
			return nil
		}
		if id != entity.LocalEnvironment.ID {
			return api.NotFound("Environment not found")
		}
		if rc.IsAgent() {
			of, _ = entity.CompanyOf(tx, rc.Company)
		} else {
			for _, c := range entity.Companies(tx) {
				if rc.Enters(tx, c.ID) {
					of = c
					break
				}
			}
		}
		row = localEnvironment(of)
		return nil
	})
	return of, row, err
}

func listLeases(rc *api.Request) (api.Response, error) {
	_, env, err := environmentFor(rc)
	if err != nil {
		return api.Response{}, err
	}
	if env.ID != entity.LocalEnvironment.ID {
		return api.OK([]leaseRow{}), nil // no run is executed there
	}
	want := map[string]bool{}
	for _, s := range rc.QueryList("status") {
		want[s] = true
	}
	out := []leaseRow{}
	err = rc.View(func(tx *ledger.Tx) error {
		for _, of := range entity.Companies(tx) {
			if !api.Seen(tx, rc, of.ID) {
				continue
			}
			seen := 0
			for r := range entity.RunsOf(tx, of.ID) {
				if l, ok := r.Lease(); ok && (len(want) == 0 || want[l.Status]) {
					out = append(out, leaseRow{l, of.ID, entity.LocalEnvironment.ID, core.NullText(r.Context.IssueID), r.ID})
				}
				if seen++; seen == leasesAmong || len(out) == maxLeases {
					break
				}
			}
		}
		return nil
	})
	return api.OK(out), err
}
