package consensus

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/store"
)

func testLog(t *testing.T, fs vfs.FS) (*logStore, *store.Store) {
	t.Helper()
	st, err := store.Open("/log", store.Options{FS: fs, Small: true, ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	l, err := openLog(st.Span('r'), true, &diskWatch{}, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	return l, st
}

func entries(from, to, term uint64) (out []*raft.Log) {
	for i := from; i <= to; i++ {
		out = append(out, &raft.Log{Index: i, Term: term, Data: fmt.Append(nil, i)})
	}
	return out
}

func checkLog(t *testing.T, l *logStore, first, last uint64) {
	t.Helper()
	f, _ := l.FirstIndex()
	e, _ := l.LastIndex()
	if f != first || e != last {
		t.Errorf("log is %d..%d, want %d..%d", f, e, first, last)
	}
	for i := max(1, first) - 1; i <= last+1; i++ {
		var got raft.Log
		err := l.GetLog(i, &got)
		if in := first != 0 && i >= first && i <= last; in && (err != nil || got.Index != i) || !in &&
			err != raft.ErrLogNotFound {
			t.Errorf("entry %d: %+v %v", i, got, err)
		}
	}
}

// TestLogKeepsItsEnds does to the log what raft does, and opens it anew after
// each step, also after a power loss.
func TestLogKeepsItsEnds(t *testing.T) {
	fs := vfs.NewCrashableMem()
	if err := errors.Join(fs.MkdirAll("/log", 0o700), store.SyncDir(fs, "/")); err != nil {
		t.Fatal(err)
	}
	l, st := testLog(t, fs)
	checkLog(t, l, 0, 0)
	steps := []struct {
		name        string
		do          func() error
		first, last uint64
	}{
		{"append", func() error { return l.StoreLogs(entries(1, 100, 1)) }, 1, 100},
		{"cut the front", func() error { return l.DeleteRange(1, 40) }, 41, 100},
		{"cut it again", func() error { return l.DeleteRange(41, 50) }, 51, 100},
		{"cut the end", func() error { return l.DeleteRange(91, 100) }, 51, 90},
		{"write it anew", func() error { return l.StoreLogs(entries(91, 95, 2)) }, 51, 95},
		{"a gap drops what was before", func() error { return l.StoreLogs(entries(200, 210, 3)) }, 200, 210},
		{"remove all", func() error { return l.DeleteRange(200, 210) }, 0, 0},
		{"begin below", func() error { return l.StoreLogs(entries(150, 160, 4)) }, 150, 160},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		checkLog(t, l, s.first, s.last)
		(&Consensus{logs: l}).Trim()
		checkLog(t, l, s.first, s.last)
		if err := l.SetUint64([]byte("term"), s.last); err != nil { // synced, so all before is
			t.Fatal(err)
		}
		after := fs.CrashClone(vfs.CrashCloneCfg{})
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		fs = after
		l, st = testLog(t, fs)
		checkLog(t, l, s.first, s.last)
		if v, err := l.GetUint64([]byte("term")); err != nil || v != s.last {
			t.Errorf("%s: stable value %d %v", s.name, v, err)
		}
	}
	if err := l.DeleteRange(152, 155); err == nil {
		t.Error("entries were removed from the middle")
	}
	if _, err := l.Get([]byte("absent")); err == nil || err.Error() != "not found" {
		t.Errorf("absent stable value: %v; raft knows it by its text", err)
	}
}

func TestRecentLogsAreBounded(t *testing.T) {
	r := recentLogs{limit: logCacheBytes}
	for i := range uint64(100) {
		r.append([]*raft.Log{{Index: i + 1, Data: make([]byte, 1<<20)}})
	}
	if r.bytes > logCacheBytes || len(r.logs) > 8 {
		t.Errorf("%d entries of %d bytes are kept", len(r.logs), r.bytes)
	}
	if l := r.at(100); l == nil || l.Index != 100 {
		t.Error("the newest entry is not kept")
	}
	given := &raft.Log{Index: 101}
	if r.append([]*raft.Log{given}); r.at(101) == given {
		t.Error("the entry that was given is kept itself, with all that it lies in")
	}
	if r.at(1) != nil || r.at(102) != nil {
		t.Error("an entry that is not kept was found")
	}
}

// TestGapsAreFilled: raft's no-ops do not reach the state machine, which counts
// every index, and what it has already comes again after a restart.
func TestGapsAreFilled(t *testing.T) {
	m := &toy{applied: 3}
	f := &fsm{state: m, committed: func(uint64, uint64) {}, applied: func() {},
		entry: func(i uint64, l *raft.Log) error { *l = raft.Log{Index: i, Term: 9, Type: raft.LogNoop}; return nil }}
	out := f.ApplyBatch([]*raft.Log{
		{Index: 2, Data: []byte("b")}, {Index: 4, Type: raft.LogConfiguration, Data: []byte("c")},
		{Index: 7, Data: []byte("g")},
	})
	if got := fmt.Sprint(m.log); got != "[4: 5: 6: 7:g]" {
		t.Errorf("applied %s", got)
	}
	if out[0] != nil || string(out[2].([]byte)) != "7" {
		t.Errorf("results %v", out)
	}
	defer func() {
		if recover() == nil {
			t.Error("a command that raft did not hand out was passed over")
		}
	}()
	f.entry = func(i uint64, l *raft.Log) error { *l = raft.Log{Index: i, Type: raft.LogCommand}; return nil }
	f.ApplyBatch([]*raft.Log{{Index: 9}})
}

// toy is a state machine that writes down what it is given.
type toy struct {
	StateMachine
	applied uint64
	log     []string
}

func (m *toy) Applied() uint64 { return m.applied }

func (m *toy) Err() error { return nil }

func (m *toy) ApplyBatch(es []ledger.LogEntry) [][]byte {
	out := make([][]byte, len(es))
	for i, e := range es {
		m.log = append(m.log, fmt.Sprintf("%d:%s", e.Index, e.Data))
		m.applied = e.Index
		out[i] = fmt.Append(nil, e.Index)
	}
	return out
}

func TestClockFollowsTheMesh(t *testing.T) {
	base := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	mesh, wall := base, base.Add(time.Hour)
	k := &clock{mesh: func() time.Time { return mesh }, wall: func() time.Time { return wall }}
	k.observe()
	stamp := func() time.Time {
		b := make([]byte, 16)
		k.stamp(b)
		return k.last
	}
	first := stamp() // an hour ahead: no further than the step allows
	if d := first.Sub(base); d > ledger.MaxStep+time.Second || d < 0 {
		t.Errorf("the first stamp is %s after the mesh's time", d)
	}
	wall = base.Add(-time.Hour)
	if second := stamp(); second.Before(first) {
		t.Errorf("time went back from %s to %s", first, second)
	}
	mesh = base.Add(time.Minute) // another leader's
	k.observe()
	if third := stamp(); third.Before(mesh) {
		t.Errorf("a stamp of %s is before what was applied at %s", third, mesh)
	}
}
