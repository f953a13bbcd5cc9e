package skill

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

var appToolSyntax = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}/[a-z0-9][a-z0-9_-]{0,63}$`)

// An offer takes the tools of apps.
type offer struct{}

// OfferTool gives the company a tool of an app. The version that is offered is the one in use, also if it is older than
// others; one that was revoked stays revoked.
func (offer) OfferTool(c *ledger.Context, n company.NewTool) error {
	effect := ToolEffect{n.Effect[0], n.Effect[1], n.Effect[2], n.Effect[3], n.Effect[4]}
	v := ToolVersion{Version: n.Version, Hash: n.Hash, Size: n.Size, Asset: n.Asset, Signature: n.Signature,
		Signer: n.Signer, DeployedAt: core.TimeOf(c.Now), Seq: c.Height, Service: n.Service, Method: n.Method}
	of := c.Cmd.Company
	s := ToolStatement{string(c.Mesh), of, n.Name, n.Version, n.Hash}
	switch {
	case !appToolSyntax.MatchString(n.Name):
		return ledger.Refuse(ledger.Invalid, nil, "tools: %q is not APP/TOOL", core.Snippet(n.Name, 80))
	case len(n.About) > maxToolText:
		return ledger.Refuse(ledger.Invalid, nil, "tools: the description of %s has more than %d bytes", n.Name, maxToolText)
	case len(n.Parameters) > MaxToolParameters || len(n.Parameters) > 0 &&
		(!json.Valid(n.Parameters) || n.Parameters[0] != '{'):
		return ledger.Refuse(ledger.Invalid, nil, "tools: the parameters of %s are a JSON schema of at most %d bytes", n.Name,
			MaxToolParameters)
	case !effect.Fits() || n.Version == 0 || !core.IsHash(n.Hash):
		return ledger.Refuse(ledger.Invalid, nil, "tools: malformed tool %s", n.Name)
	case n.Service == "" && !s.SignedBy(c.Tx, n.Signer, n.Signature):
		return ledger.Refuse(ledger.Forbidden, nil,
			"tools: %s is signed by a node that is not trusted; install this version of the app again", n.Name)
	}
	t, there := toolRows.Get(c.Tx, of, n.Name)
	if !there {
		if err := core.HasRoom(toolRows.All(c.Tx, of), MaxTools, "tools"); err != nil {
			return err
		}
		t = Tool{Company: of, Name: n.Name, Category: "App", CreatedAt: core.TimeOf(c.Now)}
	}
	t = t.Clone()
	for i, old := range t.Versions {
		if old.Version == n.Version && old.Hash == n.Hash {
			v = old // with what is known of it
			t.Versions = slices.Delete(t.Versions, i, i+1)
			break
		}
	}
	t.Versions = append(t.Versions[max(0, len(t.Versions)-keptAppVersions):], v)
	t.App, _, _ = strings.Cut(n.Name, "/")
	t.Description, t.Parameters, t.Effect, t.Rests, t.UpdatedAt = n.About, n.Parameters, effect, false, core.TimeOf(c.Now)
	toolRows.Put(c.Tx, of, n.Name, t)
	return nil
}

// RestTool keeps a tool, and nobody can execute it.
func (offer) RestTool(c *ledger.Context, name string) {
	if t, ok := toolRows.Get(c.Tx, c.Cmd.Company, name); ok && !t.Rests {
		t = t.Clone()
		t.Rests = true
		toolRows.Put(c.Tx, c.Cmd.Company, name, t)
	}
}

// WithdrawTool removes a tool, if it is there.
func (offer) WithdrawTool(c *ledger.Context, name string) {
	if _, ok := toolRows.Get(c.Tx, c.Cmd.Company, name); ok {
		toolRows.Delete(c.Tx, c.Cmd.Company, name)
	}
}
