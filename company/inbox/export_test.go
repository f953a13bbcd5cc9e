package inbox

// What the tests of this room reach into.

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
