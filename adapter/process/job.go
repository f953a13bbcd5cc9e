package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/company"
)

// A Place is what a run has on its node before its command is known.
type Place struct {
	Dir     string // where the command will work
	Home    string // the agent's lasting folder
	Scratch string // the run's own, removed afterwards
	Env     map[string]string
	// Token is the run's, for the API and the model gateway at APIURL.
	Token, APIURL string
}

// A Job is one command of an adapter that starts programs: what it is called
// with, and who talks to it. A Job with a Command alone does what the process
// adapter does.
type Job struct {
	Command string   // by path or name
	Args    []string // without the name
	// Env is set over the run's; "" takes a variable away. Hidden are values that
	// must not be seen in what the run leaves, beside those that are known.
	Env    map[string]string
	Hidden []string
	// Confine says that the command writes only where it works, in its agent's and
	// its own folder, those for temporary files, and in Writable, unless its
	// adapterConfig says otherwise and as far as the kernel can do that.
	Confine  bool
	Writable []string // absolute paths
	plain    bool     // it is a command of the process adapter, not a tool that builds
	// Talk writes the command's standard input, which ends when it returns; nil:
	// it is empty. It is called in a goroutine of its own, which the end of the
	// command ends by errors of w.
	Talk func(w *os.File)
	// Hear is called with the output as it comes, in pieces, from one goroutine.
	// It is the raw text, secrets and all.
	Hear func(piece []byte)
	// Quiet keeps the output out of the log, because Hear writes a better one.
	Quiet bool
	// Over is closed when the command's work is done, whatever it says of itself: it
	// may end, and is ended when it does not. nil: its end is that of the work.
	Over <-chan struct{}
	// Stop is called once when somebody asks for the run's end, before TERM; it
	// returns how long the command may take to end by itself first. nil: no time.
	Stop func() time.Duration
}

// Carry runs the command that plan makes of a place. The error of plan is the
// run's failure. What adapterConfig says of folder, variables and time holds as
// for a process.
func (a *Adapter) Carry(ctx context.Context, inv company.Invocation, plan func(Place) (Job, error)) company.Outcome {
	var c config
	if err := json.Unmarshal(inv.Config, &c); err != nil {
		return failure("The agent's adapterConfig is malformed: %v", err)
	}
	return a.carry(ctx, inv, c, plan)
}

// Refusal is an error of a plan with the code that the run's row is to have.
type Refusal struct{ Code, Message string }

func (r *Refusal) Error() string { return r.Message }

// Refuse returns a refusal. The message is shown as a sentence.
func Refuse(code, format string, args ...any) error {
	return &Refusal{code, fmt.Sprintf(format, args...)}
}

// refused is the outcome of a plan that could not be made.
func refused(err error) company.Outcome {
	o := failure("%v", err)
	if r, ok := errors.AsType[*Refusal](err); ok && r.Code != "" {
		o.ErrorCode = r.Code
	}
	return o
}

// apply writes a job's variables over the run's and returns the values to hide.
func (j Job) apply(env map[string]string) (hide []string) {
	for k, v := range j.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") {
			continue
		}
		if v == "" {
			delete(env, k)
			continue
		}
		if env[k] = strings.ReplaceAll(v, "\x00", ""); sensitive(k) {
			hide = append(hide, env[k])
		}
	}
	return append(hide, j.Hidden...)
}

// input opens the command's standard input. The returned function hands the
// command's end to Talk after the command was started, or gives up.
func (j Job) input() (stdin *os.File, begin func(started bool), err error) {
	if j.Talk == nil {
		return nil, func(bool) {}, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return r, func(started bool) {
		r.Close()
		if !started {
			w.Close()
			return
		}
		go func() {
			defer w.Close()
			j.Talk(w)
		}()
	}, nil
}

// LookPath finds a program in a list of folders, as a run in dir would.
func LookPath(command, dir, path string) (string, bool) { return lookPath(command, dir, path) }

// start starts the command of a job.
func (j Job) start(shims *shim.Launcher, spec shim.Spec, stdout, stderr *os.File) (*shim.Process, error) {
	stdin, begin, err := j.input()
	if err != nil {
		return nil, err
	}
	p, err := shims.Start(spec, stdin, stdout, stderr)
	begin(err == nil)
	return p, err
}
