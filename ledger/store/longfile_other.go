//go:build !linux

package store

// Elsewhere long files go through the page cache.
func setDirect(uintptr, bool) bool { return false }

func refusesDirect(error) bool { return false }

func writeBack(uintptr, int64, int64) {}
