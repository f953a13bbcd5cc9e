package kit

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
)

// seedEnv sets the seed of all tests that use [Rand].
const seedEnv = "SELVAGE_SEED"

// Seed returns the seed of a test's chances: 1, or what SELVAGE_SEED says. It is printed when
// the test fails.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(1)
	if s := os.Getenv(seedEnv); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("%s=%q: want a whole number", seedEnv, s)
		}
		seed = n
	}
	t.Logf("chances have seed %d (set another with %s)", seed, seedEnv)
	return seed
}

// Rand returns chances that depend on [Seed] alone. Several goroutines may use it; in which
// order they draw is then up to them.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(&lockedSource{src: rand.NewPCG(Seed(t), 0)})
}

type lockedSource struct {
	mu  sync.Mutex
	src rand.Source // guarded by mu
}

func (s *lockedSource) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.src.Uint64()
}
