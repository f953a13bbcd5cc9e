// Package plugin is what an app is: its manifest, its signed archive, and the steps that install it, change it and take
// it away. It reads no state of its own, and does nothing by itself: the API submits what it plans.
package plugin

// Limits of an app.
const (
	// MaxArchive bounds an archive, MaxFile a file in it, maxFiles their number.
	MaxArchive = 8 << 20
	MaxFile    = 4 << 20
	maxFiles   = 500
	// maxText bounds a text of a manifest, in bytes, maxList a list of one.
	maxText = 20_000
	maxName = 200
	maxList = 100
	// maxProblems bounds how many problems are told at once.
	maxProblems = 100
)

// Names of a manifest in its folder, the first that is there.
var ManifestNames = []string{"selvage-app.toml", "selvage-app.json"}
