package app

import "testing"

func TestVersionsAndRanges(t *testing.T) {
	order := []string{"0.9.0", "1.0.0-alpha", "1.0.0-beta", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0"}
	for i := range order[1:] {
		if compareVersions(order[i], order[i+1]) >= 0 || compareVersions(order[i+1], order[i]) <= 0 {
			t.Errorf("%s is not below %s", order[i], order[i+1])
		}
	}
	for _, bad := range []string{"", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.x", "1.2.3-", "v1.2.3"} {
		if _, ok := ParseVersion(bad); ok {
			t.Errorf("%q is a version", bad)
		}
	}
	for _, c := range []struct {
		version, want string
		fits          bool
	}{{"1.2.3", "1.2.3", true}, {"1.2.4", "1.2.3", false}, {"1.2.4", ">=1.2.3", true}, {"2.0.0", ">=1.2.3", true},
		{"1.9.0", "^1.2.3", true}, {"2.0.0", "^1.2.3", false}, {"1.2.2", "^1.2.3", false}, {"0.0.1", "*", true}} {
		if fits, err := Satisfies(c.version, c.want); err != nil || fits != c.fits {
			t.Errorf("%s in %s: %v %v", c.version, c.want, fits, err)
		}
	}
	for _, bad := range []string{"", "1", "<2.0.0", "~1.2.3", "latest"} {
		if _, err := Satisfies("1.0.0", bad); err == nil {
			t.Errorf("%q is a range", bad)
		}
	}
}
