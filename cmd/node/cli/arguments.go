package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit statuses: done, refused or failed, misused.
const (
	ExitFailed  = 1
	ExitMisused = 2
)

// A misuse is an error of the command line itself.
type misuse struct{ error }

func (m misuse) Unwrap() error { return m.error }

// Misuse marks an error as one of the command line itself.
func Misuse(err error) error { return misuse{err} }

// MisusedArguments makes a wrong number of arguments a misuse in all commands and names
// the missing or surplus one. It also refuses a list limit below one row.
func MisusedArguments(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return Misuse(WrongArguments(cmd, args, err))
			}
			if f := cmd.Flags().Lookup("limit"); f != nil && f.Changed {
				if n, err := strconv.ParseInt(f.Value.String(), 10, 64); err == nil && n < 1 {
					return Misuse(fmt.Errorf("--limit is %d: want at least 1", n))
				}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		MisusedArguments(sub)
	}
}

// WrongFlag rewrites an error about the value of a flag in the words of this program.
func WrongFlag(err error) error {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	want := map[string]string{"int": "a whole number", "int64": "a whole number", "uint64": "a whole number from 0",
		"bool": "true or false", "duration": "a time such as 90s or 24h"}[bad.GetFlag().Value.Type()]
	if want == "" {
		return err
	}
	return fmt.Errorf("--%s is %q: want %s", bad.GetFlag().Name, bad.GetValue(), want)
}

// maxHeld bounds the commands of a group that a refusal names.
const maxHeld = 20

// holds lists the commands of a group; for a large group, the headings of its help.
func holds(cmd *cobra.Command) string {
	var there, under []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			there = append(there, sub.Name())
		}
	}
	for _, g := range cmd.Groups() {
		under = append(under, strings.TrimSuffix(g.Title, ":"))
	}
	if len(there) <= maxHeld {
		return ": it has " + strings.Join(there, ", ")
	}
	if len(under) == 0 {
		return fmt.Sprintf(": it has %d others", len(there))
	}
	return fmt.Sprintf(": it has %d, under %s", len(there), strings.Join(under, "; "))
}

// WrongArguments returns an error that explains why err refuses the arguments.
func WrongArguments(cmd *cobra.Command, args []string, err error) error {
	if cmd.HasAvailableSubCommands() {
		cmd.SuggestionsMinimumDistance = 2 // cobra's default elsewhere
		text := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0])
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text += "; did you mean " + strings.Join(near, " or ") + "?"
		} else if cmd.HasParent() {
			text += holds(cmd)
		}
		return errors.New(text)
	}
	least, most := Wanted(cmd.Use)
	switch {
	case len(args) < len(least):
		return fmt.Errorf("%s is missing: %s", least[len(args)], cmd.UseLine())
	case most >= 0 && len(args) > most:
		return fmt.Errorf("%q is one argument too many: %s", args[most], cmd.UseLine())
	}
	return err
}

// Wanted returns the required arguments of a line of usage, and the greatest number of
// arguments, -1 for any.
func Wanted(use string) (least []string, most int) {
	for _, word := range strings.Fields(use)[1:] {
		switch {
		case word == "[--":
			return least, -1
		case strings.HasPrefix(word, "--"): // a required flag; the command reports it
		case word == "[flags]":
		case strings.HasSuffix(word, "...]"):
			return least, -1
		case strings.HasSuffix(word, "..."):
			return append(least, strings.TrimSuffix(word, "...")), -1
		case strings.HasPrefix(word, "["):
			most++
		default:
			least = append(least, word)
		}
	}
	return least, most + len(least)
}
