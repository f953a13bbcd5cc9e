package work_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/api/work"
	"github.com/selvage-mesh/selvage/company/place"
)

// at is the path of a member as it appears in a refusal.
func at(path string) string { return `"path":["` + strings.ReplaceAll(path, ".", `","`) + `"]` }

// Overrides that a run could not decode are refused when the issue is created, changed
// or assigned to another agent. The refusal names the member.
func TestOverridesAreOfTheTypesThatTheAssigneesAdapterTakes(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	in := "/api/companies/" + of
	ada := h.Call("POST", in+"/agents", `{"name":"Ada","adapterType":"claude_local"}`).Want(t, 201, "").Field(t, "id")
	bob := h.Call("POST", in+"/agents", `{"name":"Bob","adapterConfig":{"command":"true"}}`).Want(t, 201, "").
		Field(t, "id")
	issue := h.Call("POST", in+"/issues", `{"title":"Dig","status":"backlog","assigneeAgentId":"`+ada+`"}`).
		Want(t, 201, "").Field(t, "id")
	const name = "assigneeAdapterOverrides"
	ways := map[string]func(overrides string) apitest.Answer{
		"made": func(o string) apitest.Answer {
			return h.Call("POST", in+"/issues",
				`{"title":"Dig","status":"backlog","allowDuplicate":true,"assigneeAgentId":"`+ada+`","`+name+`":`+o+`}`)
		},
		"made below": func(o string) apitest.Answer {
			return h.Call("POST", "/api/issues/"+issue+"/children",
				`{"title":"Dig","status":"backlog","allowDuplicate":true,"assigneeAgentId":"`+strings.ToUpper(ada)+
					`","`+name+`":`+o+`}`)
		},
		"changed": func(o string) apitest.Answer { return h.Call("PATCH", "/api/issues/"+issue, `{"`+name+`":`+o+`}`) },
		"changed and handed over": func(o string) apitest.Answer {
			return h.Call("PATCH", "/api/issues/"+issue, `{"assigneeAgentId":"`+ada+`","`+name+`":`+o+`}`)
		},
	}
	for way, do := range ways {
		for overrides, field := range map[string]string{
			`{"adapterConfig":{"model":5}}`:            "adapterConfig.model",
			`{"adapterConfig":{"maxTurnsPerRun":"x"}}`: "adapterConfig.maxTurnsPerRun",
			`{"adapterConfig":"x"}`:                    "adapterConfig", `{"modelProfile":{}}`: "modelProfile",
			`{"useProjectWorkspace":"yes"}`: "useProjectWorkspace",
		} {
			if a := do(overrides); a.Status != 400 || !strings.Contains(string(a.Body), at(name+"."+field)) {
				t.Errorf("%s with %s: %d %s", way, overrides, a.Status, a.Body)
			}
		}
		for _, overrides := range []string{`{"adapterConfig":{"model":"small","theirs":[1]},` +
			`"modelProfile":"cheap","useProjectWorkspace":true,"theirs":5}`,
			`{"modelProfile":null,"adapterConfig":{"model":null}}`, `null`} {
			if a := do(overrides); a.Status >= 300 {
				t.Errorf("%s with %s: %d %s", way, overrides, a.Status, a.Body)
			}
		}
	}
	patch := func(body string) apitest.Answer { return h.Call("PATCH", "/api/issues/"+issue, body) }
	// Bob's adapter does not know the model, and Ada's does not accept a number.
	patch(`{"assigneeAgentId":"`+bob+`","`+name+`":{"adapterConfig":{"model":5}}}`).Want(t, 200, "")
	patch(`{"assigneeAgentId":"`+ada+`"}`).Want(t, 400, at(name+".adapterConfig.model"))
	patch(`{"assigneeAgentId":"`+bob+`","title":"Dig on"}`).Want(t, 200, "")
	patch(`{"assigneeAgentId":"`+ada+`","`+name+`":null}`).Want(t, 200, "")
	// Without an assignee only the shape is checked.
	patch(`{"assigneeAgentId":null,"`+name+`":{"adapterConfig":{"model":5}}}`).Want(t, 200, "")
	patch(`{"`+name+`":{"modelProfile":5}}`).Want(t, 400, at(name+".modelProfile"))
	patch(`{"assigneeUserId":"local-board"}`).Want(t, 200, "")
	patch(`{"assigneeAgentId":"`+ada+`"}`).Want(t, 400, at(name+".adapterConfig.model"))
	// An agent of another company is not found.
	other := h.Company("Other")
	there := h.Call("POST", "/api/companies/"+other+"/issues", `{"title":"Dig"}`).Want(t, 201, "").Field(t, "id")
	if a := h.Call("PATCH", "/api/issues/"+there,
		`{"assigneeAgentId":"`+ada+`","`+name+`":{"adapterConfig":{"model":5}}}`); a.Status != 404 && a.Status != 422 {
		t.Errorf("another company's agent: %d %s", a.Status, a.Body)
	}
	h.Call("POST", "/api/issues/"+issue+"/accepted-plan-decompositions",
		`{"acceptedPlanRevisionId":"`+issue+`","children":[{"title":"A"},{"title":"B","assigneeAgentId":"`+ada+
			`","`+name+`":{"adapterConfig":{"model":5}}}]}`).
		Want(t, 400, `"path":["children",1,"`+name+`","adapterConfig","model"]`)
}

// A placement that no node could carry out is refused when it is written.
func TestWhereRunsWorkIsSaidInTheRightTypes(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	in := "/api/companies/" + h.Company("Acme")
	project := h.Call("POST", in+"/projects", `{"name":"Site"}`).Want(t, 201, "").Field(t, "id")
	issue := h.Call("POST", in+"/issues", `{"title":"Dig","status":"backlog"}`).Want(t, 201, "").Field(t, "id")
	const policy, settings = "executionWorkspacePolicy", "executionWorkspaceSettings"
	projects := map[string]func(p string) apitest.Answer{
		"made": func(p string) apitest.Answer {
			return h.Call("POST", in+"/projects", `{"name":"More","`+policy+`":`+p+`}`)
		},
		"changed": func(p string) apitest.Answer {
			return h.Call("PATCH", "/api/projects/"+project, `{"`+policy+`":`+p+`}`)
		},
	}
	for way, do := range projects {
		for p, field := range map[string]string{
			`{"enabled":"yes"}`: "enabled", `{"defaultMode":"isolated"}`: "defaultMode", `{"defaultMode":1}`: "defaultMode",
			`{"allowIssueOverride":1}`:                      "allowIssueOverride",
			`{"defaultProjectWorkspaceId":5}`:               "defaultProjectWorkspaceId",
			`{"workspaceStrategy":"git_worktree"}`:          "workspaceStrategy",
			`{"workspaceStrategy":{"type":5}}`:              "workspaceStrategy.type",
			`{"workspaceStrategy":{"baseRef":[]}}`:          "workspaceStrategy.baseRef",
			`{"workspaceStrategy":{"provisionCommand":{}}}`: "workspaceStrategy.provisionCommand",
			`{"workspaceRuntime":[]}`:                       "workspaceRuntime",
			`{"workspaceRuntime":{"services":5}}`:           "workspaceRuntime.services",
			`{"workspaceRuntime":{"jobs":{}}}`:              "workspaceRuntime.jobs",
		} {
			if a := do(p); a.Status != 400 || !strings.Contains(string(a.Body), at(policy+"."+field)) {
				t.Errorf("%s with %s: %d %s", way, p, a.Status, a.Body)
			}
		}
		for _, p := range []string{`{"enabled":true,"defaultMode":"isolated_workspace","allowIssueOverride":null,` +
			`"workspaceStrategy":{"type":"git_worktree","baseRef":null,"theirs":1},"pullRequestPolicy":{"a":1},` +
			`"workspaceRuntime":null}`,
			`{"workspaceRuntime":{"services":[{"name":"web","command":"make","port":80,"env":null},` +
				`{"command":"db","port":{"type":"auto"},"stopPolicy":"x","theirs":[]}],"jobs":null,"theirs":1}}`,
			`{"workspaceStrategy":null,"theirs":[]}`, `null`} {
			if a := do(p); a.Status >= 300 {
				t.Errorf("%s with %s: %d %s", way, p, a.Status, a.Body)
			}
		}
	}
	h.Call("PATCH", "/api/projects/"+project,
		`{"`+policy+`":{"workspaceRuntime":{"services":[{"command":"db"},{"command":5,"env":{"A":1},`+
			`"readiness":{"timeoutSec":"x"}}]}}}`).
		Want(t, 400, `"path":["`+policy+`","workspaceRuntime","services",1,"command"]`).Want(t, 400, `1,"env","A"]`).
		Want(t, 400, `1,"readiness","timeoutSec"]`)
	issues := map[string]func(s string) apitest.Answer{
		"made": func(s string) apitest.Answer {
			return h.Call("POST", in+"/issues", `{"title":"Dig","status":"backlog","allowDuplicate":true,"`+settings+`":`+s+`}`)
		},
		"changed": func(s string) apitest.Answer { return h.Call("PATCH", "/api/issues/"+issue, `{"`+settings+`":`+s+`}`) },
	}
	for way, do := range issues {
		for _, s := range []string{`{"mode":1}`, `{"mode":"somewhere"}`} {
			if a := do(s); a.Status != 400 || !strings.Contains(string(a.Body), at(settings+".mode")) {
				t.Errorf("an issue %s with %s: %d %s", way, s, a.Status, a.Body)
			}
		}
		if a := do(`{"mode":"inherit","workspaceStrategy":{"existingBranch":"x"}}`); a.Status >= 300 {
			t.Errorf("an issue %s: %d %s", way, a.Status, a.Body)
		}
	}
	// A refusal in a policy of stages has the full path too.
	h.Call("PATCH", "/api/issues/"+issue, `{"executionPolicy":{"mode":5}}`).Want(t, 400, at("executionPolicy.mode"))
	h.Call("PATCH", "/api/issues/"+issue, `{"executionPolicy":{"stages":[{"type":"review","participants":[]}]}}`).
		Want(t, 400, `"path":["executionPolicy","stages",0,"participants"]`)
}

// The check of a declared command covers exactly what the rules read.
func TestDeclaredCommandsAreLookedAtAsTheyAreRead(t *testing.T) {
	t.Parallel()
	looked := api.PlanOf(reflect.TypeFor[work.CommandBody]()).ByName
	for f := range reflect.TypeFor[place.DeclaredCommand]().Fields() {
		name := f.Tag.Get("json")
		if _, ok := looked[name]; !ok && name != "-" {
			t.Errorf("nothing looks at %s", name)
		}
	}
}
