package api

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
	"github.com/selvage-mesh/selvage/sandbox"
)

// answer42 is a module that writes "42\n" to its standard output; forEver one
// that goes on for ever.
var (
	answer42, _ = hex.DecodeString("0061736d01000000010c0260047f7f7f7f017f60000002230116776173695f736e617073686f745f70726576696577310866645f7772697465000003020101050401010101071302066d656d6f72790200065f737461727400010a0f010d00410141004101411410001a0b0b11010041000b0b080000000300000034320a")
	forEver, _  = hex.DecodeString("0061736d0100000001040160000003020100050401010101071302066d656d6f72790200065f737461727400000a0901070003400c000b0b")
)

func (h *harness) deployTool(t *testing.T, of string, module []byte, fields map[string]string, headers ...string) answer {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for k, v := range fields {
		_ = w.WriteField(k, v)
	}
	part, _ := w.CreateFormFile("file", "tool.wasm")
	_, _ = part.Write(module)
	_ = w.Close()
	return h.call("POST", "/api/companies/"+of+"/tools", body.String(), append(headers, "Content-Type: "+w.FormDataContentType())...)
}

// swapped are blobs of which each reads as other bytes, when there are some.
type swapped struct {
	Blobs
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

// A tool is deployed, run, given a new version, and revoked; each step is in the
// record, and only what was signed runs.
func TestToolsAreDeployedRunAndRevoked(t *testing.T) {
	engine, err := sandbox.Open(sandbox.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	var signer *identity.Keys
	files := &swapped{}
	h := newHarness(t, func(c *Config) {
		files.Blobs, c.Blobs = c.Blobs, files
		c.Tools = &ToolBench{
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
	signer = h.node.keys
	h.cfg.Tools.Mesh = string(h.node.mesh)
	of := h.company("Acme")
	in := "/api/companies/" + of + "/tools"
	h.call("GET", "/api/v1/tools", "").want(t, 200, `"name":"fs.remove"`).want(t, 200, `"risk":700`)
	h.deployTool(t, of, answer42, map[string]string{"name": "answer", "description": "The answer", "parameters": `{"type":"object"}`, "effect": `{"risk":0.1}`}).
		want(t, 201, `"version":1`).want(t, 201, `"risk":100`).want(t, 201, `"revoked":false`)
	run := h.call("POST", in+"/answer/execute", `{"input":{"x":1}}`).want(t, 200, `"stdout":"42\n"`).want(t, 200, `"exitCode":0`).want(t, 200, `"error":null`)
	hash, kind := run.field(t, "chainHash"), ""
	_ = h.node.ledger.View(func(tx *ledger.Tx) error {
		for at, _ := h.node.ledger.Head(); at > 0; at-- {
			if e, ok := ledger.EntryAt(tx, at); ok && hex.EncodeToString(e.Hash[:]) == hash {
				kind = e.Kind
			}
		}
		return nil
	})
	if kind != "tool.execute" {
		t.Errorf("chainHash is of an entry %q", kind)
	}
	// Other bytes in the place of those that were signed are not run, by whatever way they came there.
	files.by = bytes.Replace(answer42, []byte("42"), []byte("43"), 1)
	h.call("POST", in+"/answer/execute", `{}`).want(t, 500, "")
	files.by = nil
	h.deployTool(t, of, forEver, map[string]string{"name": "answer"}).want(t, 201, `"version":2`)
	h.call("POST", in+"/answer/execute", `{}`).want(t, 200, `"code":"FuelExhausted"`).want(t, 200, `"version":2`)
	h.call("POST", in+"/answer/execute", `{"version":1}`).want(t, 200, `"stdout":"42\n"`)
	h.call("POST", in+"/answer/versions/2/revoke", `{"reason":"it never ends"}`).want(t, 200, `"revokedReason":"it never ends"`)
	h.call("POST", in+"/answer/versions/2/revoke", `{}`).want(t, 409, "revoked already")
	h.call("POST", in+"/answer/execute", `{"version":2}`).want(t, 409, `"code":"tool_revoked"`)
	h.call("POST", in+"/answer/execute", `{}`).want(t, 200, `"version":1`)
	h.call("GET", in, "").want(t, 200, `"name":"answer"`)
	h.call("GET", "/api/companies/"+of+"/activity", "").want(t, 200, `"tool.deployed"`).want(t, 200, `"tool.revoked"`).want(t, 200, `"tool.executed"`)

	h.deployTool(t, of, []byte("no module"), map[string]string{"name": "junk"}).want(t, 422, `"code":"InvalidModule"`)
	h.deployTool(t, of, answer42, map[string]string{"name": "Bad Name"}).want(t, 400, "name has at most")
	h.deployTool(t, of, answer42, map[string]string{"name": "x", "effect": `{"risk":2}`}).want(t, 400, "effect")
	h.deployTool(t, of, answer42, map[string]string{"name": "shell.exec"}).want(t, 409, "catalogue")
	signer = identity.Derive([32]byte{1}) // somebody else's signature
	h.deployTool(t, of, answer42, map[string]string{"name": "forged"}).want(t, 403, "not signed by the node")
	h.call("POST", in+"/forged/execute", `{}`).want(t, 404, "Tool not found")

	// Agents run what there is, and deploy nothing; another company's is not there.
	agent := h.call("POST", "/api/companies/"+of+"/agents", `{"name":"Ada","role":"engineer"}`).want(t, 201, "").field(t, "id")
	key := "Authorization: Bearer " + h.call("POST", "/api/agents/"+agent+"/keys", `{"name":"k"}`).want(t, 201, "").field(t, "token")
	h.call("POST", in+"/answer/execute", `{}`, key).want(t, 200, `"stdout":"42\n"`)
	h.deployTool(t, of, answer42, map[string]string{"name": "mine"}, key).want(t, 403, "Board access required")
	h.call("POST", in+"/answer/versions/1/revoke", `{}`, key).want(t, 403, "Board access required")
	other := h.company("Other")
	h.call("POST", "/api/companies/"+other+"/tools/answer/execute", `{}`, key).want(t, 403, "")
	h.call("POST", "/api/companies/"+other+"/tools/answer/execute", `{}`).want(t, 404, "")
	h.call("POST", in+"/answer/execute", fmt.Sprintf(`{"input":%q}`, strings.Repeat("x", maxToolInput))).want(t, 413, "")

	// What it may run it may not while governance says no: it is paused, its company
	// is, everything is stopped. The board stops at the last of these.
	denied := func(reason string, headers ...string) {
		t.Helper()
		h.call("POST", in+"/answer/execute", `{}`, headers...).want(t, 409, `"code":"GovernanceDenied"`).want(t, 409, `"reason":"`+reason+`"`)
	}
	h.call("POST", "/api/agents/"+agent+"/pause", `{}`).want(t, 200, "")
	denied("agent_paused", key)
	h.call("POST", "/api/agents/"+agent+"/resume", `{}`).want(t, 200, "")
	h.call("POST", in+"/answer/execute", `{}`, key).want(t, 200, "42")
	h.call("POST", "/api/companies/"+of+"/pause", `{}`).want(t, 200, "")
	denied("company_paused", key)
	h.call("POST", in+"/answer/execute", `{}`).want(t, 200, "42")
	h.call("POST", "/api/companies/"+of+"/resume", `{}`).want(t, 200, "")
	h.call("POST", "/api/v1/mesh/stop", `{}`).want(t, 200, "")
	denied("mesh_stopped", key)
	denied("mesh_stopped")
	h.call("POST", "/api/v1/mesh/resume", `{}`).want(t, 200, "")
	h.call("POST", in+"/answer/execute", `{}`, key).want(t, 200, "42")
	h.call("POST", "/api/companies/"+of+"/budgets/policies", fmt.Sprintf(`{"scopeType":"agent","scopeId":%q,"windowKind":"lifetime","amount":5}`, agent)).want(t, 200, "")
	h.call("POST", "/api/companies/"+of+"/cost-events", fmt.Sprintf(`{"agentId":%q,"provider":"p","model":"m","costCents":5,"occurredAt":"2026-01-02T03:04:05.000Z"}`, agent)).want(t, 201, "")
	denied("budget_paused", key)
}
