package identity

import (
	"fmt"
	"log/slog"
)

// Values with secrets print their kind and ID, and never the secret, with every verb and in
// every log.

// Format prints the node's ID.
func (k *Keys) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "keys of node %s", k.ID().Short()) }

// Format prints the key's ID.
func (k DataKey) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "data key %s", k.ID()) }

// Format prints the token's ID.
func (t JoinToken) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "join token %s of mesh %s", t.ID, t.Mesh.Short())
}

// Format prints the key's ID.
func (k OwnerKey) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "owner key %s", k.TokenID()) }

// LogValue is the node's ID.
func (k *Keys) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(k)) }

// LogValue is the key's ID.
func (k DataKey) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(k)) }

// LogValue is the token's ID.
func (t JoinToken) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(t)) }

// LogValue is the key's ID.
func (k OwnerKey) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(k)) }
