package company

import (
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Label marks issues of one company. Names are unique, upper or lower case.
type Label struct {
	ID        string    `cbor:"1,keyasint" json:"id"`
	Company   string    `cbor:"2,keyasint" json:"companyId"`
	Name      string    `cbor:"3,keyasint" json:"name"`
	Color     string    `cbor:"4,keyasint" json:"color"` // "#rrggbb"
	CreatedAt core.Time `cbor:"5,keyasint" json:"createdAt"`
	UpdatedAt core.Time `cbor:"6,keyasint" json:"updatedAt"`
}

var Labels = ledger.NewTable[Label]("label")

func LabelCompanyKey(id string) []byte { return ledger.Key("label-company", id) }

// LabelsOf returns the labels of company by name.
func LabelsOf(tx *ledger.Tx, company string) []Label {
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
	return Labels.Get(tx, string(company), id)
}

// LabelRows returns the labels that i carries, by ID.
func LabelRows(tx *ledger.Tx, i Issue) []Label {
	out := make([]Label, 0, len(i.Labels))
	for _, id := range i.Labels {
		if l, ok := Labels.Get(tx, i.Company, id); ok {
			out = append(out, l)
		}
	}
	return out
}

func checkLabels(tx *ledger.Tx, company string, ids []string) error {
	if len(ids) > MaxIssueLabels {
		return ledger.Refuse(ledger.Unprocessable, nil, "An issue can have at most %d labels", MaxIssueLabels)
	}
	for _, id := range ids {
		if !tx.Has(Labels.Key(company, id)) {
			return ledger.Refuse(ledger.Unprocessable, nil, "One or more labels are invalid for this company")
		}
	}
	return nil
}

// CreateLabel is the payload of label.create. The ID is the caller's.
type CreateLabel struct {
	ID    string `cbor:"1,keyasint"`
	Name  string `cbor:"2,keyasint"`
	Color string `cbor:"3,keyasint"`
}

// DeleteLabel is the payload of label.delete.
type DeleteLabel struct {
	ID string `cbor:"1,keyasint"`
}

const (
	KindLabelCreate = "label.create"
	KindLabelDelete = "label.delete"
)

var labelKinds = []Kind{
	{Name: KindLabelCreate, From: FromBoard | FromAgent, Traits: Importable | SeldomWork, Do: ledger.Typed(createLabel)},
	{Name: KindLabelDelete, From: FromBoard | FromAgent, Traits: SeldomWork, Do: ledger.Typed(deleteLabel)},
}

func createLabel(c *ledger.Context, p CreateLabel) (any, error) {
	company := c.Cmd.Company
	if !CompanyExists(c.Tx, company) {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Company not found")
	}
	n := 0
	for _, l := range Labels.All(c.Tx, company) {
		if strings.EqualFold(l.Name, p.Name) {
			return nil, ledger.Refuse(ledger.Conflict, nil, "Label already exists: %s", l.Name)
		}
		n++
	}
	if n >= MaxLabels {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "A company can have at most %d labels", MaxLabels)
	}
	if c.Has(LabelCompanyKey(p.ID)) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "Label ID is taken")
	}
	now := core.TimeOf(c.Now)
	c.Set(LabelCompanyKey(p.ID), []byte(company))
	c.Record(ledger.Change{Action: "label.created", EntityType: "label", EntityID: p.ID,
		Details: core.Object{}.Str("name", p.Name).Str("color", p.Color).Close()})
	return Labels.Put(c.Tx, company, p.ID, Label{p.ID, company, p.Name, p.Color, now, now}), nil
}

// deleteLabel takes the label off its issues too.
func deleteLabel(c *ledger.Context, p DeleteLabel) (any, error) {
	company := c.Cmd.Company
	l, ok := Labels.Get(c.Tx, company, p.ID)
	if !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Label not found")
	}
	n := 0
	for i := range IssuesIn(c.Tx, company, IssuesByLabel.IDs(c.Tx, company, p.ID, false)) {
		if n++; n > MaxSubtree/2 {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "Label is on more than %d issues; take it off some first", MaxSubtree/2)
		}
		next := i
		next.Labels = slices.DeleteFunc(slices.Clone(i.Labels), func(id string) bool { return id == p.ID })
		StoreIssue(c.Tx, i, next)
	}
	c.Delete(LabelCompanyKey(p.ID))
	Labels.Delete(c.Tx, company, p.ID)
	c.Record(ledger.Change{Action: "label.deleted", EntityType: "label", EntityID: p.ID,
		Details: core.Object{}.Str("name", l.Name).Str("color", l.Color).Close()})
	return l, nil
}
