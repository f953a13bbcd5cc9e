// Package discovery finds peers and knows who is here: gossip, seeds and a
// peer cache on disk.
//
// Gossip is memberlist on the mesh's own socket. Its packets are sealed with
// the mesh's gossip key, its streams ride the authenticated connections of
// transport. Discovery only finds: a node that the roster does not have is
// ignored, and what gossip says grants nothing.
//
// A member is told apart from a dead one in three steps. memberlist probes it,
// then suspects it and lets it object; when it declares it dead, we make a
// [last call] of our own, counted in attempts and not in seconds, so that an
// observer that was itself not scheduled does not believe its own timers. Only
// an unanswered last call makes a member [Failed].
//
// [last call]: the type call in call.go
package discovery
