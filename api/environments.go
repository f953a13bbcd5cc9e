package api

import (
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/ledger"
)

// An environmentRow is an environment as it is shown. There is one: the node
// itself carries runs out.
type environmentRow struct {
	ID          string              `json:"id"`
	Name        string              `json:"name"`
	Description string              `json:"description"`
	Driver      string              `json:"driver"`
	Status      string              `json:"status"`
	Config      struct{}            `json:"config"`
	EnvVars     struct{}            `json:"envVars"`
	Metadata    environmentMetadata `json:"metadata"`
	CreatedAt   company.Time        `json:"createdAt"`
	UpdatedAt   company.Time        `json:"updatedAt"`
}

type environmentMetadata struct {
	Default bool `json:"defaultForInstance"`
	Managed bool `json:"managedByPaperclip"` // by the system: it cannot be changed
}

// localEnvironment is that of a company; it is as old as the company.
func localEnvironment(of company.Company) environmentRow {
	e := company.LocalEnvironment
	return environmentRow{ID: e.ID, Name: e.Name, Description: "Runs are carried out by the node that takes them, on its own machine.", Driver: e.Driver,
		Status: "active", Metadata: environmentMetadata{true, true}, CreatedAt: of.CreatedAt, UpdatedAt: of.CreatedAt}
}

// A support says what an adapter, or the mesh, can do with each driver:
// "supported" or "unsupported".
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

// sandboxVerdicts are of the providers that clients ask about; there is no
// sandbox provider, and the one they test with is told as absent.
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
	company.EnvironmentLease
	Company     string           `json:"companyId"`
	Environment string           `json:"environmentId"`
	Issue       company.NullText `json:"issueId"`
	Run         string           `json:"heartbeatRunId"`
}

// The list of leases is of the latest runs: so many are shown, out of so many
// looked at.
const (
	maxLeases   = 200
	leasesAmong = 1000
)

func (s *Server) environmentRoutes() []Route {
	const tag, one = "environments", "/api/environments/{id}"
	refuse := func(method, path, summary string) Route {
		return Route{Method: method, Path: path, Tag: tag, Summary: summary, Who: Board, NoTool: true, Handle: func(rc *Request) (Response, error) {
			if id := rc.Path("id"); id != "" && !strings.EqualFold(id, company.LocalEnvironment.ID) {
				return Response{}, NotFound("Environment not found")
			}
			return Response{}, Unprocessable("Runs are carried out by their node's own environment, which is given; there are no others", map[string]any{"drivers": []string{"local"}})
		}}
	}
	return []Route{
		{Method: "GET", Path: "/api/companies/{companyId}/environments", Tag: tag, Summary: "List the environments that runs can be carried out in", Out: []environmentRow{},
			Handle: func(rc *Request) (r Response, err error) {
				err = inCompany(rc, func(_ *ledger.Tx, row company.Company) error {
					r = OK([]environmentRow{localEnvironment(row)})
					return nil
				})
				return r, err
			}},
		{Method: "GET", Path: "/api/companies/{companyId}/environments/capabilities", Tag: tag, Summary: "Tell what adapters can do in which environment",
			Out: environmentCapabilities{}, Handle: ofCompany(capabilities())},
		refuse("POST", "/api/companies/{companyId}/environments", "Create an environment; only the given one is there"),
		refuse("PATCH", one, "Change an environment; the given one stays as it is"),
		refuse("DELETE", one, "Delete an environment; the given one stays"),
		{Method: "GET", Path: one, Tag: tag, Summary: "Read an environment", Out: environmentRow{}, Handle: func(rc *Request) (Response, error) {
			of, err := environmentFor(rc)
			return OK(localEnvironment(of)), err
		}},
		{Method: "GET", Path: one + "/leases", Tag: tag, Summary: "List the leases that runs hold, or held, on an environment", Out: []leaseRow{},
			Query: []Param{{Name: "status", Doc: "active, released, expired or failed, comma separated"}}, Handle: listLeases},
		{Method: "GET", Path: one + "/secret-refs", Tag: tag, Summary: "List the secrets that an environment refers to: none", Out: []struct{}{},
			Handle: func(rc *Request) (Response, error) {
				_, err := environmentFor(rc)
				return OK([]struct{}{}), err
			}},
	}
}

func capabilities() environmentCapabilities {
	const no = "unsupported"
	only := support{"supported", no, no, no}
	c := environmentCapabilities{Drivers: only, Sandbox: sandboxProviders{sandboxProvider{Status: no, ConnectionTypes: []string{}, DisplayName: "Fake", Source: "builtin"}}}
	for _, a := range adapters {
		c.Adapters = append(c.Adapters, adapterSupport{a.Type, only, sandboxVerdicts{no}})
	}
	return c
}

// environmentFor returns the company that an environment's row is shown for: the
// caller's, or any, when a person asks.
func environmentFor(rc *Request) (of company.Company, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		if !strings.EqualFold(rc.Path("id"), company.LocalEnvironment.ID) {
			return NotFound("Environment not found")
		}
		if rc.IsAgent() {
			of, _ = company.CompanyOf(tx, rc.Company)
			return nil
		}
		for _, row := range company.Companies(tx) {
			if rc.enters(tx, row.ID) {
				of = row
				break
			}
		}
		return nil
	})
	return of, err
}

func listLeases(rc *Request) (Response, error) {
	if _, err := environmentFor(rc); err != nil {
		return Response{}, err
	}
	want := map[string]bool{}
	for _, s := range rc.QueryList("status") {
		want[s] = true
	}
	out := []leaseRow{}
	err := rc.View(func(tx *ledger.Tx) error {
		for _, of := range company.Companies(tx) {
			if !seen(tx, rc, of.ID) {
				continue
			}
			seen := 0
			for r := range company.RunsOf(tx, of.ID) {
				if l, ok := r.Lease(); ok && (len(want) == 0 || want[l.Status]) {
					out = append(out, leaseRow{l, of.ID, company.LocalEnvironment.ID, company.NullText(r.Context.IssueID), r.ID})
				}
				if seen++; seen == leasesAmong || len(out) == maxLeases {
					break
				}
			}
		}
		return nil
	})
	return OK(out), err
}
