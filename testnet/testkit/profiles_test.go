package testkit

import (
	"runtime"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/node"
)

// parts are the parts of a node that profiles leave out, by the packages whose functions allocate for them.
var parts = map[string][]string{
	"discovery": {"github.com/selvage-mesh/selvage/discovery.", "github.com/hashicorp/memberlist."},
	"mind":      {"github.com/selvage-mesh/selvage/mind."},
}

// heldBy returns how many bytes each part holds that were allocated in its functions, or below them.
func heldBy() map[string]int64 {
	runtime.GC()
	runtime.GC() // the profile is as of the last complete cycle
	records := make([]runtime.MemProfileRecord, 100)
	for {
		n, ok := runtime.MemProfile(records, false)
		if ok {
			records = records[:n]
			break
		}
		records = make([]runtime.MemProfileRecord, n+1000)
	}
	out := map[string]int64{}
	for _, r := range records {
		frames := runtime.CallersFrames(r.Stack())
		in := map[string]bool{}
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			for part, packages := range parts {
				for _, p := range packages {
					in[part] = in[part] || strings.HasPrefix(f.Function, p)
				}
			}
		}
		for part := range parts {
			if in[part] {
				out[part] += r.InUseBytes()
			}
		}
	}
	return out
}

// runningIn returns how many goroutines are in the functions of a part.
func runningIn(part string) (n int) {
	b := make([]byte, 1<<20)
	for m := runtime.Stack(b, true); m == len(b); m = runtime.Stack(b, true) {
		b = make([]byte, 2*len(b))
	}
	for g := range strings.SplitSeq(string(b), "\n\n") {
		for _, p := range parts[part] {
			if strings.Contains(g, "\n"+p) {
				n++
				break
			}
		}
	}
	return n
}

// What a profile leaves out costs nothing: no goroutine, and no memory. The other profiles show that both are found.
// Not parallel: it measures the whole program.
func TestWhatAProfileLeavesOutCostsNothing(t *testing.T) {
	was := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	defer func() { runtime.MemProfileRate = was }()
	for _, c := range []struct {
		profile node.Profile
		has     map[string]bool
	}{
		{node.ProfileSingle, nil},
		{node.ProfileStatic, map[string]bool{"discovery": true}},
		{node.ProfileCognitive, map[string]bool{"discovery": true, "mind": true}},
	} {
		t.Run(string(c.profile), func(t *testing.T) {
			before := heldBy()
			Mesh(t, 1, func(_ int, conf *node.Config) {
				c.profile.Apply(conf, func(flag string) bool { return flag == "mdns" })
				conf.MDNS = node.MDNSOff // nobody is to be found on the network of whoever runs this
			})
			after := heldBy()
			for part := range parts {
				held, runs := after[part]-before[part], runningIn(part)
				t.Logf("%s: %d goroutines, %d bytes", part, runs, held)
				if c.has[part] != (runs > 0) || c.has[part] != (held > 0) {
					t.Errorf("profile %s: %s has %d goroutines and %d bytes", c.profile, part, runs, held)
				}
			}
		})
	}
}
