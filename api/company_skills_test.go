package api_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
)

func TestSkillsOfACompany(t *testing.T) {
	h := apitest.NewTeam(t)
	in := "/api/companies/" + string(h.Company) + "/skills"
	made := h.Call("POST", in,
		`{"name":"Greeting","slug":"greeting","description":"Say hi","markdown":"---\nname: `+
			`greeting\ndescription: Say hi\n---\n# Greeting\nSay hi.","categories":["manners"]}`).
		Want(t, 201, `"name":"greeting"`)
	id := made.Field(t, "id")
	h.Call("POST", in, `{"name":"Greeting"}`).Want(t, 409, "Skill already exists: greeting")
	h.Call("POST", in, `{"name":"paperclip"}`).Want(t, 409, "Skill already exists: paperclip")
	h.Call("POST", in, `{"name":"Bad","slug":"Not A Slug"}`).Want(t, 400, "slug")
	h.Call("POST", in, `{"name":"  "}`).Want(t, 400, `"path":["name"]`)
	h.Call("POST", in, `{"name":"Plain"}`, h.As()).
		Want(t, 201, `"slug":"plain"`) // agents may, unless the board says otherwise
	h.Call("PATCH", "/api/agents/"+h.Worker+"/permissions",
		`{"canCreateAgents":false,"canAssignTasks":true,"canCreateSkills":false}`).Want(t, 200, "")
	h.Call("POST", in, `{"name":"Plainer"}`, h.As()).Want(t, 403, "canCreateSkills")
	h.Call("GET", in, "").Want(t, 200, `"key":"company/`+string(h.Company)+`/greeting"`).
		Want(t, 200, `"key":"paperclipai/paperclip/para-memory-files"`)
	h.Call("GET", in+"/categories", "").Want(t, 200, `[{"slug":"manners","count":1}]`)
	h.Call("GET", in+"/greeting", "", h.As()).Want(t, 200, `"markdown":"---\nname: greeting`)

	version := made.Field(t, "currentVersionId")
	h.Call("PATCH", in+"/"+id+"/files", `{"path":"references/words.md","content":"hello, good day"}`).
		Want(t, 200, `"kind":"reference"`)
	if a := h.Call("GET", in+"/"+id, "").Want(t, 200, `"path":"references/words.md"`); a.Field(t,
		"currentVersionId") == version {
		t.Error("a new file makes no new version")
	}
	h.Call("GET", in+"/"+id+"/files?path=references/words.md", "").Want(t, 200, "good day")
	for _, path := range []string{"../x", "/etc/passwd", "a/../../b", "a//b", "a\\\\b", "./a", "."} {
		h.Call("PATCH", in+"/"+id+"/files", `{"path":"`+path+`","content":"x"}`).Want(t, 400, "path")
	}
	h.Call("GET", in+"/"+id+"/files?path=../../x", "").Want(t, 400, "path")
	h.Call("GET", in+"/"+id+"/files?path=nothing", "").Want(t, 404, "Skill file not found")
	h.Call("PATCH", in+"/"+id+"/files", `{"path":"SKILL.md","content":"---\nname: Salute\ndescription: Say more\n---\n"}`).
		Want(t, 200, "")
	h.Call("GET", in+"/"+id, "").Want(t, 200, `"name":"Salute"`).Want(t, 200, `"description":"Say more"`)
	h.Call("DELETE", in+"/"+id+"/files", `{"path":"SKILL.md","target":"file"}`).Want(t, 422, "SKILL.md can not be deleted")
	h.Call("DELETE", in+"/"+id+"/files", `{"path":"references","target":"folder"}`).Want(t, 200, "")
	h.Call("GET", in+"/"+id+"/files?path=references/words.md", "").Want(t, 404, "Skill file not found")
	h.Call("PATCH", in+"/"+id, `{"tagline":"for every day","markdown":"---\nname: hi\n---\nx"}`).
		Want(t, 200, `"tagline":"for every day"`).Want(t, 200, `"name":"hi"`)

	h.Call("PATCH", in+"/paperclip", `{"tagline":"x"}`).Want(t, 422, "read-only")
	h.Call("DELETE", in+"/paperclip", "").Want(t, 422, "read-only")
	h.Call("GET", in+"/paperclip/files", "").Want(t, 200, `"editable":false`)

	agent := "/api/agents/" + h.Worker + "/skills"
	h.Call("GET", agent, "").Want(t, 200, `"desiredSkills":[]`)
	h.Call("POST", agent+"/sync", `{"mode":"add","desiredSkills":["greeting",{"key":"paperclip","versionId":null}]}`,
		h.As()).Want(t, 200, `"company/`+string(h.Company)+`/greeting","paperclipai/paperclip/paperclip"`)
	h.Call("POST", agent+"/sync", `{"mode":"add","desiredSkills":["nothing"]}`).Want(t, 422, "Unknown skill: nothing")
	h.Call("POST", "/api/agents/"+h.Boss+"/skills/sync", `{"mode":"add","desiredSkills":["greeting"]}`, h.As()).
		Want(t, 403, "Only the board or the agent itself can change its skills")
	h.Call("GET", in+"/greeting", "").Want(t, 200, `"usedByAgents":[{"id":"`+h.Worker+`"`)
	h.Call("DELETE", in+"/"+id, "").Want(t, 200, "")
	h.Call("GET", agent, "").Want(t, 200, `"desiredSkills":["paperclipai/paperclip/paperclip"]`)
	h.Call("POST", agent+"/sync", `{"mode":"replace","desiredSkills":[]}`).Want(t, 200, `"desiredSkills":[]`)
	h.Call("GET", in+"/"+id, "").Want(t, 404, "Skill not found")

	other := h.Call("POST", "/api/companies", `{"name":"Other"}`).Want(t, 201, "").Field(t, "id")
	h.Call("GET", "/api/companies/"+other+"/skills", "", h.As()).Want(t, 403, "another company")

	h.Call("GET", "/api/skills/catalog", "").Want(t, 200, `"id":"selvage:bundled:core:agentmail"`)
	h.Call("GET", "/api/skills/catalog/selvage:bundled:core:agentmail", "").Want(t, 200, `"contentHash":"sha256:`)
	h.Call("GET", "/api/skills/catalog/selvage:bundled:core:agentmail/files", "").Want(t, 200, "# Mail")
	h.Call("GET", "/api/skills/catalog/nothing", "").Want(t, 404, "Catalog skill not found")
	if a := h.Call("GET", "/api/companies/"+string(h.Company)+"/activity?entityType=company_skill",
		""); strings.Count(string(a.Body), `"action":`) != 7 {
		t.Errorf("seven changes left %s", a.Body)
	}
}

// What is said of an agent's skills is what its adapter does with them.
func TestWhoIsHandedSkills(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	for kind, want := range map[string]string{
		"claude_local": `"supported":true,"mode":"ephemeral"`, "codex_local": `"supported":true,"mode":"ephemeral"`,
		"acp":  `"supported":true,"mode":"ephemeral"`,
		"wasm": `"supported":true,"mode":"ephemeral"`, "process": `"supported":false,"mode":"unsupported"`,
		"http": `"supported":false,"mode":"unsupported"`,
	} {
		id := h.Call("POST", "/api/companies/"+of+"/agents",
			`{"name":"`+kind+`","adapterType":"`+kind+
				`","adapterConfig":{"command":"x","url":"http://example.com","module":"/x.wasm"}}`).Want(t, 201, "").Field(t, "id")
		h.Call("POST", "/api/agents/"+id+"/skills/sync", `{"mode":"add","desiredSkills":["paperclip"]}`).Want(t, 200, want)
		state := map[bool]string{true: "configured", false: "available"}[kind != "wasm" && want[12] == 't']
		h.Call("GET", "/api/agents/"+id+"/skills", "").Want(t, 200, `"state":"`+state+`"`)
	}
}
