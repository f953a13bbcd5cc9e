package testkit

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/runlog"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/node"
)

// badUpstream is a maker of models whose days are bad, each below a path of its own.
func badUpstream(t *testing.T) *httptest.Server {
	piece := func(text string) string {
		return `data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"` +
			text + `"}}]}` + "\n\n"
	}
	done := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		stream := func(text string) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, text)
			w.(http.Flusher).Flush()
		}
		switch strings.Split(r.URL.Path, "/")[1] {
		case "hangs":
			select {
			case <-r.Context().Done():
			case <-done:
			}
		case "half":
			stream(piece("half of ") + piece("an ans"))
			panic(http.ErrAbortHandler)
		case "busy":
			w.Header().Set("Retry-After", "0")
			http.Error(w, `{"error":{"message":"slow down"}}`, http.StatusTooManyRequests)
		case "less":
			stream(piece(strings.Repeat("word ", 300)) +
				`data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},` +
				`"finish_reason":"stop"}],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}` +
				"\n\ndata: [DONE]\n\n")
		case "more":
			stream(piece("word") +
				`data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},` +
				`"finish_reason":"stop"}],"usage":{"prompt_tokens":900000000,"completion_tokens":900000000,` +
				`"total_tokens":1800000000}}` + "\n\ndata: [DONE]\n\n")
		}
	}))
	t.Cleanup(func() { close(done); s.CloseClientConnections(); s.Close() })
	return s
}

// ask is a program that has a model say something, and fails unless the answer
// comes to its end.
const ask = `curl -sSN --max-time 20 -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H 'Content-Type: application/json' \
 -d '{"model":"'$MODEL'","stream":true,"max_tokens":400,"messages":[{"role":"user","content":"say something"}]}' ` +
	`$PAPERCLIP_API_URL/llm/v1/chat/completions >$BAD/$MODEL.out
grep -q 'DONE' $BAD/$MODEL.out || exit 5`

// marked counts the processes whose environment holds the mark.
func marked(mark string) (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(mark)) {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return pids
}

// Adapters that misbehave, upstreams that do, an engine that is not there and a
// disk that is full: each run ends in a clear status, its issue is free, what it
// cost is settled and never above the limit, and none of its processes is left. A
// run that has nothing to do with them goes on beside them all.
func TestBadDays(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 1, func(i int, c *node.Config) {
		working(t.TempDir())(i, c)
		c.Containers = []string{"/bin/false"}
	})
	n := b.Nodes[0]
	acme, apart := b.Company("Acme"), b.Company("Apart") // what goes beyond a limit stops its company
	bad, up := t.TempDir(), badUpstream(t)
	const limit = 100_000 // cents
	for _, of := range []ledger.CompanyID{acme, apart} {
		for _, name := range []string{"hangs", "half", "busy", "less", "more"} {
			b.Must(0, "POST", "/api/companies/"+string(of)+"/model-providers", map[string]any{"name": name, "kind": "llamacpp",
				"baseUrl": up.URL + "/" + name,
				"models":  []map[string]string{{"name": name, "as": "m"}}}, nil)
		}
		// A cent for a token.
		b.Must(0, "PUT", "/api/companies/"+string(of)+"/model-prices",
			map[string]any{"model": "*", "input": 1_000_000_000_000, "output": 1_000_000_000_000}, nil)
		b.Must(0, "POST", "/api/companies/"+string(of)+"/budgets/policies", map[string]any{"scopeType": "company",
			"scopeId": of, "windowKind": "lifetime", "amount": limit}, nil)
	}

	type outcome struct{ status, code string }
	sh := func(script string) map[string]any {
		return map[string]any{"command": "/bin/sh", "args": []string{"-c", script}, "graceSec": 1}
	}
	program := func(name, script string) string {
		at := filepath.Join(bad, name)
		if err := os.WriteFile(at, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return at
	}
	asks := func(model string, more ...any) map[string]any {
		c := sh(ask)
		c["env"] = map[string]any{"BAD": bad, "MODEL": model}
		for i := 0; i+1 < len(more); i += 2 {
			c[more[i].(string)] = more[i+1]
		}
		return c
	}
	// A command line that calls its vendor with a key of its own, and what it says.
	told := func(result string) map[string]any {
		return map[string]any{"gateway": false, "command": program(fmt.Sprint("told-", len(result)),
			`echo '{"type":"system","subtype":"init","session_id":"s","model":"claude-x"}'
echo '{"type":"result","subtype":"success","result":"done","session_id":"s",`+result+`}'`)}
	}
	booked := func(status string, cents int64) func(*testing.T, entity.Run, string) {
		return func(t *testing.T, r entity.Run, _ string) {
			var events []money.CostEvent
			_, err := n.View(t.Context(), ledger.Read{Mode: ledger.ReadStrong}, func(tx *ledger.Tx) error {
				for e := range money.CostsOfAgentSince(tx, r.Company, r.Agent, 0) {
					if string(e.Run) == r.ID {
						events = append(events, e)
					}
				}
				return nil
			})
			if err != nil || len(events) != 1 || events[0].CostStatus != status || events[0].Cost != core.Cents(cents) ||
				events[0].Reservation != "" || events[0].Provider != "anthropic" || events[0].InputTokens != 3 ||
				events[0].OutputTokens != 2 {
				t.Errorf("booked are %+v, want %d cents, %v", events, cents, err)
			}
		}
	}
	days := []*struct {
		name, adapter string
		of            ledger.CompanyID // its company; default: acme
		config        map[string]any
		want          outcome
		or            outcome // as good
		costs         bool    // something is booked
		full          bool    // its log is on a disk that is full soon
		see           func(t *testing.T, r entity.Run, log string)

		agent, issue, run string
	}{
		{name: "an adapter that prints garbage", adapter: "claude_local", want: outcome{"failed", "adapter_failed"},
			config: map[string]any{"command": program("garbage", "head -c 100000 /dev/urandom")},
			see: func(t *testing.T, r entity.Run, log string) {
				if len(log) < 50_000 || !strings.Contains(string(r.Error), "without a result") {
					t.Errorf("%d bytes of garbage, %s", len(log), r.Error)
				}
			}},
		{name: "an adapter that floods its output", config: sh(`head -c 40000000 /dev/zero | tr '\0' x; exit 0`),
			want: outcome{"succeeded", ""},
			see: func(t *testing.T, r entity.Run, _ string) {
				if r.LogBytes == nil || *r.LogBytes > runlog.DefaultMaxBytes || *r.LogBytes < runlog.DefaultMaxBytes/2 {
					t.Errorf("its log has %v bytes", r.LogBytes)
				}
			}},
		{name: "an adapter that forks",
			config: sh(`for i in 1 2 3 4; do setsid /bin/sh -c 'sleep 300 & sleep 300' & done; sleep 0.2; exit 0`),
			want:   outcome{"succeeded", ""}},
		{name: "an adapter that ignores TERM", config: map[string]any{"command": "/bin/sh",
			"args": []string{"-c", `trap "" TERM; while :; do sleep 0.1; done`}, "timeoutSec": 1, "graceSec": 1},
			want: outcome{"timed_out", "timeout"}},
		{name: "an adapter that dies", config: sh(`kill -SEGV $$`), want: outcome{"failed", "adapter_failed"}},
		{name: "an adapter that is not there", config: map[string]any{"command": filepath.Join(bad, "nothing")},
			want: outcome{"failed", "adapter_failed"}},
		{name: "an upstream that hangs", config: asks("hangs", "timeoutSec", 10), want: outcome{"timed_out", "timeout"},
			costs: true},
		{name: "an upstream that streams half", config: asks("half"), want: outcome{"failed", "adapter_failed"}, costs: true},
		{name: "an upstream that answers 429", config: asks("busy"), want: outcome{"failed", "adapter_failed"}},
		{name: "an upstream that tells less than it did", config: asks("less"), want: outcome{"succeeded", ""}, costs: true},
		{name: "an upstream that tells more than it may", of: apart, config: asks("more"), want: outcome{"succeeded", ""},
			or: outcome{"cancelled", "cancelled"} /* by its budget */, costs: true},
		{name: "a container engine that is absent", adapter: "container", config: map[string]any{"image": "busybox",
			"command": "true"}, want: outcome{"failed", "container_unavailable"}},
		{name: "a disk that is full in the middle of a log",
			config: sh(`head -c 2000000 /dev/zero | tr '\0' x; echo; echo the end; exit 0`),
			want:   outcome{"succeeded", ""}, full: true,
			see: func(t *testing.T, r entity.Run, log string) {
				if r.LogBytes == nil || *r.LogBytes == 0 || int64(len(log)) != *r.LogBytes || !strings.Contains(log, "xxxx") {
					t.Errorf("of its log %d bytes are read, want %v", len(log), r.LogBytes)
				}
				said := false
				_, err := n.View(t.Context(), ledger.Read{Mode: ledger.ReadStrong}, func(tx *ledger.Tx) error {
					for _, e := range entity.EventsOf(tx, acme, r.ID, 0, 100) {
						said = said || e.Type == "run.log.incomplete"
					}
					return nil
				})
				if err != nil || !said {
					t.Errorf("the run does not say that its log is incomplete: %v", err)
				}
			}},
		{name: "a command line with a key of its own", adapter: "claude_local",
			config: told(`"total_cost_usd":0.5,"usage":{"input_tokens":3,"output_tokens":2}`), want: outcome{"succeeded", ""},
			costs: true, see: booked("reported", 50)},
		{name: "a command line that tells tokens only", adapter: "claude_local",
			config: told(`"usage":{"input_tokens":3,"output_tokens":2}`), want: outcome{"succeeded", ""},
			costs: true, see: booked("reported", 5)},
		{name: "a run beside them", config: sh(`i=0; while [ $i -lt 30 ]; do i=$((i+1)); sleep 0.1; done; echo undisturbed`),
			want: outcome{"succeeded", ""},
			see: func(t *testing.T, _ entity.Run, log string) {
				if !strings.Contains(log, "undisturbed") {
					t.Errorf("its log is %q", log)
				}
			}},
	}
	for _, d := range days {
		d.adapter, d.of = cmp.Or(d.adapter, "process"), cmp.Or(d.of, acme)
		if env, _ := d.config["env"].(map[string]any); env == nil {
			d.config["env"] = map[string]any{"BAD": bad}
		}
		var agent, issue struct{ ID string }
		b.Must(0, "POST", "/api/companies/"+string(d.of)+"/agents", map[string]any{"name": d.name, "role": "engineer",
			"adapterType": d.adapter, "adapterConfig": d.config}, &agent)
		d.agent = agent.ID
		if d.full {
			at := filepath.Join(b.confs[0].Dir, "logs", string(d.of), d.agent)
			if err := os.MkdirAll(at, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mount("none", at, "tmpfs", 0, "size=256k"); err != nil {
				t.Logf("%s: a small disk can not be had here: %v", d.name, err)
				continue
			}
			t.Cleanup(func() {
				if err := syscall.Unmount(at, syscall.MNT_DETACH); err != nil {
					t.Error(err)
				}
			})
		}
		b.Must(0, "POST", "/api/companies/"+string(d.of)+"/issues", map[string]any{"title": d.name, "status": "todo",
			"assigneeAgentId": d.agent}, &issue, Strong...)
		d.issue = issue.ID
	}
	read := func(f func(tx *ledger.Tx)) {
		if _, err := n.View(t.Context(), ledger.Read{Mode: ledger.ReadStrong},
			func(tx *ledger.Tx) error { f(tx); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range days {
		t.Run(d.name, func(t *testing.T) {
			if d.issue == "" {
				t.Skip("a small disk can not be had here: it takes the right to mount one")
			}
			var r entity.Run
			for deadline := time.Now().Add(settle); ; time.Sleep(poll) {
				read(func(tx *ledger.Tx) {
					for one := range entity.RunsOfIssue(tx, d.of, d.issue) {
						r = one // the first of them comes last
					}
				})
				if r.ID != "" && !r.Status.Live() && !r.Owed {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("the run is %q after %s", r.Status, settle)
				}
			}
			d.run = r.ID
			if got := (outcome{string(r.Status), string(r.ErrorCode)}); got != d.want && got != d.or ||
				(r.Status != entity.RunSucceeded) != (r.Error != "") {
				t.Errorf("ended as %v: %q, want %v", got, r.Error, d.want)
			}
			read(func(tx *ledger.Tx) {
				if i, _ := entity.IssueOf(tx, d.of, d.issue); i.CheckoutRun == r.ID {
					t.Error("its issue is held by it")
				}
			})
			if d.see != nil {
				log := ""
				for offset := int64(0); ; {
					var p struct {
						Content    string
						NextOffset *int64
					}
					if _, err := b.Do(0, "GET", fmt.Sprintf("/api/heartbeat-runs/%s/log?offset=%d", r.ID, offset), nil,
						&p); err != nil {
						t.Fatal(err)
					}
					if log += p.Content; p.NextOffset == nil || len(log) > 1<<20 {
						break
					}
					offset = *p.NextOffset
				}
				d.see(t, r, log)
			}
		})
	}
	// The money of all of them: nothing is under way, what was used is booked.
	b.Until("the calls of all runs are settled", func() bool {
		for _, s := range n.Purse().Stocks() {
			if s.Calls > 0 || s.Untold > 0 {
				return false
			}
		}
		return true
	})
	read(func(tx *ledger.Tx) {
		metered := map[ledger.CompanyID]core.Money{}
		for _, d := range days {
			var cost core.Money
			events := 0
			for e := range money.CostsOfAgentSince(tx, d.of, d.agent, 0) {
				cost, events = cost.Plus(e.Cost), events+1
				if e.Reservation != "" {
					metered[d.of] = metered[d.of].Plus(e.Cost)
				}
			}
			if (cost > 0) != d.costs {
				t.Errorf("%s: %d events of %d cents are booked, want some: %v", d.name, events, cost.Cents(), d.costs)
			}
		}
		worst := max(metered[acme], metered[apart]) - core.Cents(limit)
		t.Logf("metered: %d and %d of %d cents; worst overspend of metered calls: %d", metered[acme].Cents(),
			metered[apart].Cents(), limit, max(worst, 0).Cents())
		if worst > 0 {
			t.Errorf("metered calls cost %d cents more than the limit", worst.Cents())
		}
	})
	for _, d := range days { // no retry starts while processes are counted
		b.Must(0, "POST", "/api/agents/"+d.agent+"/pause", map[string]any{}, nil)
	}
	b.Idle()
	if left := marked("BAD=" + bad); len(left) != 0 {
		t.Errorf("processes %v are left over", left)
	}
}
