package company

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// Settings are one section of the instance's settings, as an object with the values that
// differ from the defaults. All nodes have the same.
type Settings struct {
	Values    json.RawMessage `cbor:"1,keyasint"`
	UpdatedAt core.Time       `cbor:"2,keyasint"`
}

// Clone returns a copy that shares no memory with s.
func (s Settings) Clone() Settings {
	s.Values = slices.Clone(s.Values)
	return s
}

// A SidebarOrder is the order in which a user sees the items of a sidebar.
type SidebarOrder struct {
	Ordered   []string  `cbor:"1,keyasint" json:"orderedIds"`
	UpdatedAt core.Time `cbor:"2,keyasint" json:"updatedAt"`
}

// Clone returns a copy that shares no memory with o.
func (o SidebarOrder) Clone() SidebarOrder {
	o.Ordered = slices.Clone(o.Ordered)
	return o
}

var (
	settings        = ledger.NewMeshTable[string, Settings]("settings")
	sidebarOrders   = ledger.NewMeshTable[string, SidebarOrder]("sidebar")
	companySidebars = ledger.NewTable[string, SidebarOrder]("sidebar")
)

const (
	// MaxSettings bounds a section of the settings, in bytes.
	MaxSettings = 16 << 10
	// MaxOrdered bounds the items of a sidebar order.
	MaxOrdered = 2_000
)

// SettingsSections lists all sections.
var SettingsSections = []string{"general", "experimental", "instance"}

// PatchSettings is the payload of instance.settings. The API has checked the types of
// Values.
type PatchSettings struct {
	Section string          `cbor:"1,keyasint"`
	Values  json.RawMessage `cbor:"2,keyasint"` // merged into the stored ones
}

// OrderSidebar is the payload of sidebar.order. It orders the actor's own sidebar in the
// command's company, or without a company the list of companies.
type OrderSidebar struct {
	Ordered []string `cbor:"1,keyasint"`
}

const (
	KindInstanceSettings = "instance.settings"
	KindSidebarOrder     = "sidebar.order"
)

var settingKinds = []Kind{
	{Name: KindInstanceSettings, From: FromBoard, Traits: EndsKeys, Weight: Weights.MeshSettings,
		Do: ledger.Typed(patchSettings)},
	{Name: KindSidebarOrder, From: FromBoard, Traits: Personal, Weight: Weights.Marks, Do: ledger.Typed(orderSidebar)},
}

// SettingsOf returns a section; Values is nil when nothing was changed.
func SettingsOf(tx *ledger.Tx, section string) Settings {
	s, _ := settings.Get(tx, section)
	return s
}

// SidebarOf returns the order of user's sidebar in a company, or with "" of the list of
// companies.
func SidebarOf(tx *ledger.Tx, company ledger.CompanyID, user string) SidebarOrder {
	var o SidebarOrder
	if key := core.HashedUser(user); company == "" {
		o, _ = sidebarOrders.Get(tx, key)
	} else {
		o, _ = companySidebars.Get(tx, company, key)
	}
	if o.Ordered == nil {
		o.Ordered = []string{}
	}
	return o
}

func patchSettings(c *ledger.Context, p PatchSettings) (any, error) {
	if !slices.Contains(SettingsSections, p.Section) {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Settings not found")
	}
	values, err := core.CheckObject("settings", p.Values, MaxSettings)
	if err != nil {
		return nil, err
	}
	s, _ := settings.Get(c.Tx, p.Section)
	s.Values, s.UpdatedAt = core.MergeObjects(s.Values, values), core.TimeOf(c.Now)
	if len(s.Values) > MaxSettings {
		return nil, ledger.Refuse(ledger.TooLarge, nil, "The settings are longer than %d bytes", MaxSettings)
	}
	settings.Put(c.Tx, p.Section, s)
	v, _ := core.ParseJSON(values)
	m, _ := v.(map[string]any)
	c.Record(ledger.Change{Action: "instance.settings." + p.Section + "_updated", EntityType: "instance_settings",
		EntityID: p.Section,
		Details:  core.Object{}.List("changedKeys", slices.Sorted(maps.Keys(m))).Close()})
	return nil, nil
}

func orderSidebar(c *ledger.Context, p OrderSidebar) (any, error) {
	if len(p.Ordered) > MaxOrdered {
		return nil, ledger.Refuse(ledger.TooLarge, nil, "A sidebar has at most %d entries", MaxOrdered)
	}
	for _, id := range p.Ordered {
		if !core.IsID(id) {
			return nil, ledger.Refuse(ledger.Invalid, nil, "orderedIds: a UUID is needed")
		}
	}
	o := SidebarOrder{Ordered: core.Unique(p.Ordered), UpdatedAt: core.TimeOf(c.Now)}
	user := c.Cmd.Actor.ID
	if of := c.Cmd.Company; of == "" {
		sidebarOrders.Put(c.Tx, core.HashedUser(user), o)
	} else {
		companySidebars.Put(c.Tx, of, core.HashedUser(user), o)
	}
	c.Record(ledger.Change{Action: "sidebar_preferences.updated", EntityType: "user", EntityID: user})
	return nil, nil
}
