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

// backup measures how long saving and restoring the whole state takes, beside a
// copy of as many bytes that is synced as a backup is.
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
		_, err := b.tool(ctx, "snapshot", "save", file(name), "--to", strings.TrimSpace(string(public)), "--api", b.m.nodes[0].HTTP)
		return time.Since(began), err
	}
	// Load documents until the state is as large as it is to be.
	var state int64
	for n, have := firstDocuments, 0; ; {
		began := time.Now()
		if err := b.load.documents(ctx, have, n); err != nil {
			return err
		}
		if _, err := save("size"); err != nil {
			return err
		}
		at := fileSize(file("size")) // a sealed file is hardly larger than what is in it
		fmt.Printf("# %d documents in %s, a state of %d MB\n", n-have, time.Since(began).Round(time.Second), at>>20)
		if err := os.Remove(file("size")); err != nil {
			return err
		}
		if at >= b.State*95/100 {
			break
		}
		each := max((at-state)/int64(n-have), 1)
		state, have, n = at, n, n+int((b.State-at)/each)
		if n > len(b.load.issues)*issueDocuments {
			return fmt.Errorf("%d documents are more than the issues take", n)
		}
	}
	var copied, saved, restored, saveRatio, restoreRatio []float64
	for round := range backupRounds {
		if err := b.atRest(ctx); err != nil {
			return err
		}
		s, err := save("backup")
		if err != nil {
			return err
		}
		if err := b.atRest(ctx); err != nil {
			return err
		}
		began := time.Now()
		if out, err := exec.CommandContext(ctx, "sh", "-c", `cp "$0" "$1" && sync "$1"`, file("backup"), file("copy")).CombinedOutput(); err != nil {
			return fmt.Errorf("copy: %w: %s", err, out)
		}
		c := time.Since(began)
		if err := b.atRest(ctx); err != nil {
			return err
		}
		began = time.Now()
		if _, err := b.tool(ctx, "snapshot", "restore", file("backup"), "--key", file("key"), "--dir", file("restored")); err != nil {
			return err
		}
		r := time.Since(began)
		fmt.Printf("round %d: %d MB saved in %s, copied in %s, restored in %s\n", round+1, fileSize(file("backup"))>>20, s.Round(10*time.Millisecond), c.Round(10*time.Millisecond), r.Round(10*time.Millisecond))
		copied, saved, restored = append(copied, c.Seconds()), append(saved, s.Seconds()), append(restored, r.Seconds())
		saveRatio, restoreRatio = append(saveRatio, s.Seconds()/c.Seconds()), append(restoreRatio, r.Seconds()/c.Seconds())
		if round == backupRounds-1 {
			break
		}
		if err := errors.Join(os.Remove(file("copy")), os.Remove(file("backup")), os.RemoveAll(file("restored"))); err != nil {
			return err
		}
	}
	size := fmt.Sprintf("%.2f GB: ", float64(fileSize(file("backup")))/1e9)
	row("cp and sync of a backup", size+spread(copied, " s"), "")
	row("snapshot save", size+spread(saved, " s")+", "+spread(saveRatio, "x"), "≤ 2x")
	row("snapshot restore", size+spread(restored, " s")+", "+spread(restoreRatio, "x"), "≤ 2x")
	return os.RemoveAll(dir)
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
		return l.m.call(ctx, w%3, "PUT", path, "", "", map[string]any{"title": fmt.Sprint("Part ", at), "format": "markdown", "body": body}, nil)
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
