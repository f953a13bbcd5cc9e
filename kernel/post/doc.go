// Package post is the messages between processes: envelopes, inboxes, requests, reliable delivery, dead letters.
//
// An [Office] is the post of one node. It decides and keeps; whoever owns it gives it the time,
// carries its frames to the offices of other nodes, and says where a target is. So the rules
// run in virtual time. Nothing here looks at a clock, starts a goroutine or touches a network.
//
// A message has a way through three places, each with a bound and a deadline:
//
//	sender → link to the other node → inbox of the process → receiver
//
// A place gives credits: as many messages as it has room for. Without a credit the sender waits
// for one, in order, until its deadline; then the message is refused with [InboxFull]. Nothing
// is thrown away in silence: what was not delivered is a dead letter with its [Reason], on the
// node where its way ended, and the sender gets the same reason as an error.
//
// Plain messages and requests arrive at most once. A reliable message stays in the outbox of its
// sender's node until the handler acknowledges it; it is sent again after 5, 10 and 20 seconds,
// and an office remembers the IDs that were handled, so that a repetition is not handled again.
// A durable message is a reliable one that survives the death of its sender's node, and is
// tried until its own deadline.
package post
