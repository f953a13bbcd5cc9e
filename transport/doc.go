// Package transport carries everything between peers over one UDP port: QUIC
// connections that a Noise handshake authenticates, streams by kind, a control
// channel of Noise messages, and gossip packets beside them.
//
// A connection is believed only after the Noise handshake on its first stream,
// which is bound to the TLS exporter value, so that the two layers are one
// channel; QUIC's own certificate is thrown away. Who the peer is follows from
// its node key; whether it may speak follows from the roster, or from an
// admission that leads to somebody on the roster.
//
// A [Transport] runs: one goroutine that accepts connections, one that reads
// gossip packets, one that looks after idle and superseded connections, two for
// each authenticated connection (its streams, its control channel), and one for
// each stream that a peer opened, for as long as its handler runs. Close stops
// and awaits all of them.
package transport
