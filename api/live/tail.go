package live

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A tailer follows the logs of a company's running runs for one stream, on whichever
// nodes execute them. Frames of a log are not part of the feed: a stream can not resume
// after them, and a client that connects later reads the log itself.
type tailer struct {
	s       *api.Server
	company ledger.CompanyID
	runs    map[string]*tailed
}

// A tailed is one log that is followed.
type tailed struct {
	run    entity.Run
	offset int64
	pause  time.Time // no requests before this time
}

// A logPayload is a part of a run's output.
type logPayload struct {
	Run       string          `json:"runId"`
	Agent     string          `json:"agentId"`
	Issue     string          `json:"issueId,omitempty"`
	At        json.RawMessage `json:"ts"`
	Seq       int64           `json:"seq"`
	Stream    string          `json:"stream"`
	Chunk     string          `json:"chunk"`
	Truncated bool            `json:"truncated"`
}

// begin follows the running runs from the current ends of their logs.
func (t *tailer) begin(ctx context.Context) {
	var running []entity.Run
	_, err := t.s.Cfg.Node.View(ctx, ledger.Read{Mode: ledger.ReadStale}, func(tx *ledger.Tx) error {
		running = entity.LiveRunsOf(tx, t.company)
		return nil
	})
	if err != nil || t.s.Cfg.RunLog == nil {
		return // the next status of the run starts it
	}
	for _, r := range running {
		if r.Status != entity.RunRunning || len(t.runs) >= api.MaxTailedRuns {
			continue
		}
		ask, cancel := context.WithTimeout(ctx, api.TailWait)
		if c, err := t.s.Cfg.RunLog(ask, r, 0, 1); err == nil {
			t.runs[r.ID] = &tailed{run: r, offset: c.Size}
		}
		cancel()
	}
}

// see handles a frame of the feed. It returns the frames to send before it: the rest of
// the log of a run that ended.
func (t *tailer) see(ctx context.Context, ev LiveEvent) []LiveEvent {
	if ev.Type != "heartbeat.run.status" || t.s.Cfg.RunLog == nil {
		return nil
	}
	var of struct {
		Run    string           `json:"runId"`
		Status entity.RunStatus `json:"status"`
	}
	if json.Unmarshal(ev.Payload, &of) != nil {
		return nil
	}
	if of.Status == entity.RunRunning {
		if _, known := t.runs[of.Run]; !known && len(t.runs) < api.MaxTailedRuns {
			_, _ = t.s.Cfg.Node.View(ctx, ledger.Read{Mode: ledger.ReadStale}, func(tx *ledger.Tx) error {
				if r, ok := entity.RunOf(tx, t.company, of.Run); ok && r.LogRef != "" {
					t.runs[r.ID] = &tailed{run: r}
				}
				return nil
			})
		}
		return nil
	}
	l, known := t.runs[of.Run]
	if !known {
		return nil
	}
	delete(t.runs, of.Run)
	l.pause = time.Time{}
	var out []LiveEvent
	for range api.MaxTailRest {
		frames, more := t.read(ctx, l, ev.ID)
		out = append(out, frames...)
		if !more {
			break
		}
	}
	return out
}

// readAll returns the new output of the followed runs.
func (t *tailer) readAll(ctx context.Context, height uint64) []LiveEvent {
	var out []LiveEvent
	for _, l := range t.runs {
		frames, _ := t.read(ctx, l, height)
		out = append(out, frames...)
	}
	return out
}

// read returns the next frames of one log, at most TailRead bytes of it, and whether
// there is more. If the log can not be read, it is not tried again for a while.
func (t *tailer) read(ctx context.Context, l *tailed, height uint64) (out []LiveEvent, more bool) {
	now := t.s.Cfg.Wall()
	if now.Before(l.pause) {
		return nil, false
	}
	ask, cancel := context.WithTimeout(ctx, api.TailWait)
	defer cancel()
	c, err := t.s.Cfg.RunLog(ask, l.run, l.offset, api.TailRead)
	if err != nil {
		l.pause = now.Add(api.TailPause)
		return nil, false
	}
	end := bytes.LastIndexByte(c.Content, '\n') + 1
	for line := range bytes.Lines(c.Content[:end]) {
		var of struct {
			At     json.RawMessage `json:"ts"`
			Stream string          `json:"stream"`
			Chunk  string          `json:"chunk"`
			Seq    int64           `json:"seq"`
		}
		if json.Unmarshal(line, &of) != nil {
			continue // not a line in our format
		}
		p := logPayload{Run: l.run.ID, Agent: l.run.Agent, Issue: l.run.Context.IssueID, At: of.At, Seq: of.Seq,
			Stream: of.Stream, Chunk: of.Chunk}
		if len(p.Chunk) > api.MaxLogFrame {
			p.Chunk, p.Truncated = api.CutText(p.Chunk, api.MaxLogFrame), true
		}
		b, err := api.EncodeJSON(p)
		if err != nil {
			continue
		}
		out = append(out, LiveEvent{ID: height, Company: t.company, Type: "heartbeat.run.log", CreatedAt: core.TimeOf(now),
			Payload: b, volatile: true})
	}
	l.offset += int64(end)
	return out, end > 0 && l.offset < c.Size
}
