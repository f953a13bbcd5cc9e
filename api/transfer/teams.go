package transfer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/ledger"
)

// The catalog of teams are the bundled starter companies: their agents, projects and
// tasks. An existing company imports a team like a package.

// teamKey is the prefix of the IDs of teams.
const teamKey = "selvage:bundled:team:"

type (
	catalogTeam struct {
		ID             string            `json:"id"`
		Key            string            `json:"key"`
		Kind           string            `json:"kind"` // bundled
		Slug           string            `json:"slug"`
		Name           string            `json:"name"`
		Description    string            `json:"description"`
		Agents         []teamAgent       `json:"agents"`
		Counts         exportCounts      `json:"counts"`
		Files          []api.CatalogFile `json:"files"`
		ContentHash    string            `json:"contentHash"`
		PackageName    string            `json:"packageName"`
		PackageVersion string            `json:"packageVersion"`
	}
	teamAgent struct {
		Slug      string  `json:"slug"`
		Name      string  `json:"name"`
		Role      string  `json:"role"`
		ReportsTo *string `json:"reportsToSlug"`
	}
	teamFile struct {
		api.CatalogFile
		Content string `json:"content"`
	}
	installedTeam struct {
		catalogTeam
		AgentIDs []string `json:"agentIds"`
	}
)

func TeamRoutes() []api.Route {
	const tag, one, of = "teams", "/api/teams/catalog/{catalogId}", "/api/companies/{companyId}/teams/catalog"
	return []api.Route{
		{Method: "GET", Path: "/api/teams/catalog", Tag: tag, Summary: "List the teams that come with the program",
			Who: api.Board, Out: []catalogTeam{}, Handle: listTeams},
		{Method: "GET", Path: one, Tag: tag, Summary: "Read a team that comes with the program", Who: api.Board,
			Out: catalogTeam{}, Handle: readTeam},
		{Method: "GET", Path: one + "/files", Tag: tag, Summary: "Read a file of a team that comes with the program",
			Who: api.Board, Out: teamFile{}, Handle: readTeamFile,
			Query: []api.Param{{Name: "path", Doc: "of the file; COMPANY.md when absent"}}},
		{Method: "GET", Path: of + "/installed", Tag: tag,
			Summary: "List the teams of the catalog whose agents the company has", Who: api.Board, Out: []installedTeam{},
			Handle: listInstalledTeams},
		{Method: "POST", Path: of + "/{catalogId}/preview", Tag: tag, Summary: "Show what taking a team in would do",
			Who: api.Board, In: importWhat{}, Out: ImportPreview{}, NoTool: true, Handle: previewImport},
		{Method: "POST", Path: of + "/{catalogId}/install", Tag: tag, Summary: "Take a team in, all of it or nothing",
			Who: api.Board, In: importWhat{}, Out: api.Either{Imported{}, JobAccepted{}}, Also: []int{202}, NoTool: true,
			Handle: applyImport,
			Query:  []api.Param{{Name: "async", Doc: "1: the answer (202) names a job that goes on"}}},
	}
}

func teamName(id string) string { return strings.TrimPrefix(id, teamKey) }

func errNoTeam() error { return api.NotFound("Catalog team not found") }

// teamOf describes a team of the catalog.
func teamOf(name, version string) (catalogTeam, error) {
	files, ok := portable.Starter(name)
	if !ok {
		return catalogTeam{}, errNoTeam()
	}
	m, _, err := portable.Read(files)
	if err != nil {
		return catalogTeam{}, err
	}
	t := catalogTeam{ID: teamKey + name, Key: "selvage/" + name, Kind: "bundled", Slug: name, Name: m.Company.Name,
		Description: Deref(m.Company.Description),
		Agents:      []teamAgent{}, Files: []api.CatalogFile{}, PackageName: "selvage", PackageVersion: version,
		Counts: exportCounts{Files: len(files), Agents: len(m.Agents), Skills: len(m.Skills), Projects: len(m.Projects),
			Issues: len(m.Issues)}}
	for _, a := range m.Agents {
		t.Agents = append(t.Agents, teamAgent{a.Slug, a.Name, a.Role, a.ReportsTo})
	}
	all := sha256.New()
	for _, path := range files.Paths() {
		f := fileOf(path, files[path])
		all.Write([]byte(f.Path + " " + f.SHA256 + "\n"))
		t.Files = append(t.Files, f)
	}
	t.ContentHash = "sha256:" + hex.EncodeToString(all.Sum(nil))
	return t, nil
}

func fileOf(path string, f portable.File) api.CatalogFile {
	sum := sha256.Sum256(f.Data)
	return api.CatalogFile{Path: path, Kind: portable.KindOf(path), Size: len(f.Data), SHA256: hex.EncodeToString(sum[:])}
}

func listTeams(rc *api.Request) (api.Response, error) {
	out := []catalogTeam{}
	for _, name := range portable.Starters() {
		t, err := teamOf(name, rc.Server.Cfg.Version)
		if err != nil {
			return api.Response{}, err
		}
		out = append(out, t)
	}
	return api.OK(out), nil
}

func readTeam(rc *api.Request) (api.Response, error) {
	t, err := teamOf(teamName(rc.Path("catalogId")), rc.Server.Cfg.Version)
	return api.OK(t), err
}

func readTeamFile(rc *api.Request) (api.Response, error) {
	files, ok := portable.Starter(teamName(rc.Path("catalogId")))
	if !ok {
		return api.Response{}, errNoTeam()
	}
	path := rc.Query("path")
	if path == "" {
		path = "COMPANY.md"
	}
	f, ok := files[path]
	if !ok {
		return api.Response{}, api.NotFound("Catalog team file not found")
	}
	return api.OK(teamFile{fileOf(path, f), string(f.Data)}), nil
}

// listInstalledTeams lists the teams whose agents a company has, compared by name. No
// row records where an agent came from.
func listInstalledTeams(rc *api.Request) (api.Response, error) {
	out := []installedTeam{}
	err := api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		ids := map[string]string{}
		for _, a := range entity.AgentsOf(tx, row.ID, false) {
			ids[a.URLKey()] = a.ID
		}
		for _, name := range portable.Starters() {
			t, err := teamOf(name, rc.Server.Cfg.Version)
			if err != nil {
				return err
			}
			has := []string{}
			for _, a := range t.Agents {
				if id := ids[core.URLKey(a.Name)]; id != "" {
					has = append(has, id)
				}
			}
			if len(has) == len(t.Agents) {
				slices.Sort(has)
				out = append(out, installedTeam{t, has})
			}
		}
		return nil
	})
	return api.OK(out), err
}

// teamBody returns the import of a team into the company of the path.
func teamBody(rc *api.Request) (body importBody, files portable.Files, err error) {
	b, err := rc.RawBody()
	if err != nil {
		return body, nil, err
	}
	if len(bytes.TrimSpace(b)) == 0 {
		b = []byte("{}")
	} else if err := api.JsonContent(rc.HTTP.Header.Get("Content-Type")); err != nil {
		return body, nil, err
	}
	if err := api.DecodeBody(b, &body.importWhat); err != nil {
		return body, nil, err
	}
	files, ok := portable.Starter(teamName(rc.Path("catalogId")))
	if !ok {
		return body, nil, errNoTeam()
	}
	body.Source.Type = "inline"
	if body.Include == nil {
		no, yes := false, true
		body.Include = &partsWanted{Company: &no, Agents: &yes, Projects: &yes, Issues: &yes, Skills: &yes}
	}
	return body, files, nil
}
