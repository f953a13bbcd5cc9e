package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// A table is truncated to fit the terminal: first IDs, to unique prefixes, then the
// widest columns. Nothing is truncated if there is enough room or no terminal.
func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	rows := func() [][]string {
		return [][]string{
			{"01a20cce-f0ea-7b04-98ee-7d222d842b9c", "Ada", strings.Repeat("weld ", 20)},
			{"01a20cce-f12d-7ea8-83c9-3d0e7e6bc076", "Übermut", "short"},
		}
	}
	for _, c := range []struct {
		width int
		whole []bool
		want  string
	}{
		{0, nil, "ID                                    NAME     TEXT\n" +
			"01a20cce-f0ea-7b04-98ee-7d222d842b9c  Ada      " + strings.TrimSpace(strings.Repeat("weld ", 20)) + "\n" +
			"01a20cce-f12d-7ea8-83c9-3d0e7e6bc076  Übermut  short\n"},
		{50, nil, "ID           NAME     TEXT\n" +
			"01a20cce-f0  Ada      weld weld weld weld weld we…\n" +
			"01a20cce-f1  Übermut  short\n"},
		{60, []bool{true, false, false}, "ID                                    NAME     TEXT\n" +
			"01a20cce-f0ea-7b04-98ee-7d222d842b9c  Ada      weld weld we…\n" +
			"01a20cce-f12d-7ea8-83c9-3d0e7e6bc076  Übermut  short\n"},
	} {
		var out bytes.Buffer
		table(screen{Writer: &out, width: c.width}, []string{"ID", "NAME", "TEXT"}, rows(), c.whole)
		if got := out.String(); got != c.want {
			t.Errorf("in %d columns:\n%swant\n%s", c.width, got, c.want)
		}
	}
	for width := 34; width < 120; width++ { // 34: every column at its least width
		var out bytes.Buffer
		table(screen{Writer: &out, width: width}, []string{"ID", "NAME", "TEXT"}, rows(), nil)
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("a line has %d characters in %d columns: %s", n, width, line)
			}
		}
	}
}

// Times are shown as their distance from now, and with -o wide unchanged.
func TestInstantsAreDistances(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for d, want := range map[time.Duration]string{
			0: "0s ago", -119 * time.Second: "119s ago", -2 * time.Minute: "2m ago", -119 * time.Minute: "119m ago",
			-47 * time.Hour: "47h ago",
			-48 * time.Hour: "2d ago", -365 * 24 * time.Hour: "365d ago",
			-366 * 24 * time.Hour: now.AddDate(0, 0, -366).Format(time.DateOnly),
			90 * time.Second:      "in 90s", 3 * time.Hour: "in 3h",
		} {
			if got := when(now.Add(d).Format(time.RFC3339Nano), false); got != want {
				t.Errorf("%s from now is told as %q, want %q", d, got, want)
			}
		}
		row := map[string]any{"updatedAt": "2026-11-24T09:06:58.411Z", "title": "2026-11-24T09:06:58.411Z"}
		if got := cellOf(row, "updatedAt+title", true); got != "2026-11-24T09:06:58Z 2026-11-24T09:06:58.411Z" {
			t.Errorf("with -o wide it is %s", got)
		}
		if got := cellOf(row, "title", false); got != "2026-11-24T09:06:58.411Z" {
			t.Errorf("a title that is an instant became %s", got)
		}
	})
}

// YAML keeps the order of members, and texts stay texts.
func TestYAML(t *testing.T) {
	t.Parallel()
	in := `{"z": "7", "a": ["true", true, null, 1.5, 12345678901234567890], "empty": [], "text": "one\ntwo: ü", ` +
		`"in": {"none": {}}}`
	want := `z: "7"
a:
  - "true"
  - true
  - null
  - 1.5
  - 12345678901234567890
empty: []
text: |-
  one
  two: ü
in:
  none: {}
`
	var out bytes.Buffer
	if err := writeYAML(&out, raw(in)); err != nil || out.String() != want {
		t.Errorf("%s is written as\n%s(%v), want\n%s", in, &out, err, want)
	}
}

type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// Progress is one line that is rewritten, and erased at the end.
func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := startProgress(&out, "saving", time.Second)
		w := p.Writer(&bytes.Buffer{})
		if _, err := w.Write(make([]byte, 3<<20)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		p.Say("2 runs left")
		time.Sleep(time.Second)
		p.End()
		p.End()
		if got, want := out.String(), "\r\x1b[Ksaving: 3.0 MB, 1s\r\x1b[Ksaving: 2 runs left, 2s\r\x1b[K"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	cmd := &cobra.Command{}
	cmd.SetErr(&bytes.Buffer{})
	silent := (&CLI{}).Progress(cmd, "saving") // not a terminal
	silent.Bytes(1, 2)
	if silent.End(); silent.to != nil {
		t.Error("progress is written to what is no terminal")
	}
}

// An action that can not be undone is confirmed at the terminal, refused without one,
// and done with --yes.
func TestConfirm(t *testing.T) {
	t.Parallel()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	cmd := &cobra.Command{}
	cmd.Flags().Bool("yes", false, "")
	cmd.SetIn(null)
	if err := Confirm(cmd, "Delete it"); err == nil || !strings.Contains(err.Error(), "Delete it? Nobody can be asked") {
		t.Errorf("without a terminal: %v", err)
	}
	if err := cmd.Flags().Set("yes", "true"); err != nil {
		t.Fatal(err)
	}
	if err := Confirm(cmd, "Delete it"); err != nil {
		t.Errorf("with --yes: %v", err)
	}
}

// A cell shows the first member that is present, words for true members, and
// thousandths.
func TestCells(t *testing.T) {
	t.Parallel()
	row := map[string]any{"on": true, "off": false, "name": "Bob", "none": nil, "risk": 125.0,
		"in": map[string]any{"it": "x"}, "list": []any{"a", "b"}}
	for cell, want := range map[string]string{
		"name": "Bob", "none": "-", "none|name": "Bob", "none|'nobody'": "nobody", "name+in.it": "Bob x",
		"yes?on|'no'": "yes", "yes?off|'no'": "no",
		"there?name": "there", "there?none": "-", "milli:risk": "0.125", "n:list": "2", "list": "a,b", "in": "…",
	} {
		if got := cellOf(row, cell, false); got != want {
			t.Errorf("%s says %q, want %q", cell, got, want)
		}
	}
}
