package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// nounRows describes a noun, the object that an argument names, such as AGENT in "agent
// show AGENT": where its rows are and how people name them.
type nounRows struct {
	Path  string   // paths of the lists; placeholders as in a verb, filled with the arguments before this one
	rows  string   // member of the answer that holds the list; "": the answer is the list
	id    string   // member that the API expects; "": id
	names []string // members by which people name a row, besides its ID
	about string   // member that distinguishes the rows
	list  string   // command that lists them; "": selvage NOUN list
	past  string   // status of rows that match only if no other row does
	loose bool     // a value that no row has is sent to the API unchanged
}

// nouns are keyed by the name of the argument in lower case: "agent" for AGENT. A name
// that applies to one group only has the group as a prefix.
var nouns = map[string]nounRows{
	"agent":    {Path: "/api/companies/{company}/agents", names: []string{"name"}, about: "role"},
	"app":      {Path: "/api/companies/{company}/apps", names: []string{"name"}, about: "version", list: "app ls"},
	"approval": {Path: "/api/companies/{company}/approvals?limit=1000", about: "type"},
	"company":  {Path: "/api/companies", names: []string{"issuePrefix", "name"}, about: "name"},
	"definition": {Path: "/api/companies/{company}/user-secret-definitions", names: []string{"key"}, about: "name",
		list: "secret wanted list"},
	"dismissal": {Path: "/api/companies/{company}/attention?includeDismissed=true", rows: "items",
		id: "dismissalKey", names: []string{"relatedIssue.identifier", "subject.title"}, about: "subject.title",
		loose: true},
	"environment": {Path: "/api/companies/{company}/environments", names: []string{"name"}, about: "driver"},
	"folder": {Path: "/api/companies/{company}/folders?kind=skill /api/companies/{company}/folders?kind=routine",
		rows: "folders", names: []string{"name", "slug"}, about: "kind", list: "folder list KIND"},
	"goal":  {Path: "/api/companies/{company}/goals", names: []string{"title"}, about: "level"},
	"label": {Path: "/api/companies/{company}/labels", names: []string{"name"}, about: "color"},
	"member": {Path: "/api/companies/{company}/members", rows: "members",
		names: []string{"user.email", "user.name", "principalId"}, about: "membershipRole"},
	"mine": {Path: "/api/companies/{company}/me/user-secrets", names: []string{"key"}, about: "status",
		list: "secret mine list"},
	"node": {Path: "/api/v1/mesh/members", names: []string{"name"}, about: "status", list: "members",
		past: "revoked"},
	"process": {Path: "/api/v1/processes", id: "address", names: []string{"name"}, about: "state", list: "ps",
		loose: true},
	"project": {Path: "/api/companies/{company}/projects", names: []string{"name"}, about: "status"},
	"routine": {Path: "/api/companies/{company}/routines", names: []string{"title"}, about: "status"},
	"run":     {Path: "/api/companies/{company}/heartbeat-runs?limit=1000", about: "status"},
	"secret":  {Path: "/api/companies/{company}/secrets", names: []string{"key", "name"}, about: "status"},
	"user":    {Path: "/api/admin/users", names: []string{"email", "name"}, about: "name"},
	"workspace": {Path: "/api/companies/{company}/execution-workspaces?limit=1000", names: []string{"name"},
		about: "status"},
}

var placeholder = regexp.MustCompile(`\{([a-z]+)(?::([0-9]))?\}|\{([0-9])\}`)

// Filled replaces the placeholders of a path.
func (c *CLI) Filled(cmd *cobra.Command, path string, args []string) (string, error) {
	var failed error
	out := placeholder.ReplaceAllStringFunc(path, func(m string) string {
		parts := placeholder.FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[2] + parts[3])
		if parts[1] == "company" && (n == 0 || n > len(args)) {
			id, err := c.CompanyID(cmd)
			if err != nil {
				failed = err
			}
			return id
		}
		if n > len(args) {
			return ""
		}
		if args[n-1] == "" {
			failed = Misuse(errors.New("an argument is empty: " + cmd.UseLine()))
			return ""
		}
		id, err := args[n-1], error(nil)
		if parts[1] != "" {
			id, err = c.Resolve(cmd, parts[1], id)
		} else {
			id, err = c.resolveListed(cmd, args, n)
		}
		if err != nil {
			failed = err
		}
		return strings.ReplaceAll(url.QueryEscape(id), "+", "%20") // for paths and queries
	})
	return strings.TrimSuffix(out, "/"), failed
}

// Resolve returns the ID of a row named by ID, name, or a unique prefix of the ID.
func (c *CLI) Resolve(cmd *cobra.Command, noun, ref string) (string, error) {
	n, ok := nouns[noun]
	if !ok || len(ref) == UUIDLen { // issues: the API accepts identifiers in paths
		return ref, nil
	}
	rows, err := c.allRows(cmd, n, nil)
	if err != nil {
		return "", err
	}
	found, err := n.find(noun, ref, rows)
	c.named = n.called(found, rows)
	if found == "" && err == nil && n.loose {
		return ref, nil
	} else if found == "" && err == nil {
		err = fmt.Errorf("no %s %q: see selvage %s", noun, ref, n.shown(noun))
	}
	return found, err
}

// resolveListed returns the ID of the row that the n-th argument names below the
// arguments before it, such as a comment of an issue. A value that no list has is sent
// to the API unchanged.
func (c *CLI) resolveListed(cmd *cobra.Command, args []string, n int) (string, error) {
	ref, words := args[n-1], Arguments(cmd.Use)
	if len(ref) == UUIDLen || n > len(words) {
		return ref, nil
	}
	if n > 1 && args[0] == "-" && strings.HasPrefix(strings.Fields(cmd.Use)[1], "[") {
		return "", Misuse(fmt.Errorf("%q is no whole ID: name the %s that it belongs to before it: %s", ref, words[0],
			cmd.UseLine()))
	}
	rows, ok := Of(listed, cmd, words[n-1])
	if !ok || rows.id != "" { // the API accepts it unchanged
		return ref, nil
	}
	for _, m := range placeholder.FindAllStringSubmatch(rows.Path, -1) {
		if place, _ := strconv.Atoi(m[2] + m[3]); place >= n {
			return ref, nil // the object above it was not given
		}
	}
	list, err := c.allRows(cmd, rows, args[:n-1])
	if err != nil {
		return ref, nil
	}
	found, err := rows.find(words[n-1], ref, list)
	return cmp.Or(found, ref), err
}

// Whole inserts "-" for an omitted optional first argument ("[ISSUE] ATTACHMENT"). The
// next argument must then be a complete ID.
func Whole(use string, args []string) []string {
	words := strings.Fields(use)[1:]
	if len(words) > 1 && strings.HasPrefix(words[0], "[") && !strings.HasPrefix(words[1], "[") &&
		len(args) < len(Arguments(use)) {
		return append([]string{"-"}, args...)
	}
	return args
}

// find returns the ID of the row that ref names, or whose ID begins with ref; "" if
// there is none.
func (n nounRows) find(noun, ref string, rows []any) (string, error) {
	if n.past != "" {
		var now, past []any
		for _, r := range rows {
			if member(r, "status") == n.past {
				past = append(past, r)
			} else {
				now = append(now, r)
			}
		}
		n.past = ""
		if found, err := n.find(noun, ref, now); found != "" || err != nil {
			return found, err
		}
		rows = past
	}
	var named, begun []string
	for _, r := range rows {
		id := member(r, cmp.Or(n.id, "id"))
		for _, name := range n.names {
			if ref != "" && strings.EqualFold(member(r, name), ref) {
				named = append(named, id)
				break
			}
		}
		if ref != "" && strings.HasPrefix(id, ref) {
			begun = append(begun, id)
		}
	}
	if len(named) == 0 {
		named = begun
	}
	switch len(named) {
	case 0:
		return "", nil
	case 1:
		return named[0], nil
	}
	return "", Misuse(fmt.Errorf("more than one %s matches %q: give more of the ID, which is one of %s", noun, ref,
		strings.Join(named[:min(len(named), maxNamed)], ", ")))
}

// called returns the name of the row with an ID, "" if there is none.
func (n nounRows) called(id string, rows []any) string {
	var names []string
	for _, r := range rows {
		if id != "" && member(r, cmp.Or(n.id, "id")) == id {
			for _, name := range n.names {
				if text := member(r, name); text != "-" && !slices.Contains(names, text) {
					names = append(names, text)
				}
			}
		}
	}
	return strings.Join(names, " ")
}

// allRows returns the rows of a noun below the arguments before it.
func (c *CLI) allRows(cmd *cobra.Command, n nounRows, args []string) (all []any, err error) {
	for at := range strings.FieldsSeq(n.Path) {
		path, err := c.Filled(cmd, at, args)
		if err != nil {
			return nil, err
		}
		rows, err := c.rowsOf(cmd, path, n.rows)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

// rowsOf returns the rows of a list, which is the member rows of the answer, or the
// answer if rows is "".
func (c *CLI) rowsOf(cmd *cobra.Command, path, rows string) ([]any, error) {
	var answer any
	if err := c.Call(cmd.Context(), "GET", path, nil, &answer); err != nil {
		return nil, err
	}
	if o, ok := answer.(map[string]any); ok && rows != "" {
		answer = o[rows]
	}
	list, _ := answer.([]any)
	return list, nil
}

// shown returns the command that lists the rows.
func (n nounRows) shown(noun string) string {
	if n.list != "" {
		return n.list
	}
	return noun + " list"
}

// maxNamed bounds the matching rows that a refusal names.
const maxNamed = 5

// AgentID returns the ID of the agent that ref names.
func (c *CLI) AgentID(cmd *cobra.Command, ref string) (string, error) {
	return c.Resolve(cmd, "agent", ref)
}

// RunID returns the ID of the run whose ID begins with ref.
func (c *CLI) RunID(cmd *cobra.Command, ref string) (string, error) {
	return c.Resolve(cmd, "run", ref)
}

var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*-[0-9]+$`)

// EntityID returns the ID for a filter of the log; an issue may be given by its
// identifier.
func (c *CLI) EntityID(cmd *cobra.Command, ref string) (string, error) {
	if !identifier.MatchString(ref) {
		return ref, nil
	}
	return c.IssueID(cmd, ref)
}

// IssueID returns the UUID of an issue given by its identifier, for members of bodies.
func (c *CLI) IssueID(cmd *cobra.Command, ref string) (string, error) {
	if ref == "" || len(ref) == UUIDLen {
		return ref, nil
	}
	var row struct{ ID string }
	err := c.Call(cmd.Context(), "GET", "/api/issues/"+url.PathEscape(ref), nil, &row)
	return row.ID, err
}
