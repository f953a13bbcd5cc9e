package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
)

// A format is how answers are printed.
type format string

var formats = []string{"text", "json"}

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "string" }

func (f *format) Set(text string) error {
	if !slices.Contains(formats, text) {
		return fmt.Errorf("want %s", strings.Join(formats, " or "))
	}
	*f = format(text)
	return nil
}

// Print writes v as JSON when -o json was given, else through human.
func (c *CLI) Print(cmd *cobra.Command, v any, human func(w io.Writer)) error {
	out := cmd.OutOrStdout()
	if c.Output == "json" {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	human(out)
	return nil
}

// Table writes rows under a header, in columns.
func Table(w io.Writer, header string, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.ReplaceAll(header, " ", "\t"))
	for _, r := range rows {
		for n := range r {
			indent := len(r[n]) - len(strings.TrimLeft(r[n], " ")) // of trees
			r[n] = r[n][:indent] + strings.Join(strings.Fields(Visible(r[n])), " ")
		}
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	t.Flush()
}

// Visible is a text that others wrote without what a terminal would obey: control
// characters but the end of a line and a tab are shown as �.
func Visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Short is the first eight characters of an ID.
func Short(id string) string { return id[:min(8, len(id))] }

// Dash is the text, or a dash where there is none.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Cents is an amount of money as people write it.
func Cents(c int64) string { return fmt.Sprintf("$%d.%02d", c/100, c%100) }

// Ago formats an ISO instant as a distance from now.
func Ago(iso string) string {
	t, err := time.Parse(time.RFC3339, iso)
	if err != nil {
		return "-"
	}
	return time.Since(t).Round(time.Second).String() + " ago"
}
