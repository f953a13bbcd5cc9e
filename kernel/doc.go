// Package kernel holds the processes on this node: table, supervisor, limits, capabilities.
//
// A process is anything that lives on a node while it works: a run of a company's agent, a
// service, a native command, a WebAssembly module, a container. Each one has a [PID] that is
// never used twice on its node, an [Address] in the mesh, a [State] that changes by the rules
// of [State.Next] alone, [Limits] and [Use], and an exit code when it is over.
//
// The rules are values: a [Table], a [Supervisor] and a [Group] decide, with the time given to
// them, and return what is to be done. Whoever owns the real process (the node) does it. So
// the rules run in virtual time, and nothing here starts, waits or kills.
package kernel
