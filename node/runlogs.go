package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/selvage-mesh/selvage/adapter/runlog"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
)

// keepLogs copies the logs of ended runs to other nodes, and retries until it has
// recorded that.
func (n *Node) keepLogs(ctx context.Context) {
	var failures atomic.Int64
	var twice []keptSegment // at most those recorded within segmentGrace
	var late *lateLogs
	every(ctx, keepLogsEvery, func() {
		twice = n.dropSegments(twice, n.conf.Wall())
		if n.session() == 0 {
			return
		}
		if late == nil { // only a start leaves some
			late = n.lateLogs()
		}
		late.tell(ctx, n.conf.Wall())
		var due []entity.Run
		err := n.ledger.View(func(tx *ledger.Tx) error {
			due = company.LogsDue(tx, string(n.ID()), company.MaxKeptLogs)
			return nil
		})
		if err != nil {
			return
		}
		kept, segments := map[ledger.CompanyID][]company.KeptLog{}, map[ledger.CompanyID][]keptSegment{}
		var order []ledger.CompanyID
		for _, r := range due {
			l := company.KeptLog{Run: r.ID}
			switch nodes, decided, err := n.keepLogsOf(ctx, r); {
			case err == nil:
				l.Nodes, l.Decided = nodes, decided
			case ctx.Err() != nil:
				return
			case errors.Is(err, blob.ErrTooFew):
				continue // other nodes may be available later
			default:
				if failures.Add(1) <= maxKeepFailures {
					n.log.Warn("log of a run can not be kept", "run", r.ID, "error", err)
				}
			}
			if kept[r.Company] == nil {
				order = append(order, r.Company)
			}
			kept[r.Company] = append(kept[r.Company], l)
			if d, err := blob.ParseDigest(string(r.LogSHA256)); err == nil && len(l.Nodes) > 0 {
				segments[r.Company] = append(segments[r.Company], keptSegment{r.ID, string(r.LogRef), d, n.conf.Wall()})
			}
		}
		for _, of := range order {
			if err := n.carryOut(ctx, n.command(company.KindRunLogKeep, of, company.KeepLogs{Logs: kept[of]})); err != nil &&
				ctx.Err() == nil {
				n.log.Info("kept logs could not be told", "company", of, "error", err)
				delete(segments, of)
			}
			twice = append(twice, segments[of]...)
		}
	})
}

// A keptSegment is the segment of a run whose log was copied into a blob.
type keptSegment struct {
	run, ref string
	digest   blob.Digest
	at       time.Time // when that was recorded
}

// dropSegments deletes segments recorded at least segmentGrace ago whose blob this node
// has. It returns those to check later. If the process ends first, pruneLogs deletes the
// segments.
func (n *Node) dropSegments(all []keptSegment, now time.Time) (later []keptSegment) {
	for _, s := range all {
		switch {
		case now.Sub(s.at) < segmentGrace:
			later = append(later, s)
		case n.blobs.Check(s.digest) == nil: // hashed: the segment may be the only other copy
			if err := n.work.logs.Remove(s.ref); err != nil {
				n.log.Warn("segment of a kept log", "run", s.run, "error", err)
			}
		}
	}
	return later
}

// keepLogsOf keeps the log of a run and its decision log. The error wraps blob.ErrTooFew when it may succeed later.
func (n *Node) keepLogsOf(ctx context.Context, r entity.Run) (log, decided []string, err error) {
	if d := r.Decisions; d != nil && d.Bytes > 0 && d.KeptAt == 0 {
		ref := runlog.DecisionsRef(r.Company, r.Agent, r.ID)
		if decided, err = n.keepLog(ctx, ref, d.SHA256, d.Bytes); errors.Is(err, blob.ErrTooFew) {
			return nil, nil, err
		} else if err != nil {
			n.log.Warn("decision log of a run can not be kept", "run", r.ID, "error", err)
		}
	}
	if r.LogBytes == nil || *r.LogBytes == 0 || r.LogKeptAt != 0 {
		return nil, decided, nil
	}
	log, err = n.keepLog(ctx, string(r.LogRef), string(r.LogSHA256), *r.LogBytes)
	if err != nil && !errors.Is(err, blob.ErrTooFew) && len(decided) > 0 {
		n.log.Warn("log of a run can not be kept", "run", r.ID, "error", err)
		err = nil
	}
	return log, decided, err
}

// lateLogs are decision logs of earlier lives of this node whose runs others have closed, or will close, because the
// node was lost. The node tells the mesh of each once its run is over, and tries again, at growing intervals, until the
// mesh knows.
type lateLogs struct {
	open []runlog.Decided // at most maxLateLogs
	wait time.Duration    // after the next failure; 0: none has failed yet
	next time.Time        // not before then
	left int              // how many rounds may fail before the node gives up until its next start
	log  *slog.Logger

	run  func(runlog.Decided) entity.Run // without an ID: the mesh has no such run of this node
	seal func(ref string) (entity.DecisionLog, error)
	told func(context.Context, ledger.CompanyID, company.KeptLog) error
}

// lateLogs looks for the decision logs that this node has to tell of. One that is closed already may be among them: the
// process ended, or nobody led, before the mesh was told.
func (n *Node) lateLogs() *lateLogs {
	l := &lateLogs{left: maxLateTries, log: n.log, seal: n.work.logs.SealDecisions,
		told: func(ctx context.Context, of ledger.CompanyID, k company.KeptLog) error {
			return n.carryOut(ctx, n.command(company.KindRunLogKeep, of, company.KeepLogs{Logs: []company.KeptLog{k}}))
		}}
	l.run = func(d runlog.Decided) (r entity.Run) {
		_ = n.ledger.View(func(tx *ledger.Tx) error {
			r, _ = entity.RunOf(tx, d.Company, d.Run)
			return nil
		})
		if r.Node != string(n.ID()) {
			return entity.Run{}
		}
		return r
	}
	var err error
	l.open, err = n.work.logs.Decisions(maxLateLogs, func(d runlog.Decided) bool {
		r := l.run(d)
		return r.ID != "" && r.Decisions == nil
	})
	if err != nil {
		n.log.Warn("decision logs of earlier runs", "error", err)
	}
	return l
}

// tell tells the mesh of those whose runs are over, unless it is too early to try again.
func (l *lateLogs) tell(ctx context.Context, now time.Time) {
	if len(l.open) == 0 || now.Before(l.next) {
		return
	}
	var left []runlog.Decided
	var failed error
	for i, d := range l.open {
		r := l.run(d)
		if r.ID == "" || r.Decisions != nil {
			continue
		}
		if r.Status.Live() || r.Owed {
			left = append(left, d)
			continue
		}
		closed, err := l.seal(d.Ref())
		if err == nil {
			err = l.told(ctx, d.Company, company.KeptLog{Run: d.Run, Late: &closed})
			if _, no := errors.AsType[*ledger.Refusal](err); err != nil && !no {
				// The others would fail too, each after its timeout.
				left, failed = append(left, l.open[i:]...), err
				break
			}
		}
		if err != nil {
			left, failed = append(left, d), fmt.Errorf("run %s: %w", d.Run, err)
		}
	}
	if l.open = left; ctx.Err() != nil || failed == nil {
		l.wait = 0
		return
	}
	if l.left--; l.left == 0 {
		l.log.Warn("decision logs of runs could not be told; the next start tries again", "logs", len(left), "error", failed)
		l.open = nil
		return
	}
	l.wait = min(max(2*l.wait, keepLogsEvery), maxLateWait)
	l.next = now.Add(l.wait)
	l.log.Info("decision logs of runs could not be told yet", "logs", len(left), "again", l.wait, "error", failed)
}

// keepLog creates a blob of a closed log and copies it to other nodes. The error wraps
// blob.ErrTooFew when it may succeed later.
func (n *Node) keepLog(ctx context.Context, ref, hash string, size int64) ([]string, error) {
	d, err := blob.ParseDigest(hash)
	if err != nil {
		return nil, runlog.ErrNoLog
	}
	if !n.blobs.Touch(d) {
		w, err := n.blobs.Create(size)
		if err != nil {
			return nil, err
		}
		defer w.Abort()
		for at := int64(0); at < size; {
			c, err := n.work.logs.Read(ref, at, 0)
			if err != nil {
				return nil, err
			}
			if len(c.Content) == 0 {
				return nil, fmt.Errorf("the log has %d bytes, want %d", c.Size, size)
			}
			if _, err := w.Write(c.Content); err != nil {
				return nil, err
			}
			at += int64(len(c.Content))
		}
		if err := w.CommitAs(d); err != nil {
			return nil, err
		}
	}
	p, err := n.blobs.Spread(ctx, d, size)
	if err != nil {
		return nil, err
	}
	var nodes []string
	for _, id := range p.Holders[:min(len(p.Holders), company.MaxBlobNodes)] {
		nodes = append(nodes, string(id))
	}
	return nodes, nil
}

// RunLog reads a part of a run's log: from the node that executed it until the log is
// kept, then from this node or the holders of the blob, because the segment is deleted
// soon; see dropSegments.
func (n *Node) RunLog(ctx context.Context, run entity.Run, offset, limit int64) (runlog.Chunk, error) {
	ref, on := string(run.LogRef), identity.NodeID(run.Node)
	if ref == "" || on == "" {
		return runlog.Chunk{}, runlog.ErrNoLog
	}
	if run.LogKeptAt == 0 || run.LogBytes == nil {
		return n.runLog(ctx, on, ref, offset, limit)
	}
	c, err := n.keptLog(ctx, run, offset, limit)
	if err == nil {
		return c, nil
	}
	n.log.Warn("a kept log can not be read; asking the node that wrote it", "run", run.ID, "error", err)
	if on == n.ID() || n.alive(on) {
		if own, ownErr := n.runLog(ctx, on, ref, offset, limit); ownErr == nil {
			return own, nil
		}
	}
	return c, err
}

func (n *Node) keptLog(ctx context.Context, run entity.Run, offset, limit int64) (c runlog.Chunk, err error) {
	d, err := blob.ParseDigest(string(run.LogSHA256))
	if err != nil {
		return c, runlog.ErrNoLog
	}
	ref := blob.Reference{Digest: d, Size: *run.LogBytes}
	err = n.ledger.View(func(tx *ledger.Tx) error {
		if b, ok := company.BlobOf(tx, run.Company, string(run.LogSHA256)); ok {
			for _, id := range b.Nodes {
				ref.Hints = append(ref.Hints, identity.NodeID(id))
			}
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	body, err := n.blobs.Read(ctx, ref)
	if errors.Is(err, blob.ErrMissing) {
		return c, fmt.Errorf("%w: %w", runlog.ErrNoLog, err)
	} else if err != nil {
		return c, err
	}
	defer body.Close()
	if limit <= 0 || limit > runlog.MaxRead {
		limit = runlog.MaxRead
	}
	c.Size = ref.Size
	if offset < 0 || offset >= ref.Size {
		return c, nil
	}
	if _, err := body.Seek(offset, io.SeekStart); err != nil {
		return c, err
	}
	c.Content = make([]byte, min(limit, ref.Size-offset))
	m, err := io.ReadFull(body, c.Content)
	if c.Content = c.Content[:m]; err != nil && m == 0 {
		return c, err
	}
	return c, nil
}
