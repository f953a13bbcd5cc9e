package node

import (
	"context"
	"os"
	"sync"

	"github.com/selvage-mesh/selvage/adapter/container"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/scheduler"
)

// addContainers adds the adapter of agents in containers if this machine has a container
// engine; otherwise no such run is placed here. It removes containers that an earlier
// process of the node left.
func (n *Node) addContainers(adapters map[string]scheduler.Adapter, p *process.Adapter, dir string) error {
	engine := n.conf.Containers
	if len(engine) == 0 {
		engine = container.Find()
	}
	if len(engine) == 0 || engine[0] == "none" || len(n.conf.Shim) == 0 {
		return nil
	}
	a, err := container.New(container.Config{Engine: engine, Node: string(n.ID()), Shim: n.conf.Shim, Dir: p.Dir(),
		Private: n.floor(dir).Hidden, Process: p,
		API: n.handler, Token: n.runToken, Environ: os.Environ(), Logger: n.log})
	if err != nil {
		return err
	}
	adapters["container"] = a
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := a.Sweep(ctx); err != nil && ctx.Err() == nil {
			n.log.Info("containers that were left over can not be looked for", "error", err)
		}
	})
	n.opened("containers", func() error {
		stop()
		wg.Wait()
		return nil
	})
	return nil
}
