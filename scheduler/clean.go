package scheduler

import (
	"maps"
	"slices"
	"sync"

	"github.com/selvage-mesh/selvage/company/secret"
)

// A cleaner removes a run's secrets from everything that its adapter reports,
// even when the adapter already does so.
type cleaner struct {
	whole  *secret.Redactor // for texts that arrive whole; stateless
	values []string
	write  func(stream, text string)

	mu      sync.Mutex // guards streams and the order of writes
	streams map[string]*secret.Redactor
}

func newCleaner(values []string, write func(stream, text string)) *cleaner {
	return &cleaner{whole: secret.NewRedactor(values), values: values, write: write,
		streams: map[string]*secret.Redactor{}}
}

// log appends to a stream of the run's log. Bytes that may begin a secret wait
// for the bytes after them.
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

// flush writes the bytes that still wait. It is called when the run has ended.
func (c *cleaner) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, stream := range slices.Sorted(maps.Keys(c.streams)) {
		if text := c.streams[stream].Rest(); text != "" {
			c.write(stream, text)
		}
	}
}
