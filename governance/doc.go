// Package governance decides whether an act should happen. A capability says that somebody may do it;
// the gate says that it should be done now.
//
// An act has an action, somebody who does it, and a context. [Weigh] turns it into an effect: five dimensions from 0
// to 1000, the action's base raised by the context. The rules of a constitution read the act and its effect. Each rule
// belongs to one of three branches, and each branch forms an opinion from its own rules alone. The decision is the
// strictest opinion: no branch lifts what another one refuses.
//
//	act → base effect → raised by the context → opinions of three branches → decision
//
// Everything here is pure: the same constitution and act give the same decision on every node. There are no floating
// point numbers, no clock and no map order. What can not be decided is denied, and the decision says why.
//
// Read effect.go, raise.go, rule.go and gate.go in this order; genesis.go has the rules that every mesh begins with.
package governance
