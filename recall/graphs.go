package recall

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/memory"
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
		if m.Vectors <= memory.Exact {
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

func (r *Recall) loadGraph(sh *shelf, model, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return sh.c.Load(model, f)
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
		if err != nil {
			_ = os.Remove(path + ".new")
		}
	}()
	err = errors.Join(sh.c.Save(model, f), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
