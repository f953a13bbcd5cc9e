package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A following is told when something in the company of a task changed.
type following struct {
	changed chan struct{} // holds one token while there is news
	close   func()        // ends it and waits
}

// follow follows the feed of a company from now on, until ctx ends or it is closed.
func follow(ctx context.Context, s *api.Server, of ledger.CompanyID) *following {
	after := uint64(0)
	if s.Cfg.Head != nil {
		after, _ = s.Cfg.Head()
	}
	ctx, cancel := s.Within(ctx)
	f, done := &following{changed: make(chan struct{}, 1)}, make(chan struct{})
	go func() {
		defer close(done)
		for e, err := range s.Cfg.Node.Entries(ctx, after) {
			if err != nil {
				return
			}
			if e.Company != of {
				continue
			}
			select {
			case f.changed <- struct{}{}:
			default:
			}
		}
	}()
	f.close = func() { cancel(); <-done }
	return f
}

// companyOf returns the company of a task that the caller may see.
func companyOf(rc *api.Request, id string) (ledger.CompanyID, error) {
	var i entity.Issue
	err := rc.View(func(tx *ledger.Tx) (err error) { i, err = issueOf(tx, rc, id); return err })
	return i.Company, err
}

// digest tells two values apart.
func digest(v any) [sha256.Size]byte {
	b, _ := json.Marshal(v) // strings, lists and valid JSON can be encoded
	return sha256.Sum256(b)
}

// A teller says what changed in a task since it was told last.
type teller struct {
	status    [sha256.Size]byte
	artifacts map[string][sha256.Size]byte
}

// first returns the event that begins a stream.
func (l *teller) first(t *Task) event {
	l.status, l.artifacts = digest(t.Status), map[string][sha256.Size]byte{}
	for _, a := range t.Artifacts {
		l.artifacts[a.ID] = digest(a)
	}
	return event{Task: t}
}

// next returns the events since then: artifacts go before the status that may be the last.
func (l *teller) next(t *Task) (out []event) {
	for _, a := range t.Artifacts {
		if d := digest(a); l.artifacts[a.ID] != d {
			l.artifacts[a.ID] = d
			out = append(out, event{Artifact: &artifactUpdate{Task: t.ID, Context: t.Context, Artifact: a, Last: true}})
		}
	}
	if d := digest(t.Status); d != l.status {
		l.status = d
		out = append(out, event{Status: &statusUpdate{t.ID, t.Context, t.Status}})
	}
	return out
}

// stream answers with server-sent events about a task until it rests. wrap makes of an event what the binding sends.
func stream(rc *api.Request, id string, history *int, wrap func(event, State) any) (api.Response, error) {
	of, err := companyOf(rc, id)
	if err != nil {
		return api.Response{}, err
	}
	// The request's own time is over when it streams; what is read then has the time of the stream.
	return api.Response{Stream: func(w http.ResponseWriter, r *http.Request) error {
		s := rc.Server
		leave, err := s.Stream()
		if err != nil {
			return err
		}
		defer leave()
		ctx, cancel := s.Within(r.Context())
		defer cancel()
		rc.HTTP = rc.HTTP.WithContext(ctx)
		f := follow(ctx, s, of)
		defer f.close()
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Time{}) // the request has been read; the stream has no deadline
		h := w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
		return tell(ctx, rc, id, history, f, w, control, wrap)
	}}, nil
}

func tell(ctx context.Context, rc *api.Request, id string, history *int, f *following, w http.ResponseWriter,
	control *http.ResponseController, wrap func(event, State) any) error {
	tick, look, watch := time.NewTicker(api.Heartbeat), time.NewTicker(api.KeyAge), api.NewWatch(rc)
	defer tick.Stop()
	defer look.Stop()
	var l teller
	for began := false; ; {
		t, err := show(rc, id, history)
		if err != nil {
			if began {
				return nil // the task is gone, or the caller is not permitted any more
			}
			return err
		}
		events := []event{}
		if began {
			events = l.next(&t)
		} else {
			events, began = append(events, l.first(&t)), true
		}
		var out []byte
		for _, e := range events {
			b, err := api.EncodeJSON(wrap(e, t.Status.State))
			if err != nil {
				return err
			}
			out = fmt.Appendf(out, "data: %s\n\n", b)
		}
		if !put(w, control, out) || t.Status.State.Rests() {
			return nil
		}
		for waits := true; waits; {
			select {
			case <-f.changed:
				waits = false
				if !watch.Holds(ctx, false) {
					return nil
				}
			case <-tick.C:
				if !put(w, control, []byte(": alive\n\n")) {
					return nil
				}
			case <-look.C:
				if !watch.Holds(ctx, true) {
					return nil
				}
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// put sends bytes at once; false: the reader is gone.
func put(w http.ResponseWriter, control *http.ResponseController, b []byte) bool {
	_ = control.SetWriteDeadline(time.Now().Add(api.WriteTimeout))
	if _, err := w.Write(b); err != nil {
		return false
	}
	return control.Flush() == nil
}
