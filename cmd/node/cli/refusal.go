package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/api/client"
)

// Refused is a refusal by the API.
type Refused struct {
	text    string // for people: what is wrong, where, and what to do next
	Status  int    // HTTP status
	Details json.RawMessage
}

// Error returns what is wrong, where, and what to do next.
func (r *Refused) Error() string { return r.text }

func refusedBy(e *client.Error) error {
	r := &Refused{text: fmt.Sprintf("%s (HTTP %d)", e.Message, e.Status), Status: e.Status, Details: e.Details}
	if e.Status == http.StatusUnauthorized || e.Message == "Board access required" {
		r.text += ": sign in with selvage auth login, or set SELVAGE_API_KEY"
		return r
	}
	switch e.Code {
	case "no_quorum":
		return r
	case "outcome_unknown": // the command chose the key itself
		r.text = strings.Replace(r.text, "; repeat it with the same Idempotency-Key, or look",
			"; look before you do it again", 1)
		return r
	}
	details, stays := notCarriedOut(e.Details)
	if text := invalid(details); text != "" {
		r.text += ": " + text
	} else if text := InPairs(details); text != "" {
		r.text += ": " + text
	}
	r.text += stays
	if next, ok := NextSteps[e.Message]; ok {
		r.text += "; " + next
	} else if what, ok := strings.CutSuffix(e.Message, " not found"); ok && ShownBy[what] != "" {
		r.text += ": see selvage " + ShownBy[what]
	}
	return r
}

// NextSteps maps the sentence of a refusal to what to do next.
var NextSteps = map[string]string{
	"Issue checkout conflict": "selvage issue show ISSUE tells who has it, selvage issue move " +
		"ISSUE todo opens one that is over",
	"Document is locked": "selvage issue unlock ISSUE DOCUMENT opens it",
	"Agent is not invokable in its current state": "selvage agent resume AGENT lets a paused one work, selvage agent " +
		"clear-error AGENT one in error",
}

// ShownBy maps what the API did not find to the command that lists what exists.
var ShownBy = map[string]string{
	"Agent": "agent list", "Annotation thread": "issue remark list ISSUE DOCUMENT", "Approval": "approval list",
	"Attachment": "issue attachments ISSUE", "Board API key": "key board list", "Budget incident": "budget incidents",
	"Comment": "issue comments ISSUE", "Company": "company list", "Document": "issue doc list ISSUE",
	"Document revision": "issue doc revisions ISSUE KEY", "Environment": "environment list",
	"Environment lease":   "environment leases ENVIRONMENT",
	"Execution workspace": "workspace list", "Feedback trace": "feedback list", "Folder": "folder list KIND",
	"Goal": "goal list", "Instructions file": "agent instructions list AGENT", "Interaction": "issue interactions ISSUE",
	"Invite": "member invites",
	"Issue":  "issue list", "Issue tree hold": "issue hold list ISSUE", "Join request": "member requests",
	"Key": "agent keys AGENT", "Label": "label list", "Member": "member list", "Memory": "agent memory list AGENT",
	"Memory record": "memory search WORDS", "Model price": "model price list",
	"Model provider": "model provider list", "Node": "members", "Project": "project list",
	"Project workspace": "project workspace list PROJECT", "Reservation": "budget held list",
	"Revision": "agent revisions AGENT", "Routine": "routine list",
	"Routine revision": "routine revisions ROUTINE", "Routine trigger": "routine show ROUTINE", "Run": "run list",
	"Secret": "secret list", "Skill": "skill list", "Skill file": "skill file list SKILL",
	"Skill version": "skill versions SKILL",
	"Test input":    "skill test inputs SKILL", "Test run": "skill test list SKILL", "Tool": "tool list",
	"User":         "user list",
	"Work product": "issue product list ISSUE", "Workspace operation": "workspace operations WORKSPACE",
}

// notCarriedOut returns the details of the refusal of an approved command without the approval, which is long and holds
// the whole command, and says which approval stays open and what to do with it. Other details it returns as they are.
func notCarriedOut(details json.RawMessage) (rest json.RawMessage, stays string) {
	var d struct {
		Approval struct {
			ID      string `json:"id"`
			Type    string `json:"type"`
			Status  string `json:"status"`
			Payload struct {
				Action string `json:"action"`
			} `json:"payload"`
		} `json:"approval"`
		Details json.RawMessage `json:"details"`
	}
	if json.Unmarshal(details, &d) != nil || d.Approval.ID == "" || d.Approval.Type == "" {
		return details, ""
	}
	a := d.Approval
	what := a.Type
	if a.Payload.Action != "" {
		what += " " + Visible(a.Payload.Action)
	}
	return d.Details, fmt.Sprintf("; nothing was carried out, and approval %s (%s) stays %s: approve it again once this "+
		"no longer holds, or end it with selvage approval reject %s", a.ID, what, inStatus(a.Status), a.ID)
}

func inStatus(s string) string { return strings.ReplaceAll(s, "_", " ") }

// invalid formats the details of a refused body for people: each member and what is
// wrong with it. It returns "" for other details.
func invalid(details json.RawMessage) string {
	var list []struct {
		Path    []any  `json:"path"`
		Message string `json:"message"`
	}
	if json.Unmarshal(details, &list) != nil {
		return ""
	}
	var all []string
	for _, d := range list {
		if d.Message == "" {
			return ""
		}
		all = append(all, strings.TrimPrefix(strings.Join(strings.Fields(strings.Trim(fmt.Sprint(d.Path), "[]")),
			".")+": "+d.Message, ": "))
	}
	return strings.Join(all, "; ")
}

// InPairs formats details that are an object for people: "allowed statuses todo,
// backlog; status done". It returns "" if there is nothing to show.
func InPairs(details json.RawMessage) string {
	var o map[string]any
	if len(details) == 0 || string(details) == "null" {
		return ""
	}
	if json.Unmarshal(details, &o) != nil {
		return string(details)
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(o)) {
		var text string
		switch v := o[name].(type) {
		case nil:
			continue
		case bool:
			if !v {
				continue
			}
		case string:
			text = v
		case float64:
			text = strconv.FormatFloat(v, 'f', -1, 64)
		case []any:
			words := make([]string, 0, len(v))
			for _, one := range v {
				word, ok := one.(string)
				if !ok {
					b, _ := json.Marshal(one)
					word = string(b)
				}
				words = append(words, word)
			}
			text = strings.Join(words, ", ")
		default:
			b, _ := json.Marshal(v)
			text = string(b)
		}
		all = append(all, strings.TrimSpace(inWordsOf(strings.TrimSuffix(name, "Id"))+" "+text))
	}
	return strings.Join(all, "; ")
}

// inWordsOf writes the name of a member as words: requestedStatus as requested status.
func inWordsOf(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

var asJSON = regexp.MustCompile(`^(-o=?|--output=)json$`)

// WantsJSON reports whether a command line selects JSON, even if it could not be parsed
// completely.
func WantsJSON(c *CLI, args []string) bool {
	if c.Output == "json" {
		return true
	}
	for n, arg := range args {
		if arg == "--" {
			return false
		}
		if asJSON.MatchString(arg) || n > 0 && arg == "json" && (args[n-1] == "-o" || args[n-1] == "--output") {
			return true
		}
	}
	return false
}

// Report prints an error, for people or as one JSON object, and returns the exit status.
func Report(talk io.Writer, cmd *cobra.Command, asJSON bool, err error) int {
	if no, ok := errors.AsType[*client.Error](err); ok {
		err = refusedBy(no)
	}
	_, wrong := errors.AsType[misuse](err)
	status := ExitFailed
	if wrong {
		status = ExitMisused
	}
	if asJSON {
		told := struct {
			Error   string          `json:"error"`
			Status  int             `json:"status,omitempty"` // HTTP status, if the API has answered
			Details json.RawMessage `json:"details,omitempty"`
			Usage   string          `json:"usage,omitempty"` // for a misuse
		}{Error: err.Error()}
		if r, ok := errors.AsType[*Refused](err); ok {
			if told.Status = r.Status; string(r.Details) != "null" {
				told.Details = r.Details
			}
		}
		if wrong {
			told.Usage = cmd.UseLine()
		}
		enc := json.NewEncoder(talk)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		_ = enc.Encode(told)
		return status
	}
	fmt.Fprintln(talk, "selvage:", err)
	if wrong {
		fmt.Fprintf(talk, "Run '%s --help' for usage.\n", cmd.CommandPath())
	}
	return status
}
