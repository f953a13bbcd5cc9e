// Package boards has tests only: the builds for arm64 and armv7 run under qemu's
// user emulation and form real meshes. Without qemu they are skipped.
package boards
