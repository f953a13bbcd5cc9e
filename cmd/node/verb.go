package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// A verb is a command that is one request: most of what a person does. What it
// needs of the API is said in a table, see verbs.go.
//
// In its path {company} is the company's ID and {1} the first argument; with a
// noun, as in {agent:1}, the argument may be a name. Each field is a flag, or with
// a place (1, 2 …) an argument, and goes into the query of a GET and the body of
// anything else.
type verb struct {
	use, short, long, example string
	method                    string // "": GET
	path                      string
	fields                    []field
	fixed                     map[string]any // members that the body always has
	rows                      string         // member of the answer that holds the list, "": the answer is one
	columns                   string         // of a list: "HEADER=cell HEADER=cell", see cellOf
	says                      string         // of one row: what is printed, with {cell} and, for arguments, {1}; "": all of it that is short
	text                      string         // member of the answer that is a text, and printed as it is
	raw                       bool           // the answer is no JSON, and printed byte by byte
}

// A field is a member of a request.
type field struct {
	name, member, about string
	kind                string // "" text, int, bool, list, file, text or file, json, json or @file, pairs, variables, secret, entity, issue, issues, label, labels, agent or none, or a noun: see nouns
	place               int
	value               string // unless it is given
}

func (v verb) command(c *cli) *cobra.Command {
	if c.made != nil {
		*c.made = append(*c.made, v)
	}
	least, most := wanted(v.use)
	cmd := &cobra.Command{Use: v.use, Short: v.short, Long: v.long, Example: v.example, Args: cobra.RangeArgs(len(least), most)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return v.run(c, cmd, args) }
	if v.method == "" {
		cmd.Annotations = map[string]string{changesNothing: "true"}
	}
	for _, f := range v.fields {
		switch {
		case f.place > 0, f.kind == "secret":
		case f.kind == "bool":
			cmd.Flags().Bool(f.name, f.value == "true", f.about)
		case f.kind == "int":
			n, _ := strconv.ParseInt(f.value, 10, 64)
			cmd.Flags().Int64(f.name, n, f.about)
		case f.kind == "list" || f.kind == "labels" || f.kind == "issues":
			cmd.Flags().StringSlice(f.name, nil, f.about)
		case f.kind == "pairs" || f.kind == "variables":
			cmd.Flags().StringArray(f.name, nil, f.about)
		default:
			cmd.Flags().String(f.name, f.value, f.about)
		}
	}
	return cmd
}

func (v verb) run(c *cli, cmd *cobra.Command, args []string) error {
	path, err := c.filled(cmd, v.path, args)
	if err != nil {
		return err
	}
	in := maps.Clone(v.fixed)
	if in == nil {
		in = map[string]any{}
	}
	for _, f := range v.fields {
		value, given, err := f.read(c, cmd, args)
		if err != nil {
			return err
		}
		if given {
			name, err := c.filled(cmd, f.member, args)
			if err != nil {
				return err
			}
			put(in, name, value)
		}
	}
	method := v.method
	if method == "PATCH" && len(in) == 0 {
		return misuse{fmt.Errorf("nothing to change: pass a flag (see %s --help)", cmd.CommandPath())}
	}
	var body any = in
	if method == "" {
		method = "GET"
		q := url.Values{}
		for _, name := range slices.Sorted(maps.Keys(in)) {
			q.Set(name, fmt.Sprint(in[name]))
		}
		if path += "?" + q.Encode(); len(q) == 0 {
			path = strings.TrimSuffix(path, "?")
		}
		body = nil
	}
	return v.ask(c, cmd, args, method, path, body)
}

// ask makes the request and prints its answer.
func (v verb) ask(c *cli, cmd *cobra.Command, args []string, method, path string, body any) error {
	if v.raw {
		var b []byte
		if err := c.call(cmd.Context(), method, path, body, &b); err != nil {
			return err
		}
		_, err := cmd.OutOrStdout().Write(b)
		return err
	}
	var answer any
	return c.send(cmd, method, path, body, &answer, func(w io.Writer) { v.print(c, cmd, args, w, answer) })
}

// put sets a member, or with a dot in its name a member of a member.
func put(in map[string]any, name string, value any) {
	head, rest, deeper := strings.Cut(name, ".")
	if !deeper {
		in[name] = value
		return
	}
	inner, _ := in[head].(map[string]any)
	if inner == nil {
		inner = map[string]any{}
		in[head] = inner
	}
	put(inner, rest, value)
}

// issueID returns the UUID of an issue given by its identifier, for members of bodies.
func (c *cli) issueID(cmd *cobra.Command, ref string) (string, error) {
	if ref == "" || len(ref) == uuidLen {
		return ref, nil
	}
	var row issueRow
	err := c.call(cmd.Context(), "GET", "/api/issues/"+url.PathEscape(ref), nil, &row)
	return row.ID, err
}

// read returns the value of a field, if it was given. An empty text clears.
func (f field) read(c *cli, cmd *cobra.Command, args []string) (value any, given bool, err error) {
	text := ""
	if f.kind == "secret" {
		value, err := readSecret(cmd)
		return value, true, err
	}
	if f.place > 0 {
		if f.place > len(args) {
			return nil, false, nil
		}
		text = args[f.place-1]
	} else {
		if flag := cmd.Flags().Lookup(f.name); !flag.Changed && f.value == "" {
			return nil, false, nil
		}
		switch f.kind {
		case "bool":
			value, err = cmd.Flags().GetBool(f.name)
			return value, true, err
		case "int":
			n, err := cmd.Flags().GetInt64(f.name)
			if err == nil && n < 1 && f.name == "limit" {
				err = misuse{fmt.Errorf("--limit is %d: want 1 or more", n)}
			}
			return n, true, err
		case "list", "labels", "issues":
			list, err := cmd.Flags().GetStringSlice(f.name)
			for n := range list {
				if f.kind == "labels" {
					list[n], err = c.resolve(cmd, "label", list[n])
				} else if f.kind == "issues" {
					list[n], err = c.issueID(cmd, list[n])
				}
				if err != nil {
					return nil, false, err
				}
			}
			return list, true, err
		case "pairs", "variables":
			list, err := cmd.Flags().GetStringArray(f.name)
			if err != nil {
				return nil, false, err
			}
			value, err := f.pairs(cmd, list)
			return value, true, err
		}
		if text, err = cmd.Flags().GetString(f.name); err != nil {
			return nil, false, err
		}
	}
	switch f.kind {
	case "int":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			err = misuse{fmt.Errorf("%q is not a whole number: %s", text, cmd.UseLine())}
		}
		return n, true, err
	case "file":
		b, err := readText(cmd, text, maxTextFile)
		return b, true, err
	case "text or file":
		text, err = textOrFile(cmd, text, maxPayload)
		return text, true, err
	case "json or @file": // may hold secrets: an error says nothing of it
		if text, err = textOrFile(cmd, text, maxPayload); err != nil {
			return nil, false, err
		}
		if !json.Valid([]byte(text)) {
			return nil, false, misuse{errors.New(f.word() + " is not JSON")}
		}
		return json.RawMessage(text), true, nil
	case "json":
		b := []byte(text)
		if !json.Valid(b) && !strings.HasPrefix(strings.TrimSpace(text), "{") && !strings.HasPrefix(strings.TrimSpace(text), "[") {
			from, err := readText(cmd, text, maxTextFile)
			if errors.Is(err, fs.ErrNotExist) {
				return nil, false, misuse{fmt.Errorf("%s is neither JSON nor a file: %q", f.word(), text)}
			} else if err != nil {
				return nil, false, err
			}
			b = []byte(from)
		}
		if err := json.Unmarshal(b, &value); err != nil {
			return nil, false, misuse{fmt.Errorf("%s is not JSON: %w", f.word(), err)}
		}
		return value, true, nil
	}
	if text == "" && f.kind != "" {
		return nil, true, nil // clears what was there
	}
	switch f.kind {
	case "issue":
		text, err = c.issueID(cmd, text)
	case "agent or none":
		if text != "none" {
			text, err = c.resolve(cmd, "agent", text)
		}
	case "entity":
		text, err = c.entityID(cmd, text)
	case "":
	default:
		text, err = c.resolve(cmd, f.kind, text)
	}
	return text, true, err
}

// pairs reads NAME=value as it was given, or of variables from files with one a line.
func (f field) pairs(cmd *cobra.Command, list []string) (map[string]string, error) {
	values := map[string]string{}
	for _, one := range list {
		given := []string{one}
		if f.kind == "variables" {
			text, err := readText(cmd, one, maxPayload)
			if err != nil {
				return nil, err
			}
			given = strings.Split(text, "\n")
		}
		for _, line := range given {
			k, v, ok := strings.Cut(line, "=")
			switch {
			case ok && f.kind == "variables":
				values[strings.TrimSpace(k)] = strings.TrimSpace(v)
			case ok:
				values[k] = v
			case f.kind == "pairs":
				return nil, misuse{fmt.Errorf("%s is NAME=value", f.word())}
			case strings.TrimSpace(line) != "" && !strings.HasPrefix(strings.TrimSpace(line), "#"):
				return nil, misuse{fmt.Errorf("%s: a line is not NAME=value", one)} // which says nothing of the line
			}
		}
	}
	return values, nil
}

func (f field) word() string {
	if f.place > 0 {
		return f.name
	}
	return "--" + f.name
}

// maxTextFile bounds a text that a verb takes from a file, in bytes: the longest
// that the API takes in one body.
const maxTextFile = 1 << 20

// reached returns what a path of members leads to; 0 is the first of a list.
func reached(row any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch of := row.(type) {
		case map[string]any:
			row = of[name]
		case []any:
			if name != "0" || len(of) == 0 {
				return nil
			}
			row = of[0]
		default:
			return nil
		}
	}
	return row
}

// member returns what a path of members leads to, as a person reads it.
func member(row any, path string) string {
	switch v := reached(row, path).(type) {
	case nil:
		return "-"
	case string:
		return dash(strings.Join(strings.Fields(visible(v)), " "))
	case bool:
		return strconv.FormatBool(v)
	case float64:
		if strings.HasSuffix(path, "Cents") {
			return cents(int64(v))
		}
		if v == math.Trunc(v) {
			return strconv.FormatInt(int64(v), 10)
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		if len(v) == 0 {
			return "-"
		}
		words := make([]string, 0, len(v))
		for _, one := range v {
			word, ok := one.(string)
			if !ok {
				return strconv.Itoa(len(v))
			}
			words = append(words, word)
		}
		return strings.Join(words, ",")
	}
	return "…"
}

// maxCell bounds what a column of a table shows, in characters.
const maxCell = 60

func cell(text string) string { return cut(text, maxCell) }

// cut shortens a text to at most most characters.
func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

var inWords = regexp.MustCompile(`\{([A-Za-z0-9.:|+']+)\}`)

// cellOf is what a cell of a table, or of a sentence, says of a row. A cell is the
// path of a member, with dots for members of members; before it may stand how it is
// shown: ago:, a time as its distance from now; id:, the beginning of an ID; n:, how
// many there are; cents:, an amount of money; short:, what details tell. Of several
// with | between them it is the first that there is, a word in quotes there always
// is, and with + between them it is all of them.
func cellOf(row any, cell string) string {
	for one := range strings.SplitSeq(cell, "|") {
		if word, ok := strings.CutPrefix(one, "'"); ok {
			return strings.TrimSuffix(word, "'")
		}
		var words []string
		for path := range strings.SplitSeq(one, "+") {
			how, path, ok := strings.Cut(path, ":")
			if !ok {
				how, path = "", how
			}
			if word := shown(row, how, path); word != "-" {
				words = append(words, word)
			}
		}
		if len(words) > 0 {
			return strings.Join(words, " ")
		}
	}
	return "-"
}

// shown is a member of a row in one of the ways of cellOf.
func shown(row any, how, path string) string {
	text := member(row, path)
	switch how {
	case "ago":
		return ago(text)
	case "id":
		return short(text)
	case "n":
		list, _ := reached(row, path).([]any)
		return strconv.Itoa(len(list))
	case "cents":
		n, _ := strconv.ParseInt(text, 10, 64)
		return cents(n)
	case "short":
		o, _ := row.(map[string]any)
		return dash(inShort(o[path]))
	}
	return text
}

func (v verb) print(c *cli, cmd *cobra.Command, args []string, w io.Writer, answer any) {
	if v.columns != "" {
		v.printList(c, cmd, w, answer)
		return
	}
	if o, ok := answer.(map[string]any); ok && v.text != "" {
		content, _ := o[v.text].(string)
		fmt.Fprintln(w, visible(strings.TrimSuffix(content, "\n")))
		return
	}
	if v.says != "" {
		fmt.Fprintln(w, inWords.ReplaceAllStringFunc(v.says, func(m string) string {
			if n, err := strconv.Atoi(m[1 : len(m)-1]); err == nil && n <= len(args) {
				return args[n-1]
			}
			return cellOf(answer, m[1:len(m)-1])
		}))
		return
	}
	o, ok := answer.(map[string]any)
	if !ok {
		fmt.Fprintln(w, member(map[string]any{"": answer}, ""))
		return
	}
	lines := membersOf("", o)
	if len(lines) == 0 {
		fmt.Fprintln(w, "none")
		return
	}
	c.nameAgents(cmd, o, lines)
	width := 0
	for _, l := range lines {
		width = max(width, len(l[0]))
	}
	for _, l := range lines {
		fmt.Fprintf(w, "%-*s  %s\n", width, l[0], l[1])
	}
}

// membersOf are what is short of an object and of the objects in it, each with its name.
func membersOf(before string, o map[string]any) (lines [][2]string) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if inner, ok := o[name].(map[string]any); ok {
			lines = append(lines, membersOf(before+name+".", inner)...)
		} else if text := member(o, name); text != "-" {
			lines = append(lines, [2]string{before + name, text})
		}
	}
	return lines
}

// nameAgents puts names before the IDs of agents in what is short of an object,
// where the node tells them.
func (c *cli) nameAgents(cmd *cobra.Command, o map[string]any, lines [][2]string) {
	var names map[string]string
	for n, l := range lines {
		if !strings.HasSuffix(l[0], "AgentId") && l[0] != "agentId" && l[0] != "reportsTo" || len(l[1]) != uuidLen {
			continue
		}
		if names == nil {
			of, _ := o["companyId"].(string)
			if names, _ = c.agentNames(cmd, of); len(names) == 0 {
				return
			}
		}
		if name := names[l[1]]; name != "" {
			lines[n][1] = name + " " + l[1]
		}
	}
}

func (v verb) printList(c *cli, cmd *cobra.Command, w io.Writer, answer any) {
	if v.rows != "" {
		if o, ok := answer.(map[string]any); ok {
			answer = o[v.rows]
		}
	}
	rows, _ := answer.([]any)
	names := map[string]string{} // of agents, when a column asks for them
	var header []string
	var from []string
	for column := range strings.FieldsSeq(v.columns) {
		name, path, _ := strings.Cut(column, "=")
		header, from = append(header, name), append(from, path)
		if strings.HasPrefix(path, "agent:") && len(names) == 0 && len(rows) > 0 {
			if of, err := c.companyID(cmd); err == nil {
				names, _ = c.agentNames(cmd, of) // without them IDs are shown
			}
		}
	}
	var t [][]string
	for _, r := range rows {
		line := make([]string, len(from))
		for n, path := range from {
			path, agent := strings.CutPrefix(path, "agent:")
			line[n] = cellOf(r, path)
			if !strings.HasPrefix(path, "short:") {
				line[n] = cell(line[n])
			}
			if agent && names[line[n]] != "" {
				line[n] = names[line[n]]
			}
		}
		t = append(t, line)
	}
	table(w, strings.Join(header, " "), t)
}

// with adds verbs to a command that has subcommands.
func with(c *cli, to *cobra.Command, verbs ...verb) *cobra.Command {
	for _, v := range verbs {
		to.AddCommand(v.command(c))
	}
	return to
}

// noun is a command whose subcommands are verbs.
func noun(c *cli, use, short string, verbs ...verb) *cobra.Command {
	return with(c, group(use, short), verbs...)
}
