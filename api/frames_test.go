package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/kit"
	"github.com/selvage-mesh/selvage/ledger"
)

// A frame is one live event as a client reads it.
type frame struct {
	ID        float64          `json:"id"`
	Company   ledger.CompanyID `json:"companyId"`
	Type      string           `json:"type"`
	CreatedAt string           `json:"createdAt"`
	Payload   map[string]any   `json:"payload"`
}

// kind names what a frame is about: its type, and what tells it from others of
// the same type.
func (f frame) kind() string {
	for _, key := range []string{"action", "eventType", "status"} {
		if v, ok := f.Payload[key].(string); ok {
			if message, ok := f.Payload["message"].(string); ok && key == "eventType" {
				v += "/" + message
			}
			return f.Type + "/" + v
		}
	}
	return f.Type
}

// What the recorded agent did, in the order of its frames.
const simulated = `
api() { curl -s -o /dev/null -X "$1" -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: ` +
	`$PAPERCLIP_RUN_ID" -H 'Content-Type: application/json' -d "$3" "$PAPERCLIP_API_URL/api/$2"; }
echo "== me"
sleep 0.5
echo "== checkout"
api POST issues/$PAPERCLIP_TASK_ID/checkout ` +
	`"{\"agentId\":\"$PAPERCLIP_AGENT_ID\",\"expectedStatuses\":[\"todo\",\"in_progress\"]}"
echo "== comment"
api POST issues/$PAPERCLIP_TASK_ID/comments '{"body":"working on it"}'
echo "== cost"
api POST companies/$PAPERCLIP_COMPANY_ID/cost-events ` +
	`"{\"agentId\":\"$PAPERCLIP_AGENT_ID\",\"issueId\":\"$PAPERCLIP_TASK_ID\",\"provider\":\"openai\",` +
	`\"model\":\"gpt-5\",` +
	`\"inputTokens\":10,\"outputTokens\":5,\"costCents\":7,\"occurredAt\":\"2026-11-21T02:08:49.000Z\"}"
echo "== done"
api PATCH issues/$PAPERCLIP_TASK_ID '{"status":"done","comment":"Finished. Output: **ok**"}'
echo "== bye"`

// The frames of the recorded session come, each with the recorded keys, and the
// log's before the end of their run: on a WebSocket and as server-sent events, which
// say the same and go on after any ID that they gave.
func TestLiveEventsAreTheRecordedFrames(t *testing.T) {
	want := asRecorded[frame](t, framesFile)
	h := apitest.NewWorkingHarnessOn(t, apitest.NewSoloAt(t, "", kit.ClockAt(recordedAt)))
	of := ledger.CompanyID(h.Company("Agents"))
	agent := h.NewAgent(of, "Sim", simulated)
	ctx, cancel := context.WithTimeout(t.Context(), apitest.Patience)
	defer cancel()
	url := h.Web + "/api/companies/" + string(of) + "/events"
	ws, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(url, "http")+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	ws.SetReadLimit(1 << 20)
	next, stop := follow(t, url)
	defer stop()
	h.Assign(of, agent, "Do the thing")

	socket := readStory(t, func() (id, kind string, data []byte) {
		_, b, err := ws.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return "", "", b
	})
	sse := func(next func() (id, kind, data string)) func() (id, kind string, data []byte) {
		return func() (id, kind string, data []byte) {
			id, kind, text := next()
			return id, kind, []byte(text)
		}
	}
	events := readStory(t, sse(next))
	for over, told := range map[string]story{"socket": socket, "events": events} {
		t.Run(over, func(t *testing.T) {
			got := map[string]frame{}
			for _, f := range told.frames {
				if got[f.kind()] = f; f.Company != of || f.ID == 0 || f.CreatedAt == "" {
					t.Errorf("frame %+v", f)
				}
			}
			if !strings.HasSuffix(told.log, "== me\n== checkout\n== comment\n== cost\n== done\n== bye\n") {
				t.Errorf("the run ended after the log %q", told.log)
			}
			for _, w := range want {
				g, ok := got[w.kind()]
				if !ok {
					t.Errorf("no frame %s", w.kind())
					continue
				}
				for _, d := range w.differs(g) {
					t.Errorf("%s: %s", w.kind(), d)
				}
			}
			run := got["heartbeat.run.status/succeeded"].Payload["runId"].(string)
			if line := got["activity.logged/environment.lease_released"].Payload; line["actorType"] != "agent" ||
				line["agentId"] != agent || line["runId"] != run {
				t.Errorf("the lease was released by %v", line)
			}
		})
	}
	if !slices.Equal(socket.lasting, events.lasting) {
		t.Errorf("the socket told\n%s\nthe events\n%s", strings.Join(socket.lasting, "\n"),
			strings.Join(events.lasting, "\n"))
	}
	for id, from := range events.after {
		next, stop := follow(t, url, "Last-Event-ID: "+id)
		if got := readStory(t, sse(next)).lasting; !slices.Equal(got, events.lasting[from:]) {
			t.Errorf("after %s come\n%s\nwant\n%s", id, strings.Join(got, "\n"), strings.Join(events.lasting[from:], "\n"))
		}
		stop()
	}
}

// A story is what a stream told of a run, to its end.
type story struct {
	frames  []frame
	log     string         // of the run, until its status said that it is over
	lasting []string       // frames as they were written, without the log's
	after   map[string]int // where in lasting one goes on after an ID
}

// readStory reads frames until a run's last.
func readStory(t *testing.T, next func() (id, kind string, data []byte)) (s story) {
	t.Helper()
	s.after = map[string]int{}
	for over := false; ; {
		id, kind, data := next()
		var f frame
		if err := json.Unmarshal(data, &f); err != nil {
			t.Fatal(err)
		}
		s.frames = append(s.frames, f)
		if kind != "" && kind != f.Type || id != "" && id != fmt.Sprint(f.ID) {
			t.Errorf("event %q of ID %q is %s", kind, id, data)
		}
		if f.Type == "heartbeat.run.log" {
			if id != "" || over {
				t.Errorf("a line of the log has the ID %q; the run's end was told before it: %v", id, over)
			}
			s.log += f.Payload["chunk"].(string)
			continue
		}
		s.lasting = append(s.lasting, string(data))
		over = over || f.kind() == "heartbeat.run.status/succeeded"
		if f.Payload["message"] == "run scratch cleaned" {
			return s
		}
		if id != "" {
			s.after[id] = len(s.lasting)
		}
	}
}

// differs says in what a frame is not as it was recorded.
func (f frame) differs(got frame) []string {
	c, payload := comparison{m: &apitest.Replay{}}, maps.Clone(f.Payload)
	delete(payload, "payload") // of an event, what its adapter says
	delete(payload, "changes")
	if d, ok := payload["details"].(map[string]any); ok {
		d = maps.Clone(d)
		delete(d, "changes")
		delete(d, "_previous")
		delete(d, "source") // that an update came with a comment, which the comment's frame tells
		payload["details"] = d
	}
	c.values("", any(payload), any(got.Payload))
	return c.diff
}
