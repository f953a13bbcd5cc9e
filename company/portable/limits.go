package portable

const (
	// MaxFiles bounds the files of a package: ten thousand issues with documents,
	// and as many attachments.
	MaxFiles = 40_000
	// MaxBytes bounds their sum, as text: what a node takes in one request.
	MaxBytes = 48 << 20
	// MaxText bounds one text file. A document is at most that long.
	MaxText = 4 << 20
	// MaxSidecar bounds the sidecar, which holds the comments of all issues.
	MaxSidecar = 32 << 20
	// maxSidecarMarks bounds what separates values in it, commas in texts among
	// them: each value takes about 200 bytes while the sidecar is read.
	maxSidecarMarks = 1_500_000
	// maxPath bounds a path, maxDepth its parts.
	maxPath  = 512
	maxDepth = 16
	// maxWarnings bounds what is told about one package.
	maxWarnings = 200
)
