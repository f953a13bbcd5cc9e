package shim

import (
	"errors"
	"os"
	"sync"
	"time"
)

// spareFor is how long a shim waits for a run before it is ended. After that long without a
// run, the next run may wait for the start of a shim.
const spareFor = time.Minute

// spareAfter is how long after the start of a command the next shim is started, if none is
// needed sooner.
const spareAfter = 25 * time.Millisecond

// A Launcher starts processes under shims. While runs keep coming, it keeps one shim ready:
// starting a program of this size takes longer than all other steps between the placement of
// a run and its command. It is safe for concurrent use.
type Launcher struct {
	argv []string

	mu     sync.Mutex // guards the fields below
	spare  *Process
	making chan struct{} // closed when the shim that is being started is ready or has failed; nil: none is
	idle   *time.Timer   // ends the spare
	closed bool
}

// NewLauncher returns a launcher that starts argv, as [Start] does.
func NewLauncher(argv []string) *Launcher { return &Launcher{argv: argv} }

// Ready says that a command will be started soon. It does not block.
func (l *Launcher) Ready() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.spare != nil || l.making != nil {
		return
	}
	l.making = make(chan struct{})
	go func() {
		p, err := launch(l.argv, false)
		l.mu.Lock()
		defer l.mu.Unlock()
		close(l.making)
		l.making = nil
		switch {
		case err != nil: // Start will get the same error and return it
		case l.closed:
			_ = p.abandon(nil)
		default:
			l.spare = p
			l.idle = time.AfterFunc(spareFor, func() { l.drop(p) })
		}
	}()
}

// drop ends a spare shim that was not used.
func (l *Launcher) drop(p *Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spare == p && p != nil {
		l.spare = nil
		_ = p.abandon(nil)
	}
}

// take returns the spare shim, nil if there is none.
func (l *Launcher) take() *Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	if making := l.making; making != nil && l.spare == nil {
		l.mu.Unlock()
		<-making
		l.mu.Lock()
	}
	p := l.spare
	if l.spare = nil; p != nil {
		l.idle.Stop()
	}
	return p
}

// Start is like the function [Start], with a standard input for the command; nil means an empty
// one. The caller closes stdin as it does the outputs.
func (l *Launcher) Start(spec Spec, stdin, stdout, stderr *os.File) (*Process, error) {
	if spec.Tool { // a spare shim does not have the node's privileges
		p, err := launch(l.argv, true)
		if err != nil {
			return nil, err
		}
		return p.begin(spec, stdin, stdout, stderr)
	}
	// Starting the next shim at once would take the CPU from the command that starts.
	defer time.AfterFunc(spareAfter, l.Ready)
	if p := l.take(); p != nil {
		p, err := p.begin(spec, stdin, stdout, stderr)
		if !errors.Is(err, errNoShim) {
			return p, err
		}
	}
	p, err := launch(l.argv, false)
	if err != nil {
		return nil, err
	}
	return p.begin(spec, stdin, stdout, stderr)
}

// Close ends the spare shim. Commands that were started continue.
func (l *Launcher) Close() {
	l.mu.Lock()
	l.closed = true
	p := l.spare
	l.mu.Unlock()
	l.drop(p)
}
