package governance

import (
	"fmt"
	"testing"
)

func TestLevelsAreReadWithoutFloatingPoint(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]Level{"0": 0, "0.7": 700, "1": 1000, "1.000": 1000, "0.05": 50, "7e-1": 700,
		"7E-1": 700, "0.07e1": 700,
		"0.001": 1, "0.0001": 1, "0.1234": 124, "1e-9": 1, "0.7000000": 700, "0e9": 0, "00.5": 500, "100e-2": 1000} {
		if got, err := ParseLevel(s); err != nil || got != want {
			t.Errorf("ParseLevel(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "-0.1", "1.001", "1.0001", "2", "1e1", "1e999", "NaN", "0x1", ".5", "5.", "0.7e",
		"0.7e1000", "0.7 ", "+1", "0.5e+-1", "٠"} {
		if got, err := ParseLevel(s); err == nil {
			t.Errorf("ParseLevel(%q) = %d, want an error", s, got)
		}
	}
}

func FuzzLevel(f *testing.F) {
	f.Add("0.7")
	f.Add("1e-3")
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseLevel(s)
		if err != nil {
			return
		}
		if l < 0 || l > Most {
			t.Fatalf("ParseLevel(%q) = %d, out of bounds", s, l)
		}
		if again, err := ParseLevel(l.String()); err != nil || again != l {
			t.Fatalf("%q is %d, and its text %q is %d (%v)", s, l, l.String(), again, err)
		}
	})
}

// TestMagnitudeIsExact: the magnitude is the least whole number that is not below the length of the vector.
func TestMagnitudeIsExact(t *testing.T) {
	t.Parallel()
	for _, e := range []Effect{{}, {1000, 1000, 1000, 1000, 1000}, {700, 500, 300, 800, 600}, {300, 400}, {1}, {1, 1},
		{0, 0, 999, 1, 1000}} {
		sum := int64(0)
		for _, l := range e {
			sum += int64(l) * int64(l)
		}
		m := int64(e.Magnitude())
		if m*m < sum || m > 0 && (m-1)*(m-1) >= sum {
			t.Errorf("the magnitude of %v is %d, its square sum is %d", e, m, sum)
		}
	}
	if got, want := fmt.Sprint(Effect{700, 500, 300, 800, 600}), "[0.7, 0.5, 0.3, 0.8, 0.6]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
