package portable

const (
	// MaxFiles bounds the files of a package: ten thousand issues with documents,
	// and as many attachments.
	MaxFiles = 40_000
	// MaxBytes bounds the sum of their texts: the size of one request that a node accepts.
	MaxBytes = 48 << 20
	// MaxText bounds one text file. A document is at most that long.
	MaxText = 4 << 20
	// MaxSidecar bounds the sidecar, which holds the comments of all issues.
	MaxSidecar = 32 << 20
	// maxSidecarMarks bounds the characters in it that may separate values, including commas
	// in texts: decoding takes about 200 bytes per value.
	maxSidecarMarks = 1_500_000
	// maxPath bounds a path in bytes, maxDepth the number of its parts.
	maxPath  = 512
	maxDepth = 16
	// maxWarnings bounds the warnings about one package.
	maxWarnings = 200
)
