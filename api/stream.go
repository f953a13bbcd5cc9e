package api

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// EventStream answers with server-sent events: the comment first, then each event that
// start sends, until start returns, the reader goes away or is not permitted any more. An
// event is whole, with its empty line. start runs on a goroutine of its own and closes
// nothing; send returns false when the stream is over.
func EventStream(rc *Request, comment string, start func(ctx context.Context, send func(event []byte) bool)) Response {
	events := make(chan []byte, FeedQueue)
	run := func(ctx context.Context) {
		defer close(events)
		start(ctx, func(event []byte) bool {
			select {
			case events <- event:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}
	return Events(rc, comment, events, run, func(b, event []byte) ([]byte, error) { return append(b, event...), nil })
}

// Events answers with the server-sent events that encode appends for each value of a
// channel, after the comment, until the channel is closed, the reader goes away or is not
// permitted any more. A comment line from time to time keeps the connection open; others say
// when the node loses its majority ("quorum lost") and hears it again ("quorum"), for a page
// that rests would not ask. start runs on a goroutine of its own until its context ends, and is
// waited for.
func Events[T any](rc *Request, comment string, values <-chan T, start func(context.Context),
	encode func([]byte, T) ([]byte, error)) Response {
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
		done := make(chan struct{})
		go func() { defer close(done); start(ctx) }()
		defer func() { cancel(); <-done }()
		tick, look, stand := time.NewTicker(Heartbeat), time.NewTicker(KeyAge), time.NewTicker(standEvery)
		defer tick.Stop()
		defer look.Stop()
		defer stand.Stop()
		watch, cut := NewWatch(rc), s.cutOff()
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
			case v, open := <-values:
				if !open || !watch.Holds(ctx, false) {
					return nil
				}
				if out, err = encode(out, v); err != nil {
					return err
				}
			case <-tick.C:
				out = append(out, ": alive\n\n"...)
			case <-stand.C:
				if now := s.cutOff(); now != cut {
					cut = now
					out = append(out, quorumComment(cut)...)
				}
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

// cutOff reports whether this node hears no majority.
func (s *Server) cutOff() bool { return s.Cfg.Standing != nil && !s.Cfg.Standing().Quorum }

func quorumComment(lost bool) string {
	if lost {
		return ": quorum lost\n\n"
	}
	return ": quorum\n\n"
}
