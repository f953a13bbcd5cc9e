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

// Passwords are stored as argon2id hashes together with their parameters
// ("$argon2id$v=19$m=…,t=…,p=…$salt$hash"), so that the parameters can grow.
const (
	hashMemory  = 19 << 10 // KiB
	hashTime    = 2
	hashThreads = 1
	hashSalt    = 16 // bytes
	hashLength  = 32
	// maxHashMemory, maxHashTime and maxHashThreads bound the parameters of a stored hash.
	maxHashMemory  = 256 << 10 // KiB
	maxHashTime    = 10
	maxHashThreads = 4

	MinPassword = 8 // characters; the maximum is in bytes:
	MaxPassword = 128

	// maxHashing bounds the concurrent password hashes, which take hashMemory each.
	// maxHashWaiting bounds those that wait.
	maxHashing     = 2
	maxHashWaiting = 128
	// collectEvery is the number of hashes after which their memory is collected: by itself the
	// collector would wait for about twenty.
	collectEvery = 4
)

// A hasher bounds the resources that hashing passwords takes.
type hasher struct {
	Turns   chan struct{}
	Waiting chan struct{}
	Hashed  *atomic.Uint64
}

func newHasher() hasher {
	return hasher{make(chan struct{}, maxHashing), make(chan struct{}, maxHashWaiting), new(atomic.Uint64)}
}

// Turn calls f when there is room.
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

// Make returns the stored form of a password.
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

// decoy is compared with the password of an unknown user: it takes as long and never matches.
var decoy = fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, hashMemory, hashTime, hashThreads,
	strings.Repeat("A", 22), strings.Repeat("A", 43))

// Fits reports whether a password matches its stored form; "" is that of nobody.
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

// parseHash reads the result of [hasher.Make].
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
	return p, p.Memory >= 8 && p.Memory <= maxHashMemory && p.Time >= 1 && p.Time <= maxHashTime && p.Threads >= 1 &&
		p.Threads <= maxHashThreads
}
