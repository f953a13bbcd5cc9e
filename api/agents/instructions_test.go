package agents_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/agents"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestInstructionsAreFilesOfAnAgent(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Call("POST", "/api/companies", `{"name":"Acme"}`).Want(t, 201, "").Field(t, "id"))
	agent := h.Call("POST", "/api/companies/"+string(of)+"/agents",
		`{"name":"Ada","adapterConfig":{"promptTemplate":"old","command":"true"}}`).Want(t, 201, "").Field(t, "id")
	bundle, file := "/api/agents/"+agent+"/instructions-bundle", "/api/agents/"+agent+"/instructions-bundle/file"
	h.Call("GET", bundle, "").Want(t, 200, `"legacyPromptTemplateActive":true`)
	h.Call("PUT", file, `{"path":"AGENTS.md","content":"Lead.","clearLegacyPromptTemplate":true}`).
		Want(t, 200, `"isEntryFile":true`)
	h.Call("PUT", file, `{"path":"notes/how.md","content":"Slowly."}`).Want(t, 200, `"content":"Slowly."`)
	h.Call("PUT", file, `{"path":"notes","content":"x"}`).Want(t, 422, "a file and a folder")
	for _, bad := range []string{"../x", "/etc/passwd", "a/../b", "a//b", "C:x"} {
		b, err := json.Marshal(bad)
		if err != nil {
			t.Fatal(err)
		}
		h.Call("PUT", file, `{"path":`+string(b)+`,"content":"x"}`).Want(t, 422, "Invalid path")
	}
	h.Call("PUT", file, `{"path":"big.md","content":"`+strings.Repeat("x", skill.MaxInstructionFile+1)+`"}`).
		Want(t, 400, "content")
	h.Call("GET", file+"?path=AGENTS.md", "").Want(t, 200, `"content":"Lead."`)
	h.Call("GET", file+"?path=none.md", "").Want(t, 404, "Instructions file not found")
	h.Call("GET", file, "").Want(t, 422, "'path'")
	row := string(h.Call("GET", "/api/agents/"+agent, "").Want(t, 200, `"instructionsBundleMode":"managed"`).Body)
	for _, want := range []string{"instructionsFilePath", "instructionsRootPath", "instructionsEntryFile", `"command"`} {
		if !strings.Contains(row, want) {
			t.Errorf("%s is not in %s", want, row)
		}
	}
	if strings.Contains(row, "promptTemplate") {
		t.Errorf("the old prompt stayed: %s", row)
	}
	h.Call("DELETE", file+"?path=AGENTS.md", "").Want(t, 422, "entry file")
	if a := h.Call("DELETE", file+"?path=notes/how.md", "").
		Want(t, 200, "AGENTS.md"); strings.Contains(string(a.Body), "how.md") {
		t.Errorf("%s", a.Body)
	}
	// Files on a node are referenced, not read, and only the board may set them.
	h.Call("PATCH", bundle, `{"mode":"external","rootPath":"notes"}`).Want(t, 422, "absolute rootPath")
	h.Call("PATCH", bundle, `{"mode":"external","rootPath":"/srv/notes"}`).
		Want(t, 200, `"resolvedEntryPath":"/srv/notes/AGENTS.md"`)
	h.Call("PUT", file, `{"path":"AGENTS.md","content":"x"}`).Want(t, 422, "lie on its node")
	h.Call("PATCH", bundle, `{"mode":"managed"}`).Want(t, 200, `"path":"AGENTS.md"`)
	h.Call("PATCH", "/api/agents/"+agent+"/instructions-path", `{"path":"x.md"}`).Want(t, 422, "absolute")
	h.Call("PATCH", "/api/agents/"+agent+"/instructions-path", `{"path":"/srv/x.md"}`).
		Want(t, 200, `"adapterConfigKey":"instructionsFilePath"`)
	h.Call("PATCH", "/api/agents/"+agent+"/instructions-path", `{"path":"/srv/x","adapterConfigKey":"command"}`).
		Want(t, 422, "adapterConfigKey")
	h.Call("PATCH", "/api/agents/"+agent+"/instructions-path", `{"path":null}`).Want(t, 200, `"path":null`)
	apitest.View(t, h, func(tx *ledger.Tx) {
		if in := skill.InstructionsFor(tx, of, agent); in == nil || in.Texts["AGENTS.md"] != "Lead." {
			t.Errorf("a run gets %+v", in)
		}
	})
	// Deleting an agent deletes its files.
	h.Call("DELETE", "/api/agents/"+agent, "").Want(t, 200, "")
	apitest.View(t, h, func(tx *ledger.Tx) {
		if _, ok := skill.InstructionText(tx, of, agent, "AGENTS.md"); ok {
			t.Error("the text outlived its agent")
		}
	})
}

// An agent has the files and skills that it was created with, hired or not, after the
// board's approval too.
func TestAnAgentIsMadeWithItsInstructions(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Call("POST", "/api/companies", `{"name":"Acme"}`).Want(t, 201, "").Field(t, "id"))
	const with = `"adapterConfig":{"command":"true"},"desiredSkills":["paperclip",{"key":"para-memory-files",` +
		`"versionId":null}],"instructionsBundle":{"entryFile":"ROLE.md","files":{"ROLE.md":"Lead.","notes/how.md":"Slowly."}}`
	made := func(name, agent string) {
		t.Helper()
		h.Call("GET", "/api/agents/"+agent, "").Want(t, 200, `"instructionsEntryFile":"ROLE.md"`).
			Want(t, 200, `"command":"true"`)
		h.Call("GET", "/api/agents/"+agent+"/instructions-bundle/file?path=notes/how.md", "").
			Want(t, 200, `"content":"Slowly."`)
		h.Call("GET", "/api/agents/"+agent+"/skills", "").Want(t, 200, `"desiredSkills":["paperclip","para-memory-files"]`)
		apitest.View(t, h, func(tx *ledger.Tx) {
			if in := skill.InstructionsFor(tx, of, agent); in == nil || in.Entry != "ROLE.md" || in.Texts["ROLE.md"] != "Lead." {
				t.Errorf("a run of %s gets %+v", name, in)
			}
		})
	}
	made("who was made", h.Call("POST", "/api/companies/"+string(of)+"/agents", `{"name":"Ada",`+with+`}`).
		Want(t, 201, "").Field(t, "id"))
	h.Call("PATCH", "/api/companies/"+string(of), `{"requireBoardApprovalForNewAgents":true}`).Want(t, 200, "")
	var hire agents.Hired
	if err := json.Unmarshal(h.Call("POST", "/api/companies/"+string(of)+"/agent-hires", `{"name":"Bob",`+with+`}`).
		Want(t, 201, `"status":"pending_approval"`).Body, &hire); err != nil {
		t.Fatal(err)
	}
	made("who waits", hire.Agent.ID)
	approval := h.Call("POST", "/api/companies/"+string(of)+"/approvals",
		`{"type":"hire_agent","payload":{"name":"Cyd",`+with+`}}`).Want(t, 201, "").Field(t, "id")
	h.Call("POST", "/api/approvals/"+approval+"/approve", `{}`).Want(t, 200, "approved")
	cyd := ""
	apitest.View(t, h, func(tx *ledger.Tx) {
		for _, a := range entity.AgentsOf(tx, of, false) {
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
		h.Call("POST", "/api/companies/"+string(of)+"/agent-hires", `{"name":"Eve","instructionsBundle":`+bad+`}`).
			Want(t, 422, says)
		h.Call("POST", "/api/companies/"+string(of)+"/approvals",
			`{"type":"hire_agent","payload":{"name":"Eve","instructionsBundle":`+bad+`}}`).Want(t, 422, says)
	}
	for _, bad := range []string{`{}`, `{"files":null}`, `{"files":{"AGENTS.md":1}}`, `{"files":["AGENTS.md"]}`} {
		h.Call("POST", "/api/companies/"+string(of)+"/agent-hires", `{"name":"Eve","instructionsBundle":`+bad+`}`).
			Want(t, 400, "files")
	}
	h.Call("PATCH", "/api/agents/"+cyd, `{"instructionsBundle":{"files":{"AGENTS.md":"x"}}}`).
		Want(t, 422, "instructions-bundle/file")
	h.Call("PATCH", "/api/agents/"+cyd, `{"desiredSkills":["paperclip"]}`).Want(t, 422, "skills/sync")
}
