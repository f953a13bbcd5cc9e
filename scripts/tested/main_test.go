package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
)

// What go test -json says becomes what go test prints, and skips are kept with reasons.
func TestFollow(t *testing.T) {
	t.Parallel()
	in := strings.Join([]string{
		`{"Action":"start","Package":"m/a"}`,
		`{"Action":"output","Package":"m/a","Test":"TestQuiet","Output":"=== RUN   TestQuiet\n"}`,
		`{"Action":"output","Package":"m/a","Test":"TestQuiet","Output":"    a_test.go:3: noise\n"}`,
		`{"Action":"pass","Package":"m/a","Test":"TestQuiet"}`,
		`{"Action":"output","Package":"m/a","Test":"TestAbsent","Output":"    a_test.go:9: no curl\n"}`,
		`{"Action":"output","Package":"m/a","Test":"TestAbsent","Output":"--- SKIP: TestAbsent (0.00s)\n"}`,
		`{"Action":"skip","Package":"m/a","Test":"TestAbsent"}`,
		`{"Action":"output","Package":"m/a","Output":"PASS\n"}`,
		`{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.1s\n"}`,
		`{"Action":"pass","Package":"m/a"}`,
		`{"Action":"output","Package":"m/b","Test":"TestBad/one","Output":"        b_test.go:5: got 1, want 2\n"}`,
		`{"Action":"fail","Package":"m/b","Test":"TestBad/one"}`,
		`{"Action":"output","Package":"m/b","Test":"TestBad","Output":"--- FAIL: TestBad (0.00s)\n"}`,
		`{"Action":"fail","Package":"m/b","Test":"TestBad"}`,
		`{"Action":"output","Package":"m/b","Output":"FAIL\tm/b\t0.2s\n"}`,
		`{"Action":"fail","Package":"m/b"}`,
		`not JSON`,
	}, "\n")
	var out strings.Builder
	f, err := follow(strings.NewReader(in), &out, false)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"m/a TestAbsent: a_test.go:9: no curl"}; !slices.Equal(f.skipped, want) {
		t.Errorf("skipped %q, want %q", f.skipped, want)
	}
	got := out.String()
	for _, want := range []string{"ok  \tm/a\t0.1s\n", "b_test.go:5: got 1, want 2\n", "--- FAIL: TestBad",
		"FAIL\tm/b\t0.2s\n", "not JSON\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	for _, not := range []string{"noise", "PASS", "=== RUN"} {
		if strings.Contains(got, not) {
			t.Errorf("has %q:\n%s", not, got)
		}
	}
}

// The end of a long output says what each failed test said of itself: its messages, with
// the lines that belong to them, not the logs of its nodes, and no message twice.
func TestFailuresAreSaidAgain(t *testing.T) {
	t.Parallel()
	said := func(test string, lines ...string) (out []string) {
		for _, l := range lines {
			b, err := json.Marshal(event{Action: "output", Package: "m/a", Test: test, Output: l + "\n"})
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(b))
		}
		return out
	}
	ends := func(test, how string) string {
		return `{"Action":"` + how + `","Package":"m/a","Test":"` + test + `"}`
	}
	long := strings.Repeat("x", 2*maxShown)
	in := slices.Concat(
		said("TestMesh", "=== RUN   TestMesh", "    a_test.go:1: one", "    a_test.go:2: two", "    a_test.go:3: three"),
		said("TestMesh/sub", "    a_test.go:7: got 1", "        want 2", "{\"level\":\"INFO\"}", "        not of it"),
		[]string{ends("TestMesh/sub", "fail")},
		said("TestMesh", "    a_test.go:4: four", "    a_test.go:5: "+long, `{"level":"WARN"}`, "--- FAIL: TestMesh (9s)"),
		[]string{ends("TestMesh", "fail")},
		said("TestParent/sub", "        FAIL: testdata/x.txtar:9: no match"),
		[]string{ends("TestParent/sub", "fail"), ends("TestParent", "fail"), ends("TestFine", "pass"), ends("", "fail")},
		[]string{`{"Action":"output","Package":"m/b","Output":"panic: test timed out after 1m0s\n"}`,
			`{"Action":"fail","Package":"m/b"}`})
	f, err := follow(strings.NewReader(strings.Join(in, "\n")), io.Discard, false)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"what failed, said again:",
		"FAIL: m/a TestMesh/sub", "    a_test.go:7: got 1", "        want 2",
		"FAIL: m/a TestMesh", "    a_test.go:1: one", "    a_test.go:3: three", "    a_test.go:4: four",
		("    a_test.go:5: " + long)[:maxShown] + " [...]",
		"FAIL: m/a TestParent/sub", "        FAIL: testdata/x.txtar:9: no match",
		"FAIL: m/b", "panic: test timed out after 1m0s"}
	if got := brief("", f.failed); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	many := slices.Repeat(f.failed, 20)
	got, first := brief("rooms", many), "what failed in rooms, said again:"
	if len(got) > 40 || got[0] != first || !strings.Contains(got[len(got)-1], "more") {
		t.Errorf("of many failures:\n%s", strings.Join(got, "\n"))
	}
}
