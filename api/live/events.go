// Package live is what moves: streams of events, activity, the dashboard.
package live

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// EventRoutes stream a company's events from this node's feed. Every node sends the same
// events with the same IDs.
func EventRoutes() []api.Route {
	return []api.Route{
		{Method: "GET", Path: "/api/companies/{companyId}/events", Tag: "events", Who: api.Any, NoTool: true,
			Out: LiveEvent{}, Media: []string{"text/event-stream"}, Handle: followEvents,
			Summary: "Follow a company's events as server-sent events; the event's ID is a height, at which any node resumes",
			Query: []api.Param{{Name: "after", Type: "integer",
				Doc: "height to resume after, as Last-Event-ID; without it, from now on"}, meshParam}},
		{Method: "GET", Path: "/api/companies/{companyId}/events/ws", Tag: "events", Who: api.Any, NoTool: true,
			Out: LiveEvent{}, Status: http.StatusSwitchingProtocols, Handle: followSocket,
			Summary: "Follow a company's events on a WebSocket",
			Query: []api.Param{{Name: "after", Type: "integer", Doc: "height to resume after; without it, from now on"},
				meshParam, {Name: "token", Doc: "bearer, where headers can not be set"}}},
	}
}

var meshParam = api.Param{Name: "mesh", Type: "boolean",
	Doc: "true adds denials of the gate, amendments of its rules and, for administrators, all changes of the mesh, with " +
		"an empty companyId, and decisions of other companies"}

// A LiveEvent is one frame, as the contract's clients read it. All changes of one entry
// have the same ID, its height. A stream that broke between them repeats all of them.
type LiveEvent struct {
	ID        uint64           `json:"id"`
	Company   ledger.CompanyID `json:"companyId"`
	Type      string           `json:"type"` // "activity.logged", "heartbeat.run.status" …
	CreatedAt core.Time        `json:"createdAt"`
	Payload   json.RawMessage  `json:"payload"`
	volatile  bool             // not from the feed: a stream can not resume after it
}

type activityPayload struct {
	ActorType   string          `json:"actorType"`
	ActorID     string          `json:"actorId"`
	Action      string          `json:"action"`
	EntityType  string          `json:"entityType"`
	EntityID    string          `json:"entityId"`
	Agent       *string         `json:"agentId"`
	Run         *string         `json:"runId"`
	Responsible *string         `json:"responsibleUserId"`
	Details     json.RawMessage `json:"details"`
}

// liveActions are the changes whose details are used as a live event's payload
// unchanged.
var liveActions = map[string]bool{
	"heartbeat.run.queued": true, "heartbeat.run.status": true, "heartbeat.run.event": true,
	"heartbeat.run.progress": true, "agent.status": true, "agent.session.goal.changed": true,
}

// Changes outside a stream's company, by entity. Those of the mesh are for administrators, but for some that every
// person may read. Of other companies administrators are told what pages list for all companies.
var (
	toldToPeople = map[string]bool{"amendment": true} // the constitution is open to all of them
	toldOfOthers = map[string]bool{"decision": true, "company": true}
)

// changesFor returns the changes of an entry that the stream sends. The contract's clients do not know denials and
// entries of no company: only those who ask for the mesh get them.
func (f *following) changesFor(ctx context.Context, e *ledger.Entry) []ledger.Change {
	if e.Outcome != ledger.Applied && e.Outcome != ledger.Deferred && !f.mesh {
		return nil
	}
	if e.Company == f.company {
		return e.Changes
	}
	if !f.mesh || len(e.Changes) == 0 {
		return nil
	}
	administers := f.administers(ctx)
	var out []ledger.Change
	for _, ch := range e.Changes {
		if e.Company == "" && (administers || f.person && toldToPeople[ch.EntityType]) ||
			administers && toldOfOthers[ch.EntityType] {
			out = append(out, ch)
		}
	}
	return out
}

// eventsOf returns the frames of an entry with these changes of it.
func eventsOf(e *ledger.Entry, changes []ledger.Change) []LiveEvent {
	var out []LiveEvent
	for _, ch := range changes {
		ev := LiveEvent{ID: e.Height, Company: e.Company, Type: "activity.logged", CreatedAt: core.TimeOf(e.Time)}
		if liveActions[ch.Action] && json.Valid(ch.Details) {
			ev.Type, ev.Payload = ch.Action, ch.Details
			out = append(out, ev)
			continue
		}
		actor, run := entity.DoneBy(e.Actor, e.Run, ch)
		p := activityPayload{ActorType: actor.Type, ActorID: actor.ID, Action: ch.Action, EntityType: ch.EntityType,
			EntityID: ch.EntityID}
		switch actor.Type {
		case "agent":
			p.Agent = &actor.ID
		case "user":
			p.Responsible = &actor.ID
		}
		if run != "" {
			p.Run = &run
		}
		if json.Valid(ch.Details) {
			p.Details = ch.Details
		}
		ev.Payload, _ = json.Marshal(p) // strings and valid JSON can be encoded
		out = append(out, ev)
	}
	return out
}

// A following delivers a company's frames from the feed, entry by entry.
type following struct {
	company     ledger.CompanyID
	after       uint64
	mesh        bool                       // also denials, and changes outside the company
	person      bool                       // who follows
	administers func(context.Context) bool // now: the right may end while the stream is open
	frames      chan []LiveEvent           // of one entry each; closed when the feed ends
}

// follow checks the request and opens the feed, which start then follows.
func follow(s *api.Server, rc *api.Request) (f *following, start func(context.Context), err error) {
	f = &following{company: api.CompanyID(rc), person: rc.IsBoard(), frames: make(chan []LiveEvent, api.FeedQueue)}
	if f.mesh, err = rc.QueryBool("mesh"); err != nil {
		return nil, nil, err
	}
	f.administers = func(ctx context.Context) (does bool) {
		_, err := s.Cfg.Node.View(ctx, ledger.Read{Mode: ledger.ReadStale}, func(tx *ledger.Tx) error {
			does = rc.Administers(tx)
			return nil
		})
		return does && err == nil
	}
	var resume string
	if resume = rc.HTTP.Header.Get("Last-Event-ID"); resume == "" {
		resume = rc.Query("after")
	}
	if err := rc.View(func(tx *ledger.Tx) error {
		for range tx.Prefix(ledger.Key("c", string(f.company), "")) {
			return nil
		}
		return api.NotFound("Company not found")
	}); err != nil {
		return nil, nil, err
	}
	if resume != "" {
		if f.after, err = strconv.ParseUint(resume, 10, 64); err != nil {
			return nil, nil, api.Invalid("Invalid event ID to resume after: expected a height")
		}
	} else if s.Cfg.Head != nil {
		f.after, _ = s.Cfg.Head()
	}
	return f, func(ctx context.Context) {
		defer close(f.frames)
		ctx, cancel := context.WithCancel(ctx)
		feed := make(chan []LiveEvent)
		done := make(chan struct{})
		defer func() { cancel(); <-done }()
		go func() {
			defer close(done)
			defer close(feed)
			for e, err := range s.Cfg.Node.Entries(ctx, f.after) {
				if err != nil {
					if ctx.Err() == nil {
						s.Log.Warn("feed broke off", "request", rc.ID, "error", err)
					}
					return
				}
				if frames := eventsOf(&e, f.changesFor(ctx, &e)); len(frames) > 0 {
					select {
					case feed <- frames:
					case <-ctx.Done():
						return
					}
				}
			}
		}()
		f.merge(ctx, feed, &tailer{s: s, company: f.company, runs: map[string]*tailed{}})
	}, nil
}

// merge sends the frames of the feed, and between them the output of running runs, until
// the feed or ctx ends.
func (f *following) merge(ctx context.Context, feed <-chan []LiveEvent, tail *tailer) {
	send := func(frames []LiveEvent) bool {
		if len(frames) == 0 {
			return true
		}
		select {
		case f.frames <- frames:
			return true
		case <-ctx.Done():
			return false
		}
	}
	tail.begin(ctx)
	tick := time.NewTicker(api.TailEvery)
	defer tick.Stop()
	height := f.after
	for {
		select {
		case frames, open := <-feed:
			if !open {
				return
			}
			for _, ev := range frames {
				height = max(height, ev.ID)
				if !send(tail.see(ctx, ev)) {
					return
				}
			}
			if !send(frames) {
				return
			}
		case <-tick.C:
			if !send(tail.readAll(ctx, height)) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// followEvents writes server-sent events:
//
//	id: 348
//	event: activity.logged
//	data: {"id":348,"companyId":…}
//
// Only the last event of an entry has the id, so that a client that resumes after it
// misses nothing. A comment line from time to time keeps the connection open.
func followEvents(rc *api.Request) (api.Response, error) {
	f, start, err := follow(rc.Server, rc)
	if err != nil {
		return api.Response{}, err
	}
	return api.Events(rc, fmt.Sprintf("after %d", f.after), f.frames, start, appendEvents), nil
}

func appendEvents(b []byte, frames []LiveEvent) ([]byte, error) {
	for i, ev := range frames {
		data, err := api.EncodeJSON(ev)
		if err != nil {
			return nil, err
		}
		if i == len(frames)-1 && !ev.volatile {
			b = fmt.Appendf(b, "id: %d\n", ev.ID)
		}
		b = fmt.Appendf(b, "event: %s\ndata: %s\n\n", ev.Type, data)
	}
	return slices.Clip(b), nil
}
