package node

import (
	"cmp"
	"context"
	"net"
	"path/filepath"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
	"github.com/selvage-mesh/selvage/transport"
)

func (n *Node) openBlobs(context.Context) (err error) {
	n.blobs, err = blob.Open(filepath.Join(n.conf.Dir, "blobs"), blob.Config{
		Store: n.conf.Blobs.Store, Self: n.ID(), Peers: blobPeers{n}, Gone: n.conf.Blobs.Gone,
		Grace: n.conf.Blobs.Grace, Log: n.log,
	})
	if err != nil {
		return err
	}
	n.opened("blobs", n.blobs.Close)
	return nil
}

// blobPeers is what the blob store needs of the mesh.
type blobPeers struct{ n *Node }

func (p blobPeers) Dial(ctx context.Context, to identity.NodeID, request []byte) (net.Conn, error) {
	c, err := p.n.transport.Dial(ctx, to, transport.KindSync)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		c.SetWriteDeadline(deadline)
	}
	if err := transport.WriteFrame(c, syncBlob, request); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Live returns the members that gossip considers alive and that may read companies'
// data: an untrusted node stores no files.
func (p blobPeers) Live() (out []identity.NodeID) {
	for id, m := range p.n.roster.all() {
		if m.Member() && !m.Has(ledger.LabelUntrusted) && (id == p.n.ID() || p.n.discovery != nil &&
			p.n.discovery.Alive(id)) {
			out = append(out, id)
		}
	}
	return out
}

// tendBlobs maintains this node's files periodically. It deletes nothing while the node
// may be behind the mesh, because entries that it has not applied may reference a blob.
func (n *Node) tendBlobs(ctx context.Context) {
	every(ctx, cmp.Or(n.conf.Blobs.Every, blob.DefaultEvery), func() {
		current := n.Ready(ctx) == nil
		var refs []blob.Reference
		err := n.ledger.View(func(tx *ledger.Tx) error {
			for sha256, r := range company.Blobs(tx) {
				if d, err := blob.ParseDigest(sha256); err == nil {
					ref := blob.Reference{Digest: d, Size: r.Size}
					for _, id := range r.Nodes {
						ref.Hints = append(ref.Hints, identity.NodeID(id))
					}
					refs = append(refs, ref)
				}
			}
			return nil
		})
		if err != nil {
			n.log.Warn("blobs: read what is referred to", "error", err)
			return
		}
		n.blobs.Tend(ctx, refs, current)
	})
}
