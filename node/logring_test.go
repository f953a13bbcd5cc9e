package node

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestLogRingKeepsTheNewestLines(t *testing.T) {
	r := NewLogRing(io.Discard)
	if got := r.After(0, 10); len(got) != 0 {
		t.Errorf("an empty ring has %v", got)
	}
	const all = logLines + 70
	for i := 1; i <= all; i++ {
		fmt.Fprintf(r, "line %d%s\n", i, strings.Repeat(".", i%2*3*maxLogLine))
	}
	for _, c := range []struct {
		after        uint64
		limit        int
		first, count uint64
	}{
		{0, 5, all - 4, 5},
		{0, 5000, 71, logLines},
		{3, 2, 71, 2},
		{all - 1, 5, all, 1},
		{all, 5, 0, 0},
	} {
		got := r.After(c.after, c.limit)
		if uint64(len(got)) != c.count {
			t.Errorf("after %d: %d lines, want %d", c.after, len(got), c.count)
			continue
		}
		for i, l := range got {
			want := c.first + uint64(i)
			if l.Seq != want || !strings.HasPrefix(l.Line, fmt.Sprintf("line %d", want)) || len(l.Line) > maxLogLine {
				t.Errorf("after %d: line %d is %d %.20q", c.after, i, l.Seq, l.Line)
			}
		}
	}
}
