package api

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// EventStream answers with server-sent events: the comment first, then each event that
// start sends, until start returns, the reader goes away or is not permitted any more. An
// event is whole, with its empty line. A comment line from time to time keeps the connection
// open. start runs on a goroutine of its own and closes nothing; send returns false when the
// stream is over.
func EventStream(rc *Request, comment string, start func(ctx context.Context, send func(event []byte) bool)) Response {
	s := rc.Server
	return Response{Stream: func(w http.ResponseWriter, r *http.Request) error {
		leave, err := s.Stream()
		if err != nil {
			return err
		}
		defer leave()
		ctx, cancel := s.Within(r.Context())
		defer cancel()
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Time{}) // the request has been read; the stream has no deadline
		h := w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
		w.WriteHeader(http.StatusOK)
		events, done := make(chan []byte, FeedQueue), make(chan struct{})
		go func() {
			defer close(done)
			defer close(events)
			start(ctx, func(event []byte) bool {
				select {
				case events <- event:
					return true
				case <-ctx.Done():
					return false
				}
			})
		}()
		defer func() { cancel(); <-done }()
		tick, look, watch := time.NewTicker(Heartbeat), time.NewTicker(KeyAge), NewWatch(rc)
		defer tick.Stop()
		defer look.Stop()
		out := fmt.Appendf(nil, "retry: %d\n: %s\n\n", RetryAfter.Milliseconds(), comment)
		for {
			_ = control.SetWriteDeadline(time.Now().Add(WriteTimeout))
			if _, err := w.Write(out); err != nil {
				return nil
			}
			if err := control.Flush(); err != nil {
				return nil
			}
			out = out[:0]
			select {
			case event, open := <-events:
				if !open || !watch.Holds(ctx, false) {
					return nil
				}
				out = append(out, event...)
			case <-tick.C:
				out = append(out, ": alive\n\n"...)
			case <-look.C:
				if !watch.Holds(ctx, true) {
					return nil
				}
			case <-ctx.Done():
				return nil
			}
		}
	}}
}
