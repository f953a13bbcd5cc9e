package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// A Verb is a command that makes one request, as most commands do. A row of a table
// describes it, see verbs.go.
//
// In its path {company} is the company's ID and {1} the first argument; with a noun, as
// in {agent:1}, the argument may be a name. Each field is a flag, or with a place (1, 2
// …) an argument. It is sent in the query of a GET, and in the body of other requests.
type Verb struct {
	Use, Short, Long, Example string
	Also                      []string // aliases
	Method                    string   // "": GET
	Path                      string
	Fields                    []Field
	Fixed                     map[string]any // members that the body always has
	Rows                      string         // member of the answer that holds the list; "": the answer is the list
	Columns                   string         // of a list: "HEADER=cell HEADER=cell", see cellOf
	// for one row: the sentence to print, with {cell} and, for arguments, {1}; "": all short members
	Says  string
	Lines string // for one row: "name=cell name=cell", one per line; _ in a name is a space
	Text  string // member of the answer to print as plain text
	Next  string // the next step, printed after a list that is not empty
	Raw   bool   // the answer is not JSON and is printed unchanged
	Log   bool   // the answer is a log, read page by page
}

func (v Verb) command(c *CLI) *cobra.Command {
	if c.Made != nil {
		*c.Made = append(*c.Made, v)
	}
	least, most := Wanted(v.Use)
	cmd := &cobra.Command{Use: v.Use, Aliases: v.Also, Short: v.Short, Long: v.Long, Example: v.Example,
		Args: cobra.RangeArgs(len(least), most)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return v.run(c, cmd, args) }
	if v.asks() {
		cmd.Flags().Bool("yes", false, "do it, and do not ask")
	}
	if v.Method == "" {
		cmd.Annotations = map[string]string{changesNothing: "true"}
	}
	for _, f := range v.Fields {
		switch {
		case f.Place > 0, f.Kind == "secret", f.Kind == "scope":
		case f.Kind == "bool":
			cmd.Flags().Bool(f.Name, f.Value == "true", f.About)
		case f.Kind == "int":
			n, _ := strconv.ParseInt(f.Value, 10, 64)
			cmd.Flags().Int64(f.Name, n, f.About)
		case f.Kind == "list" || f.Kind == "labels" || f.Kind == "issues":
			cmd.Flags().StringSlice(f.Name, nil, f.About)
		case f.Kind == "pairs" || f.Kind == "variables":
			cmd.Flags().StringArray(f.Name, nil, f.About)
		default:
			cmd.Flags().String(f.Name, f.Value, f.About)
		}
	}
	return cmd
}

// asks reports whether the verb needs a confirmation because it can not be undone.
func (v Verb) asks() bool { return v.Method == "DELETE" && strings.HasPrefix(v.Use, "delete ") }

func (v Verb) run(c *CLI, cmd *cobra.Command, args []string) error {
	args = Whole(cmd.Use, args)
	path, err := c.Filled(cmd, v.Path, args)
	if err != nil {
		return err
	}
	if v.asks() {
		if err := Confirm(cmd, v.Short+": "+cmp.Or(c.named, strings.Join(args, " "))); err != nil {
			return err
		}
	}
	in := maps.Clone(v.Fixed)
	if in == nil {
		in = map[string]any{}
	}
	query := map[string]any{}
	for _, f := range v.Fields {
		value, given, err := f.read(c, cmd, args)
		if err != nil {
			return err
		}
		if given {
			name, err := c.Filled(cmd, f.Member, args)
			if err != nil {
				return err
			}
			if f.Query {
				query[name] = value
			} else {
				put(in, name, value)
			}
		}
	}
	method, path := v.Method, withQuery(path, query)
	if method == "PATCH" && len(in) == 0 {
		return Misuse(fmt.Errorf("nothing to change: pass a flag (see %s --help)", cmd.CommandPath()))
	}
	var body any = in
	if method == "" {
		method, path, body = "GET", withQuery(path, in), nil
	}
	return v.Ask(c, cmd, args, method, path, body)
}

// withQuery returns path with members in its query.
func withQuery(path string, in map[string]any) string {
	q := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		q.Set(name, fmt.Sprint(in[name]))
	}
	if len(q) == 0 {
		return path
	}
	if strings.Contains(path, "?") {
		return path + "&" + q.Encode()
	}
	return path + "?" + q.Encode()
}

// Ask makes the request and prints its answer.
func (v Verb) Ask(c *CLI, cmd *cobra.Command, args []string, method, path string, body any) error {
	if v.Log {
		return c.Log(cmd, path, nil)
	}
	if v.Raw {
		var b []byte
		if err := c.Call(cmd.Context(), method, path, body, &b); err != nil {
			return err
		}
		_, err := cmd.OutOrStdout().Write(b)
		return err
	}
	var answer any
	return c.Send(cmd, method, path, body, &answer, func(w io.Writer) { v.print(c, cmd, args, w, answer) })
}

func (v Verb) print(c *CLI, cmd *cobra.Command, args []string, w io.Writer, answer any) {
	if v.Columns != "" {
		v.printList(c, cmd, w, answer)
		return
	}
	if o, ok := answer.(map[string]any); ok && v.Text != "" {
		content, _ := o[v.Text].(string)
		fmt.Fprintln(w, Visible(strings.TrimSuffix(content, "\n")))
		return
	}
	if v.Says != "" {
		fmt.Fprintln(w, InWords.ReplaceAllStringFunc(v.Says, func(m string) string {
			if n, err := strconv.Atoi(m[1 : len(m)-1]); err == nil && n <= len(args) {
				return args[n-1]
			}
			return cellOf(answer, m[1:len(m)-1], isWide(w))
		}))
		return
	}
	if v.Lines != "" && !isWide(w) {
		v.printLines(c, cmd, w, answer)
		return
	}
	o, ok := answer.(map[string]any)
	if !ok {
		fmt.Fprintln(w, member(map[string]any{"": answer}, ""))
		return
	}
	lines := membersOf("", o, isWide(w))
	if len(lines) == 0 {
		fmt.Fprintln(w, "none")
		return
	}
	c.nameAgents(cmd, o, lines)
	writeLines(w, lines)
}

// writeLines writes names and values, one pair per line.
func writeLines(w io.Writer, lines [][2]string) {
	width := 0
	for _, l := range lines {
		width = max(width, utf8.RuneCountInString(l[0]))
	}
	for _, l := range lines {
		fmt.Fprintf(w, "%-*s  %s\n", width, l[0], l[1])
	}
}

// printLines writes the important members of one row; -o wide writes all of them.
func (v Verb) printLines(c *CLI, cmd *cobra.Command, w io.Writer, answer any) {
	var names map[string]string
	var lines [][2]string
	for line := range strings.FieldsSeq(v.Lines) {
		name, path, _ := strings.Cut(line, "=")
		path, agent := strings.CutPrefix(path, "agent:")
		text := cellOf(answer, path, false)
		if agent && text != "-" {
			if names == nil {
				names, _ = c.AgentNames(cmd, member(answer, "companyId")) // without names IDs are shown
			}
			text = cmp.Or(names[text], text)
		}
		if text != "-" {
			lines = append(lines, [2]string{strings.ReplaceAll(name, "_", " "), text})
		}
	}
	writeLines(w, lines)
}

// begun reports whether a prefix of an ID is enough to name what a command lists.
func begun(cmd *cobra.Command) bool {
	word := cmd.Parent().Name()
	if cmd.Name() != "list" {
		word = strings.TrimSuffix(cmd.Name(), "s")
	}
	if _, ok := nouns[word]; ok || word == "attachment" { // one command names it without its issue
		return ok
	}
	rows, ok := Of(listed, cmd, word)
	return ok && rows.id == ""
}

// nameAgents puts names before the IDs of agents in the summary of an object, if the
// node returns them.
func (c *CLI) nameAgents(cmd *cobra.Command, o map[string]any, lines [][2]string) {
	var names map[string]string
	for n, l := range lines {
		if !strings.HasSuffix(l[0], "AgentId") && l[0] != "agentId" && l[0] != "reportsTo" || len(l[1]) != UUIDLen {
			continue
		}
		if names == nil {
			of, _ := o["companyId"].(string)
			if names, _ = c.AgentNames(cmd, of); len(names) == 0 {
				return
			}
		}
		if name := names[l[1]]; name != "" {
			lines[n][1] = name + " " + l[1]
		}
	}
}

func (v Verb) printList(c *CLI, cmd *cobra.Command, w io.Writer, answer any) {
	if v.Rows != "" {
		if o, ok := answer.(map[string]any); ok {
			answer = o[v.Rows]
		}
	}
	rows, _ := answer.([]any)
	names := map[string]string{} // of agents, if a column needs them
	var header []string
	var from []string
	var whole []bool
	for column := range strings.FieldsSeq(v.Columns) {
		name, path, _ := strings.Cut(column, "=")
		header, from = append(header, name), append(from, path)
		whole = append(whole, path == "code" || path == "id" && !begun(cmd))
		if strings.HasPrefix(path, "agent:") && len(names) == 0 && len(rows) > 0 {
			if of, err := c.CompanyID(cmd); err == nil {
				names, _ = c.AgentNames(cmd, of) // without names IDs are shown
			}
		}
	}
	var t [][]string
	for _, r := range rows {
		line := make([]string, len(from))
		for n, path := range from {
			path, agent := strings.CutPrefix(path, "agent:")
			line[n] = cellOf(r, path, isWide(w))
			if !isWide(w) && !strings.HasPrefix(path, "short:") {
				line[n] = Cell(line[n])
			}
			if agent && names[line[n]] != "" {
				line[n] = names[line[n]]
			}
		}
		t = append(t, line)
	}
	table(w, header, t, whole)
	if v.Next != "" && len(rows) > 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), v.Next)
	}
}

// With adds verbs to a command that has subcommands.
func With(c *CLI, to *cobra.Command, verbs ...Verb) *cobra.Command {
	for _, v := range verbs {
		to.AddCommand(v.command(c))
	}
	return to
}

// Noun returns a command whose subcommands are verbs.
func Noun(c *CLI, use, short string, verbs ...Verb) *cobra.Command {
	return With(c, Group(use, short), verbs...)
}

// Group returns a command that has only subcommands.
func Group(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(subs...)
	return c
}
