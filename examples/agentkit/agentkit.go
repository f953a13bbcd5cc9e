// Package agentkit is the little that the example agents share: the HTTP API
// with the run's own token, taken from the environment that the process
// adapter gives every run. Nothing in it is special to Selvage's source: an
// agent in any language needs no more than an HTTP client.
package agentkit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 8 << 20

// An Agent is a run's view of the API.
type Agent struct {
	ID      string // the agent's UUID
	Company string // its company's UUID
	Run     string // the heartbeat run this process is
	Task    string // the issue it was woken for, or ""
	Reason  string // why it was woken
	base    string
	token   string
	http    http.Client
}

// An Issue is the part of an issue that the examples look at.
type Issue struct {
	ID              string  `json:"id"`
	Identifier      string  `json:"identifier"`
	Title           string  `json:"title"`
	Description     string  `json:"description"`
	Status          string  `json:"status"`
	AssigneeAgentID *string `json:"assigneeAgentId"`
	ParentID        *string `json:"parentId"`
}

// A Refused is an answer of the API that is not 2xx.
type Refused struct {
	Status int
	Body   string
}

func (e *Refused) Error() string { return fmt.Sprintf("HTTP %d: %s", e.Status, e.Body) }

// FromEnv reads the run's environment.
func FromEnv() (*Agent, error) {
	a := &Agent{
		ID:      os.Getenv("PAPERCLIP_AGENT_ID"),
		Company: os.Getenv("PAPERCLIP_COMPANY_ID"),
		Run:     os.Getenv("PAPERCLIP_RUN_ID"),
		Task:    os.Getenv("PAPERCLIP_TASK_ID"),
		Reason:  os.Getenv("PAPERCLIP_WAKE_REASON"),
		base:    os.Getenv("PAPERCLIP_API_URL"),
		token:   os.Getenv("PAPERCLIP_API_KEY"),
		http:    http.Client{Timeout: 30 * time.Second},
	}
	if a.ID == "" || a.Company == "" || a.Run == "" || a.base == "" || a.token == "" {
		return nil, errors.New("this program is an agent: it is started by a run, with PAPERCLIP_* in its environment")
	}
	return a, nil
}

// Call sends in as JSON and decodes the answer into out; either may be nil. A
// 503 or a refused connection is tried again for half a minute, under the same
// Idempotency-Key, so that a retry never acts twice.
func (a *Agent) Call(method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	key := fmt.Sprintf("%s-%d", a.Run, time.Now().UnixNano())
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		err = a.once(method, path, key, body, out)
		var refused *Refused
		if err == nil || errors.As(err, &refused) && refused.Status != http.StatusServiceUnavailable {
			return err
		}
	}
	return err
}

func (a *Agent) once(method, path, key string, body []byte, out any) error {
	req, err := http.NewRequest(method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	req.Header.Set("X-Paperclip-Run-Id", a.Run)
	if method == http.MethodPost {
		req.Header.Set("Idempotency-Key", key)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := a.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return &Refused{res.StatusCode, string(b)}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

// Mine lists the issues assigned to this agent in the given statuses (comma separated).
func (a *Agent) Mine(statuses string) (list []Issue, err error) {
	return list, a.Call("GET", "/api/companies/"+a.Company+"/issues?assigneeAgentId="+a.ID+"&status="+statuses, nil, &list)
}

// CheckOut claims an issue for this run. A conflict means that another agent
// has it: leave it alone.
func (a *Agent) CheckOut(id string) error {
	return a.Call("POST", "/api/issues/"+id+"/checkout", map[string]any{
		"agentId":          a.ID,
		"expectedStatuses": []string{"todo", "backlog", "blocked", "in_review", "in_progress"},
	}, nil)
}

// Comment adds a comment to an issue.
func (a *Agent) Comment(id, body string) error {
	return a.Call("POST", "/api/issues/"+id+"/comments", map[string]any{"body": body}, nil)
}

// SetStatus moves an issue.
func (a *Agent) SetStatus(id, status string) error {
	return a.Call("PATCH", "/api/issues/"+id, map[string]any{"status": status}, nil)
}

// ReportCost reports what working on an issue cost. The examples use no model:
// they report compute, a cent for each begun second, so that the books have
// something true in them.
func (a *Agent) ReportCost(issue string, spent time.Duration) error {
	return a.Call("POST", "/api/companies/"+a.Company+"/cost-events", map[string]any{
		"agentId": a.ID, "issueId": issue, "heartbeatRunId": a.Run,
		"provider": "local", "model": cmp.Or(os.Getenv("COST_MODEL"), "compute"),
		"inputTokens": 0, "outputTokens": 0,
		"costCents":  int64(spent/time.Second) + 1,
		"occurredAt": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
	}, nil)
}
