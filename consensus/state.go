package consensus

import (
	"crypto/rand"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// LedgerState returns a ledger as a [StateMachine].
func LedgerState(l *ledger.Ledger) StateMachine { return ledgerState{l} }

type ledgerState struct{ *ledger.Ledger }

func (s ledgerState) Snapshot() (Snapshot, error) {
	snap, err := s.Ledger.Snapshot()
	if err != nil {
		return nil, err // not snap: a nil pointer in an interface is not nil
	}
	return snap, nil
}

var _ Digester = ledgerState{}

// SessionOpener returns what makes a node's commands to open a session, each
// with another nonce; see [ProposerConfig].
func SessionOpener(node identity.NodeID, incarnation string) func() ledger.Command {
	return func() ledger.Command {
		cmd := ledger.Command{
			Kind:       ledger.KindSessionOpen,
			Actor:      ledger.Actor{Type: "node", ID: string(node)},
			Credential: ledger.Credential{Kind: "node", ID: string(node)},
			Payload:    ledger.Marshal(ledger.SessionOpen{Incarnation: incarnation, Nonce: rand.Text()}),
		}
		_, _ = rand.Read(cmd.Salt[:]) // never fails
		return cmd
	}
}
