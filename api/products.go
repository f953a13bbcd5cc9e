package api

import (
	"encoding/json"
	"strings"

	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/ledger"
)

// newProduct is the body of a work product, changedProduct that of a change.
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
	Project            Opt[string]          `json:"projectId" format:"uuid"`
	ExecutionWorkspace Opt[string]          `json:"executionWorkspaceId" format:"uuid"`
	RuntimeService     Opt[string]          `json:"runtimeServiceId" format:"uuid"`
	External           Opt[string]          `json:"externalId" maxLength:"500"`
	URL                Opt[string]          `json:"url" format:"uri" maxLength:"4000"`
	Status             *string              `json:"status,omitempty" enum:"active,ready_for_review,approved,changes_requested,merged,closed,failed,archived,draft" nullable:"false"`
	ReviewState        *string              `json:"reviewState,omitempty" enum:"none,needs_board_review,approved,changes_requested" nullable:"false"`
	Primary            *bool                `json:"isPrimary,omitempty" nullable:"false"`
	Health             *string              `json:"healthStatus,omitempty" enum:"unknown,healthy,unhealthy" nullable:"false"`
	Summary            Opt[string]          `json:"summary" maxLength:"10000"`
	Metadata           Opt[json.RawMessage] `json:"metadata" maxBytes:"16000"`
}

func (f productFields) payload() (file.SaveProduct, error) {
	p := file.SaveProduct{Project: idPointer(f.Project), ExecutionWorkspace: idPointer(f.ExecutionWorkspace), RuntimeService: idPointer(f.RuntimeService),
		External: textOf(f.External), URL: textOf(f.URL), Status: f.Status, ReviewState: f.ReviewState, Primary: f.Primary, Health: f.Health, Summary: textOf(f.Summary)}
	if f.Metadata.Set {
		p.Metadata = f.Metadata.Or(json.RawMessage("null"))
	}
	if m := p.Metadata; len(m) > 0 && m[0] != '{' && string(m) != "null" {
		return p, Invalid("Invalid metadata: expected an object")
	}
	return p, rawBounds(p.Metadata)
}

func productRoutes() []Route {
	const base, one = "/api/issues/{id}/work-products", "/api/work-products/{id}"
	return []Route{
		{Method: "GET", Path: base, Tag: "issues", Summary: "List what work on an issue brought forth", Out: []file.WorkProduct{}, Handle: func(rc *Request) (Response, error) {
			return viewed(rc, func(tx *ledger.Tx) ([]file.WorkProduct, error) {
				i, err := findIssue(tx, rc)
				if err != nil {
					return nil, err
				}
				return file.ProductsOf(tx, i), nil
			})
		}},
		{Method: "POST", Path: base, Tag: "issues", Summary: "Note what work on an issue brought forth", In: newProduct{}, Out: file.WorkProduct{}, Status: 201, Handle: createProduct},
		{Method: "PATCH", Path: one, Tag: "issues", Summary: "Change a work product", In: changedProduct{}, Out: file.WorkProduct{}, Handle: changeProduct},
		{Method: "DELETE", Path: one, Tag: "issues", Summary: "Delete a work product", Out: file.WorkProduct{}, Handle: func(rc *Request) (Response, error) {
			of, id, err := locateProduct(rc)
			if err != nil {
				return Response{}, err
			}
			w, err := Do[file.WorkProduct](rc, file.KindProductDelete, of, file.DeleteProduct{ID: id})
			return OK(w), err
		}},
	}
}

func createProduct(rc *Request) (Response, error) {
	in, err := Body[newProduct](rc)
	if err != nil {
		return Response{}, err
	}
	p, err := in.payload()
	if err != nil {
		return Response{}, err
	}
	of, issue, err := locateIssue(rc)
	if err != nil {
		return Response{}, err
	}
	p.ID, p.Issue, p.Type, p.Provider, p.Title = NewID(), issue, &in.Type, &in.Provider, &in.Title
	w, err := Do[file.WorkProduct](rc, file.KindProductCreate, of, p)
	return OK(w), err
}

func changeProduct(rc *Request) (Response, error) {
	in, err := Body[changedProduct](rc)
	if err != nil {
		return Response{}, err
	}
	p, err := in.payload()
	if err != nil {
		return Response{}, err
	}
	of, id, err := locateProduct(rc)
	if err != nil {
		return Response{}, err
	}
	p.ID, p.Type, p.Provider, p.Title = id, in.Type, in.Provider, in.Title
	w, err := Do[file.WorkProduct](rc, file.KindProductUpdate, of, p)
	return OK(w), err
}

// locateProduct finds the company of the work product that the path names. An
// agent sees those of its own company only.
func locateProduct(rc *Request) (of, id string, err error) {
	id = strings.ToLower(rc.Path("id"))
	look := func(tx *ledger.Tx) error {
		w, ok := file.ProductByID(tx, id)
		if !ok || rc.IsAgent() && w.Company != rc.Company {
			return NotFound("Work product not found")
		}
		of = w.Company
		return nil
	}
	if err = rc.View(look); err == nil || rc.read.Mode == ledger.ReadStrong {
		return of, id, err
	}
	rc.read.Mode = ledger.ReadStrong
	err = rc.View(look)
	return of, id, err
}
