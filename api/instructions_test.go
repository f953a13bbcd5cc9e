package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestInstructionsAreFilesOfAnAgent(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := h.call("POST", "/api/companies", `{"name":"Acme"}`).want(t, 201, "").field(t, "id")
	agent := h.call("POST", "/api/companies/"+of+"/agents", `{"name":"Ada","adapterConfig":{"promptTemplate":"old","command":"true"}}`).want(t, 201, "").field(t, "id")
	bundle, file := "/api/agents/"+agent+"/instructions-bundle", "/api/agents/"+agent+"/instructions-bundle/file"
	h.call("GET", bundle, "").want(t, 200, `"legacyPromptTemplateActive":true`)
	h.call("PUT", file, `{"path":"AGENTS.md","content":"Lead.","clearLegacyPromptTemplate":true}`).want(t, 200, `"isEntryFile":true`)
	h.call("PUT", file, `{"path":"notes/how.md","content":"Slowly."}`).want(t, 200, `"content":"Slowly."`)
	h.call("PUT", file, `{"path":"notes","content":"x"}`).want(t, 422, "a file and a folder")
	for _, bad := range []string{"../x", "/etc/passwd", "a/../b", "a//b", "C:x"} {
		b, err := json.Marshal(bad)
		if err != nil {
			t.Fatal(err)
		}
		h.call("PUT", file, `{"path":`+string(b)+`,"content":"x"}`).want(t, 422, "Invalid path")
	}
	h.call("PUT", file, `{"path":"big.md","content":"`+strings.Repeat("x", skill.MaxInstructionFile+1)+`"}`).want(t, 400, "content")
	h.call("GET", file+"?path=AGENTS.md", "").want(t, 200, `"content":"Lead."`)
	h.call("GET", file+"?path=none.md", "").want(t, 404, "Instructions file not found")
	h.call("GET", file, "").want(t, 422, "'path'")
	row := string(h.call("GET", "/api/agents/"+agent, "").want(t, 200, `"instructionsBundleMode":"managed"`).body)
	for _, want := range []string{"instructionsFilePath", "instructionsRootPath", "instructionsEntryFile", `"command"`} {
		if !strings.Contains(row, want) {
			t.Errorf("%s is not in %s", want, row)
		}
	}
	if strings.Contains(row, "promptTemplate") {
		t.Errorf("the old prompt stayed: %s", row)
	}
	h.call("DELETE", file+"?path=AGENTS.md", "").want(t, 422, "entry file")
	if a := h.call("DELETE", file+"?path=notes/how.md", "").want(t, 200, "AGENTS.md"); strings.Contains(string(a.body), "how.md") {
		t.Errorf("%s", a.body)
	}
	// Files of a node are named, not read, and only by the board.
	h.call("PATCH", bundle, `{"mode":"external","rootPath":"notes"}`).want(t, 422, "absolute rootPath")
	h.call("PATCH", bundle, `{"mode":"external","rootPath":"/srv/notes"}`).want(t, 200, `"resolvedEntryPath":"/srv/notes/AGENTS.md"`)
	h.call("PUT", file, `{"path":"AGENTS.md","content":"x"}`).want(t, 422, "lie on its node")
	h.call("PATCH", bundle, `{"mode":"managed"}`).want(t, 200, `"path":"AGENTS.md"`)
	h.call("PATCH", "/api/agents/"+agent+"/instructions-path", `{"path":"x.md"}`).want(t, 422, "absolute")
	h.call("PATCH", "/api/agents/"+agent+"/instructions-path", `{"path":"/srv/x.md"}`).want(t, 200, `"adapterConfigKey":"instructionsFilePath"`)
	h.call("PATCH", "/api/agents/"+agent+"/instructions-path", `{"path":"/srv/x","adapterConfigKey":"command"}`).want(t, 422, "adapterConfigKey")
	h.call("PATCH", "/api/agents/"+agent+"/instructions-path", `{"path":null}`).want(t, 200, `"path":null`)
	view(t, h, func(tx *ledger.Tx) {
		if in := skill.InstructionsFor(tx, of, agent); in == nil || in.Texts["AGENTS.md"] != "Lead." {
			t.Errorf("a run gets %+v", in)
		}
	})
	// A deletion takes the files along.
	h.call("DELETE", "/api/agents/"+agent, "").want(t, 200, "")
	view(t, h, func(tx *ledger.Tx) {
		if _, ok := skill.InstructionText(tx, of, agent, "AGENTS.md"); ok {
			t.Error("the text outlived its agent")
		}
	})
}

// An agent begins with the files and skills that it is made with, hired or not,
// and with what the board agreed to.
func TestAnAgentIsMadeWithItsInstructions(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := h.call("POST", "/api/companies", `{"name":"Acme"}`).want(t, 201, "").field(t, "id")
	const with = `"adapterConfig":{"command":"true"},"desiredSkills":["paperclip",{"key":"para-memory-files","versionId":null}],"instructionsBundle":{"entryFile":"ROLE.md","files":{"ROLE.md":"Lead.","notes/how.md":"Slowly."}}`
	made := func(name, agent string) {
		t.Helper()
		h.call("GET", "/api/agents/"+agent, "").want(t, 200, `"instructionsEntryFile":"ROLE.md"`).want(t, 200, `"command":"true"`)
		h.call("GET", "/api/agents/"+agent+"/instructions-bundle/file?path=notes/how.md", "").want(t, 200, `"content":"Slowly."`)
		h.call("GET", "/api/agents/"+agent+"/skills", "").want(t, 200, `"desiredSkills":["paperclip","para-memory-files"]`)
		view(t, h, func(tx *ledger.Tx) {
			if in := skill.InstructionsFor(tx, of, agent); in == nil || in.Entry != "ROLE.md" || in.Texts["ROLE.md"] != "Lead." {
				t.Errorf("a run of %s gets %+v", name, in)
			}
		})
	}
	made("who was made", h.call("POST", "/api/companies/"+of+"/agents", `{"name":"Ada",`+with+`}`).want(t, 201, "").field(t, "id"))
	h.call("PATCH", "/api/companies/"+of, `{"requireBoardApprovalForNewAgents":true}`).want(t, 200, "")
	var hire hired
	if err := json.Unmarshal(h.call("POST", "/api/companies/"+of+"/agent-hires", `{"name":"Bob",`+with+`}`).want(t, 201, `"status":"pending_approval"`).body, &hire); err != nil {
		t.Fatal(err)
	}
	made("who waits", hire.Agent.ID)
	approval := h.call("POST", "/api/companies/"+of+"/approvals", `{"type":"hire_agent","payload":{"name":"Cyd",`+with+`}}`).want(t, 201, "").field(t, "id")
	h.call("POST", "/api/approvals/"+approval+"/approve", `{}`).want(t, 200, "approved")
	cyd := ""
	view(t, h, func(tx *ledger.Tx) {
		for _, a := range company.AgentsOf(tx, of, false) {
			if a.Name == "Cyd" {
				cyd = a.ID
			}
		}
	})
	made("who was asked for", cyd)

	for bad, says := range map[string]string{
		`{"files":{"ROLE.md":"Lead."}}`:                             "has no AGENTS.md",
		`{"files":{}}`:                                              "has no AGENTS.md",
		`{"files":{"AGENTS.md":"Lead.","../x":"y"}}`:                "Invalid path",
		`{"files":{"AGENTS.md":"Lead.","notes":"y","notes/x":"y"}}`: "a file and a folder",
	} {
		h.call("POST", "/api/companies/"+of+"/agent-hires", `{"name":"Eve","instructionsBundle":`+bad+`}`).want(t, 422, says)
		h.call("POST", "/api/companies/"+of+"/approvals", `{"type":"hire_agent","payload":{"name":"Eve","instructionsBundle":`+bad+`}}`).want(t, 422, says)
	}
	for _, bad := range []string{`{}`, `{"files":null}`, `{"files":{"AGENTS.md":1}}`, `{"files":["AGENTS.md"]}`} {
		h.call("POST", "/api/companies/"+of+"/agent-hires", `{"name":"Eve","instructionsBundle":`+bad+`}`).want(t, 400, "files")
	}
	h.call("PATCH", "/api/agents/"+cyd, `{"instructionsBundle":{"files":{"AGENTS.md":"x"}}}`).want(t, 422, "instructions-bundle/file")
	h.call("PATCH", "/api/agents/"+cyd, `{"desiredSkills":["paperclip"]}`).want(t, 422, "skills/sync")
}
