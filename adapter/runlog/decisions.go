package runlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// The decision log of a run has a line for each act at the node that the gate permitted without more: what it decided
// otherwise is on the chain. It is a file <company>/<agent>/<run>.gate.ndjson, which is named <run>.gate.growing.ndjson
// until the run is closed. The command that closes the run has its lines, its bytes and its SHA-256.
// The node then copies it to others as a blob, as the log of the output.

const (
	// MaxDecisions bounds the decision log of one run, in bytes: about 5,000 lines.
	MaxDecisions = 1 << 20
	gateEnd      = ".gate.ndjson"
	growingEnd   = ".gate.growing.ndjson"
)

var (
	// ErrFull: the decision log has reached its bound.
	ErrFull = errors.New("the decision log of the run is full")
	// ErrSealed: the run is closed, and its log with it.
	ErrSealed = errors.New("the decision log of the run is closed")
)

// DecisionsRef names the decision log of a run.
func DecisionsRef(company ledger.CompanyID, agent, run string) string {
	return strings.TrimSuffix(Ref(company, agent, run), ".ndjson") + gateEnd
}

func growingRef(ref string) string { return strings.TrimSuffix(ref, gateEnd) + growingEnd }

// Decided adds a line to a decision log. The bytes are with the operating system when it returns: they survive the end
// of this process.
func (s *Store) Decided(ref string, line []byte) error {
	if checkRef(ref) != nil || !strings.HasSuffix(ref, gateEnd) {
		return fmt.Errorf("decision log %q: not a reference", ref)
	}
	if _, err := s.root.Stat(ref); err == nil {
		return ErrSealed
	}
	open := func() (*os.File, error) {
		return s.root.OpenFile(growingRef(ref), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	}
	f, err := open()
	if errors.Is(err, fs.ErrNotExist) { // the first of this agent
		if err = s.root.MkdirAll(path.Dir(ref), 0o700); err == nil {
			f, err = open()
		}
	}
	if err != nil {
		return fmt.Errorf("decision log: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("decision log: %w", err)
	case st.Size()+int64(len(line))+1 > MaxDecisions:
		return ErrFull
	}
	if _, err := f.Write(append(line[:len(line):len(line)], '\n')); err != nil {
		return fmt.Errorf("decision log: %w", err)
	}
	return nil
}

// SealDecisions closes the decision log of a run and describes it; one without lines where there is none.
func (s *Store) SealDecisions(ref string) (entity.DecisionLog, error) {
	none := entity.DecisionLog{SHA256: hexSum(nil)}
	if checkRef(ref) != nil {
		return none, nil
	}
	if err := s.root.Rename(growingRef(ref), ref); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return none, fmt.Errorf("decision log: %w", err)
	}
	b, err := s.root.ReadFile(ref)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("decision log: %w", err)
	}
	return entity.DecisionLog{Permits: uint64(bytes.Count(b, []byte("\n"))), Bytes: int64(len(b)), SHA256: hexSum(b)}, nil
}

// Decisions names the runs whose decision logs this store has, closed or not, and that want accepts, at most most of
// them.
func (s *Store) Decisions(most int, want func(Decided) bool) (out []Decided, err error) {
	err = fs.WalkDir(s.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		run, ok := strings.CutSuffix(path.Base(p), growingEnd)
		if !ok {
			run, ok = strings.CutSuffix(path.Base(p), gateEnd)
		}
		if err != nil || d.IsDir() || !ok || checkRef(p) != nil {
			return err
		}
		parts := strings.Split(p, "/")
		of := Decided{ledger.CompanyID(parts[0]), parts[1], run}
		if !want(of) {
			return nil
		}
		if out = append(out, of); len(out) == most {
			return fs.SkipAll
		}
		return nil
	})
	return out, err
}

// A Decided is a run that has a decision log.
type Decided struct {
	Company    ledger.CompanyID
	Agent, Run string
}

// Ref names its decision log.
func (d Decided) Ref() string { return DecisionsRef(d.Company, d.Agent, d.Run) }

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
