package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Idempotency rows remember the outcome of commands with an Idempotency-Key,
// refusals included, for IdempotencyWindow by the mesh's clock. A row is kept
// under c/<company>/~idem/<hash> (m/~idem without a company), where hash is
// SHA-256 over actor and key, cut to 16 bytes, in hex:
//
//	number (8) | time ms (8) | request digest (32) | encoded receipt
//
// and c/<company>/~idem-at/<number> holds the hash: numbers rise, so the
// oldest rows are found first. A refusal that says "not now" is not remembered.
const (
	idemTable   = "~idem"
	idemAtTable = "~idem-at"
	idemFixed   = 8 + 8 + 32
)

// rememberedOf says which numbers of one company's rows are in use: [lo, hi).
type rememberedOf struct{ lo, hi uint64 }

func scopeKey(company CompanyID, table, id string) []byte {
	if company == "" {
		return Key("m", table, id)
	}
	return Key("c", string(company), table, id)
}

func idemHash(c *Command) string {
	var buf [512]byte
	b := appendBytes(buf[:0], c.Actor.Type)
	b = appendBytes(b, c.Actor.ID)
	b = append(b, c.IdempotencyKey...)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// remembered gives r the first outcome of a repeated request.
func (a *applier) remembered(c *Context, r *Receipt) bool {
	if c.Cmd.IdempotencyKey == "" {
		return false
	}
	v, ok := a.group.Get(scopeKey(c.Cmd.Company, idemTable, idemHash(c.Cmd)))
	if !ok {
		return false
	}
	p := parser{b: v}
	p.uint64()
	at, digest := int64(p.uint64()), p.hash()
	if c.Now.UnixMilli()-at >= IdempotencyWindow.Milliseconds() {
		return false
	}
	if digest != c.Cmd.RequestDigest {
		r.Refusal = &Refusal{Code: Unprocessable, Message: "Idempotency-Key was already used with a different request",
			ErrCode: "idempotency_key_reused"}
		return true
	}
	p.receipt(r)
	if !p.done() {
		panic("ledger: idempotency row does not decode")
	}
	return true
}

// remember keeps the outcome of a command with a key, and takes away a few
// rows that are too old or too many.
func (a *applier) remember(c *Context, r *Receipt) {
	cmd := c.Cmd
	if cmd.IdempotencyKey == "" || (r.Refusal != nil && r.Refusal.Code == Unavailable) {
		return
	}
	of := a.rememberedOf(cmd.Company)
	hash := idemHash(cmd)
	row := make([]byte, 0, idemFixed+64+len(r.Value))
	row = binary.BigEndian.AppendUint64(row, of.hi)
	row = binary.BigEndian.AppendUint64(row, uint64(c.Now.UnixMilli()))
	row = append(row, cmd.RequestDigest[:]...)
	row = appendReceipt(row, r)
	a.group.Set(scopeKey(cmd.Company, idemTable, hash), row)
	a.group.Set(scopeKey(cmd.Company, idemAtTable, Order(of.hi)), []byte(hash))
	of.hi++
	for range idempotencySweep {
		if !a.forgetOldest(cmd.Company, of, c.Now.UnixMilli()) {
			return
		}
	}
}

// forgetOldest takes away the oldest row when it is too old or one too many.
func (a *applier) forgetOldest(company CompanyID, of *rememberedOf, now int64) bool {
	if of.lo >= of.hi {
		return false
	}
	at := scopeKey(company, idemAtTable, Order(of.lo))
	hash, ok := a.group.Get(at)
	if !ok { // the company's rows were deleted meanwhile
		of.lo++
		return true
	}
	key := scopeKey(company, idemTable, string(hash))
	row, ok := a.group.Get(key)
	if ok && len(row) >= idemFixed {
		p := parser{b: row}
		number, when := p.uint64(), int64(p.uint64())
		if number == of.lo {
			if of.hi-of.lo <= MaxIdempotencyRows && now-when < IdempotencyWindow.Milliseconds() {
				return false
			}
			a.group.Delete(key)
		}
	}
	a.group.Delete(at)
	of.lo++
	return true
}

func (a *applier) rememberedOf(company CompanyID) *rememberedOf {
	if of, ok := a.keys[company]; ok {
		return of
	}
	of := &rememberedOf{}
	prefix := scopeKey(company, idemAtTable, "")
	for k := range a.group.Prefix(prefix) {
		of.lo = mustOrder(k, prefix)
		break
	}
	for k := range a.group.Scan(prefix, PrefixEnd(prefix), true) {
		of.hi = mustOrder(k, prefix) + 1
		break
	}
	a.keys[company] = of
	return of
}

func mustOrder(key, prefix []byte) uint64 {
	n, err := parseOrder(strings.TrimPrefix(string(key), string(prefix)))
	if err != nil {
		panic(fmt.Sprintf("ledger: key %q: %v", key, err))
	}
	return n
}

// parseOrder reads what [Order] wrote.
func parseOrder(s string) (uint64, error) {
	if len(s) != 16 {
		return 0, fmt.Errorf("%q is not a number in order form", s)
	}
	return strconv.ParseUint(s, 16, 64)
}
