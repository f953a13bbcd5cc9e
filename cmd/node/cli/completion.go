package cli

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/selvage-mesh/selvage/company/portable"
)

// completeTimeout bounds how long a shell waits for names.
const completeTimeout = 3 * time.Second

// listed are nouns that only completion needs: the API accepts these arguments
// unchanged, or they are below another argument.
var listed = map[string]nounRows{
	"adapter type":   {Path: "/api/adapters", id: "type", about: "label"},
	"agent key":      {Path: "/api/agents/{agent:1}/keys", names: []string{"name"}, about: "revokedAt"},
	"agent revision": {Path: "/api/agents/{agent:1}/config-revisions", about: "createdAt"},
	"attachment": {Path: "/api/issues/{1}/attachments", names: []string{"originalFilename"},
		about: "originalFilename"},
	"blocker": {Path: "/api/companies/{company}/issues?sortField=updated&limit=200", id: "identifier",
		about: "title"},
	"code":              {Path: "/api/v1/mesh/requests", id: "code", about: "name"},
	"comment":           {Path: "/api/issues/{1}/comments", about: "body"},
	"doc key":           {Path: "/api/issues/{1}/documents", id: "key", about: "title"},
	"doc revision":      {Path: "/api/issues/{1}/documents/{2}/revisions", about: "createdAt"},
	"document":          {Path: "/api/issues/{1}/documents", id: "key", about: "title"},
	"folder parent":     nouns["folder"],
	"held id":           {Path: "/api/companies/{company}/budgets/reservations", about: "status"},
	"hold":              {Path: "/api/issues/{1}/tree-holds", about: "mode"},
	"inbox key":         nouns["dismissal"],
	"incident":          {Path: "/api/companies/{company}/budget-incidents", about: "scopeName"},
	"input":             {Path: "/api/companies/{company}/skills/{1}/test-inputs", names: []string{"name"}},
	"instructions file": {Path: "/api/agents/{agent:1}/instructions-bundle", rows: "files", id: "path"},
	"interaction":       {Path: "/api/issues/{1}/interactions", about: "kind"},
	"invite":            {Path: "/api/companies/{company}/invites", rows: "invites", about: "state"},
	"issue": {Path: "/api/companies/{company}/issues?sortField=updated&limit=200", id: "identifier",
		about: "title"},
	"key board id": {Path: "/api/board-api-keys", names: []string{"name"}},
	"member user": {Path: "/api/companies/{company}/members", rows: "members", id: "principalId",
		about: "user.name"},
	"memory key":        {Path: "/api/agents/{agent:1}/memory", id: "key"},
	"mine key":          {Path: "/api/companies/{company}/user-secret-definitions", id: "key", about: "name"},
	"product":           {Path: "/api/issues/{1}/work-products", names: []string{"title", "url"}, about: "title"},
	"project workspace": {Path: "/api/projects/{project:1}/workspaces", names: []string{"name"}, about: "sourceType"},
	"remark":            {Path: "/api/issues/{1}/documents/{2}/annotations", about: "selectedText"},
	"request":           {Path: "/api/companies/{company}/join-requests", about: "requestType"},
	"routine revision":  {Path: "/api/routines/{routine:1}/revisions", about: "createdAt"},
	"skill":             {Path: "/api/companies/{company}/skills", id: "slug", about: "description"},
	"skill comment":     {Path: "/api/companies/{company}/skills/{1}/comments", about: "body"},
	"skill file": {Path: "/api/companies/{company}/skills/{1}", rows: "fileInventory", id: "path",
		about: "kind"},
	"skill key": {Path: "/api/companies/{company}/skills", id: "key", about: "name"},
	"skill version": {Path: "/api/companies/{company}/skills/{1}/versions", names: []string{"label"},
		about: "createdAt"},
	"job":           {Path: "/api/v1/cron", rows: "jobs", id: "name", about: "cron"},
	"team":          {Path: "/api/teams/catalog", id: "slug", about: "description"},
	"test":          {Path: "/api/companies/{company}/skills/{1}/test-runs", about: "status"},
	"topic":         {Path: "/api/v1/topics", rows: "topics", id: "topic", about: "messages"},
	"topic pattern": {Path: "/api/v1/topics", rows: "topics", id: "topic", about: "messages"},
	"token-id":      {Path: "/api/v1/mesh/tokens"},
	"tool name":     {Path: "/api/companies/{company}/tools", id: "name", about: "description"},
	"what":          {Path: "/api/companies/{company}/agents", names: []string{"name"}, about: "role"},
	"trigger": {Path: "/api/routines/{routine:1}", rows: "triggers", names: []string{"label", "kind"},
		about: "kind"},
	"trace": {Path: "/api/companies/{company}/feedback-traces", id: "traceId", about: "vote"},
}

// Choices are the arguments with a few fixed values.
var Choices = map[string][]string{
	"approval type": {"hire_agent", "approve_ceo_strategy", "budget_override_required", "request_board_approval"},
	"decision":      {"continue", "dismissed_false_positive", "snooze"},
	"folder kind":   {"routine", "skill"},
	"issue kind": {"suggest_tasks", "ask_user_questions", "request_confirmation",
		"request_checkbox_confirmation", "request_item_verdicts"},
	"mode":         {"pause", "resume", "cancel", "restore"},
	"on":           {"true", "false"},
	"outcome":      {"restored", "false_positive", "blocked", "cancelled"},
	"product type": {"preview_url", "runtime_service", "pull_request", "branch", "commit", "artifact", "document"},
	"role":         {"owner", "admin", "operator", "viewer"},
	"status":       {"backlog", "todo", "in_progress", "in_review", "blocked", "done", "cancelled"},
	"verdict":      {"up", "down"},
}

// flagNouns maps flags to the nouns that they name.
var flagNouns = map[string]string{
	"agent": "agent", "assignee": "agent", "reports-to": "agent", "lead": "agent", "owner": "agent", "to": "agent",
	"company": "company", "project": "project", "goal": "goal",
	"issue": "issue", "parent": "issue", "below": "issue", "blocked-by": "issue", "label": "label", "run": "run",
	"node": "node", "secret": "secret", "environment": "environment",
	"adapter": "adapter type", "skill": "skill key", "user": "member user",
}

// Of finds the entry of a command's argument in table: the entry for its group, or the
// general one.
func Of[T any](table map[string]T, cmd *cobra.Command, word string) (found T, ok bool) {
	group := strings.TrimPrefix(strings.TrimPrefix(cmd.Parent().CommandPath(), "selvage"), " ")
	last := group[strings.LastIndexByte(group, ' ')+1:]
	if group == "project workspace" && word == "workspace" {
		last = "project"
	}
	if group == "skill file" {
		last = "skill"
	}
	for _, key := range []string{group + " " + word, last + " " + word, word} {
		if found, ok = table[key]; ok {
			return found, ok
		}
	}
	return found, false
}

// Arguments returns the arguments of a line of usage, in lower case.
func Arguments(use string) (words []string) {
	for _, word := range strings.Fields(use)[1:] {
		if word == "[--" {
			break
		}
		if !strings.HasPrefix(word, "-") && word != "[flags]" {
			words = append(words, strings.ToLower(strings.TrimSuffix(strings.Trim(word, "[]"), "...")))
		}
	}
	return words
}

var aFew = regexp.MustCompile(`^(?:[a-z_0-9]+, )*[a-z_0-9]+ or [a-z_0-9]+$`)

// fewOf returns the words that a sentence lists, such as "backlog or todo".
func fewOf(usage string) []string {
	if !aFew.MatchString(usage) {
		return nil
	}
	return strings.Split(strings.ReplaceAll(usage, " or ", ", "), ", ")
}

// Completes adds shell completion for the arguments and flags of a command.
func Completes(c *CLI, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		Completes(c, sub)
	}
	each := func(f *pflag.Flag) {
		if few := fewOf(f.Usage); few != nil {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(few, cobra.ShellCompDirectiveNoFileComp))
		} else if noun, ok := flagNouns[f.Name]; ok && f.Value.Type() != "bool" {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, func(cmd *cobra.Command, _ []string, typed string) ([]string,
				cobra.ShellCompDirective) {
				return c.offered(cmd, RowsFor(cmd, noun), nil, typed), cobra.ShellCompDirectiveNoFileComp
			})
		}
	}
	cmd.Flags().VisitAll(each)
	cmd.PersistentFlags().VisitAll(each)
	if cmd.HasSubCommands() || cmd.ValidArgs != nil || cmd.ValidArgsFunction != nil {
		return
	}
	words := Arguments(cmd.Use)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(words) && !strings.HasSuffix(strings.TrimRight(cmd.Use, "]"), "...") || len(words) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		word := words[min(len(args), len(words)-1)]
		if few, ok := Of(Choices, cmd, word); ok {
			return slices.DeleteFunc(slices.Clone(few), func(one string) bool { return !strings.HasPrefix(one, typed) }),
				cobra.ShellCompDirectiveNoFileComp
		}
		switch {
		case strings.Contains(word, "starter"):
			return portable.Starters(), cobra.ShellCompDirectiveDefault
		case strings.Contains(word, "|") && !strings.Contains(word, "file"):
			return strings.Split(word, "|"), cobra.ShellCompDirectiveNoFileComp
		}
		if rows := RowsFor(cmd, word); rows.Path != "" {
			return c.offered(cmd, rows, args, typed), cobra.ShellCompDirectiveNoFileComp
		}
		if IsFile(word) {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// IsFile reports whether an argument is a local file or folder.
func IsFile(word string) bool {
	return strings.HasPrefix(word, "file") || strings.HasPrefix(word, "@file") || word == "dir" || word == "from" ||
		word == "payload"
}

// RowsFor returns where the rows of an argument are; the path is empty if there are
// none.
func RowsFor(cmd *cobra.Command, word string) nounRows {
	if rows, ok := Of(listed, cmd, word); ok {
		return rows
	}
	return nouns[word]
}

// offered returns the names of rows that begin with typed, with descriptions. It returns
// nothing if the node does not answer, because a shell can not show errors.
func (c *CLI) offered(cmd *cobra.Command, n nounRows, args []string, typed string) (names []string) {
	ctx, cancel := context.WithTimeout(cmp.Or(cmd.Context(), context.Background()), completeTimeout)
	defer cancel()
	cmd.SetContext(ctx)
	rows, err := c.allRows(cmd, n, args)
	if err != nil {
		return nil
	}
	for _, r := range rows {
		name := member(r, cmp.Or(n.id, "id"))
		if len(n.names) > 0 {
			name = member(r, n.names[0])
		}
		if name == "-" || !strings.HasPrefix(strings.ToLower(name), strings.ToLower(typed)) {
			continue
		}
		if about := member(r, n.about); n.about != "" && about != "-" {
			name += "\t" + Cell(about)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// samples are the values of arguments in generated examples.
var samples = map[string]string{
	"agent": "Bob", "approval": "0199c0de", "attachment": "report.pdf", "biller": "acme", "blocker": "ACM-2",
	"cents": "5000", "code": "WXYZ-2345", "command": "build", "comment": idSample, "decision": "continue",
	"definition": "GITHUB_TOKEN", "document": "plan", "email": "ann@example.com", "environment": "forge",
	"folder": idSample, "from": "gas.md", "goal": "'Sell arms'", "group": "n1,n2", "hold": idSample,
	"host": "forge.example.com",
	"id":   idSample, "incident": idSample, "input": idSample, "interaction": idSample, "invite": idSample,
	"issue": "ACM-1", "json": `'{"text": "lunch"}'`, "key": "plan", "label": "bug", "lease": idSample,
	"member": "ann@example.com",
	"mode":   "pause", "model": "claude-sonnet-4-5", "name": "weld", "node": "n2", "on": "true",
	"operation": idSample, "outcome": "restored", "parent": idSample, "payload": "tasks.json", "product": idSample,
	"project": "Gripper",
	"remark":  idSample, "request": idSample, "revision": idSample, "role": "operator", "routine": "'Back up'",
	"run": "0199c0de", "secret": "open-key", "service": idSample, "skill": "weld", "status": "todo",
	"team": "software-studio",
	"test": idSample, "text": "'Which gas?'", "title": "'Weld it'", "token-id": idSample, "trace": idSample,
	"trigger": idSample, "url": "'https://192.0.2.1:3100/cli-auth/…'", "user": "ann@example.com", "verdict": "up",
	"version": "2",
	"when":    "2026-12-01T09:00:00Z", "words": "weld", "workspace": "0199c0de", "dir": "pack", "file": "plan.md",
	"file.wasm": "count.wasm", "type": "process", "kind": "routine", "auto|voter|observer": "observer",
	"cost kind": "platform_fee", "issue kind": "suggest_tasks", "approval type": "request_board_approval",
	"product type": "pull_request", "tool name": "count", "environment folder": "/srv/work",
	"environment user": "smith", "settings name": "enablePipelines",
	"agent name": "laptop", "secret name": "'GitHub'", "goal title": "'Sell arms'", "label name": "bug",
}

const idSample = "0199c0de-5f02-79a6-92bc-807bd79fee94"

// Examples adds an example to each command without one.
func Examples(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		Examples(sub)
	}
	if cmd.HasSubCommands() || cmd.Example != "" || cmd.Hidden {
		return
	}
	line := "  " + cmd.CommandPath()
	least, _ := Wanted(cmd.Use)
	for _, word := range least {
		if sample, ok := Of(samples, cmd, strings.ToLower(word)); ok {
			line += " " + sample
		} else {
			line += " " + word
		}
	}
	cmd.Example = line
}
