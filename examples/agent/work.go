package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/examples/wasmkit"
)

const (
	// maxRounds bounds the calls of models for one issue, and maxConversation the
	// tokens that they may come to.
	maxRounds       = 20
	maxConversation = 200_000
	// maxToolResult bounds what a tool answers, in bytes.
	maxToolResult = 64 << 10
	// maxIssues bounds the issues of one run, maxComments what is read of each.
	maxIssues, maxComments = 3, 50
	// maxTries bounds how often one model is asked for one answer.
	maxTries = 3
	// maxPast bounds the earlier runs that are learnt from.
	maxPast = 10
	// maxRecalled bounds the memories and messages that are read for one issue,
	// maxQuestion what is looked for, in bytes.
	maxRecalled, maxQuestion = 5, 1000
	// tokenBudget is what an efficient piece of work costs.
	tokenBudget = 4096
	// poorScore is the score below which there is something to learn.
	poorScore = 0.6
)

// An Issue is what the agent looks at of one.
type Issue struct {
	ID          string `json:"id"`
	Identifier  string `json:"identifier"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Status      string `json:"status"`
}

// A Comment is one of an issue.
type Comment struct {
	Agent string `json:"authorAgentId"`
	Body  string `json:"body"`
}

// An Outcome is what is told of a run: result and score are read by whoever
// waits for it, the rest by the agent itself, later.
type Outcome struct {
	Result  string  `json:"result"`
	Score   float64 `json:"score"`
	Status  string  `json:"issueStatus"`
	Profile Profile `json:"profile"`
	Route   Route   `json:"route"`
	Rounds  int     `json:"rounds"`
	Tools   int     `json:"tools"`
	Failed  int     `json:"toolsFailed"`
	Tokens  int     `json:"tokens"`
	Lesson  string  `json:"lesson,omitempty"`
}

// An agent is one run.
type agent struct {
	ask  call
	env  func(string) string
	say  func(...any) (int, error)
	me   wasmkit.Run
	past []Outcome

	embeds *string // the model that embeds, once that was looked for
}

// work does what the run is for.
func work(ask call, env func(string) string, say func(...any) (int, error)) error {
	a := &agent{ask: ask, env: env, say: say}
	if err := ask("run.context", nil, &a.me); err != nil {
		return err
	}
	issues, err := a.issues()
	if err != nil {
		return err
	}
	a.past = a.earlier()
	var last error
	for _, i := range issues {
		err := ask("issue.checkout", map[string]any{"id": i.ID}, nil)
		if codeOf(err) == "Conflict" {
			say(i.Identifier, "is held by another run")
			continue
		}
		if err != nil {
			return fmt.Errorf("check out %s: %w", i.Identifier, err)
		}
		on := a.on
		if env("AGENT_DEMO") == "1" {
			on = a.demo
		}
		out, err := on(i)
		if err != nil {
			last = fmt.Errorf("%s: %w", i.Identifier, err)
			continue
		}
		say(i.Identifier, out.Status, "score", strconv.FormatFloat(out.Score, 'f', 2, 64))
		if err := ask("run.result", out, nil); err != nil {
			return err
		}
	}
	if len(issues) == 0 {
		say("nothing to do")
	}
	return last
}

// issues are the one that the run was woken for, or those that are the agent's.
func (a *agent) issues() (list []Issue, err error) {
	if a.me.TaskID != "" {
		list = make([]Issue, 1)
		if err := a.ask("issue.get", map[string]string{"id": a.me.TaskID}, &list[0]); err != nil {
			return nil, err
		}
		if s := list[0].Status; s != "done" && s != "cancelled" {
			return list, nil
		}
		return nil, nil
	}
	if err := a.ask("issue.list", map[string]string{"assigneeAgentId": a.me.AgentID, "status": "todo,in_progress"}, &list); err != nil {
		return nil, err
	}
	return list[:min(len(list), maxIssues)], nil
}

// earlier reads what came of the agent's last runs.
func (a *agent) earlier() (out []Outcome) {
	var runs []struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	}
	path := fmt.Sprintf("/api/companies/%s/heartbeat-runs?agentId=%s&limit=%d", a.me.CompanyID, a.me.AgentID, maxPast)
	if err := a.ask("api", map[string]string{"method": "GET", "path": path}, &runs); err != nil {
		return nil // it begins without a past
	}
	for _, r := range runs {
		var whole struct {
			Result struct {
				Told Outcome `json:"told"`
			} `json:"resultJson"`
		}
		path := "/api/heartbeat-runs/" + r.ID
		if r.Status == "succeeded" && a.ask("api", map[string]string{"method": "GET", "path": path}, &whole) == nil && whole.Result.Told.Profile.Type != "" {
			out = append(out, whole.Result.Told)
		}
	}
	return out
}

// lessons are those of earlier work of the same kind, and whether it was poor.
func (a *agent) lessons(kind string) (list []string, poor bool) {
	n, sum := 0, 0.0
	for _, o := range a.past {
		if o.Profile.Type != kind {
			continue
		}
		if n++; n <= 5 {
			sum += o.Score
		}
		if o.Lesson != "" && len(list) < 5 {
			list = append(list, o.Lesson)
		}
	}
	return list, n >= 3 && sum/float64(min(n, 5)) < poorScore
}

// inbox reads the messages that wait, and takes them out.
func (a *agent) inbox() (lines []string) {
	var waiting []struct {
		ID, FromID, Type string
		Payload          json.RawMessage
	}
	if a.ask("ipc.receive", map[string]any{"limit": maxRecalled}, &waiting) != nil || len(waiting) == 0 {
		return nil
	}
	var ids []string
	for _, m := range waiting {
		ids = append(ids, m.ID)
		lines = append(lines, "message of "+m.FromID+" ("+m.Type+"): "+string(m.Payload))
	}
	if err := a.ask("ipc.take", map[string]any{"ids": ids}, nil); err != nil {
		_ = wasmkitLog(a.ask, "warn", "messages could not be taken: "+err.Error())
	}
	return lines
}

// skills are the texts of those that the agent is to have.
func (a *agent) skills() (out []Skill) {
	var set struct {
		Entries []struct{ State, Path string } `json:"entries"`
	}
	if err := a.ask("api", map[string]string{"method": "GET", "path": "/api/agents/" + a.me.AgentID + "/skills"}, &set); err != nil {
		return nil
	}
	for _, e := range set.Entries {
		var file struct{ Content string }
		if e.State != "available" || a.ask("api", map[string]string{"method": "GET", "path": e.Path + "?path=SKILL.md"}, &file) != nil {
			continue
		}
		if s, ok := parseSkill(file.Content); ok {
			out = append(out, s)
		} else {
			_ = wasmkitLog(a.ask, "warn", "a skill at "+e.Path+" has no front matter that can be read")
		}
	}
	return out
}

func wasmkitLog(ask call, level, text string) error {
	return ask("log", map[string]string{"level": level, "message": text}, nil)
}

// on works on one issue.
func (a *agent) on(i Issue) (Outcome, error) {
	p := classify(i.Title + "\n" + i.Description)
	lessons, poor := a.lessons(p.Type)
	r := route(a.ask, a.env, p, poor)
	out := Outcome{Profile: p, Route: r}
	_ = wasmkitLog(a.ask, "info", "classified "+compact(p)+", routed "+compact(r))
	if len(r.Models) == 0 {
		return out, errors.New("there is no model: say one in AGENT_MODEL, or connect an upstream (selvage model)")
	}
	var comments []Comment
	if err := a.ask("comment.list", map[string]any{"id": i.ID, "order": "asc", "limit": maxComments}, &comments); err != nil {
		return out, err
	}
	skills := a.skills()
	may := named(offered(skills, p), a.env("AGENT_TOOLS"))
	lessons = append(append(lessons, a.recall(i.Title+" "+i.Description)...), a.inbox()...)
	talk := assemble(instructions(a.me.AgentName, may), a.env("AGENT_PROMPT"), skills, lessons, i, comments, a.me.Memories, p, r.context)
	for out.Rounds < maxRounds && out.Tokens < maxConversation {
		out.Rounds++
		said, used, err := a.model(&r, talk, may)
		out.Route = r
		if err != nil {
			return out, err
		}
		out.Tokens += used
		talk = append(talk, said)
		if len(said.ToolCalls) == 0 {
			// Words alone are the result; a person looks whether that was all, unless told otherwise.
			out.Result, out.Status = strings.TrimSpace(said.Content), "in_review"
			if a.env("AGENT_ANSWER_STATUS") == "done" {
				out.Status = "done"
			}
			break
		}
		for _, c := range said.ToolCalls {
			out.Tools++
			answer, finished, err := a.tool(i, c, may, &out)
			if err != nil {
				out.Failed++
				answer = compact(map[string]string{"error": err.Error()})
			}
			if len(answer) > maxToolResult {
				answer = strings.ToValidUTF8(answer[:maxToolResult], "") + "[cut]"
			}
			talk = append(talk, Message{Role: "tool", Content: answer, ToolCallID: c.ID})
			if finished {
				break
			}
		}
		if out.Status != "" {
			break
		}
	}
	if out.Status == "" {
		out.Status = "blocked"
		out.Result = fmt.Sprintf("I did not come to an end within %d answers and %d tokens.", out.Rounds, out.Tokens)
	}
	if out.Result == "" {
		out.Status, out.Result = "blocked", "I have no result: the model "+r.Models[0]+" said nothing."
	}
	out.Score = score(out)
	out.Lesson = lesson(out)
	if err := a.ask("comment.create", map[string]string{"id": i.ID, "body": out.Result}, nil); err != nil {
		return out, err
	}
	if err := a.learn(i, out); err != nil {
		_ = wasmkitLog(a.ask, "warn", "what came of the issue could not be kept: "+err.Error())
	}
	return out, a.ask("issue.update", map[string]string{"id": i.ID, "status": out.Status}, nil)
}

// answerTokens is how much a model may say at once.
func (a *agent) answerTokens() int {
	if n, err := strconv.Atoi(a.env("AGENT_MAX_TOKENS")); err == nil && n > 0 {
		return n
	}
	return 1024
}

// model asks the models of a route one after the other. When the budget does not
// pay for one, the next is tried with half the words.
func (a *agent) model(r *Route, talk []Message, may []toolSpec) (m Message, used int, err error) {
	limit := a.answerTokens()
	for _, name := range r.Models {
		for range maxTries {
			var out struct {
				Choices []struct{ Message Message }
				Usage   struct {
					Total int `json:"total_tokens"`
				}
			}
			body := map[string]any{"model": name, "messages": talk, "max_tokens": limit}
			if len(may) > 0 {
				body["tools"] = may
			}
			err = a.ask("model.chat", body, &out)
			if err == nil && len(out.Choices) > 0 {
				if r.Models[0] != name { // it is the one that answers
					r.Models = append([]string{name}, without(r.Models, name)...)
				}
				m := out.Choices[0].Message
				m.Role = "assistant"
				return m, max(out.Usage.Total, tokens(m.Content)), nil
			}
			if err == nil {
				err = errors.New("the model " + name + " answered without words")
			}
			code := codeOf(err)
			if code == "BudgetExceeded" {
				r.Constrained, limit = true, max(limit/2, 256)
			}
			if code != "Unavailable" && code != "TooMany" { // asking again would not help
				break
			}
		}
	}
	return m, 0, err
}

func without(list []string, name string) (out []string) {
	for _, s := range list {
		if s != name {
			out = append(out, s)
		}
	}
	return out
}

// score weighs completion, efficiency, what came of tools, and whether the result
// is about the task.
func score(o Outcome) float64 {
	completion := map[string]float64{"done": 1, "in_review": 0.8, "blocked": 0.3}[o.Status]
	efficiency := min(1, tokenBudget/float64(max(o.Tokens, 1)))
	accuracy := 1.0
	if o.Tools > 0 {
		accuracy = 1 - float64(o.Failed)/float64(o.Tools)
	}
	coherence, text := 1.0, strings.ToLower(o.Result)
	if n := len(o.Profile.Keywords); n > 0 {
		hits := 0
		for _, k := range o.Profile.Keywords {
			if strings.Contains(text, k) {
				hits++
			}
		}
		coherence = min(1, 2*float64(hits)/float64(n))
	}
	return 0.4*completion + 0.2*efficiency + 0.2*accuracy + 0.2*coherence
}

// lesson is what the agent tells itself for the next time, "" when all went well.
func lesson(o Outcome) string {
	if o.Score >= poorScore {
		return ""
	}
	switch {
	case o.Failed*2 > o.Tools && o.Tools > 0:
		return "Most calls of tools failed: read what they answer before calling again."
	case o.Rounds >= maxRounds || o.Tokens >= maxConversation:
		return "The work did not come to an end: take fewer steps and finish with what there is."
	case o.Status == "blocked":
		return "Work of the kind " + o.Profile.Type + " was blocked: " + cut(o.Result, 60)
	}
	return "The result was weak or dear: answer what was asked, in fewer words."
}
