package node

import (
	"bytes"
	"io"
	"sync"

	"github.com/selvage-mesh/selvage/api"
)

// A LogRing passes a log's output on, and keeps the newest lines for the node's
// operators. It contains nothing that may not be in a log.
type LogRing struct {
	to io.Writer

	mu    sync.Mutex // guards the fields below
	lines []string   // a ring; next is the oldest once it is full
	next  int
	seq   uint64 // of the newest line
}

const (
	// logLines is how many lines are kept, maxLogLine how many bytes of each: at most half a
	// megabyte, the last minutes of a busy node.
	logLines   = 1000
	maxLogLine = 2 << 10
)

// NewLogRing returns a ring that passes its lines on to to.
func NewLogRing(to io.Writer) *LogRing { return &LogRing{to: to} }

// Write takes whole lines, as slog's handlers write them.
func (r *LogRing) Write(p []byte) (int, error) {
	r.mu.Lock()
	for line := range bytes.Lines(p) {
		line = bytes.TrimRight(line, "\n")
		text := string(line[:min(len(line), maxLogLine)])
		if len(r.lines) < logLines {
			r.lines = append(r.lines, text)
		} else {
			r.lines[r.next] = text
			r.next = (r.next + 1) % logLines
		}
		r.seq++
	}
	r.mu.Unlock()
	return r.to.Write(p)
}

// After returns the oldest kept lines after seq, at most limit; for 0 it returns the
// newest.
func (r *LogRing) After(seq uint64, limit int) (out []api.LogLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.seq - uint64(len(r.lines)) + 1
	from := max(first, seq+1)
	if seq == 0 && uint64(limit) < uint64(len(r.lines)) {
		from = r.seq - uint64(limit) + 1
	}
	for s := from; s <= r.seq && len(out) < limit; s++ {
		out = append(out, api.LogLine{Seq: s, Line: r.lines[(r.next+int(s-first))%len(r.lines)]})
	}
	return out
}

func (n *Node) logLines(after uint64, limit int) []api.LogLine {
	if n.conf.Lines == nil {
		return nil
	}
	return n.conf.Lines.After(after, limit)
}
