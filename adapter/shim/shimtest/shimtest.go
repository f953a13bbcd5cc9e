// Package shimtest makes a test binary the shim of the runs that its tests start.
package shimtest

import (
	"os"
	"testing"

	"github.com/selvage-mesh/selvage/adapter/shim"
)

// word is the first argument by which a test binary knows that it is to be the shim.
const word = "run-shim"

// Command starts the test binary as the shim.
var Command = []string{"/proc/self/exe", word}

// Main is TestMain of a package whose tests start programs.
func Main(m *testing.M) {
	MaybeShim()
	os.Exit(m.Run())
}

// MaybeShim is the shim, and does not return, where the test binary was started by [Command].
// A TestMain that does more than [Main] calls it first: otherwise the test binary would be
// itself again, and start all runs anew.
func MaybeShim() {
	if len(os.Args) > 1 && os.Args[1] == word {
		os.Exit(shim.Main(os.Args[2:]))
	}
}
