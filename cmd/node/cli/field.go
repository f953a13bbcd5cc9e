package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// A Field is a member of a request.
type Field struct {
	Name, Member, About string
	// "" text, int, bool, list, file, text or file, json, json or @file, pairs, variables, secret, entity, issue,
	// issues, label, labels, agent or none, scope, or a noun: see nouns
	Kind  string
	Place int
	Query bool   // sent in the query also where the request has a body
	Value string // default
}

// read returns the value of a field, and whether it was given. An empty text clears the
// member.
func (f Field) read(c *CLI, cmd *cobra.Command, args []string) (value any, given bool, err error) {
	if f.Kind == "secret" {
		value, err := ReadSecret(cmd)
		return value, true, err
	}
	if f.Kind == "scope" {
		if c.Company == "" {
			return nil, false, nil
		}
		id, err := c.CompanyID(cmd)
		return id, true, err
	}
	text := ""
	switch {
	case f.Place > len(args), f.Place == 0 && f.Value == "" && !cmd.Flags().Lookup(f.Name).Changed:
		return nil, false, nil
	case f.Place > 0:
		text = args[f.Place-1]
	default:
		if value, is, err := f.typed(c, cmd); is {
			return value, true, err
		}
		if text, err = cmd.Flags().GetString(f.Name); err != nil {
			return nil, false, err
		}
	}
	if value, is, err := f.parse(cmd, text); is {
		return value, true, err
	}
	if text == "" && f.Kind != "" {
		return nil, true, nil // clears the member
	}
	text, err = f.resolve(c, cmd, text)
	return text, true, err
}

// typed returns the value of a flag of a kind that is not given as one text.
func (f Field) typed(c *CLI, cmd *cobra.Command) (value any, is bool, err error) {
	switch f.Kind {
	case "bool":
		value, err = cmd.Flags().GetBool(f.Name)
		return value, true, err
	case "int":
		value, err = cmd.Flags().GetInt64(f.Name)
		return value, true, err
	case "list", "labels", "issues":
		list, err := cmd.Flags().GetStringSlice(f.Name)
		for n := 0; n < len(list) && err == nil; n++ {
			if f.Kind == "labels" {
				list[n], err = c.Resolve(cmd, "label", list[n])
			} else if f.Kind == "issues" {
				list[n], err = c.IssueID(cmd, list[n])
			}
		}
		return list, true, err
	case "pairs", "variables":
		list, err := cmd.Flags().GetStringArray(f.Name)
		if err != nil {
			return nil, true, err
		}
		value, err := f.pairs(cmd, list)
		return value, true, err
	}
	return nil, false, nil
}

// parse returns the value of a text of a kind that names nothing of the mesh.
func (f Field) parse(cmd *cobra.Command, text string) (value any, is bool, err error) {
	switch f.Kind {
	case "int":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			err = Misuse(fmt.Errorf("%q is not a whole number: %s", text, cmd.UseLine()))
		}
		return n, true, err
	case "file":
		value, err = ReadText(cmd, text, MaxTextFile)
		return value, true, err
	case "text or file":
		value, err = TextOrFile(cmd, text, maxPayload)
		return value, true, err
	case "json or @file": // may contain secrets: the error must not quote it
		if text, err = TextOrFile(cmd, text, maxPayload); err == nil && !json.Valid([]byte(text)) {
			err = Misuse(errors.New(f.word() + " is not JSON"))
		}
		return json.RawMessage(text), true, err
	case "json":
		value, err = f.jsonOrFile(cmd, text)
		return value, true, err
	}
	return nil, false, nil
}

// jsonOrFile reads JSON, or the file of that name.
func (f Field) jsonOrFile(cmd *cobra.Command, text string) (value any, err error) {
	start := strings.TrimSpace(text)
	if !json.Valid([]byte(text)) && !strings.HasPrefix(start, "{") && !strings.HasPrefix(start, "[") {
		from, err := ReadText(cmd, text, MaxTextFile)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, Misuse(fmt.Errorf("%s is neither JSON nor a file: %q", f.word(), text))
		} else if err != nil {
			return nil, err
		}
		text = from
	}
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, Misuse(fmt.Errorf("%s is not JSON: %w", f.word(), err))
	}
	return value, nil
}

// resolve returns the ID of what a text names.
func (f Field) resolve(c *CLI, cmd *cobra.Command, text string) (string, error) {
	switch f.Kind {
	case "":
		return text, nil
	case "issue":
		return c.IssueID(cmd, text)
	case "agent or none":
		if text == "none" {
			return text, nil
		}
		return c.Resolve(cmd, "agent", text)
	case "entity":
		return c.EntityID(cmd, text)
	}
	return c.Resolve(cmd, f.Kind, text)
}

// pairs reads NAME=value arguments, or for variables also files with one pair a line.
func (f Field) pairs(cmd *cobra.Command, list []string) (map[string]string, error) {
	values := map[string]string{}
	for _, one := range list {
		given := []string{one}
		if f.Kind == "variables" {
			text, err := ReadText(cmd, one, maxPayload)
			if err != nil {
				return nil, err
			}
			given = strings.Split(text, "\n")
		}
		for _, line := range given {
			k, v, ok := strings.Cut(line, "=")
			switch {
			case ok && f.Kind == "variables":
				values[strings.TrimSpace(k)] = strings.TrimSpace(v)
			case ok:
				values[k] = v
			case f.Kind == "pairs":
				return nil, Misuse(fmt.Errorf("%s is NAME=value", f.word()))
			case strings.TrimSpace(line) != "" && !strings.HasPrefix(strings.TrimSpace(line), "#"):
				return nil, Misuse(fmt.Errorf("%s: a line is not NAME=value", one)) // the error must not quote the line
			}
		}
	}
	return values, nil
}

func (f Field) word() string {
	if f.Place > 0 {
		return f.Name
	}
	return "--" + f.Name
}

// MaxTextFile bounds a text that a verb reads from a file, in bytes: the longest text
// that the API accepts in a body.
const MaxTextFile = 1 << 20

// put sets a member; a dot in the name separates nested members.
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

// maxPayload bounds a text that a flag or an argument reads from a file, in bytes.
const maxPayload = 256 << 10
