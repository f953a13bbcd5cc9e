package apitest

import (
	"os"

	"github.com/selvage-mesh/selvage/adapter/shim"
)

// A test binary is the shim of the runs that its tests start; without this it would be
// itself again, and start them anew.
func init() {
	if len(os.Args) > 1 && os.Args[1] == "run-shim" {
		os.Exit(shim.Main(os.Args[2:]))
	}
}
