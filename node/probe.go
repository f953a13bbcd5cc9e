package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/transport"
)

// probeWait bounds a probe of an adapter including the network: starting a program for
// its version may take a while on a small machine.
const probeWait = 30 * time.Second

// A probeAsk asks a node what it lacks for an adapter. It is sent as JSON in a frame of
// KindIPC; the answer is a list of checks.
type probeAsk struct {
	Type   string          `json:"type"`
	Config json.RawMessage `json:"config,omitempty"`
}

// probeAdapter checks whether a node has what an adapter needs.
func (n *Node) probeAdapter(ctx context.Context, on identity.NodeID, kind string, config json.RawMessage) ([]adapter.Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	if on == n.ID() {
		return n.probeHere(ctx, probeAsk{kind, config}), nil
	}
	ask, err := json.Marshal(probeAsk{kind, config})
	if err != nil {
		return nil, err
	}
	typ, payload, err := n.askOnce(ctx, on, ipcProbe, ask)
	if err != nil {
		return nil, err
	}
	var checks []adapter.Finding
	if typ != ipcProbed || json.Unmarshal(payload, &checks) != nil {
		return nil, fmt.Errorf("node %s does not know how to look", on)
	}
	return checks, nil
}

// answerProbe answers the probe of another node.
func (n *Node) answerProbe(c net.Conn, payload []byte) error {
	ctx, cancel := context.WithTimeout(n.ctx, probeWait)
	defer cancel()
	var ask probeAsk
	if err := json.Unmarshal(payload, &ask); err != nil {
		return err
	}
	b, err := json.Marshal(n.probeHere(ctx, ask))
	if err != nil {
		return err
	}
	if err := c.SetWriteDeadline(time.Now().Add(keepAliveTimeout)); err != nil {
		return err
	}
	return transport.WriteFrame(c, ipcProbed, b)
}

func (n *Node) probeHere(ctx context.Context, ask probeAsk) []adapter.Finding {
	p := adapter.Prober{Environ: os.Environ(), Has: n.work.runs,
		Run: func(ctx context.Context, path string, env map[string]string) (string, error) {
			env["SELVAGE_PROBE"] = path
			until := shim.BootTime() + probeWait
			end := n.shell().Run(ctx, process.ShellCommand{Line: `exec "$SELVAGE_PROBE" --version`, Dir: os.TempDir(), Env: env, Limit: probeWait, Grace: time.Second,
				Authority: func() time.Duration { return until }, Log: func(string, string) {}})
			if end.Error != "" {
				return "", fmt.Errorf("%s %s", end.Error, end.Stderr)
			}
			return end.Stdout, nil
		}}
	return p.Probe(ctx, ask.Type, ask.Config)
}
