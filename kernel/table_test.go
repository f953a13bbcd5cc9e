package kernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var start = time.UnixMilli(1_700_000_000_000)

func wantKind(t *testing.T, err error, want ErrorKind) {
	t.Helper()
	if got := KindOf(err); got != want {
		t.Errorf("got the error %q of kind %q, want kind %q", err, got, want)
	}
}

func spawn(t *testing.T, table *Table, e Entry, caps *Capabilities) Entry {
	t.Helper()
	out, err := table.Spawn(e, caps, start)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]Address{"7": {"", 7}, "n1:7": {"n1", 7}, "a:b:0": {"a:b", 0}} {
		got, err := ParseAddress(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, bad := range []string{"", ":7", "n1:", "n1:x", "-1", "+1", "n1:+1", "1.5", strings.Repeat("n", 200) + ":1",
		"18446744073709551616"} {
		if a, err := ParseAddress(bad); err == nil {
			t.Errorf("%q was read as %v", bad, a)
		}
	}
}

// Every change of state is tried: those of the specification are allowed, all others are not.
func TestStatesFollowTheirRules(t *testing.T) {
	all := []State{Starting, Running, Suspended, Stopping, Exited}
	legal := map[State]string{
		Starting: "running exited", Running: "suspended stopping exited", Suspended: "running stopping exited",
		Stopping: "exited", Exited: "",
	}
	for _, from := range all {
		for _, to := range all {
			got, err := from.Next(to)
			switch want := slices.Contains(strings.Fields(legal[from]), string(to)); {
			case want && (err != nil || got != to):
				t.Errorf("%s to %s: %v", from, to, err)
			case !want && (KindOf(err) != InvalidStateTransition || got != from):
				t.Errorf("%s to %s was allowed", from, to)
			}
		}
	}
}

// The table is bounded, PIDs are never used twice, and the ends of the newest KeptExits can
// be read. Runs do not count against the bound.
func TestTableIsBoundedAndPIDsAreNew(t *testing.T) {
	table := NewTable(TableConfig{}, start)
	seen := map[PID]bool{}
	for range DefaultMaxProcesses {
		seen[spawn(t, table, Entry{Kind: KindNative}, nil).PID] = true
	}
	_, err := table.Spawn(Entry{Kind: KindNative}, nil, start)
	wantKind(t, err, ProcessTableFull)
	if _, err := table.Adopt(Entry{Kind: KindRun}, start); err != nil {
		t.Error(err)
	}
	for range 2 * KeptExits {
		var any PID
		for any = range seen {
			break
		}
		if _, err := table.Exit(any, ExitOf(3, ""), start); err != nil {
			t.Fatal(err)
		}
		delete(seen, any)
		p := spawn(t, table, Entry{Kind: KindNative}, nil).PID
		if e, ok := table.Find(p); !ok || e.State != Starting || seen[p] {
			t.Fatalf("process %s: %+v", p, e)
		}
		seen[p] = true
	}
	if n := len(table.ended); n != KeptExits {
		t.Errorf("%d ended processes are kept, want %d", n, KeptExits)
	}
	if n, all := len(table.List(false)), len(table.List(true)); n != DefaultMaxProcesses+2 || all != n+KeptExits {
		t.Errorf("%d processes live, %d with those that ended", n, all)
	}
	_, err = table.Exit(KernelPID, ExitOf(0, ""), start)
	wantKind(t, err, InvalidStateTransition)
}

func TestNothingHappensToAnEndedProcess(t *testing.T) {
	table := NewTable(TableConfig{First: 40}, start)
	p := spawn(t, table, Entry{Kind: KindNative}, nil).PID
	if p != 40 {
		t.Errorf("the first PID is %s, want 40", p)
	}
	wantKind(t, table.Set(p, Exited), InvalidStateTransition)
	if _, err := table.Exit(p, ExitOf(-1, "killed"), start); err != nil {
		t.Fatal(err)
	}
	_, again := table.Exit(p, ExitOf(0, ""), start)
	_, link := table.Monitor(KernelPID, p)
	for _, err := range []error{again, link, table.Set(p, Running), table.Link(p, KernelPID)} {
		wantKind(t, err, InvalidStateTransition)
	}
	wantKind(t, table.Set(999, Running), ProcessNotFound)
	if e, ok := table.Find(p); !ok || e.Exit.Reason != Killed || e.Exit.Code != ExitForced {
		t.Errorf("it ended as %+v", e.Exit)
	}
}

// modest are capabilities below the default ones, as somebody would give them to a web page.
func modest() Capabilities {
	return Capabilities{CanIPC: true, CanExecTools: true, Scope: Scope{Kind: ScopeRestricted},
		Limits: Limits{MemoryBytes: 64 << 20, CPUTimeMs: 60_000, ToolCalls: 200, Messages: 500, DiskBytes: 10 << 20}}
}

// A child never has more than its parent may give.
func TestChildrenStayBelowTheCeiling(t *testing.T) {
	table := NewTable(TableConfig{}, start)
	ceiling := modest()
	ceiling.CanSpawn, ceiling.Scope = true, Scope{Kind: ScopeAll}
	boss := spawn(t, table, Entry{Role: RoleSupervisor, Agency: Agency{MaxChildren: 2, AllowedRoles: []Role{RoleWorker,
		RoleSupervisor}, Ceiling: &ceiling}}, nil)
	def := spawn(t, table, Entry{Parent: boss.PID, Role: RoleSupervisor}, nil)
	if def.Capabilities.Limits != modest().Limits || def.Capabilities.CanNetwork {
		t.Errorf("the default of a child is %+v, more than its ceiling", def.Capabilities)
	}
	more := ceiling
	more.Limits.MemoryBytes++
	free := ceiling
	free.Limits.Messages = 0 // no limit
	wide := ceiling
	wide.CanNetwork = true
	for _, caps := range []Capabilities{more, free, wide} {
		_, err := table.Spawn(Entry{Parent: boss.PID, Role: RoleWorker}, &caps, start)
		wantKind(t, err, CapabilityDenied)
	}
	_, err := table.Spawn(Entry{Parent: boss.PID, Role: RoleUser}, nil, start)
	wantKind(t, err, CapabilityDenied)
	worker := spawn(t, table, Entry{Parent: boss.PID, Role: RoleWorker}, &ceiling)
	_, err = table.Spawn(Entry{Parent: boss.PID, Role: RoleWorker}, nil, start)
	wantKind(t, err, CapabilityDenied) // it has two children
	_, err = table.Spawn(Entry{Parent: worker.PID}, nil, start)
	wantKind(t, err, CapabilityDenied) // a worker has no agency
	_, err = table.Spawn(Entry{Parent: 77}, nil, start)
	wantKind(t, err, ProcessNotFound)
}

// Whatever a random family asks for, nobody has more than the parent, up to the kernel.
func TestNoFamilyGrowsPastItsRoot(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() Capabilities {
		b := func() bool { return r.IntN(3) > 0 }
		c := Capabilities{CanSpawn: b(), CanIPC: b(), CanExecTools: b(), CanNetwork: b(),
			Scope: []Scope{{Kind: ScopeAll}, {Kind: ScopeNone}, {Kind: ScopeRestricted, PIDs: []PID{PID(r.IntN(3))}},
				{Kind: ScopeTopic, Topics: []string{"a"}}}[r.IntN(4)]}
		for _, res := range Resources {
			*c.Limits.at(res) = r.Int64N(4)
		}
		return c
	}
	table := NewTable(TableConfig{Max: 1000}, start)
	born := []Entry{{PID: KernelPID}}
	for range 4000 {
		e := Entry{Parent: born[r.IntN(len(born))].PID}
		if r.IntN(2) == 0 {
			c := random()
			e.Agency.Ceiling = &c
		}
		caps := new(random())
		if r.IntN(3) == 0 {
			caps = nil
		}
		if out, err := table.Spawn(e, caps, start); err == nil {
			born = append(born, out)
		} else if k := KindOf(err); k != CapabilityDenied && k != ProcessTableFull {
			t.Fatal(err)
		}
	}
	if len(born) < 50 {
		t.Fatalf("%d were born, too few to say anything", len(born))
	}
	for _, e := range born[1:] {
		parent, _ := table.Find(e.Parent)
		if err := e.Capabilities.Within(parent.Capabilities); err != nil {
			t.Errorf("process %s: %v", e.PID, err)
		}
	}
}

// A limit is told at 80 and at 100 %, once each. What is counted never passes it.
func TestLimitsWarnAt80PercentAndEndAt100(t *testing.T) {
	for used, want := range map[int64]string{0: "", 7: "", 8: "warn", 9: "warn", 10: "end", 11: "end"} {
		got := ""
		for _, f := range (Limits{ToolCalls: 10}).Check(Use{ToolCalls: used, CPUTimeMs: 1 << 40}) {
			got = map[Level]string{Warning: "warn", Exceeded: "end"}[f.Level]
		}
		if got != want {
			t.Errorf("%d of 10: %q, want %q", used, got, want)
		}
	}
	var told []string
	table := NewTable(TableConfig{Found: func(e Entry, found []Finding) {
		for _, f := range found {
			told = append(told, fmt.Sprintf("%s %d %s", e.PID, f.Level, f))
		}
	}}, start)
	p := spawn(t, table, Entry{}, &Capabilities{Limits: Limits{ToolCalls: 10, MemoryBytes: 100}}).PID
	for range 10 {
		if err := table.Charge(p, ToolCalls, 1); err != nil {
			t.Fatal(err)
		}
	}
	wantKind(t, table.Charge(p, ToolCalls, 1), ResourceLimitExceeded)
	wantKind(t, table.Charge(99, ToolCalls, 1), ProcessNotFound)
	for _, memory := range []int64{10, 85, 10, 90, 300, 400} {
		table.Used(p, Use{MemoryBytes: memory})
	}
	want := []string{"1 1 tool_calls: used 8 of 10", "1 2 tool_calls: used 10 of 10", "1 1 memory: used 85 of 100",
		"1 1 memory: used 90 of 100", "1 2 memory: used 300 of 100"}
	if !slices.Equal(told, want) {
		t.Errorf("told\n%q, want\n%q", told, want)
	}
	if e, _ := table.Find(p); e.Use.ToolCalls != 10 {
		t.Errorf("%d tool calls were counted, want 10", e.Use.ToolCalls)
	}
}

// Deny goes before allow, and an empty list allows all.
func TestDenyBeatsAllow(t *testing.T) {
	all := DefaultCapabilities()
	for _, c := range []struct {
		tool string
		p    *Permissions
		s    *SandboxPolicy
		ok   bool
	}{
		{"fs.read", nil, nil, true},
		{"fs.read", &Permissions{}, nil, true},
		{"fs.read", &Permissions{Allow: []string{"fs.read"}, Deny: []string{"fs.read"}}, nil, false},
		{"fs.read", &Permissions{Allow: []string{"fs.write"}}, nil, false},
		{"bash", nil, &SandboxPolicy{}, false},
		{"bash", nil, &SandboxPolicy{AllowShell: true}, true},
		{"bash", nil, nil, true},
	} {
		if err := all.MayCall(c.tool, c.p, c.s); (err == nil) != c.ok {
			t.Errorf("%s with %+v and %+v: %v", c.tool, c.p, c.s, err)
		}
	}
	none := all
	none.CanExecTools = false
	wantKind(t, none.MayCall("fs.read", nil, nil), CapabilityDenied)
	wantKind(t, Permissions{Services: []string{"a"}}.MayUse("b"), CapabilityDenied)
}

func TestScopesBoundMessages(t *testing.T) {
	with := func(s Scope) Capabilities { c := DefaultCapabilities(); c.Scope = s; return c }
	deaf := DefaultCapabilities()
	deaf.CanIPC = false
	for _, c := range []struct {
		caps        Capabilities
		send, topic bool
	}{
		{with(Scope{Kind: ScopeAll}), true, true},
		{with(Scope{Kind: ScopeParentOnly}), false, false},
		{with(Scope{Kind: ScopeRestricted, PIDs: []PID{5}}), true, false},
		{with(Scope{Kind: ScopeRestricted, PIDs: []PID{6}}), false, false},
		{with(Scope{Kind: ScopeTopic, Topics: []string{"t"}}), false, true},
		{with(Scope{Kind: ScopeTopic, Topics: []string{"u"}}), false, false},
		{with(Scope{Kind: ScopeNone}), false, false},
		{deaf, false, false},
	} {
		if err := c.caps.MaySend(1, 5); (err == nil) != c.send {
			t.Errorf("%+v sends to 5: %v", c.caps.Scope, err)
		}
		if err := c.caps.MayPublish("t"); (err == nil) != c.topic {
			t.Errorf("%+v publishes: %v", c.caps.Scope, err)
		}
	}
	if err := with(Scope{Kind: ScopeParentOnly}).MaySend(1, 1); err != nil {
		t.Error(err)
	}
}

func TestCapabilitiesAreReadInBothSpellings(t *testing.T) {
	var a, b Capabilities
	err := errors.Join(
		json.Unmarshal([]byte(`{"can_spawn":false,"ipc_scope":{"restricted":[3]},"resource_limits":{"max_tool_calls":5}}`),
			&a),
		json.Unmarshal([]byte(`{"canSpawn":false,"ipcScope":{"restricted":[3]},"resourceLimits":{"maxToolCalls":5}}`), &b))
	want := DefaultCapabilities()
	want.CanSpawn, want.Scope, want.Limits.ToolCalls = false, Scope{Kind: ScopeRestricted, PIDs: []PID{3}}, 5
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	z, _ := json.Marshal(want)
	if err != nil || string(x) != string(z) || string(y) != string(z) {
		t.Errorf("read\n%s\n%s, %v; want\n%s", x, y, err, z)
	}
	for _, bad := range []string{`{"ipc_scope":"some"}`, `{"ipc_scope":{}}`, `{"ipc_scope":{"restricted":[1],"topic":[]}}`,
		`{"can_spawn":1}`,
		`{"can_spawn":true,"canSpawn":true}`, `{"ipc_scope":{"restricted":[-1]}}`, `[]`} {
		if err := json.Unmarshal([]byte(bad), &a); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

// A crash travels over links, a normal end does not; a monitor is told of both, once.
func TestLinksAndMonitors(t *testing.T) {
	table := NewTable(TableConfig{}, start)
	var p []PID
	for range 4 {
		p = append(p, spawn(t, table, Entry{}, nil).PID)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(table.Link(p[0], p[1]))
	must(table.Link(p[0], p[2]))
	table.Unlink(p[2], p[0])
	one, err := table.Monitor(p[3], p[0])
	must(err)
	two, err := table.Monitor(p[2], p[0])
	must(err)
	table.Demonitor(two)
	if one != "mon-1" || two != "mon-2" {
		t.Errorf("the monitors are %s and %s", one, two)
	}
	got, err := table.Exit(p[0], ExitOf(7, "boom"), start)
	must(err)
	want := []Signal{
		{Kind: LinkExit, To: p[1], From: p[0], Exit: Exit{7, Crash, "boom"}},
		{Kind: MonitorDown, To: p[3], From: p[0], Ref: one, Exit: Exit{7, Crash, "boom"}},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	must(table.Link(p[1], p[2]))
	if got, err = table.Exit(p[1], ExitOf(0, ""), start); err != nil || len(got) != 0 {
		t.Errorf("a normal end told %+v, %v", got, err)
	}
	if len(table.links)+len(table.monitors) != 0 {
		t.Errorf("links %v and monitors %v are left", table.links, table.monitors)
	}
	wantKind(t, table.Link(p[2], p[2]), BadRequest)
	for range maxLinks {
		_, err = table.Monitor(p[2], p[3])
		must(err)
	}
	_, err = table.Monitor(p[2], p[3])
	wantKind(t, err, BadRequest)
}

// A specification reports all that is wrong with it, and its name comes from what it starts.
func TestSpecsSayAllThatIsWrong(t *testing.T) {
	for want, s := range map[string]Spec{
		"sleep":           {Command: []string{"/bin/sleep", "5"}},
		"redis":           {Image: "docker.io/library/redis:7"},
		"module-00112233": {Module: strings.Repeat("0011223344556677", 4)},
		"a-b":             {Command: []string{"./..a b"}},
	} {
		s = s.WithDefaults()
		if err := s.Validate(); err != nil || s.Name != want || s.Restart != Permanent {
			t.Errorf("%+v: %v, want the name %s", s, err, want)
		}
	}
	err := Spec{Name: "-", Module: "x", Image: "-x", Dir: "here", Group: "/", Restart: "often", OnLimit: "sing",
		Role:         RoleRoot,
		Env:          map[string]string{"A=B": ""},
		Capabilities: &Capabilities{Limits: Limits{Messages: -1}}}.WithDefaults().Validate()
	for _, want := range []string{"name", "module", "image", "dir", "group", "restart", "on_limit", "role", "env",
		"messages"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not mention %s", err, want)
		}
	}
}

// Capabilities are read as they were written, also those of a process that may send to nobody.
func TestCapabilitiesAreReadAsTheyWereWritten(t *testing.T) {
	nobody := DefaultCapabilities()
	nobody.Scope = Scope{Kind: ScopeTopic}
	for _, c := range []Capabilities{DefaultCapabilities(), modest(), nobody} {
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var got Capabilities
		if err := json.Unmarshal(b, &got); err != nil {
			t.Errorf("%s: %v", b, err)
		}
		if got.Scope.Kind != c.Scope.Kind || got.Limits != c.Limits || got.CanSpawn != c.CanSpawn {
			t.Errorf("%s was read as %+v", b, got)
		}
	}
}

// The figures of a table count what began and crashed since its start, and what lives now.
func TestFiguresOfProcesses(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	table := NewTable(TableConfig{}, now)
	var pids []PID
	for _, role := range []Role{RoleWorker, RoleService, RoleWorker} {
		e, err := table.Adopt(Entry{Kind: KindNative, Role: role}, now)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, e.PID)
	}
	for i, x := range []Exit{ExitOf(3, "boom"), ExitOf(0, "")} {
		if _, err := table.Exit(pids[2*i], x, now); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := table.Figures(), (Figures{Begun: 3, Crashed: 1, Live: 1, Services: 1}); got != want {
		t.Errorf("figures %+v, want %+v", got, want)
	}
}
