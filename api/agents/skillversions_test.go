package agents_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
)

func TestVersionsAndForksOfSkills(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	in := "/api/companies/" + of + "/skills"
	id := h.Call("POST", in, `{"name":"weld","markdown":"# one"}`).Want(t, 201, "").Field(t, "id")
	h.Call("PATCH", in+"/"+id, `{"markdown":"# two"}`).Want(t, 200, "")
	h.Call("PATCH", in+"/"+id+"/files", `{"path":"references/a.md","content":"a"}`).Want(t, 200, "")
	list := h.Call("GET", in+"/"+id+"/versions", "").Want(t, 200, `"versionNumber":3`).Decode(t).([]any)
	if len(list) != 3 {
		t.Fatalf("%d versions", len(list))
	}
	first := list[2].(map[string]any)["id"].(string)
	h.Call("GET", in+"/"+id+"/versions/"+first, "").Want(t, 200, `"content":"# one"`)
	h.Call("GET", in+"/"+id+"/versions/"+api.NewID(), "").Want(t, 404, "Skill version not found")
	h.Call("POST", in+"/"+id+"/versions", `{"label":"good"}`).Want(t, 200, `"label":"good"`)
	h.Call("POST", in+"/"+id+"/reset", `{}`).Want(t, 422, "name a version")
	h.Call("POST", in+"/"+id+"/reset", `{"versionId":"`+first+`"}`).Want(t, 200, `"markdown":"# one"`).
		Want(t, 200, `"fileInventory":[{"path":"SKILL.md","kind":"skill"}]`)
	for range 25 { // the oldest versions and their texts are deleted
		h.Call("POST", in+"/"+id+"/versions", `{}`).Want(t, 200, "")
	}
	if n := len(h.Call("GET", in+"/"+id+"/versions", "").Decode(t).([]any)); n != 20 {
		t.Errorf("%d versions are kept", n)
	}
	h.Call("GET", in+"/"+id+"/files", "").Want(t, 200, `"content":"# one"`)

	h.Call("GET", in+"/"+id+"/update-status", "").Want(t, 200, `"supported":false`)
	h.Call("GET", in+"/"+id+"/fork-precheck", "").Want(t, 200, `"suggestedSlug":"weld-fork"`)
	fork := h.Call("POST", in+"/"+id+"/fork", `{}`).Want(t, 200, `"forkedFromSkillId":"`+id+`"`).Field(t, "id")
	h.Call("POST", in+"/"+id+"/fork", `{"slug":"weld-fork"}`).Want(t, 409, "already exists")
	h.Call("POST", in+"/"+fork+"/install-update", ``).Want(t, 409, "up to date")
	h.Call("PATCH", in+"/"+id, `{"markdown":"# better"}`).Want(t, 200, "")
	h.Call("GET", in+"/"+fork+"/update-status", "").Want(t, 200, `"hasUpdate":true,"locallyModified":false`)
	h.Call("POST", in+"/"+fork+"/install-update", ``).Want(t, 200, `"markdown":"# better"`)
	h.Call("GET", in+"/"+fork+"/update-status", "").Want(t, 200, `"hasUpdate":false`)
	h.Call("DELETE", in+"/"+id, "").Want(t, 200, "")
	h.Call("GET", in+"/"+fork+"/update-status", "").Want(t, 200, "is gone")
	h.Call("POST", in+"/"+fork+"/install-update", ``).Want(t, 422, "is gone")

	own := h.Call("POST", in+"/agentmail/fork", `{"name":"Our mail"}`).Want(t, 200, `"slug":"our-mail"`).Field(t, "id")
	h.Call("POST", in+"/agentmail/reset", `{}`).Want(t, 422, "read-only")
	h.Call("PATCH", in+"/"+own, `{"markdown":"# ours"}`).Want(t, 200, "")
	h.Call("GET", in+"/"+own+"/update-status", "").Want(t, 200, `"hasUpdate":false,"locallyModified":true`)
	h.Call("POST", in+"/"+own+"/reset", `{}`).Want(t, 200, "agentmail")
	h.Call("POST", in+"/install-catalog", `{"catalogSkillId":"selvage:bundled:core:agentmail"}`).
		Want(t, 200, `"slug":"agentmail"`)
	h.Call("POST", in+"/install-catalog", `{"catalogSkillId":"nothing"}`).Want(t, 404, "Catalog skill not found")
	h.Call("POST", in+"/"+own+"/star", ``).Want(t, 200, `"starCount":1`)
	h.Call("POST", in+"/"+own+"/star", ``).Want(t, 200, `"starCount":1`)
	h.Call("DELETE", in+"/"+own+"/star", ``).Want(t, 200, `"starCount":0`)

	agent := h.Call("POST", "/api/companies/"+of+"/agents",
		`{"name":"Ada","role":"engineer","adapterType":"process","adapterConfig":{"command":"true"}}`).Want(t, 201, "").
		Field(t, "id")
	h.Call("POST", "/api/agents/"+agent+"/skills/sync", `{"desiredSkills":["our-mail"]}`).Want(t, 200, "")
	h.Call("POST", in+"/"+own+"/rename", `{"name":"Post","slug":"agentmail"}`).Want(t, 409, "already exists")
	h.Call("POST", in+"/"+own+"/rename", `{"name":"Post","slug":"post"}`).Want(t, 200, `"slug":"post"`)
	h.Call("GET", "/api/agents/"+agent+"/skills", "").Want(t, 200, "/post\"")
}

func TestSkillsInTheFoldersOfProjects(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	in := "/api/companies/" + of
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("skills/solder/SKILL.md", "---\nname: Solder\ndescription: Join wires\n---\n")
	write("skills/solder/references/tin.md", "melts")
	write(".claude/skills/agentmail/SKILL.md", "# taken")
	write("skills/notes/README.md", "no skill")
	secret := filepath.Join(t.TempDir(), "SKILL.md")
	if err := os.WriteFile(secret, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "skills/leak"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "skills/leak/SKILL.md")); err != nil {
		t.Fatal(err)
	}
	project := h.Call("POST", in+"/projects", `{"name":"Arm"}`).Want(t, 201, "").Field(t, "id")
	space := h.Call("POST", "/api/projects/"+project+"/workspaces", `{"name":"main","cwd":"`+dir+`"}`).Want(t, 201, "").
		Field(t, "id")
	h.Call("POST", "/api/projects/"+project+"/workspaces", `{"name":"elsewhere","cwd":"/nowhere/at/all"}`).Want(t, 201, "")

	at := `{"projectId":"` + project + `","workspaceId":"` + space + `"`
	h.Call("POST", in+"/skills/browse-project", at+`,"path":"skills"}`).
		Want(t, 200, `"name":"solder","path":"skills/solder","kind":"directory","isSkill":true`)
	h.Call("POST", in+"/skills/browse-project", at+`,"path":"../.."}`).Want(t, 400, "path")
	h.Call("POST", in+"/skills/browse-project", at+`,"path":"nothing"}`).Want(t, 404, "Folder not found")
	h.Call("POST", in+"/skills/scan-projects", `{"mode":"preview"}`).Want(t, 200, `"discovered":2`).
		Want(t, 200, `"imported":[]`).Want(t, 200, `"status":"new"`)
	done := h.Call("POST", in+"/skills/scan-projects", `{}`).Want(t, 200, `"reason":"Another skill has this slug"`).
		Want(t, 200, "is not on this node")
	if strings.Contains(string(done.Body), "canary") {
		t.Error("a link leads out of the workspace")
	}
	h.Call("GET", in+"/skills/solder", "").Want(t, 200, `"description":"Join wires"`).
		Want(t, 200, `"path":"references/tin.md"`)
	write("skills/solder/references/tin.md", "melts at 232")
	h.Call("POST", in+"/skills/scan-projects", `{}`).Want(t, 200, `"imported":[]`).Want(t, 200, `"updated":[{`)
	h.Call("GET", in+"/skills/solder/files?path=references/tin.md", "").Want(t, 200, "melts at 232")
	h.Call("POST", in+"/skills/scan-projects", `{}`).Want(t, 200, `"updated":[]`)
}

func TestSkillsFromGitHub(t *testing.T) {
	t.Parallel()
	var archive bytes.Buffer
	z := gzip.NewWriter(&archive)
	w := tar.NewWriter(z)
	for name, text := range map[string]string{"r-abc/README.md": "x",
		"r-abc/skills/weld/SKILL.md":          "---\nname: Weld\ndescription: Join metal\n---\n",
		"r-abc/skills/weld/references/arc.md": "hot", "r-abc/skills/agentmail/SKILL.md": "# taken",
		"r-abc/skills/void/SKILL.md": "  "} {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w, text)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/acme/skills/tar.gz/HEAD" {
			http.NotFound(w, r)
			return
		}
		w.Write(archive.Bytes())
	}))
	defer srv.Close()
	h := apitest.NewHarness(t, func(c *api.Config) { c.GitHubArchives = srv.URL })
	in := "/api/companies/" + h.Company("Acme") + "/skills"
	h.Call("POST", in+"/import", `{"source":"https://evil.example/a/b"}`).
		Want(t, 422, "source.url must be https://github.com/OWNER/REPO, with /tree/REF/FOLDER after it where needed")
	h.Call("POST", in+"/import", `{"source":"acme/gone"}`).Want(t, 422, "no such repository")
	h.Call("POST", in+"/import", `{"source":"https://github.com/acme/skills/tree/HEAD/docs"}`).Want(t, 422, "no SKILL.md")
	h.Call("POST", in+"/import", `{"source":"acme/skills"}`).Want(t, 201, `"slug":"weld"`).
		Want(t, 201, "name a commit to pin").Want(t, 201, "skills/agentmail: a skill of the program").
		Want(t, 201, "SKILL.md is empty")
	h.Call("GET", in+"/weld", "").
		Want(t, 200, `"sourceType":"github","sourceLocator":"https://github.com/acme/skills/tree/HEAD/skills/weld"`).
		Want(t, 200, `"path":"references/arc.md"`)
	h.Call("POST", in+"/import", `{"source":"acme/skills"}`).Want(t, 201, `"imported":[]`).
		Want(t, 201, "Skill already exists: weld")
}
