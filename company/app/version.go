package app

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/ledger"
)

// A Version is MAJOR.MINOR.PATCH, with an optional -PRERELEASE that is older than the version without it.
type Version struct {
	major, minor, patch uint64
	pre                 string
}

// ParseVersion reads a version.
func ParseVersion(s string) (v Version, ok bool) {
	s, v.pre, ok = strings.Cut(s, "-")
	if ok && v.pre == "" || len(s) > 60 || strings.ContainsAny(v.pre, " \t/") {
		return v, false
	}
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return v, false
	}
	for n, to := range []*uint64{&v.major, &v.minor, &v.patch} {
		i, err := strconv.ParseUint(parts[n], 10, 32)
		if err != nil || len(parts[n]) > 1 && parts[n][0] == '0' {
			return v, false
		}
		*to = i
	}
	return v, true
}

// Compare returns -1, 0 or 1.
func (v Version) Compare(w Version) int {
	pre := strings.Compare(v.pre, w.pre)
	if (v.pre == "") != (w.pre == "") {
		pre = -pre
	}
	return cmp.Or(cmp.Compare(v.major, w.major), cmp.Compare(v.minor, w.minor), cmp.Compare(v.patch, w.patch), pre)
}

// compareVersions compares two versions that were checked when they were stored.
func compareVersions(a, b string) int {
	v, _ := ParseVersion(a)
	w, _ := ParseVersion(b)
	return v.Compare(w)
}

// Satisfies reports whether a version fits a range: "1.2.3" is that version, ">=1.2.3" it or a later one, "^1.2.3" it
// or a later one with the same major version, "*" any.
func Satisfies(version, want string) (bool, error) {
	bad := ledger.Refuse(ledger.Invalid, nil, "%q is not a range of versions: write 1.2.3, >=1.2.3, ^1.2.3 or *", want)
	if want == "*" {
		return true, nil
	}
	base := strings.TrimPrefix(strings.TrimPrefix(want, ">="), "^")
	w, ok := ParseVersion(base)
	if !ok {
		return false, bad
	}
	v, ok := ParseVersion(version)
	if !ok {
		return false, nil
	}
	switch {
	case strings.HasPrefix(want, ">="):
		return v.Compare(w) >= 0, nil
	case strings.HasPrefix(want, "^"):
		return v.Compare(w) >= 0 && v.major == w.major, nil
	}
	return v.Compare(w) == 0, nil
}
