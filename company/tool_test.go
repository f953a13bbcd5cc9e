package company

import (
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// The catalogue has the kernel's tools, with what their calls are judged by.
func TestTheCatalogue(t *testing.T) {
	t.Parallel()
	seen, risks := map[string]bool{}, map[string]int64{"fs.read_file": 100, "fs.remove": 700, "agent.spawn": 500, "sys.env.get": 200, "shell.exec": 700, "ecc.search": 50}
	for _, tool := range Catalogue() {
		if seen[tool.Name] || !isToolName(tool.Name) || !tool.Effect.fits() || tool.Description == "" || tool.GateAction != "tool."+tool.Name {
			t.Errorf("%+v", tool)
		}
		seen[tool.Name] = true
		if want, ok := risks[tool.Name]; ok && tool.Effect.Risk != want {
			t.Errorf("%s has risk %d, want %d", tool.Name, tool.Effect.Risk, want)
		}
	}
	for name := range risks {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestTheLifeOfATool(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	keys := identity.Derive(sha256.Sum256([]byte("n")))
	other := identity.Derive(sha256.Sum256([]byte("m")))
	// What the desk has no mesh for: its context names one, and its roster is empty.
	deploy := func(change func(*DeployTool)) error {
		p := DeployTool{Name: "count", Description: "Count words", Parameters: json.RawMessage(`{"type":"object"}`), Effect: ToolEffect{Risk: 100}, File: d.file("\x00asm" + d.id()), Version: 1, Signer: string(keys.ID())}
		p.Signature = ToolStatement{"m", d.company, p.Name, p.Version, p.File.SHA256}.Sign(keys)
		if change != nil {
			change(&p)
		}
		c := d.context(board, "tool.deploy", p)
		c.Mesh, c.Origin = "m", keys.ID()
		_, err := deployTool(c, p)
		return err
	}
	wantRefusal(t, deploy(nil), ledger.Forbidden, "The version is not signed by the node that deploys it") // which is no member yet
	for _, c := range []struct {
		change func(*DeployTool)
		code   ledger.Code
		text   string
	}{
		{func(p *DeployTool) { p.Name = "Count" }, ledger.Invalid, "name has at most 64 small letters, digits, dots, dashes and underscores, and begins with a letter"},
		{func(p *DeployTool) { p.Name = "shell.exec" }, ledger.Conflict, "shell.exec is the name of a tool of the catalogue"},
		{func(p *DeployTool) { p.Description = strings.Repeat("x", maxToolText+1) }, ledger.Invalid, "description has more than 2000 bytes"},
		{func(p *DeployTool) { p.Parameters = json.RawMessage(`[]`) }, ledger.Invalid, "parameters is a JSON schema of at most 16384 bytes"},
		{func(p *DeployTool) { p.Effect.Risk = 1001 }, ledger.Invalid, "effects are 0 to 1"},
		{func(p *DeployTool) { p.Version = 2 }, ledger.Conflict, "The next version of count is 1, not 2; deploy it again"},
		{func(p *DeployTool) { p.Signer = string(other.ID()) }, ledger.Forbidden, "The version is not signed by the node that deploys it"},
	} {
		wantRefusal(t, deploy(c.change), c.code, c.text)
	}
	wantRefusal(t, d.do(board, "tool.revoke", RevokeTool{Name: "count", Version: 1}, nil), ledger.NotFound, "Tool not found")
	wantRefusal(t, d.do(board, "tool.execute", ExecuteTool{Name: "count", Input: strings.Repeat("0", 64)}, nil), ledger.NotFound, "Tool not found")
}

// A signature binds all of a statement.
func TestWhatASignatureOfAToolBinds(t *testing.T) {
	t.Parallel()
	keys := identity.Derive(sha256.Sum256([]byte("n")))
	s := ToolStatement{"mesh", "company", "name", 1, "hash"}
	sig := s.Sign(keys)
	for _, x := range []ToolStatement{{"other", "company", "name", 1, "hash"}, {"mesh", "other", "name", 1, "hash"}, {"mesh", "company", "other", 1, "hash"},
		{"mesh", "company", "name", 2, "hash"}, {"mesh", "company", "name", 1, "other"}, {"mesh", "companyname", "", 1, "hash"}} {
		if identity.Verify(keys.Public(), toolDomain, ledger.Marshal(x), sig) {
			t.Errorf("the signature holds for %+v too", x)
		}
	}
	if !identity.Verify(keys.Public(), toolDomain, ledger.Marshal(s), sig) {
		t.Error("the signature does not hold for what was signed")
	}
}
