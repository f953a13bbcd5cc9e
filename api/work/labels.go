package work

import (
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// createLabel is the body of a new label.
type createLabel struct {
	Name  string `json:"name" minLength:"1" maxLength:"48"`
	Color string `json:"color" pattern:"^#(?:[0-9a-fA-F]{6})$"`
}

// changeLabel is the body of a changed label. What is absent stays.
type changeLabel struct {
	Name  string `json:"name,omitempty" minLength:"1" maxLength:"48"`
	Color string `json:"color,omitempty" pattern:"^#(?:[0-9a-fA-F]{6})$"`
}

// labelAt returns the label that the path names, and its company.
func labelAt(rc *api.Request) (id string, of ledger.CompanyID, err error) {
	id = strings.ToLower(rc.Path("labelId"))
	err = rc.View(func(tx *ledger.Tx) error {
		l, ok := entity.LabelByID(tx, id)
		if !ok || !api.Seen(tx, rc, l.Company) {
			return api.NotFound("Label not found")
		}
		of = l.Company
		return nil
	})
	return id, of, err
}

func LabelRoutes() []api.Route {
	return []api.Route{{
		Method: "GET", Path: "/api/companies/{companyId}/labels", Tag: "issues", Summary: "List labels",
		Out: []entity.Label{},
		Handle: func(rc *api.Request) (r api.Response, err error) {
			err = rc.View(func(tx *ledger.Tx) error {
				if !entity.CompanyExists(tx, api.CompanyID(rc)) {
					return api.NotFound("Company not found")
				}
				r = api.OK(entity.LabelsOf(tx, api.CompanyID(rc)))
				return nil
			})
			return r, err
		},
	}, {
		Method: "POST", Path: "/api/companies/{companyId}/labels", Tag: "issues", Summary: "Create a label",
		In: createLabel{}, Out: entity.Label{}, Status: 201,
		Handle: func(rc *api.Request) (api.Response, error) {
			in, err := api.Body[createLabel](rc)
			if err != nil {
				return api.Response{}, err
			}
			l, err := api.Do[entity.Label](rc, company.KindLabelCreate, api.CompanyID(rc), company.CreateLabel{ID: api.NewID(),
				Name: in.Name, Color: in.Color})
			return api.OK(l), err
		},
	}, {
		Method: "PATCH", Path: "/api/labels/{labelId}", Tag: "issues", Summary: "Rename or recolour a label",
		In: changeLabel{}, Out: entity.Label{},
		Handle: func(rc *api.Request) (api.Response, error) {
			in, err := api.Body[changeLabel](rc)
			if err != nil {
				return api.Response{}, err
			}
			id, of, err := labelAt(rc)
			if err != nil {
				return api.Response{}, err
			}
			p := company.ChangeLabel{ID: id}
			if in.Name != "" {
				p.Name = &in.Name
			}
			if in.Color != "" {
				p.Color = &in.Color
			}
			l, err := api.Do[entity.Label](rc, company.KindLabelUpdate, of, p)
			return api.OK(l), err
		},
	}, {
		Method: "DELETE", Path: "/api/labels/{labelId}", Tag: "issues", Summary: "Delete a label and take it off its issues",
		Out: entity.Label{},
		Handle: func(rc *api.Request) (api.Response, error) {
			id, of, err := labelAt(rc)
			if err != nil {
				return api.Response{}, err
			}
			l, err := api.Do[entity.Label](rc, company.KindLabelDelete, of, company.DeleteLabel{ID: id})
			return api.OK(l), err
		},
	}}
}
