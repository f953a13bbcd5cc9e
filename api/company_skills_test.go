package api

import (
	"strings"
	"testing"
)

func TestSkillsOfACompany(t *testing.T) {
	h := newTeam(t)
	in := "/api/companies/" + h.company + "/skills"
	made := h.call("POST", in, `{"name":"Greeting","slug":"greeting","description":"Say hi","markdown":"---\nname: greeting\ndescription: Say hi\n---\n# Greeting\nSay hi.","categories":["manners"]}`).
		want(t, 201, `"name":"greeting"`)
	id := made.field(t, "id")
	h.call("POST", in, `{"name":"Greeting"}`).want(t, 409, "Skill already exists: greeting")
	h.call("POST", in, `{"name":"paperclip"}`).want(t, 409, "Skill already exists: paperclip")
	h.call("POST", in, `{"name":"Bad","slug":"Not A Slug"}`).want(t, 400, "slug")
	h.call("POST", in, `{"name":"  "}`).want(t, 400, "")
	h.call("POST", in, `{"name":"Plain"}`, h.as()).want(t, 201, `"slug":"plain"`) // agents may, unless the board says otherwise
	h.call("PATCH", "/api/agents/"+h.worker+"/permissions", `{"canCreateAgents":false,"canAssignTasks":true,"canCreateSkills":false}`).want(t, 200, "")
	h.call("POST", in, `{"name":"Plainer"}`, h.as()).want(t, 403, "canCreateSkills")
	h.call("GET", in, "").want(t, 200, `"key":"company/`+h.company+`/greeting"`).want(t, 200, `"key":"paperclipai/paperclip/para-memory-files"`)
	h.call("GET", in+"/categories", "").want(t, 200, `[{"slug":"manners","count":1}]`)
	h.call("GET", in+"/greeting", "", h.as()).want(t, 200, `"markdown":"---\nname: greeting`)

	version := made.field(t, "currentVersionId")
	h.call("PATCH", in+"/"+id+"/files", `{"path":"references/words.md","content":"hello, good day"}`).want(t, 200, `"kind":"reference"`)
	if a := h.call("GET", in+"/"+id, "").want(t, 200, `"path":"references/words.md"`); a.field(t, "currentVersionId") == version {
		t.Error("a new file makes no new version")
	}
	h.call("GET", in+"/"+id+"/files?path=references/words.md", "").want(t, 200, "good day")
	for _, path := range []string{"../x", "/etc/passwd", "a/../../b", "a//b", "a\\\\b", "./a", "."} {
		h.call("PATCH", in+"/"+id+"/files", `{"path":"`+path+`","content":"x"}`).want(t, 400, "path")
	}
	h.call("GET", in+"/"+id+"/files?path=../../x", "").want(t, 400, "path")
	h.call("GET", in+"/"+id+"/files?path=nothing", "").want(t, 404, "")
	h.call("PATCH", in+"/"+id+"/files", `{"path":"SKILL.md","content":"---\nname: Salute\ndescription: Say more\n---\n"}`).want(t, 200, "")
	h.call("GET", in+"/"+id, "").want(t, 200, `"name":"Salute"`).want(t, 200, `"description":"Say more"`)
	h.call("DELETE", in+"/"+id+"/files", `{"path":"SKILL.md","target":"file"}`).want(t, 422, "")
	h.call("DELETE", in+"/"+id+"/files", `{"path":"references","target":"folder"}`).want(t, 200, "")
	h.call("GET", in+"/"+id+"/files?path=references/words.md", "").want(t, 404, "")
	h.call("PATCH", in+"/"+id, `{"tagline":"for every day","markdown":"---\nname: hi\n---\nx"}`).want(t, 200, `"tagline":"for every day"`).want(t, 200, `"name":"hi"`)

	h.call("PATCH", in+"/paperclip", `{"tagline":"x"}`).want(t, 422, "read-only")
	h.call("DELETE", in+"/paperclip", "").want(t, 422, "read-only")
	h.call("GET", in+"/paperclip/files", "").want(t, 200, `"editable":false`)

	agent := "/api/agents/" + h.worker + "/skills"
	h.call("GET", agent, "").want(t, 200, `"desiredSkills":[]`)
	h.call("POST", agent+"/sync", `{"mode":"add","desiredSkills":["greeting",{"key":"paperclip","versionId":null}]}`, h.as()).want(t, 200, `"company/`+h.company+`/greeting","paperclipai/paperclip/paperclip"`)
	h.call("POST", agent+"/sync", `{"mode":"add","desiredSkills":["nothing"]}`).want(t, 422, "Unknown skill: nothing")
	h.call("POST", "/api/agents/"+h.boss+"/skills/sync", `{"mode":"add","desiredSkills":["greeting"]}`, h.as()).want(t, 403, "")
	h.call("GET", in+"/greeting", "").want(t, 200, `"usedByAgents":[{"id":"`+h.worker+`"`)
	h.call("DELETE", in+"/"+id, "").want(t, 200, "")
	h.call("GET", agent, "").want(t, 200, `"desiredSkills":["paperclipai/paperclip/paperclip"]`)
	h.call("POST", agent+"/sync", `{"mode":"replace","desiredSkills":[]}`).want(t, 200, `"desiredSkills":[]`)
	h.call("GET", in+"/"+id, "").want(t, 404, "Skill not found")

	other := h.call("POST", "/api/companies", `{"name":"Other"}`).want(t, 201, "").field(t, "id")
	h.call("GET", "/api/companies/"+other+"/skills", "", h.as()).want(t, 403, "another company")

	h.call("GET", "/api/skills/catalog", "").want(t, 200, `"id":"selvage:bundled:core:agentmail"`)
	h.call("GET", "/api/skills/catalog/selvage:bundled:core:agentmail", "").want(t, 200, `"contentHash":"sha256:`)
	h.call("GET", "/api/skills/catalog/selvage:bundled:core:agentmail/files", "").want(t, 200, "# Mail")
	h.call("GET", "/api/skills/catalog/nothing", "").want(t, 404, "")
	if a := h.call("GET", "/api/companies/"+h.company+"/activity?entityType=company_skill", ""); strings.Count(string(a.body), `"action":`) != 7 {
		t.Errorf("seven changes left %s", a.body)
	}
}

// What is said of an agent's skills is what its adapter does with them.
func TestWhoIsHandedSkills(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := h.company("Acme")
	for kind, want := range map[string]string{
		"claude_local": `"supported":true,"mode":"ephemeral"`, "codex_local": `"supported":true,"mode":"ephemeral"`, "acp": `"supported":true,"mode":"ephemeral"`,
		"wasm": `"supported":true,"mode":"ephemeral"`, "process": `"supported":false,"mode":"unsupported"`, "http": `"supported":false,"mode":"unsupported"`,
	} {
		id := h.call("POST", "/api/companies/"+of+"/agents", `{"name":"`+kind+`","adapterType":"`+kind+`","adapterConfig":{"command":"x","url":"http://example.com","module":"/x.wasm"}}`).want(t, 201, "").field(t, "id")
		h.call("POST", "/api/agents/"+id+"/skills/sync", `{"mode":"add","desiredSkills":["paperclip"]}`).want(t, 200, want)
		state := map[bool]string{true: "configured", false: "available"}[kind != "wasm" && want[12] == 't']
		h.call("GET", "/api/agents/"+id+"/skills", "").want(t, 200, `"state":"`+state+`"`)
	}
}
