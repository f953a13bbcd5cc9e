package governance

import (
	"slices"
	"strings"
)

// A Class groups actions that do the same kind of thing. Rules are about classes more often than about single actions.
type Class string

// The classes of actions.
const (
	Read         Class = "read"         // look at what is there
	Write        Class = "write"        // make or change a file
	Remove       Class = "remove"       // delete a file
	Shell        Class = "shell"        // run a command line
	Code         Class = "code"         // change or run program code
	Spawn        Class = "spawn"        // make or start an agent
	Steer        Class = "steer"        // stop, suspend or resume an agent
	Message      Class = "message"      // send or listen
	Model        Class = "model"        // call a language model
	Egress       Class = "egress"       // reach the network outside the mesh
	Money        Class = "money"        // commit or spend money
	Install      Class = "install"      // add a program, app, plugin or skill
	Deploy       Class = "deploy"       // put something into operation
	Release      Class = "release"      // publish a version
	Elevate      Class = "elevate"      // get more rights
	Admit        Class = "admit"        // take a node or person in
	Configure    Class = "configure"    // change settings or schedules
	Decommission Class = "decommission" // take something out of operation for good
	Decide       Class = "decide"       // decide about people
	Work         Class = "work"         // do a task that somebody gave
	Other        Class = "other"        // what the table does not name
)

// Classes lists all classes.
var Classes = []Class{Read, Write, Remove, Shell, Code, Spawn, Steer, Message, Model, Egress, Money, Install, Deploy,
	Release, Elevate, Admit,
	Configure, Decommission, Decide, Work, Other}

// An Action is one row of the table: what can be done, and the effect that it has by itself.
type Action struct {
	Name  string `cbor:"1,keyasint"`
	Class Class  `cbor:"2,keyasint"`
	Title string `cbor:"3,keyasint"` // as a reason names it: "shell command"
	Base  Effect `cbor:"4,keyasint"`
}

// actions is the table, by class. Tools of the kernel have the effects of their catalogue.
var actions = []Action{
	{"fs.read_file", Read, "read of a file", Effect{Risk: 100}},
	{"fs.read_dir", Read, "listing of a folder", Effect{Risk: 100}},
	{"fs.stat", Read, "look at a file", Effect{Risk: 50}},
	{"fs.exists", Read, "look at a file", Effect{Risk: 50}},
	{"fs.glob", Read, "search for files", Effect{Risk: 100}},
	{"read_file", Read, "read of a file", Effect{Privacy: 100}},
	{"list_directory", Read, "listing of a folder", Effect{Privacy: 50}},
	{"agent.list", Read, "listing of agents", Effect{Risk: 50}},
	{"agent.inspect", Read, "look at an agent", Effect{Risk: 100}},
	{"sys.service.list", Read, "listing of services", Effect{Risk: 50}},
	{"sys.service.health", Read, "look at a service", Effect{Risk: 50}},
	{"sys.chain.status", Read, "look at the chain", Effect{Risk: 50}},
	{"sys.chain.query", Read, "search of the chain", Effect{Risk: 100}},
	{"sys.tree.read", Read, "look at the resource tree", Effect{Risk: 50}},
	{"sys.tree.inspect", Read, "look at a resource", Effect{Risk: 50}},
	{"sys.env.get", Read, "read of the environment", Effect{Risk: 200, Privacy: 300}},
	{"sys.cron.list", Read, "listing of schedules", Effect{Risk: 50}},
	{"ecc.embed", Read, "embedding of a text", Effect{Risk: 100}},
	{"ecc.search", Read, "search of memories", Effect{Risk: 50}},
	{"ecc.causal.query", Read, "search of the causal graph", Effect{Risk: 50}},
	{"ecc.tick.status", Read, "look at the cognitive tick", Effect{Risk: 50}},
	{"secret.read", Read, "read of a secret", Effect{Risk: 300, Privacy: 300, Security: 400}},

	{"fs.write_file", Write, "write of a file", Effect{Risk: 400}},
	{"fs.create_dir", Write, "new folder", Effect{Risk: 300}},
	{"fs.copy", Write, "copy of a file", Effect{Risk: 300}},
	{"fs.move", Write, "move of a file", Effect{Risk: 500}},
	{"write_file", Write, "write of a file", Effect{Security: 400}},
	{"ecc.causal.link", Write, "link in the causal graph", Effect{Risk: 300}},
	{"ecc.crossref.create", Write, "cross reference", Effect{Risk: 200}},

	{"fs.remove", Remove, "removal of a file", Effect{Risk: 700, Security: 300}},

	{"execute_shell_command", Shell, "shell command", Effect{Risk: 700, Fairness: 500, Privacy: 300, Novelty: 800,
		Security: 600}},
	{"shell.exec", Shell, "shell command", Effect{Risk: 700, Fairness: 500, Privacy: 300, Novelty: 800, Security: 600}},
	{"exec", Shell, "shell command", Effect{Risk: 700, Fairness: 500, Privacy: 300, Novelty: 800, Security: 700}},

	{"code.change", Code, "change of code", Effect{Risk: 300, Security: 200}},
	{"code.run", Code, "run of code", Effect{Risk: 300, Security: 300}},
	{"tool.build", Code, "build of a tool", Effect{Risk: 300, Security: 300}},
	{"ecc.calibration.run", Code, "calibration", Effect{Risk: 100}},

	{"agent.spawn", Spawn, "new agent", Effect{Risk: 500}},
	{"agent.hire", Spawn, "new agent", Effect{Risk: 400, Novelty: 200}},
	{"agent.stop", Steer, "stop of an agent", Effect{Risk: 400}},
	{"agent.suspend", Steer, "suspension of an agent", Effect{Risk: 300}},
	{"agent.resume", Steer, "resumption of an agent", Effect{Risk: 200}},

	{"agent.send", Message, "message to an agent", Effect{Risk: 200}},
	{"ipc.send", Message, "message", Effect{Risk: 200}},
	{"ipc.subscribe", Message, "subscription", Effect{Risk: 100}},

	{"secret.resolve", Work, "use of a secret", Effect{Risk: 100, Privacy: 100, Security: 200}},
	{"model.call", Model, "call of a model", Effect{Risk: 100, Privacy: 100, Novelty: 100}},
	{"network.egress", Egress, "network request", Effect{Risk: 200, Privacy: 200, Security: 300}},
	{"money.spend", Money, "payment", Effect{Risk: 300}},
	{"budget.raise", Money, "raise of a budget", Effect{Risk: 300}},

	{"app.install", Install, "installation of an app", Effect{Risk: 300, Security: 300}},
	{"plugin.install", Install, "installation of a plugin", Effect{Risk: 300, Security: 400}},
	{"skill.install", Install, "installation of a skill", Effect{Risk: 200, Novelty: 200, Security: 300}},
	{"tool.deploy", Deploy, "deployment of a tool", Effect{Risk: 400, Security: 300}},
	{"deploy", Deploy, "deployment", Effect{Risk: 400, Security: 300}},
	{"release.publish", Release, "release", Effect{Risk: 400, Security: 200}},

	{"capability.elevate", Elevate, "elevation of rights", Effect{Risk: 500, Security: 500}},
	{"sandbox.sudo", Elevate, "override of the sandbox", Effect{Risk: 700, Security: 800}},
	{"node.admit", Admit, "admission of a node", Effect{Risk: 300, Security: 500}},
	{"member.admit", Admit, "admission of a person", Effect{Risk: 200, Privacy: 200, Security: 400}},

	{"sys.cron.add", Configure, "new schedule", Effect{Risk: 400}},
	{"sys.cron.remove", Configure, "removal of a schedule", Effect{Risk: 300}},
	{"settings.change", Configure, "change of settings", Effect{Risk: 300, Security: 300}},
	{"app.remove", Decommission, "removal of an app", Effect{Risk: 400, Security: 200}},
	{"agent.terminate", Decommission, "end of an agent", Effect{Risk: 400}},
	{"node.revoke", Decommission, "revocation of a node", Effect{Risk: 500, Security: 300}},

	{"people.rate", Decide, "rating of people", Effect{Risk: 300, Fairness: 500, Privacy: 300}},
	{"people.select", Decide, "selection of people", Effect{Risk: 300, Fairness: 700, Privacy: 300}},
	{"execute_task", Work, "task", Effect{Risk: 300, Fairness: 100, Privacy: 100, Novelty: 200, Security: 200}},
}

// unknown is what an action counts as that the table does not name. It is denied above development unless
// somebody vouches for it: nobody has said what it does.
var unknown = Action{Class: Other, Title: "unknown action", Base: Effect{Risk: 400, Fairness: 100, Privacy: 300,
	Novelty: 600, Security: 400}}

var byName = func() map[string]Action {
	m := make(map[string]Action, len(actions))
	for _, a := range actions {
		m[a.Name] = a
	}
	return m
}()

// ActionOf returns the row of an action, and whether the table names it; another one is [Other]. A tool of the kernel
// is also found by the name that its catalogue has for the gate: "tool.fs.stat" is "fs.stat".
func ActionOf(name string) (Action, bool) {
	if a, ok := byName[name]; ok {
		return a, true
	}
	if a, ok := byName[strings.TrimPrefix(name, "tool.")]; ok {
		return a, true
	}
	a := unknown
	a.Name = name
	return a, false
}

// Actions returns the table, in the order in which it is written.
func Actions() []Action { return slices.Clone(actions) }
