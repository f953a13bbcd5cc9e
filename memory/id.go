package memory

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

// An ID names a record: the 16 bytes of a UUID.
type ID [16]byte

// ParseID reads a UUID as it is written: 36 characters in lower case.
func ParseID(s string) (id ID, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return id, false
	}
	if _, err := hex.Decode(id[:], []byte(s[:8]+s[9:13]+s[14:18]+s[19:23]+s[24:])); err != nil {
		return id, false
	}
	return id, id.String() == s
}

// String writes id as a UUID.
func (id ID) String() string {
	var b [36]byte
	hex.Encode(b[:8], id[:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:], id[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// level is the highest level of the graph that a vector stands on. It follows from the
// ID alone: each level has a sixteenth of the vectors of the one below.
func (id ID) level() int {
	h := mix(binary.BigEndian.Uint64(id[:8])) ^ binary.BigEndian.Uint64(id[8:])
	return min(bits.LeadingZeros64(mix(h))/4, maxLevel)
}

// mix is a bijection of 64-bit numbers in which every bit of the result depends on every
// bit of x (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
