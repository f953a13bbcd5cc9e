package apitest

import "github.com/selvage-mesh/selvage/adapter/shim/shimtest"

// The tests of many rooms start runs by a harness, and none of them has a TestMain for it.
func init() { shimtest.MaybeShim() }
