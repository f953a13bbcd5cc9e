package portable

const (
	// MaxFiles bounds the files of a package: a thousand issues with documents,
	// and as many attachments.
	MaxFiles = 5_000
	// MaxBytes bounds their sum, as text: what a node takes in one request.
	MaxBytes = 48 << 20
	// MaxText bounds one text file. A document is at most that long.
	MaxText = 4 << 20
	// MaxSidecar bounds the sidecar, which holds the comments of all issues.
	MaxSidecar = 16 << 20
	// maxPath bounds a path, maxDepth its parts.
	maxPath  = 512
	maxDepth = 16
	// maxWarnings bounds what is told about one package.
	maxWarnings = 200
)
