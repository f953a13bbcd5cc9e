//go:build !linux

package sandbox

// limitProcess has nothing to set here; the deadline still holds.
func limitProcess(uint64) {}
