package transfer_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/portable"
)

// zipOf packs the files of a package.
func zipOf(t testing.TB, files portable.Files) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range files.Paths() {
		w, err := z.Create("folder/" + name)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(files[name].Data)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A package can be sent as a zip file in three ways, and each creates the same company.
// An interrupted transfer can be continued.
func TestPackagesComeAsZipFiles(t *testing.T) {
	h := apitest.NewHarness(t)
	files, _ := portable.Starter("software-studio")
	pack := zipOf(t, files)
	meta := func(name string) string {
		return `{"target":{"mode":"new_company","newCompanyName":"` + name +
			`"},"include":{"company":true,"agents":true,"projects":true,"issues":true}}`
	}
	agents := func(a apitest.Answer) int {
		t.Helper()
		return len(a.Want(t, 200, "").Decode(t).(map[string]any)["agents"].([]any))
	}
	n := agents(h.Send("POST", "/api/companies/import?meta="+url.QueryEscape(meta("Zip")), "application/zip", pack))
	if n == 0 {
		t.Fatal("no agents")
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	w.WriteField("meta", meta("Form"))
	part, _ := w.CreateFormFile("package", "pack.zip")
	part.Write(pack)
	w.Close()
	if got := agents(h.Send("POST", "/api/companies/import", w.FormDataContentType(), form.Bytes())); got != n {
		t.Errorf("a form brings %d agents, want %d", got, n)
	}

	size := len(pack)/3 + 1
	parts := []string{}
	pieces := [][]byte{}
	for at := 0; at < len(pack); at += size {
		piece := pack[at:min(at+size, len(pack))]
		pieces = append(pieces, piece)
		parts = append(parts, fmt.Sprintf(`{"index":%d,"byteSize":%d,"sha256":%q}`, len(parts), len(piece),
			company.PartName(piece)))
	}
	declare := fmt.Sprintf(`{"totalBytes":%d,"zipSha256":%q,"partSizeBytes":%d,"parts":[%s]}`, len(pack),
		company.PartName(pack), size, strings.Join(parts, ","))
	state := h.Call("POST", "/api/companies/import/transfers", declare).Want(t, 200, `"missingPartIndexes":[0,1,2]`)
	path := "/api/companies/import/transfers/" + state.Field(t, "transferId")
	h.Send("PUT", path+"/parts/0", "application/octet-stream", pieces[1]).Want(t, 422, "not the one that was announced")
	h.Send("PUT", path+"/parts/3", "application/octet-stream", pieces[1]).Want(t, 404, "The transfer has no such part")
	h.Send("PUT", path+"/parts/0", "application/octet-stream", pieces[0]).Want(t, 200, `"ok":true`)
	h.Send("PUT", path+"/parts/0", "application/octet-stream", pieces[0]).Want(t, 200, `"ok":true`)
	h.Call("POST", path+"/apply", meta("Early")).Want(t, 409, "missing")
	if again := h.Call("POST", "/api/companies/import/transfers", declare).
		Want(t, 200, `"completedPartIndexes":[0]`); again.Field(t, "transferId") != state.Field(t, "transferId") {
		t.Error("the same announcement is another transfer")
	}
	h.Send("PUT", path+"/parts/1", "application/octet-stream", pieces[1]).Want(t, 200, "")
	h.Send("PUT", path+"/parts/2", "application/octet-stream", pieces[2]).Want(t, 200, "")
	h.Call("GET", path, "").Want(t, 200, `"status":"ready"`)
	h.Call("POST", path+"/preview", meta("Parts")).Want(t, 200, `"companyAction":"create"`)
	if got := agents(h.Call("POST", path+"/apply", meta("Parts"))); got != n {
		t.Errorf("parts bring %d agents, want %d", got, n)
	}
	job := h.Call("POST", path+"/apply?async=1", meta("Job")).Want(t, 202, `"status":"running"`)
	if got := h.JobEnd(t, job); got.Job.Status != "succeeded" || !strings.Contains(string(got.Job.Result),
		`"action":"created"`) {
		t.Errorf("%+v %s", got, got.Job.Result)
	}
	failed := h.Call("POST", path+"/apply?async=1", `{"target":{"mode":"existing_company","companyId":"`+api.NewID()+`"}}`)
	if got := h.JobEnd(t, failed); got.Job.Status != "failed" || got.Error != "Company not found" {
		t.Errorf("%+v", got)
	}

	// An announcement must be consistent, and the assembled file must be a package.
	for name, body := range map[string]string{
		"sum":   strings.Replace(declare, `"totalBytes":`, `"totalBytes":1`, 1),
		"order": strings.Replace(declare, `"index":0`, `"index":1`, 1),
		"hash":  strings.Replace(declare, company.PartName(pack), "zz", 1),
		"none":  `{"totalBytes":1,"zipSha256":"` + company.PartName(nil) + `","partSizeBytes":1,"parts":[]}`,
	} {
		if a := h.Call("POST", "/api/companies/import/transfers", body); a.Status != 400 {
			t.Errorf("%s: answered %d %s", name, a.Status, a.Body)
		}
	}
	for name, body := range map[string][]byte{"no zip": []byte("PK no"), "half": pack[:len(pack)/2],
		"bomb": zipOf(t, portable.Files{"COMPANY.md": {Data: make([]byte, portable.MaxBytes+1)}})} {
		if a := h.Send("POST", "/api/companies/import/preview?meta="+url.QueryEscape(meta("x")), "application/zip",
			body); a.Status != 422 {
			t.Errorf("%s: answered %d %s", name, a.Status, api.Cut(string(a.Body), 200))
		}
	}
	h.Send("POST", "/api/companies/import", "application/zip", pack).Want(t, 400, "target")
}

func TestTeamsOfTheCatalog(t *testing.T) {
	h := apitest.NewHarness(t)
	of := h.Company("Takes in")
	list := h.Call("GET", "/api/teams/catalog", "").Want(t, 200, "").Decode(t).([]any)
	if len(list) != len(portable.Starters()) {
		t.Fatalf("%d teams", len(list))
	}
	id := list[0].(map[string]any)["id"].(string)
	for _, f := range h.Call("GET", "/api/teams/catalog/"+id, "").Want(t, 200, "").
		Decode(t).(map[string]any)["files"].([]any) {
		row := f.(map[string]any)
		text := h.Call("GET", "/api/teams/catalog/"+id+"/files?path="+url.QueryEscape(row["path"].(string)), "").
			Want(t, 200, "").Field(t, "content")
		if company.PartName([]byte(text)) != row["sha256"] {
			t.Errorf("%v has another hash", row["path"])
		}
	}
	h.Call("GET", "/api/teams/catalog/"+id+"/files?path=nope", "").Want(t, 404, "Catalog team file not found")
	h.Call("GET", "/api/teams/catalog/nope", "").Want(t, 404, "Catalog team not found")
	in := "/api/companies/" + of + "/teams/catalog"
	h.Call("GET", in+"/installed", "").Want(t, 200, "[]")
	h.Call("POST", in+"/nope/install", `{}`).Want(t, 404, "Catalog team not found")
	h.Call("POST", in+"/"+id+"/install", `{"collisionStrategy":"hope"}`).Want(t, 400, "collisionStrategy")
	h.Call("POST", in+"/"+id+"/preview", "").Want(t, 200, `"companyAction":"none"`)
	h.Call("POST", in+"/"+id+"/install", "").Want(t, 200, `"action":"unchanged"`)
	var installed []struct {
		ID     string   `json:"id"`
		Agents []string `json:"agentIds"`
	}
	if err := json.Unmarshal(h.Call("GET", in+"/installed", "").Want(t, 200, "").Body, &installed); err != nil ||
		len(installed) != 1 || installed[0].ID != id || len(installed[0].Agents) == 0 {
		t.Fatalf("installed %v, %v", installed, err)
	}
	h.Call("GET", "/api/companies/"+of, "").Want(t, 200, `"Takes in"`)
}
