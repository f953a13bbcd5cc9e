package company

import (
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

func checkLabels(tx *ledger.Tx, company ledger.CompanyID, ids []string) error {
	if len(ids) > MaxIssueLabels {
		return ledger.Refuse(ledger.Unprocessable, nil, "An issue can have at most %d labels", MaxIssueLabels)
	}
	for _, id := range ids {
		if !tx.Has(entity.Labels.Key(company, id)) {
			return ledger.Refuse(ledger.Unprocessable, nil, "One or more labels are invalid for this company")
		}
	}
	return nil
}

// CreateLabel is the payload of label.create. The caller chooses the ID.
type CreateLabel struct {
	ID    string `cbor:"1,keyasint"`
	Name  string `cbor:"2,keyasint"`
	Color string `cbor:"3,keyasint"`
}

// ChangeLabel is the payload of label.update: what is nil stays.
type ChangeLabel struct {
	ID    string  `cbor:"1,keyasint"`
	Name  *string `cbor:"2,keyasint,omitempty"`
	Color *string `cbor:"3,keyasint,omitempty"`
}

// DeleteLabel is the payload of label.delete.
type DeleteLabel struct {
	ID string `cbor:"1,keyasint"`
}

const (
	KindLabelCreate = "label.create"
	KindLabelUpdate = "label.update"
	KindLabelDelete = "label.delete"
)

var labelKinds = []Kind{
	{Name: KindLabelCreate, From: FromBoard | FromAgent, Traits: Importable | SeldomWork, Weight: Weights.Task,
		Do: ledger.Typed(createLabel)},
	{Name: KindLabelUpdate, From: FromBoard | FromAgent, Traits: SeldomWork, Weight: Weights.Task,
		Do: ledger.Typed(changeLabel)},
	{Name: KindLabelDelete, From: FromBoard | FromAgent, Traits: SeldomWork, Weight: Weights.Erase,
		Do: ledger.Typed(deleteLabel)},
}

func createLabel(c *ledger.Context, p CreateLabel) (any, error) {
	company := c.Cmd.Company
	if !entity.CompanyExists(c.Tx, company) {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Company not found")
	}
	n := 0
	for _, l := range entity.Labels.All(c.Tx, company) {
		if strings.EqualFold(l.Name, p.Name) {
			return nil, ledger.Refuse(ledger.Conflict, nil, "Label already exists: %s", l.Name)
		}
		n++
	}
	if n >= MaxLabels {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "A company can have at most %d labels", MaxLabels)
	}
	if c.Has(entity.LabelCompanyKey(p.ID)) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "Label ID is taken")
	}
	now := core.TimeOf(c.Now)
	c.Set(entity.LabelCompanyKey(p.ID), []byte(company))
	c.Record(ledger.Change{Action: "label.created", EntityType: "label", EntityID: p.ID,
		Details: core.Object{}.Str("name", p.Name).Str("color", p.Color).Close()})
	return entity.Labels.Put(c.Tx, company, p.ID, entity.Label{ID: p.ID, Company: company, Name: p.Name, Color: p.Color,
		CreatedAt: now, UpdatedAt: now}), nil
}

func changeLabel(c *ledger.Context, p ChangeLabel) (any, error) {
	company := c.Cmd.Company
	l, ok := entity.Labels.Get(c.Tx, company, p.ID)
	if !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Label not found")
	}
	if p.Name != nil {
		for _, other := range entity.Labels.All(c.Tx, company) {
			if other.ID != l.ID && strings.EqualFold(other.Name, *p.Name) {
				return nil, ledger.Refuse(ledger.Conflict, nil, "Label already exists: %s", other.Name)
			}
		}
		l.Name = *p.Name
	}
	if p.Color != nil {
		l.Color = *p.Color
	}
	l.UpdatedAt = core.TimeOf(c.Now)
	c.Record(ledger.Change{Action: "label.updated", EntityType: "label", EntityID: l.ID,
		Details: core.Object{}.Str("name", l.Name).Str("color", l.Color).Close()})
	return entity.Labels.Put(c.Tx, company, l.ID, l), nil
}

// deleteLabel also removes the label from its issues.
func deleteLabel(c *ledger.Context, p DeleteLabel) (any, error) {
	company := c.Cmd.Company
	l, ok := entity.Labels.Get(c.Tx, company, p.ID)
	if !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Label not found")
	}
	n := 0
	for i := range entity.IssuesIn(c.Tx, company, entity.IssuesByLabel.IDs(c.Tx, company, p.ID, false)) {
		if n++; n > entity.MaxSubtree/2 {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "Label is on more than %d issues; take it off some first",
				entity.MaxSubtree/2)
		}
		next := i
		next.Labels = slices.DeleteFunc(slices.Clone(i.Labels), func(id string) bool { return id == p.ID })
		StoreIssue(c.Tx, i, next)
	}
	c.Delete(entity.LabelCompanyKey(p.ID))
	entity.Labels.Delete(c.Tx, company, p.ID)
	c.Record(ledger.Change{Action: "label.deleted", EntityType: "label", EntityID: p.ID,
		Details: core.Object{}.Str("name", l.Name).Str("color", l.Color).Close()})
	return l, nil
}
