package apitest

import (
	"github.com/selvage-mesh/selvage/api/mcp"
	"github.com/selvage-mesh/selvage/api/routes"
)

// version is what a harness says it is.
const version = "test"

// Tools are the tools of a client that runs without a node.
func Tools() ([]*mcp.Tool, error) { return routes.Tools(version) }
