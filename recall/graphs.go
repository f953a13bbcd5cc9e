package recall

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/selvage-mesh/selvage/ledger"
)

// A saved graph is <dir>/<company>.<hash of the model>.graph. It is written beside itself,
// synced and then renamed, so a node that dies meanwhile has the one before. One that is
// damaged is deleted and built anew; searches compare vectors one by one until then.

// saveEvery is the number of changes after which a graph is saved again.
const saveEvery = 1000

func (r *Recall) graphFile(company ledger.CompanyID, model string) string {
	sum := sha256.Sum256([]byte(model))
	return filepath.Join(r.cfg.Dir, string(company)+"."+hex.EncodeToString(sum[:8])+".graph")
}

func (r *Recall) loadGraphs(sh *shelf) {
	if r.cfg.Dir == "" {
		return
	}
	for _, m := range sh.c.Stat().Models {
		path := r.graphFile(sh.company, m.Model)
		if m.Vectors <= r.cfg.GraphFrom {
			continue
		}
		err := r.loadGraph(sh, m.Model, path)
		switch {
		case err == nil || errors.Is(err, fs.ErrNotExist):
		default:
			r.log.Warn("the saved graph of memories is not used and will be built anew", "file", path, "error", err)
			_ = os.Remove(path)
		}
	}
}

// mapFrom is the size of a file from which on it is mapped and not read: a graph over
// 100,000 vectors has 16 MB, which would be as much of the heap for a moment.
const mapFrom = 1 << 20

func (r *Recall) loadGraph(sh *shelf, model, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	open := os.ReadFile
	if info.Size() >= mapFrom {
		open = mapFile
	}
	b, err := open(path)
	if err != nil {
		return err
	}
	err = sh.c.Load(model, b)
	if info.Size() >= mapFrom {
		unmapFile(b)
	}
	return err
}

// saveGraphs saves the graphs of a company when enough of it changed.
func (r *Recall) saveGraphs(sh *shelf, linked bool) {
	sh.mu.Lock()
	since, saved := sh.since, sh.saved
	sh.mu.Unlock()
	if r.cfg.Dir == "" || !linked || saved != 0 && since-saved < saveEvery {
		return
	}
	for _, m := range sh.c.Stat().Models {
		if m.Linked == 0 {
			continue
		}
		if err := r.saveGraph(sh, m.Model); err != nil {
			r.log.Warn("a graph of memories could not be saved", "company", sh.company, "error", err)
			return
		}
	}
	sh.mu.Lock()
	sh.saved = max(1, since)
	sh.mu.Unlock()
}

// errDied is what a test sees of a node that died.
var errDied = errors.New("the node died")

func (r *Recall) saveGraph(sh *shelf, model string) (err error) {
	if err := os.MkdirAll(r.cfg.Dir, 0o700); err != nil {
		return err
	}
	path := r.graphFile(sh.company, model)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && !errors.Is(err, errDied) {
			_ = os.Remove(path + ".new")
		}
	}()
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"made", func() error { return nil }},
		{"written", func() error { return sh.c.Save(model, f) }},
		{"synced", f.Sync},
		{"closed", f.Close},
		{"renamed", func() error { return os.Rename(path+".new", path) }},
		{"kept", func() error { return syncFolder(r.cfg.Dir) }},
	} {
		if err := step.do(); err != nil {
			return errors.Join(err, f.Close())
		}
		if r.dies(step.name) {
			return errors.Join(errDied, f.Close())
		}
	}
	return nil
}

// syncFolder makes a rename in a folder durable, where the system can.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = f.Sync() // some file systems refuse it; a graph that is lost is built anew
	return f.Close()
}
