// Package skill is what agents are equipped with: skills with their versions and reviews,
// tools, memory, and instructions.
package skill

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// MaxInstructionFiles bounds the files of an agent's instructions. MaxInstructionFile
	// bounds one of them, in bytes, because it must fit a command.
	MaxInstructionFiles = 64
	MaxInstructionFile  = 128 << 10
	// InstructionsEntry is the file that an agent reads first, unless its
	// configuration names another.
	InstructionsEntry = "AGENTS.md"
)

// Keys of an adapterConfig that say where an agent's instructions are.
const (
	instructionsMode  = "instructionsBundleMode" // managed, or external
	instructionsRoot  = "instructionsRootPath"
	instructionsEntry = "instructionsEntryFile"
	instructionsFile  = "instructionsFilePath"
)

// InstructionPathKeys are the keys of an adapterConfig that may name a file of
// instructions on the executing node.
var InstructionPathKeys = []string{instructionsFile, "agentsMdPath"}

// legacyPrompts are keys that older configurations use instead of files.
var legacyPrompts = []string{"promptTemplate", "bootstrapPromptTemplate"}

// An InstructionFile is a file of an agent's instructions, without its text.
type InstructionFile struct {
	Path string `cbor:"1,keyasint"`
	Size int    `cbor:"2,keyasint"` // bytes
}

// instructionFiles are the files of an agent by path.
type instructionFiles struct {
	Files []InstructionFile `cbor:"1,keyasint,omitempty"`
}

// Clone returns a copy that shares no memory with f.
func (f instructionFiles) Clone() instructionFiles { return instructionFiles{slices.Clone(f.Files)} }

var instructionRows = ledger.NewTable[string, instructionFiles]("agent-instructions")

// instructionKey is the key of a file's text.
func instructionKey(company ledger.CompanyID, agent, path string) []byte {
	sum := sha256.Sum256([]byte(path))
	return ledger.Key("c", string(company), "instruction-file", agent+"."+hex.EncodeToString(sum[:16]))
}

// Instructions say where an agent's instructions are: in files that the mesh stores
// (managed), or in files on the executing node (external).
type Instructions struct {
	Mode         string // managed, external, or "" for none
	Root         string // folder, as the configuration has it; "" for none
	Entry        string // the file to read first, below Root
	File         string // the entry's path as the configuration has it; "" for none
	Files        []InstructionFile
	LegacyPrompt bool // the configuration has a promptTemplate
	LegacyBoot   bool // the configuration has a bootstrapPromptTemplate
}

// ManagedInstructions returns the path by which configurations name the folder of an agent's
// managed files. It exists on no node: a run gets the files below its scratch directory.
func ManagedInstructions(company ledger.CompanyID, agent string) string {
	return "companies/" + string(company) + "/agents/" + agent + "/instructions"
}

// ManagedInstructionsConfig returns the part of an adapterConfig that selects managed files,
// as a JSON object.
func ManagedInstructionsConfig(company ledger.CompanyID, agent, entry string) json.RawMessage {
	root := ManagedInstructions(company, agent)
	return core.Object{}.Str(instructionsFile, root+"/"+entry).Str(instructionsRoot, root).Str(instructionsEntry, entry).
		Str(instructionsMode, "managed").Close()
}

// InstructionsOf returns the instructions of an agent.
func InstructionsOf(tx *ledger.Tx, a entity.Agent) Instructions {
	row, _ := instructionRows.Get(tx, a.Company, a.ID)
	in := Instructions{Entry: InstructionsEntry, Files: slices.Clone(row.Files)}
	v, _ := core.ParseJSON(a.AdapterConfig)
	m, _ := v.(map[string]any)
	text := func(key string) string { s, _ := m[key].(string); return s }
	in.Mode, in.Root, in.File = text(instructionsMode), text(instructionsRoot), text(instructionsFile)
	if s := text(instructionsEntry); s != "" {
		in.Entry = s
	}
	if in.Mode == "" && len(in.Files) > 0 {
		in.Mode, in.Root = "managed", ManagedInstructions(a.Company, a.ID)
	}
	in.LegacyPrompt, in.LegacyBoot = text(legacyPrompts[0]) != "", text(legacyPrompts[1]) != ""
	return in
}

// InstructionText returns the text of a file of an agent's instructions.
func InstructionText(tx *ledger.Tx, company ledger.CompanyID, agent, path string) (text string, ok bool) {
	b, ok := tx.Get(instructionKey(company, agent, path))
	return string(b), ok
}

// InstructionsFor returns the instructions that a run of an agent gets; nil if the mesh
// stores none.
func InstructionsFor(tx *ledger.Tx, of ledger.CompanyID, agent string) *company.RunInstructions {
	a, ok := entity.AgentTable.Get(tx, of, agent)
	if !ok {
		return nil
	}
	in := InstructionsOf(tx, a)
	if in.Mode != "managed" || len(in.Files) == 0 {
		return nil
	}
	out := &company.RunInstructions{Entry: in.Entry, Texts: make(map[string]string, len(in.Files))}
	for _, f := range in.Files {
		out.Texts[f.Path], _ = InstructionText(tx, of, agent, f.Path)
	}
	return out
}

// CleanInstructionPath returns the path of a file in canonical form. It refuses a path that
// leads out of the folder.
func CleanInstructionPath(p string) (string, error) {
	if _, err := CleanSkillPath(p); err != nil || !localPath(p) {
		return "", ledger.Refuse(ledger.Unprocessable, nil,
			"Invalid path: expected one within the instructions, such as notes/HOW.md")
	}
	return p, nil
}

// localPath reports whether each part of p is an ordinary name.
func localPath(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, ":\n\r\t") {
			return false
		}
	}
	return true
}

func errTooManyFiles() error {
	return ledger.Refuse(ledger.Unprocessable, nil, "Instructions have at most %d files", MaxInstructionFiles)
}

func errLongFile() error {
	return ledger.Refuse(ledger.TooLarge, nil, "A file of instructions has at most %d bytes", MaxInstructionFile)
}

func errFileAndFolder(path string) error {
	return ledger.Refuse(ledger.Unprocessable, nil, "%s can not be a file and a folder", path)
}

// nested reports whether a path lies below another.
func nested(path, folder string) bool { return strings.HasPrefix(path, folder+"/") }

// equip gives a new agent the skills and files of p, and returns its configuration, which
// names them.
func equip(c *ledger.Context, a entity.Agent, p entity.SaveAgent) (json.RawMessage, error) {
	if len(p.Skills) > 0 {
		if err := checkSkillKeys(c, p.Skills, false); err != nil {
			return nil, err
		}
		skills := core.Unique(p.Skills)
		if len(skills) > maxAgentSkills {
			return nil, errTooManySkills()
		}
		wantedSkills.Put(c.Tx, a.Company, a.ID, agentSkills{skills})
	}
	if p.Instructions == nil {
		return a.AdapterConfig, nil
	}
	n := *p.Instructions
	if n.Entry == "" {
		n.Entry = InstructionsEntry
	}
	if err := check(n); err != nil {
		return nil, err
	}
	dropInstructions(c.Tx, a)
	var row instructionFiles
	for _, f := range n.Files {
		row.Files = append(row.Files, InstructionFile{f.Path, len(f.Content)})
		c.Set(instructionKey(a.Company, a.ID, f.Path), []byte(f.Content))
	}
	instructionRows.Put(c.Tx, a.Company, a.ID, row)
	return core.MergeObjects(a.AdapterConfig, ManagedInstructionsConfig(a.Company, a.ID, n.Entry)), nil
}

// SaveInstructionFile is the payload of instructions.file. It writes or removes a file of an
// agent's instructions; writing makes the instructions managed.
type SaveInstructionFile struct {
	Agent       string `cbor:"1,keyasint"`
	Path        string `cbor:"2,keyasint"`
	Content     string `cbor:"3,keyasint,omitempty"`
	Delete      bool   `cbor:"4,keyasint,omitempty"`
	ClearLegacy bool   `cbor:"5,keyasint,omitempty"` // remove prompt templates from the configuration
}

// SetInstructions is the payload of instructions.set, which says where an agent's
// instructions are. A nil field keeps the value and an empty one clears it.
type SetInstructions struct {
	Agent       string  `cbor:"1,keyasint"`
	Mode        *string `cbor:"2,keyasint,omitempty"`
	Root        *string `cbor:"3,keyasint,omitempty"` // external: a folder on the executing node
	Entry       *string `cbor:"4,keyasint,omitempty"`
	ClearLegacy bool    `cbor:"5,keyasint,omitempty"`
	// Key and File set a single path, for the route instructions-path.
	Key  string  `cbor:"6,keyasint,omitempty"` // one of InstructionPathKeys
	File *string `cbor:"7,keyasint,omitempty"`
}

const (
	KindInstructionsFile = "instructions.file"
	KindInstructionsSet  = "instructions.set"
)

var instructionKinds = []company.Kind{
	{Name: KindInstructionsFile, From: company.FromBoard | company.FromAgent, Traits: company.Importable,
		Weight: company.Weights.Skilling, Target: company.AgentFirst, Do: ledger.Typed(saveInstructionFile)},
	{Name: KindInstructionsSet, From: company.FromBoard | company.FromAgent, Weight: company.Weights.Skilling,
		Target: company.AgentFirst, Do: ledger.Typed(setInstructions)},
}

// mayInstruct allows the board, the agent itself and its managers to change an agent's
// instructions.
func mayInstruct(c *ledger.Context, a entity.Agent) error {
	if core.IsBoard(c) || c.Cmd.Actor.ID == a.ID {
		return nil
	}
	for boss := range entity.Managers(c.Tx, a) {
		if boss.ID == c.Cmd.Actor.ID {
			return nil
		}
	}
	return ledger.Refuse(ledger.Forbidden, nil,
		"Only the agent itself or one that it reports to can change its instructions")
}

// instructed returns the agent that a command names, if the actor may change its instructions.
func instructed(c *ledger.Context, id string) (entity.Agent, error) {
	a, ok := entity.AgentTable.Get(c.Tx, c.Cmd.Company, id)
	switch {
	case !ok:
		return a, entity.ErrNoAgent()
	case a.Status == entity.AgentTerminated:
		return a, ledger.Refuse(ledger.Conflict, a.Standing(), "Cannot change terminated agent")
	}
	return a, mayInstruct(c, a)
}

// configure stores an agent with changed instructions in its configuration. If the
// configuration differs, it also stores a revision.
func configure(c *ledger.Context, old entity.Agent, patch json.RawMessage, drop ...string) error {
	a := old
	a.AdapterConfig = core.MergeObjects(old.AdapterConfig, patch)
	if v, ok := core.ParseJSON(a.AdapterConfig); ok && len(drop) > 0 {
		m, _ := v.(map[string]any)
		for _, k := range drop {
			delete(m, k)
		}
		a.AdapterConfig = core.FormatJSON(m)
	}
	a.UpdatedAt = core.TimeOf(c.Now)
	if err := a.Check(); err != nil {
		return err
	}
	before := company.ConfigOf(c.Tx, old, a.UpdatedAt)
	entity.AgentTable.Put(c.Tx, a.Company, a.ID, a)
	company.KeepRevision(c, a, before, company.ConfigOf(c.Tx, a, a.UpdatedAt), company.RevisionOrigin{})
	return nil
}

func legacyIf(clear bool) []string {
	if clear {
		return legacyPrompts
	}
	return nil
}

func saveInstructionFile(c *ledger.Context, p SaveInstructionFile) (any, error) {
	a, err := instructed(c, p.Agent)
	if err != nil {
		return nil, err
	}
	at, err := CleanInstructionPath(p.Path)
	if err != nil {
		return nil, err
	}
	in := InstructionsOf(c.Tx, a)
	if in.Mode == "external" {
		return nil, ledger.Refuse(ledger.Unprocessable, nil,
			"The instructions of this agent lie on its node; set mode to managed to keep them in the mesh")
	}
	n := slices.IndexFunc(in.Files, func(f InstructionFile) bool { return f.Path == at })
	action := "agent.instructions_file_updated"
	switch {
	case p.Delete && n < 0:
		return nil, ledger.Refuse(ledger.NotFound, nil, "Instructions file not found")
	case p.Delete && at == in.Entry:
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "Cannot delete the bundle entry file")
	case p.Delete:
		action = "agent.instructions_file_deleted"
		c.Delete(instructionKey(a.Company, a.ID, at))
		in.Files = slices.Delete(in.Files, n, n+1)
	case len(p.Content) > MaxInstructionFile:
		return nil, errLongFile()
	default:
		if n < 0 {
			if len(in.Files) >= MaxInstructionFiles {
				return nil, errTooManyFiles()
			}
			if slices.ContainsFunc(in.Files, func(f InstructionFile) bool { return nested(f.Path, at) || nested(at, f.Path) }) {
				return nil, errFileAndFolder(at)
			}
			in.Files = append(in.Files, InstructionFile{Path: at})
			n = len(in.Files) - 1
		}
		in.Files[n].Size = len(p.Content)
		slices.SortFunc(in.Files, func(a, b InstructionFile) int { return strings.Compare(a.Path, b.Path) })
		c.Set(instructionKey(a.Company, a.ID, at), []byte(p.Content))
	}
	instructionRows.Put(c.Tx, a.Company, a.ID, instructionFiles{in.Files})
	if err := configure(c, a, ManagedInstructionsConfig(a.Company, a.ID, in.Entry),
		legacyIf(p.ClearLegacy)...); err != nil {
		return nil, err
	}
	c.Record(ledger.Change{Action: action, EntityType: "agent", EntityID: a.ID, Details: core.Object{}.Str("path",
		at).Close()})
	return company.AgentRef{ID: a.ID}, nil
}

func setInstructions(c *ledger.Context, p SetInstructions) (any, error) {
	a, err := instructed(c, p.Agent)
	if err != nil {
		return nil, err
	}
	patch, drop, action := json.RawMessage("{}"), legacyIf(p.ClearLegacy), "agent.instructions_bundle_updated"
	in := InstructionsOf(c.Tx, a)
	external := p.Mode != nil && *p.Mode == "external" || p.Mode == nil && in.Mode == "external" || p.Key != "" &&
		p.File != nil && *p.File != ""
	if external && !core.IsBoard(c) {
		return nil, core.ErrBoardOnly() // external paths name files of the executing node
	}
	core.Assign(&in.Mode, p.Mode)
	core.Assign(&in.Root, p.Root)
	core.Assign(&in.Entry, p.Entry)
	if in.Entry == "" {
		in.Entry = InstructionsEntry
	}
	if p.Entry != nil || p.Mode != nil {
		if _, err := CleanInstructionPath(in.Entry); err != nil {
			return nil, err
		}
	}
	switch {
	case p.Key != "":
		action = "agent.instructions_path_updated"
		switch {
		case !slices.Contains(InstructionPathKeys, p.Key):
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "adapterConfigKey is one of %s",
				strings.Join(InstructionPathKeys, ", "))
		case p.File == nil || *p.File == "":
			drop = append(slices.Clone(drop), p.Key)
			if p.Key == instructionsFile {
				drop = append(drop, instructionsRoot, instructionsEntry, instructionsMode)
			}
		case !path.IsAbs(*p.File) || len(*p.File) > 4096:
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "path must be absolute, of at most 4096 bytes")
		default:
			if p.Key == instructionsFile {
				patch = core.Object{}.Str(instructionsRoot, path.Dir(*p.File)).Str(instructionsEntry, path.Base(*p.File)).
					Str(instructionsMode, "external").Str(p.Key, *p.File).Close()
			} else {
				patch = core.Object{}.Str(p.Key, *p.File).Close()
			}
		}
	case in.Mode == "external":
		if !path.IsAbs(in.Root) || len(in.Root) > 4096 {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "External instructions bundles require an absolute rootPath")
		}
		patch = core.Object{}.Str(instructionsFile, path.Join(in.Root, in.Entry)).Str(instructionsRoot, in.Root).
			Str(instructionsEntry, in.Entry).Str(instructionsMode, "external").Close()
	case in.Mode == "managed" || p.Entry != nil:
		patch = ManagedInstructionsConfig(a.Company, a.ID, in.Entry)
	case in.Mode != "":
		return nil, ledger.Refuse(ledger.Invalid, nil, "Unknown mode: %s", in.Mode)
	}
	if err := configure(c, a, patch, drop...); err != nil {
		return nil, err
	}
	c.Record(ledger.Change{Action: action, EntityType: "agent", EntityID: a.ID, Details: core.Object{}.Str("mode",
		in.Mode).Str("entryFile", in.Entry).Close()})
	return company.AgentRef{ID: a.ID}, nil
}

// dropInstructions removes the files of an agent that is deleted.
func dropInstructions(tx *ledger.Tx, a entity.Agent) {
	row, _ := instructionRows.Get(tx, a.Company, a.ID)
	for _, f := range row.Files {
		tx.Delete(instructionKey(a.Company, a.ID, f.Path))
	}
	instructionRows.Delete(tx, a.Company, a.ID)
}

// Rules are the commands and hooks that this package adds to the kernel.
var Rules = company.Rules{
	Tools: offer{},
	Kinds: slices.Concat(skillReviewKinds, toolKinds, toolCallKinds, skillKinds, skillVersionKinds, memoryKinds,
		instructionKinds),
	AgentDeleted: func(c *ledger.Context, a entity.Agent) {
		dropInstructions(c.Tx, a)
		dropMemories(c.Tx, a)
		wantedSkills.Delete(c.Tx, a.Company, a.ID)
	},
	Skills: equipment{},
}

// equipment implements the hook by which the kernel asks about skills.
type equipment struct{}

func (equipment) Equip(c *ledger.Context, a entity.Agent, p entity.SaveAgent) (json.RawMessage, error) {
	return equip(c, a, p)
}

func (equipment) Of(tx *ledger.Tx, company ledger.CompanyID, agent string) []string {
	return SkillsOfAgent(tx, company, agent)
}

// check refuses files that instructions.file would refuse one by one.
func check(n entity.NewInstructions) error {
	if len(n.Files) > MaxInstructionFiles {
		return errTooManyFiles()
	}
	entry := false
	for i, f := range n.Files {
		if _, err := CleanInstructionPath(f.Path); err != nil {
			return err
		}
		if len(f.Content) > MaxInstructionFile {
			return errLongFile()
		}
		for _, other := range n.Files[:i] {
			if other.Path >= f.Path {
				return ledger.Refuse(ledger.Invalid, nil, "The files of instructions are not in the order of their paths")
			}
			if nested(f.Path, other.Path) {
				return errFileAndFolder(other.Path)
			}
		}
		entry = entry || f.Path == n.Entry
	}
	if !entry {
		return ledger.Refuse(ledger.Unprocessable, nil,
			"instructionsBundle.files has no %s; give it, or name another of the files as entryFile", n.Entry)
	}
	return nil
}
