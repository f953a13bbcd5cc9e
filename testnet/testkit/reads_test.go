package testkit

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// What is written through one node is there on every other at once, for who
// brings the height of the answer, and for who reads strongly.
func TestReadsOnOtherNodes(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	for round := range 60 {
		wrote, reads := round%3, (round+1+round/3%2)%3
		var row struct{ ID, Title string }
		title := fmt.Sprintf("Issue %d", round)
		a := b.Must(wrote, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": title}, &row, Strong...)
		headers := Strong
		if round%2 == 0 {
			headers = []string{"X-Selvage-Height", a.Header.Get("X-Selvage-Height")}
		}
		row.Title = ""
		got := b.Must(reads, "GET", "/api/issues/"+row.ID, nil, &row, headers...)
		if row.Title != title {
			t.Errorf("n%d wrote %q, n%d read %q", wrote+1, title, reads+1, row.Title)
		}
		if before, after := height(t, a), height(t, got); after < before {
			t.Errorf("n%d answers as of %d what was written at %d", reads+1, after, before)
		}
		stale := b.Must(reads, "GET", "/api/companies/"+string(of), nil, nil, "X-Selvage-Read", "stale")
		if _, err := strconv.Atoi(stale.Header.Get("X-Selvage-Age")); err != nil {
			t.Errorf("a stale read says nothing of its age: %v", stale.Header)
		}
	}
	b.Heads()
}

func height(t *testing.T, a Answer) uint64 {
	t.Helper()
	h, err := strconv.ParseUint(a.Header.Get("X-Selvage-Height"), 10, 64)
	if err != nil {
		t.Fatalf("no height in the answer: %v", err)
	}
	return h
}

// An Idempotency-Key is good on every node: a repetition elsewhere gets the first
// answer, also at the same time, and the same key with another body a 422.
// Who knows of no heights reads where it wrote, and sees what it wrote.
func TestAClientReadsWhatItWroteWithoutHeights(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	issue := b.Issue(0, of, "Talk")
	on := (b.Leader() + 1) % 3
	for n := range 100 {
		b.Must(on, "POST", "/api/issues/"+issue+"/comments", map[string]any{"body": fmt.Sprint("word ", n)}, nil)
		var rows []struct{ Body string }
		b.Must(on, "GET", "/api/issues/"+issue+"/comments", nil, &rows)
		if len(rows) != n+1 {
			t.Fatalf("%d comments after %d were made on this very node", len(rows), n+1)
		}
	}
}

func TestIdempotencyKeyOnOtherNodes(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	agent, err := b.Hire(0, of, "Ada", nil)
	if err != nil {
		t.Fatal(err)
	}
	path := "/api/companies/" + string(of) + "/issues"
	for round := range 10 {
		key := []string{"Idempotency-Key", fmt.Sprintf("key-%d", round), "X-Selvage-Height", b.Seen()[1]}
		body := map[string]any{"title": fmt.Sprintf("Once %d", round)}
		answers, errs := make([]Answer, 9), make([]error, 9)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i], errs[i] = b.Do(i%3, "POST", path, body, nil, key...) })
		}
		wg.Wait()
		for i, a := range answers {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			if string(a.Body) != string(answers[0].Body) {
				t.Fatalf("n%d answered\n%s, n1\n%s", i%3+1, a.Body, answers[0].Body)
			}
		}
		body["title"] = "Twice"
		for on := range b.Nodes {
			if a, err := b.Ask(on, "POST", path, body, nil, key...); err != nil || a.Status != 422 {
				t.Fatalf("the same key with another body on n%d: %v, %d %s, want 422", on+1, err, a.Status, a.Body)
			}
		}
	}
	// An answer with a secret is the same too: it is shown again to who repeats.
	var first, again struct{ ID, Token string }
	keys := "/api/agents/" + agent.ID + "/keys"
	b.Must(0, "POST", keys, map[string]any{"name": "again"}, &first, "Idempotency-Key", "secret",
		"X-Selvage-Read", "strong")
	b.Must(1, "POST", keys, map[string]any{"name": "again"}, &again, "Idempotency-Key", "secret",
		"X-Selvage-Read", "strong")
	if first.ID == "" || first != again {
		t.Error("a repetition on another node made another key")
	}
	var list []struct{ Title string }
	b.Must(2, "GET", path, nil, &list, Strong...)
	if len(list) != 10 {
		t.Errorf("%d issues, want 10", len(list))
	}
	b.Heads()
}

// A frame is one event of a stream.
type frame struct {
	id    uint64 // 0 on all but the last of an entry
	event string
	data  string
}

// follow reads the events of a company after a height and hands them to f until
// it returns false or ctx ends.
func follow(ctx context.Context, b *Bed, on int, of ledger.CompanyID, after uint64, f func(frame) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", b.URL(on, "/api/companies/"+string(of)+"/events"), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Last-Event-ID", strconv.FormatUint(after, 10))
	res, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		return fmt.Errorf("events on n%d: %s", on+1, res.Status)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxAnswer)
	var now frame
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case lines.Text() == "":
			if now.data != "" && !f(now) {
				return nil
			}
			now = frame{}
		case name == "id":
			if now.id, err = strconv.ParseUint(value, 10, 64); err != nil {
				return err
			}
		case name == "event":
			now.event = value
		case name == "data":
			now.data = value
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("the stream of n%d ended: %v", on+1, lines.Err())
}

// A stream that breaks off again and again, and goes on at another node each time
// while all nodes write, tells everything once and in order.
func TestStreamGoesOnAtAnotherNode(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	issue := b.Issue(0, of, "Talk here")
	b.Heads()
	start, _ := b.Nodes[0].Ledger().Head()
	const writers, each = 3, 60
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if _, errs[w] = b.Do(w, "POST", "/api/issues/"+issue+"/comments",
					map[string]any{"body": fmt.Sprintf("%d of %d", i, w)}, nil); errs[w] != nil {
					return
				}
			}
		})
	}
	defer wg.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	defer cancel()

	var told []string
	comments := func(frames []string) (n int) {
		for _, d := range frames {
			var ev struct{ Payload struct{ Action string } }
			if err := json.Unmarshal([]byte(d), &ev); err != nil {
				t.Fatalf("event %s: %v", d, err)
			}
			if ev.Payload.Action == "issue.comment_added" {
				n++
			}
		}
		return n
	}
	after, hops := start, 0
	for ; comments(told) < writers*each; hops++ {
		var open []string // frames of an entry that is not complete
		entries := 0
		err := follow(ctx, b, hops%3, of, after, func(f frame) bool {
			open = append(open, f.data)
			if f.id == 0 {
				return true
			}
			if f.id <= after {
				t.Errorf("n%d tells height %d after %d", hops%3+1, f.id, after)
			}
			after, told, open = f.id, append(told, open...), nil
			entries++
			return entries < 7 && comments(told) < writers*each
		})
		if err != nil {
			t.Fatal(err)
		}
		if ctx.Err() != nil {
			t.Fatalf("%d of %d comments were told", comments(told), writers*each)
		}
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	// One that never broke off, on each node, tells the same.
	b.Heads()
	for on := range b.Nodes {
		var whole []string
		if err := follow(ctx, b, on, of, start, func(f frame) bool {
			whole = append(whole, f.data)
			return len(whole) < len(told)
		}); err != nil {
			t.Fatal(err)
		}
		for i := range told {
			if told[i] != whole[i] {
				t.Fatalf("event %d: told over hops\n%s, by n%d at once\n%s", i, told[i], on+1, whole[i])
			}
		}
	}
	t.Logf("%d events over %d streams", len(told), hops)
	// Nothing comes twice: a moment passes in which nothing is told.
	quiet, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	if err := follow(quiet, b, 1, of, after,
		func(f frame) bool { t.Errorf("told again: %s", f.data); return true }); err != nil && quiet.Err() == nil {
		t.Fatal(err)
	}
}
