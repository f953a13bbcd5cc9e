package wasm

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"sync"

	"github.com/selvage-mesh/selvage/sandbox"
)

// agentModule is examples/agent as built by `make agent`; agentSources is the SHA-256 of the
// sources from which it was built.
var (
	//go:embed agent.wasm.gz
	agentModule []byte
	//go:embed agent.sum
	agentSources string
)

// defaultAgent returns the module that runs if none is configured.
var defaultAgent = sync.OnceValues(func() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(agentModule))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, sandbox.DefaultModule+1))
})
