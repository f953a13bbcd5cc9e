package rules_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	everySeeds = 6
	// At one in branchEvery places of a story, a branch of branchSteps other commands is
	// executed first.
	branchEvery, branchSteps = 2, 8
)

// A played is a command that a story executed.
type played struct {
	cmd     ledger.Command
	session uint64
}

// A brancher has the commands of all stories, and executes them at random places.
type brancher struct {
	rng   *rand.Rand
	all   []played
	owns  map[string]map[string]bool // the actions of a kind's own line
	drawn map[string]int
	done  map[string]int

	bug companytest.Bug
}

// branch executes random commands on a copy of the company: later commands of this story, out
// of order and repeated, and commands of all stories. It returns the rule that was broken.
func (b *brancher) branch(s *storyteller, mine []played, at int) (broken string) {
	tx, height, now := s.Tx, s.Height, s.Now
	defer func() { s.Tx, s.Height, s.Now = tx, height, now }()
	s.Tx = tx.Child()
	for n := range branchSteps {
		p := b.all[b.rng.IntN(len(b.all))]
		switch {
		case n == 0 && b.rng.IntN(2) == 0:
			p = mine[at] // the next command, so that the others run after it
		case b.rng.IntN(3) > 0:
			p = mine[min(max(at-2+b.rng.IntN(8), 0), len(mine)-1)]
		}
		s.Now = s.Now.Add(time.Duration(b.rng.IntN(90)) * time.Second)
		if broken = b.play(s, p); broken != "" {
			return p.cmd.Kind + ": " + broken
		}
	}
	return ""
}

func (b *brancher) play(s *storyteller, p played) string {
	kind := p.cmd.Kind
	b.drawn[kind]++
	c := s.Context(companytest.Board, kind, nil)
	cmd := p.cmd
	c.Cmd, c.Session, c.Mesh, c.Origin, c.Tx = &cmd, p.session, "m", s.keys.ID(), s.Tx.Child()
	if _, err := b.bug.In(s.Mux[kind])(c); err != nil {
		if _, ok := err.(*ledger.Refusal); !ok {
			return fmt.Sprintf("failed: %v", err)
		}
		return ""
	}
	b.done[kind]++
	before := digestOf(s.Tx)
	c.Tx.Merge()
	changed := digestOf(s.Tx) != before
	if bad := b.lines(kind, c.Changes(), changed); bad != "" {
		return bad
	}
	if kind == "budget.reserve" && changed { // repeating the request returns the existing reservation
		if bad := withinLimits(s); bad != "" {
			return bad
		}
	}
	return s.check() + s.checkMore()
}

// lines checks that a command that changed something left exactly one line of its own about
// its target, or one that its story does not have.
func (b *brancher) lines(kind string, changes []ledger.Change, changed bool) string {
	if tellsNothing[kind] != "" || b.owns[kind][alreadyTold] {
		return ""
	}
	own, others, about := 0, 0, ""
	for _, ch := range changes {
		if entity.Live(ch) {
			continue
		}
		if !b.owns[kind][ch.Action] {
			others++ // the story had another outcome: created, not updated
			continue
		}
		if own == 0 {
			about = ch.EntityType + ch.EntityID
		}
		if about == ch.EntityType+ch.EntityID {
			own++
		}
	}
	if own == 1 || own == 0 && (!changed || others > 0 ||
		kind == "company.delete") { // deleted in several commands, of which one logs it
		return ""
	}
	actions := []string{}
	for _, ch := range changes {
		actions = append(actions, ch.Action+" "+ch.EntityID)
	}
	return fmt.Sprintf("%d lines of its own: %v, want one of %v", own, actions, slices.Sorted(maps.Keys(b.owns[kind])))
}

// digestOf returns a hash of all rows.
func digestOf(tx *ledger.Tx) [32]byte {
	h := sha256.New()
	for k, v := range tx.Scan(nil, []byte{0xff}, false) {
		fmt.Fprintf(h, "%d %s %d %s", len(k), k, len(v), v)
	}
	return [32]byte(h.Sum(nil))
}

// withinLimits returns a scope or allowance whose reserved and spent money is above its limit
// right after a reservation, or "".
func withinLimits(s *storyteller) string {
	for _, sc := range money.Budgets(s.Tx, s.Company, core.TimeOf(s.Now)) {
		if room, by, limited := sc.Room(); limited && room < 0 {
			return fmt.Sprintf("%s %s is %d beyond its limit of %d", sc.Type, sc.ID, -room, by.Amount)
		}
	}
	for id, a := range money.Allowances.All(s.Tx, s.Company) {
		if a.Left() < 0 {
			return fmt.Sprintf("the allowance of %s is %d beyond its limit", id, -a.Left())
		}
	}
	return ""
}

// playStories tells all stories, with branches of successive seeds, until a rule is broken.
// The planted bug is active in the branches.
func playStories(t *testing.T, planted companytest.Bug) (b *brancher, broken string) {
	b = &brancher{owns: map[string]map[string]bool{}, drawn: map[string]int{}, done: map[string]int{}, bug: planted}
	told := make([][]played, len(stories))
	for n, story := range stories {
		s := newStory(t, map[string]int{})
		s.after = func(kind, own string, c *ledger.Context) {
			if b.owns[kind] == nil {
				b.owns[kind] = map[string]bool{}
			}
			b.owns[kind][own] = true
			told[n] = append(told[n], played{*c.Cmd, c.Session})
		}
		story.tell(s)
		b.all = append(b.all, told[n]...)
	}
	for seed := range uint64(everySeeds) {
		b.rng = rand.New(rand.NewPCG(seed, 11))
		for n, story := range stories {
			s := newStory(t, map[string]int{})
			at := 0
			s.before = func(c *ledger.Context) {
				if broken == "" && b.rng.IntN(branchEvery) == 0 {
					if bad := b.branch(s, told[n], at); bad != "" {
						broken = fmt.Sprintf("seed %d, %s after %d commands, before %s: %s", seed, story.of, at, c.Cmd.Kind, bad)
					}
				}
				at++
			}
			if story.tell(s); broken != "" {
				return b, broken
			}
		}
	}
	return b, ""
}

// Every kind of command is executed at random places of every story: too early, repeatedly,
// and where it makes no sense. An executed command leaves one line of its own, and no orphaned
// work, cycle, second owner, or reservation above a limit.
func TestEveryKindAtRandom(t *testing.T) {
	t.Parallel()
	b, broken := playStories(t, nil)
	if broken != "" {
		t.Fatal(broken)
	}
	kinds := rules.Handlers().Kinds()
	var never, refused []string
	for _, kind := range kinds {
		switch {
		case b.drawn[kind] == 0:
			never = append(never, kind)
		case b.done[kind] == 0:
			refused = append(refused, kind)
		}
	}
	t.Logf("of %d kinds %d were drawn, %d carried out; never carried out: %v", len(kinds), len(kinds)-len(never),
		len(kinds)-len(never)-len(refused), refused)
	if len(never) > 0 || len(refused) > len(kinds)/20 {
		t.Errorf("never drawn: %v; never carried out: %v", never, refused)
	}
}

// A planted bug is found: locks that are kept after their runs end.
func TestEveryKindAtRandomFindsBugs(t *testing.T) {
	t.Parallel()
	if _, broken := playStories(t, companytest.KeptLocks); !strings.Contains(broken, "held by a run that is over") {
		t.Errorf("found %q", broken)
	}
}
