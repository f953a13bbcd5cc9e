package spawn

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// tailBytes is how much of the end of a bounded output is told when its process fails.
const tailBytes = 300

// A keptLog is a log that takes so many bytes, and remembers the last ones. It is safe for concurrent use.
type keptLog struct {
	Log
	mu   sync.Mutex // guards what follows
	left int64
	last string
}

// Write writes what there is room for.
func (k *keptLog) Write(stream, text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if stream != "system" {
		k.last += text
		if cut := len(k.last) - tailBytes; cut > 0 {
			for cut < len(k.last) && !utf8.RuneStart(k.last[cut]) {
				cut++
			}
			k.last = k.last[cut:]
		}
		switch n := int64(len(text)); {
		case k.left <= 0:
			return
		case n > k.left:
			k.Log.Write(stream, strings.ToValidUTF8(text[:k.left], ""))
			k.left = 0
			k.Log.Write("system", "\n[selvage] the rest of the output is dropped: it is more than its limit\n")
			return
		default:
			k.left -= n
		}
	}
	k.Log.Write(stream, text)
}

// tail returns the end of the output, on one line.
func (k *keptLog) tail() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Join(strings.Fields(k.last), " ")
}

// Rest closes the file of the log until the next write.
func (k *keptLog) Rest() { restLog(k.Log) }
