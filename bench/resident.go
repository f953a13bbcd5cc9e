package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	memoryHTTPPort = 23200
	memoryMeshPort = 29570
	memoryRate     = 12 // issues, and so runs, a second
	memoryAgents   = 36 // a run takes some tenths of a second
	// memoryLate is how long no issue may have been closed when the load counts as over:
	// a machine that can not start so many runs a second falls behind, and on one that
	// loses leaders a run may end without having closed its issue. memoryOpen of them
	// may stay open, else this was another load.
	memoryLate = 15 * time.Second
	memoryOpen = 0.05
	memoryRest = time.Minute
	// memoryTries bounds how often an issue is asked for again: a machine that has too
	// much to do loses leaders.
	memoryTries = 10
)

// closeIssue is what the agents of part resident do: print a line, close the issue.
// It needs nothing but bash, so that the cores are left to the nodes.
const closeIssue = `echo "closing $PAPERCLIP_TASK_ID"
at=${PAPERCLIP_API_URL#http://}; at=${at%%/*}; body='{"status":"done"}'
exec 3<>/dev/tcp/${at%:*}/${at##*:} || exit 1
printf 'PATCH /api/issues/%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nX-Paperclip-Run-Id: ` +
	`%s\r\nContent-Type: application/json\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' \
  "$PAPERCLIP_TASK_ID" "$at" "$PAPERCLIP_API_KEY" "$PAPERCLIP_RUN_ID" "${#body}" "$body" >&3
read -r status <&3; echo "$status"; [[ $status == *" 200 "* ]]`

// A memoryWanted is what part resident asks of a size.
type memoryWanted struct {
	size        string
	under, rest float64 // MB
}

// residentPart measures what a node of each size takes while runs come and go, and
// a minute after. The sizes have meshes of their own.
func residentPart(ctx context.Context, b *bench) error {
	for n, w := range []memoryWanted{{"normal", 250, 120}, {"small", 128, 120}} {
		if !slices.Contains(strings.Fields(b.Sizes), w.size) {
			continue
		}
		m, err := startMeshAs(ctx, b.Config, "memory-"+w.size, memoryHTTPPort+10*n, memoryMeshPort+10*n, "--size="+w.size)
		if err != nil {
			return err
		}
		if err := errors.Join(m.underRuns(ctx, b.Config, w), m.down()); err != nil {
			return err
		}
	}
	return nil
}

// underRuns makes issues that agents close, and watches the memory of the nodes.
func (m *mesh) underRuns(ctx context.Context, c Config, w memoryWanted) error {
	company, agents, err := m.staff(ctx, memoryAgents, "Closer", "bash", "-c", closeIssue)
	if err != nil {
		return err
	}
	before, err := m.resident()
	if err != nil {
		return err
	}
	files, bytes := m.kept()
	watch := m.watchMemory()
	began := time.Now()
	var repeated atomic.Int64
	err = (&workload{m: m}).each(ctx, c.Runs, func(k, i int) error {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / memoryRate)))
		for try := 0; ; try++ {
			err := m.call(ctx, (k+try)%len(m.nodes), "POST", "/api/companies/"+company+"/issues", "", "", map[string]any{
				"title": fmt.Sprintf("Look at reading %d and close this", i), "status": "todo",
				"assigneeAgentId": agents[i%len(agents)]}, nil)
			if err == nil || try == memoryTries {
				return err
			}
			repeated.Add(1) // the leader changed; it may have been made
			time.Sleep(time.Second)
		}
	})
	made := time.Since(began)
	closed := 0
	if err == nil {
		closed, err = m.allClosed(ctx, company, c.Runs)
	}
	took := time.Since(began)
	if err == nil && float64(closed) < float64(c.Runs)*(1-memoryOpen) {
		err = errors.New("the runs of the others did not do their work")
	}
	peak := watch()
	fmt.Printf("# %d issues were asked for again\n", repeated.Load())
	if err := errors.Join(err, m.heaps(ctx, c.Profile, w.size+"-under")); err != nil {
		return fmt.Errorf("%d of %d issues are closed: %w", closed, c.Runs, err)
	}
	time.Sleep(memoryRest)
	after, err := m.resident()
	if err != nil {
		return err
	}
	nowFiles, nowBytes := m.kept()
	name := fmt.Sprintf("memory of a node, size %s, ", w.size)
	row(name+"before", megabytes(before), "")
	row(name+fmt.Sprintf("%.0f runs a second", float64(c.Runs)/took.Seconds()),
		fmt.Sprintf("%s (most), %d issues made in %s, %d closed after %s",
			megabytes(peak), c.Runs, made.Round(time.Second), closed, took.Round(time.Second)),
		fmt.Sprintf("≤ %.0f MB", w.under))
	row(name+"a minute after", megabytes(after), fmt.Sprintf("≤ %.0f MB", w.rest))
	row(fmt.Sprintf("disk of a run on a node, size %s", w.size), fmt.Sprintf("%.1f KB, %.2f files",
		per(float64(nowBytes-bytes)/1e3, c.Runs*len(m.nodes)), per(float64(nowFiles-files), c.Runs*len(m.nodes))), "")
	return m.heaps(ctx, c.Profile, w.size+"-after")
}

// allClosed waits until n issues of a company are done, or no more become it.
func (m *mesh) allClosed(ctx context.Context, company string, n int) (closed int, err error) {
	for changed := time.Now(); closed < n && time.Since(changed) < memoryLate; time.Sleep(time.Second) {
		var counts struct{ Tasks struct{ Done int } }
		if err := m.call(ctx, 0, "GET", "/api/companies/"+company+"/dashboard", "", "", nil, &counts); err != nil {
			return closed, err
		}
		if counts.Tasks.Done > closed {
			closed, changed = counts.Tasks.Done, time.Now()
		}
	}
	return closed, nil
}

// resident is the resident size of each node, in MB.
func (m *mesh) resident() (out []float64, err error) {
	for _, n := range m.nodes {
		b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(n.PID), "status"))
		if err != nil {
			return nil, err
		}
		for l := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(l, "VmRSS:"); ok {
				kib, _ := strconv.ParseFloat(strings.Fields(v)[0], 64)
				out = append(out, kib*1024/1e6)
			}
		}
	}
	return out, nil
}

// watchMemory looks at the nodes every second until stop is called, which returns
// the most that each had.
func (m *mesh) watchMemory() (stop func() []float64) {
	end, most := make(chan struct{}), make([]float64, len(m.nodes))
	var wg sync.WaitGroup
	wg.Go(func() {
		began, looks := time.Now(), 0
		for {
			if now, err := m.resident(); err == nil && len(now) == len(most) {
				for i := range now {
					most[i] = max(most[i], now[i])
				}
				if looks++; looks%30 == 0 {
					fmt.Printf("# after %s: %s\n", time.Since(began).Round(time.Second), megabytes(now))
				}
			}
			select {
			case <-end:
				return
			case <-time.After(time.Second):
			}
		}
	})
	return func() []float64 {
		close(end)
		wg.Wait()
		return most
	}
}

func megabytes(x []float64) string {
	var out []string
	for _, v := range x {
		out = append(out, fmt.Sprintf("%.0f MB", v))
	}
	return strings.Join(out, ", ")
}

// kept counts the files below the data directories of the nodes, and their bytes.
func (m *mesh) kept() (files int, bytes int64) {
	for _, n := range m.nodes {
		_ = filepath.WalkDir(n.Dir, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if i, err := d.Info(); err == nil {
					files, bytes = files+1, bytes+i.Size()
				}
			}
			return nil
		})
	}
	return files, bytes
}

// heaps writes a profile of each node's heap to dir.
func (m *mesh) heaps(ctx context.Context, dir, name string) error {
	if dir == "" {
		return nil
	}
	for i, n := range m.nodes {
		if err := m.fetchProfile(ctx, i, "heap", filepath.Join(dir, name+"-"+n.Name+".heap")); err != nil {
			return err
		}
	}
	return nil
}
