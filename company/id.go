package company

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"strconv"

	"github.com/selvage-mesh/selvage/ledger"
)

// Keys that span companies:
//
//	i/<id>                 company of an agent, goal, project, workspace, asset or attachment
//	company-id/<id>        every company, without a value
//	company-prefix/<text>  the company whose issues' identifiers begin with it
func ownerKey(id string) []byte           { return ledger.Key("i", id) }
func companyIDKey(id string) []byte       { return ledger.Key("company-id", id) }
func prefixKey(issuePrefix string) []byte { return ledger.Key("company-prefix", issuePrefix) }

// OwnerOf returns the company that an agent, goal, project or workspace belongs
// to, or "".
func OwnerOf(tx *ledger.Tx, id string) string {
	if !isID(id) {
		return ""
	}
	v, _ := tx.Get(ownerKey(id))
	return string(v)
}

// ownedTables are the names of the tables that owned was called for. Package variables
// are made in one order, and nothing is added afterwards.
var ownedTables = map[string]bool{}

// owned returns t as a table whose rows [OwnerOf] finds by their IDs.
func owned[T any](t ledger.Table[T]) ledger.Table[T] {
	ownedTables[t.Name()] = true
	return t.Beside(func(tx *ledger.Tx, company, id string, old, next *T) {
		switch {
		case next == nil:
			tx.Delete(ownerKey(id))
		case old == nil:
			tx.Set(ownerKey(id), []byte(company))
		}
	})
}

func disown(tx *ledger.Tx, id string) { tx.Delete(ownerKey(id)) }

// companyIDs yields the IDs of all companies, in order.
func companyIDs(tx *ledger.Tx) iter.Seq[string] {
	prefix := companyIDKey("")
	return func(yield func(string) bool) {
		for k := range tx.Prefix(prefix) {
			if !yield(string(k[len(prefix):])) {
				return
			}
		}
	}
}

// isID reports whether s is a UUID as this system writes them: 36 characters,
// lower case.
func isID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return false
		}
	}
	return true
}

// checkNewID refuses an ID that is malformed or in use. Origins draw random
// ones, so only a broken origin gets this.
func checkNewID(tx *ledger.Tx, id string) error {
	if !isID(id) {
		return ledger.Refuse(ledger.Invalid, nil, "%q is not a UUID in lower case", id)
	}
	if tx.Has(ownerKey(id)) || tx.Has(companyIDKey(id)) {
		return ledger.Refuse(ledger.Conflict, nil, "ID %s is in use", id)
	}
	return nil
}

func isHash(s string) bool {
	if len(s) != 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// derivedID returns a UUID (version 8) that follows from parts, for rows that a
// rule creates without being told an ID.
func derivedID(parts ...string) string {
	h := sha256.New()
	h.Write([]byte("selvage/id/v1"))
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p)) + ":" + p))
	}
	b := h.Sum(nil)[:16]
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	s := hex.EncodeToString(b)
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// hashed makes any user's ID fit to be a key.
func hashed(user string) string { return derivedID("user", user) }
