package skill

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Tool is a program of a company that its agents can execute: a WebAssembly module, in
// versions, each signed by the node that accepted it. Effect bounds what a call can do.
type Tool struct {
	Company     ledger.CompanyID `cbor:"1,keyasint" json:"companyId"`
	Name        string           `cbor:"2,keyasint" json:"name"`
	Category    string           `cbor:"3,keyasint" json:"category"` // User
	Description string           `cbor:"4,keyasint,omitempty" json:"description"`
	Parameters  json.RawMessage  `cbor:"5,keyasint,omitempty" json:"parameters"` // a JSON schema, or null
	Effect      ToolEffect       `cbor:"6,keyasint,omitempty" json:"effect"`
	Versions    []ToolVersion    `cbor:"7,keyasint" json:"versions"` // oldest first
	CreatedAt   core.Time        `cbor:"8,keyasint" json:"createdAt"`
	UpdatedAt   core.Time        `cbor:"9,keyasint" json:"updatedAt"`
	// App is the app that offers it; its one version in use is then the last. Rests is set while the app does not run.
	App   string `cbor:"10,keyasint,omitempty" json:"app"`
	Rests bool   `cbor:"11,keyasint,omitempty" json:"rests"`
}

// A ToolEffect says how much of each kind of effect a call can have, in thousandths.
type ToolEffect struct {
	Risk     int64 `cbor:"1,keyasint,omitempty" json:"risk"`
	Security int64 `cbor:"2,keyasint,omitempty" json:"security"`
	Privacy  int64 `cbor:"3,keyasint,omitempty" json:"privacy"`
	Novelty  int64 `cbor:"4,keyasint,omitempty" json:"novelty"`
	Fairness int64 `cbor:"5,keyasint,omitempty" json:"fairness"`
}

// A ToolVersion is one module of a tool.
type ToolVersion struct {
	Version    uint32        `cbor:"1,keyasint" json:"version"`
	Hash       string        `cbor:"2,keyasint" json:"moduleHash"` // SHA-256 of the module, in hex
	Size       int64         `cbor:"3,keyasint" json:"byteSize"`
	Asset      string        `cbor:"4,keyasint" json:"assetId"` // the asset that holds its bytes
	Signature  []byte        `cbor:"5,keyasint" json:"signature"`
	Signer     string        `cbor:"6,keyasint" json:"signerId"` // node
	DeployedAt core.Time     `cbor:"7,keyasint" json:"deployedAt"`
	Revoked    bool          `cbor:"8,keyasint,omitempty" json:"revoked"`
	RevokedAt  core.Time     `cbor:"9,keyasint,omitempty" json:"revokedAt"`
	RevokedWhy core.NullText `cbor:"10,keyasint,omitempty" json:"revokedReason"`
	Seq        uint64        `cbor:"11,keyasint" json:"chainSeq"` // height of its entry
	// A call of a service of the app, instead of a module.
	Service string `cbor:"12,keyasint,omitempty" json:"service"`
	Method  string `cbor:"13,keyasint,omitempty" json:"method"`
}

// Clone returns a copy that shares nothing with t.
func (t Tool) Clone() Tool {
	t.Parameters, t.Versions = slices.Clone(t.Parameters), slices.Clone(t.Versions)
	for i := range t.Versions {
		t.Versions[i].Signature = slices.Clone(t.Versions[i].Signature)
	}
	return t
}

// Latest returns the newest version that is not revoked. Of a tool of an app it is the one of the app's version in use.
func (t Tool) Latest() (ToolVersion, bool) {
	if n := len(t.Versions); t.App != "" && n > 0 {
		return t.Versions[n-1], !t.Versions[n-1].Revoked
	}
	for i := len(t.Versions) - 1; i >= 0; i-- {
		if !t.Versions[i].Revoked {
			return t.Versions[i], true
		}
	}
	return ToolVersion{}, false
}

const (
	// MaxTools bounds the tools of a company, MaxToolVersions the versions of one, which are all
	// in its row.
	MaxTools        = 500
	MaxToolVersions = 64
	// MaxToolParameters bounds a schema, in bytes.
	MaxToolParameters = 16 << 10
	maxToolText       = 2000
	maxToolName       = 64
	// keptAppVersions is how many earlier versions the row of an app's tool keeps, so that what was revoked stays so.
	keptAppVersions = 15
)

// toolDomain separates these signatures from other signatures of the same key.
const toolDomain = "selvage tool version\x00"

// A ToolStatement is what the signature of a version covers, in deterministic CBOR. It binds
// name, version and bytes to each other, in one company of one mesh.
type ToolStatement struct {
	Mesh    string           `cbor:"1,keyasint"`
	Company ledger.CompanyID `cbor:"2,keyasint"`
	Name    string           `cbor:"3,keyasint"`
	Version uint32           `cbor:"4,keyasint"`
	Hash    string           `cbor:"5,keyasint"`
}

// Sign signs the statement with the key of a node.
func (s ToolStatement) Sign(k *identity.Keys) []byte { return k.Sign(toolDomain, ledger.Marshal(s)) }

// SignedBy reports whether a node that is in the roster of tx has signed s. Signatures of a
// revoked node do not count.
func (s ToolStatement) SignedBy(tx *ledger.Tx, node string, signature []byte) bool {
	for _, n := range ledger.Roster(tx) {
		if string(n.ID) == node {
			return n.RevokedAt == 0 && identity.Verify(n.Key, toolDomain, ledger.Marshal(s), signature)
		}
	}
	return false
}

// DeployTool is the payload of "tool.deploy".
type DeployTool struct {
	Name        string          `cbor:"1,keyasint"`
	Description string          `cbor:"2,keyasint,omitempty"`
	Parameters  json.RawMessage `cbor:"3,keyasint,omitempty"`
	Effect      ToolEffect      `cbor:"4,keyasint,omitempty"`
	File        company.NewFile `cbor:"5,keyasint"`
	Version     uint32          `cbor:"6,keyasint"` // the version that was signed; must be the next one
	Signature   []byte          `cbor:"7,keyasint"`
	Signer      string          `cbor:"8,keyasint"`
}

// RevokeTool is the payload of "tool.revoke".
type RevokeTool struct {
	Name    string `cbor:"1,keyasint"`
	Version uint32 `cbor:"2,keyasint"`
	Reason  string `cbor:"3,keyasint,omitempty"`
}

// ExecuteTool is the payload of "tool.execute", which decides whether a version may be
// executed now. Version 0 is the newest.
type ExecuteTool struct {
	Name    string `cbor:"1,keyasint"`
	Version uint32 `cbor:"2,keyasint,omitempty"`
	Input   string `cbor:"3,keyasint"` // SHA-256 of the input, in hex
}

var toolRows = ledger.NewTable[string, Tool]("tool")

// ToolsOf returns the tools of a company by name.
func ToolsOf(tx *ledger.Tx, company ledger.CompanyID) []Tool {
	out := []Tool{}
	for _, t := range toolRows.All(tx, company) {
		out = append(out, t)
	}
	return out
}

// ToolOf returns a tool of a company.
func ToolOf(tx *ledger.Tx, company ledger.CompanyID, name string) (Tool, bool) {
	return toolRows.Get(tx, company, name)
}

const (
	KindToolDeploy  = "tool.deploy"
	KindToolRevoke  = "tool.revoke"
	KindToolExecute = "tool.execute"
)

var toolKinds = []company.Kind{
	{Name: KindToolDeploy, From: company.FromBoard, Traits: company.SeldomWork, Weight: company.Weights.Deploying,
		Do: ledger.Typed(HandleDeployTool)},
	{Name: KindToolRevoke, From: company.FromBoard, Traits: company.SeldomWork, Weight: company.Weights.Halting,
		Do: ledger.Typed(revokeTool)},
	{Name: KindToolExecute, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork | company.ByGiver,
		Weight: company.Weights.Execute, Target: targetOfTool, Do: ledger.Typed(executeTool)},
}

func targetOfTool(cmd *ledger.Command) string {
	var p ExecuteTool
	if ledger.Unmarshal(cmd.Payload, &p) != nil {
		return ""
	}
	return TreePath(cmd.Company, p.Name)
}

// TreePath returns where a tool stands in the resource tree: one of the kernel's, or of a company.
func TreePath(of ledger.CompanyID, name string) string {
	if at, ok := kernelTools[name]; ok {
		return at
	}
	return "/companies/" + string(of) + "/tools/" + url.PathEscape(name)
}

// kernelTools are the paths of the catalogue's tools, by name.
var kernelTools = func() map[string]string {
	at := map[string]string{}
	for _, t := range Catalogue() {
		at[t.Name] = t.Namespace() + "/" + t.Name
	}
	return at
}()

func isToolName(s string) bool {
	if s == "" || len(s) > maxToolName || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.')
	})
}

func (e ToolEffect) Fits() bool {
	for _, n := range []int64{e.Risk, e.Security, e.Privacy, e.Novelty, e.Fairness} {
		if n < 0 || n > 1000 {
			return false
		}
	}
	return true
}

func HandleDeployTool(c *ledger.Context, p DeployTool) (any, error) {
	of := c.Cmd.Company
	if !entity.CompanyExists(c.Tx, of) {
		return nil, company.ErrNoCompany()
	}
	switch {
	case !isToolName(p.Name):
		return nil, ledger.Refuse(ledger.Invalid, nil,
			"name has at most %d small letters, digits, dots, dashes and underscores, and begins with a letter", maxToolName)
	case slices.ContainsFunc(Catalogue(), func(t CatalogueTool) bool { return t.Name == p.Name }):
		return nil, ledger.Refuse(ledger.Conflict, nil, "%s is the name of a tool of the catalogue", p.Name)
	case len(p.Description) > maxToolText:
		return nil, ledger.Refuse(ledger.Invalid, nil, "description has more than %d bytes", maxToolText)
	case len(p.Parameters) > MaxToolParameters || len(p.Parameters) > 0 &&
		(!json.Valid(p.Parameters) || p.Parameters[0] != '{'):
		return nil, ledger.Refuse(ledger.Invalid, nil, "parameters is a JSON schema of at most %d bytes", MaxToolParameters)
	case !p.Effect.Fits():
		return nil, ledger.Refuse(ledger.Invalid, nil, "effects are 0 to 1")
	}
	t, there := toolRows.Get(c.Tx, of, p.Name)
	if !there {
		n := 0
		for range toolRows.All(c.Tx, of) {
			n++
		}
		if n >= MaxTools {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "A company can have at most %d tools", MaxTools)
		}
		t = Tool{Company: of, Name: p.Name, Category: "User", CreatedAt: core.TimeOf(c.Now)}
	}
	if len(t.Versions) >= MaxToolVersions {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "A tool can have at most %d versions", MaxToolVersions)
	}
	if next := uint32(len(t.Versions) + 1); p.Version != next {
		return nil, ledger.Refuse(ledger.Conflict, nil, "The next version of %s is %d, not %d; deploy it again", p.Name,
			next, p.Version)
	}
	s := ToolStatement{string(c.Mesh), of, p.Name, p.Version, p.File.SHA256}
	if p.Signer != string(c.Origin) || !s.SignedBy(c.Tx, p.Signer, p.Signature) {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "The version is not signed by the node that deploys it")
	}
	asset, err := company.Ask.Add(c, p.File, "tools/"+p.Name)
	if err != nil {
		return nil, err
	}
	t.Description, t.Parameters, t.Effect, t.UpdatedAt = p.Description, p.Parameters, p.Effect, core.TimeOf(c.Now)
	t.Versions = append(slices.Clone(t.Versions), ToolVersion{Version: p.Version, Hash: p.File.SHA256, Size: p.File.Size,
		Asset: asset, Signature: p.Signature,
		Signer: p.Signer, DeployedAt: core.TimeOf(c.Now), Seq: c.Height})
	c.Record(ledger.Change{Action: "tool.deployed", EntityType: "tool", EntityID: p.Name,
		Details: core.Object{}.Int("version", int64(p.Version)).Str("moduleHash", p.File.SHA256).
			Str("signerId", p.Signer).Close()})
	return toolRows.Put(c.Tx, of, p.Name, t), nil
}

func errNoTool() error { return ledger.Refuse(ledger.NotFound, nil, "Tool not found") }

// revokeTool makes a version unusable for good.
func revokeTool(c *ledger.Context, p RevokeTool) (any, error) {
	t, ok := toolRows.Get(c.Tx, c.Cmd.Company, p.Name)
	at := slices.IndexFunc(t.Versions, func(v ToolVersion) bool { return v.Version == p.Version })
	switch {
	case !ok || at < 0:
		return nil, errNoTool()
	case t.Versions[at].Revoked:
		return nil, ledger.Refuse(ledger.Conflict, core.Object{}.Str("tool", p.Name).Int("version", int64(p.Version)).
			Str("status", "revoked").Close(), "Version %d of %s is revoked already", p.Version, p.Name)
	case len(p.Reason) > maxToolText:
		return nil, ledger.Refuse(ledger.Invalid, nil, "reason has more than %d bytes", maxToolText)
	}
	t = t.Clone()
	v := &t.Versions[at]
	v.Revoked, v.RevokedAt, v.RevokedWhy, t.UpdatedAt = true, core.TimeOf(c.Now), core.NullText(p.Reason),
		core.TimeOf(c.Now)
	c.Record(ledger.Change{Action: "tool.revoked", EntityType: "tool", EntityID: p.Name,
		Details: core.Object{}.Int("version", int64(p.Version)).Str("reason", p.Reason).Close()})
	return toolRows.Put(c.Tx, t.Company, p.Name, t), nil
}

// executeTool allows or refuses the execution of a version. It returns the version.
func executeTool(c *ledger.Context, p ExecuteTool) (any, error) {
	if len(p.Input) != 64 {
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed digest of the input")
	}
	switch why := company.DeniedTo(c.Tx, c.Cmd.Company, c.Cmd.Actor); why {
	case "":
	case company.DeniedMeshStopped:
		return nil, company.RefuseDenied(why, "Everything is stopped")
	default:
		return nil, company.RefuseDenied(why, "The agent may run no tools now: %s", why)
	}
	t, ok := toolRows.Get(c.Tx, c.Cmd.Company, p.Name)
	if !ok {
		return nil, errNoTool()
	}
	if t.Rests {
		return nil, ledger.Refuse(ledger.Conflict, []byte(`{"code":"app_stopped"}`), "The app %s does not run; start it "+
			"first",
			t.App)
	}
	v, live := t.Latest()
	if p.Version != 0 && (t.App == "" || p.Version != v.Version) {
		at := slices.IndexFunc(t.Versions, func(v ToolVersion) bool { return v.Version == p.Version })
		if at < 0 || t.App != "" {
			return nil, errNoTool()
		}
		v = t.Versions[at]
		live = !v.Revoked
	}
	if !live {
		return nil, ledger.Refuse(ledger.Conflict, []byte(`{"code":"tool_revoked"}`),
			"Tool %s has no version in use that is asked for: it was revoked", p.Name)
	}
	s := ToolStatement{string(c.Mesh), t.Company, t.Name, v.Version, v.Hash}
	if v.Service == "" && !s.SignedBy(c.Tx, v.Signer, v.Signature) { // what a service does is its own
		return nil, ledger.Refuse(ledger.Forbidden, []byte(`{"code":"tool_signature"}`),
			"Version %d of %s is signed by a node that is trusted no more; deploy it again", v.Version, t.Name)
	}
	c.Record(ledger.Change{Action: "tool.executed", EntityType: "tool", EntityID: t.Name,
		Details: core.Object{}.Int("version", int64(v.Version)).Str("moduleHash", v.Hash).Str("inputSha256",
			p.Input).Close()})
	return v, nil
}
