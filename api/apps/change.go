package apps

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	calls "github.com/selvage-mesh/selvage/adapter/service"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/app"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
	"github.com/selvage-mesh/selvage/plugin"
	"github.com/selvage-mesh/selvage/scheduler"
)

func list(rc *api.Request) (r api.Response, err error) {
	rows := []AppRow{}
	err = api.InCompany(rc, func(tx *ledger.Tx, of entity.Company) error {
		for a := range app.All(tx, of.ID) {
			rows = append(rows, show(tx, a))
		}
		return nil
	})
	slices.SortFunc(rows, func(a, b AppRow) int { return strings.Compare(a.Name, b.Name) })
	return api.OK(rows), err
}

// named returns the app of the path.
func named(rc *api.Request) (a app.App, err error) {
	err = api.InCompany(rc, func(tx *ledger.Tx, of entity.Company) error {
		var ok bool
		if a, ok = app.Named(tx, of.ID, rc.Path("app")); !ok {
			return api.NotFound("App not found")
		}
		return nil
	})
	return a, err
}

func read(rc *api.Request) (api.Response, error) {
	a, err := named(rc)
	if err != nil {
		return api.Response{}, err
	}
	return api.Viewed(rc, func(tx *ledger.Tx) (AppRow, error) { return show(tx, a), nil })
}

// open reads the archive of a body, and its manifest. Problems of the manifest are no error of their own.
func open(encoded string) (plugin.Archive, plugin.Manifest, plugin.Problems, error) {
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return plugin.Archive{}, plugin.Manifest{}, nil, api.Invalid("archive: not base64")
	}
	archive, err := plugin.Open(b)
	if err != nil {
		return archive, plugin.Manifest{}, nil, api.Unprocessable("archive: "+err.Error(), nil)
	}
	m, err := plugin.Read(archive.Files)
	if problems, ok := errors.AsType[plugin.Problems](err); ok {
		return archive, m, problems, nil
	}
	if err != nil {
		err = api.Unprocessable("archive: "+err.Error(), nil)
	}
	return archive, m, nil, err
}

// refuse returns a 422 with all problems at once.
func refuse(problems plugin.Problems) error {
	return api.Unprocessable("The app can not be installed: "+strings.Join(problems, "; "),
		map[string]any{"problems": []string(problems)})
}

func look(rc *api.Request) (api.Response, error) {
	in, err := api.Body[appArchiveBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	archive, m, problems, err := open(in.Archive)
	if err != nil {
		return api.Response{}, err
	}
	p := appPreview{Name: m.Name, Version: m.Version, Description: m.Description, Author: m.Author, Signer: archive.Signer,
		Digest: archive.Digest, SameSigner: true,
		Capabilities: append([]string{}, m.Capabilities.Words()...), Settings: []appSetting{}, Agents: []string{},
		Skills: []string{}, Routines: []string{}, Services: []string{}, Tools: []string{}, Programs: []string{},
		Dependencies: m.Dependencies, Problems: append([]string{}, problems...)}
	if p.Dependencies == nil {
		p.Dependencies = map[string]string{}
	}
	for _, s := range m.Settings {
		row := appSetting{Name: s.Name, About: s.About, Secret: s.Secret, Required: s.Default == nil && !s.Optional}
		if s.Default != nil {
			row.Default = *s.Default
		}
		p.Settings = append(p.Settings, row)
	}
	for _, a := range m.Agents {
		p.Agents = append(p.Agents, m.Name+"/"+a.ID+" ("+a.Adapter+")")
	}
	for _, s := range m.Skills {
		p.Skills = append(p.Skills, m.Name+"/"+s.ID)
	}
	for _, r := range m.Routines {
		p.Routines = append(p.Routines, m.Name+"/"+r.ID+" ("+r.Cron+")")
	}
	for _, s := range m.Services {
		p.Services = append(p.Services, m.Name+"/"+s.Name+" ("+backend(s.Program, s.Image)+")")
	}
	for _, t := range m.Tools {
		how := "module"
		if t.Service != "" {
			how = t.Service + "." + t.Method
		}
		p.Tools = append(p.Tools, m.Name+"/"+t.Name+" ("+how+")")
	}
	for _, e := range m.Hooks.Programs() {
		p.Programs = append(p.Programs, string(e))
	}
	err = api.InCompany(rc, func(tx *ledger.Tx, of entity.Company) error {
		if a, ok := app.Named(tx, of.ID, m.Name); ok {
			p.Installed, p.SameSigner = &a.Now.Version, a.Now.Signer == archive.Signer
		}
		return nil
	})
	return api.OK(p), err
}

// backend says what runs a program.
func backend(p plugin.Program, image string) string {
	switch {
	case image != "":
		return "container"
	case p.Module != "":
		return "wasm"
	}
	return "native"
}

// settingsOf reads the settings of a body.
func settingsOf(raw json.RawMessage) (map[string]string, error) {
	out := map[string]string{}
	if len(raw) == 0 || string(raw) == "null" {
		return out, nil
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, api.Invalid("settings: an object whose values are texts")
	}
	return out, nil
}

// source makes of an archive what is planned with: its settings, and the assets of its modules.
func source(rc *api.Request, encoded string, given json.RawMessage, grant []string, was *app.App) (s plugin.Source,
	assets []app.Step, archiveID string, err error) {
	archive, m, problems, err := open(encoded)
	if err != nil {
		return s, nil, "", err
	}
	if len(problems) > 0 {
		return s, nil, "", refuse(problems)
	}
	settings, err := settingsOf(given)
	if err != nil {
		return s, nil, "", err
	}
	s = plugin.Source{Company: api.CompanyID(rc), Stored: map[string]company.NewFile{}, Archive: archive,
		Manifest: m, Settings: settings, Modules: map[string]string{}, Kept: map[string]bool{}}
	if was != nil {
		old, stored, err := plugin.ReadStored(was.Now)
		if err != nil {
			return s, nil, "", err
		}
		secrets := old.Secrets()
		for _, set := range m.Settings {
			if _, again := settings[set.Name]; again {
				continue
			}
			if v, ok := stored[set.Name]; ok {
				settings[set.Name] = v
			}
			s.Kept[set.Name] = set.Secret && secrets[set.Name]
		}
	}
	for _, set := range m.Settings {
		if _, ok := settings[set.Name]; !ok && set.Default != nil {
			settings[set.Name] = *set.Default
		}
	}
	if problems := s.Check(); len(problems) > 0 {
		return s, nil, "", refuse(problems)
	}
	var missing []string
	for _, c := range m.Capabilities.Words() {
		if !slices.Contains(grant, c) {
			missing = append(missing, c)
		}
	}
	if len(missing) > 0 {
		return s, nil, "", api.Unprocessable("grant: the app asks for "+strings.Join(missing,
			", ")+"; grant it, or do not install the app", map[string]any{"missing": missing})
	}
	if err := checkModules(rc, m, archive.Files); err != nil {
		return s, nil, "", err
	}
	keep := func(b []byte, name, kind string) (company.NewFile, error) {
		up, err := rc.Keep(b, name, kind)
		if err != nil {
			return up.File, err
		}
		up.File.ID, up.File.Object = api.NewID(), api.NewID()
		assets = append(assets, app.Step{Kind: file.KindAssetCreate,
			Payload: ledger.Marshal(file.CreateAsset{File: up.File, Namespace: "apps"})})
		return up.File, nil
	}
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err == nil {
		var f company.NewFile
		f, err = keep(b, m.Name+"-"+m.Version+".selvage-app", "application/octet-stream")
		archiveID = f.ID
	}
	for _, path := range m.AllModules() {
		if err != nil {
			break
		}
		s.Stored[path], err = keep(archive.Files[path], "module.wasm", "application/wasm")
		s.Modules[path] = s.Stored[path].ID
	}
	s.Signed = signer(rc, was)
	return s, assets, archiveID, err
}

// checkModules refuses modules of tools that the sandbox could not run, and schemas that are none.
func checkModules(rc *api.Request, m plugin.Manifest, files plugin.Files) error {
	var problems plugin.Problems
	for _, at := range slices.Sorted(maps.Keys(m.Schemas())) {
		if err := calls.CheckSchema(m.Schemas()[at]); err != nil {
			problems = append(problems, at+": not a JSON schema: "+api.Cut(err.Error(), 300))
		}
	}
	for _, t := range m.Tools {
		bench := rc.Server.Cfg.Tools
		switch {
		case t.Module == "":
		case bench == nil:
			return api.Unavailable("This node has no sandbox, so it can not check the module of tool " + t.Name)
		default:
			if err := bench.Check(rc.Context(), files[t.Module]); err != nil {
				problems = append(problems, "tools."+t.Name+".module: it can not be run: "+api.Cut(err.Error(), 300))
			}
		}
	}
	if len(problems) > 0 {
		return refuse(problems)
	}
	return nil
}

// signer returns what gives the tools of an app their versions, and signs modules as this node. A tool whose module is
// that of the version in use keeps its version, so that what was revoked stays revoked.
func signer(rc *api.Request, was *app.App) func(name, hash string, module bool) (uint32, []byte, string) {
	return func(name, hash string, module bool) (uint32, []byte, string) {
		of, next := api.CompanyID(rc), uint32(1)
		if was != nil {
			for _, t := range was.Now.Tools {
				if t.Name == name && t.Hash == hash {
					return t.Version, t.Signature, t.Signer
				}
			}
		}
		_ = rc.View(func(tx *ledger.Tx) error { // the rules check the version again
			t, _ := skill.ToolOf(tx, of, name)
			for _, v := range t.Versions {
				next = max(next, v.Version+1)
			}
			return nil
		})
		if !module {
			return next, nil, ""
		}
		bench := rc.Server.Cfg.Tools
		by, signature := bench.Sign(skill.ToolStatement{Mesh: bench.Mesh, Company: of, Name: name, Version: next, Hash: hash})
		return next, signature, by
	}
}

// planner returns a planner for an app of the path's company.
func planner(rc *api.Request, name string) *plugin.Planner {
	of := api.CompanyID(rc)
	status := func(agent string, may func(entity.AgentStatus) bool) (ok bool) {
		_ = rc.View(func(tx *ledger.Tx) error { // an agent that can not be read can not be changed
			a, there := entity.AgentOf(tx, of, agent)
			ok = there && may(a.Status)
			return nil
		})
		return ok
	}
	return &plugin.Planner{Company: of, App: name, NewID: api.NewID,
		Next: func(cron, zone string) (core.Time, error) { return scheduler.NextRun(cron, zone, rc.Now()) },
		Seal: func(payload any) (any, error) { return rc.Sealed(of, payload) },
		MayPause: func(agent string) bool {
			return status(agent, func(s entity.AgentStatus) bool {
				return s != entity.AgentPaused && s != entity.AgentTerminated && s != entity.AgentPendingApproval
			})
		},
		MayResume: func(agent string) bool {
			return status(agent, func(s entity.AgentStatus) bool { return s == entity.AgentPaused })
		}}
}

func install(rc *api.Request) (api.Response, error) {
	in, err := api.Body[appInstallBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	s, assets, archive, err := source(rc, in.Archive, in.Settings, in.Grant, nil)
	if err != nil {
		return api.Response{}, err
	}
	p := planner(rc, s.Manifest.Name)
	steps, parts, err := p.Change(nil, s, !in.Stopped)
	if err != nil {
		return api.Response{}, err
	}
	p.Hook(s.Manifest.Hooks.OnInstall, parts, s.Manifest, s)
	if !in.Stopped {
		p.Hook(s.Manifest.Hooks.OnStart, parts, s.Manifest, s)
	}
	hooks, err := p.Take()
	if err != nil {
		return api.Response{}, err
	}
	release, err := s.Release(parts)
	if err != nil {
		return api.Response{}, err
	}
	release.Archive = archive
	id := api.NewID()
	return changed(rc, app.KindInstall, app.Install{ID: id, Name: s.Manifest.Name, Release: release,
		Steps: slices.Concat(assets, steps, hooks), Start: !in.Stopped}, id, http.StatusCreated)
}

// changed submits a change and answers the app.
func changed(rc *api.Request, kind string, payload any, id string, status int) (api.Response, error) {
	of := api.CompanyID(rc)
	if _, err := rc.Submit(kind, of, payload); err != nil {
		return api.Response{}, err
	}
	var row AppRow
	err := rc.View(func(tx *ledger.Tx) error {
		a, ok := app.Named(tx, of, id)
		if !ok {
			return api.NotFound("App not found")
		}
		row = show(tx, a)
		return nil
	})
	return api.Reply(status, row), err
}

func upgrade(rc *api.Request) (api.Response, error) {
	in, err := api.Body[appUpgradeBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	a, err := named(rc)
	if err != nil {
		return api.Response{}, err
	}
	s, assets, archive, err := source(rc, in.Archive, in.Settings, in.Grant, &a)
	if err != nil {
		return api.Response{}, err
	}
	if s.Manifest.Name != a.Name {
		return api.Response{}, api.Unprocessable("archive: it is of the app "+s.Manifest.Name+", not of "+a.Name, nil)
	}
	old, err := stored(rc, a)
	if err != nil {
		return api.Response{}, err
	}
	p, works := planner(rc, a.Name), a.State == app.Running
	steps, parts, err := p.Change(a.Now.Parts, s, works)
	if err != nil {
		return api.Response{}, err
	}
	// On the way back an agent that was left out is resumed, whatever it is now.
	back := planner(rc, a.Name)
	back.MayPause = func(agent string) bool {
		return !slices.ContainsFunc(a.Now.Parts, func(x app.Part) bool { return x.ID == agent })
	}
	back.MayResume = func(agent string) bool {
		return slices.ContainsFunc(parts, func(x app.Part) bool { return x.ID == agent && x.Gone }) && p.MayPause(agent)
	}
	ways, before, err := back.Change(parts, old, works)
	if err != nil {
		return api.Response{}, err
	}
	release, err := s.Release(parts)
	if err != nil {
		return api.Response{}, err
	}
	release.Archive = archive
	up := app.Upgrade{ID: a.ID, From: a.Now.Digest, Release: release, Steps: slices.Concat(assets, steps), Back: ways,
		Before: before, Older: in.Rollback, NewSigner: in.NewSigner}
	return changed(rc, app.KindUpgrade, up, a.ID, http.StatusOK)
}

// stored returns the version in use as it was installed, for the way back to it.
func stored(rc *api.Request, a app.App) (s plugin.Source, err error) {
	var f file.Asset
	var ref company.BlobRef
	err = rc.View(func(tx *ledger.Tx) error {
		var ok bool
		if f, ok = file.AssetByID(tx, a.Now.Archive); !ok {
			return api.Conflict("The archive of the version in use is gone, so that an upgrade could not be "+
				"taken back; remove the app, and install the new version", nil)
		}
		ref, _ = company.BlobOf(tx, a.Company, f.SHA256)
		return nil
	})
	if err != nil {
		return s, err
	}
	digest, err := blob.ParseDigest(f.SHA256)
	if err != nil {
		return s, err
	}
	c, err := rc.Server.Cfg.Blobs.Read(rc.Context(), api.Reference(digest, f, ref))
	if err != nil {
		return s, err
	}
	defer c.Close()
	b, err := io.ReadAll(io.LimitReader(c, plugin.MaxArchive+1))
	if err != nil {
		return s, err
	}
	if s.Archive, err = plugin.Open(b); err != nil {
		return s, err
	}
	if s.Manifest, s.Settings, err = plugin.ReadStored(a.Now); err != nil {
		return s, err
	}
	s.Kept, s.Modules = s.Manifest.Secrets(), map[string]string{}
	for _, m := range a.Now.Modules {
		s.Modules[m.Path] = m.Asset
	}
	return s, nil
}

// simple plans a change that needs no archive, and submits it.
func simple(rc *api.Request, kind string, plan func(p *plugin.Planner, a app.App, m plugin.Manifest,
	s plugin.Source)) (api.Response, error) {
	a, err := named(rc)
	if err != nil {
		return api.Response{}, err
	}
	m, settings, err := plugin.ReadStored(a.Now)
	if err != nil {
		return api.Response{}, err
	}
	p := planner(rc, a.Name)
	plan(p, a, m, plugin.Source{Manifest: m, Settings: settings, Kept: m.Secrets()})
	steps, err := p.Take()
	if err != nil {
		return api.Response{}, err
	}
	change := app.Change{ID: a.ID, From: a.Now.Digest, Steps: steps}
	if kind != app.KindRemove {
		return changed(rc, kind, change, a.ID, http.StatusOK)
	}
	if _, err = rc.Submit(kind, a.Company, change); err != nil {
		return api.Response{}, err
	}
	return api.Viewed(rc, func(tx *ledger.Tx) (AppRow, error) { return show(tx, a), nil })
}

func start(rc *api.Request) (api.Response, error) {
	return simple(rc, app.KindStart, func(p *plugin.Planner, a app.App, m plugin.Manifest, s plugin.Source) {
		p.Start(a, m, func(id string) (next []routine.TriggerNext) {
			_ = rc.View(func(tx *ledger.Tx) error { // without it the schedules keep their time
				r, ok := routine.RoutineByID(tx, id)
				if !ok {
					return nil
				}
				for _, t := range routine.TriggersOf(tx, r) {
					if at, err := scheduler.NextRun(string(t.Cron), string(t.Zone), rc.Now()); err == nil {
						next = append(next, routine.TriggerNext{Trigger: t.ID, At: at})
					}
				}
				return nil
			})
			return next
		})
		p.Hook(m.Hooks.OnStart, a.Now.Parts, m, s)
	})
}

func stop(rc *api.Request) (api.Response, error) {
	return simple(rc, app.KindStop, func(p *plugin.Planner, a app.App, m plugin.Manifest, s plugin.Source) {
		p.Stop(a)
		p.Hook(m.Hooks.OnStop, nil, m, s)
	})
}

func remove(rc *api.Request) (api.Response, error) {
	return simple(rc, app.KindRemove, func(p *plugin.Planner, a app.App, m plugin.Manifest, s plugin.Source) {
		p.Remove(a, func(x app.Part) (there bool) {
			_ = rc.View(func(tx *ledger.Tx) error { // what can not be read is left alone
				switch x.Kind {
				case "agent":
					row, ok := entity.AgentOf(tx, a.Company, x.ID)
					there = ok && row.Status != entity.AgentTerminated
				case "routine":
					_, there = routine.RoutineByID(tx, x.ID)
				case "skill":
					_, there = skill.SkillRows.Get(tx, a.Company, x.ID)
				}
				return nil
			})
			return there
		})
		p.Hook(m.Hooks.OnRemove, nil, m, s)
	})
}

func rollback(rc *api.Request) (api.Response, error) {
	a, err := named(rc)
	if err != nil {
		return api.Response{}, err
	}
	return changed(rc, app.KindRollback, app.Change{ID: a.ID}, a.ID, http.StatusOK)
}
