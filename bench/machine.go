package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// speed tells what the machine gives at the moment, so that tables of different
// days, or machines, can be held beside each other: what one core hashes, how
// soon a thread that waits for another goes on, and what a sync of 4 KiB takes in
// dir. Shared machines differ by half between one hour and the next.
func speed(dir string) (string, error) {
	wake, err := wakeTime()
	if err != nil {
		return "", err
	}
	sync, err := syncTime(dir)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("one core hashes %.0f MB/s (SHA-256), a thread wakes another in %s, a sync takes %s",
		hashRate(), wake.Round(100*time.Nanosecond), sync.Round(10*time.Microsecond)), nil
}

// hashRate is the best of some turns, in MB/s.
func hashRate() (best float64) {
	block := make([]byte, 1<<20)
	for range 100 {
		began := time.Now()
		sha256.Sum256(block)
		best = max(best, float64(len(block))/1e6/time.Since(began).Seconds())
	}
	return best
}

// wakeTime is the median of how long a byte is on its way through a pipe to a
// thread that waits for it.
func wakeTime() (time.Duration, error) {
	there, toThere, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer there.Close()
	back, toBack, err := os.Pipe()
	if err != nil {
		toThere.Close()
		return 0, err
	}
	defer back.Close()
	go func() {
		runtime.LockOSThread()
		defer toBack.Close()
		b := make([]byte, 1)
		for {
			if _, err := there.Read(b); err != nil {
				return // toThere was closed
			}
			if _, err := toBack.Write(b); err != nil {
				return
			}
		}
	}()
	defer toThere.Close()
	b := make([]byte, 1)
	return median(1000, 2, func() error {
		if _, err := toThere.Write(b); err != nil {
			return err
		}
		_, err := back.Read(b)
		return err
	})
}

func syncTime(dir string) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	b := make([]byte, 4<<10)
	return median(50, 1, func() error {
		if _, err := f.Write(b); err != nil {
			return err
		}
		return f.Sync()
	})
}

// median is the median of n turns of f, which does what is measured per times.
func median(n, per int, f func() error) (time.Duration, error) {
	took := make([]time.Duration, n)
	for i := range took {
		began := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		took[i] = time.Since(began) / time.Duration(per)
	}
	slices.Sort(took)
	return took[n/2], nil
}

func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for l := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}

func memTotal() string {
	b, _ := os.ReadFile("/proc/meminfo")
	first, _, _ := strings.Cut(string(b), "\n")
	return strings.Join(strings.Fields(first), " ")
}

func kernel() string {
	b, _ := exec.Command("uname", "-sr").Output()
	return strings.TrimSpace(string(b))
}
