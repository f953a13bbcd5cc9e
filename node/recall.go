package node

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/llm"
	"github.com/selvage-mesh/selvage/recall"
)

// openRecall begins to index what companies remember. Saved graphs lie beside the store;
// where the store is in memory, none are kept.
func (n *Node) openRecall(context.Context) error {
	conf := recall.Config{View: n.ledger.View, Entries: n.ledger.Entries, Logger: n.log,
		Head: func() uint64 { return n.ledger.Position().Height },
		Companies: func(tx *ledger.Tx) (out []ledger.CompanyID) {
			for _, c := range entity.Companies(tx) {
				out = append(out, c.ID)
			}
			return out
		}}
	if n.conf.FS == vfs.Default || n.conf.OnDisk {
		conf.Dir = filepath.Join(n.conf.Dir, "memory")
	}
	conf.Embedder = recall.Embedder{Embed: n.embed, Mine: n.embedsFor, Submit: n.tellOfVectors}
	if n.small {
		conf.MaxHeld = recall.MaxHeldSmall
	}
	n.recall = recall.New(conf)
	n.spawn(n.recall.Run)
	return nil
}

// embedTurn is how long one node embeds what a company remembers, before the turn goes to
// another that may: a node that can not reach the model is not waited for.
const embedTurn = 2 * time.Minute

// embed has a model of the gateway embed texts.
func (n *Node) embed(ctx context.Context, who recall.Payer, model string, texts []string) ([][]float32, error) {
	out, err := n.models.Embed(ctx, llm.Caller{Company: who.Company, Agent: who.Agent}, model, texts)
	if errors.Is(err, llm.ErrTexts) {
		return nil, fmt.Errorf("%w: %w", recall.ErrTexts, err)
	}
	return out, err
}

// embedsFor reports whether it is this node's turn to embed what a company remembers: among
// the nodes that live and that an upstream of the model may be asked from. Two that disagree
// for a moment embed the same; the first one's vectors stay.
func (n *Node) embedsFor(tx *ledger.Tx, of ledger.CompanyID, model string) bool {
	if !n.work.worker.Holds() {
		return false
	}
	var live []ledger.Node
	for _, m := range ledger.Roster(tx) {
		if _, ok := ledger.SessionOf(tx, m.ID); ok && m.Member() && !m.Has(ledger.LabelUntrusted) {
			live = append(live, m)
		}
	}
	if model != "" {
		live = llm.Reaches(tx, of, model, live)
	}
	if len(live) == 0 {
		return false
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(of)) // never fails
	turn := h.Sum64() + uint64(n.consensus.Now().UnixNano()/int64(embedTurn))
	return live[turn%uint64(len(live))].ID == n.ID()
}

// tellOfVectors submits a command of this node and waits until its state has it.
func (n *Node) tellOfVectors(ctx context.Context, kind string, of ledger.CompanyID, payload any) error {
	ctx, cancel := context.WithTimeout(ctx, submitTimeout)
	defer cancel()
	receipt, err := n.submit(ctx, n.command(kind, of, payload))
	if err != nil {
		return err
	}
	if _, err := n.View(ctx, ledger.Read{AtLeast: receipt.Index}, func(*ledger.Tx) error { return nil }); err != nil {
		return err
	}
	return receipt.Err()
}
