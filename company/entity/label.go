package entity

import (
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Label marks issues of one company. Names are unique regardless of case.
type Label struct {
	ID        string           `cbor:"1,keyasint" json:"id"`
	Company   ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Name      string           `cbor:"3,keyasint" json:"name"`
	Color     string           `cbor:"4,keyasint" json:"color"` // "#rrggbb"
	CreatedAt core.Time        `cbor:"5,keyasint" json:"createdAt"`
	UpdatedAt core.Time        `cbor:"6,keyasint" json:"updatedAt"`
}

var Labels = ledger.NewTable[string, Label]("label")

func LabelCompanyKey(id string) []byte { return ledger.Key("label-company", id) }

// LabelsOf returns the labels of company by name.
func LabelsOf(tx *ledger.Tx, company ledger.CompanyID) []Label {
	out := []Label{}
	for _, l := range Labels.All(tx, company) {
		out = append(out, l)
	}
	slices.SortStableFunc(out, func(a, b Label) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return out
}

// LabelByID returns the label with the given ID in any company.
func LabelByID(tx *ledger.Tx, id string) (Label, bool) {
	company, ok := tx.Get(LabelCompanyKey(id))
	if !ok {
		return Label{}, false
	}
	return Labels.Get(tx, ledger.CompanyID(company), id)
}

// LabelRows returns the labels of i, by ID.
func LabelRows(tx *ledger.Tx, i Issue) []Label {
	out := make([]Label, 0, len(i.Labels))
	for _, id := range i.Labels {
		if l, ok := Labels.Get(tx, i.Company, id); ok {
			out = append(out, l)
		}
	}
	return out
}
