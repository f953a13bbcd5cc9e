package company

import (
	"strings"

	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Weight is what the gate takes a kind of command for. Each [Kind] has one.
type Weight struct {
	Class        governance.Class
	Effect       governance.Effect // base, before what is known of the command raises it
	Outside      bool              // its target is outside the company
	Irreversible bool              // it can not be undone
	// Facts adds what the payload says, such as an amount of money.
	Facts func(cmd *ledger.Command, known *governance.Context)
	// Free is why the gate does not weigh commands of the kind; "" where it does.
	Free string
}

// With returns w as the weight of a kind whose payload says more.
func (w Weight) With(facts func(cmd *ledger.Command, known *governance.Context)) Weight {
	w.Facts = facts
	return w
}

// Weights are those that the rows of kinds have. The gate weighs what people and agents decide. It does not
// weigh what follows from that, or it could stop the mesh halfway.
var Weights = struct {
	Marks, Talk, Task, Text, Erase, Execute, SetUp, MeshSettings, Hire, Steering, Ends, Retires,
	Spending, Skilling, Deploying, Sealing, Admitting, AdmittingNodes, Expelling, Empowering, Elevating,
	ByNodes, Upkeep, Reporting,
	Halting, Answering, Amending, Asking, Entering, Bytes, Installing, Removing, Spawning Weight
}{
	// Marks: what concerns only how one reader sees things.
	Marks: Weight{Class: governance.Work, Effect: governance.Effect{governance.Risk: 20}},
	// Talk: a comment, a question, a remark.
	Talk: Weight{Class: governance.Message, Effect: governance.Effect{governance.Risk: 50, governance.Privacy: 50}},
	// Task: work on issues and goals.
	Task: Weight{Class: governance.Work, Effect: governance.Effect{governance.Risk: 100}},
	// Text: documents, files and memories.
	Text: Weight{Class: governance.Work, Effect: governance.Effect{governance.Risk: 100, governance.Privacy: 100}},
	// Erase: a text or a piece of work is deleted.
	Erase: Weight{Class: governance.Work, Effect: governance.Effect{governance.Risk: 200, governance.Privacy: 50},
		Irreversible: true},
	// Execute: a tool, a service or a command is started.
	Execute: Weight{Class: governance.Work, Effect: governance.Effect{governance.Risk: 200, governance.Security: 100}},
	// SetUp: how a company, its agents and their places are set up.
	SetUp: Weight{Class: governance.Configure, Effect: governance.Effect{governance.Risk: 200, governance.Security: 200}},
	// MeshSettings: how the mesh is set up.
	MeshSettings: Weight{Class: governance.Configure, Effect: governance.Effect{governance.Risk: 300,
		governance.Security: 300}},
	// Hire: a new agent.
	Hire: Weight{Class: governance.Spawn, Effect: governance.Effect{governance.Risk: 400, governance.Novelty: 200}},
	// Steering: an agent or a run is stopped, woken or goes on.
	Steering: Weight{Class: governance.Steer, Effect: governance.Effect{governance.Risk: 200}},
	// Ends: an agent, a project or a company ends, and can not come back.
	Ends: Weight{Class: governance.Decommission, Effect: governance.Effect{governance.Risk: 200, governance.Security: 100},
		Irreversible: true},
	// Retires: an agent is taken out of operation.
	Retires: Weight{Class: governance.Decommission, Effect: governance.Effect{governance.Risk: 400}},
	// Spending: money is committed, or a limit of it moves.
	Spending: Weight{Class: governance.Money, Effect: governance.Effect{governance.Risk: 200}},
	// Skilling: skills and instructions, which say what agents do.
	Skilling: Weight{Class: governance.Install, Effect: governance.Effect{governance.Risk: 200, governance.Novelty: 200,
		governance.Security: 200}},
	// Installing: an app comes in, or another version of it. Removing: it goes.
	Installing: Weight{Class: governance.Install, Effect: governance.Effect{governance.Risk: 300,
		governance.Security: 300}},
	Removing: Weight{Class: governance.Decommission, Effect: governance.Effect{governance.Risk: 400,
		governance.Security: 200}},
	// Spawning: a process is started on a node.
	Spawning: Weight{Class: governance.Spawn, Effect: governance.Effect{governance.Risk: 400, governance.Security: 300}},
	// Deploying: a tool is put into operation.
	Deploying: Weight{Class: governance.Deploy, Effect: governance.Effect{governance.Risk: 400, governance.Security: 300}},
	// Sealing: a secret is stored, changed or deleted.
	Sealing: Weight{Class: governance.Configure, Effect: governance.Effect{governance.Risk: 200, governance.Privacy: 200,
		governance.Security: 300}},
	// Admitting: a person comes in.
	Admitting: Weight{Class: governance.Admit, Effect: governance.Effect{governance.Risk: 200, governance.Privacy: 200,
		governance.Security: 400}},
	// AdmittingNodes: a node comes in.
	AdmittingNodes: Weight{Class: governance.Admit, Effect: governance.Effect{governance.Risk: 300,
		governance.Security: 500}},
	// Expelling: a node goes.
	Expelling: Weight{Class: governance.Decommission, Effect: governance.Effect{governance.Risk: 500,
		governance.Security: 300}},
	// Empowering: somebody gets more rights.
	Empowering: Weight{Class: governance.Elevate, Effect: governance.Effect{governance.Risk: 300,
		governance.Security: 500}},

	// Elevating: an agent gets clearances for a time.
	Elevating: Weight{Class: governance.Elevate, Effect: governance.Effect{governance.Risk: 500,
		governance.Security: 500}},

	// ByNodes: only nodes give it. It carries out what was decided, reports what happened, or is due by time.
	ByNodes: Weight{Free: "only nodes give it: it carries out what was decided, or reports what happened"},
	// Upkeep: people may give it, and nodes do by themselves.
	Upkeep: Weight{Free: "upkeep that nodes also do by themselves"},
	// Reporting: what happened is written down.
	Reporting: Weight{Free: "it reports what happened: a refusal would only hide it"},
	// Halting: a rule must not be able to keep work running that somebody stops.
	Halting: Weight{Free: "it stops work: no rule can hold that up"},
	// Answering: it answers what the gate or an agent has asked.
	Answering: Weight{Free: "it is a person's answer to what was asked"},
	// Amending: the amendment rule decides about it.
	Amending: Weight{Free: "the amendment rule decides about it, so that no rule can lock everybody out"},
	// Asking: the gate is asked about an act that is no command, or its answer is used.
	Asking: Weight{Free: "it asks the gate about another act: its handler weighs that one"},
	// Entering: signing in and out, with one's own keys.
	Entering: Weight{Free: "people sign in and out, and keep their own keys: a rule must not lock out who can mend it"},
	// Bytes: bytes that are nothing until a command names them.
	Bytes: Weight{Free: "bytes that are nothing yet: the command that uses them is weighed"},
}

// Action returns what the gate takes commands of k for.
func (k Kind) Action() governance.Action {
	noun, verb, _ := strings.Cut(k.Name, ".")
	return governance.Action{Name: k.Name, Class: k.Weight.Class, Title: strings.ReplaceAll(noun+" "+verb, "_", " "),
		Base: k.Weight.Effect}
}
