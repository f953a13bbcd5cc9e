package core

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"strconv"

	"github.com/selvage-mesh/selvage/ledger"
)

// Keys across companies:
//
//	i/<id>                 company of an agent, goal, project, workspace, asset or attachment
//	company-id/<id>        every company, without a value
//	company-prefix/<text>  the company with this prefix of issue identifiers
func OwnerKey(id string) []byte           { return ledger.Key("i", id) }
func CompanyIDKey(id string) []byte       { return ledger.Key("company-id", id) }
func PrefixKey(issuePrefix string) []byte { return ledger.Key("company-prefix", issuePrefix) }

// OwnerOf returns the company that an agent, goal, project or workspace belongs
// to, or "".
func OwnerOf(tx *ledger.Tx, id string) ledger.CompanyID {
	if !IsID(id) {
		return ""
	}
	v, _ := tx.Get(OwnerKey(id))
	return ledger.CompanyID(v)
}

// OwnedTables are the names of the tables made with Owned. They are package variables, so
// the list is complete before main starts.
var OwnedTables = map[string]bool{}

// Owned returns t as a table whose rows [OwnerOf] finds by their IDs.
func Owned[ID ~string, T any](t *ledger.Table[ID, T]) *ledger.Table[ID, T] {
	OwnedTables[t.Name()] = true
	return t.Beside(func(tx *ledger.Tx, company ledger.CompanyID, id ID, old, next *T) {
		switch {
		case next == nil:
			tx.Delete(OwnerKey(string(id)))
		case old == nil:
			tx.Set(OwnerKey(string(id)), []byte(company))
		}
	})
}

func Disown(tx *ledger.Tx, id string) { tx.Delete(OwnerKey(id)) }

// CompanyIDs yields the IDs of all companies, in order.
func CompanyIDs(tx *ledger.Tx) iter.Seq[ledger.CompanyID] {
	prefix := CompanyIDKey("")
	return func(yield func(ledger.CompanyID) bool) {
		for k := range tx.Prefix(prefix) {
			if !yield(ledger.CompanyID(k[len(prefix):])) {
				return
			}
		}
	}
}

// IsID reports whether s is a UUID in the form that this system writes: 36 characters, lower
// case.
func IsID[S ~string](s S) bool {
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

// CheckNewID refuses an ID that is malformed or in use. IDs are random, so only a faulty
// client gets this refusal.
func CheckNewID(tx *ledger.Tx, id string) error {
	if !IsID(id) {
		return ledger.Refuse(ledger.Invalid, nil, "%q is not a UUID in lower case", id)
	}
	if tx.Has(OwnerKey(id)) || tx.Has(CompanyIDKey(id)) {
		return ledger.Refuse(ledger.Conflict, nil, "ID %s is in use", id)
	}
	return nil
}

func IsHash(s string) bool {
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

// DerivedID returns a UUID (version 8) computed from parts, for rows that a rule creates
// without an ID in the command.
func DerivedID(parts ...string) string {
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

// HashedUser turns any user ID into one that can be part of a key.
func HashedUser(user string) string { return DerivedID("user", user) }
