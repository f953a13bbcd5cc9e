package companytest

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/file"
)

func (d *Desk) File(content string) company.NewFile {
	sum := sha256.Sum256([]byte(content))
	return company.NewFile{ID: d.ID(), Object: d.ID(), Name: "a b.txt", ContentType: "text/plain",
		Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Nodes: []string{"n1"}}
}

func (d *Desk) Attach(t testing.TB, who As, issue, content string) (at file.Attached) {
	t.Helper()
	d.Must(t, who, "attachment.create", file.CreateAttachment{Issue: issue, ID: d.ID(), File: d.File(content)}, &at)
	return at
}

func (d *Desk) Refs() map[string]uint32 {
	out := map[string]uint32{}
	for sha256, r := range company.Blobs(d.Tx) {
		out[sha256] += r.Refs
	}
	return out
}
