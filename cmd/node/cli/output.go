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

// A format is how answers are printed.
type format string

// wide is text of which nothing is cut, with times as the API tells them.
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

// oneOf lists words as a sentence does: a, b or c.
func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// ForMachines reports whether answers are printed for programs.
func (c *CLI) ForMachines() bool { return c.Output == "json" || c.Output == "yaml" }

// Print writes v as JSON or YAML where -o asks for it, else through human.
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

// A screen is where a person reads an answer.
type screen struct {
	io.Writer
	width int  // characters of a line; 0: no limit
	wide  bool // nothing is cut
}

func (c *CLI) screen(out io.Writer) screen {
	s := screen{Writer: out, wide: c.Output == wide}
	if f, ok := out.(*os.File); ok && !s.wide {
		s.width, _, _ = term.GetSize(int(f.Fd())) // 0 where it is no terminal
	}
	return s
}

// Fit cuts a line to what the terminal has room for.
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

// Table writes rows under a header, in columns, which are cut to fit a terminal.
func Table(w io.Writer, header string, rows [][]string) {
	table(w, strings.Fields(header), rows, nil)
}

// table is Table; whole says which columns hold IDs that are of use only as a whole.
func table(w io.Writer, header []string, rows [][]string, whole []bool) {
	for _, r := range rows {
		for n := range r {
			indent := len(r[n]) - len(strings.TrimLeft(r[n], " ")) // of trees
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
	// leastColumn is how many characters of a column stay when a table is fitted.
	leastColumn = 8
)

// fit cuts the cells of a table until its lines fit. IDs go first: what tells them
// apart is enough to name them. Then the widest column gives a character, and so on.
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
			break // the terminal wraps what is left
		}
		widths[widest]--
	}
	for _, r := range rows {
		for n := range r {
			r[n] = Cut(r[n], widths[n])
		}
	}
}

// cutIDs cuts the IDs of a column to the beginning that tells them apart.
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

// common is how many bytes two texts have in common at their beginning.
func common(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
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

// farAway is the distance from which on a date says more.
const farAway = 365 * 24 * time.Hour

// When is an instant as people read it: its distance from now, such as 3m ago or in 2h,
// its date where that is far away, and with -o wide the instant itself, in UTC.
func When(w io.Writer, iso string) string { return when(iso, isWide(w)) }

func when(iso string, wide bool) string {
	t, err := time.Parse(time.RFC3339, iso)
	switch {
	case err != nil:
		return "-"
	case wide:
		return t.UTC().Format(time.RFC3339)
	}
	d := time.Since(t)
	switch {
	case d.Abs() > farAway:
		return t.UTC().Format(time.DateOnly)
	case d < -time.Second:
		return "in " + distance(-d)
	}
	return distance(max(d, 0)) + " ago"
}

// distance is a time in its largest unit that has two or more of it.
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
