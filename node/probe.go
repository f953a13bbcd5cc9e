package node

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/identity"
)

// probeWait bounds a probe of an adapter, there and back: a program that is asked
// for its version may take a while to start on a small machine.
const probeWait = 30 * time.Second

// A probeAsk asks a node what it lacks for an adapter.
type probeAsk struct {
	Type   string          `json:"type"`
	Config json.RawMessage `json:"config,omitempty"`
}

// probeAdapter looks on a node whether it has what an adapter needs.
func (n *Node) probeAdapter(ctx context.Context, on identity.NodeID, kind string,
	config json.RawMessage) ([]adapter.Finding, error) {
	return n.probeQuestion().put(ctx, n, on, probeAsk{kind, config})
}

func (n *Node) probeQuestion() question[probeAsk, []adapter.Finding] {
	return question[probeAsk, []adapter.Finding]{ipcProbe, ipcProbed, probeWait, n.probeHere}
}

func (n *Node) probeHere(ctx context.Context, ask probeAsk) []adapter.Finding {
	p := adapter.Prober{Environ: os.Environ(), Has: n.work.runs,
		Run: func(ctx context.Context, path string, env map[string]string) (string, error) {
			env["SELVAGE_PROBE"] = path
			until := shim.BootTime() + probeWait
			end := n.shell().Run(ctx, process.ShellCommand{Line: `exec "$SELVAGE_PROBE" --version`, Dir: os.TempDir(), Env: env,
				Limit: probeWait, Grace: time.Second,
				Authority: func() time.Duration { return until }, Log: func(string, string) {}})
			if end.Error != "" {
				return "", fmt.Errorf("%s %s", end.Error, end.Stderr)
			}
			return end.Stdout, nil
		}}
	return p.Probe(ctx, ask.Type, ask.Config)
}
