package rules_test

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/kit"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	maxFields  = 40 // highest key of a payload's fields
	leastKinds = 150
	leastLures = 2_000
)

// goes are the verbs of commands that delete rows.
var goes = map[string]bool{"delete": true, "remove": true, "undefine": true, "sweep": true, "unset": true,
	"archive": true, "forget": true, "revoke": true}

// mostNamed are the tables whose rows are most often referred to.
var mostNamed = []string{"agent", "issue", "project", "run"}

// A world is two companies of one mesh that must not reach each other's rows. Stories are
// told in both. Before each command of the first, the command is tried with rows of the second.
type world struct {
	*storyteller
	of      [2]string
	rows    map[string]*spot          // by ID
	at      map[string]string         // rows of other companies than the first, by table
	telling int                       // number of stories told
	others  map[ledger.CompanyID]bool // the companies whose rows are in at
}

// A spot is the first row that has an ID; of is its company, "" for rows of the mesh.
type spot struct {
	of     ledger.CompanyID
	tables []string
}

// namesAnything are the kinds that may refer to rows of other companies, with the reason.
var namesAnything = map[string]string{
	"sidebar.order": "the companies and projects that a person wants to see first: what is not theirs is not " +
		"shown, and stays in the order when it is gone",
}

// nowhere is an ID of no row.
const nowhere = "00000000-0000-4000-8000-00000000dead"

var (
	uuids  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	hashes = regexp.MustCompile(`[0-9a-f]{64}`)
)

// rowTables are the tables of rows. All other keys belong to indexes.
var rowTables = func() map[string]bool {
	out := map[string]bool{}
	for _, kind := range company.Staying {
		for _, table := range kind.Tables {
			out[table] = true
		}
	}
	for _, table := range slices.Concat(company.Travelling, []string{"issue-said", "memory-use", "asset", "user",
		"user-session", "board-key", "import-job", "cli-challenge", "session", "node", "tree-grant", "tree-root"}) {
		out[table] = true
	}
	return out
}()

// rowOf returns the table of a key and the last ID in the rest. table is "" if the key is not
// the key of a row.
func rowOf(key string) (company ledger.CompanyID, table, id string) {
	parts := strings.SplitN(key, "/", 4)
	switch {
	case len(parts) == 4 && parts[0] == "c" && rowTables[parts[2]]:
		company, table = ledger.CompanyID(parts[1]), parts[2]
	case len(parts) == 3 && parts[0] == "m" && rowTables[parts[1]]:
		table = parts[1]
	default:
		return "", "", ""
	}
	if last := parts[len(parts)-1]; len(last) >= 36 && strings.Contains(last, "-") {
		if ids := uuids.FindAllString(last, -1); len(ids) > 0 {
			id = ids[len(ids)-1]
		}
	}
	return company, table, id
}

// newWorld makes two empty companies.
func newWorld(t *testing.T) *world {
	w := &world{storyteller: newStory(t, map[string]int{}), rows: map[string]*spot{}}
	w.quiet = true
	w.of = [2]string{string(w.Company), companytest.UID(2)}
	entity.CompanyTable.Put(w.Tx, ledger.CompanyID(companytest.UID(2)), ledger.CompanyID(companytest.UID(2)),
		entity.Company{ID: ledger.CompanyID(companytest.UID(2)), Name: "Bee", Status: "active", IssuePrefix: "BEE",
			DefaultResponsibleUser: "local-board"})
	for n, prefix := range []string{"ACM", "BEE"} {
		w.Tx.Set(core.CompanyIDKey(w.of[n]), nil)
		w.Tx.Set(core.PrefixKey(prefix), []byte(w.of[n]))
	}
	w.look()
	return w
}

// look reads which rows exist.
func (w *world) look() {
	for k := range w.Tx.Scan(nil, []byte{0xff}, false) {
		w.note(string(k))
	}
}

// note records the row of one key.
func (w *world) note(key string) {
	of, table, id := rowOf(key)
	if id == "" {
		return
	}
	p := w.rows[id]
	if p == nil {
		p = &spot{of: of}
		w.rows[id] = p
	}
	if p.of == of && !slices.Contains(p.tables, table) {
		p.tables = append(p.tables, table)
	}
}

// foreign returns an ID in text that belongs to a row of another company than of.
func (w *world) foreign(of ledger.CompanyID, text []byte) string {
	for _, id := range uuids.FindAll(text, -1) {
		if p := w.rows[string(id)]; p != nil && p.of != "" && p.of != of {
			return string(id)
		}
	}
	return ""
}

// crosses returns how an executed command reached another company: in its writes, its entries
// or its answer.
func (w *world) crosses(cmd ledger.Command, c *ledger.Context, answer []byte) string {
	of := cmd.Company
	if namesAnything[cmd.Kind] != "" {
		return ""
	}
	for k, v := range c.Tx.Writes() {
		if !strings.HasPrefix(k, "c/") {
			owner := of // an index key outside companies belongs to one company
			for _, id := range uuids.FindAll(slices.Concat([]byte(k), []byte(" "), v), -1) {
				if p := w.rows[string(id)]; p != nil && p.of != "" && p.of != owner {
					return fmt.Sprintf("writes %s of another company: %q", plain(k), v)
				}
			}
			continue
		}
		if !strings.HasPrefix(k, "c/"+string(of)+"/") {
			return "writes what is of another company: " + plain(k)
		}
		if id := w.foreign(of, []byte(k[2+len(of):])); id != "" {
			return fmt.Sprintf("writes %s, which names %s of another company", plain(k), id)
		}
		if id := w.foreign(of, v); id != "" {
			return fmt.Sprintf("%s names %s of another company: %q", plain(k), id, v)
		}
	}
	for _, ch := range c.Changes() {
		if id := w.foreign(of, []byte(ch.EntityID+" "+string(ch.Details))); id != "" {
			return fmt.Sprintf("tells of %s of another company: %s %s", id, ch.Action, ch.Details)
		}
	}
	if id := w.foreign(of, answer); id != "" {
		return fmt.Sprintf("answers with %s of another company: %q", id, answer)
	}
	return ""
}

// try executes a command on a copy of the world, and returns how it reached another company.
// The command may contain the ID text.
func (w *world) try(c *ledger.Context, payload []byte, text string) (done bool, broken string) {
	defer func() {
		if v := recover(); v != nil {
			broken = fmt.Sprintf("panics: %v", v)
		}
	}()
	cmd, other := *c.Cmd, *c
	cmd.Payload = payload
	other.Cmd, other.Tx, other.Mesh, other.Origin = &cmd, w.Tx.Child(), "m", w.keys.ID()
	at := cmd
	if p := w.rows[text]; p != nil {
		delete(w.rows, text)
		defer func() { w.rows[text] = p }()
	}
	v, err := w.Mux[cmd.Kind](&other)
	if err != nil {
		if _, ok := err.(*ledger.Refusal); !ok {
			return false, fmt.Sprintf("failed: %v", err)
		}
		return false, ""
	}
	return true, w.crosses(at, &other, v)
}

// wellFormed reports whether a payload decodes, whatever its values.
func (w *world) wellFormed(c *ledger.Context, payload []byte) bool {
	cmd, other := *c.Cmd, *c
	cmd.Payload = payload
	other.Cmd, other.Tx, other.Mesh, other.Origin = &cmd, w.Tx.Child(), "m", w.keys.ID()
	_, err := w.Mux[cmd.Kind](&other)
	return err == nil || !strings.Contains(err.Error(), "malformed payload")
}

// quits is the testing.TB of a story. A failure ends the story and not the test, because the
// world may not be as the story needs it.
type quits struct{ testing.TB }

type storyOver struct{}

func (quits) Helper()               {}
func (quits) Errorf(string, ...any) {}
func (quits) Error(...any)          {}
func (quits) Fatalf(string, ...any) { panic(storyOver{}) }
func (quits) Fatal(...any)          { panic(storyOver{}) }

// over recovers the panic that ended a story whose rows do not exist, and no other panic.
func over(v any) {
	switch v := v.(type) {
	case nil, storyOver, interface{ RuntimeError() }:
	default:
		panic(v)
	}
}

// tellIn tells a story in a company and ignores its failures. With stay, commands that delete
// rows do nothing. Hashes of credentials differ between companies.
func (w *world) tellIn(company ledger.CompanyID, tell func(*storyteller), stay bool) {
	s := w.storyteller
	w.telling++
	s.Company, s.t, s.session = company, quits{}, s.newSession()
	rules := s.Mux
	if s.Mux = maps.Clone(rules); stay {
		for kind := range rules {
			if _, what, _ := strings.Cut(kind, "."); goes[what] {
				s.Mux[kind] = func(*ledger.Context) ([]byte, error) { return nil, nil }
			}
		}
	}
	s.before = w.hashes
	defer func() {
		s.before, s.Company, s.Mux = nil, ledger.CompanyID(w.of[0]), rules
		over(recover())
		w.look()
		calm(w.Tx)
	}()
	tell(s)
}

// hashes gives a command in the second company its own hashes and addresses, different each
// time a story is told: two credentials, or two users, are never equal.
func (w *world) hashes(c *ledger.Context) {
	p := bytes.ReplaceAll(c.Cmd.Payload, []byte("@example.com"), []byte("@example.net"))
	tag := fmt.Sprintf("%04x", w.telling)
	p = bytes.ReplaceAll(p, []byte(strings.Repeat("ab", 12)), []byte(strings.Repeat("ab", 10)+tag))
	c.Cmd.Payload = hashes.ReplaceAllFunc(p, func(b []byte) []byte {
		if !bytes.Equal(b[:32], b[32:]) { // the hash of real bytes; the tests' own hashes repeat
			return b
		}
		return append(b[:60:60], tag...)
	})
}

// settle chooses the rows of other companies for lures: the last row of each table.
func (w *world) settle() {
	w.at, w.others = map[string]string{}, map[ledger.CompanyID]bool{}
	for _, id := range slices.Sorted(maps.Keys(w.rows)) {
		for _, table := range w.rows[id].tables {
			if of := w.rows[id].of; of != "" && of != ledger.CompanyID(w.of[0]) {
				w.at[table], w.others[of] = id, true
			}
		}
	}
}

// A lure is a payload in which rows of the company are replaced by rows of the other one.
type lure struct {
	payload []byte
	what    string // what was replaced
	text    string // an ID that is only a text in this field
}

// lures returns variants of a payload: with each row that it refers to replaced, one at a
// time, by a row of the other company. If twin is the payload of the same command in the
// other company, also with all rows replaced, and with all but one.
func (w *world) lures(of ledger.CompanyID, payload, twin []byte) (out []lure) {
	ids, others := uuids.FindAllString(string(payload), -1), uuids.FindAllString(string(twin), -1)
	pairs := map[string]string{}
	for n, id := range ids {
		p := w.rows[id]
		if p == nil || pairs[id] != "" || w.others[p.of] {
			continue
		}
		pairs[id] = id
		if len(ids) == len(others) && w.rows[others[n]] != nil {
			pairs[id] = others[n]
			out = append(out, lure{bytes.ReplaceAll(payload, []byte(id), []byte(others[n])), p.tables[0], ""})
		}
		for _, table := range p.tables {
			if other := w.at[table]; other != "" {
				out = append(out, lure{bytes.ReplaceAll(payload, []byte(id), []byte(other)), table, ""})
			}
		}
	}
	whole := uuids.ReplaceAllFunc(payload, func(id []byte) []byte { return []byte(cmp.Or(pairs[string(id)], string(id))) })
	out = append(out, lure{whole, "everything", ""})
	for _, id := range slices.Sorted(maps.Keys(pairs)) {
		if len(pairs) > 2 && pairs[id] != id {
			out = append(out, lure{bytes.ReplaceAll(whole, []byte(pairs[id]), []byte(id)), "everything but a " +
				w.rows[id].tables[0], ""})
		}
	}
	return slices.DeleteFunc(out, func(l lure) bool { return w.foreign(of, l.payload) == "" })
}

// fills returns variants of a payload in which one field, if it is empty or a text, is set to
// a row of the other company, for each table. Fields that accept any text are not tried; free
// are their numbers.
func (w *world) fills(c *ledger.Context) (out []lure, free []string) {
	var m map[uint64]any
	if ledger.Unmarshal(c.Cmd.Payload, &m) != nil {
		return nil, nil
	}
	with := func(field uint64, v any) []byte {
		filled := maps.Clone(m)
		filled[field] = v
		return ledger.Marshal(filled)
	}
	for field := uint64(1); field <= maxFields; field++ {
		if w.wellFormed(c, with(field, map[uint64]string{99: "x"})) && w.wellFormed(c, with(field, true)) {
			continue // there is no such field
		}
		if old, ok := m[field].(string); m[field] != nil && (!ok || w.rows[old] != nil) {
			continue // covered by its lures
		}
		as := func(id string) any { return id }
		if !w.wellFormed(c, with(field, companytest.UID(0))) {
			if as = func(id string) any { return []string{id} }; !w.wellFormed(c, with(field, []string{companytest.UID(0)})) {
				continue
			}
		}
		if taken, _ := w.try(c, with(field, as(nowhere)), ""); taken {
			free = append(free, strconv.FormatUint(field, 10))
			for _, table := range mostNamed { // the text may stay in the row, but must have no other effect
				out = append(out, lure{with(field, as(w.at[table])), fmt.Sprintf("%s in field %d", table, field), w.at[table]})
			}
			continue
		}
		for _, table := range slices.Sorted(maps.Keys(w.at)) {
			out = append(out, lure{with(field, as(w.at[table])), fmt.Sprintf("%s in field %d", table, field), ""})
		}
	}
	return out, free
}

// twin tells a story in the other company, one command per call of next, and yields the
// payload of the next command.
func (w *world) twin(tell func(*storyteller)) (next func() ([]byte, bool), stop func()) {
	w.telling++
	d := *w.Desk
	d.Serial, d.Height, d.Company = 1_000_000, 500_000, ledger.CompanyID(w.of[1])
	s := &storyteller{player: &player{Desk: &d}, t: quits{}, told: map[string]int{}, keys: w.keys, node: w.node,
		quiet: true}
	return iter.Pull(func(yield func([]byte) bool) {
		defer func() { over(recover()) }()
		s.session = s.newSession()
		s.before = func(c *ledger.Context) {
			w.hashes(c)
			if !yield(c.Cmd.Payload) {
				panic(storyOver{})
			}
		}
		tell(s)
	})
}

// wander tells all stories in one company. In the other company they have been told before,
// and are told again at the same time. It returns the number of lures that were tried, by
// kind, and that were executed, the fields that accept anything, and the ways in which a
// command reached the other company. plant may add bugs to the rules; then only are the
// stories to tell, nil for all.
func wander(t *testing.T, only []string, plant func(*world)) (tried, taken map[string]int, free, broken []string) {
	w := newWorld(t)
	for _, story := range stories {
		if story.of != "people" { // people belong to the mesh, and its first may claim it once
			w.tellIn(ledger.CompanyID(w.of[1]), story.tell, false)
			if story.of != "imports" && story.of != "the mesh" { // only one of each runs at a time
				w.tellIn(ledger.CompanyID(w.of[1]), story.tell, true)
			}
		}
	}
	w.settle()
	for _, table := range []string{"agent", "agent-key", "approval", "attachment", "comment", "cost", "document",
		"environment", "exec-workspace", "folder", "goal", "interaction", "invite", "issue",
		"join-request", "label", "member", "project", "reservation", "routine", "routine-trigger", "run", "runtime-service",
		"secret", "skill", "user-secret-definition", "watchdog", "work-product", "workspace"} {
		if w.at[table] == "" {
			t.Errorf("the other company has no %s", table)
		}
	}
	w.t = t
	if plant != nil {
		plant(w)
	}
	tried, taken = map[string]int{}, map[string]int{}
	base, rows, filled := w.Tx, w.rows, map[string]bool{}
	for _, story := range stories {
		if only != nil && !slices.Contains(only, story.of) {
			continue
		}
		w.Tx, w.rows = base.Child(), maps.Clone(rows)
		w.session = w.newSession()
		for id, p := range w.rows {
			w.rows[id] = &spot{p.of, slices.Clone(p.tables)}
		}
		next, stop := func() ([]byte, bool) { return nil, false }, func() {}
		if story.of != "people" && story.of != "the mesh" {
			next, stop = w.twin(story.tell)
		}
		w.before = func(c *ledger.Context) {
			twin, _ := next()
			if c.Cmd.Company == "" {
				return
			}
			w.look()
			lures := w.lures(c.Cmd.Company, c.Cmd.Payload, twin)
			if !filled[c.Cmd.Kind] {
				filled[c.Cmd.Kind] = true
				more, fields := w.fills(c)
				lures = append(lures, more...)
				if len(fields) > 0 {
					free = append(free, c.Cmd.Kind+" "+strings.Join(fields, " "))
				}
			}
			for _, l := range lures {
				tried[c.Cmd.Kind]++
				done, bad := w.try(c, l.payload, l.text)
				if done {
					taken[c.Cmd.Kind]++
				}
				if bad != "" {
					broken = append(broken, fmt.Sprintf("%s with another %s %s", c.Cmd.Kind, l.what, bad))
				}
			}
		}
		story.tell(w.storyteller)
		stop()
		w.Company = ledger.CompanyID(w.of[0])
	}
	return tried, taken, free, broken
}

// Each command of each story is tried with its rows replaced by rows of another company, and
// with such rows in every other field. The command is refused, or its effects refer to no row
// of the other company. The fields that accept anything were reviewed: they are texts, or IDs
// that the command gives to new rows.
func TestNoCommandReachesIntoAnotherCompany(t *testing.T) {
	t.Parallel()
	tried, taken, free, broken := wander(t, nil, nil)
	for _, bad := range slices.Compact(slices.Sorted(slices.Values(broken))) {
		t.Error(bad)
	}
	n, done := 0, 0
	for kind := range tried {
		n, done = n+tried[kind], done+taken[kind]
	}
	t.Logf("%d lures for %d kinds, %d carried out", n, len(tried), done)
	if len(tried) < leastKinds || n < leastLures {
		t.Errorf("only %d lures for %d kinds", n, len(tried))
	}
	const list = "testdata/anything.txt"
	got := strings.Join(slices.Sorted(slices.Values(free)), "\n") + "\n"
	if kit.Update() {
		if err := os.WriteFile(list, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(got, "\n"), "\n") {
		fields := strings.Fields(line)
		_, rest, _ := strings.Cut("\n"+string(want), "\n"+fields[0]+" ")
		read, _, _ := strings.Cut(rest, "\n")
		for _, field := range fields[1:] {
			if !slices.Contains(strings.Fields(read), field) {
				t.Errorf("field %s of %s takes anything: look whether it is a text and not a row, and run again "+
					"with -update to have it in %s", field, fields[0], list)
			}
		}
	}
}

// A wake for a row that does not exist is refused.
func TestNobodyIsWokenAboutWhatIsNowhere(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	for about, w := range map[string]entity.Wake{"an issue": {Issue: nowhere}, "a comment": {Comment: nowhere},
		"an approval": {Approval: nowhere}, "an interaction": {Interaction: nowhere},
		"a linked issue": {LinkedIssues: []string{nowhere}}} {
		w.Agent, w.Source, w.Wakeup, w.Run = ada, entity.WakeOnDemand, d.ID(), d.ID()
		if err := d.Do(companytest.Board, "agent.wake", w, nil); err == nil {
			t.Errorf("a wake about %s that is nowhere was taken", about)
		}
	}
}

// Bugs that let commands reach another company are found.
func TestBrokenWallsAreFound(t *testing.T) {
	t.Parallel()
	_, _, _, broken := wander(t, []string{"issues", "companies", "runs"}, func(w *world) {
		w.Mux = maps.Clone(w.Mux)
		create, remove, cancel := w.Mux["issue.create"], w.Mux["goal.delete"], w.Mux["run.cancel"]
		w.Mux["issue.create"] = func(c *ledger.Context) ([]byte, error) { // accepts a goal of any company
			var p company.CreateIssue
			if ledger.Unmarshal(c.Cmd.Payload, &p) != nil || !c.Has(core.OwnerKey(p.Goal)) {
				return create(c)
			}
			goal, cmd := p.Goal, *c.Cmd
			p.Goal = ""
			cmd.Payload, c.Cmd = ledger.Marshal(p), &cmd
			v, err := create(c)
			if i, ok := entity.IssueTable.Get(c.Tx, cmd.Company, p.ID); ok && err == nil {
				i.Goal = goal
				entity.IssueTable.Put(c.Tx, cmd.Company, i.ID, i)
			}
			return v, err
		}
		w.Mux["goal.delete"] = func(c *ledger.Context) ([]byte, error) { // in any company
			var p company.DeleteGoal
			if ledger.Unmarshal(c.Cmd.Payload, &p) == nil {
				if of, ok := c.Get(core.OwnerKey(p.ID)); ok {
					cmd := *c.Cmd
					cmd.Company, c.Cmd = ledger.CompanyID(of), &cmd
				}
			}
			return remove(c)
		}
		w.Mux["run.cancel"] = func(c *ledger.Context) ([]byte, error) { // returns a run of any company
			var p company.Cancel
			if ledger.Unmarshal(c.Cmd.Payload, &p) == nil {
				if r, ok := entity.RunByID(c.Tx, p.Run); ok && r.Company != c.Cmd.Company {
					return ledger.Marshal(r), nil
				}
			}
			return cancel(c)
		}
	})
	for _, want := range []string{"issue.create with another goal in field",
		"goal.delete with another goal writes what is of another company", "run.cancel with another run answers with"} {
		if !slices.ContainsFunc(broken, func(bad string) bool { return strings.HasPrefix(bad, want) }) {
			t.Errorf("found %q, want %q", broken, want)
		}
	}
}

// calm resets a mesh so that commands can be executed again: people need no credential, and
// nothing is stopped.
func calm(tx *ledger.Tx) {
	ledger.SetAuthMode(tx, people.LocalTrusted)
	for id := range entity.Halts.All(tx) {
		entity.Halts.Delete(tx, id)
	}
	for of, row := range companiesIn(tx) {
		if row.Status == entity.CompanyPaused {
			row.Status, row.PauseReason = entity.CompanyActive, ""
			entity.CompanyTable.Put(tx, of, of, row)
		}
	}
}

func companiesIn(tx *ledger.Tx) map[ledger.CompanyID]entity.Company {
	out := map[ledger.CompanyID]entity.Company{}
	for _, of := range []ledger.CompanyID{ledger.CompanyID(companytest.UID(1)), ledger.CompanyID(companytest.UID(2))} {
		if row, ok := entity.CompanyTable.Get(tx, of, of); ok {
			out[of] = row
		}
	}
	return out
}
