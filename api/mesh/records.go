package mesh

import (
	"encoding/base64"
	"encoding/hex"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// maxRecords bounds one page of records, maxRecordBytes what their bytes are in all.
	maxRecords     = 1000
	maxRecordBytes = 1 << 20
)

// chainRecords is a part of the chain as it is stored: whoever has it can compute each
// hash and check each signature. Payloads are not in it, the chain holds their hashes.
type chainRecords struct {
	Mesh    identity.MeshID   `json:"meshId"`
	Records []chainRecord     `json:"records"`
	Keys    map[string]string `json:"keys"` // base64 of the public key by node ID, which is the key's hash
	Applied uint64            `json:"applied"`
	Head    string            `json:"head"` // hash of the newest entry
	Height  uint64            `json:"height"`
}

type chainRecord struct {
	Index   uint64   `json:"index"`
	Record  string   `json:"record"`  // base64
	Entries []string `json:"entries"` // base64
}

func listRecords(rc *api.Request) (api.Response, error) {
	after, err := rc.QueryHeight("after")
	if err != nil {
		return api.Response{}, err
	}
	limit, err := rc.QueryInt("limit", 200, 1, maxRecords)
	if err != nil {
		return api.Response{}, err
	}
	text := base64.StdEncoding.EncodeToString
	out := chainRecords{Records: []chainRecord{}, Keys: map[string]string{}}
	err = rc.View(func(tx *ledger.Tx) error {
		at := tx.Position()
		out.Mesh, out.Applied, out.Head, out.Height = at.Mesh, at.Applied, hex.EncodeToString(at.Head[:]), at.Height
		for _, r := range ledger.RecordsAfter(tx, after, limit, maxRecordBytes) {
			row := chainRecord{Index: r.Index, Record: text(r.Record), Entries: []string{}}
			for _, e := range r.Entries {
				row.Entries = append(row.Entries, text(e))
			}
			out.Records = append(out.Records, row)
			if n, ok := ledger.FindNode(tx, r.Origin); ok {
				out.Keys[string(r.Origin)] = text(n.Key)
			}
		}
		return nil
	})
	return api.OK(out), err
}
