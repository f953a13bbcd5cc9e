package testkit

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// A rotKind is one kind of file below a node's data directory, and what must come of
// damage to it. [TestRotMatrix] fails on a file of no kind: whoever adds one says here
// what the node does when it rots.
type rotKind struct {
	name  string
	match func(path string) bool // below the data directory, with slashes
	// refuses is what the node says when it is to start with the file damaged; "" when
	// it starts and is whole.
	refuses string
	// log is what a node's log must say of the damage, by damage; "" or none: nothing.
	log map[string]string
	// doctor is the check of doctor --dir that finds it, by damage; "" or none: none does.
	doctor map[string]string
	// back: the file is as it was, soon after.
	back bool
	// twin holds the same bytes, which may change while the test goes on: the members'
	// addresses are among them.
	twin string
	// elsewhere names the test that has this kind's cases; it is only recognised here.
	elsewhere string
	// user: the file is what agents work with, and not the node's; it starts all the same.
	user bool
}

// as matches paths by a regular expression that must fit all of them.
func as(expr string) func(string) bool {
	return regexp.MustCompile("^(?:" + expr + ")$").MatchString
}

// all damages of a kind leave the same words.
func always(words string) map[string]string {
	return map[string]string{"flip": words, "zero": words, "cut": words, "delete": words}
}

// written is always, but for a file that is gone: it is made as it was the first time.
func written(words string) map[string]string {
	return map[string]string{"flip": words, "zero": words, "cut": words}
}

// sealed is written, but for a key that is cut to what an earlier program wrote: the
// key alone, which is whole.
func sealed(words string) map[string]string { return map[string]string{"flip": words, "zero": words} }

const hex64 = `[0-9a-f]{64}`

// rotKinds are all kinds of files that a node keeps. The first that matches counts.
var rotKinds = []rotKind{
	{name: "identity.key", match: as(`identity\.key`), refuses: "put it back from a copy of this machine's disk",
		doctor: always("identity")},
	{name: "membership", match: as(`membership`), log: always("written again from its copy"), doctor: always("membership"),
		back: true, twin: "membership.copy"},
	{name: "copy of the membership", match: as(`membership\.copy`), log: written("written again from its copy"),
		doctor: always("membership"), back: true, twin: "membership"},
	{name: "peer cache", match: as(`peers`)},
	{name: "claim code", match: as(`claim-code`), log: map[string]string{"zero": "the claim code is damaged",
		"cut": "the claim code is damaged"}},
	{name: "first free process ID", match: as(`processes/next-pid`),
		elsewhere: "adapter/spawn: TestDamagedProcessIDsGoOnAbove"},
	{name: "loopback address", match: as(`http-loopback`), elsewhere: "node: TestDamagedLoopbackAddress"},
	{name: "purse", match: as(`purse`), doctor: written("small files")},
	{name: "device key for OpenClaw", match: as(`runs/openclaw\.key`), log: sealed("device key for OpenClaw"),
		doctor: sealed("small files")},
	{name: "name of sessions", match: as(`runs/place`), doctor: map[string]string{"zero": "small files",
		"cut": "small files"}},
	{name: "journal of messages", match: as(`messages/messages`), log: map[string]string{
		"flip": "the journal of messages is damaged", "zero": "the journal of messages is damaged"}},
	{name: "log of a run", match: as(`(runs/)?logs/.*\.ndjson`)},
	{name: "small blob", match: func(p string) bool {
		return as(`blobs/[0-9a-f]{2}/`+hex64)(p) &&
			path.Base(p) != largeBlob.Load()
	}, doctor: written("files"), back: true},
	{name: "large blob", match: as(`blobs/[0-9a-f]{2}/` + hex64), doctor: written("files"), back: true},
	{name: "sums of a large blob", match: as(`blobs/[0-9a-f]{2}/` + hex64 + `\.sums`), back: true},
	{name: "certificate of the API", match: as(`tls/api\.pem`), elsewhere: "node: TestTheNodeMakesItsCertificateOnce"},
	{name: "compiled module", match: as(`sandbox/.*`), elsewhere: "sandbox: TestDamagedCodeIsCompiledAnew"},
	{name: "backup", match: as(`backups/.*\.selvage`),
		elsewhere: "node: backups are sealed, and checked when they are opened"},
	{name: "workspace of an agent", match: as(`runs/(workspaces|git)/.*`), user: true},

	// The store: its cases say what a node does that lost its state.
	{name: "table", match: as(`store/\d+\.sst`), elsewhere: "TestADamagedStoreHealsItself"},
	{name: "write-ahead log", match: as(`store/\d+\.log`), elsewhere: "TestADamagedStoreHealsItself"},
	{name: "manifest", match: as(`store/MANIFEST-\d+`), elsewhere: "TestADamagedStoreHealsItself"},
	{name: "options", match: as(`store/OPTIONS-\d+`), elsewhere: "TestADamagedStoreHealsItself"},
	{name: "marker", match: as(`store/marker\..*`), elsewhere: "TestADamagedStoreHealsItself"},
	{name: "mark of what was synced", match: as(`store/MARK`), elsewhere: "TestADamagedStoreHealsItself"},
	{name: "why the store is built anew", match: as(`rebuild`), elsewhere: "TestADamagedStoreHealsItself"},
	{name: "store that was set aside", match: as(`damaged-[0-9TZ]+/.*`), elsewhere: "nothing is read from it"},
	{name: "lock, ballast and staging", match: as(`store/(LOCK|BALLAST|staging.*)`),
		elsewhere: "nothing is read from them"},
	{name: "snapshot", match: as(`snapshots/.*`), elsewhere: "TestADamagedStoreHealsItself"},
}

// kindOf returns the kind of a file, nil for one that nobody has thought of.
func kindOf(p string) *rotKind {
	for i := range rotKinds {
		if rotKinds[i].match(p) {
			return &rotKinds[i]
		}
	}
	return nil
}

// Every kind has a name of its own, and says what comes of it once.
func TestRotKindsAreTold(t *testing.T) {
	names := map[string]bool{}
	for _, k := range rotKinds {
		if names[k.name] || strings.TrimSpace(k.name) == "" {
			t.Errorf("two kinds are called %q", k.name)
		}
		names[k.name] = true
		if k.elsewhere != "" && (k.refuses != "" || k.log != nil) {
			t.Errorf("%s is tested here and elsewhere", k.name)
		}
	}
}
