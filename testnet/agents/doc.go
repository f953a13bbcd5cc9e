// Package agents runs the real command lines that work as agents on a mesh, with
// upstreams that answer in the vendors' wire formats. They are installed by
// `make clients` and are no part of the program; without them its tests skip.
package agents
