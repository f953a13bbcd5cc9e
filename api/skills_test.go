package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api/skills"
	"github.com/selvage-mesh/selvage/company"
)

// shellOf returns the commands of a skill: its blocks marked sh, in their order.
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
			b.WriteString(strings.TrimPrefix(line, "   ") + "\n") // blocks within lists
		}
	}
	return b.String()
}

// Every command of every skill is run by a shell against a node, by the agent in
// a run, or by the board, as the skill is meant for; -e and curl's -f make a
// command that is wrong fail.
func TestSkillsCommandsWork(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl here")
	}
	for _, s := range skills.Bundled() {
		t.Run(s.Name, func(t *testing.T) {
			h := newTeam(t)
			server := httptest.NewServer(h)
			defer server.Close()
			h.call("PATCH", "/api/agents/"+h.worker+"/permissions", `{"canCreateAgents":true,"canAssignTasks":true}`).want(t, 200, "")
			issue := h.call("POST", "/api/companies/"+h.company+"/issues", `{"title":"Flange","status":"todo","assigneeAgentId":"`+h.worker+`"}`).want(t, 201, "").field(t, "id")
			run := h.running(h.company, h.worker)
			script := shellOf(s.Markdown)
			if script == "" {
				t.Fatal("it has no commands")
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", "set -x\n"+script)
			cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + t.TempDir(), "PAPERCLIP_API_URL=" + server.URL, "PAPERCLIP_COMPANY_ID=" + h.company}
			if s.Name != "paperclip-board" {
				cmd.Env = append(cmd.Env, "PAPERCLIP_API_KEY="+h.token, "PAPERCLIP_AGENT_ID="+h.worker, "PAPERCLIP_RUN_ID="+run, "PAPERCLIP_TASK_ID="+issue)
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
	h := newHarness(t)
	texts := map[string]string{}
	for _, s := range skills.Bundled() {
		texts[s.Name] = s.Markdown
	}
	pages := []string{"/api/llms/agent-configuration.txt", "/api/llms/agent-icons.txt"}
	for _, a := range adapters {
		pages = append(pages, "/api/llms/agent-configuration/"+a.Type+".txt")
	}
	for _, path := range pages {
		a := h.call("GET", path, "").want(t, 200, "\n")
		if a.header.Get("Content-Type") != plainText {
			t.Errorf("%s is %s", path, a.header.Get("Content-Type"))
		}
		texts[path] = string(a.body)
	}
	for name, text := range texts {
		for _, m := range namedRoute.FindAllStringSubmatch(text, -1) {
			path := colonName.ReplaceAllString(m[2], "00000000-0000-4000-8000-000000000000")
			if _, pattern := h.mux.Handler(httptest.NewRequest(m[1], path, http.NoBody)); pattern == "/api/" || pattern == "" {
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

// The pages for agents name every role, and every field of an adapter's configuration.
func TestPagesNameWhatThereIs(t *testing.T) {
	h := newHarness(t)
	index := string(h.call("GET", "/api/llms/agent-configuration.txt", "").want(t, 200, "").body)
	for _, role := range company.Roles {
		if !strings.Contains(index, role) {
			t.Errorf("no role %s", role)
		}
	}
	for _, a := range adapters {
		var schema struct {
			Fields []struct {
				Key string `json:"key"`
			} `json:"fields"`
		}
		if err := json.Unmarshal(h.call("GET", "/api/adapters/"+a.Type+"/config-schema", "").want(t, 200, "").body, &schema); err != nil {
			t.Fatal(err)
		}
		page := string(h.call("GET", "/api/llms/agent-configuration/"+a.Type+".txt", "").want(t, 200, "").body)
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
	h := newHarness(t)
	var index skillIndex
	if err := json.Unmarshal(h.call("GET", "/api/skills/index", "").want(t, 200, "").body, &index); err != nil {
		t.Fatal(err)
	}
	if len(index.Skills) != 8 {
		t.Errorf("%d skills", len(index.Skills))
	}
	for _, s := range index.Skills {
		a := h.call("GET", s.Path, "").want(t, 200, "---\nname: "+s.Name+"\n")
		if a.header.Get("Content-Type") != markdown {
			t.Errorf("%s is %s", s.Path, a.header.Get("Content-Type"))
		}
	}
	h.call("GET", "/api/skills/nothing", "").want(t, 404, `{"error":"Skill not found"}`)
	h.call("GET", "/api/llms/agent-configuration/nothing.txt", "").want(t, 404, "Unknown adapter type: nothing")
}
