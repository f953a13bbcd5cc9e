package cause

import (
	"encoding/binary"
	"math/bits"
)

// sumMost bounds what sum hashes: one chunk of BLAKE3, which needs no tree.
const sumMost = 1024

const (
	sumBlock = 64
	sumWords = 16
	// Flags of blocks: the first of a chunk, the last, and that of the root.
	sumStart, sumEnd, sumRoot = 1, 2, 8
)

var (
	sumFirst = [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}
	// sumOrder says which word of a block comes where in the next round.
	sumOrder = [sumWords]int{2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8}
	// sumColumns are the words of the state that are mixed together: columns, then diagonals.
	sumColumns = [8][4]int{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}, {0, 5, 10, 15}, {1, 6, 11, 12},
		{2, 7, 8, 13}, {3, 4, 9, 14}}
)

// sum is the BLAKE3 hash of at most [sumMost] bytes; more are left out.
func sum(b []byte) (out [32]byte) {
	b = b[:min(len(b), sumMost)]
	chain, flags := sumFirst, uint32(sumStart)
	for len(b) > sumBlock {
		chain = compressed(chain, b[:sumBlock], flags)
		b, flags = b[sumBlock:], 0
	}
	chain = compressed(chain, b, flags|sumEnd|sumRoot)
	for n, w := range chain {
		binary.LittleEndian.PutUint32(out[4*n:], w)
	}
	return out
}

// compressed is the chaining value after a block of at most 64 bytes.
func compressed(chain [8]uint32, block []byte, flags uint32) (out [8]uint32) {
	var padded [sumBlock]byte
	copy(padded[:], block)
	var m [sumWords]uint32
	for n := range m {
		m[n] = binary.LittleEndian.Uint32(padded[4*n:])
	}
	v := [16]uint32{8: sumFirst[0], sumFirst[1], sumFirst[2], sumFirst[3], 0, 0, uint32(len(block)), flags}
	copy(v[:], chain[:])
	for range 7 {
		for n, at := range sumColumns {
			stir(&v, at, m[2*n], m[2*n+1])
		}
		var next [sumWords]uint32
		for n, from := range sumOrder {
			next[n] = m[from]
		}
		m = next
	}
	for n := range out {
		out[n] = v[n] ^ v[n+8]
	}
	return out
}

// stir mixes two words of a block into four of the state.
func stir(v *[16]uint32, at [4]int, x, y uint32) {
	a, b, c, d := v[at[0]], v[at[1]], v[at[2]], v[at[3]]
	a += b + x
	d = bits.RotateLeft32(d^a, -16)
	c += d
	b = bits.RotateLeft32(b^c, -12)
	a += b + y
	d = bits.RotateLeft32(d^a, -8)
	c += d
	b = bits.RotateLeft32(b^c, -7)
	v[at[0]], v[at[1]], v[at[2]], v[at[3]] = a, b, c, d
}
