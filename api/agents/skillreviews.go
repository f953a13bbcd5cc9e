package agents

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// The bodies about comments and tests of skills.
type (
	skillCommentBody struct {
		Body   string          `json:"body" minLength:"1" maxLength:"16000" maxBytes:"16384"`
		Parent api.Opt[string] `json:"parentCommentId" format:"uuid"`
	}
	skillCommentPatch struct {
		Body string `json:"body" minLength:"1" maxLength:"16000"`
	}
	skillInputBody struct {
		Name    string `json:"name" minLength:"1" maxLength:"200" maxBytes:"500"`
		Content string `json:"content" minLength:"1" maxLength:"65536" maxBytes:"65536"`
	}
	skillInputPatch struct {
		Name    *string `json:"name,omitempty" minLength:"1" maxLength:"200" nullable:"false"`
		Content *string `json:"content,omitempty" minLength:"1" maxLength:"65536" nullable:"false"`
	}
	skillTestBody struct {
		Input   api.Opt[string] `json:"inputId" format:"uuid"`
		Content api.Opt[string] `json:"content" minLength:"1" maxLength:"65536" maxBytes:"65536"`
		Agent   string          `json:"agentId" format:"uuid"`
		Version api.Opt[string] `json:"skillVersionId" format:"uuid"`
	}
)

type skillAudit struct {
	Skill     string               `json:"skillId"`
	Installed string               `json:"installedHash"`
	Origin    core.NullText        `json:"originHash"`
	Verdict   string               `json:"verdict"`
	Codes     []string             `json:"codes"`
	Findings  []skill.SkillFinding `json:"findings"`
	ScannedAt core.Time            `json:"scannedAt"`
	Version   string               `json:"scanVersion"`
}

func SkillReviewRoutes() []api.Route {
	const tag, one = "skills", "/api/companies/{companyId}/skills/{skillId}"
	comment, input, test := one+"/comments", one+"/test-inputs", one+"/test-runs"
	return []api.Route{
		api.Show(api.Route{Path: comment, Tag: tag, Summary: "List what was said about a skill"}, pathSkill,
			unlessBundled(skill.SkillCommentsOf)),
		api.Change[skill.SkillComment](api.Route{Method: "POST", Path: comment, Tag: tag, Status: 201,
			Summary: "Say something about a skill"}, skill.KindSkillCommentCreate, ownSkillAt,
			func(_ *api.Request, id string, in skillCommentBody) (skill.SaySkill, error) {
				return skill.SaySkill{ID: api.NewID(), Skill: id, Parent: api.BodyID(in.Parent), Body: in.Body}, nil
			}),
		api.Change[skill.SkillComment](api.Route{Path: comment + "/{commentId}", Tag: tag,
			Summary: "Change one's comment on a skill"}, skill.KindSkillCommentUpdate, ownSkillAt,
			func(rc *api.Request, id string, in skillCommentPatch) (skill.SaySkill, error) {
				return skill.SaySkill{ID: api.PathID(rc, "commentId"), Skill: id, Body: in.Body}, nil
			}),
		api.Remove[skill.SkillComment](api.Route{Path: comment + "/{commentId}", Tag: tag,
			Summary: "Delete a comment on a skill"}, skill.KindSkillCommentUpdate, ownSkillAt,
			func(rc *api.Request, id string) skill.SaySkill {
				return skill.SaySkill{ID: api.PathID(rc, "commentId"), Skill: id, Delete: true}
			}),
		{Method: "POST", Path: one + "/audit", Tag: tag,
			Summary: "Look through the files of a skill for what should not be there", Out: skillAudit{}, Handle: auditSkill},
		api.Show(api.Route{Path: input, Tag: tag, Summary: "List the texts that a skill is tried on"}, pathSkill,
			unlessBundled(skill.SkillInputsOf)),
		api.Change[skill.SkillTestInput](api.Route{Method: "POST", Path: input, Tag: tag, Status: 201,
			Summary: "Keep a text to try a skill on"}, skill.KindSkillTestInput, ownSkillAt,
			func(_ *api.Request, id string, in skillInputBody) (skill.SaveSkillInput, error) {
				return skill.SaveSkillInput{ID: api.NewID(), Skill: id, Name: &in.Name, Content: &in.Content}, nil
			}),
		{Method: "PATCH", Path: input + "/{inputId}", Tag: tag, Summary: "Change a text that a skill is tried on",
			In: skillInputPatch{}, Out: skill.SkillTestInput{}, Handle: patchSkillInput},
		api.Remove[skill.SkillTestInput](api.Route{Path: input + "/{inputId}", Tag: tag,
			Summary: "Delete a text that a skill is tried on"}, skill.KindSkillTestInput, ownSkillAt,
			func(rc *api.Request, id string) skill.SaveSkillInput {
				return skill.SaveSkillInput{ID: api.PathID(rc, "inputId"), Skill: id, Delete: true}
			}),
		{Method: "GET", Path: test, Tag: tag, Summary: "List the tries of a skill, the latest first",
			Out: []api.SkillTestRow{}, Query: []api.Param{{Name: "inputId"}}, Handle: listSkillTests},
		{Method: "POST", Path: test, Tag: tag, Summary: "Have an agent try a skill, in an issue of its own",
			In: skillTestBody{}, Out: api.SkillTestRow{}, Status: 201, Handle: startSkillTest},
		{Method: "GET", Path: test + "/{runId}", Tag: tag, Summary: "Read a try of a skill", Out: api.SkillTestRow{},
			Handle: func(rc *api.Request) (api.Response, error) { return skillTestAt(rc, api.PathID(rc, "runId")) }},
		{Method: "POST", Path: test + "/{runId}/cancel", Tag: tag, Summary: "Cancel a try of a skill",
			Out: api.SkillTestRow{}, Handle: cancelSkillTest},
		api.Remove[skill.SkillTest](api.Route{Path: test + "/{runId}", Tag: tag,
			Summary: "Take a try of a skill off the list"}, skill.KindSkillTestForget, ownSkillAt,
			func(rc *api.Request, id string) skill.ForgetSkillTest {
				return skill.ForgetSkillTest{ID: api.PathID(rc, "runId"), Skill: id}
			}),
	}
}

// unlessBundled lists something about a skill; for bundled skills the list is empty.
func unlessBundled[T any](list func(*ledger.Tx, skill.Skill) []T) func(*ledger.Tx, skillRow) []T {
	return func(tx *ledger.Tx, row skillRow) []T {
		if row.bundled() {
			return []T{}
		}
		return list(tx, row.Skill)
	}
}

// ownSkillAt is the place of the skill that the path names.
func ownSkillAt(rc *api.Request) (of ledger.CompanyID, id string, err error) {
	row, err := ownSkill(rc)
	return row.Company, row.ID, err
}

func patchSkillInput(rc *api.Request) (api.Response, error) {
	in, err := api.Body[skillInputPatch](rc)
	if err != nil {
		return api.Response{}, err
	}
	row, err := ownSkill(rc)
	if err != nil {
		return api.Response{}, err
	}
	id := api.PathID(rc, "inputId")
	err = rc.View(func(tx *ledger.Tx) error {
		if !slices.ContainsFunc(skill.SkillInputsOf(tx, row.Skill), func(o skill.SkillTestInput) bool { return o.ID == id }) {
			return api.NotFound("Test input not found")
		}
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	v, err := api.Do[skill.SkillTestInput](rc, skill.KindSkillTestInput, row.Company,
		skill.SaveSkillInput{ID: id, Skill: row.ID, Name: in.Name, Content: in.Content})
	return api.OK(v), err
}

func listSkillTests(rc *api.Request) (api.Response, error) {
	input, err := rc.QueryUUID("inputId")
	if err != nil {
		return api.Response{}, err
	}
	return viewSkill(rc, func(tx *ledger.Tx, _ entity.Company, row skillRow) (any, error) {
		out := []api.SkillTestRow{}
		if row.bundled() {
			return out, nil
		}
		for _, t := range skill.SkillTestsOf(tx, row.Skill) {
			if input != "" && string(t.Input) != input {
				continue
			}
			shown := api.ShowSkillTest(tx, t)
			shown.Output, shown.Description = api.Cut(shown.Output, 2_000), "" // only the test's own route shows all of it
			out = append(out, shown)
		}
		return out, nil
	})
}

func skillTestAt(rc *api.Request, id string) (api.Response, error) {
	return viewSkill(rc, func(tx *ledger.Tx, _ entity.Company, row skillRow) (any, error) {
		for _, t := range skill.SkillTestsOf(tx, row.Skill) {
			if t.ID == id {
				return api.ShowSkillTest(tx, t), nil
			}
		}
		return nil, api.NotFound("Test run not found")
	})
}

func startSkillTest(rc *api.Request) (api.Response, error) {
	in, err := api.Body[skillTestBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	row, err := ownSkill(rc)
	if err != nil {
		return api.Response{}, err
	}
	t, err := api.Do[skill.SkillTest](rc, skill.KindSkillTestStart, row.Company, skill.StartSkillTest{ID: api.NewID(),
		Skill: row.ID, Agent: strings.ToLower(in.Agent), Issue: api.NewID(),
		Input: api.BodyID(in.Input), Content: in.Content.Or(""), Version: api.BodyID(in.Version)})
	if err != nil {
		return api.Response{}, err
	}
	return skillTestAt(rc, t.ID)
}

func cancelSkillTest(rc *api.Request) (api.Response, error) {
	row, err := ownSkill(rc)
	if err != nil {
		return api.Response{}, err
	}
	id, issue, over := api.PathID(rc, "runId"), "", false
	err = rc.View(func(tx *ledger.Tx) error {
		for _, t := range skill.SkillTestsOf(tx, row.Skill) {
			if t.ID == id {
				i, there := entity.IssueOf(tx, t.Company, t.Issue)
				issue, over = t.Issue, !there || i.Status.Terminal()
				return nil
			}
		}
		return api.NotFound("Test run not found")
	})
	if err != nil {
		return api.Response{}, err
	}
	if !over {
		if _, err := rc.Submit(company.KindIssueUpdate, row.Company, company.UpdateIssue{Issue: issue,
			Status: entity.IssueCancelled}); err != nil {
			return api.Response{}, err
		}
	}
	return skillTestAt(rc, id)
}

// auditSkill scans a skill's files. The audit and its result are recorded in the
// activity log.
func auditSkill(rc *api.Request) (api.Response, error) {
	var out skillAudit
	of := ledger.CompanyID("")
	_, err := viewSkill(rc, func(tx *ledger.Tx, in entity.Company, row skillRow) (any, error) {
		of = in.ID
		files := map[string]string{}
		if row.bundled() {
			files[skill.SkillFile] = row.bundledContent
		}
		for _, f := range row.Files {
			if !row.bundled() {
				files[f.Path], _ = skill.SkillText(tx, row.Skill, f.Path)
			}
		}
		out = skillAudit{Skill: row.ID, Installed: skill.HashOfFiles(files), Origin: core.NullText(row.Origin.Hash),
			Codes: []string{}, ScannedAt: core.TimeOf(rc.Now()), Version: skill.SkillAuditVersion}
		out.Verdict, out.Findings = skill.AuditSkill(files)
		for _, f := range out.Findings {
			if !slices.Contains(out.Codes, f.Code) {
				out.Codes = append(out.Codes, f.Code)
			}
		}
		slices.Sort(out.Codes)
		return nil, nil
	})
	if err != nil {
		return api.Response{}, err
	}
	details, err := json.Marshal(map[string]any{"verdict": out.Verdict, "codes": out.Codes, "installedHash": out.Installed,
		"scanVersion": out.Version, "actorId": rc.Actor.ID})
	if err != nil {
		return api.Response{}, err
	}
	rc.OfNode("skills")
	_, err = rc.Submit(company.KindActivityNote, of, company.Note{Action: "company.skill_audited",
		EntityType: "company_skill", EntityID: out.Skill, Details: details})
	return api.OK(out), err
}
