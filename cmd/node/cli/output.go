package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// A format is an output format.
type format string

// wide is text without truncation, with times as the API has them.
const wide format = "wide"

var formats = []string{"text", string(wide), "json", "yaml"}

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "string" }

func (f *format) Set(text string) error {
	if !slices.Contains(formats, text) {
		return fmt.Errorf("want %s", oneOf(formats))
	}
	*f = format(text)
	return nil
}

// oneOf lists words as in a sentence: a, b or c.
func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// ForMachines reports whether the output is for programs.
func (c *CLI) ForMachines() bool { return c.Output == "json" || c.Output == "yaml" }

// Print writes v as JSON or YAML if -o selects that, else through human.
func (c *CLI) Print(cmd *cobra.Command, v any, human func(w io.Writer)) error {
	out := cmd.OutOrStdout()
	switch c.Output {
	case "json":
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	case "yaml":
		return writeYAML(out, v)
	}
	human(c.screen(out))
	return nil
}

// A screen is the terminal or other output that a person reads.
type screen struct {
	io.Writer
	width int  // characters per line; 0: no limit
	wide  bool // nothing is truncated
}

func (c *CLI) screen(out io.Writer) screen {
	s := screen{Writer: out, wide: c.Output == wide}
	if f, ok := out.(*os.File); ok && !s.wide {
		s.width, _, _ = term.GetSize(int(f.Fd())) // 0 if it is not a terminal
	}
	return s
}

// Fit truncates a line to the width of the terminal.
func Fit(w io.Writer, line string) string {
	if s, _ := w.(screen); s.width > 0 {
		return Cut(line, s.width)
	}
	return line
}

func isWide(w io.Writer) bool {
	s, _ := w.(screen)
	return s.wide
}

// Table writes rows in columns under a header, truncated to the width of a terminal.
func Table(w io.Writer, header string, rows [][]string) {
	table(w, strings.Fields(header), rows, nil)
}

// table is Table; whole marks the columns whose IDs are useful only in full.
func table(w io.Writer, header []string, rows [][]string, whole []bool) {
	for _, r := range rows {
		for n := range r {
			indent := len(r[n]) - len(strings.TrimLeft(r[n], " ")) // indentation of trees
			r[n] = r[n][:indent] + strings.Join(strings.Fields(Visible(r[n])), " ")
		}
	}
	if s, _ := w.(screen); s.width > 0 {
		fit(header, rows, whole, s.width)
	}
	var text bytes.Buffer
	t := tabwriter.NewWriter(&text, 0, 0, columnGap, ' ', 0)
	fmt.Fprintln(t, strings.Join(header, "\t"))
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	t.Flush()
	_, _ = w.Write(text.Bytes())
}

const (
	columnGap = 2
	// leastColumn is the least width to which a column is truncated, in characters.
	leastColumn = 8
)

// fit truncates the cells of a table until its lines fit. First it cuts IDs to unique
// prefixes, which are enough to name rows. Then it repeatedly cuts a character from the
// widest column.
func fit(header []string, rows [][]string, whole []bool, width int) {
	widths, over := make([]int, len(header)), -width-columnGap
	measure := func(n int) {
		widths[n] = utf8.RuneCountInString(header[n])
		for _, r := range rows {
			widths[n] = max(widths[n], utf8.RuneCountInString(r[n]))
		}
	}
	for n := range header {
		measure(n)
		over += widths[n] + columnGap
	}
	for n := range header {
		if over > 0 && (whole == nil || !whole[n]) {
			over -= widths[n]
			cutIDs(rows, n)
			measure(n)
			over += widths[n]
		}
	}
	for ; over > 0; over-- {
		widest := -1
		for n := range header {
			keeps := whole != nil && whole[n]
			if !keeps && widths[n] > max(leastColumn, len(header[n])) && (widest < 0 || widths[n] > widths[widest]) {
				widest = n
			}
		}
		if widest < 0 {
			break // the terminal wraps the rest
		}
		widths[widest]--
	}
	for _, r := range rows {
		for n := range r {
			r[n] = Cut(r[n], widths[n])
		}
	}
}

// cutIDs cuts the IDs of a column to unique prefixes.
func cutIDs(rows [][]string, n int) {
	most := 0
	for i := range rows {
		if len(rows[i][n]) != UUIDLen || strings.Count(rows[i][n], "-") != 4 {
			continue
		}
		for j := range i {
			if rows[j][n] != rows[i][n] {
				most = max(most, common(rows[i][n], rows[j][n])+1)
			}
		}
		most = max(most, leastColumn)
	}
	for _, r := range rows {
		if len(r[n]) == UUIDLen && strings.Count(r[n], "-") == 4 {
			r[n] = strings.TrimSuffix(r[n][:min(most, UUIDLen)], "-")
		}
	}
}

// common is the length of the common prefix of two texts, in bytes.
func common(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Visible makes a text of others safe for a terminal: control characters, except line
// ends and tabs, become �.
func Visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Short returns the first eight characters of an ID.
func Short(id string) string { return id[:min(8, len(id))] }

// Dash returns the text, or a dash if it is empty.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Cents formats an amount of money, such as $1.25.
func Cents(c int64) string { return fmt.Sprintf("$%d.%02d", c/100, c%100) }

// Wall is the clock of the program, of its nodes too. Tests that hold a date set another one before a command runs.
var Wall = time.Now

// farAway is the distance in time from which a date is shown instead.
const farAway = 365 * 24 * time.Hour

// When formats a time for people: its distance from now, such as 3m ago or in 2h, its
// date if that is far away, and with -o wide the time itself, in UTC.
func When(w io.Writer, iso string) string { return when(iso, isWide(w)) }

func when(iso string, wide bool) string {
	t, err := time.Parse(time.RFC3339, iso)
	switch {
	case err != nil:
		return "-"
	case wide:
		return t.UTC().Format(time.RFC3339)
	}
	d := Wall().Sub(t)
	switch {
	case d.Abs() > farAway:
		return t.UTC().Format(time.DateOnly)
	case d < -time.Second:
		return "in " + distance(-d)
	}
	return distance(max(d, 0)) + " ago"
}

// distance formats a duration in the largest unit of which it has two or more.
func distance(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}
