package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/examples/wasmkit"
)

// A stage answers what an agent asks, and keeps what it did.
type stage struct {
	asked           []string
	body            map[string]any
	status, comment string
}

func (s *stage) ask(method string, in, out any) error {
	put := func(text string) error { return json.Unmarshal([]byte(text), out) }
	s.asked = append(s.asked, method)
	switch method {
	case "run.context":
		return put(`{"agentId":"a","agentName":"Ada","companyId":"c","runId":"0123456789ab","taskId":"i"}`)
	case "issue.get":
		return put(`{"id":"i","identifier":"ACM-1","title":"Propose a strategy","status":"todo"}`)
	case "api":
		switch path := in.(map[string]string)["path"]; path {
		case "/api/companies/c":
			return put(`{"name":"Acme","issuePrefix":"ACM","budgetMonthlyCents":500,"spentMonthlyCents":25}`)
		case "/api/companies/c/goals":
			return put(`[{"title":"Fold towels","status":"active"}]`)
		case "/api/companies/c/agents":
			return put(`[{"id":"a","name":"Ada","role":"ceo","status":"running"}]`)
		case "/api/companies/c/issues":
			return put(`[{"identifier":"ACM-1","title":"Propose a strategy","status":"in_progress"}]`)
		}
		return &wasmkit.Error{Code: "Forbidden", Message: "403"}
	case "model.list":
		return put(`{"data":[{"id":"m"}]}`)
	case "model.chat":
		s.body = in.(map[string]any)
		return put(`{"choices":[{"message":{"content":"Fold them in three."}}],"usage":{"total_tokens":10}}`)
	case "comment.create":
		s.comment = in.(map[string]string)["body"]
	case "issue.update":
		s.status = in.(map[string]string)["status"]
	}
	return nil
}

func (s *stage) work(t *testing.T, env map[string]string) {
	t.Helper()
	if err := work(s.ask, func(k string) string { return env[k] },
		func(...any) (int, error) { return 0, nil }); err != nil {
		t.Fatal(err)
	}
}

// A demo reports what is there, asks no model, and closes its issue.
func TestADemoReportsWhatIsThere(t *testing.T) {
	t.Parallel()
	s := &stage{}
	s.work(t, map[string]string{"AGENT_DEMO": "1"})
	for _, want := range []string{"I am Ada, a demo agent", `about "Propose a strategy"`, "**Acme**",
		"ACM-1 and so on, has spent $0.25 of $5.00", "- Fold towels (active)",
		"- Ada, ceo, running: that is me", "- ACM-1 Propose a strategy, in_progress", "selvage run log 01234567",
		`selvage agent update 'Ada' --config '{"env": {}}'`} {
		if !strings.Contains(s.comment, want) {
			t.Errorf("the report has no %q:\n%s", want, s.comment)
		}
	}
	if s.status != "done" || strings.Contains(strings.Join(s.asked, " "), "model.") {
		t.Errorf("the issue is %q after %v", s.status, s.asked)
	}
}

// A model that is offered no tools is told of none, and its words are the result.
func TestWordsCanBeTheEnd(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{"": "in_review", "done": "done"} {
		s := &stage{}
		s.work(t, map[string]string{"AGENT_TOOLS": "none", "AGENT_ANSWER_STATUS": env})
		_, offered := s.body["tools"]
		if system := s.body["messages"].([]Message)[0].Content; s.status != want || offered ||
			strings.Contains(system, "tool") || s.comment != "Fold them in three." {
			t.Errorf("%q: the issue is %q with %q; tools offered %v; %q", env, s.status, s.comment, offered, system)
		}
	}
	s := &stage{}
	s.work(t, map[string]string{"AGENT_TOOLS": "finish, comment"})
	if got := s.body["tools"].([]toolSpec); len(got) != 2 {
		t.Errorf("%d tools were offered, want 2", len(got))
	}
}
