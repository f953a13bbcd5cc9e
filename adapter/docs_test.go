package adapter

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// docs/adapters.md has exactly the adapters of the catalogue, with their levels.
func TestTheTableOfAdaptersIsTheCatalogues(t *testing.T) {
	b, err := os.ReadFile("../docs/adapters.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string][]string{}
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(line, "|")
		if len(cells) < 7 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		kind := strings.Split(cells[1], "`")[1]
		told[kind] = append(told[kind], strings.TrimSpace(cells[3]))
		for _, n := range []int{2, 4, 6} {
			if strings.TrimSpace(cells[n]) == "" {
				t.Errorf("%s: a cell is empty", kind)
			}
		}
	}
	for _, k := range Kinds() {
		if !slices.Contains(told[k.Type], string(k.Level)) {
			t.Errorf("%s is %s, and the document says %q", k.Type, k.Level, told[k.Type])
		}
		if k.Level == Full && k.Program != "" && !k.Gateway {
			t.Errorf("%s is full, but asks no gateway", k.Type)
		}
		delete(told, k.Type)
	}
	for kind := range told {
		t.Errorf("the document has %s, which there is not", kind)
	}
}
