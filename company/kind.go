package company

import (
	"maps"
	"slices"

	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Kind is all that is true of one kind of command: one row, in the file of its
// handler. Whoever needs such a fact reads the row.
type Kind struct {
	Name string // "noun.verb"; it stands in the log for ever
	From Givers
	// Needs is the permission that a person needs in the company who is not an
	// administrator of the instance; "": any member who is more than a viewer.
	Needs  entity.Permission
	Traits Traits
	// Reads names rows that the handler reads beside those of [Prefetch].
	Reads func(cmd *ledger.Command, want func(key []byte))
	// Do is the handler. It is nil where the ledger itself carries the kind out.
	Do ledger.Handler
}

// Givers are the actors who may give a kind of command. What depends on rows (one's
// own issue, one's own subtree) is for the handlers.
type Givers uint8

const (
	FromBoard  Givers = 1 << iota // a person
	FromAgent                     // an agent of the command's company; the handler looks closer
	FromNode                      // a member node, or the system
	FromRoster = FromBoard | FromNode
)

// Traits are what is true of few kinds.
type Traits uint16

const (
	// AdminsOnly, LeadersOnly, Invited: of people only an administrator of the
	// instance gives it, only an owner or an admin of the company, whoever has an invite.
	AdminsOnly Traits = 1 << iota
	LeadersOnly
	Invited
	// Personal: a person gives it about himself; it names no company.
	Personal
	// Founds: it may name a company that does not exist yet. WindsUp: the board may
	// give it while the company is being deleted.
	Founds
	WindsUp
	// Importable: an import may hold it. These are kinds that the board itself may give
	// in one company and that neither show nor need a secret.
	Importable
	// Authored: an import may hold it in the name of the agent that wrote it.
	Authored
	// FencesItself: its handler refuses a run that is over, in words of its own, or it
	// makes no difference: a cancelled run is over, and a run tells of its end after it.
	FencesItself
	// AfterRun: the token of a run that is over is still good for it.
	AfterRun
	// EndsKeys: it may end a credential, or what one opens.
	EndsKeys
	// SeldomWork: it gives the scheduler work only when a run, an agent or the company
	// changed with it. NoWork: it never does. All others may.
	SeldomWork
	NoWork
)

// Has reports whether k has all of t.
func (k Kind) Has(t Traits) bool { return k.Traits&t == t }

// meshKinds are about the mesh itself; the ledger carries them out.
var meshKinds = []Kind{
	{Name: ledger.KindGenesis, From: FromRoster},
	{Name: ledger.KindEpoch, From: FromNode},
	{Name: ledger.KindNodeAdmit, From: FromRoster},
	{Name: ledger.KindNodeRevoke, From: FromRoster},
	{Name: ledger.KindTokenCreate, From: FromRoster},
	{Name: ledger.KindTokenRevoke, From: FromRoster},
	{Name: ledger.KindOwnerAdd, From: FromBoard},
	{Name: ledger.KindSessionOpen, From: FromNode},
	{Name: ledger.KindSessionEnd, From: FromNode},
	{Name: ledger.KindSessionLease, From: FromNode},
	{Name: ledger.KindTimeStep, From: FromRoster},
	{Name: ledger.KindFeatureRaise, From: FromRoster},
	{Name: ledger.KindKeysRotate, From: FromRoster},
	{Name: ledger.KindNodeUpdate, From: FromRoster},
}

// kernel are the rules of the kernel itself.
var kernel = Rules{Kinds: slices.Concat(
	companyKinds, agentKinds, goalKinds, projectKinds, activityKinds, issueKinds, checkoutKinds, commentQueueKinds, commentKinds, threadKinds, labelKinds, wakeupKinds, runKinds, runLogKinds, runEventKinds, haltKinds, dutyKinds, sessionKinds, settingKinds,
), Forget: forgetKernel, Sealed: sealedKernel, Envs: envsKernel,
	Reseal: map[string]func(c *ledger.Context, p conceal.Reseal) error{"agent": resealAgent, "project": resealProject}}

func index(lists ...[]Kind) map[string]Kind {
	all := map[string]Kind{}
	for _, k := range slices.Concat(lists...) {
		if _, twice := all[k.Name]; twice || k.From == 0 {
			panic("company: " + k.Name + " has two rows, or nobody may give it")
		}
		all[k.Name] = k
	}
	return all
}

// KindOf returns the row of a kind. A kind without one is nobody's.
func KindOf(name string) (Kind, bool) {
	k, ok := kinds[name]
	return k, ok
}

// Kinds returns the rows of all kinds, by name.
func Kinds() []Kind {
	var out []Kind
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		out = append(out, kinds[name])
	}
	return out
}

// issueFirst is the Reads of commands whose payload names the issue first.
func issueFirst(cmd *ledger.Command, want func(key []byte)) {
	var p struct {
		Issue string `cbor:"1,keyasint"`
	}
	if ledger.Unmarshal(cmd.Payload, &p) == nil && core.IsID(p.Issue) {
		want(entity.IssueTable.Key(cmd.Company, p.Issue))
	}
}
