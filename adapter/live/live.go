// Package live holds what adapters have in common: the table of the runs that
// they have at work, the watch over their node's authority, and the values in
// their configurations.
package live

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
)

// AuthorityEvery is how often whatever acts looks whether its node still may; far
// less than the margin by which a node stops before its lease ends (2 s).
const AuthorityEvery = 250 * time.Millisecond

// Runs are the runs that an adapter has at work; adapters embed it. Its zero
// value is empty, and it is safe for concurrent use.
type Runs struct {
	mu   sync.Mutex
	stop map[string]func()
}

// Begin notes a run, which stop asks to end; stop may be called more than once.
// The returned function notes that it is over.
func (r *Runs) Begin(run string, stop func()) (over func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop == nil {
		r.stop = map[string]func(){}
	}
	r.stop[run] = stop
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.stop, run)
	}
}

// Status tells whether a run is at work here.
func (r *Runs) Status(run string) entity.Phase {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop[run] != nil {
		return entity.PhaseExecute
	}
	return ""
}

// Cancel asks a run to end, in the way of its adapter. Asking again changes
// nothing.
func (r *Runs) Cancel(run, _ string) {
	r.mu.Lock()
	stop := r.stop[run]
	r.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// MayAct reports whether the node may still act for a run.
func MayAct(inv company.Invocation) bool { return inv.Authority() > shim.BootTime() }

// Watch calls end, again and again, once the node may act no more. The returned
// function ends the watch, as the end of ctx does.
func Watch(ctx context.Context, inv company.Invocation, end func()) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(AuthorityEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if !MayAct(inv) {
					end()
				}
			}
		}
	}()
	return stop
}

// A Value is a value of a configuration: a string, or an object with one as its
// "value". What refers to a secret was put in place before it comes here.
type Value string

// UnmarshalJSON decodes either form.
func (v *Value) UnmarshalJSON(data []byte) error {
	var plain string
	if json.Unmarshal(data, &plain) == nil {
		*v = Value(plain)
		return nil
	}
	var object struct {
		Value string `json:"value"`
	}
	err := json.Unmarshal(data, &object)
	*v = Value(object.Value)
	return err
}
