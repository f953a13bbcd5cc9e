package process

import (
	"fmt"
	"os"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim"
)

// A Child is a command under a shim, whose output is followed. Make one with
// Begin, call Follow once, wait for what Ended gives, and then for Output.
type Child struct {
	*shim.Process
	ended          chan Ending
	outR, errR     *os.File
	stdout, stderr <-chan string
	deadline       time.Duration // as of the last renewal
}

// An Ending is how a child ended. Err says that nobody knows: its shim was lost.
type Ending struct {
	Exit shim.Exit
	Err  error
}

// Begin starts a command with a pipe for each of its outputs. The error of start
// comes back as it is.
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

// Follow hands what the child writes to log, without its secrets.
func (c *Child) Follow(log func(stream, text string), secrets []string) {
	c.follow(log, log, secrets, nil)
}

// follow has a log for each of the outputs, and hear gets the bytes of the first.
func (c *Child) follow(out, err func(stream, text string), secrets []string, hear func([]byte)) {
	c.stdout, c.stderr = follow(c.outR, "stdout", out, secrets, hear), follow(c.errR, "stderr", err, secrets, nil)
}

// Ended gives one ending.
func (c *Child) Ended() <-chan Ending { return c.ended }

// Renew tells the shim how long the child may act now; with an authority that is
// gone its tree ends at once.
func (c *Child) Renew(authority time.Duration) {
	if authority != c.deadline {
		c.deadline = authority
		c.Extend(max(authority, 1))
	}
}

// Output returns the ends of what the child wrote, once it has ended. Nothing of
// its tree is left that could write: what is not read after drainWait is not there.
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
