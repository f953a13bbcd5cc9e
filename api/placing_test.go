package api

import (
	"reflect"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/place"
)

// at is the path of a member as a refusal has it.
func at(path string) string { return `"path":["` + strings.ReplaceAll(path, ".", `","`) + `"]` }

// What a run could not decode of what an issue says about its adapter is refused when
// the issue is made, changed or handed to another agent, with the member named.
func TestOverridesAreOfTheTypesThatTheAssigneesAdapterTakes(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := h.company("Acme")
	in := "/api/companies/" + of
	ada := h.call("POST", in+"/agents", `{"name":"Ada","adapterType":"claude_local"}`).want(t, 201, "").field(t, "id")
	bob := h.call("POST", in+"/agents", `{"name":"Bob","adapterConfig":{"command":"true"}}`).want(t, 201, "").field(t, "id")
	issue := h.call("POST", in+"/issues", `{"title":"Dig","status":"backlog","assigneeAgentId":"`+ada+`"}`).want(t, 201, "").field(t, "id")
	const name = "assigneeAdapterOverrides"
	ways := map[string]func(overrides string) answer{
		"made": func(o string) answer {
			return h.call("POST", in+"/issues", `{"title":"Dig","status":"backlog","allowDuplicate":true,"assigneeAgentId":"`+ada+`","`+name+`":`+o+`}`)
		},
		"made below": func(o string) answer {
			return h.call("POST", "/api/issues/"+issue+"/children", `{"title":"Dig","status":"backlog","allowDuplicate":true,"assigneeAgentId":"`+strings.ToUpper(ada)+`","`+name+`":`+o+`}`)
		},
		"changed": func(o string) answer { return h.call("PATCH", "/api/issues/"+issue, `{"`+name+`":`+o+`}`) },
		"changed and handed over": func(o string) answer {
			return h.call("PATCH", "/api/issues/"+issue, `{"assigneeAgentId":"`+ada+`","`+name+`":`+o+`}`)
		},
	}
	for way, do := range ways {
		for overrides, field := range map[string]string{
			`{"adapterConfig":{"model":5}}`: "adapterConfig.model", `{"adapterConfig":{"maxTurnsPerRun":"x"}}`: "adapterConfig.maxTurnsPerRun",
			`{"adapterConfig":"x"}`: "adapterConfig", `{"modelProfile":{}}`: "modelProfile", `{"useProjectWorkspace":"yes"}`: "useProjectWorkspace",
		} {
			if a := do(overrides); a.status != 400 || !strings.Contains(string(a.body), at(name+"."+field)) {
				t.Errorf("%s with %s: %d %s", way, overrides, a.status, a.body)
			}
		}
		for _, overrides := range []string{`{"adapterConfig":{"model":"small","theirs":[1]},"modelProfile":"cheap","useProjectWorkspace":true,"theirs":5}`, `{"modelProfile":null,"adapterConfig":{"model":null}}`, `null`} {
			if a := do(overrides); a.status >= 300 {
				t.Errorf("%s with %s: %d %s", way, overrides, a.status, a.body)
			}
		}
	}
	patch := func(body string) answer { return h.call("PATCH", "/api/issues/"+issue, body) }
	// Bob's adapter does not know the model, and Ada's can not do with a number.
	patch(`{"assigneeAgentId":"`+bob+`","`+name+`":{"adapterConfig":{"model":5}}}`).want(t, 200, "")
	patch(`{"assigneeAgentId":"`+ada+`"}`).want(t, 400, at(name+".adapterConfig.model"))
	patch(`{"assigneeAgentId":"`+bob+`","title":"Dig on"}`).want(t, 200, "")
	patch(`{"assigneeAgentId":"`+ada+`","`+name+`":null}`).want(t, 200, "")
	// With nobody to take it there is only the shape to look at.
	patch(`{"assigneeAgentId":null,"`+name+`":{"adapterConfig":{"model":5}}}`).want(t, 200, "")
	patch(`{"`+name+`":{"modelProfile":5}}`).want(t, 400, at(name+".modelProfile"))
	patch(`{"assigneeUserId":"local-board"}`).want(t, 200, "")
	patch(`{"assigneeAgentId":"`+ada+`"}`).want(t, 400, at(name+".adapterConfig.model"))
	// An agent of another company is not told of: it is none.
	other := h.company("Other")
	there := h.call("POST", "/api/companies/"+other+"/issues", `{"title":"Dig"}`).want(t, 201, "").field(t, "id")
	if a := h.call("PATCH", "/api/issues/"+there, `{"assigneeAgentId":"`+ada+`","`+name+`":{"adapterConfig":{"model":5}}}`); a.status != 404 && a.status != 422 {
		t.Errorf("another company's agent: %d %s", a.status, a.body)
	}
	h.call("POST", "/api/issues/"+issue+"/accepted-plan-decompositions", `{"acceptedPlanRevisionId":"`+issue+`","children":[{"title":"A"},{"title":"B","assigneeAgentId":"`+ada+`","`+name+`":{"adapterConfig":{"model":5}}}]}`).
		want(t, 400, `"path":["children",1,"`+name+`","adapterConfig","model"]`)
}

// What could not be carried out of where runs are to work is refused when it is said.
func TestWhereRunsWorkIsSaidInTheRightTypes(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	in := "/api/companies/" + h.company("Acme")
	project := h.call("POST", in+"/projects", `{"name":"Site"}`).want(t, 201, "").field(t, "id")
	issue := h.call("POST", in+"/issues", `{"title":"Dig","status":"backlog"}`).want(t, 201, "").field(t, "id")
	const policy, settings = "executionWorkspacePolicy", "executionWorkspaceSettings"
	projects := map[string]func(p string) answer{
		"made":    func(p string) answer { return h.call("POST", in+"/projects", `{"name":"More","`+policy+`":`+p+`}`) },
		"changed": func(p string) answer { return h.call("PATCH", "/api/projects/"+project, `{"`+policy+`":`+p+`}`) },
	}
	for way, do := range projects {
		for p, field := range map[string]string{
			`{"enabled":"yes"}`: "enabled", `{"defaultMode":"isolated"}`: "defaultMode", `{"defaultMode":1}`: "defaultMode", `{"allowIssueOverride":1}`: "allowIssueOverride",
			`{"defaultProjectWorkspaceId":5}`: "defaultProjectWorkspaceId", `{"workspaceStrategy":"git_worktree"}`: "workspaceStrategy", `{"workspaceStrategy":{"type":5}}`: "workspaceStrategy.type",
			`{"workspaceStrategy":{"baseRef":[]}}`: "workspaceStrategy.baseRef", `{"workspaceStrategy":{"provisionCommand":{}}}`: "workspaceStrategy.provisionCommand",
			`{"workspaceRuntime":[]}`: "workspaceRuntime", `{"workspaceRuntime":{"services":5}}`: "workspaceRuntime.services",
			`{"workspaceRuntime":{"jobs":{}}}`: "workspaceRuntime.jobs",
		} {
			if a := do(p); a.status != 400 || !strings.Contains(string(a.body), at(policy+"."+field)) {
				t.Errorf("%s with %s: %d %s", way, p, a.status, a.body)
			}
		}
		for _, p := range []string{`{"enabled":true,"defaultMode":"isolated_workspace","allowIssueOverride":null,"workspaceStrategy":{"type":"git_worktree","baseRef":null,"theirs":1},"pullRequestPolicy":{"a":1},"workspaceRuntime":null}`,
			`{"workspaceRuntime":{"services":[{"name":"web","command":"make","port":80,"env":null},{"command":"db","port":{"type":"auto"},"stopPolicy":"x","theirs":[]}],"jobs":null,"theirs":1}}`,
			`{"workspaceStrategy":null,"theirs":[]}`, `null`} {
			if a := do(p); a.status >= 300 {
				t.Errorf("%s with %s: %d %s", way, p, a.status, a.body)
			}
		}
	}
	h.call("PATCH", "/api/projects/"+project, `{"`+policy+`":{"workspaceRuntime":{"services":[{"command":"db"},{"command":5,"env":{"A":1},"readiness":{"timeoutSec":"x"}}]}}}`).
		want(t, 400, `"path":["`+policy+`","workspaceRuntime","services",1,"command"]`).want(t, 400, `1,"env","A"]`).want(t, 400, `1,"readiness","timeoutSec"]`)
	issues := map[string]func(s string) answer{
		"made": func(s string) answer {
			return h.call("POST", in+"/issues", `{"title":"Dig","status":"backlog","allowDuplicate":true,"`+settings+`":`+s+`}`)
		},
		"changed": func(s string) answer { return h.call("PATCH", "/api/issues/"+issue, `{"`+settings+`":`+s+`}`) },
	}
	for way, do := range issues {
		for _, s := range []string{`{"mode":1}`, `{"mode":"somewhere"}`} {
			if a := do(s); a.status != 400 || !strings.Contains(string(a.body), at(settings+".mode")) {
				t.Errorf("an issue %s with %s: %d %s", way, s, a.status, a.body)
			}
		}
		if a := do(`{"mode":"inherit","workspaceStrategy":{"existingBranch":"x"}}`); a.status >= 300 {
			t.Errorf("an issue %s: %d %s", way, a.status, a.body)
		}
	}
	// A policy of stages is named with its whole path too.
	h.call("PATCH", "/api/issues/"+issue, `{"executionPolicy":{"mode":5}}`).want(t, 400, at("executionPolicy.mode"))
	h.call("PATCH", "/api/issues/"+issue, `{"executionPolicy":{"stages":[{"type":"review","participants":[]}]}}`).want(t, 400, `"path":["executionPolicy","stages",0,"participants"]`)
}

// What is looked at of a declared command is what the rules read of one.
func TestDeclaredCommandsAreLookedAtAsTheyAreRead(t *testing.T) {
	t.Parallel()
	looked := planOf(reflect.TypeFor[commandBody]()).byName
	for f := range reflect.TypeFor[place.DeclaredCommand]().Fields() {
		name := f.Tag.Get("json")
		if _, ok := looked[name]; !ok && name != "-" {
			t.Errorf("nothing looks at %s", name)
		}
	}
}
