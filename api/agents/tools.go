package agents

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
	"github.com/selvage-mesh/selvage/sandbox"
)

const (
	// maxToolInput bounds a tool's input, in bytes.
	maxToolInput = 1 << 20
	// maxToolTime bounds one execution.
	maxToolTime = 5 * time.Minute
)

func ToolRoutes() []api.Route {
	const tag, all = "tools", "/api/companies/{companyId}/tools"
	return []api.Route{
		{Method: "GET", Path: "/api/v1/tools", Tag: tag, Summary: "List the tools of the catalogue, with their effects",
			Out:    []skill.CatalogueTool{},
			Handle: func(*api.Request) (api.Response, error) { return api.OK(skill.Catalogue()), nil }},
		api.Read(api.Route{Path: all, Tag: tag, Summary: "List the tools of a company"}, listTools),
		{Method: "POST", Path: all, Tag: tag,
			Summary: "Deploy a version of a tool: a form with file, name, description, parameters, effect", Who: api.Board,
			Status: 201,
			Takes: api.Form(api.Param{Name: "name", Doc: "The tool's name, the same for all its versions."},
				api.Param{Name: "description", Doc: "What it does, for a model."},
				api.Param{Name: "parameters", Doc: "JSON schema of its input."},
				api.Param{Name: "effect", Doc: "Which effect it has, from the catalogue of tools."}),
			Out: skill.Tool{}, MaxBody: sandbox.DefaultModule + api.MultipartRoom, NoTool: true, Timeout: api.UploadTimeout,
			Handle: deployTool},
		{Method: "GET", Path: all + "/{name}", Tag: tag, Summary: "Read a tool", Out: skill.Tool{}, Handle: readTool},
		{Method: "POST", Path: all + "/{name}/execute", Once: true, Tag: tag,
			Summary: "Run a tool in the sandbox of this node", In: executeToolBody{}, Out: toolResult{},
			Timeout: maxToolTime + api.RequestTimeout, Handle: executeTool},
		{Method: "POST", Path: all + "/{name}/versions/{version}/revoke", Tag: tag,
			Summary: "Take a version of a tool out of use", Who: api.Board, In: revokeToolBody{},
			Out: skill.Tool{}, Handle: revokeTool},
	}
}

// defaultToolFuel is what a call of a tool may use unless it says otherwise: about a tenth of a second. The default of
// the sandbox is less than a program of Go takes to begin, which is two million.
const defaultToolFuel = 100_000_000

type executeToolBody struct {
	Input    json.RawMessage `json:"input,omitempty"` // standard input of the module
	Version  int64           `json:"version,omitempty" minimum:"0" maximum:"64"`
	Fuel     int64           `json:"fuel,omitempty" minimum:"0" maximum:"100000000000"`
	MemoryMB int64           `json:"memoryMb,omitempty" minimum:"0" maximum:"512"`
	Timeout  int64           `json:"timeoutMs,omitempty" minimum:"0" maximum:"300000"`
}

type revokeToolBody struct {
	Reason string `json:"reason,omitempty" maxLength:"2000"`
}

// A toolResult is the result of one execution of a tool. The members of the sandbox's
// result are those of `selvage sandbox run -o json`.
type toolResult struct {
	Tool      string     `json:"tool"`
	Version   uint32     `json:"version"`
	Hash      string     `json:"moduleHash"`
	Exit      *int       `json:"exitCode"` // null when it was stopped
	Stdout    string     `json:"stdout"`
	Stderr    string     `json:"stderr"`
	Fuel      int64      `json:"fuelUsed"`
	Memory    int64      `json:"memoryPeak"`
	Took      int64      `json:"durationMs"`
	Error     *toolFault `json:"error"`
	ChainHash *string    `json:"chainHash"` // of the entry that allowed the execution
}

type toolFault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func listTools(tx *ledger.Tx, rc *api.Request) ([]skill.Tool, error) {
	if !api.Seen(tx, rc, api.CompanyID(rc)) {
		return nil, api.NotFound("Company not found")
	}
	return skill.ToolsOf(tx, api.CompanyID(rc)), nil
}

func findTool(tx *ledger.Tx, rc *api.Request) (skill.Tool, error) {
	t, ok := skill.ToolOf(tx, api.CompanyID(rc), rc.Path("name"))
	if !ok || !api.Seen(tx, rc, t.Company) {
		return t, api.NotFound("Tool not found")
	}
	return t, nil
}

func readTool(rc *api.Request) (api.Response, error) {
	return api.Viewed(rc, func(tx *ledger.Tx) (skill.Tool, error) { return findTool(tx, rc) })
}

// deployTool receives a module, has the sandbox check it, signs name, version and bytes,
// and submits the next version.
func deployTool(rc *api.Request) (api.Response, error) {
	s := rc.Server
	if s.Cfg.Tools == nil {
		return api.Response{}, api.Unavailable("This node has no sandbox")
	}
	up, err := rc.Receive(sandbox.DefaultModule, api.TooManyBytes("Module", sandbox.DefaultModule))
	if err != nil {
		return api.Response{}, err
	}
	p := skill.DeployTool{Name: up.Fields["name"], Description: up.Fields["description"], File: up.File}
	if text := up.Fields["parameters"]; text != "" {
		p.Parameters = json.RawMessage(text)
	}
	if p.Effect, err = effectOf(up.Fields["effect"]); err != nil {
		return api.Response{}, err
	}
	module, err := blobBytes(s, rc.Context(), blob.Reference{Digest: up.Digest, Size: up.File.Size})
	if err != nil {
		return api.Response{}, err
	}
	if err := s.Cfg.Tools.Check(rc.Context(), module); err != nil {
		if bad, ok := errors.AsType[*sandbox.Error](err); ok {
			return api.Response{}, ledger.Refuse(ledger.Unprocessable, fmt.Appendf(nil, `{"code":%q}`, bad.Code),
				"The module can not be run: %s", bad.Error())
		}
		return api.Response{}, err
	}
	of := api.CompanyID(rc)
	err = rc.View(func(tx *ledger.Tx) error {
		t, _ := skill.ToolOf(tx, of, p.Name)
		p.Version = uint32(len(t.Versions) + 1)
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	if _, err := rc.Spread(&up); err != nil {
		return api.Response{}, err
	}
	p.File = up.File
	p.Signer, p.Signature = s.Cfg.Tools.Sign(skill.ToolStatement{Mesh: s.Cfg.Tools.Mesh, Company: of, Name: p.Name,
		Version: p.Version, Hash: p.File.SHA256})
	t, err := api.Do[skill.Tool](rc, skill.KindToolDeploy, of, p)
	return api.OK(t), err
}

// effectOf parses {"risk": 0.3, …} into thousandths.
func effectOf(text string) (e skill.ToolEffect, err error) {
	if text == "" {
		return e, nil
	}
	var in struct{ Risk, Security, Privacy, Novelty, Fairness float64 }
	if json.Unmarshal([]byte(text), &in) != nil {
		return e, api.Invalid("effect is an object of numbers from 0 to 1")
	}
	for _, x := range []struct {
		from float64
		to   *int64
	}{{in.Risk, &e.Risk}, {in.Security, &e.Security}, {in.Privacy, &e.Privacy}, {in.Novelty, &e.Novelty},
		{in.Fairness, &e.Fairness}} {
		if !(x.from >= 0 && x.from <= 1) {
			return e, api.Invalid("effect is an object of numbers from 0 to 1")
		}
		*x.to = int64(math.Round(x.from * 1000))
	}
	return e, nil
}

func blobBytes(s *api.Server, ctx context.Context, ref blob.Reference) ([]byte, error) {
	c, err := s.Cfg.Blobs.Read(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return io.ReadAll(io.LimitReader(c, sandbox.DefaultModule+1))
}

func revokeTool(rc *api.Request) (api.Response, error) {
	in, err := api.Body[revokeToolBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	v, err := strconv.ParseUint(rc.Path("version"), 10, 32)
	if err != nil {
		return api.Response{}, api.NotFound("Tool not found")
	}
	t, err := api.Do[skill.Tool](rc, skill.KindToolRevoke, api.CompanyID(rc), skill.RevokeTool{Name: rc.Path("name"),
		Version: uint32(v), Reason: in.Reason})
	return api.OK(t), err
}

// executeTool submits the decision to the rules, verifies that the bytes are those that
// were signed, and executes them. The module has access to its input only.
func executeTool(rc *api.Request) (api.Response, error) {
	in, err := api.Body[executeToolBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	s := rc.Server
	if len(in.Input) > maxToolInput {
		return api.Response{}, ledger.Refuse(ledger.TooLarge, nil, "input has more than %d bytes", maxToolInput)
	}
	select {
	case s.Tools <- struct{}{}:
		defer func() { <-s.Tools }()
	default:
		return api.Response{}, ledger.Refuse(ledger.TooMany, nil, "Too many tools are at work on this node; try again")
	}
	if err := rc.ChargeTool(true); err != nil {
		return api.Response{}, err
	}
	sum := sha256.Sum256(in.Input)
	receipt, err := rc.Submit(skill.KindToolExecute, api.CompanyID(rc), skill.ExecuteTool{Name: rc.Path("name"),
		Version: uint32(in.Version), Input: hex.EncodeToString(sum[:])})
	if err != nil {
		return api.Response{}, err
	}
	var v skill.ToolVersion
	if err := ledger.Unmarshal(receipt.Value, &v); err != nil {
		return api.Response{}, fmt.Errorf("value of tool.execute: %w", err)
	}
	if v.Service != "" {
		return executeByService(rc, v, in, receipt.Height)
	}
	if s.Cfg.Tools == nil || s.Cfg.Blobs == nil {
		return api.Response{}, api.Unavailable("This node has no sandbox")
	}
	out := toolResult{Tool: rc.Path("name"), Version: v.Version, Hash: v.Hash}
	var ref blob.Reference
	err = rc.View(func(tx *ledger.Tx) error {
		a, ok := file.AssetByID(tx, v.Asset)
		if !ok {
			return api.NotFound("The module of the tool is gone")
		}
		d, err := blob.ParseDigest(a.SHA256)
		if err != nil {
			return err
		}
		of, _ := company.BlobOf(tx, a.Company, a.SHA256)
		ref = api.Reference(d, a, of)
		if e, ok := ledger.EntryAt(tx, receipt.Height); ok {
			out.ChainHash = new(hex.EncodeToString(e.Hash[:]))
		}
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	module, err := blobBytes(s, rc.Context(), ref)
	if err != nil {
		return api.Response{}, err
	}
	if got := sha256.Sum256(module); !strings.EqualFold(hex.EncodeToString(got[:]), v.Hash) {
		return api.Response{}, errors.New("the bytes of a tool are not those that were signed")
	}
	use := skill.ToolUse{Company: api.CompanyID(rc), Name: out.Tool, Version: v.Version, By: rc.Actor, Run: rc.Run}
	res, err := s.Cfg.Tools.Run(rc.Context(), use, module, sandbox.Call{Args: []string{out.Tool},
		Stdin: bytes.NewReader(in.Input),
		Limits: sandbox.Limits{Fuel: cmp.Or(in.Fuel, defaultToolFuel), Memory: in.MemoryMB << 20,
			Time: time.Duration(in.Timeout) * time.Millisecond}})
	if err != nil {
		return api.Response{}, err
	}
	out.Exit, out.Stdout, out.Stderr, out.Fuel, out.Memory, out.Took = res.ExitCode, res.Stdout, res.Stderr, res.FuelUsed,
		res.MemoryPeak, res.DurationMs
	if res.Error != nil {
		out.Error = &toolFault{string(res.Error.Code), res.Error.Message}
	}
	return api.Reply(http.StatusOK, out), nil
}

// executeByService executes a tool that is a method of a service of an app. What it answers is the standard output.
func executeByService(rc *api.Request, v skill.ToolVersion, in executeToolBody, height uint64) (api.Response, error) {
	out := toolResult{Tool: rc.Path("name"), Version: v.Version, Hash: v.Hash}
	a, _, err := api.CallOffered(rc, v.Service, v.Method, in.Input, time.Duration(in.Timeout)*time.Millisecond)
	if err != nil {
		return api.Response{}, err
	}
	out.Exit, out.Stdout, out.Took = new(0), string(a.Result), a.Took.Milliseconds()
	err = rc.View(func(tx *ledger.Tx) error {
		if e, ok := ledger.EntryAt(tx, height); ok {
			out.ChainHash = new(hex.EncodeToString(e.Hash[:]))
		}
		return nil
	})
	return api.Reply(http.StatusOK, out), err
}
