package company

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

const (
	worldSeeds = 2
	worldSteps = 1_200
	leastKinds = 40 // of those that are drawn, carried out at least
	// auditEvery is after how many steps everything is looked through; when
	// something is wrong, the steps since are played again with a look after each.
	auditEvery = 60
	// worldSeedsEnv says how many seeds are played in place of worldSeeds.
	worldSeedsEnv = "SELVAGE_WORLD_SEEDS"
)

// A world is two companies of one mesh in which all stories have been told, each up
// to a place drawn by chance. Commands of all kinds are then played in it: payloads
// are those of the stories, with IDs of rows that are there now, that are gone, that
// are of the other company or of something else, and with parts of other payloads;
// by the board, people with roles, agents under a run or with a key, agents of the
// other company, and nodes.
type world struct {
	*storyteller
	b        *brancher
	samples  map[string][]sample
	kinds    []string
	of       [2]string
	gone     []string
	log      []func(*ledger.Tx, ledger.Mux) error // what was carried out, in order
	began    *ledger.Tx
	done     map[string]int
	refusals map[string]int
}

// A sample is a command of a story, with what the IDs in its payload meant then.
type sample struct {
	cmd     ledger.Command
	session uint64
	slots   []slot
}

// A slot is an ID in an encoded payload, which another of its 36 bytes can replace:
// of a row to be made, or of one of the tables. Several slots may be of one ID.
type slot struct {
	at     int
	same   int // the first slot with this ID
	tables []string
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// quits is what a story runs into when the world is not as it needs it: the story ends there.
type quits struct{ testing.TB }

type storyOver struct{}

func (quits) Helper()               {}
func (quits) Errorf(string, ...any) {}
func (quits) Error(...any)          {}
func (quits) Fatalf(string, ...any) { panic(storyOver{}) }
func (quits) Fatal(...any)          { panic(storyOver{}) }

// tellIn tells a story in a world, up to a number of commands, and forgives what it meets.
func (w *world) tellIn(company string, tell func(*storyteller), most int) {
	s := w.storyteller
	s.company, s.t = company, quits{}
	s.before = func(*ledger.Context) {
		if most--; most < 0 {
			panic(storyOver{})
		}
	}
	defer func() {
		s.before, s.company = nil, w.of[0]
		switch v := recover().(type) {
		case nil, storyOver, interface{ RuntimeError() }: // the story wanted what is not there
		default:
			panic(v)
		}
	}()
	tell(s)
}

var rowTables = func() map[string]bool {
	out := map[string]bool{}
	for _, kind := range staying {
		for _, table := range kind.tables {
			out[table] = true
		}
	}
	for _, table := range slices.Concat(travelling, []string{"issue-said", "memory-use", "asset", "user", "user-session", "board-key", "import-job", "cli-challenge", "session", "node"}) {
		out[table] = true
	}
	return out
}()

// rowOf returns the table of a key, and the last ID in the rest, "" when it is none of a row.
func rowOf(key []byte) (company, table, id string) {
	parts := strings.SplitN(string(key), "/", 4)
	switch {
	case len(parts) == 4 && parts[0] == "c" && rowTables[parts[2]]:
		company, table = parts[1], parts[2]
	case len(parts) == 3 && parts[0] == "m" && rowTables[parts[1]]:
		table = parts[1]
	default:
		return "", "", ""
	}
	ids := uuids.FindAllString(parts[len(parts)-1], -1)
	if len(ids) == 0 {
		return company, table, ""
	}
	return company, table, ids[len(ids)-1]
}

// learn notes what the IDs in a payload are, before it is carried out.
func (b *brancher) learn(tx *ledger.Tx, c *ledger.Context) sample {
	s := sample{cmd: *c.Cmd, session: c.Session}
	tables := map[string][]string{} // by ID
	for k, v := range tx.Scan(nil, nil, false) {
		if _, table, id := rowOf(k); table != "" {
			if id != "" && !slices.Contains(tables[id], table) {
				tables[id] = append(tables[id], table)
			}
			for n, other := range uuids.FindAllString(string(v), -1) { // revisions and the like have no row of their own
				if other != id {
					tables["in "+other] = append(tables["in "+other], table+" "+strconv.Itoa(n))
				}
			}
		}
	}
	found := uuids.FindAllIndex(c.Cmd.Payload, -1)
	for n, at := range found {
		id := string(c.Cmd.Payload[at[0]:at[1]])
		one := slot{at: at[0], same: n, tables: tables[id]}
		if len(one.tables) == 0 {
			one.tables = tables["in "+id]
		}
		for m := range n {
			if string(c.Cmd.Payload[found[m][0]:found[m][1]]) == id {
				one.same = m
				break
			}
		}
		s.slots = append(s.slots, one)
	}
	return s
}

// newWorld makes the world of a seed.
func newWorld(t *testing.T, b *brancher, samples map[string][]sample, rng *rand.Rand) *world {
	w := &world{storyteller: newStory(t, map[string]int{}), b: b, samples: samples, done: map[string]int{}, refusals: map[string]int{}}
	w.rng, w.quiet = rng, true
	w.kinds = slices.Sorted(maps.Keys(samples))
	w.of = [2]string{w.company, uid(2)}
	companies.Put(w.tx, uid(2), uid(2), Company{ID: uid(2), Name: "Bee", Status: "active", IssuePrefix: "BEE", DefaultResponsibleUser: "local-board"})
	for _, of := range w.of {
		w.tx.Set(companyIDKey(of), nil)
		w.tx.Set(prefixKey(map[string]string{uid(1): "ACM", uid(2): "BEE"}[of]), []byte(of))
		for _, n := range rng.Perm(len(stories)) {
			w.tellIn(of, stories[n].tell, 5+rng.IntN(60))
			calm(w.tx)
		}
	}
	return w
}

// calm makes a mesh in which commands can be carried out again: people need no
// credential, and nothing is stopped.
func calm(tx *ledger.Tx) {
	ledger.SetAuthMode(tx, LocalTrusted)
	for id := range halts.All(tx) {
		halts.Delete(tx, id)
	}
	for _, of := range companiesIn(tx) {
		if row, ok := companies.Get(tx, of, of); ok && row.Status == CompanyPaused {
			row.Status, row.PauseReason = CompanyActive, ""
			companies.Put(tx, of, of, row)
		}
	}
}

// speaker draws who gives a command: mostly one of those that gave it in a story.
func (w *world) speaker(c *ledger.Context, s sample) (odd bool) {
	tx, of := w.tx, c.Cmd.Company
	if of == "" || w.rng.IntN(8) == 0 {
		of = w.of[w.rng.IntN(2)]
	}
	like := s.cmd.Actor.Type
	if w.rng.IntN(5) == 0 {
		like = []string{"user", "agent", "node", "person"}[w.rng.IntN(4)]
	}
	if like == "user" && s.cmd.Credential.Kind == "session" {
		like = "person"
	}
	if like == "user" && allowed[s.cmd.Kind]&mayAgent != 0 && w.rng.IntN(3) == 0 {
		like = "agent"
	}
	switch like {
	case "agent":
		var list []Run
		for _, r := range runs.All(tx, of) {
			if r.Status == RunRunning && agentExists(tx, of, r.Agent) {
				list = append(list, r)
			}
		}
		var keys []AgentKey
		for _, k := range agentKeys.All(tx, of) {
			keys = append(keys, k)
		}
		if len(keys) > 0 && w.rng.IntN(4) == 0 {
			k := keys[w.rng.IntN(len(keys))]
			c.Cmd.Actor, c.Cmd.Credential = ledger.Actor{Type: "agent", ID: k.Agent}, ledger.Credential{Kind: "agent_key", ID: k.ID}
		} else if len(list) > 0 {
			r := list[w.rng.IntN(len(list))]
			c.Cmd.Actor, c.Cmd.Credential, c.Cmd.Run = ledger.Actor{Type: "agent", ID: r.Agent}, ledger.Credential{Kind: "run", ID: r.ID}, r.ID
		}
	case "node", "system":
		c.Cmd.Actor, c.Cmd.Credential, c.Session = ledger.Actor{Type: "node", ID: w.node}, ledger.Credential{Kind: "node", ID: w.node}, w.session
	case "person":
		var list []UserSession
		for _, s := range userSessions.All(tx) {
			list = append(list, s)
		}
		if len(list) > 0 {
			s := list[w.rng.IntN(len(list))]
			c.Cmd.Actor, c.Cmd.Credential = ledger.Actor{Type: "user", ID: s.User}, ledger.Credential{Kind: "session", ID: s.ID}
		}
	}
	return of != c.Cmd.Company && c.Cmd.Company != "" && c.Cmd.Actor.Type == "agent"
}

// rowsAt are the last IDs of the rows of a table, with the rows.
func (w *world) rowsAt(company, table string) (ids []string, whole []string) {
	name, at, inside := strings.Cut(table, " ")
	for _, prefix := range [][]byte{ledger.Key("c", company, name, ""), ledger.Key("m", name, "")} {
		for k, v := range w.tx.Prefix(prefix) {
			_, _, id := rowOf(k)
			if inside {
				all := uuids.FindAllString(string(v), -1)
				n, _ := strconv.Atoi(at)
				if id = ""; n < len(all) {
					id = all[n]
				}
			}
			if id != "" {
				ids, whole = append(ids, id), append(whole, string(k)+string(v))
			}
		}
	}
	return ids, whole
}

// payload fills the slots of a sample with what is there, or is not.
func (w *world) payload(company string, s sample) []byte {
	p := slices.Clone(s.cmd.Payload)
	for _, name := range []string{"Ada", "Bob", "Other", "weld", "solder", "token", "github", "Report", "count"} { // names that may be there once
		other := []byte(name)
		for n := 1; n < len(other); n++ {
			other[n] = 'a' + byte(w.rng.IntN(26))
		}
		p = bytes.ReplaceAll(p, []byte(name), other)
	}
	picked := map[int]string{}
	var related []string
	for _, n := range w.rng.Perm(len(s.slots)) {
		if s.slots[n].same != n {
			continue
		}
		of := company
		if w.rng.IntN(20) == 0 {
			of = w.of[w.rng.IntN(2)]
		}
		id := ""
		switch {
		case len(s.slots[n].tables) == 0:
			if id = w.id(); w.rng.IntN(40) == 0 && len(w.gone) > 0 {
				id = w.gone[w.rng.IntN(len(w.gone))]
			}
		case w.rng.IntN(15) == 0 && len(w.gone) > 0:
			id = w.gone[w.rng.IntN(len(w.gone))]
		default:
			ids, whole := w.rowsAt(of, s.slots[n].tables[w.rng.IntN(len(s.slots[n].tables))])
			if w.rng.IntN(5) > 0 && len(related) > 0 { // of what was picked already
				var near []string
				for at, row := range whole {
					if slices.ContainsFunc(related, func(other string) bool { return strings.Contains(row, other) }) {
						near = append(near, ids[at])
					}
				}
				if len(near) > 0 {
					ids = near
				}
			}
			if id = w.id(); len(ids) > 0 {
				id = ids[w.rng.IntN(len(ids))]
			}
			related = append(related, id)
		}
		picked[n] = id
	}
	for n, sl := range s.slots {
		copy(p[sl.at:], picked[s.slots[n].same])
	}
	return p
}

// crossed is a payload with a field that is left out, is of another payload of the
// same kind, or has another value.
func (w *world) crossed(kind string, p []byte, company string) []byte {
	var m map[any]any
	if ledger.Unmarshal(p, &m) != nil || len(m) == 0 {
		return p
	}
	fields := func(m map[any]any) []uint64 {
		var out []uint64
		for k := range m {
			if n, ok := k.(uint64); ok {
				out = append(out, n)
			}
		}
		slices.Sort(out)
		return out
	}
	all := fields(m)
	if len(all) == 0 {
		return p
	}
	at := all[w.rng.IntN(len(all))]
	switch w.rng.IntN(4) {
	case 0:
		if at != 1 {
			delete(m, at)
		}
	case 1, 2:
		others := w.samples[kind]
		var other map[any]any
		if ledger.Unmarshal(w.payload(company, others[w.rng.IntN(len(others))]), &other) == nil {
			for _, f := range fields(other) {
				if f != 1 && w.rng.IntN(2) == 0 {
					m[f] = other[f]
				}
			}
		}
	default:
		switch v := m[at].(type) {
		case uint64:
			m[at] = []uint64{0, 1, v + 1, v * 2, 1 << 40}[w.rng.IntN(5)]
		case bool:
			m[at] = !v
		case string:
			if !uuids.MatchString(v) {
				m[at] = []string{"", v + " again", "todo", "in_progress", "done", "blocked", "cancelled", "backlog", "in_review", "paused", "archived", "active"}[w.rng.IntN(12)]
			}
		}
	}
	return ledger.Marshal(m)
}

// begin gives an agent a run at work.
func (w *world) begin() {
	of := w.of[w.rng.IntN(2)]
	var list []string
	for id, a := range agents.All(w.tx, of) {
		if a.Status == AgentIdle || a.Status == AgentRunning {
			list = append(list, id)
		}
	}
	if len(list) == 0 || len(LiveRunsOf(w.tx, of)) >= 8 {
		return
	}
	w.height++
	r := Run{ID: w.id(), Company: of, Agent: list[w.rng.IntN(len(list))], Status: RunRunning, Source: WakeOnDemand, Queue: w.height, CreatedAt: TimeOf(w.now), StartedAt: TimeOf(w.now)}
	w.play(func(tx *ledger.Tx, _ ledger.Mux) error {
		tx.Set(runCompanyKey(r.ID), []byte(of))
		(&desk{tx: tx}).storeRun(r)
		return nil
	})
}

// play does what can be done again when all is replayed.
func (w *world) play(do func(*ledger.Tx, ledger.Mux) error) {
	_ = do(w.tx, w.mux)
	w.log = append(w.log, do)
}

// turn plays one command and returns its kind and what it broke.
func (w *world) turn() (kind, broken string) {
	kind = w.kinds[w.rng.IntN(len(w.kinds))]
	if (kind == "company.delete" || kind == "company.archive") && w.rng.IntN(20) > 0 {
		kind = "issue.update"
	}
	s := w.samples[kind][w.rng.IntN(len(w.samples[kind]))]
	w.company = w.of[min(w.rng.IntN(6)/5, 1)]
	of := w.company
	defer func() { w.company = w.of[0] }()
	w.now = w.now.Add(time.Duration(w.rng.IntN(200)) * time.Second)
	c := w.context(board, kind, nil)
	c.Cmd.Credential = ledger.Credential{Kind: "local"}
	c.Mesh, c.Origin = "m", w.keys.ID()
	if ofMesh(kind) {
		c.Cmd.Company = ""
	}
	c.Cmd.Payload = w.payload(of, s)
	if w.rng.IntN(3) == 0 {
		c.Cmd.Payload = w.crossed(kind, c.Cmd.Payload, of)
	}
	stranger := w.speaker(c, s)
	return kind, w.put(c, stranger)
}

// put carries a command out, and looks at what came of it.
func (w *world) put(c *ledger.Context, stranger bool) (broken string) {
	kind := c.Cmd.Kind
	at := *c
	c.Tx = w.tx.Child()
	look := w.refusals[kind]%8 == 0
	var before [32]byte
	if look {
		before = digestOf(w.tx)
	}
	defer func() {
		if v := recover(); v != nil {
			broken = fmt.Sprintf("panics: %v", v)
		}
	}()
	err := Authorize(c)
	if stranger && err == nil {
		return "an agent of another company is let in"
	}
	if err == nil {
		_, err = w.mux[kind](c)
	}
	if err != nil {
		if _, ok := err.(*ledger.Refusal); !ok {
			return fmt.Sprintf("failed: %v", err)
		}
		w.refusals[kind]++
		if look && digestOf(w.tx) != before {
			return "it is refused and changes something"
		}
		return ""
	}
	if bad := w.keepsOut(c); bad != "" {
		return bad
	}
	changed := false
	for k, v := range c.Tx.Writes() {
		old, ok := w.tx.Get([]byte(k))
		changed = changed || ok != (v != nil) || !bytes.Equal(old, v)
		if _, _, id := rowOf([]byte(k)); v == nil && id != "" && len(w.gone) < 5_000 {
			w.gone = append(w.gone, id)
		}
	}
	w.done[kind]++
	c.Tx.Merge()
	w.log = append(w.log, func(tx *ledger.Tx, mux ledger.Mux) error {
		c := at
		c.Tx = tx.Child()
		_, err := mux[kind](&c)
		if err == nil {
			c.Tx.Merge()
		} else {
			err = fmt.Errorf("%s at height %d is refused now: %v", kind, c.Height, err)
		}
		return err
	})
	if kind == "budget.sweep" && len(c.Changes()) == 0 {
		return "" // it forgets what was told when it was settled
	}
	if bad := w.b.lines(kind, c.Changes(), changed); bad != "" {
		return bad
	}
	if kind == "budget.reserve" && changed {
		if bad := withinLimits(w.storyteller); bad != "" {
			return bad
		}
	}
	return ""
}

// keepsOut returns which key of another company a command writes.
func (w *world) keepsOut(c *ledger.Context) string {
	if c.Cmd.Company == "" {
		return ""
	}
	for k := range c.Tx.Writes() {
		if of, ok := strings.CutPrefix(k, "c/"); ok && !strings.HasPrefix(of, c.Cmd.Company+"/") {
			return "writes what is of another company: " + plain(k)
		}
	}
	return ""
}

// companiesIn are all companies of which there is a key.
func companiesIn(tx *ledger.Tx) (out []string) {
	for from := []byte("c/"); ; {
		found := ""
		for k := range tx.Scan(from, ledger.PrefixEnd([]byte("c/")), false) {
			found, _, _ = strings.Cut(string(k[2:]), "/")
			break
		}
		if found == "" {
			return out
		}
		out = append(out, found)
		from = ledger.PrefixEnd([]byte("c/" + found + "/"))
	}
}

// audit looks through everything.
func (w *world) audit() string {
	all := companiesIn(w.tx)
	if bad := booksOf(w.tx, all...).wrong(all...); bad != "" {
		return bad
	}
	defer func() { w.company = w.of[0] }()
	for _, of := range all {
		if row, ok := companies.Get(w.tx, of, of); !ok || row.Status == CompanyDeleting {
			continue
		}
		w.company = of
		if bad := w.check() + w.checkMore(); bad != "" {
			return bad
		}
	}
	return w.apart(all)
}

// apart returns which row of a company names one of another.
func (w *world) apart(all []string) string {
	owner := map[string]string{}
	for _, of := range all {
		for k := range w.tx.Prefix(ledger.Key("c", of, "")) {
			if _, _, id := rowOf(k); strings.HasPrefix(id, uid(0)[:24]) && id != of { // others follow from what they are about
				if other := owner[id]; other != "" && other != of {
					owner[id] = "both"
				} else {
					owner[id] = of
				}
			}
		}
		owner[of] = of
	}
	for id := range users.All(w.tx) {
		delete(owner, id)
	}
	for _, of := range all {
		for k, v := range w.tx.Prefix(ledger.Key("c", of, "")) {
			if _, table, _ := rowOf(k); table == "asset" {
				continue // the name of a file is anything
			}
			for _, text := range [][]byte{k[2+len(of):], v} {
				for _, id := range uuids.FindAll(text, -1) {
					if other := owner[string(id)]; other != "" && other != "both" && other != of {
						return fmt.Sprintf("%s names %s of %s: %q", plain(string(k)), id, other, v)
					}
				}
			}
		}
	}
	return ""
}

// replayed carries out again what was, on what there was, and compares.
func (w *world) replayed() string {
	tx, mux := w.began.Child(), Handlers()
	for _, again := range w.log {
		if err := again(tx, mux); err != nil {
			return err.Error()
		}
	}
	if digestOf(tx) != digestOf(w.tx) {
		return "the same commands make another state"
	}
	return ""
}

// teach tells each story once and learns from its commands.
func teach(t *testing.T) (*brancher, map[string][]sample) {
	b, samples := &brancher{owns: map[string]map[string]bool{}}, map[string][]sample{}
	for _, story := range stories {
		s := newStory(t, map[string]int{})
		s.quiet = true
		var one sample
		s.before = func(c *ledger.Context) { one = b.learn(s.tx, c) }
		s.after = func(kind, own string, c *ledger.Context) {
			if b.owns[kind] == nil {
				b.owns[kind] = map[string]bool{}
			}
			b.owns[kind][own] = true
			one.cmd, one.session = *c.Cmd, c.Session
			samples[kind] = append(samples[kind], one)
		}
		story.tell(s)
	}
	return b, samples
}

// playWorld plays a world, and returns what was broken. Everything is looked through
// after each audit steps, and after each from the step sharp on.
func playWorld(t *testing.T, b *brancher, samples map[string][]sample, seed uint64, audit, sharp int) (broken string, w *world) {
	w = newWorld(t, b, samples, rand.New(rand.NewPCG(seed, 13)))
	start := w.tx
	all := companiesIn(w.tx)
	booksOf(w.tx, all...).settle(all...) // stories change some rows with their own hands
	if bad := w.audit(); bad != "" {
		return fmt.Sprintf("seed %d, before the first command: %s", seed, bad), w
	}
	w.began, w.tx = start, start.Child()
	for n := range worldSteps {
		if n%20 == 0 {
			w.play(func(tx *ledger.Tx, _ ledger.Mux) error { calm(tx); return nil })
			if s, ok := ledger.FindSession(w.tx, w.session); !ok || s.EndedAt != 0 {
				w.height++
				id := w.height
				w.session = id
				w.play(func(tx *ledger.Tx, _ ledger.Mux) error {
					sessionRows.Put(tx, ledger.Order(id), ledger.Session{ID: id, Node: w.keys.ID()})
					return nil
				})
			}
		}
		if n%10 == 5 {
			w.begin()
		}
		kind, bad := w.turn()
		if bad == "" && (n%audit == audit-1 || n >= sharp || n == worldSteps-1) {
			if bad = w.audit(); bad != "" && n < sharp {
				return playWorld(t, b, samples, seed, audit, n-audit)
			}
		}
		if bad != "" {
			return fmt.Sprintf("seed %d, step %d, %s: %s", seed, n, kind, bad), w
		}
	}
	if bad := w.replayed(); bad != "" {
		return fmt.Sprintf("seed %d: %s", seed, bad), w
	}
	return "", w
}

// Commands of every kind, with rows of all sorts, by whomever: what is carried out
// leaves one line of its own, every row has its keys and every key its row, no row
// names one of another company, and the same commands make the same bytes again.
// What is refused changes nothing.
func TestTheWorldHoldsTogether(t *testing.T) {
	t.Parallel()
	b, samples := teach(t)
	seeds := worldSeeds
	if n, err := strconv.Atoi(os.Getenv(worldSeedsEnv)); err == nil {
		seeds = n
	}
	done, refusals := map[string]int{}, 0
	for seed := range uint64(seeds) {
		broken, w := playWorld(t, b, samples, seed, auditEvery, worldSteps)
		if broken != "" {
			t.Error(broken)
		}
		for kind, n := range w.done {
			done[kind] += n
		}
		for _, n := range w.refusals {
			refusals += n
		}
	}
	var never []string
	for _, kind := range Handlers().Kinds() {
		if done[kind] == 0 {
			never = append(never, kind)
		}
	}
	if len(done) < leastKinds {
		t.Errorf("only %d kinds were carried out", len(done))
	}
	t.Logf("%d kinds carried out, %d refusals; never: %v", len(done), refusals, never)
}
