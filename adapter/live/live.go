// Package live is what adapters have in common: the table of their running runs, the check of
// their node's authority, and the values in their configurations.
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

// AuthorityEvery is how often adapters check whether their node may still act. It is far less
// than the margin (2 s) by which a node stops before its lease ends.
const AuthorityEvery = 250 * time.Millisecond

// Runs is the table of an adapter's running runs; adapters embed it. Its zero value is empty,
// and it is safe for concurrent use.
type Runs struct {
	mu   sync.Mutex
	stop map[string]func()
}

// Begin adds a run. stop asks it to end, and may be called more than once. The returned
// function removes the run.
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

// Status reports whether a run is running here.
func (r *Runs) Status(run string) entity.Phase {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop[run] != nil {
		return entity.PhaseExecute
	}
	return ""
}

// Cancel asks a run to end, by the adapter's method. Repeating it changes nothing.
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

// Watch calls end repeatedly once the node may no longer act. The returned function stops the
// watch, and so does the end of ctx.
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

// A Value is a value of a configuration: a string, or an object with a string as its "value".
// References to secrets are resolved before it is decoded.
type Value string

// UnmarshalJSON decodes both forms.
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
