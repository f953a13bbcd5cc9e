// Package filters is the second backend of the gate: three filters that look at who acts, where rules look at what is
// done. A company chooses them; they speak beside the rules, and make a decision stricter, never milder.
//
//	structure  how much authority flows from the board to the agent: the minimum cut of the graph of who leads and who
//	           has delegated to whom. Too little denies.
//	shift      how far the agent's last acts are from its own past, as total variation. Too far, by an act that is part
//	           of it, waits for a person.
//	evidence   an e-value over what came of the agent's acts. Far below one denies, somewhat below waits for a person.
//
// Everything is whole numbers: levels of thousandths, logarithms in parts of 1024. [Decide] is a function of a
// [Question], which has all that it reads, so a receipt can be decided again anywhere. What is kept of an agent is
// bounded: [Window] acts, [Bins] counters and one number.
//
// Read flow.go, profile.go, filter.go and receipt.go in this order.
package filters
