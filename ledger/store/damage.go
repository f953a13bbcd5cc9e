package store

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A Damage says that a file of the store does not hold what was written to it
// and synced. Nothing that depends on it may be served or voted on. Match it
// with errors.As.
type Damage struct {
	File string // name within the store's directory; "" when it is not known
	Kind string // what is wrong: one of the kinds below
	Err  error  // details; nil when the kind says all
}

// Kinds of damage.
const (
	DamageLost    = "lost"        // the file is gone
	DamageCut     = "cut"         // it ends before the place up to which it was synced
	DamageChanged = "changed"     // its bytes are not those that were synced
	DamageRead    = "unreadable"  // the disk does not give its bytes
	DamageMark    = "mark lost"   // the mark itself is gone or wrong in both copies
	DamageContent = "bad content" // a checksum inside it does not match
)

func (d *Damage) Error() string {
	file := d.File
	if file == "" {
		file = "a file"
	}
	text := fmt.Sprintf("store is damaged: %s: %s", file, d.Kind)
	if d.Err != nil {
		first, _, _ := strings.Cut(d.Err.Error(), "\n") // Pebble's details take several lines
		text += ": " + first
	}
	return text
}

func (d *Damage) Unwrap() error { return d.Err }

// tableInText finds the table in an error of Pebble's that carries it in words only.
var tableInText = regexp.MustCompile(`\b(?:file |L\d: )(\d{6,})`)

func tableIn(err error) string {
	if m := tableInText.FindStringSubmatch(err.Error()); m != nil {
		return m[1] + ".sst"
	}
	return ""
}

// damageOf returns err as a [Damage] when it says that bytes on the disk are
// wrong, and nil otherwise.
func damageOf(err error) *Damage {
	if err == nil || errors.Is(err, ErrNotFound) { // by far the most often
		return nil
	}
	if d, ok := errors.AsType[*Damage](err); ok {
		return d
	}
	switch {
	case pebble.IsCorruptionError(err) || pebble.ExtractDataCorruptionInfo(err) != nil:
		d := &Damage{File: tableIn(err), Kind: DamageContent, Err: err}
		if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
			d.File = vfs.Default.PathBase(info.Path)
		}
		return d
	case errors.Is(err, syscall.EIO):
		return &Damage{Kind: DamageRead, Err: err}
	}
	return nil
}

// openDamage judges an error of opening the database. What the operator can
// mend (rights, room, descriptors) is none, and neither is a database of a
// newer program; everything else is: the same files opened before.
func openDamage(err error) *Damage {
	for _, mendable := range []error{
		fs.ErrPermission, syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EROFS,
		errNewer, ErrClosed,
	} {
		if errors.Is(err, mendable) {
			return nil
		}
	}
	if d := damageOf(err); d != nil {
		return d
	}
	if errors.Is(err, pebble.ErrDBNotPristine) { // it was not cut off while it was made: it has rows
		return &Damage{File: "marker.format-version", Kind: DamageLost}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &Damage{File: tableIn(err), Kind: DamageLost, Err: err}
	}
	return &Damage{File: tableIn(err), Kind: DamageContent, Err: err}
}

// errNewer says that a newer program has written the store.
var errNewer = errors.New("store was written by a newer version of this program: upgrade it, or put the newer one back")
