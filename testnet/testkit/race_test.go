package testkit

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// racers and rounds are what the promise is about; SELVAGE_RACE_ROUNDS makes the
// race longer or shorter, -short makes it a look.
const (
	racers      = 50
	rounds      = 200
	shortRounds = 10
)

func howOften(t *testing.T) int {
	if v := os.Getenv("SELVAGE_RACE_ROUNDS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			t.Fatalf("SELVAGE_RACE_ROUNDS=%q: want a number from 1", v)
		}
		return n
	}
	if testing.Short() {
		return shortRounds
	}
	return rounds
}

// Fifty agents, each with its own key and run, race through three nodes for one
// issue, again and again: one gets it, all others are told who has it, and the
// winner's fencing token is larger than any before.
func TestOneOfFiftyWins(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	began := time.Now()
	agents := b.Agents(of, racers)
	t.Logf("%d agents at work after %s", racers, time.Since(began).Round(time.Millisecond))

	began = time.Now()
	n, fence, wins := howOften(t), int64(0), map[string]int{}
	for round := range n {
		issue := b.Issue(round%len(b.Nodes), of, fmt.Sprintf("Race %d", round))
		winner, token := race(t, b, agents, issue, round)
		if token <= fence {
			t.Fatalf("round %d: fencing token %d does not rise above %d", round, token, fence)
		}
		fence = token
		wins[winner.ID]++
		if round%4 > 0 {
			continue
		}
		// The same issue, given back: the token of its next holder is larger too.
		b.Must((round+1)%len(b.Nodes), "POST", "/api/issues/"+issue+"/admin/force-release?clearAssignee=true", nil, nil,
			b.Seen()...)
		b.Must((round+2)%len(b.Nodes), "PATCH", "/api/issues/"+issue, map[string]any{"status": "todo"}, nil, b.Seen()...)
		if _, token = race(t, b, agents, issue, round); token <= fence {
			t.Fatalf("round %d: fencing token of the next holder %d does not rise above %d", round, token, fence)
		}
		fence = token
	}
	took := time.Since(began)
	at := b.Heads()
	t.Logf("%d rounds in %s, %s each; %d agents won at least once; height %d", n, took.Round(time.Millisecond),
		(took / time.Duration(n)).Round(time.Millisecond), len(wins), at.Height)
	for i, node := range b.Nodes {
		if v, err := node.Ledger().Verify(t.Context(), nil); err != nil {
			t.Errorf("chain of n%d: %v (%+v)", i+1, err, v)
		}
	}
}

// race lets all agents check out one issue at once and returns the winner.
func race(t *testing.T, b *Bed, agents []Agent, issue string, round int) (winner Agent, token int64) {
	t.Helper()
	answers, errs := make([]Answer, len(agents)), make([]error, len(agents))
	seen := b.Seen()
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for i, a := range agents {
		wg.Go(func() {
			body := map[string]any{"agentId": a.ID, "expectedStatuses": []string{"todo", "backlog", "blocked"}}
			<-gate
			answers[i], errs[i] = b.Ask((i+round)%len(b.Nodes), "POST", "/api/issues/"+issue+"/checkout", body, nil,
				a.As(seen...)...)
		})
	}
	close(gate)
	wg.Wait()
	won := -1
	for i, a := range answers {
		switch {
		case errs[i] != nil:
			t.Fatalf("round %d: %s: %v", round, agents[i].Name, errs[i])
		case a.Status == 200 && won >= 0:
			t.Fatalf("round %d: %s and %s both got the issue", round, agents[won].Name, agents[i].Name)
		case a.Status == 200:
			won = i
		case a.Status != 409:
			t.Fatalf("round %d: %s got %d %s, want 200 or 409", round, agents[i].Name, a.Status, a.Body)
		}
	}
	if won < 0 {
		t.Fatalf("round %d: nobody got the issue", round)
	}
	winner = agents[won]
	for i, a := range answers {
		if i == won {
			continue
		}
		var refusal struct {
			Error   string
			Details struct{ IssueID, Status, AssigneeAgentID, CheckoutRunID string }
		}
		if err := json.Unmarshal(a.Body, &refusal); err != nil {
			t.Fatalf("round %d: %s: %v", round, a.Body, err)
		}
		d := refusal.Details
		if d.AssigneeAgentID != winner.ID || d.CheckoutRunID != winner.Run || d.IssueID != issue ||
			d.Status != "in_progress" {
			t.Fatalf("round %d: the winner is %s under run %s, but %s was told %s", round, winner.ID, winner.Run,
				agents[i].Name, a.Body)
		}
	}
	var row struct {
		Status, AssigneeAgentID, CheckoutRunID string
		FencingToken                           *int64
	}
	if err := json.Unmarshal(answers[won].Body, &row); err != nil {
		t.Fatal(err)
	}
	if row.Status != "in_progress" || row.AssigneeAgentID != winner.ID || row.CheckoutRunID != winner.Run ||
		row.FencingToken == nil {
		t.Fatalf("round %d: the winner got %s", round, answers[won].Body)
	}
	return winner, *row.FencingToken
}
