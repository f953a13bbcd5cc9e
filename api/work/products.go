package work

import (
	"encoding/json"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/ledger"
)

// newProduct is the body that creates a work product, changedProduct the one that
// changes it.
type newProduct struct {
	Type     string `json:"type" enum:"preview_url,runtime_service,pull_request,branch,commit,artifact,document"`
	Provider string `json:"provider" minLength:"1" maxLength:"200"`
	Title    string `json:"title" minLength:"1" maxLength:"1000"`
	productFields
}

type changedProduct struct {
	Type     *string `json:"type,omitempty" enum:"preview_url,runtime_service,pull_request,branch,commit,artifact,document" nullable:"false"`
	Provider *string `json:"provider,omitempty" minLength:"1" maxLength:"200" nullable:"false"`
	Title    *string `json:"title,omitempty" minLength:"1" maxLength:"1000" nullable:"false"`
	productFields
}

type productFields struct {
	Project            api.Opt[string]          `json:"projectId" format:"uuid"`
	ExecutionWorkspace api.Opt[string]          `json:"executionWorkspaceId" format:"uuid"`
	RuntimeService     api.Opt[string]          `json:"runtimeServiceId" format:"uuid"`
	External           api.Opt[string]          `json:"externalId" maxLength:"500"`
	URL                api.Opt[string]          `json:"url" format:"uri" maxLength:"4000"`
	Status             *string                  `json:"status,omitempty" enum:"active,ready_for_review,approved,changes_requested,merged,closed,failed,archived,draft" nullable:"false"`
	ReviewState        *string                  `json:"reviewState,omitempty" enum:"none,needs_board_review,approved,changes_requested" nullable:"false"`
	Primary            *bool                    `json:"isPrimary,omitempty" nullable:"false"`
	Health             *string                  `json:"healthStatus,omitempty" enum:"unknown,healthy,unhealthy" nullable:"false"`
	Summary            api.Opt[string]          `json:"summary" maxLength:"10000"`
	Metadata           api.Opt[json.RawMessage] `json:"metadata" maxBytes:"16000"`
}

func (f productFields) payload() (file.SaveProduct, error) {
	p := file.SaveProduct{Project: api.IdPointer(f.Project), ExecutionWorkspace: api.IdPointer(f.ExecutionWorkspace),
		RuntimeService: api.IdPointer(f.RuntimeService),
		External:       api.TextOf(f.External), URL: api.TextOf(f.URL), Status: f.Status, ReviewState: f.ReviewState,
		Primary: f.Primary, Health: f.Health, Summary: api.TextOf(f.Summary)}
	if f.Metadata.Set {
		p.Metadata = f.Metadata.Or(json.RawMessage("null"))
	}
	if m := p.Metadata; len(m) > 0 && m[0] != '{' && string(m) != "null" {
		return p, api.Invalid("Invalid metadata: expected an object")
	}
	return p, api.RawBounds(p.Metadata)
}

func ProductRoutes() []api.Route {
	const base, one = "/api/issues/{id}/work-products", "/api/work-products/{id}"
	return []api.Route{
		api.Show(api.Route{Path: base, Tag: "issues", Summary: "List what work on an issue brought forth"},
			api.FindIssue, file.ProductsOf),
		api.Change[file.WorkProduct](api.Route{Method: "POST", Path: base, Tag: "issues", Status: 201,
			Summary: "Note what work on an issue brought forth"}, file.KindProductCreate, api.LocateIssue,
			func(_ *api.Request, issue string, in newProduct) (file.SaveProduct, error) {
				p, err := in.payload()
				p.ID, p.Issue, p.Type, p.Provider, p.Title = api.NewID(), issue, &in.Type, &in.Provider, &in.Title
				return p, err
			}),
		api.Change[file.WorkProduct](api.Route{Path: one, Tag: "issues", Summary: "Change a work product"},
			file.KindProductUpdate, locateProduct,
			func(_ *api.Request, id string, in changedProduct) (file.SaveProduct, error) {
				p, err := in.payload()
				p.ID, p.Type, p.Provider, p.Title = id, in.Type, in.Provider, in.Title
				return p, err
			}),
		api.Remove[file.WorkProduct](api.Route{Path: one, Tag: "issues", Summary: "Delete a work product"},
			file.KindProductDelete, locateProduct,
			func(_ *api.Request, id string) file.DeleteProduct { return file.DeleteProduct{ID: id} }),
	}
}

// locateProduct finds the company of the work product that the path names. An agent sees
// only its own company's.
func locateProduct(rc *api.Request) (of ledger.CompanyID, id string, err error) {
	id = strings.ToLower(rc.Path("id"))
	look := func(tx *ledger.Tx) error {
		w, ok := file.ProductByID(tx, id)
		if !ok || rc.IsAgent() && w.Company != rc.Company {
			return api.NotFound("Work product not found")
		}
		of = w.Company
		return nil
	}
	if err = rc.View(look); err == nil || rc.Read.Mode == ledger.ReadStrong {
		return of, id, err
	}
	rc.Read.Mode = ledger.ReadStrong
	err = rc.View(look)
	return of, id, err
}
