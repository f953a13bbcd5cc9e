package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Scrub reads all files of the store once, past the block cache, and tells of what is
// damaged: each table block by block against its checksums, of the logs and manifests
// what was synced against the mark, the mark, and the marker that names the manifest.
// OPTIONS are not looked at, for nothing depends on them. It goes on after a finding,
// which found hears of, and [Options].OnDamage; the error is of ctx, or of listing the files.
//
// pace hears how many bytes of how many in all were read before more are, and may
// wait; its error ends the scrub.
func (s *Store) Scrub(ctx context.Context, pace func(bytes, of int64) error, found func(*Damage)) error {
	files, total, err := s.scrubList()
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		step := func(n int64) error { return pace(n, total) }
		switch d, err := s.scrubFile(ctx, name, step); {
		case err != nil:
			return err
		case d != nil:
			s.tell(d)
			found(d)
		}
	}
	return nil
}

// ScrubBytes is what a scrub has to read.
func (s *Store) ScrubBytes() (int64, error) {
	_, total, err := s.scrubList()
	return total, err
}

// scrubList names the files that a scrub reads: those that the database refers to, and
// those of the mark. A file that is there besides is nobody's.
func (s *Store) scrubList() (names []string, total int64, err error) {
	tables, err := s.tables()
	if err != nil {
		return nil, 0, err
	}
	for name, size := range tables {
		names = append(names, name)
		total += size
	}
	for f, want := range s.mark.files() {
		names = append(names, f.name())
		total += want.bytes
	}
	slices.Sort(names)
	return append(names, markFile, "marker.manifest"), total, nil
}

// tables are the sizes of the tables of the present version, by name.
func (s *Store) tables() (map[string]int64, error) {
	levels, err := db(s).SSTables()
	if err != nil {
		return nil, s.damaged(err)
	}
	out := map[string]int64{}
	for _, level := range levels {
		for _, t := range level {
			out[fmt.Sprintf("%06d.sst", uint64(t.BackingSSTNum))] = int64(t.Size)
		}
	}
	return out, nil
}

func (s *Store) scrubFile(ctx context.Context, name string, pace func(int64) error) (*Damage, error) {
	path := s.fs.PathJoin(s.dir, name)
	switch {
	case name == markFile:
		if _, err := readMark(s.fs, s.dir); err != nil {
			if d, ok := errors.AsType[*Damage](err); ok {
				return d, nil
			}
			return &Damage{File: name, Kind: DamageLost, Err: err}, nil
		}
		return nil, nil
	case name == "marker.manifest":
		desc, err := pebble.Peek(s.dir, s.fs)
		if err != nil || !desc.Exists {
			return &Damage{File: name, Kind: DamageLost, Err: err}, nil
		}
		return nil, nil
	}
	if f, ok := loggedName(name); ok {
		return s.scrubLogged(path, f, pace)
	}
	d, err := s.scrubTable(ctx, path, pace)
	if d == nil || err != nil {
		return nil, err
	}
	d.File = name
	if still, err := s.tables(); err == nil {
		if _, ok := still[name]; !ok {
			return nil, nil // compacted away meanwhile
		}
	}
	return d, nil
}

// scrubLogged checks a log or manifest up to where it was synced.
func (s *Store) scrubLogged(path string, f loggedFile, pace func(int64) error) (*Damage, error) {
	want, ok := s.mark.files()[f]
	if !ok {
		return nil, nil
	}
	d := checkFile(s.fs, path, want)
	if d != nil {
		if _, still := s.mark.files()[f]; !still {
			return nil, nil // it was let go meanwhile
		}
		d.File = f.name()
	}
	return d, pace(want.bytes)
}

// files returns what is noted of each log and manifest.
func (m *mark) files() map[loggedFile]synced {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[loggedFile]synced, len(m.note.files))
	for f, s := range m.note.files {
		out[f] = s
	}
	return out
}

// scrubTable reads all blocks of a table.
func (s *Store) scrubTable(ctx context.Context, path string, pace func(int64) error) (d *Damage, err error) {
	defer func() { // Pebble panics on some kinds of damage
		if p := recover(); p != nil {
			d = &Damage{Kind: DamageContent, Err: fmt.Errorf("%v", p)}
		}
	}()
	f, err := s.fs.Open(path, vfs.SequentialReadsOption)
	if errors.Is(err, fs.ErrNotExist) {
		return &Damage{Kind: DamageLost}, nil
	} else if err != nil {
		return &Damage{Kind: DamageRead, Err: err}, nil
	}
	paced := &pacedFile{File: f, pace: pace}
	readable, err := sstable.NewSimpleReadable(paced)
	if err != nil {
		return &Damage{Kind: DamageRead, Err: errors.Join(err, f.Close())}, nil
	}
	opts := pebbleOptions(s)
	opts.EnsureDefaults()
	err = validate(ctx, readable, opts.MakeReaderOptions())
	switch {
	case paced.stopped != nil:
		return nil, paced.stopped
	case err == nil:
		return nil, nil
	}
	if d := damageOf(err); d != nil {
		return d, nil
	}
	return &Damage{Kind: DamageContent, Err: err}, nil
}

func validate(ctx context.Context, readable objstorage.Readable, o sstable.ReaderOptions) error {
	r, err := sstable.NewReader(ctx, readable, o)
	if err != nil {
		return errors.Join(err, readable.Close())
	}
	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}

// pacedFile tells what is read of a file before more is.
type pacedFile struct {
	vfs.File
	pace    func(int64) error
	read    int64 // since pace was last asked
	stopped error
}

// paceStep is how many bytes of a table are read between two words to pace.
const paceStep = 256 << 10

func (p *pacedFile) ReadAt(b []byte, at int64) (int, error) {
	if p.stopped != nil {
		return 0, p.stopped
	}
	n, err := p.File.ReadAt(b, at)
	if p.read += int64(n); p.read >= paceStep {
		p.stopped, p.read = p.pace(p.read), 0
		if p.stopped != nil {
			return 0, p.stopped
		}
	}
	return n, err
}

// Close tells of the rest.
func (p *pacedFile) Close() error {
	if p.stopped == nil && p.read > 0 {
		p.stopped = p.pace(p.read)
	}
	return p.File.Close()
}
