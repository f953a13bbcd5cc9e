// Package govern is the constitution of the mesh as rows, and the gate that every command passes.
//
// The rules in force are the genesis rules of package governance with what amendments made of them. [Weigh] is the
// gate of the ledger: it asks the rules about a command before its handler runs.
//
//	permit   the handler runs
//	warn     the handler runs, and a [Decision] is stored
//	escalate the command waits for a person, as an approval
//	deny     the command is refused
//
// Not weighed are the commands of nodes and the kinds whose row says so in Weight.Free: what follows from a decision
// must not stop halfway, and no rule may keep people from mending the rules.
//
// constitution.go has the rules and their versions, gate.go the gate, waiting.go what waits, decision.go what was
// decided, amendment.go how rules change, local.go what nodes weigh themselves.
package govern
