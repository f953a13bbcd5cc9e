package transport

import "fmt"

// A Kind says what a stream is for; it is the first byte that the opener of a
// stream sends. A stream of a kind without handler is reset and counted. Sent
// between versions: do not renumber.
type Kind byte

const (
	KindRaft    Kind = 1 // raft's RPCs
	KindPropose Kind = 2 // batches forwarded to the leader
	KindSync    Kind = 3 // batches, state, roster, blobs; all that a peer known only by certificate gets
	KindGossip  Kind = 4 // memberlist's push-pull, see GossipPort
	KindRunLog  Kind = 5 // logs of runs while they grow
	KindIPC     Kind = 6 // long IPC transfers; short messages ride the control channel
	KindJoin    Kind = 7 // a join request and its reply; all that a holder of a join token gets

	numKinds = 8
)

var kindNames = [numKinds]string{"none", "raft", "propose", "sync", "gossip", "runlog", "ipc", "join"}

func (k Kind) String() string {
	if k < numKinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", byte(k))
}
