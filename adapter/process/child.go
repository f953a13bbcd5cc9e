package process

import (
	"fmt"
	"os"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim"
)

// A Child is a command under a shim, with its output. Create it with Begin, call Follow once,
// wait for the value from Ended, and then call Output.
type Child struct {
	*shim.Process
	ended          chan Ending
	outR, errR     *os.File
	stdout, stderr <-chan string
	deadline       time.Duration // as of the last renewal
}

// An Ending is how a child ended. Err means that its shim was lost, so the exit is unknown.
type Ending struct {
	Exit shim.Exit
	Err  error
}

// Begin starts a command with a pipe for each of its outputs. It returns the error of start
// unchanged.
func Begin(spec shim.Spec, start func(spec shim.Spec, stdout, stderr *os.File) (*shim.Process, error)) (*Child, error) {
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("no pipe could be made: %w", err)
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		outR.Close()
		outW.Close()
		return nil, fmt.Errorf("no pipe could be made: %w", err)
	}
	p, err := start(spec, outW, errW)
	outW.Close()
	errW.Close()
	if err != nil {
		outR.Close()
		errR.Close()
		return nil, err
	}
	c := &Child{Process: p, ended: make(chan Ending, 1), outR: outR, errR: errR, deadline: spec.Deadline}
	go func() {
		exit, err := p.Wait()
		c.ended <- Ending{exit, err}
	}()
	return c, nil
}

// Follow passes the child's output to log, with its secrets redacted.
func (c *Child) Follow(log func(stream, text string), secrets []string) {
	c.follow(log, log, secrets, nil)
}

// follow has a log for each of the outputs; hear gets the raw standard output.
func (c *Child) follow(out, err func(stream, text string), secrets []string, hear func([]byte)) {
	c.stdout, c.stderr = follow(c.outR, "stdout", out, secrets, hear), follow(c.errR, "stderr", err, secrets, nil)
}

// Ended returns a channel that yields one ending.
func (c *Child) Ended() <-chan Ending { return c.ended }

// Renew sends the shim the time until which the child may run. If that has passed, the shim
// kills the process tree at once.
func (c *Child) Renew(authority time.Duration) {
	if authority != c.deadline {
		c.deadline = authority
		c.Extend(max(authority, 1))
	}
}

// Output returns the ends of the child's output, after it has ended. No process is left that
// could write, so output that is not read within drainWait does not exist.
func (c *Child) Output() (stdout, stderr string) {
	drained := time.AfterFunc(drainWait, c.closePipes)
	defer c.closePipes()
	defer drained.Stop()
	return <-c.stdout, <-c.stderr
}

func (c *Child) closePipes() {
	c.outR.Close()
	c.errR.Close()
}
