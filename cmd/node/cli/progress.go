package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// progressEvery is the interval of updates; shorter work shows no progress.
const progressEvery = 500 * time.Millisecond

// A Progress shows a person the progress of long work: one line of the terminal that is
// rewritten, and erased when the work ends. If standard error is not a terminal it
// writes nothing.
type Progress struct {
	to   io.Writer // nil: silent
	what string
	stop chan struct{}
	done sync.WaitGroup

	mu  sync.Mutex
	far string // guarded by mu
}

// Progress starts to show the progress of work. The caller must call End.
func (c *CLI) Progress(cmd *cobra.Command, what string) *Progress {
	f, ok := cmd.ErrOrStderr().(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return &Progress{}
	}
	return startProgress(f, what, progressEvery)
}

func startProgress(to io.Writer, what string, every time.Duration) *Progress {
	p := &Progress{to: to, what: what, stop: make(chan struct{})}
	p.done.Go(func() {
		began, tick := time.Now(), time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-p.stop:
				fmt.Fprint(to, "\r\x1b[K")
				return
			case <-tick.C:
				p.mu.Lock()
				far := p.far
				p.mu.Unlock()
				fmt.Fprintf(to, "\r\x1b[K%s%s, %s", what, far, distance(time.Since(began)))
			}
		}
	})
	return p
}

// Say sets the text of the progress.
func (p *Progress) Say(far string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.far = ": " + far
}

// Bytes sets the progress in bytes; total is 0 if it is unknown.
func (p *Progress) Bytes(done, total int64) {
	const mega = 1 << 20
	if total > 0 {
		p.Say(fmt.Sprintf("%.1f of %.1f MB", float64(done)/mega, float64(total)/mega))
	} else {
		p.Say(fmt.Sprintf("%.1f MB", float64(done)/mega))
	}
}

// End erases the line. It may be called repeatedly.
func (p *Progress) End() {
	if p.to == nil {
		return
	}
	close(p.stop)
	p.done.Wait()
	p.to = nil
}

// Reader returns a reader that counts what is read from r, which has total bytes.
func (p *Progress) Reader(r io.Reader, total int64) io.Reader {
	return &counted{p: p, r: r, total: total}
}

// Writer returns a writer that counts what is written to w.
func (p *Progress) Writer(w io.Writer) io.Writer { return &counted{p: p, w: w} }

type counted struct {
	p           *Progress
	r           io.Reader
	w           io.Writer
	done, total int64
}

func (c *counted) add(n int) {
	c.done += int64(n)
	c.p.Bytes(c.done, c.total)
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.add(n)
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.add(n)
	return n, err
}
