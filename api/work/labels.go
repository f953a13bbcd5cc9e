package work

import (
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

// labelIn returns the label that the path names.
func labelIn(tx *ledger.Tx, rc *api.Request) (entity.Label, error) {
	l, ok := entity.LabelByID(tx, api.PathID(rc, "labelId"))
	if !ok || !api.Seen(tx, rc, l.Company) {
		return l, api.NotFound("Label not found")
	}
	return l, nil
}

func LabelRoutes() []api.Route {
	const tag, all, one = "issues", "/api/companies/{companyId}/labels", "/api/labels/{labelId}"
	at := api.Located(labelIn, func(l entity.Label) (ledger.CompanyID, string) { return l.Company, l.ID })
	return []api.Route{
		api.List(api.Route{Path: all, Tag: tag, Summary: "List labels"}, entity.LabelsOf),
		api.Create[entity.Label](api.Route{Path: all, Tag: tag, Summary: "Create a label"}, company.KindLabelCreate,
			func(_ *api.Request, in createLabel) (company.CreateLabel, error) {
				return company.CreateLabel{ID: api.NewID(), Name: in.Name, Color: in.Color}, nil
			}),
		api.Change[entity.Label](api.Route{Path: one, Tag: tag, Summary: "Rename or recolour a label"},
			company.KindLabelUpdate, at, func(_ *api.Request, id string, in changeLabel) (company.ChangeLabel, error) {
				return company.ChangeLabel{ID: id, Name: api.Given[string](in.Name), Color: api.Given[string](in.Color)}, nil
			}),
		api.Remove[entity.Label](api.Route{Path: one, Tag: tag, Summary: "Delete a label and take it off its issues"},
			company.KindLabelDelete, at, func(_ *api.Request, id string) company.DeleteLabel {
				return company.DeleteLabel{ID: id}
			}),
	}
}
