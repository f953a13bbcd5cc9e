package scheduler

import (
	"maps"
	"slices"
	"sync"

	"github.com/selvage-mesh/selvage/company/secret"
)

// A cleaner takes a run's secrets out of all that its adapter tells, whatever
// the adapter does about them itself.
type cleaner struct {
	whole  *secret.Redactor // for texts that come in one piece; it holds no state
	values []string
	write  func(stream, text string)

	mu      sync.Mutex // guards streams and the order of writes
	streams map[string]*secret.Redactor
}

func newCleaner(values []string, write func(stream, text string)) *cleaner {
	return &cleaner{whole: secret.NewRedactor(values), values: values, write: write, streams: map[string]*secret.Redactor{}}
}

// log appends to a stream of the run's log. What may be the beginning of a
// secret waits for what follows.
func (c *cleaner) log(stream, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.streams[stream]
	if r == nil {
		r = secret.NewRedactor(c.values)
		c.streams[stream] = r
	}
	if text = r.Next(text); text != "" {
		c.write(stream, text)
	}
}

// flush writes what still waits, when the run is over.
func (c *cleaner) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, stream := range slices.Sorted(maps.Keys(c.streams)) {
		if text := c.streams[stream].Rest(); text != "" {
			c.write(stream, text)
		}
	}
}
