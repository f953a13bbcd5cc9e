package testkit

import (
	"os"
	"testing"

	"github.com/selvage-mesh/selvage/adapter/shim"
)

// The test binary is the run shim too, as the program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "run-shim" {
		os.Exit(shim.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

var shimCommand = []string{"/proc/self/exe", "run-shim"}
