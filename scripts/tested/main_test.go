package main

import (
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
	skipped, err := follow(strings.NewReader(in), &out, false)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"m/a TestAbsent: a_test.go:9: no curl"}; !slices.Equal(skipped, want) {
		t.Errorf("skipped %q, want %q", skipped, want)
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
