package apitest

import "iter"

// NoState is the state below a fresh Tx: nothing.
type NoState struct{}

func (NoState) Get([]byte) ([]byte, bool) { return nil, false }

func (NoState) Scan([]byte, []byte, bool) iter.Seq2[[]byte, []byte] {
	return func(func([]byte, []byte) bool) {}
}
