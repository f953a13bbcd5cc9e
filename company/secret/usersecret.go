package secret

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A UserSecretDefinition names a secret for which each user has their own value. A variable
// refers to it by key; a run gets the value of the user for whom it acts.
type UserSecretDefinition struct {
	ID        string           `cbor:"1,keyasint" json:"id"`
	Company   ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Key       string           `cbor:"3,keyasint" json:"key"`
	Name      string           `cbor:"4,keyasint" json:"name"`
	Status    string           `cbor:"5,keyasint" json:"status"` // active, disabled, archived
	Guidance  core.NullText    `cbor:"6,keyasint,omitempty" json:"usageGuidance"`
	ByUser    core.NullText    `cbor:"7,keyasint,omitempty" json:"createdByUserId"`
	CreatedAt core.Time        `cbor:"8,keyasint" json:"createdAt"`
	UpdatedAt core.Time        `cbor:"9,keyasint" json:"updatedAt"`
}

var userSecretDefinitions = ledger.NewTable[string, UserSecretDefinition]("user-secret-definition")

// MaxUserSecretDefinitions bounds the definitions of a company.
const MaxUserSecretDefinitions = 200

// SaveUserSecretDefinition is the payload of user_secret.define. With the ID of an existing
// definition it changes that one; a nil field keeps the value.
type SaveUserSecretDefinition struct {
	ID       string  `cbor:"1,keyasint"`
	Key      string  `cbor:"2,keyasint,omitempty"` // for a new definition
	Name     *string `cbor:"3,keyasint,omitempty"`
	Status   *string `cbor:"4,keyasint,omitempty"`
	Guidance *string `cbor:"5,keyasint,omitempty"`
}

const (
	KindUserSecretDefine   = "user_secret.define"
	KindUserSecretRedefine = "user_secret.redefine"
	KindUserSecretUndefine = "user_secret.undefine"
)

var userSecretKinds = []company.Kind{
	{Name: KindUserSecretDefine, From: company.FromBoard, Traits: company.Importable, Weight: company.Weights.Sealing,
		Do: ledger.Typed(defineUserSecret)},
	{Name: KindUserSecretRedefine, From: company.FromBoard, Weight: company.Weights.Sealing,
		Do: ledger.Typed(redefineUserSecret)},
	{Name: KindUserSecretUndefine, From: company.FromBoard, Weight: company.Weights.Erase,
		Do: ledger.Typed(undefineUserSecret)},
}

// UserSecretDefinitionOf returns a definition by ID.
func UserSecretDefinitionOf(tx *ledger.Tx, company ledger.CompanyID, id string) (UserSecretDefinition, bool) {
	if !core.IsID(id) {
		return UserSecretDefinition{}, false
	}
	return userSecretDefinitions.Get(tx, company, id)
}

// UserSecretDefinitionsOf returns the definitions of company, the newest first.
func UserSecretDefinitionsOf(tx *ledger.Tx, company ledger.CompanyID) []UserSecretDefinition {
	out := []UserSecretDefinition{}
	for _, d := range userSecretDefinitions.All(tx, company) {
		out = append(out, d)
	}
	slices.SortStableFunc(out, func(a, b UserSecretDefinition) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return out
}

// UserSecretDefinitionByKey returns the definition with a key.
func UserSecretDefinitionByKey(tx *ledger.Tx, company ledger.CompanyID, key string) (UserSecretDefinition, bool) {
	for _, d := range userSecretDefinitions.All(tx, company) {
		if strings.EqualFold(d.Key, key) {
			return d, true
		}
	}
	return UserSecretDefinition{}, false
}

// UserSecret returns a user's secret for a definition.
func UserSecret(tx *ledger.Tx, company ledger.CompanyID, definition, user string) (Secret, bool) {
	for id := range userSecretIndex.IDs(tx, company, definition+"."+url.PathEscape(user), false) {
		return Secrets.Get(tx, company, id)
	}
	return Secret{}, false
}

func (d UserSecretDefinition) check() error {
	switch {
	case strings.TrimSpace(d.Name) == "":
		return ledger.Refuse(ledger.Invalid, nil, "A definition needs a name")
	case len(d.Name) > entity.MaxName || len(d.Guidance) > 4_000:
		return ledger.Refuse(ledger.TooLarge, nil, "The definition's text is too long")
	case !slices.Contains([]string{"active", "disabled", "archived"}, d.Status):
		return ledger.Refuse(ledger.Invalid, nil, "Unknown status of a definition: %s", d.Status)
	}
	return conceal.CheckSecretKey(d.Key)
}

func errNoDefinition() error {
	return ledger.Refuse(ledger.NotFound, nil, "User secret definition not found")
}

func defineUserSecret(c *ledger.Context, p SaveUserSecretDefinition) (any, error) {
	row, err := company.Present(c)
	if err != nil {
		return nil, err
	}
	if err := core.CheckNewID(c.Tx, p.ID); err != nil {
		return nil, err
	}
	now := core.TimeOf(c.Now)
	d := UserSecretDefinition{ID: p.ID, Company: row.ID, Key: p.Key, Status: "active",
		ByUser: core.NullText(c.Cmd.Actor.ID), CreatedAt: now, UpdatedAt: now}
	if d, err = d.with(p); err != nil {
		return nil, err
	}
	if _, ok := UserSecretDefinitionByKey(c.Tx, row.ID, d.Key); ok {
		return nil, ledger.Refuse(ledger.Conflict, nil, "User secret definition already exists: %s", d.Key)
	}
	if err := core.HasRoom(userSecretDefinitions.All(c.Tx, row.ID), MaxUserSecretDefinitions,
		"user secret definitions"); err != nil {
		return nil, err
	}
	return d.store(c, "user_secret_definition.created")
}

func (d UserSecretDefinition) with(p SaveUserSecretDefinition) (UserSecretDefinition, error) {
	core.Assign(&d.Name, p.Name)
	core.Assign(&d.Status, p.Status)
	core.AssignText(&d.Guidance, p.Guidance)
	return d, d.check()
}

func (d UserSecretDefinition) store(c *ledger.Context, action string) (any, error) {
	userSecretDefinitions.Put(c.Tx, d.Company, d.ID, d)
	c.Record(ledger.Change{Action: action, EntityType: "user_secret_definition", EntityID: d.ID,
		Details: core.Object{}.Str("key", d.Key).Str("name", d.Name).Close()})
	return d, nil
}

func redefineUserSecret(c *ledger.Context, p SaveUserSecretDefinition) (any, error) {
	d, ok := UserSecretDefinitionOf(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return nil, errNoDefinition()
	}
	d, err := d.with(p)
	if err != nil {
		return nil, err
	}
	d.UpdatedAt = core.TimeOf(c.Now)
	return d.store(c, "user_secret_definition.updated")
}

// undefineUserSecret deletes a definition for which no user has a value.
func undefineUserSecret(c *ledger.Context, p DropSecret) (any, error) {
	d, ok := UserSecretDefinitionOf(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return nil, errNoDefinition()
	}
	for _, s := range Secrets.All(c.Tx, d.Company) {
		if string(s.Definition) == d.ID {
			return nil, ledger.Refuse(ledger.Conflict, nil, "Users have values for %s; archive it instead", d.Key)
		}
	}
	userSecretDefinitions.Delete(c.Tx, d.Company, d.ID)
	c.Record(ledger.Change{Action: "user_secret_definition.deleted", EntityType: "user_secret_definition", EntityID: d.ID,
		Details: core.Object{}.Str("key", d.Key).Close()})
	return nil, nil
}
