package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/skills"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/skill"
)

// A catalogSkill is a bundled skill in the catalog.
type catalogSkill struct {
	ID             string            `json:"id"`
	Key            string            `json:"key"`
	Kind           string            `json:"kind"`
	Category       string            `json:"category"`
	Slug           string            `json:"slug"`
	Name           string            `json:"name"`
	Description    string            `json:"description"`
	Path           string            `json:"path"`
	Entrypoint     string            `json:"entrypoint"`
	TrustLevel     string            `json:"trustLevel"`
	Compatibility  string            `json:"compatibility"`
	DefaultInstall bool              `json:"defaultInstall"`
	Roles          []string          `json:"recommendedForRoles"`
	Requires       []string          `json:"requires"`
	Tags           []string          `json:"tags"`
	Files          []api.CatalogFile `json:"files"`
	ContentHash    string            `json:"contentHash"`
	PackageName    string            `json:"packageName"`
	PackageVersion string            `json:"packageVersion"`
}

func catalogRow(b skills.Skill, version string) catalogSkill {
	sum := sha256.Sum256([]byte(b.Markdown))
	return catalogSkill{ID: "selvage:bundled:core:" + b.Name, Key: api.BundledKey + b.Name, Kind: "bundled",
		Category: "core", Slug: b.Name, Name: b.Name,
		Description: b.Description, Path: "bundled/" + b.Name, Entrypoint: skill.SkillFile, TrustLevel: "markdown_only",
		Compatibility:  "compatible",
		DefaultInstall: true, Roles: b.Roles, Requires: []string{}, Tags: b.Tags,
		Files: []api.CatalogFile{{Path: skill.SkillFile, Kind: "skill", Size: len(b.Markdown),
			SHA256: hex.EncodeToString(sum[:])}},
		ContentHash: "sha256:" + hex.EncodeToString(sum[:]), PackageName: "selvage", PackageVersion: version}
}

func listCatalog(rc *api.Request) (api.Response, error) {
	out := []catalogSkill{}
	for _, b := range skills.Bundled() {
		out = append(out, catalogRow(b, rc.Server.Cfg.Version))
	}
	return api.OK(out), nil
}

func inCatalog(rc *api.Request) (skills.Skill, error) {
	b, ok := skills.Find(strings.TrimPrefix(rc.Path("catalogId"), "selvage:bundled:core:"))
	if !ok {
		return b, api.NotFound("Catalog skill not found")
	}
	return b, nil
}

func readCatalog(rc *api.Request) (api.Response, error) {
	b, err := inCatalog(rc)
	if err != nil {
		return api.Response{}, err
	}
	return api.OK(catalogRow(b, rc.Server.Cfg.Version)), nil
}

func readCatalogFile(rc *api.Request) (api.Response, error) {
	b, err := inCatalog(rc)
	if err != nil {
		return api.Response{}, err
	}
	return api.OK(fileRow(bundledIn(entity.Company{CreatedAt: core.TimeOf(time.Time{})}, b), skill.SkillFile,
		b.Markdown)), nil
}
