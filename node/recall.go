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

// openRecall starts to index companies' memories. The saved graphs are beside the store;
// none are saved if the store is in memory.
func (n *Node) openRecall(context.Context) error {
	conf := recall.Config{View: n.ledger.View, Entries: n.ledger.Entries, Logger: n.log,
		Head:      func() uint64 { return n.ledger.Position().Height },
		Companies: companyIDs}
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

// embedTurn is how long one node embeds a company's memories before the turn passes to
// another node that may, so that a node which can not reach the model does not block it.
const embedTurn = 2 * time.Minute

// embed has a model of the gateway embed texts.
func (n *Node) embed(ctx context.Context, who recall.Payer, model string, texts []string) ([][]float32, error) {
	out, err := n.models.Embed(ctx, llm.Caller{Company: who.Company, Agent: who.Agent}, model, texts)
	if errors.Is(err, llm.ErrTexts) {
		return nil, fmt.Errorf("%w: %w", recall.ErrTexts, err)
	}
	return out, err
}

// embedsFor reports whether it is this node's turn to embed a company's memories, among
// the live nodes from which an upstream of the model may be called. If two nodes briefly
// disagree, both embed the same memories and the first vectors are kept.
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

// tellOfVectors submits a command of this node and waits until its state has applied it.
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

func companyIDs(tx *ledger.Tx) (out []ledger.CompanyID) {
	for _, c := range entity.Companies(tx) {
		out = append(out, c.ID)
	}
	return out
}
