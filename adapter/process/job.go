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

// A Place is what a run has on its node, before its command is known.
type Place struct {
	Dir     string // where the command will work
	Home    string // the agent's permanent folder
	Scratch string // the run's own, deleted afterwards
	Env     map[string]string
	// Token is the run's token for the API and the model gateway at APIURL.
	Token, APIURL string
}

// A Job is one command of an adapter that starts programs, with the functions that write its
// input and read its output. A Job with only a Command does what the process adapter does.
type Job struct {
	Command string   // by path or name
	Args    []string // without the name
	// Env overrides the run's variables; "" removes one. Hidden are further values to redact
	// in the run's output and events.
	Env    map[string]string
	Hidden []string
	// Confine says that the command can write only in its working directory, its agent's
	// folder, its scratch directory, the folders for temporary files, and Writable, unless its
	// adapterConfig says otherwise, and if the kernel supports that.
	Confine  bool
	Writable []string // absolute paths
	plain    bool     // a command of the process adapter, not a tool
	// Talk writes the command's standard input, which is closed when it returns; nil: empty
	// input. It runs in its own goroutine; after the end of the command, its writes to w fail.
	Talk func(w *os.File)
	// Hear gets the raw output in pieces, with secrets, from one goroutine.
	Hear func(piece []byte)
	// Quiet keeps the output out of the log; Hear writes a better one.
	Quiet bool
	// Over is closed when the command's work is done. If the command does not exit then, it is
	// ended. nil: the work is done when the command exits.
	Over <-chan struct{}
	// Stop is called once when the run is cancelled, before TERM. It returns how long the
	// command may take to exit by itself. nil: TERM is sent at once.
	Stop func() time.Duration
}

// Carry runs the command that plan returns for a place. An error of plan fails the run. The
// folder, variables and timeouts of adapterConfig apply as for a process.
func (a *Adapter) Carry(ctx context.Context, inv company.Invocation, plan func(Place) (Job, error)) company.Outcome {
	var c config
	if err := json.Unmarshal(inv.Config, &c); err != nil {
		return failure("The agent's adapterConfig is malformed: %v", err)
	}
	return a.carry(ctx, inv, c, plan)
}

// Refusal is an error of a plan, with the code for the run's row.
type Refusal struct{ Code, Message string }

func (r *Refusal) Error() string { return r.Message }

// Refuse returns a refusal. The message is shown as a sentence.
func Refuse(code, format string, args ...any) error {
	return &Refusal{code, fmt.Sprintf(format, args...)}
}

// refused returns the outcome for the error of a plan.
func refused(err error) company.Outcome {
	o := failure("%v", err)
	if r, ok := errors.AsType[*Refusal](err); ok && r.Code != "" {
		o.ErrorCode = r.Code
	}
	return o
}

// apply sets a job's variables over the run's, and returns the values to redact.
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

// input opens the command's standard input. The returned function must be called after the
// start: it starts Talk, or closes the input if the command was not started.
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
