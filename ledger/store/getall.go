package store

import (
	"errors"
	"sync"
	"sync/atomic"
)

// GetAll reads keys with up to workers goroutines and returns the values in
// the order of the keys, nil for an absent one. It returns when all have.
func (sp *Span) GetAll(keys [][]byte, workers int) ([][]byte, error) {
	out := make([][]byte, len(keys))
	errs := make([]error, len(keys))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, len(keys)) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(keys) {
					return
				}
				v, err := sp.Get(keys[i])
				if err == nil {
					out[i] = v
				} else if !errors.Is(err, ErrNotFound) {
					errs[i] = err
				}
			}
		})
	}
	wg.Wait()
	return out, errors.Join(errs...)
}
