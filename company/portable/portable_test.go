package portable

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

func ptr[T any](v T) *T { return &v }

// whole returns a package that uses every part of the format.
func whole() (Manifest, map[string][]byte) {
	data := []byte("\x89PNG not really")
	sum := sha256.Sum256(data)
	blob := Blob{hex.EncodeToString(sum[:]), "image/png", int64(len(data))}
	return Manifest{
		SchemaVersion: SchemaVersion,
		Company: &Company{Path: companyFile, Name: "Acme: \"Robots\"", Description: ptr("Builds\nbetter robots"),
			RequireHireApproval: true,
			LogoPath:            ptr("images/company-logo.png"), Logo: &File{Data: []byte("\x89PNG"), Binary: true,
				ContentType: "image/png"}, BrandColor: ptr("#123456"), NoStrategyGate: true, AttachmentMaxBytes: 4096},
		Sidebar: &Sidebar{Agents: []string{"ada"}, Projects: []string{"arm"}},
		Labels:  []Label{{"bug", "#ff0000"}}, Blobs: []Blob{blob},
		EmbeddedAssets: []Asset{{ID: "0190d3a0-0000-7000-8000-000000000001", SHA256: blob.SHA256, ContentType: "image/png",
			ByteSize: blob.ByteSize, Filename: ptr("b.png"), Namespace: "general"}},
		Goals: []Goal{{Slug: "root", Title: "Ship it", Level: "company", Status: "active"}, {Slug: "step", Title: "First",
			Level: "team", Status: "planned", Parent: ptr("root"), Owner: ptr("ada")}},
		Agents: []Agent{{Slug: "ada", Name: "Ada", Path: "agents/ada/AGENTS.md", Skills: []string{"paperclip"}, Role: "ceo",
			Title: ptr("Chief"), AdapterType: "process",
			AdapterConfig: map[string]any{"timeoutSec": 20, "args": []any{"-c", "true: yes"}},
			RuntimeConfig: map[string]any{"heartbeat": map[string]any{"intervalSec": 300}},
			Permissions:   map[string]bool{"canCreateAgents": true}, PermissionGrants: []PermissionGrant{{Key: "tasks:assign"}},
			BudgetCents:  5000,
			Instructions: "Lead.\n\n---\nnot front matter\n", OtherInstructions: map[string]string{"notes/HOW.md": "slowly\n"}},
			{Slug: "bob", Name: "Bob", Path: "agents/bob/AGENTS.md", Skills: []string{}, Role: "engineer", ReportsTo: ptr("ada"),
				AdapterType:   "http",
				AdapterConfig: map[string]any{}, RuntimeConfig: map[string]any{}, Permissions: map[string]bool{},
				PermissionGrants: []PermissionGrant{}}},
		Skills: []Skill{{Key: "company/greet", Slug: "greet", Name: "greet", Path: "skills/company/greet/SKILL.md",
			Description: ptr("Say hi"), SourceType: "catalog",
			Compatibility: "compatible", Inventory: []SkillFile{{"SKILL.md", "skill"}, {"more.md", "reference"}},
			Files: map[string]string{"SKILL.md": "---\nname: greet\ndescription: Say hi\n---\nSay hi.\n", "more.md": "x"}}},
		Projects: []Project{{Slug: "arm", Name: "Robot Arm", Path: "projects/arm/PROJECT.md", Description: ptr("v1"),
			Owner: ptr("ada"), Lead: ptr("ada"), Status: "planned", Archived: true,
			TargetDate: ptr("2026-12-31"), WorkspacePolicy: map[string]any{"enabled": true}, Goals: []string{"root"},
			Workspaces: []Workspace{{Key: "main", Name: "main", SourceType: "git_repo",
				RepoURL: ptr("https://example.org/arm.git"), RepoRef: ptr("main"), Primary: true}}}},
		Teams: []Team{},
		Issues: []Issue{
			{Slug: "acm-2", Identifier: ptr("ACM-2"), Title: "Design", Path: "tasks/acm-2/TASK.md", Project: ptr("arm"),
				WorkspaceKey: ptr("main"), Assignee: ptr("bob"),
				Description: ptr("Make a gripper\n"), Status: ptr("todo"), Priority: ptr("high"), LabelIDs: []string{},
				Labels: []string{"bug"}, BillingCode: ptr("007"), Goal: ptr("step"),
				Comments: []Comment{{Body: "yes: no\n- true", AuthorType: "agent", AuthorAgent: ptr("ada"),
					CreatedAt: ptr("2026-11-21T03:06:12.922Z")}},
				BlockedBy: []string{"acm-10"}, Documents: []Document{{Key: "plan", Title: "Plan", Format: "markdown",
					Path: "tasks/acm-2/documents/plan.md", Body: "# Plan\n2. more\n"}},
				WorkProducts: []WorkProduct{{Type: "pull_request", Provider: "github", Title: "PR 1", Status: "active",
					ReviewState: "none", HealthStatus: "unknown"}},
				Attachments: []Attachment{{SHA256: blob.SHA256, ContentType: "image/png", Filename: ptr("a.png"),
					ByteSize: blob.ByteSize, CommentIndex: ptr(0)}}},
			{Slug: "acm-10", Identifier: ptr("ACM-10"), Title: "Later", Path: "tasks/acm-10/TASK.md", Parent: ptr("acm-2"),
				LabelIDs: []string{}, Labels: []string{},
				Comments: []Comment{}, BlockedBy: []string{}, Documents: []Document{}, WorkProducts: []WorkProduct{},
				Attachments: []Attachment{}},
			{Slug: "daily", Title: "Daily report", Path: "tasks/daily/TASK.md", Assignee: ptr("ada"), Recurring: true,
				Status: ptr("paused"), LabelIDs: []string{}, Labels: []string{},
				Comments: []Comment{}, BlockedBy: []string{}, Documents: []Document{}, WorkProducts: []WorkProduct{},
				Attachments: []Attachment{},
				Routine: &Routine{Variables: []Variable{{Name: "topic", Type: "text", Default: "sales", Required: true,
					Options: []string{}}},
					Triggers: []Trigger{{Kind: "schedule", Enabled: true, Cron: ptr("0 9 * * *"), Timezone: ptr("Europe/Berlin")},
						{Kind: "webhook", Enabled: false}}}},
		},
		EnvInputs: []EnvInput{{Key: "OPENAI_API_KEY", Description: "the key", Agent: ptr("ada"), Kind: "secret",
			Requirement: "optional", Portability: "portable"}},
	}, map[string][]byte{blob.SHA256: data}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	t.Parallel()
	m, blobs := whole()
	files := Write(m, blobs)
	got, warnings, err := Read(files)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	m.Includes = Includes{true, true, true, true, true}
	got.Issues[2].Routine.Triggers[1].Disabled = nil
	if a, b := asJSON(t, got), asJSON(t, m); a != b {
		t.Errorf("read back\n%s\nwant\n%s", a, b)
	}
	for n, a := range m.Agents {
		if got.Agents[n].Instructions != a.Instructions || !reflect.DeepEqual(got.Agents[n].OtherInstructions,
			a.OtherInstructions) {
			t.Errorf("instructions %q, %v", got.Agents[n].Instructions, got.Agents[n].OtherInstructions)
		}
	}
	if d := got.Issues[0].Documents[0].Body; d != "# Plan\n2. more\n" {
		t.Errorf("document %q", d)
	}
	again := Write(got, blobs)
	for name, f := range files {
		if string(again[name].Data) != string(f.Data) {
			t.Errorf("%s the second time:\n%s\nthe first:\n%s", name, again[name].Data, f.Data)
		}
	}
	// Inside a folder, and after encoding as JSON, the package is the same.
	packed := Files{}
	for name, f := range files {
		var back File
		if err := json.Unmarshal([]byte(asJSON(t, f)), &back); err != nil {
			t.Fatal(err)
		}
		packed["acme-main/"+name] = back
	}
	if inFolder, _, err := Read(packed); err != nil || asJSON(t, inFolder) != asJSON(t, got) {
		t.Errorf("in a folder: %v", err)
	}
	rooted, err := packed.Rooted()
	if err != nil {
		t.Fatal(err)
	}
	if b, ok := rooted.Blob(m.Blobs[0].SHA256); !ok || string(b) != string(blobs[m.Blobs[0].SHA256]) {
		t.Error("the blob is not there")
	}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The recorded package was exported by Paperclip.
func TestRecordedPackageIsRead(t *testing.T) {
	t.Parallel()
	all, err := os.ReadFile("../../api/testdata/contract/http.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	for line := range bytes.Lines(all) {
		if bytes.Contains(line, []byte(`"import-existing-skip-preview"`)) {
			b = line
		}
	}
	var recorded struct {
		RequestBody struct{ Source struct{ Files Files } }
	}
	if err := json.Unmarshal(b, &recorded); err != nil {
		// The recording truncates long texts, base64 too.
		if !errors.Is(err, ErrPackage) {
			t.Fatal(err)
		}
	}
	files := recorded.RequestBody.Source.Files
	if files == nil {
		files = Files{}
	}
	var texts struct {
		RequestBody struct {
			Source struct{ Files map[string]any }
		}
	}
	if err := json.Unmarshal(b, &texts); err != nil {
		t.Fatal(err)
	}
	for name, v := range texts.RequestBody.Source.Files {
		if s, ok := v.(string); ok && name != sidecarFile { // the sidecar is truncated
			files[name] = Text(s)
		} else {
			delete(files, name)
		}
	}
	m, _, err := Read(files)
	if err != nil {
		t.Fatal(err)
	}
	if m.Company.Name != "Acme Robotics Ltd" || len(m.Agents) != 9 || len(m.Projects) != 1 || len(m.Issues) != 9 {
		t.Errorf("%s: %d agents, %d projects, %d issues", m.Company.Name, len(m.Agents), len(m.Projects), len(m.Issues))
	}
	if a := m.Agents[1]; a.Slug != "bob-builder" || text(a.ReportsTo) != "ada-ceo" || a.Instructions != "" {
		t.Errorf("%+v", a)
	}
	if d := m.Issues[0].Documents; len(d) != 2 || d[1].Body != "# Plan\n2. more" {
		t.Errorf("%+v", d)
	}
}

func TestMalformedPackagesAreRefused(t *testing.T) {
	t.Parallel()
	ok := func() Files { m, b := whole(); return Write(m, b) }
	for name, spoil := range map[string]func(Files){
		"no company":           func(f Files) { delete(f, companyFile) },
		"no name":              func(f Files) { f[companyFile] = Text("---\nname: \"\"\n---\n") },
		"endless front matter": func(f Files) { f[companyFile] = Text("---\nname: x\n") },
		"a list for a name":    func(f Files) { f[companyFile] = Text("---\nname: [1]\n---\n") },
		"a path out of it":     func(f Files) { f["../etc/passwd"] = Text("x") },
		"an absolute path":     func(f Files) { f["/etc/passwd"] = Text("x") },
		"a backslash":          func(f Files) { f[`agents\ada`] = Text("x") },
		"a deep path":          func(f Files) { f[strings.Repeat("a/", 20)] = Text("x") },
		"not text":             func(f Files) { f["agents/ada/AGENTS.md"] = File{Data: []byte{0xff, 0xfe}} },
		"a path twice":         func(f Files) { f["./agents/ada//AGENTS.md"] = Text("x") },
		"a number that is none": func(f Files) {
			f[sidecarFile] = Text("agents:\n  ada:\n    adapter:\n      config:\n        limits: [1, .nan]\n")
		},
		"an infinite default": func(f Files) {
			f[sidecarFile] = Text("agents:\n  ada:\n    metadata: {a: {b: -.inf}}\n")
		},
		"a key that is no text": func(f Files) {
			f[sidecarFile] = Text("agents:\n  ada:\n    runtime: {a: [{1: x}]}\n")
		},
		"a missing blob": func(f Files) {
			for n := range f {
				if strings.HasPrefix(n, "blobs/") {
					delete(f, n)
				}
			}
		},
		"another blob": func(f Files) {
			for n := range f {
				if strings.HasPrefix(n, "blobs/") {
					f[n] = Text("other")
				}
			}
		},
		"a circle of tasks": func(f Files) {
			f[sidecarFile] = Text("tasks:\n  acm-2:\n    parent: acm-10\n  acm-10:\n    parent: acm-2\n")
		},
		"a circle of goals": func(f Files) {
			f[sidecarFile] = Text("goals:\n  a: {title: a, level: team, status: active, parent: b}\n  b: {title: " +
				"b, level: team, status: active, parent: a}\n")
		},
		"two tasks of a name": func(f Files) { f["projects/arm/tasks/acm-2/TASK.md"] = Text("---\nname: twin\n---\n") },
		"too many files": func(f Files) {
			for n := range MaxFiles {
				f[fmt.Sprintf("x/%d", n)] = Text("")
			}
		},
		"broken YAML": func(f Files) { f[sidecarFile] = Text("a: [") },
		"a bomb": func(f Files) {
			bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
			for c := 'b'; c < 'n'; c++ {
				bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1,
					c-1, c-1, c-1)
			}
			f[sidecarFile] = Text("labels: []\n" + bomb + "agents: {ada: {adapter: {config: {x: *m}}}}\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := ok()
			spoil(files)
			if _, _, err := Read(files); !errors.Is(err, ErrPackage) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestOddPackagesAreReadWithWarnings(t *testing.T) {
	t.Parallel()
	m, warnings, err := Read(Files{
		"COMPANY.md":           Text("---\nname: Acme\n---\nWe build.\n"),
		"agents/ada/AGENTS.md": Text("Just text, no front matter.\n"),
		"agents/bob/AGENTS.md": Text("---\nname: Bob\nreportsTo: nobody\n---\n"),
		"teams/core/TEAM.md": Text("---\nname: Core\nmanager: ../../agents/ada/AGENTS.md\n" +
			"includes: [../../agents/bob/AGENTS.md]\n---\n"),
		"projects/arm/PROJECT.md":          Text("---\nname: Arm\nowner: ada\n---\n\nAn arm.\n"),
		"projects/arm/tasks/first/TASK.md": Text("---\nname: First\nassignee: gone\n---\n"),
		"tasks/weekly/TASK.md":             Text("---\nname: Weekly\nrecurring: true\n---\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if text(m.Company.Description) != "We build." || m.Agents[0].Name != "ada" || m.Agents[0].Instructions == "" {
		t.Errorf("%+v, %+v", m.Company, m.Agents[0])
	}
	if text(m.Agents[1].ReportsTo) != "ada" {
		t.Errorf("a member without a manager reports to %q", text(m.Agents[1].ReportsTo))
	}
	if i := m.Issues[0]; text(i.Project) != "arm" || i.Assignee != nil {
		t.Errorf("%+v", i)
	}
	if i := m.Issues[1]; !i.Recurring || len(i.Routine.Triggers) != 0 {
		t.Errorf("%+v", i)
	}
	if len(warnings) != 3 {
		t.Errorf("warnings %q", warnings)
	}
}

// A byte order mark, which editors of other systems write, is accepted, and so is empty front
// matter.
func TestFrontMatterIsFoundAsItIsWritten(t *testing.T) {
	t.Parallel()
	m, _, err := Read(Files{
		"COMPANY.md":           Text("\uFEFF---\r\nname: Acme\r\n---\r\nWe build.\r\n"),
		"agents/ada/AGENTS.md": Text("---\n---\n\nDo good.\n"),
		"agents/bob/AGENTS.md": Text("---\n---"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if m.Company.Name != "Acme" || text(m.Company.Description) != "We build." {
		t.Errorf("the company is %+v", m.Company)
	}
	if a, b := m.Agents[0], m.Agents[1]; a.Name != "ada" || a.Instructions != "Do good." || b.Name != "bob" ||
		b.Instructions != "" {
		t.Errorf("the agents are %+v, %+v", a, b)
	}
}

// Line ends that an editor of another system changed are converted. Files written here keep
// theirs; a document keeps them however it begins.
func TestEndsOfLinesAreTheTexts(t *testing.T) {
	t.Parallel()
	task := func(end string) string { return "---" + end + "name: T" + end + "---" + end + end + "one\r\ntwo" + end }
	for file, want := range map[string]string{task("\n"): "one\r\ntwo", task("\r\n"): "one\ntwo",
		"---\nname: T\r\n---\r\n\r\none\r\ntwo\r\n": "one\ntwo", "one\r\ntwo": "one\ntwo"} {
		m, _, err := Read(Files{companyFile: Text("---\nname: Acme\n---\n"), "tasks/t/TASK.md": Text(file),
			"tasks/t/documents/plan.md": Text("\uFEFFone\r\n")})
		if err != nil {
			t.Fatalf("%q: %v", file, err)
		}
		if i := m.Issues[0]; text(i.Description) != want || i.Documents[0].Body != "\uFEFFone\r\n" {
			t.Errorf("%q is read as %q with %q", file, text(i.Description), i.Documents[0].Body)
		}
	}
}

// Duplicates are an error: readers differ in which of the two they take.
func TestWhatIsThereTwiceIsRefused(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{companyFile, "agents/ada/AGENTS.md", `agents\ada\AGENTS.md`} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte("---\nname: x\n---\n"))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Unzip(bytes.NewReader(b.Bytes()), int64(b.Len())); !errors.Is(err, ErrPackage) ||
		!strings.Contains(err.Error(), "is there twice") {
		t.Errorf("two files of one path: %v", err)
	}
	if _, _, err := Read(Files{companyFile: Text("---\nname: a\nname: b\n---\n")}); !errors.Is(err, ErrPackage) ||
		!strings.Contains(err.Error(), "line 2: a key is there twice") {
		t.Errorf("two keys: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	m, blobs := whole()
	files := Write(m, blobs)
	f.Add(string(files[companyFile].Data), string(files["tasks/acm-2/TASK.md"].Data), string(files[sidecarFile].Data))
	f.Add("---\nname: a\n---", "---\n---\n", "tasks: {x: {parent: x}}")
	f.Fuzz(func(t *testing.T, company, task, side string) {
		in := Files{companyFile: Text(company), "tasks/x/TASK.md": Text(task), sidecarFile: Text(side),
			"agents/ada/AGENTS.md": Text(task)}
		m, _, err := Read(in)
		if err != nil {
			if !errors.Is(err, ErrPackage) {
				t.Fatalf("error %v", err)
			}
			return
		}
		m.Blobs = nil
		for n := range m.Issues {
			m.Issues[n].Attachments = nil
		}
		once := Write(m, nil)
		again, _, err := Read(once)
		if err != nil {
			t.Fatalf("what was written is not read: %v", err)
		}
		for name, file := range Write(again, nil) {
			if string(once[name].Data) != string(file.Data) {
				t.Fatalf("%s: %q, then %q", name, once[name].Data, file.Data)
			}
		}
	})
}

func TestStartersAreWholePackages(t *testing.T) {
	t.Parallel()
	if n := len(Starters()); n != 3 {
		t.Errorf("%d starters", n)
	}
	for _, name := range Starters() {
		files, _ := Starter(name)
		m, warnings, err := Read(files)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, %q", name, err, warnings)
			continue
		}
		ceo := 0
		for _, a := range m.Agents {
			if a.Instructions == "" || a.BudgetCents < 0 {
				t.Errorf("%s: %s has no instructions", name, a.Slug)
			}
			if a.Role == "ceo" {
				ceo++
			} else if a.ReportsTo == nil {
				t.Errorf("%s: %s reports to nobody", name, a.Slug)
			}
		}
		if ceo != 1 || len(m.Goals) == 0 || len(m.Projects) != 1 || len(m.Issues) != 2 || m.Issues[1].Routine == nil &&
			m.Issues[0].Routine == nil {
			t.Errorf("%s: %d chiefs, %d goals, %d projects, %d tasks", name, ceo, len(m.Goals), len(m.Projects), len(m.Issues))
		}
	}
	if _, ok := Starter("../starters"); ok {
		t.Error("a starter of another place")
	}
}
