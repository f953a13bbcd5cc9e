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

	MinPassword = 8 // characters; and bytes at most:
	MaxPassword = 128

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
	Turns   chan struct{}
	Waiting chan struct{}
	Hashed  *atomic.Uint64
}

func newHasher() hasher {
	return hasher{make(chan struct{}, maxHashing), make(chan struct{}, maxHashWaiting), new(atomic.Uint64)}
}

// Turn runs f when there is room for it.
func (h hasher) Turn(ctx context.Context, f func()) error {
	select {
	case h.Waiting <- struct{}{}:
		defer func() { <-h.Waiting }()
	default:
		return Unavailable("Too many sign-ins at once; try again")
	}
	select {
	case h.Turns <- struct{}{}:
		defer func() { <-h.Turns }()
	case <-ctx.Done():
		return ctx.Err()
	}
	f()
	if h.Hashed.Add(1)%collectEvery == 0 {
		runtime.GC()
	}
	return nil
}

// Make returns what is kept of a password.
func (h hasher) Make(ctx context.Context, password string) (kept string, err error) {
	salt := make([]byte, hashSalt)
	rand.Read(salt)
	err = h.Turn(ctx, func() {
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

// Fits reports whether a password is the one that was kept; "" stands for that of
// nobody.
func (h hasher) Fits(ctx context.Context, password, kept string) (fits bool, err error) {
	nobody := kept == ""
	if nobody {
		kept = decoy
	}
	p, ok := parseHash(kept)
	if !ok {
		return false, fmt.Errorf("kept password: malformed")
	}
	err = h.Turn(ctx, func() {
		sum := argon2.IDKey([]byte(password), p.Salt, p.Time, p.Memory, p.Threads, uint32(len(p.Sum)))
		fits = subtle.ConstantTimeCompare(sum, p.Sum) == 1 && !nobody
	})
	return fits, err
}

type parsedHash struct {
	Memory, Time uint32
	Threads      uint8
	Salt, Sum    []byte
}

// parseHash reads what [hasher.make] wrote.
func parseHash(kept string) (p parsedHash, ok bool) {
	parts := strings.Split(kept, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return p, false
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.Memory, &p.Time, &p.Threads); n != 3 || err != nil ||
		parts[3] != fmt.Sprintf("m=%d,t=%d,p=%d", p.Memory, p.Time, p.Threads) {
		return p, false
	}
	var err error
	if p.Salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil || len(p.Salt) < 8 || len(p.Salt) > 64 {
		return p, false
	}
	if p.Sum, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil || len(p.Sum) < 16 || len(p.Sum) > 64 {
		return p, false
	}
	return p, p.Memory >= 8 && p.Memory <= maxHashMemory && p.Time >= 1 && p.Time <= maxHashTime && p.Threads >= 1 && p.Threads <= maxHashThreads
}
