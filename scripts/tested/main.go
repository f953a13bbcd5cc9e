// Command tested runs go test and says what go test leaves out: which tests were skipped
// and why, and how long the whole took. Where SELVAGE_CI is set a skipped test is a failed
// one, but for those that -short leaves out.
//
//	tested [-stage NAME] [go test's arguments]
//
// It prints what go test prints, and appends a line to the file that SELVAGE_STAGES names:
// how long it took, how much of the processors it used, which on a busy machine says more,
// and the stage. What each failed test said comes once more at the end, in few lines: a
// test of processes prints pages of logs, and of a long output people see the end. Where
// SELVAGE_FAILED names a file, it is appended there, for the end of what is printed then.
//
// It also runs any command so that nothing that this started outlives it:
//
//	tested -hold [-parent PID] [-remove DIRECTORY] COMMAND [ARGUMENT...]
//
// It ends with the command's status, 128 and the signal's number where one ended it. On Linux every
// process below it is killed then, also one that left its parent, group and session. The same happens
// when it is sent SIGINT, SIGTERM or SIGHUP, which it hands on and leaves the command a moment for,
// when the process PID, or else the one that started it, has ended (unless SIGHUP is ignored, as under
// nohup), and when it is killed itself. Of root it also has mounts of its own, which end with it, the
// names of network namespaces among them. DIRECTORY is removed at the end.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// An event is a line of go test -json, see go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// maxLine bounds a line of go test -json: a test's longest line of output, quoted.
const maxLine = 64 << 20

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "-hold" {
		h, err := parseHold(args[1:])
		if err != nil {
			fmt.Fprintln(os.Stderr, "tested:", err)
			os.Exit(2)
		}
		os.Exit(h.run())
	}
	stage := ""
	if len(args) > 1 && args[0] == "-stage" {
		stage, args = args[1], args[2:]
	}
	start := time.Now()
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tested:", err)
		os.Exit(1)
	}
	said, err := follow(pipe, os.Stdout, slices.Contains(args, "-v"))
	if werr := cmd.Wait(); err == nil {
		err = werr
	}
	if file := os.Getenv("SELVAGE_STAGES"); file != "" && stage != "" {
		if f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			fmt.Fprintf(f, "%5.0f s  %5.0f s CPU  %s\n", time.Since(start).Seconds(), used(cmd).Seconds(), stage)
			f.Close()
		}
	}
	short := slices.Contains(args, "-short")
	if !short {
		for _, s := range said.skipped {
			fmt.Println("skipped:", s)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tested:", err)
		end(stage, said.failed)
	}
	if n := len(said.skipped); !short && n > 0 && os.Getenv("SELVAGE_CI") != "" {
		why := fmt.Sprintf("FAIL: %d tests were skipped, and with SELVAGE_CI set none may be", n)
		end(stage, [][]string{{why, said.skipped[0]}})
	}
}

// end says what failed of a stage, here or in the file of SELVAGE_FAILED, and ends with status 1.
func end(stage string, failed [][]string) {
	to := io.Writer(os.Stdout)
	if file := os.Getenv("SELVAGE_FAILED"); file != "" {
		if f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			defer f.Close()
			to = f
		}
	}
	fmt.Fprint(to, strings.Join(brief(stage, failed), "\n")+"\n")
	os.Exit(1)
}

// used is the time of processors that a command and all that it waited for have used: to
// compile and link the tests, and to run them.
func used(c *exec.Cmd) time.Duration {
	return c.ProcessState.UserTime() + c.ProcessState.SystemTime()
}

// A key names a test, or with test "" a package.
type key struct{ pkg, test string }

// A follower reads what go test -json says.
type follower struct {
	out     io.Writer
	verbose bool
	said    map[key][]string // of what has not ended
	below   map[key][]string // what failed subtests said
	skipped []string         // tests, with their reasons
	failed  [][]string       // of each failed test its name and what it said of itself
}

// follow copies what go test would print to out.
func follow(in io.Reader, out io.Writer, verbose bool) (*follower, error) {
	f := &follower{out: out, verbose: verbose, said: map[key][]string{}, below: map[key][]string{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // go itself says something
			continue
		}
		switch k := (key{e.Package, e.Test}); e.Action {
		case "build-output":
			fmt.Fprint(out, e.Output)
			f.failed = append(f.failed, []string{strings.TrimRight(e.Output, "\n")})
		case "output":
			if verbose {
				fmt.Fprint(out, e.Output)
			}
			f.said[k] = append(f.said[k], e.Output)
		case "pass", "skip", "fail":
			if e.Test == "" {
				f.packageEnds(k, e.Action)
			} else {
				f.testEnds(k, e.Action)
			}
			delete(f.said, k)
			delete(f.below, k)
		}
	}
	return f, lines.Err()
}

func (f *follower) testEnds(k key, how string) {
	switch how {
	case "skip":
		f.skipped = append(f.skipped, fmt.Sprintf("%s %s: %s", k.pkg, k.test, reason(f.said[k])))
	case "fail":
		if why := reasons(k, f.said[k]); len(why) > 1 || len(f.below[k]) == 0 {
			f.failed = append(f.failed, why)
		}
		all := append(f.said[k], f.below[k]...)
		if i := strings.LastIndexByte(k.test, '/'); i >= 0 { // shown with the test that it is of
			parent := key{k.pkg, k.test[:i]}
			f.below[parent] = append(f.below[parent], all...)
		} else {
			whole := key{k.pkg, ""}
			f.below[whole] = append(f.below[whole], all...)
		}
	}
}

func (f *follower) packageEnds(k key, how string) {
	if how == "fail" && len(f.below[k]) == 0 { // its program ended, or was not built
		f.failed = append(f.failed, reasons(k, f.said[k]))
	}
	if f.verbose {
		return
	}
	for _, s := range append(f.below[k], f.said[k]...) {
		if how == "fail" || strings.HasPrefix(s, "ok  \t") || strings.HasPrefix(s, "?   \t") {
			fmt.Fprint(f.out, s)
		}
	}
}

// reason returns what a skipped test said before it ended.
func reason(said []string) string {
	for _, s := range slices.Backward(said) {
		if s = strings.TrimSpace(s); s != "" && !strings.HasPrefix(s, "---") && !strings.HasPrefix(s, "===") {
			return s
		}
	}
	return "no reason given"
}

const (
	// Of a failed test its first message and its last ones are said again, of each few lines.
	lastMessages, messageLines = 3, 3
	// maxShown bounds what is said again of a line, in bytes, and maxBrief of all, in lines;
	// where there is more, fewLines of each test.
	maxShown, maxBrief, fewLines = 300, 34, 3
)

// message begins what a test, or a script of testscript, says of itself; crash what the
// runtime says of a program that it ends.
var (
	message = regexp.MustCompile(`^\s+(FAIL: )?[\w./-]+\.(go|txtar|txt):\d+: `)
	crash   = regexp.MustCompile(`^(panic: |fatal error: |exit status |WARNING: DATA RACE)`)
)

// reasons is what a failed test said of itself, without the logs beside it.
func reasons(k key, said []string) []string {
	var told [][]string // messages
	inside := 0         // of a message: how far its first line is indented, its others are further
	for _, s := range said {
		line := strings.TrimRight(s, "\n")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		switch {
		case message.MatchString(line) || crash.MatchString(line):
			told, inside = append(told, []string{cut(line)}), indent
		case len(told) > 0 && inside > 0 && indent > inside:
			if m := &told[len(told)-1]; len(*m) < messageLines {
				*m = append(*m, cut(line))
			}
		default:
			inside = 0
		}
	}
	if n := len(told); n > lastMessages+1 {
		told = append(told[:1], told[n-lastMessages:]...)
	}
	return append([]string{strings.TrimSpace("FAIL: " + k.pkg + " " + k.test)}, slices.Concat(told...)...)
}

func cut(line string) string {
	if len(line) > maxShown {
		return line[:maxShown] + " [...]"
	}
	return line
}

// brief is what of the failures fits the end of a long output.
func brief(stage string, failed [][]string) []string {
	lines := slices.Concat(failed...)
	if len(lines) > maxBrief {
		lines = nil
		for _, f := range failed {
			lines = append(lines, f[:min(len(f), fewLines)]...)
		}
	}
	if more := len(lines) - maxBrief; more > 0 {
		lines = append(lines[:maxBrief:maxBrief], fmt.Sprintf("[... %d lines more, see above]", more))
	}
	if stage != "" {
		stage = " in " + stage
	}
	return append([]string{"what failed" + stage + ", said again:"}, lines...)
}
