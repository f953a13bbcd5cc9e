package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
)

func TestARunFindsItsInstructions(t *testing.T) {
	t.Parallel()
	b := newBed(t, sh(`cat "$AGENT_INSTRUCTIONS_FILE" "$AGENT_INSTRUCTIONS_DIR/notes/HOW.md"; case `+
		`"$AGENT_INSTRUCTIONS_DIR" in "$PAPERCLIP_SCRATCH_DIR"/*) echo below;; esac`, "env",
		map[string]any{"AGENT_INSTRUCTIONS_FILE": "/etc/passwd"}))
	b.inv.Instructions = &company.RunInstructions{Entry: "AGENTS.md", Texts: map[string]string{"AGENTS.md": "Lead.\n",
		"notes/HOW.md": "Slowly.\n"}}
	if o := b.invoke(); o.Status != entity.RunSucceeded || *o.Stdout != "Lead.\nSlowly.\nbelow\n" {
		t.Errorf("%+v %q", o, *o.Stdout)
	}
	if left, err := os.ReadDir(filepath.Join(b.dir, "scratch")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestInstructionsStayInTheirFolder(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"../out.md", "/out.md", "a/../../out.md"} {
		b := newBed(t, sh("true"))
		b.inv.Instructions = &company.RunInstructions{Entry: "AGENTS.md", Texts: map[string]string{path: "x"}}
		if o := b.invoke(); o.Status != entity.RunFailed || !strings.Contains(o.Error, "instructions") {
			t.Errorf("%s: %+v", path, o)
		}
	}
}
