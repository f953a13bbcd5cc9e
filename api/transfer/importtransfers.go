package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/ledger/blob"
)

// A package may be sent as a zip file: as the body, as a file of a form, or in announced
// parts. The announcement is stored as a blob, as the parts are. The ID of a transfer is
// the hash of the announcement and its length in eight hex digits. So a transfer is not
// bound to a node, parts that were sent before are found when the same announcement is
// repeated, and one that is never applied is collected with other unreferenced blobs.

const (
	// maxTransferParts bounds the parts of one transfer, maxTransferPart the size of a part;
	// together they are at most MaxPackage.
	maxTransferParts = 1024
	maxTransferPart  = 16 << 20
)

type (
	transferBody struct {
		Total    int64          `json:"totalBytes" minimum:"1" maximum:"67108864"`
		SHA256   string         `json:"zipSha256" pattern:"^[0-9a-f]{64}$"`
		PartSize int64          `json:"partSizeBytes" minimum:"1" maximum:"16777216"`
		Parts    []transferPart `json:"parts" minItems:"1" maxItems:"1024"`
	}
	transferPart struct {
		Index  int64  `json:"index" minimum:"0" maximum:"1023"`
		Size   int64  `json:"byteSize" minimum:"1" maximum:"16777216"`
		SHA256 string `json:"sha256" pattern:"^[0-9a-f]{64}$"`
	}
	// A staged transfer is an announcement and its author: nobody else may continue it.
	staged struct {
		By string `json:"by"`
		transferBody
	}
	transferState struct {
		ID        string `json:"transferId"`
		Status    string `json:"status"` // uploading, or ready when no part is missing
		Total     int64  `json:"totalBytes"`
		SHA256    string `json:"zipSha256"`
		Parts     int    `json:"partCount"`
		Completed []int  `json:"completedPartIndexes"`
		Missing   []int  `json:"missingPartIndexes"`
	}
	transferredPart struct {
		ID     string `json:"transferId"`
		Index  int    `json:"index"`
		Size   int64  `json:"byteSize"`
		SHA256 string `json:"sha256"`
		OK     bool   `json:"ok"`
	}
)

// Check compares the parts with the announced total.
func (t transferBody) Check() (out []api.Issue) {
	sum := int64(0)
	for n, p := range t.Parts {
		sum += p.Size
		if p.Index != int64(n) || p.Size > t.PartSize || n < len(t.Parts)-1 && p.Size != t.PartSize {
			return []api.Issue{{Code: "custom", Path: []any{"parts", n},
				Message: "Parts are in order, all of partSizeBytes but the last"}}
		}
	}
	if sum != t.Total {
		out = append(out, api.Issue{Code: "custom", Path: []any{"totalBytes"},
			Message: "totalBytes is not the sum of the parts"})
	}
	return out
}

func TransferRoutes() []api.Route {
	const tag, all, one = "portability", "/api/companies/import/transfers", "/api/companies/import/transfers/{transferId}"
	return []api.Route{
		{Method: "POST", Path: all, Tag: tag, Summary: "Announce a package that comes as a zip file in parts", Who: api.Board,
			In: transferBody{}, Out: transferState{}, NoTool: true, Handle: openTransfer},
		{Method: "GET", Path: one, Tag: tag, Summary: "Tell which parts of a package are missing", Who: api.Board,
			Out: transferState{}, NoTool: true, Handle: readTransfer},
		{Method: "PUT", Path: one + "/parts/{partIndex}", Tag: tag, Summary: "Send a part of a package", Who: api.Board,
			Takes: api.Taken{Media: "application/octet-stream"}, Out: transferredPart{}, MaxBody: maxTransferPart, NoTool: true,
			Handle: putTransferPart},
		{Method: "POST", Path: one + "/preview", Tag: tag,
			Summary: "Show what an import of a package that came in parts would do", Who: api.Board, In: importChoice{},
			Out: ImportPreview{}, NoTool: true, Handle: previewImport},
		{Method: "POST", Path: one + "/apply", Tag: tag, Summary: "Import a package that came in parts, all of it or nothing",
			Who: api.Board, In: importChoice{}, Out: api.Either{Imported{}, JobAccepted{}}, Also: []int{202}, NoTool: true,
			Handle: applyImport,
			Query:  []api.Param{{Name: "async", Doc: "1: the answer (202) names a job that goes on"}}},
		{Method: "GET", Path: "/api/companies/import/jobs/{jobId}", Tag: tag,
			Summary: "Tell what became of an import that was asked for with async", Who: api.Board, Out: JobState{},
			NoTool: true, Handle: readImportJob},
	}
}

func errNoTransfer() error { return api.NotFound("Import transfer not found") }

func openTransfer(rc *api.Request) (api.Response, error) {
	in, err := api.Body[transferBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	b, err := json.Marshal(staged{rc.Actor.ID, in})
	if err != nil {
		return api.Response{}, err
	}
	up, err := rc.Keep(b, "transfer.json", "application/json")
	if err != nil {
		return api.Response{}, err
	}
	return stateOf(rc, fmt.Sprintf("%s%08x", up.File.SHA256, len(b)), staged{rc.Actor.ID, in})
}

// fetchBlob reads a blob that no row names yet.
func fetchBlob(rc *api.Request, sum string, size, limit int64) (b []byte, err error) {
	if rc.Server.Cfg.Blobs == nil {
		return nil, api.Unavailable("This node keeps no files")
	}
	d, err := blob.ParseDigest(sum)
	if err != nil {
		return nil, err
	}
	c, err := rc.Server.Cfg.Blobs.Read(rc.Context(), blob.Reference{Digest: d, Size: size})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return io.ReadAll(io.LimitReader(c, limit))
}

// findTransfer returns the transfer that the path names, if it is the caller's.
func findTransfer(rc *api.Request) (id string, t staged, err error) {
	id = strings.ToLower(rc.Path("transferId"))
	if len(id) != 72 {
		return id, t, errNoTransfer()
	}
	size, err := strconv.ParseUint(id[64:], 16, 32)
	if err != nil || size > maxTransferParts*256 {
		return id, t, errNoTransfer()
	}
	b, err := fetchBlob(rc, id[:64], int64(size), int64(size))
	if err != nil || json.Unmarshal(b, &t) != nil || t.By != rc.Actor.ID || len(t.Parts) == 0 {
		return id, t, errNoTransfer()
	}
	return id, t, nil
}

// has reports whether a part is stored.
func has(rc *api.Request, p transferPart) bool {
	d, err := blob.ParseDigest(p.SHA256)
	if err != nil {
		return false
	}
	c, err := rc.Server.Cfg.Blobs.Read(rc.Context(), blob.Reference{Digest: d, Size: p.Size})
	if err != nil {
		return false
	}
	return c.Close() == nil
}

func stateOf(rc *api.Request, id string, t staged) (api.Response, error) {
	s := transferState{ID: id, Status: "ready", Total: t.Total, SHA256: t.SHA256, Parts: len(t.Parts), Completed: []int{},
		Missing: []int{}}
	for n, p := range t.Parts {
		if has(rc, p) {
			s.Completed = append(s.Completed, n)
		} else {
			s.Missing, s.Status = append(s.Missing, n), "uploading"
		}
	}
	return api.OK(s), nil
}

func readTransfer(rc *api.Request) (api.Response, error) {
	id, t, err := findTransfer(rc)
	if err != nil {
		return api.Response{}, err
	}
	return stateOf(rc, id, t)
}

func putTransferPart(rc *api.Request) (api.Response, error) {
	id, t, err := findTransfer(rc)
	if err != nil {
		return api.Response{}, err
	}
	n, err := strconv.Atoi(rc.Path("partIndex"))
	if err != nil || n < 0 || n >= len(t.Parts) {
		return api.Response{}, api.NotFound("The transfer has no such part")
	}
	want := t.Parts[n]
	b, err := rc.RawBody()
	if err != nil {
		return api.Response{}, err
	}
	if int64(len(b)) != want.Size || company.PartName(b) != want.SHA256 {
		return api.Response{}, api.Unprocessable("The part is not the one that was announced",
			map[string]any{"index": n, "byteSize": want.Size, "sha256": want.SHA256})
	}
	if _, err := rc.Keep(b, "part", "application/octet-stream"); err != nil {
		return api.Response{}, err
	}
	return api.OK(transferredPart{id, n, want.Size, want.SHA256, true}), nil
}

// assemble joins the parts of the transfer that the path names.
func assemble(rc *api.Request) ([]byte, error) {
	id, t, err := findTransfer(rc)
	if err != nil {
		return nil, err
	}
	all := make([]byte, 0, t.Total)
	for n, p := range t.Parts {
		b, err := fetchBlob(rc, p.SHA256, p.Size, p.Size)
		if err != nil {
			return nil, api.Conflict("Parts of the transfer are missing", map[string]any{"transferId": id,
				"firstMissingPartIndex": n})
		}
		all = append(all, b...)
	}
	if company.PartName(all) != t.SHA256 {
		return nil, api.Unprocessable("The parts do not make the zip file that was announced",
			map[string]any{"transferId": id, "zipSha256": t.SHA256})
	}
	return all, nil
}

// zipped returns the zip file and the choice (JSON) of a request, nil for another kind
// of request.
func zipped(rc *api.Request) (file, choice []byte, err error) {
	if rc.Path("transferId") != "" {
		if choice, err = rc.RawBody(); err != nil {
			return nil, nil, err
		}
		if _, err := choiceOf(choice); err != nil {
			return nil, nil, err // before the parts are read
		}
		file, err = assemble(rc)
		return file, choice, err
	}
	media, params, err := mime.ParseMediaType(rc.HTTP.Header.Get("Content-Type"))
	if err != nil || media != "application/zip" && media != "multipart/form-data" {
		return nil, nil, nil
	}
	b, err := rc.RawBody()
	if err != nil {
		return nil, nil, err
	}
	if media == "application/zip" {
		return b, []byte(rc.Query("meta")), nil
	}
	form := multipart.NewReader(bytes.NewReader(b), params["boundary"])
	for range api.MaxParts {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, api.FormError(err, "Request entity too large")
		}
		content, err := io.ReadAll(part) // the body is bounded
		if err != nil {
			return nil, nil, api.FormError(err, "Request entity too large")
		}
		switch part.FormName() {
		case "package":
			file = content
		case "meta":
			choice = content
		}
	}
	if file == nil {
		return nil, nil, api.Invalid("Missing file field 'package'")
	}
	return file, choice, nil
}

// choiceOf decodes the choice of an import.
func choiceOf(b []byte) (c importChoice, err error) {
	if len(bytes.TrimSpace(b)) == 0 {
		b = []byte("{}")
	}
	err = api.DecodeBody(b, &c)
	return c, err
}

// bodyOfImport reads the package and the choice of an import in any of its forms.
func bodyOfImport(rc *api.Request) (body importBody, files portable.Files, err error) {
	if rc.Path("catalogId") != "" {
		return teamBody(rc)
	}
	file, choice, err := zipped(rc)
	if err != nil {
		return body, nil, err
	}
	if file == nil {
		body, err = api.Body[importBody](rc)
		return body, nil, err
	}
	if body.importChoice, err = choiceOf(choice); err != nil {
		return body, nil, err
	}
	body.Source.Type = "inline"
	if files, err = portable.Unzip(bytes.NewReader(file), int64(len(file))); err != nil {
		err = api.Unprocessable(strings.ToUpper(err.Error()[:1])+err.Error()[1:], nil)
	}
	return body, files, err
}
