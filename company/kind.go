package company

import (
	"maps"
	"slices"

	"github.com/selvage-mesh/selvage/company/cause"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Kind is everything that is true of one kind of command. It is one row, in the file of
// its handler. Code that needs one of these facts reads the row.
type Kind struct {
	Name string // "noun.verb"; it is stored in the log, so it never changes
	From Givers
	// Needs is the permission that a person needs in the company, unless the person
	// administers the instance; "": every member except viewers.
	Needs  entity.Permission
	Traits Traits
	// Permit refuses an agent that has not the permission for it; nil: every agent has it. It is
	// asked before the gate, so that what is not permitted does not wait for a person.
	Permit func(c *ledger.Context) error
	// Weight is what the gate takes it for.
	Weight Weight
	// Target returns the path in the resource tree that a command is about, absolute or below that of the company; nil:
	// the company.
	Target func(cmd *ledger.Command) string
	// Reads names rows that the handler reads in addition to those of [Prefetch].
	Reads func(cmd *ledger.Command, want func(key []byte))
	// Do is the handler; nil when the ledger itself executes the kind.
	Do ledger.Handler
}

// Givers are the actors who may give a kind of command. Handlers check what depends on
// rows, such as an agent's own issues or its subtree.
type Givers uint8

const (
	FromBoard  Givers = 1 << iota // a person
	FromAgent                     // an agent of the command's company; the handler checks more
	FromNode                      // a member node, or the system
	FromRoster = FromBoard | FromNode
)

// Traits are facts that are true of few kinds.
type Traits uint16

const (
	// AdminsOnly, LeadersOnly, Invited: among people, only an administrator of the instance,
	// only an owner or admin of the company, or anybody with an invite may give it.
	AdminsOnly Traits = 1 << iota
	LeadersOnly
	Invited
	// Personal: people give it about themselves; it names no company.
	Personal
	// Founds: the company of the command need not exist. WindsUp: the board may give it
	// while the company is being deleted.
	Founds
	WindsUp
	// Importable: an import may contain it. The board itself may give these kinds in one
	// company, and they neither show nor need a secret.
	Importable
	// Authored: an import may contain it on behalf of the agent that wrote it.
	Authored
	// FencesItself: its handler refuses a run that has ended with an error of its own, or a
	// run that has ended makes no difference to it.
	FencesItself
	// AfterRun: it accepts the token of a run that has ended.
	AfterRun
	// EndsKeys: it may revoke a credential or what a credential opens.
	EndsKeys
	// SeldomWork: it concerns the scheduler only when it changed a run, an agent or the
	// company. NoWork: it never does. All other kinds may.
	SeldomWork
	NoWork
	// ByGiver: the node that took the command in does what it allows, and nobody else. When a person approves one that
	// waited, its giver gives it again and it is carried out once.
	ByGiver
)

// Has reports whether k has all of t.
func (k Kind) Has(t Traits) bool { return k.Traits&t == t }

// meshKinds are about the mesh itself; the ledger executes them.
var meshKinds = []Kind{
	{Name: ledger.KindGenesis, From: FromRoster, Weight: Weights.Upkeep},
	{Name: ledger.KindEpoch, From: FromNode, Weight: Weights.ByNodes},
	{Name: ledger.KindNodeAdmit, From: FromRoster, Weight: Weights.AdmittingNodes, Target: allNodes},
	{Name: ledger.KindNodeRevoke, From: FromRoster, Weight: Weights.Expelling, Target: NodeFirst},
	{Name: ledger.KindTokenCreate, From: FromRoster, Weight: Weights.AdmittingNodes, Target: allNodes},
	{Name: ledger.KindTokenRevoke, From: FromRoster, Weight: Weights.AdmittingNodes, Target: allNodes},
	{Name: ledger.KindOwnerAdd, From: FromBoard, Weight: Weights.AdmittingNodes},
	{Name: ledger.KindSessionOpen, From: FromNode, Weight: Weights.ByNodes},
	{Name: ledger.KindSessionEnd, From: FromNode, Weight: Weights.ByNodes},
	{Name: ledger.KindSessionLease, From: FromNode, Weight: Weights.ByNodes},
	{Name: ledger.KindTimeStep, From: FromRoster, Weight: Weights.Upkeep},
	{Name: ledger.KindFeatureRaise, From: FromRoster, Weight: Weights.Upkeep},
	{Name: ledger.KindKeysRotate, From: FromRoster, Weight: Weights.Upkeep},
	{Name: ledger.KindNodeUpdate, From: FromRoster, Weight: Weights.MeshSettings, Target: NodeFirst},
}

// kernel is the kernel's own Rules.
var kernel = Rules{Kinds: slices.Concat(
	companyKinds, agentKinds, goalKinds, projectKinds, activityKinds, issueKinds, checkoutKinds, commentQueueKinds,
	commentKinds, threadKinds, labelKinds, wakeupKinds, runKinds, runLogKinds, runEventKinds, haltKinds, dutyKinds,
	sessionKinds, settingKinds,
), Forget: forgetKernel, Sealed: sealedKernel, Envs: envsKernel,
	Reseal: map[string]func(c *ledger.Context, p conceal.Reseal) error{"agent": resealAgent, "project": resealProject},
	Causes: cause.Work}

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

// KindOf returns the row of a kind. Nobody may give a kind without a row.
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

// AgentFirst is the Target of kinds whose payload begins with the agent that they are about.
func AgentFirst(cmd *ledger.Command) string {
	var p struct {
		Agent string `cbor:"1,keyasint"`
	}
	if ledger.Unmarshal(cmd.Payload, &p) != nil || !core.IsID(p.Agent) {
		return ""
	}
	return "agents/" + p.Agent
}

// allNodes is the Target of kinds that are about who becomes a node.
func allNodes(*ledger.Command) string { return core.PeersPath }

// NodeFirst is the Target of kinds whose payload begins with the node that they are about.
func NodeFirst(cmd *ledger.Command) string {
	var p struct {
		Node string `cbor:"1,keyasint"`
	}
	if ledger.Unmarshal(cmd.Payload, &p) != nil || p.Node == "" {
		return ""
	}
	return core.NodePath(p.Node)
}

// issueFirst is the Reads of kinds whose payload begins with the issue's ID.
func issueFirst(cmd *ledger.Command, want func(key []byte)) {
	var p struct {
		Issue string `cbor:"1,keyasint"`
	}
	if ledger.Unmarshal(cmd.Payload, &p) == nil && core.IsID(p.Issue) {
		want(entity.IssueTable.Key(cmd.Company, p.Issue))
	}
}
