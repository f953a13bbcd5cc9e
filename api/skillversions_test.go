package api

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
)

func TestVersionsAndForksOfSkills(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := h.company("Acme")
	in := "/api/companies/" + of + "/skills"
	id := h.call("POST", in, `{"name":"weld","markdown":"# one"}`).want(t, 201, "").field(t, "id")
	h.call("PATCH", in+"/"+id, `{"markdown":"# two"}`).want(t, 200, "")
	h.call("PATCH", in+"/"+id+"/files", `{"path":"references/a.md","content":"a"}`).want(t, 200, "")
	list := h.call("GET", in+"/"+id+"/versions", "").want(t, 200, `"versionNumber":3`).decode(t).([]any)
	if len(list) != 3 {
		t.Fatalf("%d versions", len(list))
	}
	first := list[2].(map[string]any)["id"].(string)
	h.call("GET", in+"/"+id+"/versions/"+first, "").want(t, 200, `"content":"# one"`)
	h.call("GET", in+"/"+id+"/versions/"+NewID(), "").want(t, 404, "Skill version not found")
	h.call("POST", in+"/"+id+"/versions", `{"label":"good"}`).want(t, 200, `"label":"good"`)
	h.call("POST", in+"/"+id+"/reset", `{}`).want(t, 422, "name a version")
	h.call("POST", in+"/"+id+"/reset", `{"versionId":"`+first+`"}`).want(t, 200, `"markdown":"# one"`).want(t, 200, `"fileInventory":[{"path":"SKILL.md","kind":"skill"}]`)
	for range 25 { // the oldest go, and their texts with them
		h.call("POST", in+"/"+id+"/versions", `{}`).want(t, 200, "")
	}
	if n := len(h.call("GET", in+"/"+id+"/versions", "").decode(t).([]any)); n != 20 {
		t.Errorf("%d versions are kept", n)
	}
	h.call("GET", in+"/"+id+"/files", "").want(t, 200, `"content":"# one"`)

	h.call("GET", in+"/"+id+"/update-status", "").want(t, 200, `"supported":false`)
	h.call("GET", in+"/"+id+"/fork-precheck", "").want(t, 200, `"suggestedSlug":"weld-fork"`)
	fork := h.call("POST", in+"/"+id+"/fork", `{}`).want(t, 200, `"forkedFromSkillId":"`+id+`"`).field(t, "id")
	h.call("POST", in+"/"+id+"/fork", `{"slug":"weld-fork"}`).want(t, 409, "already exists")
	h.call("POST", in+"/"+fork+"/install-update", ``).want(t, 409, "up to date")
	h.call("PATCH", in+"/"+id, `{"markdown":"# better"}`).want(t, 200, "")
	h.call("GET", in+"/"+fork+"/update-status", "").want(t, 200, `"hasUpdate":true,"locallyModified":false`)
	h.call("POST", in+"/"+fork+"/install-update", ``).want(t, 200, `"markdown":"# better"`)
	h.call("GET", in+"/"+fork+"/update-status", "").want(t, 200, `"hasUpdate":false`)
	h.call("DELETE", in+"/"+id, "").want(t, 200, "")
	h.call("GET", in+"/"+fork+"/update-status", "").want(t, 200, "is gone")
	h.call("POST", in+"/"+fork+"/install-update", ``).want(t, 422, "is gone")

	own := h.call("POST", in+"/agentmail/fork", `{"name":"Our mail"}`).want(t, 200, `"slug":"our-mail"`).field(t, "id")
	h.call("POST", in+"/agentmail/reset", `{}`).want(t, 422, "read-only")
	h.call("PATCH", in+"/"+own, `{"markdown":"# ours"}`).want(t, 200, "")
	h.call("GET", in+"/"+own+"/update-status", "").want(t, 200, `"hasUpdate":false,"locallyModified":true`)
	h.call("POST", in+"/"+own+"/reset", `{}`).want(t, 200, "agentmail")
	h.call("POST", in+"/install-catalog", `{"catalogSkillId":"selvage:bundled:core:agentmail"}`).want(t, 200, `"slug":"agentmail"`)
	h.call("POST", in+"/install-catalog", `{"catalogSkillId":"nothing"}`).want(t, 404, "")
	h.call("POST", in+"/"+own+"/star", ``).want(t, 200, `"starCount":1`)
	h.call("POST", in+"/"+own+"/star", ``).want(t, 200, `"starCount":1`)
	h.call("DELETE", in+"/"+own+"/star", ``).want(t, 200, `"starCount":0`)

	agent := h.call("POST", "/api/companies/"+of+"/agents", `{"name":"Ada","role":"engineer","adapterType":"process","adapterConfig":{"command":"true"}}`).want(t, 201, "").field(t, "id")
	h.call("POST", "/api/agents/"+agent+"/skills/sync", `{"desiredSkills":["our-mail"]}`).want(t, 200, "")
	h.call("POST", in+"/"+own+"/rename", `{"name":"Post","slug":"agentmail"}`).want(t, 409, "already exists")
	h.call("POST", in+"/"+own+"/rename", `{"name":"Post","slug":"post"}`).want(t, 200, `"slug":"post"`)
	h.call("GET", "/api/agents/"+agent+"/skills", "").want(t, 200, "/post\"")
}

func TestSkillsInTheFoldersOfProjects(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := h.company("Acme")
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
	project := h.call("POST", in+"/projects", `{"name":"Arm"}`).want(t, 201, "").field(t, "id")
	space := h.call("POST", "/api/projects/"+project+"/workspaces", `{"name":"main","cwd":"`+dir+`"}`).want(t, 201, "").field(t, "id")
	h.call("POST", "/api/projects/"+project+"/workspaces", `{"name":"elsewhere","cwd":"/nowhere/at/all"}`).want(t, 201, "")

	at := `{"projectId":"` + project + `","workspaceId":"` + space + `"`
	h.call("POST", in+"/skills/browse-project", at+`,"path":"skills"}`).want(t, 200, `"name":"solder","path":"skills/solder","kind":"directory","isSkill":true`)
	h.call("POST", in+"/skills/browse-project", at+`,"path":"../.."}`).want(t, 400, "path")
	h.call("POST", in+"/skills/browse-project", at+`,"path":"nothing"}`).want(t, 404, "")
	h.call("POST", in+"/skills/scan-projects", `{"mode":"preview"}`).want(t, 200, `"discovered":2`).want(t, 200, `"imported":[]`).want(t, 200, `"status":"new"`)
	done := h.call("POST", in+"/skills/scan-projects", `{}`).want(t, 200, `"reason":"Another skill has this slug"`).want(t, 200, "is not on this node")
	if strings.Contains(string(done.body), "canary") {
		t.Error("a link leads out of the workspace")
	}
	h.call("GET", in+"/skills/solder", "").want(t, 200, `"description":"Join wires"`).want(t, 200, `"path":"references/tin.md"`)
	write("skills/solder/references/tin.md", "melts at 232")
	h.call("POST", in+"/skills/scan-projects", `{}`).want(t, 200, `"imported":[]`).want(t, 200, `"updated":[{`)
	h.call("GET", in+"/skills/solder/files?path=references/tin.md", "").want(t, 200, "melts at 232")
	h.call("POST", in+"/skills/scan-projects", `{}`).want(t, 200, `"updated":[]`)
}

func TestSkillsFromGitHub(t *testing.T) {
	t.Parallel()
	var archive bytes.Buffer
	z := gzip.NewWriter(&archive)
	w := tar.NewWriter(z)
	for name, text := range map[string]string{"r-abc/README.md": "x", "r-abc/skills/weld/SKILL.md": "---\nname: Weld\ndescription: Join metal\n---\n",
		"r-abc/skills/weld/references/arc.md": "hot", "r-abc/skills/agentmail/SKILL.md": "# taken", "r-abc/skills/void/SKILL.md": "  "} {
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
	h := newHarness(t, func(c *Config) { c.GitHubArchives = srv.URL })
	in := "/api/companies/" + h.company("Acme") + "/skills"
	h.call("POST", in+"/import", `{"source":"https://evil.example/a/b"}`).want(t, 422, "")
	h.call("POST", in+"/import", `{"source":"acme/gone"}`).want(t, 422, "no such repository")
	h.call("POST", in+"/import", `{"source":"https://github.com/acme/skills/tree/HEAD/docs"}`).want(t, 422, "no SKILL.md")
	h.call("POST", in+"/import", `{"source":"acme/skills"}`).want(t, 201, `"slug":"weld"`).want(t, 201, "name a commit to pin").want(t, 201, "skills/agentmail: a skill of the program").want(t, 201, "SKILL.md is empty")
	h.call("GET", in+"/weld", "").want(t, 200, `"sourceType":"github","sourceLocator":"https://github.com/acme/skills/tree/HEAD/skills/weld"`).want(t, 200, `"path":"references/arc.md"`)
	h.call("POST", in+"/import", `{"source":"acme/skills"}`).want(t, 201, `"imported":[]`).want(t, 201, "Skill already exists: weld")
}
