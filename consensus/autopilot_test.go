package consensus

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/selvage-mesh/selvage/identity"
)

// seats are written as words: a letter, then what differs from a living member
// that may vote and has been well for long: v voter, * the leader, d dead for a
// minute, D dead for two days, n new (not yet well), s stopped, o outdone by a later
// incarnation, x no member, - may not vote, 1-3 its zone.
func parseSeats(words ...string) (out []seat) {
	for _, w := range words {
		s := seat{id: raft.ServerID(w[:1] + "/i"), node: identity.NodeID(w[:1]), may: true, member: true, alive: true,
			well: time.Minute}
		for _, c := range w[1:] {
			switch c {
			case 'v':
				s.voter = true
			case '*':
				s.voter, s.self = true, true
			case 'd':
				s.alive, s.well, s.gone = false, 0, time.Minute
			case 'D':
				s.alive, s.well, s.gone = false, 0, 48*time.Hour
			case 'n':
				s.well = time.Second
			case 's':
				s.stopped = true
			case 'o':
				s.outdone = true
			case 'x':
				s.member = false
			case '-':
				s.may = false
			default:
				s.zone = string(c)
			}
		}
		out = append(out, s)
	}
	return out
}

func TestPlan(t *testing.T) {
	for _, tt := range []struct {
		name  string
		seats []seat
		want  string
	}{
		{"one node", parseSeats("a*"), "stay"},
		{"two nodes have one voter", parseSeats("a*", "b"), "stay"},
		{"the first of two promotions", parseSeats("a*", "b", "c"), "promote b"},
		{"the second", parseSeats("a*", "bv", "c"), "promote c"},
		{"not before both are well", parseSeats("a*", "b", "cn"), "stay"},
		{"an even number waits for who may get well", parseSeats("a*", "bv", "cn"), "stay"},
		{"an even number without hope goes back", parseSeats("a*", "bv", "cd"), "demote b"},
		{"three are enough for four", parseSeats("a*", "bv", "cv", "d"), "stay"},
		{"five", parseSeats("a*", "bv", "cv", "d", "e"), "promote d"},
		{"a dead voter is replaced", parseSeats("a*", "bv", "cvd", "d"), "promote d"},
		{"and then demoted", parseSeats("a*", "bv", "cvd", "dv"), "demote c"},
		{"a dead voter without replacement stays", parseSeats("a*", "bv", "cvd"), "stay"},
		{"also when it is gone for long", parseSeats("a*", "bv", "cvD"), "stay"},
		{"a learner that is gone for long is removed", parseSeats("a*", "bv", "cv", "dD"), "remove d"},
		{"one that is not is kept", parseSeats("a*", "bv", "cv", "dd"), "stay"},
		{"who is no member is removed", parseSeats("a*", "bv", "cvx"), "remove c"},
		{"an old incarnation is removed", parseSeats("a*", "bv", "cvdo", "c"), "remove c"},
		{"not when that leaves no living majority", parseSeats("a*", "bvd", "cvx"), "stay"},
		{"a removed third leaves one voter of two", parseSeats("a*", "bv"), "demote b"},
		{"who may not vote is replaced", parseSeats("a*", "bv", "cv-", "d"), "promote d"},
		{"and demoted", parseSeats("a*", "bv", "cv-", "dv"), "demote c"},
		{"who may not vote is no candidate", parseSeats("a*", "b", "c-"), "stay"},
		{"who can not follow is replaced", parseSeats("a*", "bv", "cvs", "d"), "promote d"},
		{"and demoted, too", parseSeats("a*", "bv", "cvs", "dv"), "demote c"},
		{"who can not follow is no candidate", parseSeats("a*", "b", "cs"), "stay"},
		{"nor one to wait for", parseSeats("a*", "bv", "cs"), "demote b"},
		{"without another its vote is worth more than none", parseSeats("a*", "bv", "cvs"), "stay"},
		{"also among five", parseSeats("a*", "bv", "cv", "dv", "evs"), "stay"},
		{"a free zone is taken", parseSeats("a*1", "bv1", "cv2", "d3"), "promote d"},
		{"zones are spread as they can be", parseSeats("a*1", "bv1", "cv2", "d2"), "stay"},
		{"a crowded zone gives one up", parseSeats("a*1", "bv1", "cv1", "d2"), "promote d"},
		{"and loses it", parseSeats("a*1", "bv1", "cv1", "dv2"), "demote c"},
		{"the emptier zone comes first", parseSeats("a*1", "b1", "c2"), "promote c"},
	} {
		m := plan(tt.seats, 5, 10*time.Second)
		got := m.do.String()
		if m.do != stay {
			got += " " + string(m.node)
		}
		if got != tt.want {
			t.Errorf("%s: %s (%s), want %s", tt.name, got, m.why, tt.want)
		}
	}
}

// TestPlanComesToRest follows the plan from many beginnings: it stops, with an
// odd number of voters, all of them good when there are enough good servers.
func TestPlanComesToRest(t *testing.T) {
	kinds := []string{"v", "", "vd", "d", "v-", "vx"}
	for i := range 6 * 6 * 6 * 6 {
		words := []string{"a*"}
		for k, n := 0, i; k < 4; k, n = k+1, n/6 {
			words = append(words, string(rune('b'+k))+kinds[n%6])
		}
		seats := parseSeats(words...)
		for step := 0; ; step++ {
			m := plan(seats, 5, 10*time.Second)
			if m.do == stay {
				break
			}
			if step > 20 {
				t.Fatalf("%v does not come to rest: %+v", words, m)
			}
			at := slices.IndexFunc(seats, func(s seat) bool { return s.id == m.id })
			if seats[at].self {
				t.Fatalf("%v: the leader was moved: %+v", words, m)
			}
			switch m.do {
			case promote:
				seats[at].voter = true
			case demote:
				seats[at].voter = false
			case remove:
				seats = slices.Delete(seats, at, at+1)
			}
		}
	}
}

func TestAutopilotReplacesADeadVoter(t *testing.T) {
	bubble(t, 4, nil, func(t *testing.T, m *mesh) {
		var dead *node
		voter := func(n *node) bool {
			for _, s := range m.leader().cons.Servers() {
				if s.Node == n.id() {
					return s.Voter
				}
			}
			return false
		}
		for _, n := range m.followers() {
			if voter(n) {
				dead = n
			}
		}
		dead.stop(true)
		m.wait(time.Minute, "the learner in the dead voter's place", func() bool {
			s := m.leader().cons.Stats()
			return s.Voters == 3 && !voter(dead)
		})
		if err := m.leader().add(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		dead.start()
		m.same([]string{"x"})
	})
}

// TestNewIncarnationReplacesTheOld rebuilds a voter from nothing, as another
// incarnation: it joins as a learner, gets the vote back, and the old server is gone.
func TestNewIncarnationReplacesTheOld(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, m *mesh) {
		var acked []string
		for i := range 5 {
			acked = append(acked, fmt.Sprint(i))
			if err := m.nodes[0].add(t.Context(), acked[i]); err != nil {
				t.Fatal(err)
			}
		}
		lost := m.followers()[0]
		lost.stop(true)
		fresh := m.add(99)
		m.nodes = m.nodes[:3]
		lost.fs, lost.keys.Incarnation = fresh.fs, "two"
		lost.start()
		m.wait(time.Minute, "three voters, one of them new", func() bool {
			voters := 0
			for _, s := range m.leader().cons.Servers() {
				if s.Voter && (s.Node != lost.id() || s.Incarnation == "two") {
					voters++
				}
			}
			return voters == 3 && len(m.leader().cons.Servers()) == 3
		})
		m.same(acked)
	})
}

func TestRemovedLeaderLeavesFirst(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, m *mesh) {
		l := m.leader()
		if err := l.cons.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.stop(false)
		for _, s := range m.leader().cons.Servers() {
			if s.Node == l.id() {
				t.Errorf("%s is still in the configuration", s.ID)
			}
		}
		if err := m.leader().add(t.Context(), "after"); err != nil {
			t.Fatal(err)
		}
	})
}

// TestABarrierChangesNoState appends the entry that follows a slow promotion:
// state machines pass it over, before a restart and after.
func TestABarrierChangesNoState(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, m *mesh) {
		for _, op := range []string{"x", "y"} {
			if err := m.leader().add(t.Context(), op); err != nil {
				t.Fatal(err)
			}
			before := m.leader().cons.raft.LastIndex()
			if err := m.leader().cons.raft.Barrier(changeTimeout).Error(); err != nil {
				t.Fatal(err)
			}
			if after := m.leader().cons.raft.CommitIndex(); after <= before {
				t.Fatalf("the entry was not committed: %d after %d", after, before)
			}
		}
		m.same([]string{"x", "y"})
		back := m.followers()[0]
		back.stop(true)
		back.start()
		m.same([]string{"x", "y"})
	})
}
