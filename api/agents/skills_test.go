package agents_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/agents"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/api/skills"
	"github.com/selvage-mesh/selvage/company/entity"
)

// shellOf returns the shell code of a skill: its blocks marked sh, in order.
func shellOf(markdown string) string {
	var b strings.Builder
	within := false
	for line := range strings.SplitSeq(markdown, "\n") {
		switch plain := strings.TrimSpace(line); {
		case plain == "```sh":
			within = true
		case plain == "```":
			within = false
		case within:
			b.WriteString(strings.TrimPrefix(line, "   ") + "\n") // blocks inside lists
		}
	}
	return b.String()
}

// A shell executes every command of every skill against a node: in an agent's run or as
// the board, as the skill intends. With -e and curl's -f a wrong command fails the test.
func TestSkillsCommandsWork(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl here")
	}
	for _, s := range skills.Bundled() {
		t.Run(s.Name, func(t *testing.T) {
			h := apitest.NewTeam(t)
			server := httptest.NewServer(h)
			defer server.Close()
			h.Call("PATCH", "/api/agents/"+h.Worker+"/permissions", `{"canCreateAgents":true,"canAssignTasks":true}`).
				Want(t, 200, "")
			issue := h.Call("POST", "/api/companies/"+string(h.Company)+"/issues",
				`{"title":"Flange","status":"todo","assigneeAgentId":"`+h.Worker+`"}`).Want(t, 201, "").Field(t, "id")
			run := h.Running(h.Company, h.Worker)
			script := shellOf(s.Markdown)
			if script == "" {
				t.Fatal("it has no commands")
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", "set -x\n"+script)
			cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + t.TempDir(), "PAPERCLIP_API_URL=" + server.URL,
				"PAPERCLIP_COMPANY_ID=" + string(h.Company)}
			if s.Name != "paperclip-board" {
				cmd.Env = append(cmd.Env, "PAPERCLIP_API_KEY="+h.Token, "PAPERCLIP_AGENT_ID="+h.Worker, "PAPERCLIP_RUN_ID="+run,
					"PAPERCLIP_TASK_ID="+issue)
			}
			cmd.Dir, cmd.WaitDelay = t.TempDir(), 5*time.Second
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

var (
	namedRoute = regexp.MustCompile("`(GET|POST|PUT|PATCH|DELETE) (/api/[^ `?]*)")
	colonName  = regexp.MustCompile(`:[A-Za-z]+`)
)

func TestTextsNameRoutesThatThereAre(t *testing.T) {
	h := apitest.NewHarness(t)
	texts := map[string]string{}
	for _, s := range skills.Bundled() {
		texts[s.Name] = s.Markdown
	}
	pages := []string{"/api/llms/agent-configuration.txt", "/api/llms/agent-icons.txt"}
	for _, a := range agents.Adapters {
		pages = append(pages, "/api/llms/agent-configuration/"+a.Type+".txt")
	}
	for _, path := range pages {
		a := h.Call("GET", path, "").Want(t, 200, "\n")
		if a.Header.Get("Content-Type") != api.PlainText {
			t.Errorf("%s is %s", path, a.Header.Get("Content-Type"))
		}
		texts[path] = string(a.Body)
	}
	for name, text := range texts {
		for _, m := range namedRoute.FindAllStringSubmatch(text, -1) {
			path := colonName.ReplaceAllString(m[2], "00000000-0000-4000-8000-000000000000")
			if _, pattern := h.Mux.Handler(httptest.NewRequest(m[1], path, http.NoBody)); pattern == "/api/" || pattern == "" {
				t.Errorf("%s names %s %s, which is not there", name, m[1], m[2])
			}
		}
		for _, word := range []string{"TODO", "{{setup}}"} {
			if strings.Contains(text, word) {
				t.Errorf("%s holds %q", name, word)
			}
		}
	}
}

// The pages for agents name every role and every field of an adapter's configuration.
func TestPagesNameWhatThereIs(t *testing.T) {
	h := apitest.NewHarness(t)
	index := string(h.Call("GET", "/api/llms/agent-configuration.txt", "").Want(t, 200, "").Body)
	for _, role := range entity.Roles {
		if !strings.Contains(index, role) {
			t.Errorf("no role %s", role)
		}
	}
	for _, a := range agents.Adapters {
		var schema struct {
			Fields []struct {
				Key string `json:"key"`
			} `json:"fields"`
		}
		if err := json.Unmarshal(h.Call("GET", "/api/adapters/"+a.Type+"/config-schema", "").Want(t, 200, "").Body,
			&schema); err != nil {
			t.Fatal(err)
		}
		page := string(h.Call("GET", "/api/llms/agent-configuration/"+a.Type+".txt", "").Want(t, 200, "").Body)
		for _, f := range schema.Fields {
			if f.Key == "" || !strings.Contains(page, f.Key) {
				t.Errorf("the page of %s does not name %q", a.Type, f.Key)
			}
		}
		if len(schema.Fields) == 0 {
			t.Errorf("%s has no fields", a.Type)
		}
	}
}

func TestBundledSkillsAreServed(t *testing.T) {
	h := apitest.NewHarness(t)
	var index agents.SkillIndex
	if err := json.Unmarshal(h.Call("GET", "/api/skills/index", "").Want(t, 200, "").Body, &index); err != nil {
		t.Fatal(err)
	}
	if len(index.Skills) != 8 {
		t.Errorf("%d skills", len(index.Skills))
	}
	for _, s := range index.Skills {
		a := h.Call("GET", s.Path, "").Want(t, 200, "---\nname: "+s.Name+"\n")
		if a.Header.Get("Content-Type") != agents.Markdown {
			t.Errorf("%s is %s", s.Path, a.Header.Get("Content-Type"))
		}
	}
	h.Call("GET", "/api/skills/nothing", "").Want(t, 404, `{"error":"Skill not found"}`)
	h.Call("GET", "/api/llms/agent-configuration/nothing.txt", "").Want(t, 404, "Unknown adapter type: nothing")
}
