package node

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/mesh"
)

// The mesh's level rises to the one that every node that must act on it knows.
func TestCommonLevel(t *testing.T) {
	for name, c := range map[string]struct {
		now, own uint64
		others   []uint64
		want     uint64
	}{
		"alone":                 {1, 2, nil, 2},
		"all know it":           {1, 2, []uint64{2, 3}, 2},
		"one is older":          {1, 2, []uint64{2, 1}, 0},
		"one does not tell":     {1, 2, []uint64{0, 2}, 0},
		"all are ahead of some": {1, 4, []uint64{3, 4}, 3},
		"it is there already":   {3, 4, []uint64{3, 4}, 0},
	} {
		if got := commonLevel(c.now, c.own, c.others); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// The doctor compares the nodes' versions, and says what to do if they differ.
func TestDoctorComparesVersions(t *testing.T) {
	for name, c := range map[string]struct {
		runs  map[string]string
		level string
		found string
	}{
		"one node": {map[string]string{"a": "1.2.0"}, mesh.CheckOK, "all run 1.2.0"},
		"the same": {map[string]string{"a": "1.2.0", "b": "1.2.0"}, mesh.CheckOK, "all run 1.2.0"},
		"one is behind": {map[string]string{"c": "1.2.0", "a": "1.3.0", "b": "1.3.0"}, mesh.CheckWarn,
			"the nodes run different versions: 1.2.0: c; 1.3.0: a, b"},
		"one does not tell": {map[string]string{"a": "1.3.0", "b": ""}, mesh.CheckWarn, "a version that is not told: b"},
		"none tells":        {map[string]string{"a": "", "b": ""}, mesh.CheckOK, "all run a version that is not told"},
	} {
		var f findings
		f.compareVersions(c.runs)
		if len(f) != 1 || f[0].Name != "versions" || f[0].Level != c.level || !strings.Contains(f[0].Found, c.found) {
			t.Errorf("%s: %+v", name, f)
		}
		if told := strings.Contains(f[0].Do, "selvage drain"); told != (c.level == mesh.CheckWarn) {
			t.Errorf("%s: what to do: %q", name, f[0].Do)
		}
	}
}
