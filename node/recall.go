package node

import (
	"context"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/recall"
)

// openRecall begins to index what companies remember. Saved graphs lie beside the store;
// where the store is in memory, none are kept.
func (n *Node) openRecall(context.Context) error {
	conf := recall.Config{View: n.ledger.View, Entries: n.ledger.Entries, Logger: n.log,
		Head: func() uint64 { return n.ledger.Position().Height },
		Companies: func(tx *ledger.Tx) (out []string) {
			for _, c := range entity.Companies(tx) {
				out = append(out, c.ID)
			}
			return out
		}}
	if n.conf.FS == vfs.Default || n.conf.OnDisk {
		conf.Dir = filepath.Join(n.conf.Dir, "memory")
	}
	if n.small {
		conf.MaxHeld = recall.MaxHeldSmall
	}
	n.recall = recall.New(conf)
	n.spawn(n.recall.Run)
	return nil
}
