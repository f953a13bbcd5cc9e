package mesh

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// patchGeneral is the body that changes the general settings.
type patchGeneral struct {
	_                 struct{}       `additionalProperties:"false"`
	CensorUsername    *bool          `json:"censorUsernameInLogs,omitempty" nullable:"false"`
	KeyboardShortcuts *bool          `json:"keyboardShortcuts,omitempty" nullable:"false"`
	DataSharing       *string        `json:"feedbackDataSharingPreference,omitempty" enum:"allowed,not_allowed,prompt" nullable:"false"`
	BackupRetention   *keepRetention `json:"backupRetention,omitempty" nullable:"false"`
	ExecutionMode     *string        `json:"executionMode,omitempty" enum:"kubernetes,any" nullable:"false"`
	RunLogs           *keepLogs      `json:"runLogRetention,omitempty" nullable:"false"`
	RunEvents         *keepEvents    `json:"runEventRetention,omitempty" nullable:"false"`
	SignUps           *string        `json:"signUps,omitempty" enum:"open,invited,closed" nullable:"false"`
}

// patchExperimental changes flags; one that is not known is refused.
type patchExperimental struct {
	_ struct{} `additionalProperties:"false"`
	flags[*bool]
}

// keepLogs says how long run logs are kept, and how many bytes of them.
type keepLogs struct {
	_     struct{} `additionalProperties:"false"`
	Days  int64    `json:"days" minimum:"0" maximum:"3650"`
	Bytes int64    `json:"maxBytes" minimum:"0" maximum:"1099511627776"`
}

// keepEvents says how long run events are kept.
type keepEvents struct {
	_    struct{} `additionalProperties:"false"`
	Days int64    `json:"days" minimum:"1" maximum:"3650"`
}

// patchInstance is the body that changes settings outside the sections.
type patchInstance struct {
	_           struct{}        `additionalProperties:"false"`
	Environment api.Opt[string] `json:"defaultEnvironmentId" format:"uuid"`
}

// keepRetention says how long backups are to be kept.
type keepRetention struct {
	_      struct{} `additionalProperties:"false"`
	Days   int      `json:"dailyDays" minimum:"0" maximum:"3650"`
	Weeks  int      `json:"weeklyWeeks" minimum:"0" maximum:"520"`
	Months int      `json:"monthlyMonths" minimum:"0" maximum:"120"`
}

// orderBody is the body that orders a sidebar.
type orderBody struct {
	Ordered []string `json:"orderedIds" format:"uuid" maxItems:"2000"`
}

func SettingsRoutes() []api.Route {
	const tag, root, mine = "system", "/api/instance/settings", "/sidebar-preferences/me"
	return []api.Route{
		{Method: "GET", Path: root, Tag: tag, Summary: "Read all settings", Who: api.Board, Out: allSettings{},
			Handle: func(rc *api.Request) (api.Response, error) {
				return readInstance(rc)
			}},
		{Method: "PATCH", Path: root, Tag: tag, Summary: "Choose the environment of runs", Who: api.Admin,
			In: patchInstance{}, Out: allSettings{}, Handle: updateInstance},
		{Method: "GET", Path: root + "/general", Tag: tag, Summary: "Read the general settings", Who: api.Board,
			Out: general{}, Handle: readGeneral},
		{Method: "PATCH", Path: root + "/general", Tag: tag, Summary: "Change the general settings", Who: api.Board,
			In: patchGeneral{}, Out: general{}, Handle: updateGeneral},
		{Method: "GET", Path: root + "/experimental", Tag: tag, Summary: "Read which parts of the board are on",
			Who: api.Board, Out: experimental{}, Handle: readExperimental},
		{Method: "PATCH", Path: root + "/experimental", Tag: tag, Summary: "Change which parts of the board are on",
			Who: api.Board, In: patchExperimental{}, Out: experimental{}, Handle: updateExperimental},
		{Method: "GET", Path: "/api" + mine, Tag: tag, Summary: "Read the order of the sidebar", Who: api.Board,
			Out: company.SidebarOrder{}, Handle: readSidebar},
		{Method: "PUT", Path: "/api" + mine, Tag: tag, Summary: "Order the sidebar", Who: api.Board, In: orderBody{},
			Out: company.SidebarOrder{}, Handle: orderSidebar},
		{Method: "GET", Path: "/api/companies/{companyId}" + mine, Tag: tag, Summary: "Read the order of a company's sidebar",
			Who: api.Board, Out: company.SidebarOrder{}, Handle: readSidebar},
		{Method: "PUT", Path: "/api/companies/{companyId}" + mine, Tag: tag, Summary: "Order a company's sidebar",
			Who: api.Board, In: orderBody{}, Out: company.SidebarOrder{}, Handle: orderSidebar},
	}
}

// readSettings returns the defaults overlaid with the stored changes.
func readSettings(rc *api.Request) (g general, e experimental, err error) {
	g, e = generalSettings, experimentalSettings
	err = rc.View(func(tx *ledger.Tx) error {
		for section, into := range map[string]any{"general": &g, "experimental": &e} {
			if values := company.SettingsOf(tx, section).Values; len(values) > 0 {
				if err := json.Unmarshal(values, into); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return g, e, err
}

func readInstance(rc *api.Request) (api.Response, error) {
	var of struct {
		Environment *string `json:"defaultEnvironmentId"`
	}
	err := rc.View(func(tx *ledger.Tx) error {
		if values := company.SettingsOf(tx, "instance").Values; len(values) > 0 {
			return json.Unmarshal(values, &of)
		}
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	g, e, err := readSettings(rc)
	return api.OK(allSettings{g, e, of.Environment}), err
}

// updateInstance accepts the built-in environment, or none.
func updateInstance(rc *api.Request) (api.Response, error) {
	in, err := api.Body[patchInstance](rc)
	if err != nil {
		return api.Response{}, err
	}
	if !in.Environment.Set {
		return readInstance(rc)
	}
	id := api.BodyID(in.Environment)
	if id != "" && id != entity.LocalEnvironment.ID {
		return api.Response{}, api.Unprocessable("No environment of the whole instance has this ID", nil)
	}
	values, err := json.Marshal(map[string]any{"defaultEnvironmentId": in.Environment.Pointer()})
	if err != nil {
		return api.Response{}, err
	}
	if _, err := rc.Submit(company.KindInstanceSettings, "", company.PatchSettings{Section: "instance",
		Values: values}); err != nil {
		return api.Response{}, err
	}
	return readInstance(rc)
}

func readGeneral(rc *api.Request) (api.Response, error) {
	g, _, err := readSettings(rc)
	return api.OK(g), err
}

func readExperimental(rc *api.Request) (api.Response, error) {
	_, e, err := readSettings(rc)
	return api.OK(e), err
}

func updateGeneral(rc *api.Request) (api.Response, error) {
	in, err := api.Body[patchGeneral](rc)
	if err != nil {
		return api.Response{}, err
	}
	values, err := json.Marshal(in)
	if err != nil {
		return api.Response{}, err
	}
	if _, err := rc.Submit(company.KindInstanceSettings, "", company.PatchSettings{Section: "general",
		Values: values}); err != nil {
		return api.Response{}, err
	}
	return readGeneral(rc)
}

// updateExperimental changes the flags that are named.
func updateExperimental(rc *api.Request) (api.Response, error) {
	in, err := api.Body[patchExperimental](rc)
	if err != nil {
		return api.Response{}, err
	}
	var changed map[string]*bool
	values, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(values, &changed)
	}
	if err != nil {
		return api.Response{}, err
	}
	maps.DeleteFunc(changed, func(_ string, v *bool) bool { return v == nil })
	if values, err = json.Marshal(changed); err != nil {
		return api.Response{}, err
	}
	if _, err := rc.Submit(company.KindInstanceSettings, "", company.PatchSettings{Section: "experimental",
		Values: values}); err != nil {
		return api.Response{}, err
	}
	return readExperimental(rc)
}

// readSidebar answers the caller's order; for a path with a company, that company's.
func readSidebar(rc *api.Request) (r api.Response, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		of := api.CompanyID(rc)
		if _, ok := entity.CompanyOf(tx, of); of != "" && !ok {
			return api.NotFound("Company not found")
		}
		r = api.OK(company.SidebarOf(tx, of, rc.Actor.ID))
		return nil
	})
	return r, err
}

func orderSidebar(rc *api.Request) (api.Response, error) {
	in, err := api.Body[orderBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	p := company.OrderSidebar{}
	for _, id := range in.Ordered {
		p.Ordered = append(p.Ordered, strings.ToLower(id))
	}
	if _, err := rc.Submit(company.KindSidebarOrder, api.CompanyID(rc), p); err != nil {
		return api.Response{}, err
	}
	return readSidebar(rc)
}
