package mesh_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
)

// Read page by page, the records hold every batch and every entry once, in order, with
// the keys that their signatures are checked with; no payload is in them.
func TestRecordsAreTheWholeChain(t *testing.T) {
	h := apitest.NewHarness(t)
	for i := range 5 {
		h.Call("POST", "/api/companies", fmt.Sprintf(`{"name":"Company %d"}`, i)).Want(t, 201, "")
	}
	unpack := func(s string) []byte {
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var page struct {
		Records []struct {
			Index   uint64
			Record  string
			Entries []string
		}
		Keys   map[string]string
		Head   string
		Height uint64
	}
	after, head, height := uint64(0), ledger.Hash{}, uint64(0)
	for pages := 0; ; pages++ {
		page.Records, page.Keys = nil, nil
		a := h.Call("GET", fmt.Sprintf("/api/v1/mesh/ledger/records?after=%d&limit=2", after), "").Want(t, 200, "")
		if err := json.Unmarshal(a.Body, &page); err != nil {
			t.Fatal(err)
		}
		if len(page.Records) == 0 {
			if pages < 3 {
				t.Fatalf("only %d pages", pages)
			}
			break
		}
		for _, r := range page.Records {
			const fixed = 1 + 32 + 8 + 8 // version, hash before, index, term
			b, err := ledger.DecodeBatch(unpack(r.Record)[fixed:])
			if err != nil {
				t.Fatal(err)
			}
			key := ed25519.PublicKey(unpack(page.Keys[string(b.Origin)]))
			if err := b.Verify(key); err != nil {
				t.Errorf("batch %d: %v", r.Index, err)
			}
			for i := range b.Bodies {
				if b.Bodies[i] != nil {
					t.Errorf("batch %d has the payload of command %d", r.Index, i)
				}
			}
			for _, text := range r.Entries {
				e, err := ledger.DecodeEntry(unpack(text))
				if err != nil {
					t.Fatal(err)
				}
				if height++; e.Height != height || e.Prev != head || e.Index != r.Index {
					t.Fatalf("entry %d of batch %d names %x, want entry %d with %x", e.Height, e.Index, e.Prev, height, head)
				}
				head = e.Hash
			}
			after = r.Index
		}
	}
	if height != page.Height || hex.EncodeToString(head[:]) != page.Head || height < 5 {
		t.Errorf("the chain ends at %d with %x, the node says %d with %s", height, head, page.Height, page.Head)
	}
	h.Call("GET", "/api/v1/mesh/ledger/records?after=x", "").Want(t, 400, "Invalid after")
}
