// Package wasmkit is what a Go program needs to be an agent of the wasm adapter:
// the two functions of the host, and the requests that the example makes with
// them. Build with GOOS=wasip1 GOARCH=wasm; see docs/sandbox-abi.md.
package wasmkit

import (
	"encoding/json"
	"fmt"
)

// An Error is the host's no: {"code", "message"}.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Call asks the host. in is sent as JSON, what comes back is decoded into out;
// either may be nil. An error of the host is an *Error.
func Call(method string, in, out any) error {
	request := []byte("{}")
	if in != nil {
		var err error
		if request, err = json.Marshal(in); err != nil {
			return err
		}
	}
	answer, err := exchange(method, request)
	if err != nil {
		return err
	}
	var e struct {
		OK    json.RawMessage `json:"ok"`
		Error *Error          `json:"error"`
	}
	if err := json.Unmarshal(answer, &e); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if e.Error != nil {
		return fmt.Errorf("%s: %w", method, e.Error)
	}
	if out == nil || len(e.OK) == 0 {
		return nil
	}
	return json.Unmarshal(e.OK, out)
}

// A Run is which run of which agent this is, and why.
type Run struct {
	AgentID    string `json:"agentId"`
	AgentName  string `json:"agentName"`
	CompanyID  string `json:"companyId"`
	RunID      string `json:"runId"`
	TaskID     string `json:"taskId"` // the issue that it was woken for, or ""
	WakeReason string `json:"wakeReason"`
	Memories   string `json:"memories"` // what the company remembers about the issue, quoted
}

// An Issue is the part of an issue that the example looks at.
type Issue struct {
	ID         string `json:"id"`
	Identifier string `json:"identifier"`
	Title      string `json:"title"`
	Status     string `json:"status"`
}

// Context tells which run this is.
func Context() (r Run, err error) { return r, Call("run.context", nil, &r) }

// Log writes a line into the run's log. Level is debug, info, warn or error.
func Log(level, message string) error {
	return Call("log", map[string]string{"level": level, "message": message}, nil)
}

// Mine lists the agent's issues in the given statuses (comma separated).
func Mine(agent, statuses string) (list []Issue, err error) {
	return list, Call("issue.list", map[string]string{"assigneeAgentId": agent, "status": statuses}, &list)
}

// CheckOut claims an issue for this run. Code Conflict means that another has it.
func CheckOut(issue string) error { return Call("issue.checkout", map[string]string{"id": issue}, nil) }

// Comment adds a comment to an issue.
func Comment(issue, body string) error {
	return Call("comment.create", map[string]string{"id": issue, "body": body}, nil)
}

// SetStatus moves an issue.
func SetStatus(issue, status string) error {
	return Call("issue.update", map[string]string{"id": issue, "status": status}, nil)
}
