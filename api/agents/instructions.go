package agents

import (
	"path"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// An instructionBundle is the list of an agent's instruction files.
type instructionBundle struct {
	Agent       string               `json:"agentId"`
	Company     ledger.CompanyID     `json:"companyId"`
	Mode        *string              `json:"mode"` // managed, external
	Root        *string              `json:"rootPath"`
	ManagedRoot string               `json:"managedRootPath"`
	Entry       string               `json:"entryFile"`
	EntryPath   *string              `json:"resolvedEntryPath"`
	Editable    bool                 `json:"editable"`
	Warnings    []string             `json:"warnings"`
	Legacy      bool                 `json:"legacyPromptTemplateActive"`
	LegacyBoot  bool                 `json:"legacyBootstrapPromptTemplateActive"`
	Files       []instructionSummary `json:"files"`
}

type instructionSummary struct {
	Path       string `json:"path"`
	Size       int    `json:"size"`
	Language   string `json:"language"`
	Markdown   bool   `json:"markdown"`
	Entry      bool   `json:"isEntryFile"`
	Editable   bool   `json:"editable"`
	Deprecated bool   `json:"deprecated"`
	Virtual    bool   `json:"virtual"`
}

type instructionFile struct {
	instructionSummary
	Content string `json:"content"`
}

type patchInstructions struct {
	Mode        *string         `json:"mode,omitempty" enum:"managed,external" nullable:"false"`
	Root        api.Opt[string] `json:"rootPath" minLength:"1" maxLength:"4096"`
	Entry       *string         `json:"entryFile,omitempty" minLength:"1" maxLength:"200" nullable:"false"`
	ClearLegacy bool            `json:"clearLegacyPromptTemplate,omitempty"`
}

type putInstructions struct {
	Path        string `json:"path" minLength:"1" maxLength:"200"`
	Content     string `json:"content" maxLength:"131072" maxBytes:"131072"`
	ClearLegacy bool   `json:"clearLegacyPromptTemplate,omitempty"`
}

type instructionsPath struct {
	Path *string `json:"path" minLength:"1" maxLength:"4096"`
	Key  string  `json:"adapterConfigKey,omitempty" minLength:"1" maxLength:"200"`
}

// An instructionsPathSet is the answer of the instructions-path route.
type instructionsPathSet struct {
	Agent   string  `json:"agentId"`
	Adapter string  `json:"adapterType"`
	Key     string  `json:"adapterConfigKey"`
	Path    *string `json:"path"`
}

func InstructionRoutes() []api.Route {
	const tag, all, file = "agents", "/api/agents/{id}/instructions-bundle", "/api/agents/{id}/instructions-bundle/file"
	byPath := []api.Param{{Name: "path", Doc: "the file"}}
	return []api.Route{
		{Method: "GET", Path: all, Tag: tag, Summary: "List the files that tell an agent what to do", Query: api.ByName(),
			Out: instructionBundle{}, Handle: readInstructions},
		{Method: "PATCH", Path: all, Tag: tag, Summary: "Say where an agent's instructions are", Query: api.ByName(),
			In: patchInstructions{}, Out: instructionBundle{}, Handle: changeInstructions},
		{Method: "GET", Path: file, Tag: tag, Summary: "Read a file of an agent's instructions",
			Query: append(api.ByName(), byPath...), Out: instructionFile{}, Handle: readInstructionFile},
		{Method: "PUT", Path: file, Tag: tag, Summary: "Write a file of an agent's instructions", Query: api.ByName(),
			In: putInstructions{}, Out: instructionFile{}, Handle: writeInstructionFile},
		{Method: "DELETE", Path: file, Tag: tag, Summary: "Remove a file of an agent's instructions",
			Query: append(api.ByName(), byPath...), Out: instructionBundle{}, Handle: removeInstructionFile},
		{Method: "PATCH", Path: "/api/agents/{id}/instructions-path", Tag: tag,
			Summary: "Name a file of instructions on the executing node", Query: api.ByName(), In: instructionsPath{},
			Out: instructionsPathSet{}, Handle: setInstructionsPath},
	}
}

func showInstructions(tx *ledger.Tx, a entity.Agent) instructionBundle {
	in := skill.InstructionsOf(tx, a)
	b := instructionBundle{Agent: a.ID, Company: a.Company, Mode: api.Optional(in.Mode), Root: api.Optional(in.Root),
		ManagedRoot: skill.ManagedInstructions(a.Company, a.ID),
		Entry:       in.Entry, Editable: in.Mode == "managed", Warnings: []string{}, Legacy: in.LegacyPrompt,
		LegacyBoot: in.LegacyBoot, Files: []instructionSummary{}}
	if in.Mode != "" {
		b.EntryPath = new(path.Join(in.Root, in.Entry))
	}
	if in.Mode == "external" {
		b.Warnings = append(b.Warnings, "These files are on the node that carries out a run; the mesh does not read them.")
		return b
	}
	for _, f := range in.Files {
		b.Files = append(b.Files, summarize(in, f))
	}
	return b
}

func summarize(in skill.Instructions, f skill.InstructionFile) instructionSummary {
	markdown := strings.HasSuffix(strings.ToLower(f.Path), ".md")
	language := "text"
	switch ext := strings.TrimPrefix(strings.ToLower(path.Ext(f.Path)), "."); {
	case markdown:
		language = "markdown"
	case ext == "json" || ext == "yaml" || ext == "toml":
		language = ext
	case ext == "yml":
		language = "yaml"
	}
	return instructionSummary{Path: f.Path, Size: f.Size, Language: language, Markdown: markdown,
		Entry: f.Path == in.Entry, Editable: true}
}

func readInstructions(rc *api.Request) (api.Response, error) {
	return api.Showing(rc, api.AgentIn, func(tx *ledger.Tx, a entity.Agent) any { return showInstructions(tx, a) })
}

// instructionFileOf returns one file.
func instructionFileOf(tx *ledger.Tx, a entity.Agent, at string) (instructionFile, error) {
	in := skill.InstructionsOf(tx, a)
	for _, f := range in.Files {
		if f.Path == at && in.Mode == "managed" {
			text, _ := skill.InstructionText(tx, a.Company, a.ID, at)
			return instructionFile{summarize(in, f), text}, nil
		}
	}
	return instructionFile{}, api.NotFound("Instructions file not found")
}

func queriedFile(rc *api.Request) (string, error) {
	at := rc.Query("path")
	if at == "" {
		return "", api.Unprocessable("Query parameter 'path' is required", nil)
	}
	return skill.CleanInstructionPath(at)
}

func readInstructionFile(rc *api.Request) (r api.Response, err error) {
	at, err := queriedFile(rc)
	if err != nil {
		return r, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		a, err := api.AgentIn(tx, rc)
		if err != nil {
			return err
		}
		f, err := instructionFileOf(tx, a, at)
		r = api.OK(f)
		return err
	})
	return r, err
}

func writeInstructionFile(rc *api.Request) (r api.Response, err error) {
	in, err := api.Body[putInstructions](rc)
	if err != nil {
		return r, err
	}
	a, err := api.FindAgent(rc)
	if err != nil {
		return r, err
	}
	p := skill.SaveInstructionFile{Agent: a.ID, Path: in.Path, Content: in.Content, ClearLegacy: in.ClearLegacy}
	if _, err := rc.Submit(skill.KindInstructionsFile, a.Company, p); err != nil {
		return r, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		a, err := api.AgentIn(tx, rc)
		if err != nil {
			return err
		}
		f, err := instructionFileOf(tx, a, in.Path)
		r = api.OK(f)
		return err
	})
	return r, err
}

func removeInstructionFile(rc *api.Request) (r api.Response, err error) {
	at, err := queriedFile(rc)
	if err != nil {
		return r, err
	}
	return doInstructions(rc, skill.KindInstructionsFile,
		func(a entity.Agent) any { return skill.SaveInstructionFile{Agent: a.ID, Path: at, Delete: true} })
}

// doInstructions submits a command about the agent of the path and answers its files.
func doInstructions(rc *api.Request, kind string, payload func(entity.Agent) any) (r api.Response, err error) {
	a, err := api.FindAgent(rc)
	if err != nil {
		return r, err
	}
	if _, err := rc.Submit(kind, a.Company, payload(a)); err != nil {
		return r, err
	}
	return readInstructions(rc)
}

func changeInstructions(rc *api.Request) (r api.Response, err error) {
	in, err := api.Body[patchInstructions](rc)
	if err != nil {
		return r, err
	}
	return doInstructions(rc, skill.KindInstructionsSet, func(a entity.Agent) any {
		return skill.SetInstructions{Agent: a.ID, Mode: in.Mode, Root: api.TextOf(in.Root), Entry: in.Entry,
			ClearLegacy: in.ClearLegacy}
	})
}

func setInstructionsPath(rc *api.Request) (r api.Response, err error) {
	in, err := api.Body[instructionsPath](rc)
	if err != nil {
		return r, err
	}
	a, err := api.FindAgent(rc)
	if err != nil {
		return r, err
	}
	key := in.Key
	if key == "" {
		key = skill.InstructionPathKeys[0]
	}
	if _, err := rc.Submit(skill.KindInstructionsSet, a.Company, skill.SetInstructions{Agent: a.ID, Key: key,
		File: in.Path}); err != nil {
		return r, err
	}
	return api.OK(instructionsPathSet{a.ID, a.AdapterType, key, in.Path}), nil
}
