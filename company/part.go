package company

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A part is a piece of a value that is too large for one command. part.put stages it
// under the SHA-256 of its bytes. The command that decides names the parts and so makes
// them part of the state. Parts that no row names are swept.
type part struct {
	Bytes []byte    `cbor:"1,keyasint"`
	Refs  uint64    `cbor:"2,keyasint,omitempty"` // rows that name it
	At    core.Time `cbor:"3,keyasint"`           // when it was last staged, or lost its last reference
}

// Keys of parts:
//
//	part/<sha256>                               the bytes
//	part-staged/<ms, 16 hex digits>/<sha256>    parts without references, oldest first
//	part-total/total                            their total size
var (
	Parts       = ledger.NewTable[string, part]("part")
	partsStaged = ledger.NewIndex[string, string]("part-staged")
	PartTotals  = ledger.NewTable[string, PartTotal]("part-total")
)

type PartTotal struct {
	Staged uint64 `cbor:"1,keyasint,omitempty"` // bytes of parts without references
}

const (
	// MaxPart bounds one part, in bytes; the rest of the payload is framing.
	MaxPart = 192 << 10
	// MaxStagedParts bounds the staged parts of a company without references, in bytes: they
	// are in the state of every node.
	MaxStagedParts = 64 << 20
	// PartAge is how long a part without references is kept: longer than any upload with
	// its retries.
	PartAge = time.Hour
	// partChunk bounds the parts that one part.sweep removes.
	partChunk = 200
	TotalKey  = "total"
)

const _ = uint(ledger.MaxPayload - MaxPart - 64)

// PutPart is the payload of part.put; its answer is a [StagedPart].
type PutPart struct {
	Bytes []byte `cbor:"1,keyasint"`
}

// A StagedPart is the name of a staged part.
type StagedPart struct {
	SHA256 string `cbor:"1,keyasint" json:"sha256"`
}

// SweepParts is the payload of part.sweep, which removes parts that have had no
// reference for [PartAge].
type SweepParts struct{}

const (
	KindPartPut   = "part.put"
	KindPartSweep = "part.sweep"
)

var PartKinds = []Kind{
	{Name: KindPartPut, From: FromBoard | FromAgent | FromNode, Traits: SeldomWork, Weight: Weights.Bytes,
		Do: ledger.Typed(putPart)},
	{Name: KindPartSweep, From: FromNode, Traits: SeldomWork, Weight: Weights.ByNodes, Do: ledger.Typed(sweepParts)},
}

// PartName returns the name of a part: the SHA-256 of its bytes, in hex.
func PartName(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// SplitParts splits a value into parts for part.put.
func SplitParts(b []byte) (list [][]byte) {
	for len(b) > MaxPart {
		list, b = append(list, b[:MaxPart]), b[MaxPart:]
	}
	return append(list, b)
}

// putPart stages bytes. It records nothing: the command that names them does.
func putPart(c *ledger.Context, p PutPart) (any, error) {
	if len(p.Bytes) == 0 || len(p.Bytes) > MaxPart {
		return nil, ledger.Refuse(ledger.TooLarge, nil, "A part has between 1 and %d bytes", MaxPart)
	}
	if core.IsAgent(c) {
		if err := MustRun(c); err != nil {
			return nil, err
		}
	}
	company, name, now := c.Cmd.Company, PartName(p.Bytes), core.TimeOf(c.Now)
	old, ok := Parts.Get(c.Tx, company, name)
	switch {
	case ok && old.Refs > 0:
		return StagedPart{name}, nil
	case ok:
		unstage(c.Tx, company, name, old)
	}
	if total, _ := PartTotals.Get(c.Tx, company, TotalKey); total.Staged+uint64(len(p.Bytes)) > MaxStagedParts {
		return nil, ledger.Refuse(ledger.TooMany, nil,
			"The company has %d bytes staged that nothing uses yet; try again in an hour", total.Staged)
	}
	stage(c.Tx, company, name, part{Bytes: p.Bytes, At: now})
	return StagedPart{name}, nil
}

func stage(tx *ledger.Tx, company ledger.CompanyID, name string, p part) {
	Parts.Put(tx, company, name, p)
	partsStaged.Add(tx, company, ledger.Order(uint64(p.At)), name)
	total, _ := PartTotals.Get(tx, company, TotalKey)
	total.Staged += uint64(len(p.Bytes))
	PartTotals.Put(tx, company, TotalKey, total)
}

func unstage(tx *ledger.Tx, company ledger.CompanyID, name string, p part) {
	partsStaged.Remove(tx, company, ledger.Order(uint64(p.At)), name)
	total, _ := PartTotals.Get(tx, company, TotalKey)
	total.Staged -= uint64(len(p.Bytes))
	PartTotals.Put(tx, company, TotalKey, total)
}

// JoinParts returns the bytes of the named parts, concatenated, at most limit bytes.
// Their SHA-256 must be sum.
func JoinParts(tx *ledger.Tx, company ledger.CompanyID, names []string, sum string, limit int) ([]byte, error) {
	var all []byte
	for _, name := range names {
		p, ok := Parts.Get(tx, company, name)
		if !ok {
			return nil, ledger.Refuse(ledger.Conflict, nil, "A part of the value is not staged, or not any more; send it again")
		}
		if len(all)+len(p.Bytes) > limit {
			return nil, ledger.Refuse(ledger.TooLarge, nil, "The value is longer than %d bytes", limit)
		}
		all = append(all, p.Bytes...)
	}
	if PartName(all) != sum {
		return nil, ledger.Refuse(ledger.Conflict, nil, "The parts of the value do not have the announced length and hash")
	}
	return all, nil
}

// RefParts adds one reference to each part.
func RefParts(tx *ledger.Tx, company ledger.CompanyID, names []string) {
	for _, name := range names {
		p, ok := Parts.Get(tx, company, name)
		if !ok {
			continue
		}
		if p.Refs == 0 {
			unstage(tx, company, name, p)
		}
		p.Refs++
		Parts.Put(tx, company, name, p)
	}
}

// DropParts deletes parts without references, once their purpose is served.
func DropParts(tx *ledger.Tx, company ledger.CompanyID, names []string) {
	for _, name := range names {
		if p, ok := Parts.Get(tx, company, name); ok && p.Refs == 0 {
			unstage(tx, company, name, p)
			Parts.Delete(tx, company, name)
		}
	}
}

// UnrefParts removes one reference from each part.
func UnrefParts(tx *ledger.Tx, company ledger.CompanyID, names []string, now core.Time) {
	for _, name := range names {
		p, ok := Parts.Get(tx, company, name)
		if !ok || p.Refs == 0 {
			continue
		}
		if p.Refs--; p.Refs == 0 {
			p.At = now
			stage(tx, company, name, p)
			continue
		}
		Parts.Put(tx, company, name, p)
	}
}

// PartsToSweep reports whether a company has parts to sweep.
func PartsToSweep(tx *ledger.Tx, company ledger.CompanyID, now core.Time) bool {
	for range oldParts(tx, company, now) {
		return true
	}
	return false
}

// oldParts yields the parts without references for PartAge, with their time.
func oldParts(tx *ledger.Tx, company ledger.CompanyID, now core.Time) iter.Seq2[string, string] {
	return func(yield func(at, name string) bool) {
		prefix := ledger.Key("c", string(company), "part-staged", "")
		limit := now - core.Time(PartAge.Milliseconds())
		if limit <= 0 {
			return
		}
		for k := range tx.Scan(prefix, ledger.Key("c", string(company), "part-staged", ledger.Order(uint64(limit))), false) {
			rest := string(k[len(prefix):])
			if len(rest) > 17 && !yield(rest[:16], rest[17:]) {
				return
			}
		}
	}
}

func sweepParts(c *ledger.Context, _ SweepParts) (any, error) {
	company := c.Cmd.Company
	var names []string
	for _, name := range oldParts(c.Tx, company, core.TimeOf(c.Now)) {
		if names = append(names, name); len(names) == partChunk {
			break
		}
	}
	for _, name := range names {
		p, _ := Parts.Get(c.Tx, company, name)
		unstage(c.Tx, company, name, p)
		Parts.Delete(c.Tx, company, name)
	}
	if len(names) > 0 {
		c.Record(ledger.Change{Action: "company.parts_swept", EntityType: "company", EntityID: string(company),
			Details: core.Object{}.Int("parts", int64(len(names))).Close()})
	}
	return nil, nil
}
