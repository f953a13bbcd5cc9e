package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A tool as models are told of it.
type toolSpec struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func spec(name, about, parameters string) (t toolSpec) {
	t.Type = "function"
	t.Function.Name, t.Function.Description, t.Function.Parameters = name, about, json.RawMessage(parameters)
	return t
}

const statuses = `"status":{"type":"string","enum":["todo","in_progress","in_review","blocked","done"]}`

// tools are what the agent can do; each is requests to the API with its rights.
var tools = []toolSpec{
	spec("finish", "End the work on this issue: post the result as a comment and set the status.",
		`{"type":"object","properties":{"result":{"type":"string"},"status":{"type":"string","enum":["done","in_review","blocked"]}},"required":["result","status"]}`),
	spec("comment", "Post a comment on an issue.", `{"type":"object","properties":{"issue":{"type":"string","description":"ID; this issue unless given"},"body":{"type":"string"}},"required":["body"]}`),
	spec("read_issue", "Read an issue and its comments.", `{"type":"object","properties":{"issue":{"type":"string"}},"required":["issue"]}`),
	spec("list_issues", "List issues of the company.", `{"type":"object","properties":{"q":{"type":"string"},`+statuses+`}}`),
	spec("create_issue", "Make an issue below this one, for yourself or another agent.",
		`{"type":"object","properties":{"title":{"type":"string"},"description":{"type":"string"},"agent":{"type":"string","description":"ID of who shall do it"}},"required":["title"]}`),
	spec("remember", "Keep a fact for your later work, under a short key of letters, digits, dots and dashes.",
		`{"type":"object","properties":{"key":{"type":"string"},"text":{"type":"string"}},"required":["key","text"]}`),
	spec("recall", "Look for what you kept, and for earlier work, by what it is about.", `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`),
	spec("message", "Leave a message for another agent, which reads it when it works next.",
		`{"type":"object","properties":{"agent":{"type":"string","description":"ID"},"text":{"type":"string"}},"required":["agent","text"]}`),
	spec("list_agents", "List the agents of the company.", `{"type":"object","properties":{}}`),
}

// offered are the tools that a task may be worked on with: all, unless every skill
// that fits it says which it needs.
func offered(skills []Skill, p Profile) []toolSpec {
	names := []string{"finish"}
	for _, s := range skills {
		if s.Disabled || s.fits(p) == 0 {
			continue
		}
		if len(s.AllowedTools) == 0 {
			return tools
		}
		names = append(names, s.AllowedTools...)
	}
	if len(names) == 1 {
		return tools
	}
	var out []toolSpec
	for _, t := range tools {
		if slices.Contains(names, t.Function.Name) {
			out = append(out, t)
		}
	}
	return out
}

// named are those of may that a list has: all where it is empty, none of "none".
func named(may []toolSpec, list string) (out []toolSpec) {
	if list == "" {
		return may
	}
	names := strings.Split(strings.ReplaceAll(list, " ", ""), ",")
	for _, t := range may {
		if slices.Contains(names, t.Function.Name) {
			out = append(out, t)
		}
	}
	return out
}

// tool carries out what a model asked for.
func (a *agent) tool(i Issue, c ToolCall, may []toolSpec, out *Outcome) (answer string, finished bool, err error) {
	if !slices.ContainsFunc(may, func(t toolSpec) bool { return t.Function.Name == c.Function.Name }) {
		return "", false, fmt.Errorf("there is no tool %q", c.Function.Name)
	}
	var in struct{ Result, Status, Issue, Body, Q, Title, Description, Agent, Key, Text string }
	if err := json.Unmarshal([]byte(c.Function.Arguments), &in); err != nil && c.Function.Arguments != "" {
		return "", false, errors.New("the arguments are not a JSON object")
	}
	if in.Issue == "" {
		in.Issue = i.ID
	}
	var got json.RawMessage
	switch c.Function.Name {
	case "finish":
		if in.Status != "done" && in.Status != "in_review" && in.Status != "blocked" || in.Result == "" {
			return "", false, errors.New("finish wants a result, and the status done, in_review or blocked")
		}
		out.Result, out.Status = in.Result, in.Status
		return "{}", true, nil
	case "comment":
		err = a.ask("comment.create", map[string]string{"id": in.Issue, "body": in.Body}, &got)
	case "read_issue":
		var issue Issue
		var comments []Comment
		if err = a.ask("issue.get", map[string]string{"id": in.Issue}, &issue); err == nil {
			err = a.ask("comment.list", map[string]any{"id": in.Issue, "limit": maxComments}, &comments)
		}
		return compact(map[string]any{"issue": issue, "comments": comments}), false, err
	case "list_issues":
		var list []Issue
		q := map[string]string{}
		for k, v := range map[string]string{"q": in.Q, "status": in.Status} {
			if v != "" {
				q[k] = v
			}
		}
		err = a.ask("issue.list", q, &list)
		return compact(list[:min(len(list), maxComments)]), false, err
	case "create_issue":
		body := map[string]any{"title": in.Title, "description": in.Description, "parentId": i.ID, "status": "todo"}
		if in.Agent != "" {
			body["assigneeAgentId"] = in.Agent
		}
		var made Issue
		err = a.ask("issue.create", body, &made)
		return compact(made), false, err
	case "remember":
		if strings.HasPrefix(in.Key, vectorKey) || strings.HasPrefix(in.Key, doneKey) {
			return "", false, errors.New("keys that begin with " + vectorKey + " or " + doneKey + " are not for facts")
		}
		return "{}", false, a.put(in.Key, in.Text)
	case "recall":
		return compact(a.recall(in.Q)), false, nil
	case "message":
		err = a.ask("ipc.send", map[string]any{"to": in.Agent, "type": "note", "payload": map[string]string{"text": in.Text}}, &got)
	case "list_agents":
		var list []struct {
			ID   string `json:"id"`
			Name string `json:"name"`
			Role string `json:"role"`
		}
		err = a.ask("api", map[string]string{"method": "GET", "path": "/api/companies/" + a.me.CompanyID + "/agents"}, &list)
		return compact(list), false, err
	}
	return string(got), false, err
}
