package sandbox

import (
	"bytes"
	"errors"
	"io"
	"strings"
)

// A stream keeps the beginning of what is written.
type stream struct {
	buf  bytes.Buffer
	max  int
	also io.Writer
	all  bool // also takes what is past max
}

func (s *stream) text() string { return strings.ToValidUTF8(s.buf.String(), "\uFFFD") }

var errFull = errors.New("output is full")

// out is a stream as the instance writes to it.
type out struct {
	i *Instance
	s *stream
}

// Write takes what there is room for; past that the guest gets an error, unless somebody else takes all.
func (o *out) Write(p []byte) (int, error) {
	o.i.spend(int64(len(p)) >> perRange)
	n := min(len(p), o.s.max-o.s.buf.Len())
	o.s.buf.Write(p[:n])
	if o.s.also != nil && o.s.all {
		return o.s.also.Write(p)
	}
	if o.s.also != nil && n > 0 {
		if _, err := o.s.also.Write(p[:n]); err != nil {
			return 0, err
		}
	}
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

// An input is standard input. A reader that blocks does not keep the call from
// ending: the read goes on in its goroutine, which ends when the reader does.
type input struct {
	i *Instance
	r io.Reader

	asked chan struct{}
	read  chan readResult
	rest  []byte
	err   error
}

type readResult struct {
	b   []byte
	err error
}

// inputChunk is what is read at once.
const inputChunk = 32 << 10

func (n *input) Read(p []byte) (int, error) {
	if n.r == nil || len(p) == 0 {
		return 0, io.EOF
	}
	if b, ok := n.r.(memoryReader); ok { // never blocks
		k, err := b.Read(p)
		n.i.spend(int64(k) >> perRange)
		return k, err
	}
	if len(n.rest) == 0 && n.err == nil {
		if n.asked == nil {
			n.asked, n.read = make(chan struct{}, 1), make(chan readResult, 1)
			go pump(n.r, n.asked, n.read)
		}
		n.asked <- struct{}{}
		n.i.leave()
		select {
		case got := <-n.read:
			n.rest, n.err = got.b, got.err
		case <-n.i.ctx.Done():
			panic(n.i.over())
		}
		n.i.join()
	}
	k := copy(p, n.rest)
	n.rest = n.rest[k:]
	n.i.spend(int64(k) >> perRange)
	if k == 0 && n.err != nil {
		return 0, n.err
	}
	return k, nil
}

// memoryReader is what readers of memory have and others have not.
type memoryReader interface {
	io.Reader
	Len() int
	Size() int64
}

func pump(r io.Reader, asked <-chan struct{}, read chan<- readResult) {
	for range asked {
		b := make([]byte, inputChunk)
		k, err := r.Read(b)
		read <- readResult{b[:k], err}
		if err != nil {
			return
		}
	}
}

func (n *input) close() {
	if n.asked != nil {
		close(n.asked)
		n.asked = nil
	}
}
