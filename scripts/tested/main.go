// Command tested runs go test and says what go test leaves out: which tests were skipped
// and why, and how long the whole took. Where SELVAGE_CI is set a skipped test is a failed
// one, but for those that -short leaves out.
//
//	tested [-stage NAME] [go test's arguments]
//
// It prints what go test prints, and appends a line to the file that SELVAGE_STAGES names:
// how long it took, how much of the processors it used, which on a busy machine says more,
// and the stage.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	skipped, err := follow(pipe, os.Stdout, slices.Contains(args, "-v"))
	if werr := cmd.Wait(); err == nil {
		err = werr
	}
	if file := os.Getenv("SELVAGE_STAGES"); file != "" && stage != "" {
		if f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			fmt.Fprintf(f, "%5.0f s  %5.0f s CPU  %s\n", time.Since(start).Seconds(), used(cmd).Seconds(), stage)
			f.Close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tested:", err)
		os.Exit(1)
	}
	if slices.Contains(args, "-short") {
		return
	}
	for _, s := range skipped {
		fmt.Println("skipped:", s)
	}
	if len(skipped) > 0 && os.Getenv("SELVAGE_CI") != "" {
		fmt.Printf("FAIL: %d tests were skipped, and with SELVAGE_CI set none may be\n", len(skipped))
		os.Exit(1)
	}
}

// used is the time of processors that a command and all that it waited for have used: to
// compile and link the tests, and to run them.
func used(c *exec.Cmd) time.Duration {
	return c.ProcessState.UserTime() + c.ProcessState.SystemTime()
}

// follow copies what go test would print to out, and returns the tests that were skipped
// with their reasons.
func follow(in io.Reader, out io.Writer, verbose bool) (skipped []string, err error) {
	type key struct{ pkg, test string }
	said := map[key][]string{} // by test; of the package itself with test ""
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // go itself says something
			continue
		}
		k, whole := key{e.Package, e.Test}, key{e.Package, ""}
		switch e.Action {
		case "build-output":
			fmt.Fprint(out, e.Output)
		case "output":
			if verbose {
				fmt.Fprint(out, e.Output)
			}
			said[k] = append(said[k], e.Output)
		case "pass", "skip", "fail":
			if e.Test == "" {
				if !verbose {
					for _, s := range said[whole] {
						if e.Action == "fail" || strings.HasPrefix(s, "ok  \t") || strings.HasPrefix(s, "?   \t") {
							fmt.Fprint(out, s)
						}
					}
				}
				delete(said, whole)
				continue
			}
			switch e.Action {
			case "skip":
				skipped = append(skipped, fmt.Sprintf("%s %s: %s", e.Package, e.Test, reason(said[k])))
			case "fail":
				if i := strings.LastIndexByte(e.Test, '/'); i >= 0 { // shown with the test that it is of
					parent := key{e.Package, e.Test[:i]}
					said[parent] = append(said[parent], said[k]...)
				} else {
					said[whole] = append(said[whole], said[k]...)
				}
			}
			delete(said, k)
		}
	}
	return skipped, lines.Err()
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
