package plugin

import (
	"archive/tar"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// An archive is
//
//	"SELVAGE-APP 1\n"      14 bytes
//	Ed25519 public key     32 bytes
//	Ed25519 signature      64 bytes, of the magic, the key and the SHA-256 of the rest
//	a tar of USTAR         regular files only, sorted by name, mode 0644, time 0, no owner, two empty blocks at its end
//
// Every byte counts: a change of any of them makes the archive another one, or none. The same files packed with the
// same key are the same bytes. A reader refuses other versions of the magic.
const magic = "SELVAGE-APP 1\n"

const headLength = len(magic) + ed25519.PublicKeySize + ed25519.SignatureSize

// ErrArchive is why an archive is refused.
var ErrArchive = errors.New("not a signed archive of an app")

// Files are the files of an app by path, with slashes.
type Files map[string][]byte

// An Archive is an archive whose signature was checked.
type Archive struct {
	Files  Files
	Digest string // SHA-256 of the archive, hex
	Signer string // Ed25519 key, hex
}

// signed returns what is signed.
func signed(key ed25519.PublicKey, content []byte) []byte {
	sum := sha256.Sum256(content)
	return slices.Concat([]byte(magic), key, sum[:])
}

// checkPath refuses a path that leads out of the app, or that an archive can not hold.
func checkPath(p string) error {
	if p == "" || p != path.Clean(p) || path.IsAbs(p) || p == ".." || strings.HasPrefix(p, "../") || strings.ContainsAny(p,
		"\\\x00") || len(p) > 99 {
		return fmt.Errorf("%w: %q is not a path within it of at most 99 bytes", ErrArchive, p)
	}
	return nil
}

// Pack makes an archive of files, signed with a key.
func Pack(files Files, key ed25519.PrivateKey) ([]byte, error) {
	if len(files) > maxFiles {
		return nil, fmt.Errorf("an app has at most %d files, this one has %d", maxFiles, len(files))
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := checkPath(name); err != nil {
			return nil, err
		}
		if len(files[name]) > MaxFile {
			return nil, fmt.Errorf("%s has %d bytes, a file of an app at most %d", name, len(files[name]), MaxFile)
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(files[name])), Mode: 0o644,
			Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return Sign(b.Bytes(), key)
}

// Sign puts a signature before the tar of an archive.
func Sign(content []byte, key ed25519.PrivateKey) ([]byte, error) {
	if len(content)+headLength > MaxArchive {
		return nil, fmt.Errorf("the archive has %d bytes, at most %d are allowed", len(content)+headLength, MaxArchive)
	}
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("not an Ed25519 key")
	}
	return slices.Concat([]byte(magic), public, ed25519.Sign(key, signed(public, content)), content), nil
}

// Content returns the tar of an archive, to be signed again.
func Content(archive []byte) ([]byte, error) {
	if _, err := Open(archive); err != nil {
		return nil, err
	}
	return archive[headLength:], nil
}

// IsArchive reports whether bytes begin as an archive does.
func IsArchive(b []byte) bool { return bytes.HasPrefix(b, []byte("SELVAGE-APP ")) }

// Open checks an archive and reads its files.
func Open(archive []byte) (Archive, error) {
	switch {
	case len(archive) > MaxArchive:
		return Archive{}, fmt.Errorf("%w: more than %d bytes", ErrArchive, MaxArchive)
	case len(archive) < headLength || string(archive[:len(magic)]) != magic:
		return Archive{}, fmt.Errorf("%w: it does not begin as one of version 1 does", ErrArchive)
	}
	rest := archive[len(magic):]
	key, rest := ed25519.PublicKey(rest[:ed25519.PublicKeySize]), rest[ed25519.PublicKeySize:]
	signature, content := rest[:ed25519.SignatureSize], rest[ed25519.SignatureSize:]
	if !ed25519.Verify(key, signed(key, content), signature) {
		return Archive{},
			fmt.Errorf("%w: the signature does not fit: the archive was changed, or signed with another key", ErrArchive)
	}
	sum := sha256.Sum256(archive)
	out := Archive{Files: Files{}, Digest: hex.EncodeToString(sum[:]), Signer: hex.EncodeToString(key)}
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return Archive{}, fmt.Errorf("%w: %w", ErrArchive, err)
		}
		if err := checkPath(h.Name); err != nil {
			return Archive{}, err
		}
		_, twice := out.Files[h.Name]
		if h.Typeflag != tar.TypeReg || h.Size > MaxFile || twice || len(out.Files) == maxFiles {
			return Archive{}, fmt.Errorf("%w: %q is no regular file of at most %d bytes, is there twice, or is one of more "+
				"than %d", ErrArchive, h.Name, MaxFile, maxFiles)
		}
		if out.Files[h.Name], err = io.ReadAll(r); err != nil {
			return Archive{}, fmt.Errorf("%w: %w", ErrArchive, err)
		}
	}
}
