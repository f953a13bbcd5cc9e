package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	documentBytes  = 16 << 10 // of one document that fills the state
	firstDocuments = 2_000    // tell how much state a document makes
	issueDocuments = 40       // of one issue
	backupRounds   = 3
	startRounds    = 5
)

// prose is text as people write it, as far as a compressor can tell: words of a
// few thousand, the frequent ones often.
func prose(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		w := int(3000 * r.Float64() * r.Float64())
		for b.WriteByte(byte('a' + w%26)); w > 0; w /= 19 {
			b.WriteByte("etaoinshrdlcumwfgyp"[w%19])
		}
		b.WriteByte(' ')
	}
	return b.String()[:n]
}

// backup measures how long saving and restoring the whole state takes, beside
// copying it with the system's own tools: the store as it lies on the node's disk
// (cp -r, which a node that runs would have to be stopped for), and a file of as
// many bytes as the backup has. Both copies are synced as a backup is, and find
// in the page cache what the backup finds there.
func backup(ctx context.Context, b *bench) error {
	dir := filepath.Join(b.Dir, "backups")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	public, err := b.tool(ctx, "snapshot", "key", file("key"))
	if err != nil {
		return err
	}
	save := func(name string) (time.Duration, error) {
		began := time.Now()
		_, err := b.tool(ctx, "snapshot", "save", file(name), "--to", strings.TrimSpace(string(public)), "--api",
			b.m.nodes[0].HTTP)
		return time.Since(began), err
	}
	if err := b.grow(ctx, func() (int64, error) {
		if _, err := save("size"); err != nil {
			return 0, err
		}
		at := fileSize(file("size")) // a sealed file is hardly larger than what is in it
		return at, os.Remove(file("size"))
	}); err != nil {
		return err
	}
	copyOf := func(from, to string) (float64, error) {
		if err := b.atRest(ctx); err != nil {
			return 0, err
		}
		began := time.Now()
		if out, err := exec.CommandContext(ctx, "sh", "-c", `cp -r "$0" "$1" && find "$1" -type f -exec sync {} +`, from, to).
			CombinedOutput(); err != nil {
			return 0, fmt.Errorf("copy: %w: %s", err, out)
		}
		return time.Since(began).Seconds(), os.RemoveAll(to)
	}
	var stores, files, saved, restored timesOf
	var storeBytes int64
	for round := range backupRounds {
		if err := b.atRest(ctx); err != nil {
			return err
		}
		s, err := save("backup")
		if err != nil {
			return err
		}
		store := filepath.Join(b.m.nodes[0].Dir, "store")
		if storeBytes, err = folderSize(store); err != nil {
			return err
		}
		storeTime, err := copyOf(store, file("copy"))
		if err != nil {
			return err
		}
		fileTime, err := copyOf(file("backup"), file("copy"))
		if err != nil {
			return err
		}
		if err := b.atRest(ctx); err != nil {
			return err
		}
		began := time.Now()
		if _, err := b.tool(ctx, "snapshot", "restore", file("backup"), "--key", file("key"), "--dir",
			file("restored")); err != nil {
			return err
		}
		r := time.Since(began)
		fmt.Printf("round %d: %d MB saved in %.2f s, restored in %.2f s; "+
			"the store of %d MB copied in %.2f s, the backup in %.2f s\n", round+1, fileSize(file("backup"))>>20,
			s.Seconds(), r.Seconds(), storeBytes>>20, storeTime, fileTime)
		stores.add(storeTime, storeTime, fileTime)
		files.add(fileTime, storeTime, fileTime)
		saved.add(s.Seconds(), storeTime, fileTime)
		restored.add(r.Seconds(), storeTime, fileTime)
		if round == backupRounds-1 {
			break
		}
		if err := errors.Join(os.Remove(file("backup")), os.RemoveAll(file("restored"))); err != nil {
			return err
		}
	}
	size := fmt.Sprintf("%.2f GB: ", float64(fileSize(file("backup")))/1e9)
	row("cp -r and sync of the store that the state lies in",
		fmt.Sprintf("%.2f GB: ", float64(storeBytes)/1e9)+spread(stores.took, " s"), "")
	row("cp and sync of the backup", size+spread(files.took, " s"), "")
	row("snapshot save; beside the copy of the store, of the backup", size+saved.String(), "≤ 2x")
	row("snapshot restore; beside the same copies", size+restored.String(), "≤ 2x")
	return os.RemoveAll(dir)
}

// grow loads documents until the state, which size measures, is as large as it is to be.
func (b *bench) grow(ctx context.Context, size func() (int64, error)) error {
	var state int64
	for n, have := firstDocuments, 0; ; {
		began := time.Now()
		if err := b.load.documents(ctx, have, n); err != nil {
			return err
		}
		at, err := size()
		if err != nil {
			return err
		}
		fmt.Printf("# %d documents in %s, a state of %d MB\n", n-have, time.Since(began).Round(time.Second), at>>20)
		if at >= b.State*95/100 {
			return nil
		}
		each := max((at-state)/int64(n-have), 1)
		state, have, n = at, n, n+int((b.State-at)/each)
		if n > len(b.load.issues)*issueDocuments {
			return fmt.Errorf("%d documents are more than the issues take", n)
		}
	}
}

// timesOf are how long something took in each round, in seconds, and how many
// times as long as the copies of that round.
type timesOf struct{ took, toStore, toFile []float64 }

func (t *timesOf) add(took, store, file float64) {
	t.took, t.toStore, t.toFile = append(t.took, took), append(t.toStore, took/store), append(t.toFile, took/file)
}

func (t timesOf) String() string {
	return spread(t.took, " s") + "; " + spread(t.toStore, "x") + ", " + spread(t.toFile, "x")
}

func folderSize(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}

// atRest waits until the nodes have compacted what was written and the disk has
// finished what was asked of it, so that one measurement does not pay for another.
func (b *bench) atRest(ctx context.Context) error {
	for began := time.Now(); time.Since(began) < time.Minute; {
		before := b.m.counters().cpuMicros
		time.Sleep(time.Second)
		if b.m.counters().cpuMicros-before < 150_000 {
			break
		}
	}
	return exec.CommandContext(ctx, "sync").Run()
}

// tool runs the program's command line.
func (b *bench) tool(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, b.Bin, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("selvage %s: %w: %s", strings.Join(args[:2], " "), err, stderr.String())
	}
	return out, nil
}

// documents writes the documents from have to n.
func (l *workload) documents(ctx context.Context, have, n int) error {
	return l.each(ctx, n-have, func(w, i int) error {
		at := have + i
		body := prose(rand.New(rand.NewPCG(uint64(at), 1)), documentBytes)
		path := fmt.Sprintf("/api/issues/%s/documents/part-%d", l.issues[at%len(l.issues)], at/len(l.issues))
		return l.m.call(ctx, w%3, "PUT", path, "", "", map[string]any{"title": fmt.Sprint("Part ", at), "format": "markdown",
			"body": body}, nil)
	})
}

// starts kills a node and measures how long after its start it serves again, with
// all the state that is there by now.
func starts(ctx context.Context, b *bench) error {
	var took []time.Duration
	for range startRounds {
		leader, err := b.m.leader(ctx)
		if err != nil {
			return err
		}
		n := b.m.nodes[(leader+1)%3]
		if _, err := b.m.testnet(ctx, "kill", n.Name); err != nil {
			return err
		}
		began := time.Now()
		started := make(chan error, 1)
		go func() {
			_, err := b.m.testnet(ctx, "start", n.Name)
			started <- err
		}()
		for ready := false; !ready; time.Sleep(2 * time.Millisecond) {
			if time.Since(began) > time.Minute || ctx.Err() != nil {
				return fmt.Errorf("%s is not ready a minute after its start", n.Name)
			}
			res, err := b.m.http.Get(n.HTTP + "/readyz")
			if err == nil {
				res.Body.Close()
				ready = res.StatusCode == http.StatusOK
			}
		}
		took = append(took, time.Since(began))
		if err := <-started; err != nil {
			return err
		}
		if err := b.m.status(ctx); err != nil {
			return err
		}
	}
	var head struct{ Height json.Number }
	if err := b.m.call(ctx, 0, "GET", "/api/v1/mesh/ledger", "", "", nil, &head); err != nil {
		return err
	}
	rowDurations(fmt.Sprintf("start with existing state, height %s", head.Height), took, "≤ 3 s")
	return nil
}
