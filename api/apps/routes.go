// Package apps serves the apps of companies: installing, upgrading and removing them.
package apps

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/app"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/plugin"
)

// maxBody bounds a body with an archive in base64.
const maxBody = plugin.MaxArchive*4/3 + 256<<10

// Routes are the rows of apps.
func Routes() []api.Route {
	const tag, at = "apps", "/api/companies/{companyId}/apps"
	change := func(method, path, summary string, handle func(*api.Request) (api.Response, error)) api.Route {
		return api.Route{Method: method, Path: at + path, Tag: tag, Summary: summary, Who: api.Board, Out: AppRow{},
			Handle: handle}
	}
	return append(serviceRoutes(), []api.Route{
		{Method: "GET", Path: at, Tag: tag, Summary: "List the installed apps of a company", Out: []AppRow{}, Handle: list},
		{Method: "POST", Path: at, Tag: tag, Summary: "Install a signed app, and grant what it asks for", Who: api.Board,
			In: appInstallBody{}, Out: AppRow{}, Status: 201,
			MaxBody: maxBody, Timeout: api.PackageTimeout, Once: true, Handle: install},
		{Method: "POST", Path: at + "/preview", Tag: tag, Summary: "Check a signed app, and tell what it brings and asks for",
			Who: api.Board, In: appArchiveBody{}, Out: appPreview{},
			MaxBody: maxBody, Timeout: api.PackageTimeout, Handle: look},
		{Method: "GET", Path: at + "/{app}", Tag: tag, Summary: "Read an app by name or ID", Out: AppRow{}, Handle: read},
		{Method: "POST", Path: at + "/{app}/upgrade", Tag: tag, Summary: "Upgrade an app to another signed version",
			Who: api.Board, In: appUpgradeBody{}, Out: AppRow{},
			MaxBody: maxBody, Timeout: api.PackageTimeout, Once: true, Handle: upgrade},
		change("POST", "/{app}/start", "Start an app: its agents and routines work", start),
		change("POST", "/{app}/stop", "Stop an app: its agents are paused, its routines rest", stop),
		change("POST", "/{app}/rollback", "Take an app back to the version before its upgrade", rollback),
		change("DELETE", "/{app}", "Remove an app: its agents end, its routines and skills are deleted", remove),
	}...)
}

type (
	appArchiveBody struct {
		Archive string `json:"archive" minLength:"1" maxLength:"11200000" doc:"the signed archive, in base64"`
	}
	appInstallBody struct {
		Archive  string          `json:"archive" minLength:"1" maxLength:"11200000" doc:"the signed archive, in base64"`
		Settings json.RawMessage `json:"settings,omitempty" maxBytes:"65536" doc:"values of its settings, by name"`
		Grant    []string        `json:"grant,omitempty" maxItems:"200" maxLength:"500" doc:"all capabilities that the preview names"`
		Stopped  bool            `json:"stopped,omitempty" doc:"install it and do not start it"`
	}
	appUpgradeBody struct {
		Archive   string          `json:"archive" minLength:"1" maxLength:"11200000" doc:"the signed archive, in base64"`
		Settings  json.RawMessage `json:"settings,omitempty" maxBytes:"65536" doc:"values of settings that change, by name"`
		Grant     []string        `json:"grant,omitempty" maxItems:"200" maxLength:"500" doc:"all capabilities that the preview names"`
		Rollback  bool            `json:"rollback,omitempty" doc:"also to an older version, or the same"`
		NewSigner bool            `json:"newSigner,omitempty" doc:"also if it is signed with another key than the version in use"`
	}
	// appPreview is what an archive brings and asks for.
	appPreview struct {
		Name         string            `json:"name"`
		Version      string            `json:"version"`
		Description  string            `json:"description"`
		Author       string            `json:"author"`
		Signer       string            `json:"signer"`
		Digest       string            `json:"digest"`
		Installed    *string           `json:"installedVersion"`
		SameSigner   bool              `json:"sameSigner" doc:"the version in use was signed with the same key; true when none is"`
		Capabilities []string          `json:"capabilities"`
		Settings     []appSetting      `json:"settings"`
		Agents       []string          `json:"agents"`
		Skills       []string          `json:"skills"`
		Routines     []string          `json:"routines"`
		Services     []string          `json:"services" doc:"with what runs each: native, wasm or container"`
		Tools        []string          `json:"tools"`
		Programs     []string          `json:"programs" doc:"events whose hooks run a program on a node"`
		Dependencies map[string]string `json:"dependencies"`
		Problems     []string          `json:"problems" doc:"all that is wrong with the manifest; empty for one that can be installed"`
	}
	appSetting struct {
		Name     string `json:"name"`
		About    string `json:"about"`
		Default  string `json:"default"`
		Required bool   `json:"required"`
		Secret   bool   `json:"secret"`
	}
	// An AppRow is an installed app.
	AppRow struct {
		ID           string            `json:"id"`
		CompanyID    ledger.CompanyID  `json:"companyId"`
		Name         string            `json:"name"`
		Version      string            `json:"version"`
		State        app.State         `json:"state"`
		Reason       *string           `json:"reason"`
		Description  string            `json:"description"`
		Author       string            `json:"author"`
		Signer       string            `json:"signer"`
		Digest       string            `json:"digest"`
		Capabilities []string          `json:"capabilities"`
		Settings     map[string]string `json:"settings" doc:"without secret ones"`
		Agents       []appPart         `json:"agents"`
		Skills       []appPart         `json:"skills"`
		Routines     []appPart         `json:"routines"`
		Services     []appService      `json:"services"`
		Tools        []string          `json:"tools" doc:"names, as they are executed"`
		Hooks        []app.Ran         `json:"hooks" doc:"programs of hooks: those that wait or run, and how the last ones ended, the newest first"`
		Dependencies map[string]string `json:"dependencies"`
		Previous     *string           `json:"previousVersion" doc:"that rollback goes back to"`
		WatchedUntil core.Time         `json:"upgradeWatchedUntil" doc:"until then a failed run takes the upgrade back; null when nothing is decided any more"`
		CreatedAt    core.Time         `json:"createdAt"`
		UpdatedAt    core.Time         `json:"updatedAt"`
	}
	// appService is a service of an app.
	appService struct {
		Name    string  `json:"name" doc:"APP/SERVICE"`
		Version string  `json:"version" doc:"of its contract"`
		Process string  `json:"process" doc:"the declared process that provides it"`
		Running bool    `json:"running"`
		Error   *string `json:"error" doc:"why it does not run"`
	}
	appPart struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Gone bool   `json:"gone" doc:"the version in use does not have it; it rests"`
	}
)

// show returns an app as it is shown.
func show(tx *ledger.Tx, a app.App) AppRow {
	m, settings, _ := plugin.ReadStored(a.Now) // it was checked when it was stored
	r := AppRow{ID: a.ID, CompanyID: a.Company, Name: a.Name, Version: a.Now.Version, State: a.State,
		Description: m.Description, Author: m.Author,
		Signer: a.Now.Signer, Digest: a.Now.Digest, Capabilities: append([]string{}, a.Now.Capabilities...),
		Settings: settings,
		Agents:   []appPart{}, Skills: []appPart{}, Routines: []appPart{}, Dependencies: m.Dependencies,
		CreatedAt: a.CreatedAt,
		UpdatedAt: a.UpdatedAt}
	r.Services, r.Tools, r.Hooks = []appService{}, []string{}, []app.Ran{}
	for _, s := range a.Now.Services {
		row := appService{Name: a.Name + "/" + s.Name, Version: s.Contract.Version, Process: a.ServiceProcess(s)}
		p, _ := company.Ask.Processes.ProcessOf(tx, row.Process)
		if row.Running = p.Running; p.Error != "" {
			row.Error = &p.Error
		}
		r.Services = append(r.Services, row)
	}
	for _, t := range a.Now.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	for _, h := range app.Hooks(tx, a.Company, a.ID) {
		r.Hooks = append(r.Hooks, h.Shown(tx))
	}
	for _, h := range slices.Backward(a.Ran) {
		r.Hooks = append(r.Hooks, h)
	}
	if r.Settings == nil {
		r.Settings = map[string]string{}
	}
	if r.Dependencies == nil {
		r.Dependencies = map[string]string{}
	}
	if a.Reason != "" {
		r.Reason = &a.Reason
	}
	if a.Back != nil {
		r.Previous, r.WatchedUntil = &a.Back.Release.Version, a.Back.Until
	}
	for _, p := range a.Now.Parts {
		row := appPart{p.ID, p.Name, p.Gone}
		switch p.Kind {
		case "agent":
			r.Agents = append(r.Agents, row)
		case "skill":
			r.Skills = append(r.Skills, row)
		case "routine":
			r.Routines = append(r.Routines, row)
		}
	}
	return r
}
