package apitest

import (
	"sync"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/mcp"
	"github.com/selvage-mesh/selvage/api/routes"
)

// version is what a harness says it is.
const version = "test"

var written struct {
	once sync.Once
	doc  []byte
	err  error
}

// description is what the first server that was asked says of the API. All that are of
// one version say the same, and to write it takes a third of a second.
func description(own func() ([]byte, error)) ([]byte, error) {
	written.once.Do(func() { written.doc, written.err = own() })
	return written.doc, written.err
}

// Tools are the tools of a client that runs without a node, see [routes.Tools].
func Tools() ([]*mcp.Tool, error) {
	doc, err := description(func() ([]byte, error) { return routes.Describe(version) })
	if err != nil {
		return nil, err
	}
	return api.ToolsOf(doc)
}
