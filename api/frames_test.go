package api

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// A frame is one live event as a client reads it.
type frame struct {
	ID        float64        `json:"id"`
	Company   string         `json:"companyId"`
	Type      string         `json:"type"`
	CreatedAt string         `json:"createdAt"`
	Payload   map[string]any `json:"payload"`
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

func recordedFrames(t *testing.T) []frame {
	t.Helper()
	for _, dir := range []string{os.Getenv("SELVAGE_CONTRACT"), "../../shared/contract"} {
		b, err := os.ReadFile(filepath.Join(dir, "http", "_ws-live-events.ndjson"))
		if dir == "" || err != nil {
			continue
		}
		var all []frame
		for line := range bytes.Lines(b) {
			var f frame
			if err := json.Unmarshal(line, &f); err != nil {
				t.Fatal(err)
			}
			all = append(all, f)
		}
		return all
	}
	t.Skip("the recorded frames are not here: set SELVAGE_CONTRACT to the directory that holds http/")
	return nil
}

// What the recorded agent did, in the order of its frames.
const simulated = `
api() { curl -s -o /dev/null -X "$1" -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: $PAPERCLIP_RUN_ID" -H 'Content-Type: application/json' -d "$3" "$PAPERCLIP_API_URL/api/$2"; }
echo "== me"
sleep 0.5
echo "== checkout"
api POST issues/$PAPERCLIP_TASK_ID/checkout "{\"agentId\":\"$PAPERCLIP_AGENT_ID\",\"expectedStatuses\":[\"todo\",\"in_progress\"]}"
echo "== comment"
api POST issues/$PAPERCLIP_TASK_ID/comments '{"body":"working on it"}'
echo "== cost"
api POST companies/$PAPERCLIP_COMPANY_ID/cost-events "{\"agentId\":\"$PAPERCLIP_AGENT_ID\",\"issueId\":\"$PAPERCLIP_TASK_ID\",\"provider\":\"openai\",\"model\":\"gpt-5\",\"inputTokens\":10,\"outputTokens\":5,\"costCents\":7,\"occurredAt\":\"2026-11-21T02:08:49.000Z\"}"
echo "== done"
api PATCH issues/$PAPERCLIP_TASK_ID '{"status":"done","comment":"Finished. Output: **ok**"}'
echo "== bye"`

// The frames of the recorded session come, each with the recorded keys, and the
// log's before the end of their run.
func TestLiveEventsAreTheRecordedFrames(t *testing.T) {
	want := recordedFrames(t)
	h := newWorkingHarness(t)
	of := h.company("Agents")
	agent := h.newAgent(of, "Sim", simulated)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(h.web, "http")+"/api/companies/"+of+"/events/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	ws.SetReadLimit(1 << 20)
	time.Sleep(50 * time.Millisecond) // the socket begins at the feed's head
	h.assign(of, agent, "Do the thing")

	got := map[string]frame{}
	log, ended := "", false
	for !ended {
		_, b, err := ws.Read(ctx)
		if err != nil {
			t.Fatalf("%v; log so far %q, kinds %d", err, log, len(got))
		}
		var f frame
		if err := json.Unmarshal(b, &f); err != nil {
			t.Fatal(err)
		}
		if f.Company != of || f.ID == 0 || f.CreatedAt == "" {
			t.Errorf("frame %s", b)
		}
		got[f.kind()] = f
		switch {
		case f.Type == "heartbeat.run.log":
			log += f.Payload["chunk"].(string)
		case f.kind() == "heartbeat.run.status/succeeded":
			if !strings.HasSuffix(log, "== me\n== checkout\n== comment\n== cost\n== done\n== bye\n") {
				t.Errorf("the run ended after the log %q", log)
			}
		case f.Payload["message"] == "run scratch cleaned":
			ended = true
		}
	}
	for _, w := range want {
		g, ok := got[w.kind()]
		if !ok {
			t.Errorf("no frame %s", w.kind())
			continue
		}
		c := comparison{m: &replay{}}
		delete(w.Payload, "payload") // of an event, what its adapter says
		delete(w.Payload, "changes")
		if d, ok := w.Payload["details"].(map[string]any); ok {
			delete(d, "changes")
			delete(d, "_previous")
			delete(d, "source") // that an update came with a comment, which the comment's frame tells
		}
		c.values("", any(w.Payload), any(g.Payload))
		for _, d := range c.diff {
			t.Errorf("%s: %s", w.kind(), d)
		}
	}
	run := got["heartbeat.run.status/succeeded"].Payload["runId"].(string)
	if line := got["activity.logged/environment.lease_released"].Payload; line["actorType"] != "agent" || line["agentId"] != agent || line["runId"] != run {
		t.Errorf("the lease was released by %v", line)
	}
}
