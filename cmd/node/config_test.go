package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// configured runs configure on a command with one flag of each type.
func configured(t *testing.T, yaml string, args ...string) (map[string]string, error) {
	t.Helper()
	got := map[string]string{}
	var path string
	cmd := &cobra.Command{Use: "up", SilenceErrors: true, SilenceUsage: true, RunE: func(cmd *cobra.Command,
		_ []string) error {
		if err := configure(cmd, path); err != nil {
			return err
		}
		for _, name := range []string{"dir", "mesh-name", "slots", "seed", "label", "on"} {
			got[name] = cmd.Flags().Lookup(name).Value.String()
		}
		return nil
	}}
	f := cmd.Flags()
	f.StringVar(&path, "config", "", "")
	f.String("dir", "here", "")
	f.String("mesh-name", "", "")
	f.Int("slots", 4, "")
	f.StringArray("seed", nil, "")
	f.StringToString("label", nil, "")
	f.Bool("on", false, "")
	if yaml != "" {
		file := filepath.Join(t.TempDir(), "selvage.yaml")
		if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", file)
	}
	cmd.SetArgs(append([]string{}, args...))
	return got, cmd.Execute()
}

func TestFlagsGoBeforeVariablesBeforeTheFile(t *testing.T) {
	t.Setenv("SELVAGE_MESH_NAME", "variable")
	t.Setenv("SELVAGE_SEED", "c:1,d:2")
	t.Setenv("SELVAGE_API_KEY", "not a setting of a node")
	got, err := configured(t,
		"dir: file\nmesh-name: file\nslots: 7\nseed: [a:1]\nlabel:\n  zone.a: east\n  rack: 3\non: true\n", "--dir", "flag")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"dir": "flag", "mesh-name": "variable", "slots": "7", "seed": "[c:1,d:2]",
		"on": "true"} {
		if got[name] != want {
			t.Errorf("%s is %s, want %s", name, got[name], want)
		}
	}
	if l := got["label"]; !strings.Contains(l, "zone.a=east") || !strings.Contains(l, "rack=3") {
		t.Errorf("labels %s", l)
	}
}

func TestWhatIsWrongInAConfigurationIsNamed(t *testing.T) {
	for yaml, want := range map[string]string{
		"slot: 3\n":                      `unknown key "slot"; there are dir, label, mesh-name, on, seed, slots`,
		"slots: many\n":                  "slots: expected a whole number, found a text",
		"slots: 1.5\n":                   "slots: expected a whole number, found the number 1.5",
		"dir: [a]\n":                     "dir: expected a text, found a list",
		"dir: 7\n":                       "dir: expected a text, found the number 7",
		"on: \"yes\"\n":                  "on: expected true or false, found a text",
		"seed:\n  a: b\n":                "seed: expected a list of texts, found keys and values",
		"label: [a]\n":                   "label: expected keys and values, found a list",
		"label:\n  a: {b: c}\n":          `expected a text for "a", found keys and values`,
		"dir: a\ndir: b\n":               "already defined",
		"faults: x\n":                    `unknown key "faults"`,
		"- a\n":                          "cannot unmarshal",
		strings.Repeat("#", maxConfig+1): "larger than",
	} {
		if _, err := configured(t, yaml); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", yaml, err, want)
		}
	}
	t.Setenv("SELVAGE_SLOTS", "many")
	if _, err := configured(t, ""); err == nil || !strings.Contains(err.Error(), "SELVAGE_SLOTS") {
		t.Errorf("a bad variable: %v", err)
	}
}

// A file, variables and flags with several mistakes are told of all of them at once.
func TestConfigurationSaysAllThatIsWrong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "selvage.yaml")
	if err := os.WriteFile(path, []byte("slots: many\nprofil: single\nname: [a]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	status, _, talk := told(t, "up", "--config", path, "--dir", t.TempDir())
	for _, want := range []string{"slots", `unknown key "profil"`, "name"} {
		if status != cli.ExitMisused || !strings.Contains(talk, want) {
			t.Errorf("ended with %d and %q, want 2 and %s", status, talk, want)
		}
	}
	status, _, talk = told(t, "up", "--profile", "big", "--mind", "x", "--size", "y", "--log-level", "z", "--dir",
		t.TempDir())
	for _, want := range []string{"profile big", `mind "x"`, `size "y"`, "z"} {
		if status != cli.ExitMisused || !strings.Contains(talk, want) {
			t.Errorf("ended with %d and %q, want 2 and %s", status, talk, want)
		}
	}
}
