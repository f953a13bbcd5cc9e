package skill_test

import (
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// The catalogue has exactly the tools of the kernel, with the effects by which their calls
// are judged.
func TestTheCatalogue(t *testing.T) {
	t.Parallel()
	want := map[string]skill.ToolEffect{
		"fs.read_file": {Risk: 100}, "fs.write_file": {Risk: 400}, "fs.read_dir": {Risk: 100}, "fs.create_dir": {Risk: 300},
		"fs.remove": {Risk: 700, Security: 300},
		"fs.copy":   {Risk: 300}, "fs.move": {Risk: 500}, "fs.stat": {Risk: 50}, "fs.exists": {Risk: 50},
		"fs.glob":     {Risk: 100},
		"agent.spawn": {Risk: 500}, "agent.stop": {Risk: 400}, "agent.list": {Risk: 50}, "agent.inspect": {Risk: 100},
		"agent.send":    {Risk: 200},
		"agent.suspend": {Risk: 300}, "agent.resume": {Risk: 200}, "ipc.send": {Risk: 200}, "ipc.subscribe": {Risk: 100},
		"sys.service.list": {Risk: 50}, "sys.service.health": {Risk: 50}, "sys.chain.status": {Risk: 50},
		"sys.chain.query": {Risk: 100},
		"sys.tree.read":   {Risk: 50}, "sys.tree.inspect": {Risk: 50}, "sys.env.get": {Risk: 200, Privacy: 300},
		"sys.cron.add": {Risk: 400}, "sys.cron.list": {Risk: 50}, "sys.cron.remove": {Risk: 300},
		"ecc.embed": {Risk: 100}, "ecc.search": {Risk: 50}, "ecc.causal.link": {Risk: 300}, "ecc.causal.query": {Risk: 50},
		"ecc.crossref.create": {Risk: 200},
		"ecc.tick.status":     {Risk: 50}, "ecc.calibration.run": {Risk: 100}, "shell.exec": {Risk: 700, Security: 400},
	}
	for _, tool := range skill.Catalogue() {
		if !skill.IsToolName(tool.Name) || !tool.Effect.Fits() || tool.Description == "" ||
			tool.GateAction != "tool."+tool.Name {
			t.Errorf("%+v", tool)
		}
		if effect, ok := want[tool.Name]; !ok || tool.Effect != effect {
			t.Errorf("%s has %+v, want %+v", tool.Name, tool.Effect, effect)
		}
		delete(want, tool.Name)
	}
	for name := range want {
		t.Errorf("%s is missing", name)
	}
}

func TestTheLifeOfATool(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	keys := identity.Derive(sha256.Sum256([]byte("n")))
	other := identity.Derive(sha256.Sum256([]byte("m")))
	// The test fixture has no mesh: its context names one, and its roster is empty.
	deploy := func(change func(*skill.DeployTool)) error {
		p := skill.DeployTool{Name: "count", Description: "Count words", Parameters: json.RawMessage(`{"type":"object"}`),
			Effect: skill.ToolEffect{Risk: 100}, File: d.File("\x00asm" + d.ID()), Version: 1, Signer: string(keys.ID())}
		p.Signature = skill.ToolStatement{Mesh: "m", Company: d.Company, Name: p.Name, Version: p.Version,
			Hash: p.File.SHA256}.Sign(keys)
		if change != nil {
			change(&p)
		}
		c := d.Context(companytest.Board, "tool.deploy", p)
		c.Mesh, c.Origin = "m", keys.ID()
		_, err := skill.HandleDeployTool(c, p)
		return err
	}
	companytest.WantRefusal(t, deploy(nil), ledger.Forbidden,
		"The version is not signed by the node that deploys it") // the signer is not a member yet
	for _, c := range []struct {
		change func(*skill.DeployTool)
		code   ledger.Code
		text   string
	}{
		{func(p *skill.DeployTool) { p.Name = "Count" }, ledger.Invalid,
			"name has at most 64 small letters, digits, dots, dashes and underscores, and begins with a letter"},
		{func(p *skill.DeployTool) { p.Name = "shell.exec" }, ledger.Conflict,
			"shell.exec is the name of a tool of the catalogue"},
		{func(p *skill.DeployTool) { p.Description = strings.Repeat("x", skill.MaxToolText+1) }, ledger.Invalid,
			"description has more than 2000 bytes"},
		{func(p *skill.DeployTool) { p.Parameters = json.RawMessage(`[]`) }, ledger.Invalid,
			"parameters is a JSON schema of at most 16384 bytes"},
		{func(p *skill.DeployTool) { p.Effect.Risk = 1001 }, ledger.Invalid, "effects are 0 to 1"},
		{func(p *skill.DeployTool) { p.Version = 2 }, ledger.Conflict,
			"The next version of count is 1, not 2; deploy it again"},
		{func(p *skill.DeployTool) { p.Signer = string(other.ID()) }, ledger.Forbidden,
			"The version is not signed by the node that deploys it"},
	} {
		companytest.WantRefusal(t, deploy(c.change), c.code, c.text)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "tool.revoke", skill.RevokeTool{Name: "count", Version: 1}, nil),
		ledger.NotFound, "Tool not found")
	companytest.WantRefusal(t, d.Do(companytest.Board, "tool.execute", skill.ExecuteTool{Name: "count",
		Input: strings.Repeat("0", 64)}, nil), ledger.NotFound, "Tool not found")
}

// A signature binds all of a statement.
func TestWhatASignatureOfAToolBinds(t *testing.T) {
	t.Parallel()
	keys := identity.Derive(sha256.Sum256([]byte("n")))
	s := skill.ToolStatement{Mesh: "mesh", Company: "company", Name: "name", Version: 1, Hash: "hash"}
	sig := s.Sign(keys)
	for _, x := range []skill.ToolStatement{{Mesh: "other", Company: "company", Name: "name", Version: 1, Hash: "hash"},
		{Mesh: "mesh", Company: "other", Name: "name", Version: 1, Hash: "hash"}, {Mesh: "mesh", Company: "company",
			Name: "other", Version: 1, Hash: "hash"},
		{Mesh: "mesh", Company: "company", Name: "name", Version: 2, Hash: "hash"}, {Mesh: "mesh", Company: "company",
			Name: "name", Version: 1, Hash: "other"}, {Mesh: "mesh", Company: "companyname", Name: "", Version: 1,
			Hash: "hash"}} {
		if identity.Verify(keys.Public(), skill.ToolDomain, ledger.Marshal(x), sig) {
			t.Errorf("the signature holds for %+v too", x)
		}
	}
	if !identity.Verify(keys.Public(), skill.ToolDomain, ledger.Marshal(s), sig) {
		t.Error("the signature does not hold for what was signed")
	}
}
