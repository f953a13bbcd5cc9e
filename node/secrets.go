package node

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// resolveSecrets returns an agent's configuration with its secrets decrypted, and their
// values. It records the use before it returns them. The error names variables and
// reasons, never values.
func (n *Node) resolveSecrets(ctx context.Context, run entity.Run, config json.RawMessage) (json.RawMessage,
	[]string, error) {
	var r secret.Resolution
	try := func() error {
		return n.ledger.View(func(tx *ledger.Tx) (err error) {
			r, err = secret.Resolve(tx, string(n.Mesh()), run, config, func(aad, sealed []byte) ([]byte,
				error) {
				return n.keyring.open(tx, aad, sealed)
			})
			return err
		})
	}
	err := try()
	if err != nil && errors.Is(err, identity.ErrSealed) && n.refreshKeys() {
		err = try() // it was sealed with a key newer than this node's keys
	}
	if err == nil {
		err = n.weighSecrets(run, r.Uses)
	}
	if len(r.Uses) > 0 {
		if noted := n.carryOut(ctx, n.command(secret.KindSecretAccess, run.Company, secret.UseSecrets{Run: run.ID,
			Uses: r.Uses})); noted != nil {
			err = errors.Join(err, fmt.Errorf("the use of secrets could not be noted: %w", noted))
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return r.Config, r.Values, nil
}

// weighSecrets asks the gate whether an agent should get secrets. One that it may not get is noted as refused.
func (n *Node) weighSecrets(run entity.Run, uses []secret.SecretUse) error {
	if run.Agent == "" {
		return nil // commands of a workspace, which the board has set up
	}
	var refused []error
	for i, u := range uses {
		err := n.Weigh(govern.Local{Action: govern.ActSecret, Target: govern.SecretPath(run.Company, u.Secret),
			Agent: run.Agent, Company: run.Company, Run: run.ID, Arguments: govern.ArgumentsOf([]byte(u.Secret + " " + u.Path)),
			Detail: "secret " + u.Secret + " as " + u.Path})
		if err != nil {
			uses[i].Error = "gate_refused"
			refused = append(refused, fmt.Errorf("%s: %w", u.Path, err))
		}
	}
	return errors.Join(refused...)
}

// resealing returns commands that seal values again which are sealed with an earlier
// data key: a few each time, while this node leads.
func (n *Node) resealing() (due []ledger.Command) {
	_, key, _ := n.keyring.current()
	if key == (identity.DataKey{}) {
		return nil
	}
	present := key.ID()
	if n.resealed == present {
		return nil // nothing was left last time
	}
	again := func(tx *ledger.Tx, aad, sealed []byte) []byte {
		if id, err := identity.SealedWith(sealed); err != nil || id == present {
			return nil
		}
		plain, err := n.keyring.open(tx, aad, sealed)
		if err != nil {
			n.log.Warn("sealed value does not open", "error", err)
			return nil
		}
		return identity.Seal(key, aad, plain)
	}
	mesh := string(n.Mesh())
	err := n.ledger.View(func(tx *ledger.Tx) error {
		for _, c := range append(entity.Companies(tx), entity.Company{}) { // the last is the mesh itself
			for v := range secret.SecretVersions(tx, c.ID) {
				if len(due) >= maxChores {
					return nil
				}
				if next := again(tx, conceal.SecretAAD(mesh, c.ID, v.Secret, v.Version), v.Sealed); next != nil {
					due = append(due, n.command(secret.KindSecretReseal, c.ID, conceal.Reseal{Type: "secret", ID: v.Secret,
						Version: v.Version,
						Old:     []string{base64.StdEncoding.EncodeToString(v.Sealed)},
						New:     []string{base64.StdEncoding.EncodeToString(next)}}))
				}
			}
			for _, owner := range company.SealedConfigs(tx, c.ID) {
				if len(due) >= maxChores {
					return nil
				}
				p, size := conceal.Reseal{Type: owner.Type, ID: owner.ID}, 0
				for _, v := range owner.Values {
					b, err := base64.StdEncoding.DecodeString(v.Sealed)
					if err != nil || len(p.Old) == conceal.MaxRunSecrets || len(p.Old) > 0 && size+2*len(v.Sealed) > maxReseal {
						continue // next time
					}
					if next := again(tx, owner.AAD(mesh, c.ID, v), b); next != nil {
						p.Old, p.New = append(p.Old, v.Sealed), append(p.New, base64.StdEncoding.EncodeToString(next))
						size += 2 * len(v.Sealed)
					}
				}
				if len(p.Old) > 0 {
					due = append(due, n.command(secret.KindSecretReseal, c.ID, p))
				}
			}
		}
		return nil
	})
	if err == nil && len(due) == 0 {
		n.resealed = present
	}
	return due
}
