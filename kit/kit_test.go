package kit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A fake test notes that it failed; Fatalf ends its goroutine as in a real one.
type fake struct {
	testing.TB
	said strings.Builder
}

func (f *fake) Helper()                      {}
func (f *fake) Errorf(s string, args ...any) { fmt.Fprintf(&f.said, s, args...) }
func (f *fake) Fatal(args ...any)            { fmt.Fprint(&f.said, args...); runtime.Goexit() }
func (f *fake) Fatalf(s string, args ...any) { f.Errorf(s, args...); runtime.Goexit() }

// fails plays f and returns what it says when it fails, "" when it passes.
func fails(f func(testing.TB)) string {
	var t fake
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(&t)
	}()
	<-done
	return t.said.String()
}

func TestGoldenNamesTheLineThatChanged(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("testdata", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", "a.txt"), []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := fails(func(t testing.TB) { Golden(t, "a.txt", "one\ntwo\n") }); said != "" {
		t.Errorf("the same text fails: %s", said)
	}
	for _, got := range []string{"one\nTWO\n", "one\n", "one\ntwo", "one\ntwo\nthree\n", "", "\none\ntwo\n"} {
		if said := fails(func(t testing.TB) { Golden(t, "a.txt", got) }); !strings.Contains(said, "a.txt changed:\nline ") {
			t.Errorf("%q passes: %s", got, said)
		}
	}
	if said := fails(func(t testing.TB) { Golden(t, "a.txt", "one\nTWO\n") }); !strings.Contains(said,
		"line 2\n got \"TWO\\n\"\nwant \"two\\n\"") {
		t.Errorf("said %q", said)
	}
	if said := fails(func(t testing.TB) { Golden(t, "none.txt", "") }); said == "" {
		t.Error("a golden file that is not there passes")
	}
}

func TestHexComesBack(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("testdata", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, hexLine, hexLine + 1, 3 * hexLine} {
		b := bytes.Repeat([]byte{0xa5}, n)
		if err := os.WriteFile(filepath.Join("testdata", "b.hex"), []byte(Hex(b)), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := FromHex(t, "b.hex"); !bytes.Equal(got, b) {
			t.Errorf("%d bytes come back as %d", n, len(got))
		}
	}
}

func TestAWaitEndsWhenItHoldsOrFailsAtItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Wait{Most: time.Minute, Every: time.Second, State: func() string { return "all is quiet" }}
		looked := 0
		if took := w.Until(t, "it has looked 5 times", func() bool { looked++; return looked == 5 }); took != 4*time.Second {
			t.Errorf("took %s, want 4s", took)
		}
		began := time.Now()
		said := fails(func(t testing.TB) { w.Until(t, "it rains", func() bool { return false }) })
		if want := "timed out after 1m0s waiting for: it rains\nall is quiet"; said != want {
			t.Errorf("said %q, want %q", said, want)
		}
		if took := time.Since(began); took != 61*time.Second {
			t.Errorf("gave up after %s, want 61s", took)
		}
	})
}

func TestAClockShowsTheDateThatATestHolds(t *testing.T) {
	t.Setenv(dateEnv, "")
	if d := time.Since(Now(t)); d < 0 || d > time.Minute {
		t.Errorf("without a date it is %s off the machine's clock", d)
	}
	leap := time.Date(2028, 2, 29, 23, 59, 50, 0, time.UTC)
	t.Setenv(dateEnv, leap.Format(time.RFC3339))
	if got := Now(t); got.Before(leap) || got.Sub(leap) > 5*time.Minute {
		t.Errorf("shows %s, want %s and what the program lives", got, leap)
	}
	synctest.Test(t, func(t *testing.T) {
		clock := Clock(t)
		if got := clock(); !got.Equal(leap) {
			t.Errorf("a bubble begins at %s, want %s", got, leap)
		}
		time.Sleep(10 * time.Second)
		if got := clock(); got.Month() != time.March || got.Day() != 1 {
			t.Errorf("10 s later it is %s", got)
		}
	})
	told := ClockAt(leap)
	if d := told().Sub(leap); d < 0 || d > time.Minute {
		t.Errorf("a story's clock is %s off its beginning", d)
	}
	t.Setenv(dateEnv, "tomorrow")
	if said := fails(func(t testing.TB) { Clock(t) }); !strings.Contains(said, "SELVAGE_DATE") {
		t.Errorf("said %q", said)
	}
}

func TestTheSameSeedGivesTheSameChances(t *testing.T) {
	draw := func() [3]uint64 { r := Rand(t); return [3]uint64{r.Uint64(), r.Uint64(), r.Uint64()} }
	t.Setenv(seedEnv, "")
	first := draw()
	if again := draw(); again != first {
		t.Errorf("drew %v, then %v", first, again)
	}
	t.Setenv(seedEnv, "7")
	if other := draw(); other == first {
		t.Errorf("seeds 1 and 7 both draw %v", first)
	}
	t.Setenv(seedEnv, "seven")
	if said := fails(func(t testing.TB) { Rand(t) }); !strings.Contains(said, "want a whole number") {
		t.Errorf("said %q", said)
	}
}
