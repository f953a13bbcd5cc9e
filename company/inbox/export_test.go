package inbox

// Unexported names that the tests of this package use.

type Candidate = candidate

const (
	IndexedIssues = indexedIssues
	TheVoices     = theVoices
)

var (
	Hear      = hear
	Heard     = heard
	Indexings = indexings
	Spoke     = spoke
	UserVoice = userVoice
	Voices    = voices
)
