package spawn

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/container"
	"github.com/selvage-mesh/selvage/adapter/container/containertest"
	"github.com/selvage-mesh/selvage/kernel"
)

const boxImage = "localhost/selvage-spawn-test:1"

// greedy is what the test binary does in a container: it takes all that it can get of one resource.
func greedy(what string) {
	switch what {
	case "cpu":
		for n := uint64(1); n != 0; n++ { // for some centuries
		}
	case "memory":
		var all [][]byte
		for {
			b := make([]byte, 4<<20)
			for i := range b {
				b[i] = 1
			}
			all = append(all, b)
			fmt.Println(len(all))
			time.Sleep(20 * time.Millisecond)
		}
	case "nothing":
		os.Exit(0)
	case "disk":
		f, err := os.Create("/tmp/full")
		for range 64 {
			if err == nil {
				_, err = f.Write(make([]byte, 1<<20))
			}
		}
		fmt.Println(err)
		os.Exit(3)
	}
	time.Sleep(time.Hour)
}

// needBoxes makes an image of this binary, or skips the test. It returns the engine.
func needBoxes(t *testing.T) []string {
	t.Helper()
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Skip("this test needs to be a static program: CGO_ENABLED=0")
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	engine, why := containertest.Image(t, boxImage, "agent", self, "greedy", "nothing")
	if engine == nil {
		t.Skip(why)
	}
	return engine
}

// A process that ignores its limits is ended in a container as elsewhere, and one that an earlier life of the node left
// is removed when the node starts.
func TestLimitsOfContainers(t *testing.T) {
	engine := needBoxes(t)
	b := newBed(t, t.TempDir(), func(c *Config) {
		c.Engine, c.Label, c.Environ = engine, "boxtest-"+filepath.Base(t.TempDir()), os.Environ()
	})
	box := func(what string, limits func(*kernel.Limits)) kernel.PID {
		return b.spawn(kernel.Spec{Name: what, Image: boxImage, Command: []string{"/agent", "greedy", what},
			Capabilities: caps(limits)})
	}
	if x := b.ends(box("memory", func(l *kernel.Limits) { l.MemoryBytes = 48 << 20 })); x.Reason != kernel.Killed {
		t.Errorf("above its memory: %+v", x)
	}
	if x := b.ends(box("cpu", func(l *kernel.Limits) { l.CPUTimeMs = 1000 })); x.Reason != kernel.Timeout &&
		x.Reason != kernel.Killed {
		t.Errorf("above its processor time: %+v", x)
	}
	full := box("disk", func(l *kernel.Limits) { l.DiskBytes = 4 << 20 })
	if x := b.ends(full); x.Code != 3 {
		t.Errorf("above its disk: %+v", x)
	}
	b.until("the full disk is told", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return strings.Contains(b.log[full], "no space left")
	})
	for _, r := range []kernel.Resource{kernel.Messages, kernel.ToolCalls, kernel.Money} {
		pid := box("sleep", func(l *kernel.Limits) { l.Messages, l.ToolCalls, l.CostCents = 2, 2, 2 })
		for range 3 { // the third is refused, or the process has ended by then
			_ = b.Table().Charge(pid, r, 1)
		}
		if x := b.ends(pid); x.Reason != kernel.Killed || !strings.Contains(x.Message, string(r)) {
			t.Errorf("above its %s: %+v", r, x)
		}
	}
	left := b.boxPrefix() + "1"
	args := slices.Concat(engine[1:], []string{"run", "-d", "--name", left, "--label",
		container.LabelNode + "=" + b.cfg.Label}, container.Ulimits(), []string{boxImage, "/agent", "greedy", "sleep"})
	if said, err := exec.Command(engine[0], args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	mine := box("sleep", func(*kernel.Limits) {})
	names := func() string {
		out, err := b.engine(t.Context(), "ps", "-a", "--filter", "label="+container.LabelNode+"="+b.cfg.Label, "--format",
			"{{.Names}}")
		if err != nil {
			t.Error(err)
		}
		return out + "\n"
	}
	b.until("both containers to be there", func() bool {
		all := names()
		return strings.Contains(all, left+"\n") && strings.Contains(all, b.boxPrefix()+mine.String()+"\n")
	})
	b.sweepBoxes(mine)
	if all := names(); strings.Contains(all, left+"\n") || !strings.Contains(all, b.boxPrefix()+mine.String()+"\n") {
		t.Errorf("after the sweep there are %q", all)
	}
}
