package cli

import (
	"cmp"
	"fmt"
	"strings"
)

// defaultPrompt is the prompt of an agent without a promptTemplate.
const defaultPrompt = "You are agent {{agent.id}} ({{agent.name}}) of company {{company.id}}, " +
	"and this is your run {{run.id}}.\n" +
	"Do the work that waits for you, and leave it in a state that others can see."

// manual explains how an agent finds and reports work. The skill named paperclip has more.
const manual = `
The company's API is at $PAPERCLIP_API_URL. Send the header "Authorization: Bearer $PAPERCLIP_API_KEY" with each
request, and "X-Paperclip-Run-Id: $PAPERCLIP_RUN_ID" with each that changes something. Never print the key.
- GET /api/agents/me says who you are, GET /api/agents/me/inbox-lite what is assigned to you.
- Before you work on an issue: POST /api/issues/ID/checkout
  {"agentId": "$PAPERCLIP_AGENT_ID", "expectedStatuses": ["todo", "in_progress"]}.
  A 409 means that somebody else has it: leave it alone.
- When you stop: PATCH /api/issues/ID
  {"status": "done" | "in_review" | "blocked", "comment": "what you did, or what is missing"}.
`

// prompt returns the tool's input: the agent's template with its placeholders replaced, the
// reason of the wake, and the context of the run.
func (r *Run) prompt() string {
	var b strings.Builder
	template := strings.TrimSpace(r.Options.Prompt)
	b.WriteString(r.Fill().Replace(cmp.Or(template, defaultPrompt)))
	b.WriteString("\n")
	c := r.Invocation.Run.Context
	if template == "" && r.Session == "" {
		b.WriteString(manual)
	}
	b.WriteString("\n## Why you were woken\n\n")
	fmt.Fprintf(&b, "- reason: %s\n", cmp.Or(c.WakeReason, string(r.Invocation.Run.Source)))
	for _, line := range []struct{ name, value string }{
		{"issue", cmp.Or(c.TaskID, c.IssueID)}, {"comment", c.CommentID}, {"approval", c.ApprovalID},
		{"approval is", c.ApprovalStatus},
		{"interaction", c.InteractionID}, {"project", c.ProjectID},
	} {
		if line.value != "" {
			fmt.Fprintf(&b, "- %s: %s\n", line.name, line.value)
		}
	}
	if c.CheckedOut {
		b.WriteString("- the issue is checked out for this run already\n")
	}
	if len(r.Wake) > 0 {
		fmt.Fprintf(&b, "\nThe whole context, as $PAPERCLIP_WAKE_PAYLOAD_JSON has it:\n\n%s\n", r.Wake)
	}
	if r.Invocation.Memories != "" {
		b.WriteString("\n" + r.Invocation.Memories)
	}
	return b.String()
}
