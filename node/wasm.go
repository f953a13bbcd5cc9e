package node

import (
	"net/http"
	"path/filepath"

	"github.com/selvage-mesh/selvage/adapter/wasm"
	"github.com/selvage-mesh/selvage/sandbox"
)

// wasmAdapter opens the sandbox, which closes with the node, and the adapter of agents
// in it. Compiled modules are stored in the data directory.
func (n *Node) wasmAdapter(dir string) (*wasm.Adapter, error) {
	engine, err := sandbox.Open(sandbox.Config{Dir: filepath.Join(dir, "sandbox"), Compiler: n.conf.Compiler,
		Logger: n.log})
	if err != nil {
		return nil, err
	}
	n.opened("sandbox", engine.Close)
	n.work.sandbox = engine
	return wasm.New(wasm.Config{Engine: engine, API: n.handler, Token: n.runToken, Private: n.conf.Private, Logger: n.log,
		Home: filepath.Join(dir, "runs", "workspaces"), Hide: n.floor(dir).Hidden,
		Weigh: n.Weigh})
}

// handler serves requests from within this process; nil while the node opens.
func (n *Node) handler() http.Handler {
	if s := n.work.api.Load(); s != nil {
		return s
	}
	return nil
}
