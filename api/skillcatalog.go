package api

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api/skills"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/skill"
)

// A catalogSkill is a skill that comes with the program, as its catalog shows it.
type catalogSkill struct {
	ID             string        `json:"id"`
	Key            string        `json:"key"`
	Kind           string        `json:"kind"`
	Category       string        `json:"category"`
	Slug           string        `json:"slug"`
	Name           string        `json:"name"`
	Description    string        `json:"description"`
	Path           string        `json:"path"`
	Entrypoint     string        `json:"entrypoint"`
	TrustLevel     string        `json:"trustLevel"`
	Compatibility  string        `json:"compatibility"`
	DefaultInstall bool          `json:"defaultInstall"`
	Roles          []string      `json:"recommendedForRoles"`
	Requires       []string      `json:"requires"`
	Tags           []string      `json:"tags"`
	Files          []catalogFile `json:"files"`
	ContentHash    string        `json:"contentHash"`
	PackageName    string        `json:"packageName"`
	PackageVersion string        `json:"packageVersion"`
}

func catalogRow(b skills.Skill, version string) catalogSkill {
	sum := sha256.Sum256([]byte(b.Markdown))
	return catalogSkill{ID: "selvage:bundled:core:" + b.Name, Key: bundledKey + b.Name, Kind: "bundled", Category: "core", Slug: b.Name, Name: b.Name,
		Description: b.Description, Path: "bundled/" + b.Name, Entrypoint: skill.SkillFile, TrustLevel: "markdown_only", Compatibility: "compatible",
		DefaultInstall: true, Roles: b.Roles, Requires: []string{}, Tags: b.Tags,
		Files:       []catalogFile{{skill.SkillFile, "skill", len(b.Markdown), hex.EncodeToString(sum[:])}},
		ContentHash: "sha256:" + hex.EncodeToString(sum[:]), PackageName: "selvage", PackageVersion: version}
}

func listCatalog(rc *Request) (Response, error) {
	out := []catalogSkill{}
	for _, b := range skills.Bundled() {
		out = append(out, catalogRow(b, rc.server.cfg.Version))
	}
	return OK(out), nil
}

func inCatalog(rc *Request) (skills.Skill, error) {
	b, ok := skills.Find(strings.TrimPrefix(rc.Path("catalogId"), "selvage:bundled:core:"))
	if !ok {
		return b, NotFound("Catalog skill not found")
	}
	return b, nil
}

func readCatalog(rc *Request) (Response, error) {
	b, err := inCatalog(rc)
	if err != nil {
		return Response{}, err
	}
	return OK(catalogRow(b, rc.server.cfg.Version)), nil
}

func readCatalogFile(rc *Request) (Response, error) {
	b, err := inCatalog(rc)
	if err != nil {
		return Response{}, err
	}
	return OK(fileRow(bundledIn(company.Company{CreatedAt: core.TimeOf(time.Time{})}, b), skill.SkillFile, b.Markdown)), nil
}
