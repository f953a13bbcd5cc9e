package api

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/argon2"
)

// Passwords are kept as argon2id makes them, with its parameters beside them
// ("$argon2id$v=19$m=…,t=…,p=…$salt$hash"), so that these can grow.
const (
	hashMemory  = 19 << 10 // KiB
	hashTime    = 2
	hashThreads = 1
	hashSalt    = 16 // bytes
	hashLength  = 32
	// maxHashMemory, maxHashTime and maxHashThreads bound what a kept hash may ask
	// of this node.
	maxHashMemory  = 256 << 10 // KiB
	maxHashTime    = 10
	maxHashThreads = 4

	minPassword = 8 // characters; and bytes at most:
	maxPassword = 128

	// maxHashing bounds the passwords that are hashed at a time, each of which
	// takes hashMemory; maxHashWaiting those that wait for their turn.
	maxHashing     = 2
	maxHashWaiting = 128
	// collectEvery is after how many passwords what they took is given back: the
	// collector, left to itself, waits until some twenty of them lie about.
	collectEvery = 4
)

// A hasher bounds what hashing passwords takes of this node.
type hasher struct {
	turns   chan struct{}
	waiting chan struct{}
	hashed  *atomic.Uint64
}

func newHasher() hasher {
	return hasher{make(chan struct{}, maxHashing), make(chan struct{}, maxHashWaiting), new(atomic.Uint64)}
}

// turn runs f when there is room for it.
func (h hasher) turn(ctx context.Context, f func()) error {
	select {
	case h.waiting <- struct{}{}:
		defer func() { <-h.waiting }()
	default:
		return Unavailable("Too many sign-ins at once; try again")
	}
	select {
	case h.turns <- struct{}{}:
		defer func() { <-h.turns }()
	case <-ctx.Done():
		return ctx.Err()
	}
	f()
	if h.hashed.Add(1)%collectEvery == 0 {
		runtime.GC()
	}
	return nil
}

// make returns what is kept of a password.
func (h hasher) make(ctx context.Context, password string) (kept string, err error) {
	salt := make([]byte, hashSalt)
	rand.Read(salt)
	err = h.turn(ctx, func() {
		sum := argon2.IDKey([]byte(password), salt, hashTime, hashMemory, hashThreads, hashLength)
		kept = fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, hashMemory, hashTime, hashThreads,
			base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(sum))
	})
	return kept, err
}

// decoy is what a password is compared with when there is no such user: it takes
// as long, and nothing fits it.
var decoy = fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, hashMemory, hashTime, hashThreads,
	strings.Repeat("A", 22), strings.Repeat("A", 43))

// fits reports whether a password is the one that was kept; "" stands for that of
// nobody.
func (h hasher) fits(ctx context.Context, password, kept string) (fits bool, err error) {
	nobody := kept == ""
	if nobody {
		kept = decoy
	}
	p, ok := parseHash(kept)
	if !ok {
		return false, fmt.Errorf("kept password: malformed")
	}
	err = h.turn(ctx, func() {
		sum := argon2.IDKey([]byte(password), p.salt, p.time, p.memory, p.threads, uint32(len(p.sum)))
		fits = subtle.ConstantTimeCompare(sum, p.sum) == 1 && !nobody
	})
	return fits, err
}

type parsedHash struct {
	memory, time uint32
	threads      uint8
	salt, sum    []byte
}

// parseHash reads what [hasher.make] wrote.
func parseHash(kept string) (p parsedHash, ok bool) {
	parts := strings.Split(kept, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return p, false
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.time, &p.threads); n != 3 || err != nil ||
		parts[3] != fmt.Sprintf("m=%d,t=%d,p=%d", p.memory, p.time, p.threads) {
		return p, false
	}
	var err error
	if p.salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil || len(p.salt) < 8 || len(p.salt) > 64 {
		return p, false
	}
	if p.sum, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil || len(p.sum) < 16 || len(p.sum) > 64 {
		return p, false
	}
	return p, p.memory >= 8 && p.memory <= maxHashMemory && p.time >= 1 && p.time <= maxHashTime && p.threads >= 1 && p.threads <= maxHashThreads
}
