package agents_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/agents"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
	"github.com/selvage-mesh/selvage/sandbox"
)

// answer42 is a module that writes "42\n" to its standard output; forEver is one that never
// ends.
var (
	answer42, _ = hex.DecodeString(
		"0061736d01000000010c0260047f7f7f7f017f60000002230116776173695f736e617073686f745f70726576696577310866" +
			"645f7772697465000003020101050401010101071302066d656d6f727902" +
			"00065f737461727400010a0f010d00410141004101411410001a0b0b11010041000b0b080000000300000034320a")
	forEver, _ = hex.DecodeString(
		"0061736d0100000001040160000003020100050401010101071302066d656d6f727902" +
			"00065f737461727400000a0901070003400c000b0b")
)

// swapped replaces the content of every blob by other bytes, when these are set.
type swapped struct {
	api.Blobs
	by []byte
}

func (s *swapped) Read(ctx context.Context, ref blob.Reference) (blob.Content, error) {
	if s.by == nil {
		return s.Blobs.Read(ctx, ref)
	}
	return struct {
		*bytes.Reader
		io.Closer
	}{bytes.NewReader(s.by), io.NopCloser(nil)}, nil
}

// A tool is deployed, executed, updated and revoked. Each step is recorded, and only
// signed bytes are executed.
func TestToolsAreDeployedRunAndRevoked(t *testing.T) {
	engine, err := sandbox.Open(sandbox.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	var signer *identity.Keys
	files := &swapped{}
	h := apitest.NewHarness(t, func(c *api.Config) {
		files.Blobs, c.Blobs = c.Blobs, files
		c.Tools = &api.ToolBench{
			Sign: func(s skill.ToolStatement) (string, []byte) { return string(signer.ID()), s.Sign(signer) },
			Check: func(ctx context.Context, module []byte) error {
				m, err := engine.Load(ctx, module)
				if err == nil {
					m.Close()
				}
				return err
			},
			Run: func(ctx context.Context, _ skill.ToolUse, module []byte, call sandbox.Call) (sandbox.Result, error) {
				m, err := engine.Load(ctx, module)
				if err != nil {
					return sandbox.Result{}, err
				}
				defer m.Close()
				return m.Run(ctx, call), nil
			},
		}
	})
	signer = h.Node.Keys
	h.Cfg.Tools.Mesh = string(h.Node.Mesh)
	of := ledger.CompanyID(h.Company("Acme"))
	in := "/api/companies/" + string(of) + "/tools"
	h.Call("GET", "/api/v1/tools", "").Want(t, 200, `"name":"fs.remove"`).Want(t, 200, `"risk":700`)
	h.DeployTool(t, of, answer42, map[string]string{"name": "answer", "description": "The answer",
		"parameters": `{"type":"object"}`, "effect": `{"risk":0.1}`}).
		Want(t, 201, `"version":1`).Want(t, 201, `"risk":100`).Want(t, 201, `"revoked":false`)
	run := h.Call("POST", in+"/answer/execute", `{"input":{"x":1}}`).Want(t, 200, `"stdout":"42\n"`).
		Want(t, 200, `"exitCode":0`).Want(t, 200, `"error":null`)
	hash, kind := run.Field(t, "chainHash"), ""
	_ = h.Node.Ledger.View(func(tx *ledger.Tx) error {
		for at, _ := h.Node.Ledger.Head(); at > 0; at-- {
			if e, ok := ledger.EntryAt(tx, at); ok && hex.EncodeToString(e.Hash[:]) == hash {
				kind = e.Kind
			}
		}
		return nil
	})
	if kind != "tool.execute" {
		t.Errorf("chainHash is of an entry %q", kind)
	}
	// Bytes other than those that were signed are not executed, wherever they came from.
	files.by = bytes.Replace(answer42, []byte("42"), []byte("43"), 1)
	h.Call("POST", in+"/answer/execute", `{}`).Want(t, 500, "Internal server error")
	files.by = nil
	h.DeployTool(t, of, forEver, map[string]string{"name": "answer"}).Want(t, 201, `"version":2`)
	h.Call("POST", in+"/answer/execute", `{}`).Want(t, 200, `"code":"FuelExhausted"`).Want(t, 200, `"version":2`)
	h.Call("POST", in+"/answer/execute", `{"version":1}`).Want(t, 200, `"stdout":"42\n"`)
	h.Call("POST", in+"/answer/versions/2/revoke", `{"reason":"it never ends"}`).
		Want(t, 200, `"revokedReason":"it never ends"`)
	h.Call("POST", in+"/answer/versions/2/revoke", `{}`).Want(t, 409, "revoked already")
	h.Call("POST", in+"/answer/execute", `{"version":2}`).Want(t, 409, `"code":"tool_revoked"`)
	h.Call("POST", in+"/answer/execute", `{}`).Want(t, 200, `"version":1`)
	h.Call("GET", in, "").Want(t, 200, `"name":"answer"`)
	h.Call("GET", "/api/companies/"+string(of)+"/activity", "").Want(t, 200, `"tool.deployed"`).
		Want(t, 200, `"tool.revoked"`).Want(t, 200, `"tool.executed"`)

	h.DeployTool(t, of, []byte("no module"), map[string]string{"name": "junk"}).Want(t, 422, `"code":"InvalidModule"`)
	h.DeployTool(t, of, answer42, map[string]string{"name": "Bad Name"}).Want(t, 400, "name has at most")
	h.DeployTool(t, of, answer42, map[string]string{"name": "x", "effect": `{"risk":2}`}).Want(t, 400, "effect")
	h.DeployTool(t, of, answer42, map[string]string{"name": "shell.exec"}).Want(t, 409, "catalogue")
	signer = identity.Derive([32]byte{1}) // the signature of another key
	h.DeployTool(t, of, answer42, map[string]string{"name": "forged"}).Want(t, 403, "not signed by the node")
	h.Call("POST", in+"/forged/execute", `{}`).Want(t, 404, "Tool not found")

	// Agents may execute tools and not deploy them; another company's tools are not found.
	agent := h.Call("POST", "/api/companies/"+string(of)+"/agents", `{"name":"Ada","role":"engineer"}`).Want(t, 201, "").
		Field(t, "id")
	key := "Authorization: Bearer " + h.Call("POST", "/api/agents/"+agent+"/keys", `{"name":"k"}`).Want(t, 201, "").
		Field(t, "token")
	h.Call("POST", in+"/answer/execute", `{}`, key).Want(t, 200, `"stdout":"42\n"`)
	h.DeployTool(t, of, answer42, map[string]string{"name": "mine"}, key).Want(t, 403, "Board access required")
	h.Call("POST", in+"/answer/versions/1/revoke", `{}`, key).Want(t, 403, "Board access required")
	other := h.Company("Other")
	h.Call("POST", "/api/companies/"+other+"/tools/answer/execute", `{}`, key).
		Want(t, 403, "Agent key cannot access another company")
	h.Call("POST", "/api/companies/"+other+"/tools/answer/execute", `{}`).Want(t, 404, "Tool not found")
	h.Call("POST", in+"/answer/execute", fmt.Sprintf(`{"input":%q}`, strings.Repeat("x", agents.MaxToolInput))).
		Want(t, 413, "Request entity too large")

	// Governance refuses an allowed tool when the agent is paused, its company is paused, or
	// everything is stopped. The last applies to the board too.
	denied := func(reason string, headers ...string) {
		t.Helper()
		h.Call("POST", in+"/answer/execute", `{}`, headers...).Want(t, 409, `"code":"GovernanceDenied"`).
			Want(t, 409, `"reason":"`+reason+`"`)
	}
	h.Call("POST", "/api/agents/"+agent+"/pause", `{}`).Want(t, 200, "")
	denied("agent_paused", key)
	h.Call("POST", "/api/agents/"+agent+"/resume", `{}`).Want(t, 200, "")
	h.Call("POST", in+"/answer/execute", `{}`, key).Want(t, 200, "42")
	h.Call("POST", "/api/companies/"+string(of)+"/pause", `{}`).Want(t, 200, "")
	denied("company_paused", key)
	h.Call("POST", in+"/answer/execute", `{}`).Want(t, 200, "42")
	h.Call("POST", "/api/companies/"+string(of)+"/resume", `{}`).Want(t, 200, "")
	h.Call("POST", "/api/v1/mesh/stop", `{}`).Want(t, 200, "")
	denied("mesh_stopped", key)
	denied("mesh_stopped")
	h.Call("POST", "/api/v1/mesh/resume", `{}`).Want(t, 200, "")
	h.Call("POST", in+"/answer/execute", `{}`, key).Want(t, 200, "42")
	h.Call("POST", "/api/companies/"+string(of)+"/budgets/policies",
		fmt.Sprintf(`{"scopeType":"agent","scopeId":%q,"windowKind":"lifetime","amount":5}`, agent)).Want(t, 200, "")
	h.Call("POST", "/api/companies/"+string(of)+"/cost-events",
		fmt.Sprintf(`{"agentId":%q,"provider":"p","model":"m","costCents":5,"occurredAt":"2026-01-02T03:04:05.000Z"}`,
			agent)).Want(t, 201, "")
	denied("budget_paused", key)
}
